/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is outside of a jail, for a program in it to reach for, and such programs: jail_probe,
 * in the place of a machine. The functions fail the test where they cannot do what they say.
 */
#ifndef SKILLVM_TESTS_JAIL_WORLD_H
#define SKILLVM_TESTS_JAIL_WORLD_H

#include "api/daemon/machine/jail.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the probe tries to reach outside. */
extern struct outside {
    char socket_name[32];
    pid_t bystander;
    int shared_memory;
    bool key; /* this host has keyrings */
} outside;

/* One probe: what it said, and its process, which waits. */
struct probe {
    struct jailed jailed;
    char said[1024];
};

/* For cmocka, before and after all tests. */
int jail_world_begin(void **state);
int jail_world_end(void **state);

/* One with these layers, as far as the host allows them; jail_close ends it. */
struct jail *open_jail(uint32_t layers);

/*
 * Starts one, and waits until it has said all. *ret_said is the pipe, and has its end when none
 * of the probe's processes is left. extra is its last argument, or NULL. As of jail_start.
 */
int start_piped(struct jail *jail, const char *extra, struct probe *ret, int *ret_said,
                struct err *err);
int start_probe(struct jail *jail, struct probe *ret, struct err *err);
void end_probe(struct jail *jail, struct probe *probe);
/* The number after a name in what it said. */
long found(const struct probe *probe, const char *name);

/* The youngest skillvm-jail that has this parent. */
pid_t find_jail(pid_t parent);
/* What is in a process's status behind a name, as a number of a base; ~0: it is not there. */
unsigned long long status_of(pid_t pid, const char *name, int base);

#endif
