/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a machine's process gives up before its guest runs. It must never be undone, and a
 * machine must never start when it failed. Each part holds without the others.
 */
#ifndef SKILLVM_VMM_HARDEN_H
#define SKILLVM_VMM_HARDEN_H

#include <stdbool.h>

#include "base/err.h"

/* What a machine's process will still do. */
enum harden_scope {
    HARDEN_ONCE,     /* run one guest, once */
    HARDEN_REUSABLE, /* put its guest back to the snapshot, again and again */
    HARDEN_BOOT,     /* be saved or recorded; no user's code ever runs in it */
};

enum harden_thread { HARDEN_MAIN, HARDEN_VCPU, HARDEN_THREADS };

/* The descriptors that a call may be tied to. */
enum harden_fd {
    HARDEN_FD_CONTROL,
    HARDEN_FD_STREAM, /* the guest's connection */
    HARDEN_FD_WAKE,
    HARDEN_FD_LOG, /* standard error */
    HARDEN_FD_CONSOLE,
    HARDEN_FD_KVM,
    HARDEN_FD_VM,
    HARDEN_FD_VCPU,
    HARDEN_FD_IMAGE,
    HARDEN_FD_PAGEMAP,
    HARDEN_FD_STATS,
    /* Of harden_find_free: what a command brings has these, a skill's disk the first two. */
    HARDEN_FD_SENT_1,
    HARDEN_FD_SENT_2,
    HARDEN_FD_SENT_3,
    HARDEN_FDS,
};

struct harden_plan {
    enum harden_scope scope;
    bool verify;         /* what vmm/verify.c compares it must read */
    int fds[HARDEN_FDS]; /* -1: there is none */
};

/*
 * For the start of the process: dies with its parent, is the first that a host short of memory
 * ends, leaves no core file, and closes every descriptor above last_fd, the highest it was
 * given. proc_fd is /proc. 0 or -errno.
 */
int harden_process(int proc_fd, int last_fd, struct err *err);

/*
 * For the moment when everything is open and there is one thread yet, whose children get the
 * same: the three below. 0 or -errno.
 */
int harden_confine(struct err *err);
/* No new privileges. */
int harden_privileges(struct err *err);
/* No capabilities. */
int harden_capabilities(struct err *err);
/* Landlock, where the kernel has it: no file is opened, made or removed by a name; from its
 * version 4 on (Linux 6.7) no TCP port is bound or connected to, and from 6 on (6.12) no
 * abstract socket of others is, and no signal sent to them. */
int harden_landlock(struct err *err);
/* The version of the kernel's Landlock, 1 or more; 0 with errno where a machine runs without:
 * it is not built in (ENOSYS), not switched on (EOPNOTSUPP), or forbidden by a filter of system
 * calls, with either or EPERM; -errno otherwise. Changes nothing. */
int harden_landlock_version(void);

/*
 * Puts into the plan the numbers that the descriptors will have which a machine that runs is
 * sent: the two of a skill's disk and, where it may be reset, one more. They are the lowest
 * that are free, so nothing is opened or closed from then on. -1 for one that boots. 0 or
 * -errno.
 */
int harden_find_free(struct harden_plan *plan, struct err *err);

/*
 * For the moment when all threads exist, with a plan that harden_find_free has completed: no
 * new descriptors but for those of a skill's disk and
 * the one that a reset brings in place of the stream, and no more memory, locked pages or
 * bytes of files. Of threads it has as many as vmm/jail/jail.h says, since KVM makes one in the
 * first KVM_RUN.
 * Little of that for a machine that boots: it needs memory to be saved, and is sent
 * descriptors. 0 or -errno.
 */
int harden_limits(const struct harden_plan *plan, struct err *err);

/*
 * For each thread itself, before the guest runs: it is left with the system calls that
 * seccomp_rules.c lists for it, and any other ends the process. 0 or -errno.
 */
int harden_thread(const struct harden_plan *plan, enum harden_thread thread, struct err *err);

#endif
