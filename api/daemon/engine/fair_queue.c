/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/fair_queue.h"

#include "api/daemon/terms/tenant.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Weighted time: microseconds of a slot, times this, through the weight. */
#define SCALE       TENANT_WEIGHT_MAX
#define MEAN_WEIGHT 8u /* the newest is an eighth of the average */

TAILQ_HEAD(fair_entries, fair_entry);

struct fair_tenant {
    LIST_ENTRY(fair_tenant) link;
    struct fair_limits limits;
    uint64_t had; /* weighted time */
    bool entered; /* it could run when the queue was last looked at */
    struct fair_entries waiting, running;
    unsigned n_waiting; /* without kept places */
    unsigned n_kept;
    unsigned n_running;
    struct fair_elsewhere elsewhere;
    uint64_t elsewhere_ns; /* up to when that is charged */
    uint64_t turn_ns;      /* when it had a turn last */
    uint64_t yields_ns;    /* since when it leaves a place to those; 0: it does not */
    char id[];
};

struct fair_queue {
    LIST_HEAD(, fair_tenant) tenants;
    uint64_t least; /* what one that enters has had at the least; never falls */
    struct fair_count count;
    uint64_t mean_ns;
};

struct fair_queue *fair_queue_create(void)
{
    return calloc(1, sizeof(struct fair_queue));
}

void fair_queue_destroy(struct fair_queue *q)
{
    struct fair_tenant *t;

    if (!q)
        return;
    while ((t = LIST_FIRST(&q->tenants))) {
        LIST_REMOVE(t, link);
        free(t);
    }
    free(q);
}

static struct fair_tenant *find(const struct fair_queue *q, const char *id)
{
    struct fair_tenant *t;

    LIST_FOREACH(t, &q->tenants, link) {
        if (strcmp(t->id, id) == 0)
            break;
    }
    return t;
}

/* Since when its first waits; there is one. */
static uint64_t since_ns(const struct fair_tenant *t)
{
    return TAILQ_FIRST(&t->waiting)->since_ns;
}

/* How many more its cap lets begin. */
static unsigned places(const struct fair_tenant *t)
{
    unsigned max = t->limits.max_running;

    if (max == 0)
        return UINT_MAX;
    if (t->elsewhere.running >= max || t->n_running >= max - t->elsewhere.running)
        return 0;
    return max - t->elsewhere.running - t->n_running;
}

static bool may_run(const struct fair_tenant *t)
{
    return !TAILQ_EMPTY(&t->waiting) && places(t) > 0;
}

/* Whether its last place is for one that waits longer elsewhere, and that has had no time to
   take it yet. One that may run. */
static bool yields(struct fair_tenant *t, uint64_t now_ns)
{
    uint64_t theirs = t->elsewhere.since_ns;

    if (places(t) != 1 || theirs == 0 || theirs + FAIR_YIELD_MARGIN_NS >= since_ns(t)) {
        t->yields_ns = 0;
        return false;
    }
    if (t->yields_ns == 0)
        t->yields_ns = now_ns;
    return now_ns - t->yields_ns < FAIR_YIELD_NS;
}

/* Charges what an entry has run since it was charged last. */
static void charge(struct fair_entry *entry, uint64_t now_ns)
{
    struct fair_tenant *t = entry->tenant;
    uint64_t us = now_ns > entry->since_ns ? (now_ns - entry->since_ns) / 1000 : 0;

    if (us < FAIR_COST_MIN_US)
        us = FAIR_COST_MIN_US;
    if (us > entry->charged_us) {
        t->had += (us - entry->charged_us) * SCALE / t->limits.weight;
        entry->charged_us = us;
    }
}

/* Whether it has waited for so long that what it has elsewhere is no reason to wait longer. */
static bool has_waited(const struct fair_tenant *t, uint64_t now_ns)
{
    uint64_t since = TAILQ_EMPTY(&t->waiting) ? now_ns : since_ns(t);

    return now_ns > (since > t->turn_ns ? since : t->turn_ns) + FAIR_PATIENCE_NS;
}

/* Charges what runs elsewhere, to one that does not wait in vain. */
static void charge_elsewhere(const struct fair_queue *q, struct fair_tenant *t, uint64_t now_ns)
{
    uint64_t us = now_ns > t->elsewhere_ns ? (now_ns - t->elsewhere_ns) / 1000 : 0;
    uint64_t most = q->least + (uint64_t)FAIR_ELSEWHERE_MAX_US * SCALE / t->limits.weight;

    t->elsewhere_ns += us * 1000;
    if (t->elsewhere.running == 0 || has_waited(t, now_ns))
        return;
    if (us > FAIR_ELSEWHERE_MAX_US)
        us = FAIR_ELSEWHERE_MAX_US;
    us = us * t->elsewhere.running * SCALE / t->limits.weight;
    if (t->had < most)
        t->had = us < most - t->had ? t->had + us : most;
}

