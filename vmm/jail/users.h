/* SPDX-License-Identifier: Apache-2.0 */
/* The user ids of the host that machines have, and how a user namespace gets them. */
#ifndef SKILLVM_VMM_JAIL_USERS_H
#define SKILLVM_VMM_JAIL_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* JAIL_CELLS of each. */
struct users {
    uint32_t first_user;
    uint32_t first_group;
    bool helpers; /* by newuidmap(1) and newgidmap(1), and not by this process itself */
};

/*
 * Those that the caller may give away: root, and who has CAP_SETUID and CAP_SETGID, from
 * JAIL_FIRST_USER on, another the first range of its own in subuid(5) and subgid(5) that is
 * large enough. NULL, or what is missing.
 */
const char *users_find(struct users *ret);

/* Gives them to a namespace's process, as first_inside and on. 0 or -errno. */
int users_map(const struct users *users, pid_t pid, uint32_t first_inside);

/* Gives it the caller's own user and group, and no others: without a right that it has not. */
int users_map_self(uint32_t user, uint32_t group, uint32_t inside);

#endif
