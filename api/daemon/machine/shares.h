/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What part of the processors a machine gets where all want more than there is: every party has
 * the same, whatever number of machines each has at work, and a machine its part of its
 * party's. A machine that nobody has gets as much as a party.
 *
 * By cpu.weight of the machine's cgroup (the kernel's cgroup-v2.rst, "Weights"). A party's
 * machines are written to only when it comes to have more than a power of two of them, or no
 * more: whoever has one pays nothing. Where the jail has no layer `limits` the host shares by
 * its own rules.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SHARES_H
#define SKILLVM_API_DAEMON_MACHINE_SHARES_H

#include <pthread.h>
#include <sys/queue.h>

#include "vmm/jail/jail.h"

#define SHARE_PARTY_SIZE 64u
/* The weight of a party, and of a cgroup that nobody wrote to. */
#define SHARE_WEIGHT ((unsigned)JAIL_WEIGHT)

struct shares {
    pthread_mutex_t lock; /* under which nothing waits */
    LIST_HEAD(, share) at_work;
};

/* A machine's. Zero is one that nobody has. */
struct share {
    char party[SHARE_PARTY_SIZE]; /* an opaque word; "": nobody */
    int weight_fd;                /* borrowed: cpu.weight of its cgroup, or -1 */
    unsigned weight;              /* what that says */
    LIST_ENTRY(share) link;
};

void shares_init(struct shares *shares);
void shares_close(struct shares *shares);

/*
 * The machine works for a party, the same as before or another. Its weight_fd says SHARE_WEIGHT
 * unless it worked already, and stays open until shares_leave. What cannot be written is in the
 * log.
 */
void shares_enter(struct shares *shares, struct share *share, const char *party, int weight_fd);
/* It is nobody's again. Harmless where it was. */
void shares_leave(struct shares *shares, struct share *share);

#endif
