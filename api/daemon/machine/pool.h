/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machines that jobs run in, and the only place that starts one for a job: executions,
 * looks at parsers and whatever else wants something run takes a machine, runs one job in it
 * and releases it.
 *
 * Machines wait here ready to take a job. Fresh ones have run nothing but the warm-up and were
 * reset after it: anybody gets them. Used ones were reset after a job and go to their owner
 * only: an opaque key that the taker says, and that nobody else may say. What a job could not
 * be trusted with destroys its machine. Resets, ends and refills are the work of the pool's own
 * threads, behind whoever took or released a machine.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_POOL_H
#define SKILLVM_API_DAEMON_MACHINE_POOL_H

#include "api/daemon/config/config.h"
#include "api/daemon/machine/guest.h"
#include "api/daemon/machine/job.h"
#include "api/daemon/machine/shares.h"
#include "api/daemon/machine/snapshots.h"
#include "api/daemon/machine/vm.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define POOL_OWNER_SIZE 128u

struct pool;
struct machine;

/* What a taker asks for. */
struct machine_wish {
    /*
     * Whose jobs the machine may have run, and may run later; "": a machine that runs this one
     * job and never another.
     */
    char owner[POOL_OWNER_SIZE];
    struct snapshot_name snapshot;
    /* For whom it works until it waits again or ends: see shares.h. */
    char party[SHARE_PARTY_SIZE];
};

/* Borrowed for the life of the pool. */
struct pool_config {
    struct snapshots *snapshots;
    struct jail *jail; /* what starts machines */
    uint64_t grace_ms;
    struct config_machines limits; /* may change while it runs */
    /* True while memory is short, so that nothing shall wait; NULL: it never is. */
    bool (*is_short)(void *ctx);
    void *ctx;
};

/* What a take found. */
enum pool_kind {
    POOL_STARTED, /* nothing: a machine was started */
    POOL_FRESH,   /* one that nobody had */
    POOL_REUSED,  /* one of the owner's own */
};
#define POOL_KINDS (POOL_REUSED + 1)

/* Why a machine went. */
enum pool_end {
    POOL_END_UNWANTED, /* no other job may have it, or none may wait */
    POOL_END_UNCLEAN,  /* its job did not end as it should */
    POOL_END_USES,     /* it has run as many as one may */
    POOL_END_RESET,    /* its reset failed, or the warm-up did */
    POOL_END_BROKEN,   /* it died or spoke up while it waited */
    POOL_END_IDLE,     /* it waited for too long */
    POOL_END_ROOM,     /* there are enough of them, or memory is short */
    POOL_END_RENEWED,  /* its snapshot is no longer the one to begin from */
    POOL_END_STOP,
};
#define POOL_ENDS (POOL_END_STOP + 1)

/* What the pool has now, and what it counted since its start. */
struct pool_measure {
    unsigned machines;       /* processes */
    uint64_t resident_bytes; /* with the pages of the snapshot that they share */
    uint64_t private_bytes;
    unsigned parked_fresh;
    unsigned parked_used;
    uint64_t parked_bytes; /* private ones of those that wait, as of when they were parked */
    unsigned behind;       /* machines that are being reset or ended */
    uint64_t takes[POOL_KINDS];
    uint64_t resets;
    uint64_t resets_failed;
    uint64_t ends[POOL_ENDS];
    uint64_t deaths[VM_DEATHS];
};

/* How a job went. */
struct machine_report {
    struct guest_report guest;
    char snapshot[SNAPSHOT_KEY_SIZE]; /* the one it began from; "" without a machine */
    char profile[PROFILE_NAME_SIZE];  /* that this one has */
    enum pool_kind kind;
    uint64_t cpu_us; /* of its process and of this thread for it, as the host counted */
};

int pool_create(const struct pool_config *config, struct pool **ret, struct err *err);
/* Ends all machines and threads, once every machine was released. NULL is fine. */
void pool_destroy(struct pool *pool);

/*
 * Gives a machine that is the caller's alone until machine_release. Waits for a snapshot, as
 * snapshots_wait, until cancel_fd (or -1) becomes readable. 0; -ECANCELED; -ENODEV there is no
 * snapshot; -errno.
 */
int machine_take(struct pool *pool, const struct machine_wish *wish, int cancel_fd,
                 struct machine **ret, struct err *err);
/*
 * Runs a job in it, once. *report is filled on failure too. On return nothing the job left runs
 * on, but in a machine that its owner may have again. As guest_run.
 */
int machine_run(struct machine *machine, const struct job *job, const struct guest_sink *sink,
                int cancel_fd, struct machine_report *report, struct err *err);
/*
 * The processor time that its process took since it was taken or asked this last, in
 * microseconds: a guest may go on when its job is over. machine_run asks too.
 */
uint64_t machine_took_us(struct machine *machine);
/* Its job was not what it seemed: no other job gets it. */
void machine_distrust(struct machine *machine);
/* Gives it up, to be reset or ended behind the caller. NULL is fine. */
void machine_release(struct machine *machine);
/* How its process ended, for a log line; or that it has not. */
void machine_describe(const struct machine *machine, char *text, size_t size);

/* New limits: they hold from now on, and what is too much goes. */
void pool_set(struct pool *pool, const struct config_machines *limits);
/* 0, or -EIO with a sentence while machines do not start. */
int pool_check_starts(struct pool *pool, struct err *err);
void pool_measure(struct pool *pool, struct pool_measure *ret);

/* The words that the metrics have. */
extern const char *const pool_kind_names[POOL_KINDS];
extern const char *const pool_end_names[POOL_ENDS];

#endif
