/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pool.c, which hands machines out and takes them back, and keeper.c, the threads that
 * work behind it, share. Functions are called under the pool's lock unless they say otherwise.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_POOL_INTERNAL_H
#define SKILLVM_API_DAEMON_MACHINE_POOL_INTERNAL_H

#include "api/daemon/machine/job.h"
#include "api/daemon/machine/pool.h"
#include "api/daemon/machine/shares.h"
#include "api/daemon/machine/starts.h"

#include <pthread.h>

#define POOL_KEEPERS    6u
#define POOL_BEHIND_MAX 32u /* machines that are being reset or ended, or wait for that */
#define POOL_DEMAND_ONE 16u
/*
 * A reset may take as long as its machine wants it to: one keeper is there for all else, and no
 * party has all of the others, or all the room behind.
 */
#define POOL_RESETS_MAX       (POOL_KEEPERS - 1u)
#define POOL_RESETS_PARTY_MAX (POOL_RESETS_MAX - 1u)
#define POOL_BEHIND_PARTY_MAX (POOL_BEHIND_MAX * 3u / 4u)

/*
 * What nobody waits for begins that much later: a reset or an end when the answer has left, and
 * another machine in the place of one that was taken when its job is likely to be over. On a
 * busy host they would be in the way of both.
 */
#define POOL_BEHIND_DELAY_NS 2000000u
#define POOL_REFILL_DELAY_NS 20000000u
/* What waits longer for a keeper is ended: its guest may run until then. */
#define POOL_RESET_LATE_NS 2000000000u
/* Who wants a machine that no keeper has in hand by then takes another one. */
#define POOL_CLAIM_NS 1000000000u

TAILQ_HEAD(machines, machine);

struct pool {
    struct pool_config config;
    struct starts starts;
    struct shares shares;
    struct job warmup[WARMUP_KINDS];
    pthread_t keepers[POOL_KEEPERS];
    unsigned n_keepers;

    pthread_mutex_t census_lock; /* for these; a process in the list is not reaped */
    LIST_HEAD(, machine) all;
    bool is_killing;

    pthread_mutex_t lock;   /* for all below */
    pthread_cond_t work;    /* for keepers; monotonic */
    pthread_cond_t changed; /* for who waits for a reset; monotonic */
    struct config_machines limits;
    struct machines parked;    /* the newest first */
    struct machines resetting; /* the oldest first; those in a keeper's hands too */
    struct machines ending;    /* the oldest first */
    unsigned n_fresh;          /* of those parked */
    unsigned n_used;
    unsigned n_behind;
    uint64_t parked_bytes;
    /* Takes that found nothing of their own, by the place of the snapshot that they were to
     * begin from, in parts; halved every second. */
    unsigned demand[SNAPSHOTS_PLACES_MAX];
    bool is_refilling;
    bool is_short;           /* memory is */
    unsigned refills_failed; /* in a row */
    uint64_t refill_after_ns;
    uint64_t sweep_ns; /* when the next one is due */
    bool stopping;
    struct pool_measure counted; /* its counters only */
};

/* Parks a machine that is ready. */
void pool_park(struct pool *pool, struct machine *m);
/* Has a machine, which is in no list, ended. */
void pool_discard(struct pool *pool, struct machine *m, enum pool_end why);
/* Has one of those parked ended. */
void pool_discard_parked(struct pool *pool, struct machine *m, enum pool_end why);
/* A reset is over: parks the machine (POOL_ENDS), gives it to who waits for it, or discards it.
 */
void pool_was_reset(struct pool *pool, struct machine *m, enum pool_end why);

/* These without the lock. */
/* Starts one; takes the reference over. NULL with the reason. */
struct machine *pool_start_machine(struct pool *pool, struct snapshot *snapshot, bool reusable,
                                   struct err *err);
void pool_end_machine(struct machine *m);

#endif
