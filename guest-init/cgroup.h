/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The skill's cgroup (v2): limits, usage, and the one way to end every process in it.
 * It must never report a figure that it could not read as if it were zero usage.
 */
#ifndef SKILLVM_GUEST_CGROUP_H
#define SKILLVM_GUEST_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The files of a cgroup that are kept open: opening one costs more than using it. */
enum cgroup_file {
    CGROUP_PEAK, /* reset by cgroup_begin */
    CGROUP_CPU_STAT,
    CGROUP_EVENTS,
    CGROUP_MEMORY_MAX,
    CGROUP_PIDS_MAX,
    CGROUP_PIDS_EVENTS,
    CGROUP_PROCS,
    CGROUP_FREEZE,
    CGROUP_KILL,
    CGROUP_FILES,
};

struct cgroup {
    int dir; /* owned, as the files are; -1 when cgroups are not used */
    int files[CGROUP_FILES];
    uint64_t user_us; /* CPU time at cgroup_begin */
    uint64_t system_us;
};

struct cgroup_usage {
    uint64_t user_us;
    uint64_t system_us;
    uint64_t peak_bytes;
    bool out_of_memory;   /* the OOM killer struck in it */
    uint64_t not_started; /* processes and threads that pids.max kept from being started */
};

/* A cgroup that is not used: every function accepts it and says so. */
#define CGROUP_NONE ((struct cgroup){.dir = -1, .files = {[0 ... CGROUP_FILES - 1] = -1}})

/*
 * Makes (or finds) the cgroup `name` under the hierarchy mounted at `mount`, with the memory
 * and pids controllers. 0, or -errno with err set; *ret_cgroup is the caller's, cgroup_close
 * it.
 */
int cgroup_open(const char *mount, const char *name, struct cgroup *ret_cgroup,
                struct err *err);
void cgroup_close(struct cgroup *cg);
/* Moves the calling process into it; for a child before it executes. 0 or -errno. */
int cgroup_join(const struct cgroup *cg);
/* memory.max in bytes and pids.max. 0, or -errno with err set. */
int cgroup_limit(const struct cgroup *cg, uint64_t memory_bytes, uint32_t pids_max,
                 struct err *err);
/* Usage is counted from here on. */
void cgroup_begin(struct cgroup *cg);
/* Usage since cgroup_begin. 0, or -errno when it cannot be read. */
int cgroup_read_usage(const struct cgroup *cg, struct cgroup_usage *ret_usage);
/*
 * How many bytes of files were read again after they gave way to something, since it was made.
 * Costs much more than the usage. 0 or -errno.
 */
int cgroup_read_again(const struct cgroup *cg, uint64_t *ret_bytes);
/*
 * Stops every process in it for good if it holds one only: no instruction of it is run any
 * more. 0; -EBUSY when there are more, which go on; or -errno.
 */
int cgroup_freeze_last(const struct cgroup *cg);
/* SIGKILL to every process in it; they may take a moment to be gone. 0 or -errno. */
int cgroup_kill(const struct cgroup *cg);

#endif
