/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine's process gives up before its guest runs. It must never be undone, and a
 * machine must never start when it failed.
 */
#ifndef SKILLVM_VMM_HARDEN_H
#define SKILLVM_VMM_HARDEN_H

#include <stdbool.h>

#include "base/err.h"

/*
 * For the start of the process: dies with its parent, leaves no core file, and closes every
 * descriptor above last_fd, the highest it was given. 0 or -errno.
 */
int harden_process(int last_fd, struct err *err);

/*
 * For the last moment before the guest runs, when all threads exist: no new descriptors, no new
 * privileges, and in every thread only the system calls of seccomp_rules.c. can_save leaves
 * what a snapshot needs. 0 or -errno.
 */
int harden_machine(bool can_save, struct err *err);

#endif
