/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/pool.h"

#include "api/daemon/machine/machine.h"
#include "api/daemon/machine/pool_internal.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/process_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * How much later than its end is due word of it may come from an honest guest: it waits for two
 * seconds for what its skill left, for one more where that has a network, and the host may have
 * much to do.
 */
#define EXIT_LATE_NS      (4 * NS_PER_SECOND)
#define EXIT_LATE_SENT_NS (1 * NS_PER_SECOND)

/* Somebody who waits for a machine of theirs that is being reset. */
struct machine_claim {
    struct machine *machine; /* once done; NULL: the reset failed */
    bool done;
};

const char *const pool_kind_names[POOL_KINDS] = {"started", "fresh", "reused"};
const char *const pool_end_names[POOL_ENDS] = {
    "unwanted", "unclean", "uses", "reset", "broken", "idle", "room", "renewed", "stop"};

static void add_to_census(struct pool *pool, struct machine *m)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&pool->census_lock);

    LIST_INSERT_HEAD(&pool->all, m, of_all);
    /* Too late to be found by who stops the pool. */
    if (pool->is_killing)
        (void)kill(m->vm.pid, SIGKILL);
}

/* Ends a machine that is in no list but the census, and reaps it. */
void pool_end_machine(struct machine *m)
{
    struct pool *pool = m->pool;

    if (m->vm.pid < 0)
        return;
    vm_kill(&m->vm);
    (void)pthread_mutex_lock(&pool->census_lock);
    LIST_REMOVE(m, of_all);
    (void)pthread_mutex_unlock(&pool->census_lock);
    shares_leave(&pool->shares, &m->share);
    machine_end(m);
    if (m->vm.memory != JAIL_MEMORY_ENOUGH)
        log_warn("machine", "cell=%u ended=%s limit_mib=%" PRIu64, m->vm.cell,
                 vm_death_names[vm_death(&m->vm)], m->vm.memory_max >> 20);
    (void)pthread_mutex_lock(&pool->lock);
    pool->counted.deaths[vm_death(&m->vm)]++;
    (void)pthread_mutex_unlock(&pool->lock);
}

/* Under the lock. */
static void unpark(struct pool *pool, struct machine *m)
{
    TAILQ_REMOVE(&pool->parked, m, link);
    *(m->owner[0] ? &pool->n_used : &pool->n_fresh) -= 1;
    pool->parked_bytes -= m->private_bytes;
}

void pool_discard(struct pool *pool, struct machine *m, enum pool_end why)
{
    pool->counted.ends[why]++;
    TAILQ_INSERT_TAIL(&pool->ending, m, link);
    pool->n_behind++;
    (void)pthread_cond_signal(&pool->work);
}

void pool_discard_parked(struct pool *pool, struct machine *m, enum pool_end why)
{
    unpark(pool, m);
    m->due_ns = 0;
    pool_discard(pool, m, why);
}

/* Of those that are fresh, or that were used, the oldest of the owner who has the most. */
static struct machine *choose(const struct pool *pool, bool fresh)
{
    struct machine *m, *victim = NULL;
    unsigned most = 0;

    TAILQ_FOREACH(m, &pool->parked, link) {
        const struct machine *other;
        unsigned of_owner = 0;

        TAILQ_FOREACH(other, &pool->parked, link)
            of_owner += strcmp(m->owner, other->owner) == 0;
        if (!m->owner[0] == fresh && of_owner >= most) {
            most = of_owner;
            victim = m; /* the newest come first */
        }
    }
    return victim;
}

/* Discards what is too much by the limits. */
static void make_room(struct pool *pool)
{
    while (!TAILQ_EMPTY(&pool->parked) && (pool->n_fresh + pool->n_used > pool->limits.parked ||
                                           pool->parked_bytes > pool->limits.memory_bytes)) {
        bool fresh = pool->n_fresh > pool->limits.parked / 2 || pool->n_used == 0;

        pool_discard_parked(pool, choose(pool, fresh), POOL_END_ROOM);
    }
}

void pool_park(struct pool *pool, struct machine *m)
{
    shares_leave(&pool->shares, &m->share);
    m->parked_ns = clock_monotonic_ns();
    TAILQ_INSERT_HEAD(&pool->parked, m, link);
    *(m->owner[0] ? &pool->n_used : &pool->n_fresh) += 1;
    pool->parked_bytes += m->private_bytes;
    make_room(pool);
}