/* Brings the accounts up to now, and lets those enter that could not run before. */
static void update(struct fair_queue *q, uint64_t now_ns)
{
    uint64_t least = UINT64_MAX, most = 0;
    struct fair_entry *entry;
    struct fair_tenant *t;

    LIST_FOREACH(t, &q->tenants, link) {
        TAILQ_FOREACH(entry, &t->running, link)
            charge(entry, now_ns);
        charge_elsewhere(q, t, now_ns);
        if (t->entered && may_run(t) && t->had < least)
            least = t->had;
        if (t->had > most)
            most = t->had;
    }
    if (least == UINT64_MAX)
        least = most;
    if (least > q->least)
        q->least = least;
    LIST_FOREACH(t, &q->tenants, link) {
        bool can = may_run(t);

        if (can && !t->entered && t->had < q->least)
            t->had = q->least;
        t->entered = can;
    }
}

/* Forgets tenants with nothing here that owe nothing. */
static void sweep(struct fair_queue *q)
{
    struct fair_tenant *next;

    for (struct fair_tenant *t = LIST_FIRST(&q->tenants); t; t = next) {
        next = LIST_NEXT(t, link);
        if (t->n_waiting + t->n_kept + t->n_running > 0 || t->had > q->least)
            continue;
        LIST_REMOVE(t, link);
        free(t);
    }
}

static void set_limits(struct fair_tenant *t, const struct fair_limits *limits)
{
    t->limits = *limits;
    if (t->limits.weight == 0)
        t->limits.weight = TENANT_WEIGHT_DEFAULT;
    if (t->limits.weight > TENANT_WEIGHT_MAX)
        t->limits.weight = TENANT_WEIGHT_MAX;
}

static struct fair_tenant *add(struct fair_queue *q, const char *id)
{
    size_t size = strlen(id) + 1;
    struct fair_tenant *t;

    sweep(q);
    t = calloc(1, sizeof(*t) + size);
    if (!t)
        return NULL;
    memcpy(t->id, id, size);
    TAILQ_INIT(&t->waiting);
    TAILQ_INIT(&t->running);
    LIST_INSERT_HEAD(&q->tenants, t, link);
    return t;
}

struct fair_tenant *fair_queue_reserve(struct fair_queue *q, const char *tenant,
                                       const struct fair_limits *limits)
{
    struct fair_tenant *t = find(q, tenant);

    if (!t)
        t = add(q, tenant);
    if (!t)
        return NULL;
    set_limits(t, limits);
    t->n_kept++;
    q->count.waiting++;
    return t;
}

void fair_queue_set_elsewhere(struct fair_tenant *t, const struct fair_elsewhere *elsewhere,
                              uint64_t now_ns)
{
    /* What it had there until now is charged when the queue is looked at, or never was. */
    if (t->elsewhere.running == 0)
        t->elsewhere_ns = now_ns;
    t->elsewhere = *elsewhere;
}

void fair_queue_look_elsewhere(struct fair_queue *q,
                               void (*look)(void *ctx, const char *tenant,
                                            const struct fair_limits *limits,
                                            struct fair_elsewhere *ret),
                               void *ctx, uint64_t now_ns)
{
    struct fair_tenant *t;

    update(q, now_ns);
    LIST_FOREACH(t, &q->tenants, link) {
        struct fair_elsewhere elsewhere = {0};

        look(ctx, t->id, &t->limits, &elsewhere);
        fair_queue_set_elsewhere(t, &elsewhere, now_ns);
    }
}

void fair_queue_give_back(struct fair_queue *q, struct fair_tenant *tenant)
{
    tenant->n_kept--;
    q->count.waiting--;
}

void fair_queue_push(struct fair_queue *q, struct fair_tenant *tenant, struct fair_entry *entry,
                     uint64_t now_ns)
{
    *entry = (struct fair_entry){.tenant = tenant, .since_ns = now_ns};
    tenant->n_kept--;
    tenant->n_waiting++;
    TAILQ_INSERT_TAIL(&tenant->waiting, entry, link);
    /* Now, not at the next turn: until then others may have moved on. */
    update(q, now_ns);
}

void fair_queue_set_limits(struct fair_queue *q, const char *tenant,
                           const struct fair_limits *limits)
{
    struct fair_tenant *t = find(q, tenant);

    if (t)
        set_limits(t, limits);
}

/* Takes an entry out of its tenant's queue. */
static void unlink_waiting(struct fair_queue *q, struct fair_entry *entry)
{
    TAILQ_REMOVE(&entry->tenant->waiting, entry, link);
    entry->tenant->n_waiting--;
    q->count.waiting--;
}

struct fair_entry *fair_queue_take(struct fair_queue *q, uint64_t now_ns)
{
    struct fair_tenant *t, *best = NULL;
    struct fair_entry *entry;

