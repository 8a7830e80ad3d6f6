/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine's process gives up before its guest runs. It must never be undone, and a
 * machine must never start when it failed.
 */
#ifndef SKILLVM_VMM_HARDEN_H
#define SKILLVM_VMM_HARDEN_H

#include "base/err.h"

/*
 * For the start of the process: dies with its parent, leaves no core file, and closes every
 * descriptor above last_fd, the highest it was given. 0 or -errno.
 */
int harden_process(int last_fd, struct err *err);

/* What a machine's process will still do. */
enum harden_scope {
    HARDEN_ONCE,     /* run one guest, once */
    HARDEN_REUSABLE, /* put its guest back to the snapshot, again and again */
    HARDEN_BOOT,     /* be saved or recorded; no user's code ever runs in it */
};

/*
 * For the last moment before the guest runs, when all threads exist: no new privileges, in
 * every thread only the system calls of seccomp_rules.c, and no new descriptors but for the one
 * that a reset brings in place of stream_fd, and those of a snapshot. 0 or -errno.
 */
int harden_machine(enum harden_scope scope, int stream_fd, struct err *err);

#endif