/* Takes a parked one of this owner that is still good. Under the lock. */
static struct machine *take_parked(struct pool *pool, const char *owner,
                                   const struct snapshot *snapshot)
{
    struct machine *next;

    for (struct machine *m = TAILQ_FIRST(&pool->parked); m; m = next) {
        next = TAILQ_NEXT(m, link);
        if (strcmp(m->owner, owner) != 0)
            continue;
        if (!snapshot_is_current(m->snapshot)) {
            pool_discard_parked(pool, m, POOL_END_RENEWED);
        } else if (m->snapshot != snapshot) {
            continue;
        } else if (!machine_is_quiet(m)) {
            pool_discard_parked(pool, m, POOL_END_BROKEN);
        } else {
            unpark(pool, m);
            return m;
        }
    }
    return NULL;
}

/*
 * Waits for a machine of this owner that is being reset and that nobody else waits for: sooner
 * there than a new one. *ret is NULL where there is none, its reset failed, or no keeper gets
 * to it. Under the lock. 0 or -ECANCELED.
 */
static int await_reset(struct pool *pool, const char *owner, const struct snapshot *snapshot,
                       int cancel_fd, struct machine **ret, struct err *err)
{
    const uint64_t late_ns = clock_monotonic_ns() + POOL_CLAIM_NS;
    struct machine_claim claim = {0};
    struct machine *m;

    TAILQ_FOREACH(m, &pool->resetting, link)
        if (!m->claim && m->snapshot == snapshot && strcmp(m->owner, owner) == 0)
            break;
    *ret = NULL;
    if (!m)
        return 0;
    m->claim = &claim;
    if (!m->is_in_hand)
        (void)pthread_cond_signal(&pool->work);
    while (!claim.done) {
        (void)cond_wait_until(&pool->changed, &pool->lock, clock_monotonic_ns() + 100000000u);
        if (!claim.done && fd_is_readable(cancel_fd)) {
            m->claim = NULL;
            return err_set(err, ECANCELED, "cancelled before there was a machine");
        }
        if (!claim.done && !m->is_in_hand && clock_monotonic_ns() >= late_ns) {
            m->claim = NULL;
            return 0;
        }
    }
    *ret = claim.machine;
    return 0;
}

/* Has fresh ones made soon where they are missed. Under the lock. */
static void want_refill(struct pool *pool)
{
    uint64_t now_ns = clock_monotonic_ns();

    if (pool->limits.parked == 0)
        return;
    /* Those that are taken meanwhile do not put it off. */
    if (pool->refill_after_ns <= now_ns)
        pool->refill_after_ns = now_ns + POOL_REFILL_DELAY_NS;
    (void)pthread_cond_signal(&pool->work);
}

/* Finds one that is there. *ret is NULL where none is. 0 or -ECANCELED. */
static int find(struct pool *pool, const char *owner, const struct snapshot *snapshot,
                int cancel_fd, struct machine **ret, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&pool->lock);
    enum pool_kind kind = POOL_REUSED;
    struct machine *m = owner[0] ? take_parked(pool, owner, snapshot) : NULL;
    int r = owner[0] && !m ? await_reset(pool, owner, snapshot, cancel_fd, &m, err) : 0;

    if (r < 0)
        return r;
    if (!m) {
        m = take_parked(pool, "", snapshot);
        kind = m ? POOL_FRESH : POOL_STARTED;
        /* No machine is warmed with what somebody brought, which could hold up the others. */
        if (!snapshot->packages[0]) {
            pool->demand[snapshot->place] += POOL_DEMAND_ONE;
            want_refill(pool);
        }
    }
    pool->counted.takes[kind]++;
    if (m)
        m->kind = kind;
    *ret = m;
    return 0;
}

static bool may_park(struct pool *pool)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&pool->lock);

    return pool->limits.parked > 0 && !pool->stopping;
}

struct machine *pool_start_machine(struct pool *pool, struct snapshot *snapshot, bool reusable,
                                   struct err *err)
{
    struct machine *m =
        machine_start(pool, pool->config.jail, snapshot, pool->config.grace_ms, reusable, err);

    if (!m) {
        starts_note(&pool->starts, clock_monotonic_ns(), err);
        return NULL;
    }
    m->kind = POOL_STARTED;
    add_to_census(pool, m);
    return m;
}

