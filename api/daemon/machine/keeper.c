/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done behind those who take and release machines: resets first, then ends, then fresh
 * ones where they are missed; and every second a look at those that wait. Nobody waits for any
 * of it but who wants the very machine that is being reset.
 */
#include "api/daemon/machine/machine.h"
#include "api/daemon/machine/pool_internal.h"
#include "api/daemon/machine/warmup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/process_stats.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/*
 * What a guest that waits may take: a part of the time for a timer or two, and once what the
 * host charges to whom it left standing when it stood still itself.
 */
#define PARKED_CPU_US_A_MS 100u
#define PARKED_CPU_ONCE_US 1000000u
/* How long no fresh one is tried after so many failures in a row: 1, 2, 4 … seconds. */
#define BACKOFF_MAX 5u

/* Notes what a machine that is ready has taken and takes. Without the lock. */
static void take_stock(struct machine *m)
{
    m->cpu_us = m->stock_cpu_us = vm_cpu_us(&m->vm);
    m->private_bytes = process_memory(m->vm.pid).private_bytes;
}

/* Under the lock, which it gives away meanwhile. */
static void reset(struct pool *pool, struct machine *m)
{
    enum pool_end why = POOL_END_RESET;
    struct err err = {0};
    int r;

    m->is_in_hand = true;
    (void)pthread_mutex_unlock(&pool->lock);
    r = machine_reset(m, pool->config.grace_ms, &err);
    if (r == 0) {
        take_stock(m);
        why = snapshot_is_current(m->snapshot) ? POOL_ENDS : POOL_END_RENEWED;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->counted.resets += r == 0;
    pool->counted.resets_failed += r < 0;
    if (r < 0 && !pool->stopping)
        log_warn("machine", "pid=%d reset=failed reason=\"%s\"", (int)m->vm.pid, err.message);
    pool_was_reset(pool, m, why);
}

static bool is_end_due(const struct pool *pool)
{
    const struct machine *m = TAILQ_FIRST(&pool->ending);

    return m && clock_monotonic_ns() >= m->due_ns;
}

/* Under the lock, which it gives away meanwhile. */
static void end_first(struct pool *pool)
{
    struct machine *m = TAILQ_FIRST(&pool->ending);

    TAILQ_REMOVE(&pool->ending, m, link);
    (void)pthread_mutex_unlock(&pool->lock);
    pool_end_machine(m);
    free(m);
    (void)pthread_mutex_lock(&pool->lock);
    pool->n_behind--;
}

/* Whether a keeper may take it in hand, as far as those go that are. */
static bool may_reset(const struct pool *pool, const struct machine *m)
{
    const struct machine *other;
    unsigned n = 0, of_party = 0;

    TAILQ_FOREACH(other, &pool->resetting, link) {
        n += other->is_in_hand;
        of_party += other->is_in_hand && strcmp(other->share.party, m->share.party) == 0;
    }
    return !m->is_in_hand && n < POOL_RESETS_MAX && of_party < POOL_RESETS_PARTY_MAX;
}

/* One whose reset is due by now, those first that somebody waits for. */
static struct machine *next_reset(const struct pool *pool)
{
    uint64_t now_ns = clock_monotonic_ns();
    struct machine *m, *due = NULL;

    TAILQ_FOREACH(m, &pool->resetting, link) {
        if (m->claim && may_reset(pool, m))
            return m;
        if (!due && now_ns >= m->due_ns && may_reset(pool, m))
            due = m;
    }
    return due;
}

/* Those to which no keeper gets. */
static void end_late(struct pool *pool)
{
    uint64_t now_ns = clock_monotonic_ns();
    struct machine *next;

    for (struct machine *m = TAILQ_FIRST(&pool->resetting); m; m = next) {
        next = TAILQ_NEXT(m, link);
        if (m->is_in_hand || m->claim || now_ns < m->due_ns + POOL_RESET_LATE_NS)
            continue;
        TAILQ_REMOVE(&pool->resetting, m, link);
        pool->n_behind--;
        pool_discard(pool, m, POOL_END_ROOM);
    }
}

/*
 * How many fresh ones of a snapshot there should be: as many as were missed lately, one of the
 * plain one at least.
 */
static unsigned fresh_wanted(const struct pool *pool, unsigned place)
{
    unsigned wanted = (pool->demand[place] + POOL_DEMAND_ONE - 1) / POOL_DEMAND_ONE;

    return wanted == 0 && place == 0 ? 1 : wanted;
}

/* And of all: no more than half of those parked, unless the others' places are empty. */
static unsigned fresh_room(const struct pool *pool)
{
    unsigned parked = (unsigned)pool->limits.parked;
    unsigned room = parked > pool->n_used ? parked - pool->n_used : 0;

    return room < parked / 2 ? parked / 2 : room;
}

static unsigned count_fresh(const struct pool *pool, unsigned place)
{
    const struct machine *m;
    unsigned n = 0;

    TAILQ_FOREACH(m, &pool->parked, link)
        n += !m->owner[0] && m->snapshot->place == place;
    return n;
}

/* The place of a snapshot that fresh ones are missed of. */
static bool find_missed(const struct pool *pool, unsigned *ret_place)
{
    unsigned most = 0;

    if (pool->is_refilling || pool->is_short || pool->n_fresh >= fresh_room(pool))
        return false;
    for (unsigned i = 0; i < SNAPSHOTS_PLACES_MAX; i++) {
        unsigned wanted = fresh_wanted(pool, i);
        unsigned have = wanted > 0 ? count_fresh(pool, i) : 0;

        if (wanted > have && wanted - have > most) {
            most = wanted - have;
            *ret_place = i;
        }
    }
    return most > 0;
}

/* When there is something to do, at the latest. */
static uint64_t next_due_ns(const struct pool *pool)
{
    const struct machine *m, *ending = TAILQ_FIRST(&pool->ending);
    uint64_t due_ns = pool->sweep_ns;
    unsigned place;

    TAILQ_FOREACH(m, &pool->resetting, link) {
        if (m->due_ns < due_ns && may_reset(pool, m))
            due_ns = m->due_ns;
    }
    if (ending && ending->due_ns < due_ns)
        due_ns = ending->due_ns;
    if (pool->refill_after_ns < due_ns && find_missed(pool, &place))
        due_ns = pool->refill_after_ns;
    return due_ns;
}

/* Brings a machine that was just started to where any job may begin in it. */
static int warm(struct pool *pool, struct machine *m, struct err *err)
{
    const uint64_t grace_ms = pool->config.grace_ms;
    int r = machine_wait_ready(m, grace_ms, err);

    starts_note(&pool->starts, clock_monotonic_ns(), r < 0 ? err : NULL);
    if (r < 0)
        return r;
    r = warmup_run(m->guest, &pool->warmup[m->snapshot->warmup], err);
    return r < 0 ? r : machine_reset(m, grace_ms, err);
}

/* -ENOSPC: it went, or another fresh one in its place, and the next one would do no better. */
static int park_fresh(struct pool *pool, struct machine *m, struct err *err)
{
    const unsigned had = pool->n_fresh;

    pool_park(pool, m);
    return pool->n_fresh > had
               ? 0
               : err_set(err, ENOSPC, "no more may wait (machines.memory, machines.parked)");
}

/* Makes a fresh machine. Under the lock, which it gives away meanwhile. */
static void refill(struct pool *pool, unsigned place)
{
    struct snapshot *snapshot;
    struct machine *m = NULL;
    struct err err = {0};
    int r = -ENODEV;

    pool->is_refilling = true;
    (void)pthread_mutex_unlock(&pool->lock);
    snapshot = snapshots_current(pool->config.snapshots, place);
    /* The place was another's when machines were wanted of it: see machine_take. */
    if (snapshot && snapshot->packages[0]) {
        snapshot_unref(snapshot);
        snapshot = NULL;
    }
    if (snapshot)
        m = pool_start_machine(pool, snapshot, true, &err);
    if (m) {
        r = warm(pool, m, &err);
        take_stock(m);
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->is_refilling = false;
    if (r == 0 && park_fresh(pool, m, &err) == 0) {
        pool->refills_failed = 0;
        return;
    }
    if (snapshot && !pool->stopping)
        log_warn("machine", "fresh=none reason=\"%s\"", err.message);
    if (!snapshot && place > 0)
        pool->demand[place] = 0;
    /* Without a snapshot nothing failed, and it may be there any moment. */
    pool->refill_after_ns = clock_monotonic_ns() + (NS_PER_SECOND << pool->refills_failed);
    pool->refills_failed += snapshot && pool->refills_failed < BACKOFF_MAX;
    if (r < 0 && m)
        pool_discard(pool, m, POOL_END_RESET);
}

/* Why one that waits must go; POOL_ENDS: it need not. */
static enum pool_end look_at(const struct pool *pool, struct machine *m)
{
    uint64_t now_ns = clock_monotonic_ns(), cpu_us = vm_cpu_us(&m->vm);
    uint64_t may_us =
        PARKED_CPU_ONCE_US + (now_ns - m->parked_ns) / NS_PER_MS * PARKED_CPU_US_A_MS;
    bool is_busy = cpu_us - m->stock_cpu_us > may_us;

    m->cpu_us = cpu_us;
    if (pool->is_short)
        return POOL_END_ROOM;
    if (!snapshot_is_current(m->snapshot))
        return POOL_END_RENEWED;
    if (is_busy || !machine_is_quiet(m))
        return POOL_END_BROKEN;
    if ((m->owner[0] ||
         count_fresh(pool, m->snapshot->place) > fresh_wanted(pool, m->snapshot->place)) &&
        now_ns - m->parked_ns > pool->limits.idle_ms * NS_PER_MS)
        return POOL_END_IDLE;
    return POOL_ENDS;
}

/* Looks at all that wait. Under the lock, which it gives away meanwhile. */
static void sweep(struct pool *pool)
{
    struct machine *next;
    bool is_short;

    pool->sweep_ns = clock_monotonic_ns() + NS_PER_SECOND;
    (void)pthread_mutex_unlock(&pool->lock);
    is_short = pool->config.is_short && pool->config.is_short(pool->config.ctx);
    (void)pthread_mutex_lock(&pool->lock);
    pool->is_short = is_short;
    for (struct machine *m = TAILQ_FIRST(&pool->parked); m; m = next) {
        enum pool_end why = look_at(pool, m);

        next = TAILQ_NEXT(m, link);
        if (why == POOL_END_BROKEN)
            log_warn("machine", "pid=%d parked=broken", (int)m->vm.pid);
        if (why != POOL_ENDS)
            pool_discard_parked(pool, m, why);
    }
    end_late(pool);
    for (unsigned i = 0; i < SNAPSHOTS_PLACES_MAX; i++)
        pool->demand[i] /= 2;
}

static void *keeper(void *arg)
{
    struct pool *pool = arg;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&pool->lock);
    struct machine *m;
    unsigned place;

    while (!pool->stopping) {
        if (clock_monotonic_ns() >= pool->sweep_ns)
            sweep(pool);
        else if ((m = next_reset(pool)))
            reset(pool, m);
        else if (is_end_due(pool))
            end_first(pool);
        else if (clock_monotonic_ns() >= pool->refill_after_ns && find_missed(pool, &place))
            refill(pool, place);
        else
            (void)cond_wait_until(&pool->work, held, next_due_ns(pool));
    }
    return NULL;
}

int pool_create(const struct pool_config *config, struct pool **ret, struct err *err)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    int r;

    if (!pool)
        return err_no_memory(err);
    pool->config = *config;
    pool->limits = config->limits;
    pool->starts = STARTS_INIT;
    for (unsigned i = 0; i < WARMUP_KINDS; i++)
        pool->warmup[i] = job_init();
    TAILQ_INIT(&pool->parked);
    TAILQ_INIT(&pool->resetting);
    TAILQ_INIT(&pool->ending);
    (void)pthread_mutex_init(&pool->census_lock, NULL);
    shares_init(&pool->shares);
    (void)pthread_mutex_init(&pool->lock, NULL);
    cond_init(&pool->work);
    cond_init(&pool->changed);
    r = warmup_jobs(pool->warmup, err);
    for (; r == 0 && pool->n_keepers < POOL_KEEPERS; pool->n_keepers++) {
        r = pthread_create(&pool->keepers[pool->n_keepers], NULL, keeper, pool);
        if (r != 0) {
            r = err_set_errno(err, r, "cannot start a thread");
            break;
        }
    }
    if (r < 0) {
        pool_destroy(pool);
        return r;
    }
    *ret = pool;
    return 0;
}

/* Kills every process, so that no keeper waits for one any longer. */
static void kill_all(struct pool *pool)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&pool->census_lock);
    const struct machine *m;

    pool->is_killing = true;
    LIST_FOREACH(m, &pool->all, of_all)
        (void)kill(m->vm.pid, SIGKILL);
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    (void)pthread_cond_broadcast(&pool->work);
    (void)pthread_mutex_unlock(&pool->lock);
    kill_all(pool);
    for (unsigned i = 0; i < pool->n_keepers; i++)
        (void)pthread_join(pool->keepers[i], NULL);
    while (!LIST_EMPTY(&pool->all)) {
        struct machine *m = LIST_FIRST(&pool->all);

        LIST_REMOVE(m, of_all);
        machine_end(m);
        free(m);
    }
    for (unsigned i = 0; i < WARMUP_KINDS; i++)
        job_finish(&pool->warmup[i]);
    shares_close(&pool->shares);
    (void)pthread_cond_destroy(&pool->work);
    (void)pthread_cond_destroy(&pool->changed);
    (void)pthread_mutex_destroy(&pool->lock);
    (void)pthread_mutex_destroy(&pool->census_lock);
    free(pool);
}