    update(q, now_ns);
    LIST_FOREACH(t, &q->tenants, link) {
        if (!may_run(t) || yields(t, now_ns))
            continue;
        if (!best || t->had < best->had ||
            (t->had == best->had && since_ns(t) < since_ns(best)))
            best = t;
    }
    if (!best)
        return NULL;
    entry = TAILQ_FIRST(&best->waiting);
    unlink_waiting(q, entry);
    entry->running = true;
    entry->since_ns = now_ns;
    best->yields_ns = 0;
    best->turn_ns = now_ns;
    TAILQ_INSERT_HEAD(&best->running, entry, link);
    best->n_running++;
    q->count.running++;
    charge(entry, now_ns);
    return entry;
}

/* The first that is so, or is not; with NULL none is. */
static struct fair_entry *first_that(const struct fair_tenant *t,
                                     bool (*is)(const struct fair_entry *), bool wanted)
{
    struct fair_entry *entry;

    TAILQ_FOREACH(entry, &t->waiting, link) {
        if ((is && is(entry)) == wanted)
            return entry;
    }
    return NULL;
}

struct fair_entry *fair_queue_lend(struct fair_queue *q, bool (*may)(const struct fair_entry *),
                                   uint64_t now_ns, struct fair_tenant **ret_tenant)
{
    struct fair_tenant *t, *best = NULL;
    struct fair_entry *found = NULL;

    update(q, now_ns);
    LIST_FOREACH(t, &q->tenants, link) {
        struct fair_entry *entry;

        if (!may_run(t) || (best && t->had >= best->had))
            continue;
        entry = first_that(t, may, true);
        if (!entry)
            continue;
        best = t;
        found = entry;
    }
    if (!found)
        return NULL;
    fair_queue_remove(q, found);
    best->n_kept++;
    q->count.waiting++;
    *ret_tenant = best;
    return found;
}

void fair_queue_return(struct fair_tenant *tenant, struct fair_entry *entry)
{
    struct fair_entry *later;

    entry->tenant = tenant;
    tenant->n_kept--;
    tenant->n_waiting++;
    TAILQ_FOREACH(later, &tenant->waiting, link) {
        if (later->since_ns >= entry->since_ns)
            break;
    }
    if (later)
        TAILQ_INSERT_BEFORE(later, entry, link);
    else
        TAILQ_INSERT_TAIL(&tenant->waiting, entry, link);
}

struct fair_entry *fair_queue_drain(struct fair_queue *q,
                                    bool (*stays)(const struct fair_entry *))
{
    struct fair_tenant *t;

    LIST_FOREACH(t, &q->tenants, link) {
        struct fair_entry *entry = first_that(t, stays, false);

        if (entry) {
            fair_queue_remove(q, entry);
            return entry;
        }
    }
    return NULL;
}

void fair_queue_remove(struct fair_queue *q, struct fair_entry *entry)
{
    unlink_waiting(q, entry);
    entry->tenant = NULL;
}

void fair_queue_done(struct fair_queue *q, struct fair_entry *entry, uint64_t now_ns)
{
    struct fair_tenant *t = entry->tenant;
    uint64_t ns;

    update(q, now_ns);
    TAILQ_REMOVE(&t->running, entry, link);
    t->n_running--;
    q->count.running--;
    ns = now_ns > entry->since_ns ? now_ns - entry->since_ns : 0;
    q->mean_ns =
        q->mean_ns == 0 ? ns : q->mean_ns - q->mean_ns / MEAN_WEIGHT + ns / MEAN_WEIGHT;
    *entry = (struct fair_entry){0};
}

struct fair_count fair_queue_count(const struct fair_queue *q)
{
    return q->count;
}

static struct fair_count count_of(const struct fair_tenant *t)
{
    return (struct fair_count){.waiting = t->n_waiting + t->n_kept,
                               .running = t->n_running,
                               .since_ns = TAILQ_EMPTY(&t->waiting) ? 0 : since_ns(t)};
}

struct fair_count fair_queue_count_of(const struct fair_queue *q, const char *tenant)
{
    const struct fair_tenant *t = find(q, tenant);

    return t ? count_of(t) : (struct fair_count){0};
}

void fair_queue_each(const struct fair_queue *q,
                     void (*visit)(void *ctx, const char *tenant, struct fair_count count),
                     void *ctx)
{
    const struct fair_tenant *t;

    LIST_FOREACH(t, &q->tenants, link)
        visit(ctx, t->id, count_of(t));
}

uint64_t fair_queue_oldest_ns(const struct fair_queue *q)
{
    const struct fair_tenant *t;
    uint64_t oldest = 0;

    LIST_FOREACH(t, &q->tenants, link) {
        if (!TAILQ_EMPTY(&t->waiting) && (oldest == 0 || since_ns(t) < oldest))
            oldest = since_ns(t);
    }
    return oldest;
}

uint64_t fair_queue_mean_ns(const struct fair_queue *q)
{
    return q->mean_ns;
}