int machine_take(struct pool *pool, const struct machine_wish *wish, int cancel_fd,
                 struct machine **ret, struct err *err)
{
    struct snapshot *snapshot;
    struct machine *m = NULL;
    int r = snapshots_wait(pool->config.snapshots, &wish->snapshot, cancel_fd, &snapshot, err);

    if (r < 0)
        return r;
    r = find(pool, wish->owner, snapshot, cancel_fd, &m, err);
    if (r == 0 && !m) {
        m = pool_start_machine(pool, snapshot, wish->owner[0] && may_park(pool), err);
        if (!m)
            return -EIO;
    } else {
        snapshot_unref(snapshot);
    }
    if (r == 0) {
        memcpy(m->owner, wish->owner, sizeof(m->owner));
        m->wish = wish->snapshot;
        shares_enter(&pool->shares, &m->share, wish->party, m->vm.weight_fd);
    }
    *ret = m;
    return r;
}

/* Whether as many as may be wait behind already, or of its party. Under the lock. */
static bool is_crowded(const struct pool *pool, const struct machine *m)
{
    const struct machine *other;
    unsigned of_party = 0;

    TAILQ_FOREACH(other, &pool->resetting, link)
        of_party += strcmp(other->share.party, m->share.party) == 0;
    return pool->n_behind >= POOL_BEHIND_MAX || of_party >= POOL_BEHIND_PARTY_MAX;
}

/* Why no other job may have it; POOL_ENDS: one may. */
static enum pool_end judge(const struct pool *pool, const struct machine *m)
{
    if (!m->clean)
        return POOL_END_UNCLEAN;
    if (!m->owner[0] || !m->reusable || pool->limits.parked == 0 || pool->is_short)
        return POOL_END_UNWANTED;
    if (m->uses >= pool->limits.max_uses)
        return POOL_END_USES;
    return pool->stopping ? POOL_END_STOP : POOL_ENDS;
}

/* No job finds the packages of another one. */
static int run_in_guest(const struct machine *m, const struct job *job,
                        const struct guest_sink *sink, int cancel_fd,
                        struct guest_report *report, struct err *err)
{
    const char *held = m->snapshot->packages;

    if (held[0] && strcmp(held, job->packages.digest) != 0)
        return err_set(err, EINVAL, "the machine holds other packages");
    if (held[0])
        guest_holds_packages(m->guest);
    return guest_run(m->guest, job, sink, cancel_fd, report, err);
}

/* What is over so much later than it was to be did not end by itself, whatever a guest says. */
static void correct(const struct job *job, struct guest_report *report)
{
    const struct guest_times *t = &report->times;
    const uint64_t late_ns = EXIT_LATE_NS + (job->network.declared ? EXIT_LATE_SENT_NS : 0);

    if (t->cancelled_ns != 0 && t->exit_ns > t->cancelled_ns + late_ns)
        report->exit.flags |= PROTO_EXIT_CANCELLED;
    if (t->exit_ns > t->started_ns + job->timeout_ms * NS_PER_MS + late_ns)
        report->exit.flags |= PROTO_EXIT_TIMED_OUT;
}

uint64_t machine_took_us(struct machine *m)
{
    const uint64_t before_us = m->cpu_us, now_us = vm_cpu_us(&m->vm);

    if (now_us <= before_us)
        return 0;
    m->cpu_us = now_us;
    return now_us - before_us;
}

