/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/ends.h"

#include "api/daemon/engine/engine.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_records.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

#define PAUSE_NS (50 * NS_PER_MS)
#define KEPT_NS  (120 * NS_PER_SECOND) /* until what was taken over is there */

void ends_init(struct ends *ends)
{
    (void)pthread_mutex_init(&ends->lock, NULL);
    cond_init(&ends->changed);
}

void ends_finish(struct ends *ends)
{
    (void)pthread_cond_destroy(&ends->changed);
    (void)pthread_mutex_destroy(&ends->lock);
}

static bool add(struct ends *ends, const char *tenant, const char *id, uint64_t kept_ns,
                uint64_t taken_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&ends->lock);
    struct wanted_end *end = &ends->list[ends->n];

    if (ends->n == ENDS_MAX)
        return false;
    (void)snprintf(end->tenant, sizeof(end->tenant), "%s", tenant);
    (void)snprintf(end->id, sizeof(end->id), "%s", id);
    end->until_ns = clock_monotonic_ns() + kept_ns;
    end->taken_ns = taken_ns;
    ends->n++;
    (void)pthread_cond_broadcast(&ends->changed);
    return true;
}

bool ends_add(struct ends *ends, const char *tenant, const char *id, bool once)
{
    return add(ends, tenant, id, once ? 0 : KEPT_NS, 0);
}

bool ends_add_taken(struct ends *ends, const struct record *record)
{
    return add(ends, record->tenant, record->id, KEPT_NS, record->accepted_ns);
}

/* 0, -ENOENT where it is nobody's by what the servers have, or -EAGAIN. */
static int give_up(struct ends *ends, const struct wanted_end *end)
{
    struct record_copy there = {0};
    struct record self = {0};
    struct err ignored = {0};
    int r = cluster_record_read(ends->cluster, end->id, &there, &ignored);

    if (r < 0)
        return r;
    cluster_sign_record(ends->cluster, &self);
    if (!record_is_of_same(&there.record, &self))
        engine_give_up(ends->engine, end->tenant, end->id, end->taken_ns);
    record_copy_finish(&there);
    return 0;
}

/*
 * Of what comes at the same moment servers may take both, each on condition that the same
 * record is the last: the wish is what they have then, and the end is told again. False where
 * it has not ended here.
 */
static bool tell_again(struct ends *ends, const struct wanted_end *end)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};
    struct err err = {0};

    if (registry_execution_get(ends->registry, end->tenant, end->id, &row, NULL) < 0 ||
        row.finished_ns == 0)
        return false;
    if (registry_record_untell(ends->registry, end->id, &err) < 0)
        log_warn("ledger", "execution=%s is=\"not told anew\" reason=\"%s\"", end->id,
                 err.message);
    return true;
}

static int try_end(struct ends *ends, const struct wanted_end *end)
{
    bool unused;
    int r;

    if (end->taken_ns)
        return give_up(ends, end) == -EAGAIN ? -EAGAIN : 0;
    r = engine_cancel(ends->engine, end->tenant, end->id, &unused);
    return r == -ENOENT && tell_again(ends, end) ? 0 : r;
}

/* The one at a place, where it is worth another try; under the lock, which is free meanwhile.
 */
static bool try_one(struct ends *ends, size_t at)
{
    struct wanted_end end = ends->list[at];
    bool is_kept;

    (void)pthread_mutex_unlock(&ends->lock);
    is_kept = try_end(ends, &end) < 0 && clock_monotonic_ns() < end.until_ns;
    (void)pthread_mutex_lock(&ends->lock);
    return is_kept;
}

/* Others only add behind. */
static void try_all(struct ends *ends)
{
    size_t at = 0;

    for (size_t left = ends->n; left > 0 && !ends->is_stopping; left--) {
        if (try_one(ends, at)) {
            at++;
            continue;
        }
        ends->n--;
        for (size_t i = at; i < ends->n; i++)
            ends->list[i] = ends->list[i + 1];
    }
}

static void *run(void *arg)
{
    struct ends *ends = arg;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&ends->lock);

    while (!ends->is_stopping) {
        try_all(ends);
        while (ends->n == 0 && !ends->is_stopping)
            (void)pthread_cond_wait(&ends->changed, &ends->lock);
        if (!ends->is_stopping)
            (void)cond_wait_until(&ends->changed, &ends->lock, clock_monotonic_ns() + PAUSE_NS);
    }
    return NULL;
}

int ends_start(struct ends *ends, struct engine *engine, struct registry *registry,
               struct cluster *cluster, struct err *err)
{
    int r;

    ends->engine = engine;
    ends->registry = registry;
    ends->cluster = cluster;
    r = pthread_create(&ends->thread, NULL, run, ends);
    if (r != 0)
        return err_set_errno(err, r, "cannot start a thread");
    ends->has_thread = true;
    return 0;
}

void ends_stop(struct ends *ends)
{
    (void)pthread_mutex_lock(&ends->lock);
    ends->is_stopping = true;
    (void)pthread_cond_broadcast(&ends->changed);
    (void)pthread_mutex_unlock(&ends->lock);
    if (ends->has_thread)
        (void)pthread_join(ends->thread, NULL);
    ends->has_thread = false;
}
