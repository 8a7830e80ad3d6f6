/* SPDX-License-Identifier: Apache-2.0 */
/* How the engine is now: counts, room, whether it is drained. */
#include "api/daemon/engine/engine_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <stdio.h>

void engine_count(struct engine *engine, unsigned *ret_queued, unsigned *ret_running)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);
    const struct fair_count count = fair_queue_count(engine->queue);

    *ret_queued = count.waiting;
    *ret_running = count.running;
}

bool engine_slot_is_free(const struct engine *engine)
{
    const struct fair_count count = fair_queue_count(engine->queue);

    return !engine->stopping && !engine->draining &&
           count.waiting + count.running < engine->config.max_running;
}

bool engine_has_slot(struct engine *engine)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    return engine_slot_is_free(engine);
}

bool engine_can_start(const struct engine *engine)
{
    return engine->config.can_start(engine->config.ctx);
}

bool engine_has_room(struct engine *engine)
{
    return engine_can_start(engine) && engine_has_slot(engine);
}

void engine_name_snapshot(const struct engine *engine, const struct execution *e,
                          struct snapshot_name *ret)
{
    execution_name_snapshot(&engine->config.env, e, ret);
}

void engine_set_draining(struct engine *engine, bool is_draining)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    engine->draining = is_draining;
}

bool engine_is_draining(struct engine *engine)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    return engine->draining;
}

static void measure_tenant(void *ctx, const char *tenant, struct fair_count count)
{
    struct metrics_gauges *g = ctx;
    struct metrics_tenant_gauge *t;

    if (count.waiting + count.running == 0 || g->n_tenants == METRICS_TENANTS)
        return;
    t = &g->tenants[g->n_tenants++];
    (void)snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
    t->queued = count.waiting;
    t->running = count.running;
}

void engine_measure(struct engine *engine, struct metrics_gauges *ret)
{
    struct fair_count count;
    uint64_t oldest_ns, now_ns;

    (void)pthread_mutex_lock(&engine->lock);
    count = fair_queue_count(engine->queue);
    oldest_ns = fair_queue_oldest_ns(engine->queue);
    ret->n_tenants = 0;
    fair_queue_each(engine->queue, measure_tenant, ret);
    (void)pthread_mutex_unlock(&engine->lock);
    now_ns = clock_monotonic_ns();
    ret->slots = engine->config.max_running;
    ret->queued = count.waiting;
    ret->running = count.running;
    ret->oldest_wait_ns = oldest_ns > 0 && now_ns > oldest_ns ? now_ns - oldest_ns : 0;
}
