/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine's process tries that a guest has taken over, and which layers are in its way.
 */
#ifndef SKILLVM_TESTS_UNIT_HARDEN_ATTEMPTS_H
#define SKILLVM_TESTS_UNIT_HARDEN_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "vmm/harden.h"

/* What harden.h has, as bits. */
enum layer {
    PRIVILEGES = 1,
    CAPABILITIES = 2,
    FILES = 4,
    LIMITS = 8,
    CALLS = 16,
    /* FILES, where it is a Landlock of this version. */
    FILES_4 = 32,
    FILES_6 = 64,
    CONFINED = PRIVILEGES | CAPABILITIES | FILES,
    ALL = CONFINED | LIMITS | CALLS,
};

/* What there is for it to be tried on. */
struct attempts_world {
    struct harden_plan plan; /* of a machine, as far as it takes no KVM */
    pid_t bystander;         /* a process of the same user's, outside */
    int file_fd;             /* open to be written */
    int listener;            /* an abstract socket, made before anything was given up */
};
extern struct attempts_world world;

#define NOBODY_MAY (-1)
/* Of both threads, but for what one of them has to do. */
struct attempt {
    const char *name;
    int (*try)(void); /* 0 when it could be done, -errno */
    unsigned by;      /* layers beside CALLS that are in its way, each of them alone */
    int allowed;      /* to this thread */
    bool to_reset;    /* and only for a reset */
};
extern const struct attempt attempts[];
extern const size_t n_attempts;

/* Of the attempts: a call as a 32-bit program makes it. */
int try_i386(void);

#endif
