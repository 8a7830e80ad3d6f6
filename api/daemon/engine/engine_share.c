/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants have here goes to the other nodes, and what they have there counts here. */
#include "api/daemon/engine/engine_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void engine_note_load(struct engine *engine)
{
    if (engine->cluster)
        cluster_note_load(engine->cluster);
}

static unsigned bounded(uint64_t n)
{
    return n < INT_MAX ? (unsigned)n : INT_MAX;
}

unsigned engine_waiting_elsewhere(struct engine *engine, const char *tenant)
{
    return engine->cluster ? bounded(cluster_load_of(engine->cluster, tenant).waiting) : 0;
}

unsigned engine_running_elsewhere(struct engine *engine, const char *tenant)
{
    return engine->cluster ? bounded(cluster_load_of(engine->cluster, tenant).running) : 0;
}

static void look(void *ctx, const char *tenant, const struct fair_limits *limits,
                 struct fair_elsewhere *ret)
{
    struct cluster *cluster = ctx;

    ret->running = bounded(cluster_load_of(cluster, tenant).running);
    /* To whom places are left where there are few. */
    if (limits->max_running > 0)
        ret->since_ns = cluster_load_waits_since(cluster, tenant);
}

void engine_look_elsewhere(struct engine *engine, struct fair_tenant *place, const char *tenant,
                           const struct fair_limits *limits)
{
    struct fair_elsewhere elsewhere = {0};

    if (!engine->cluster)
        return;
    look(engine->cluster, tenant, limits, &elsewhere);
    fair_queue_set_elsewhere(place, &elsewhere, clock_monotonic_ns());
}

struct filling {
    struct load *load;
    uint64_t now_ns;
};

/* The place of a tenant, made where it has none; NULL where there is no room. */
static struct load_tenant *place_of(struct load *load, const char *tenant)
{
    struct load_tenant *t;

    for (size_t i = 0; i < load->n_tenants; i++) {
        if (strcmp(load->tenants[i].tenant, tenant) == 0)
            return &load->tenants[i];
    }
    if (load->n_tenants == LOAD_TENANTS_MAX)
        return NULL;
    t = &load->tenants[load->n_tenants++];
    *t = (struct load_tenant){0};
    (void)snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
    return t;
}

static void fill_tenant(void *ctx, const char *tenant, struct fair_count count)
{
    struct filling *f = ctx;
    struct load_tenant *t =
        count.waiting + count.running > 0 ? place_of(f->load, tenant) : NULL;

    if (!t)
        return;
    t->running = count.running;
    t->waiting = count.waiting;
    if (count.since_ns > 0 && count.since_ns < f->now_ns)
        t->waits_ms = (f->now_ns - count.since_ns) / NS_PER_MS;
}

static void fill_rate(void *ctx, const char *tenant, uint64_t taken)
{
    struct filling *f = ctx;
    struct load_tenant *t = place_of(f->load, tenant);

    if (t)
        t->taken = taken;
}

static void fill(void *ctx, struct load *ret)
{
    struct engine *engine = ctx;
    struct filling f = {.load = ret, .now_ns = clock_monotonic_ns()};
    struct fair_count count;

    (void)pthread_mutex_lock(&engine->lock);
    count = fair_queue_count(engine->queue);
    ret->free = 0;
    if (!engine->stopping && !engine->draining && count.running < engine->config.max_running)
        ret->free = engine->config.max_running - count.running;
    fair_queue_each(engine->queue, fill_tenant, &f);
    (void)pthread_mutex_unlock(&engine->lock);
    rate_each(engine->rate, f.now_ns, fill_rate, &f);
}

static void charge(void *ctx, const char *tenant, uint64_t n)
{
    struct engine *engine = ctx;
    struct tenant_limits limits;
    struct err ignored = {0};

    if (quota_limits(engine->config.env.registry, tenant, &limits, &ignored) == 0)
        rate_charge(engine->rate, tenant, (unsigned)limits.rate_per_minute, n,
                    clock_monotonic_ns());
}

static void changed(void *ctx)
{
    struct engine *engine = ctx;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    fair_queue_look_elsewhere(engine->queue, look, engine->cluster, clock_monotonic_ns());
    /* Some may run now that could not. */
    if (fair_queue_count(engine->queue).waiting > 0)
        (void)pthread_cond_broadcast(&engine->work);
}

int engine_share(struct engine *engine, struct cluster *cluster, struct err *err)
{
    const struct cluster_sharing sharing = {
        .ctx = engine, .fill = fill, .charge = charge, .changed = changed};

    (void)pthread_mutex_lock(&engine->lock);
    engine->cluster = cluster;
    (void)pthread_mutex_unlock(&engine->lock);
    return cluster_share(cluster, &sharing, err);
}
