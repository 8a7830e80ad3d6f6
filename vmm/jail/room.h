/* SPDX-License-Identifier: Apache-2.0 */
/* What all machines of a jail are in. */
#ifndef SKILLVM_VMM_JAIL_ROOM_H
#define SKILLVM_VMM_JAIL_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "vmm/jail/jail.h"
#include "vmm/jail/limits.h"

/*
 * Puts this process, and all that it starts from then on, into the layers that are wanted, and
 * says in *ret what came of it: what the host does not allow is missing. The PID namespace is
 * that of its children, and *ret_first its first process, or 0. 0; -errno where it is left
 * without.
 */
int room_make(uint32_t wanted, struct limits *limits, pid_t *ret_first, struct jail_hello *ret,
              struct err *err);

/* Whether a PID namespace is over, with its first process. */
bool room_is_over(pid_t first);

/* The same to be looked at only: no process is started, and nobody moved into a cgroup. */
void room_try(struct jail_hello *ret);

/* The user id that a cell has within the namespace. */
uint32_t room_user(uint32_t cell);

#endif