int machine_run(struct machine *m, const struct job *job, const struct guest_sink *sink,
                int cancel_fd, struct machine_report *report, struct err *err)
{
    const uint32_t bad = PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED | PROTO_EXIT_OUT_OF_MEMORY;
    struct pool *pool = m->pool;
    const uint64_t begin_ns = clock_monotonic_ns(), begin_cpu_ns = clock_thread_cpu_ns();
    int r;

    *report = (struct machine_report){.kind = m->kind};
    memcpy(report->snapshot, m->snapshot->key, sizeof(report->snapshot));
    memcpy(report->profile, m->snapshot->profile, sizeof(report->profile));
    m->uses++;
    snapshots_count_use(pool->config.snapshots, m->snapshot);
    r = run_in_guest(m, job, sink, cancel_fd, &report->guest, err);
    correct(job, &report->guest);
    m->clean = r == 0 && !report->guest.cancelled && !(report->guest.exit.flags & bad);
    report->cpu_us = machine_took_us(m) + (clock_thread_cpu_ns() - begin_cpu_ns) / 1000;
    if (m->kind == POOL_STARTED &&
        (report->guest.times.ready_ns != 0 || (r < 0 && r != -ECANCELED)))
        starts_note(&pool->starts, clock_monotonic_ns(),
                    report->guest.times.ready_ns != 0 ? NULL : err);
    /* One that waited was ready long before. */
    if (report->guest.times.ready_ns != 0 && report->guest.times.ready_ns < begin_ns)
        report->guest.times.ready_ns = begin_ns;
    /* Nothing of it goes on while what it left is looked at. */
    if (!m->clean)
        vm_kill(&m->vm);
    /* How the process of one that failed ended is worth the wait. */
    if (r < 0 && r != -ECANCELED) {
        pool_end_machine(m);
        vm_explain_end(&m->vm, err);
    }
    return r;
}

void machine_distrust(struct machine *m)
{
    m->clean = false;
}

void machine_release(struct machine *m)
{
    struct pool *pool;
    enum pool_end why;
    bool queued;

    if (!m)
        return;
    pool = m->pool;
    if (!snapshot_name_is_plain(&m->wish))
        snapshots_want(pool->config.snapshots, &m->wish);
    (void)pthread_mutex_lock(&pool->lock);
    why = m->vm.pid < 0 ? POOL_END_UNCLEAN : judge(pool, m);
    /* Those behind are bounded: past that, who releases a machine ends it. */
    if (why == POOL_ENDS && is_crowded(pool, m))
        why = POOL_END_ROOM;
    queued = m->vm.pid >= 0 && pool->n_behind < POOL_BEHIND_MAX;
    m->due_ns = clock_monotonic_ns() + POOL_BEHIND_DELAY_NS;
    if (queued && why == POOL_ENDS) {
        TAILQ_INSERT_TAIL(&pool->resetting, m, link);
        pool->n_behind++;
        (void)pthread_cond_signal(&pool->work);
    } else if (queued) {
        pool_discard(pool, m, why);
    } else {
        pool->counted.ends[why]++;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (queued)
        return;
    pool_end_machine(m);
    free(m);
}

void pool_was_reset(struct pool *pool, struct machine *m, enum pool_end why)
{
    TAILQ_REMOVE(&pool->resetting, m, link);
    pool->n_behind--;
    m->is_in_hand = false;
    /* What may be taken in hand now may be due before this keeper looks again. */
    (void)pthread_cond_signal(&pool->work);
    if (why != POOL_ENDS)
        pool_discard(pool, m, why);
    else if (!m->claim)
        pool_park(pool, m);
    if (m->claim) {
        m->claim->machine = why == POOL_ENDS ? m : NULL;
        m->claim->done = true;
        m->claim = NULL;
        (void)pthread_cond_broadcast(&pool->changed);
    }
}

void machine_describe(const struct machine *m, char *text, size_t size)
{
    if (m->vm.pid < 0)
        vm_describe_end(&m->vm, text, size);
    else
        (void)snprintf(text, size, "alive");
}

void pool_set(struct pool *pool, const struct config_machines *limits)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&pool->lock);

    pool->limits = *limits;
    make_room(pool);
    (void)pthread_cond_signal(&pool->work);
}

int pool_check_starts(struct pool *pool, struct err *err)
{
    return starts_check(&pool->starts, clock_monotonic_ns(), err);
}

void pool_measure(struct pool *pool, struct pool_measure *ret)
{
    const struct machine *m;

    (void)pthread_mutex_lock(&pool->lock);
    *ret = pool->counted;
    ret->parked_fresh = pool->n_fresh;
    ret->parked_used = pool->n_used;
    ret->parked_bytes = pool->parked_bytes;
    ret->behind = pool->n_behind;
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_mutex_lock(&pool->census_lock);
    LIST_FOREACH(m, &pool->all, of_all) {
        struct process_memory memory = process_memory(m->vm.pid);

        ret->machines++;
        ret->resident_bytes += memory.resident_bytes;
        ret->private_bytes += memory.private_bytes;
    }
    (void)pthread_mutex_unlock(&pool->census_lock);
}
