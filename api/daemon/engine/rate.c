/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/rate.h"

#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A token in the units that a bucket counts: one per nanosecond and token a minute. */
#define TOKEN     60000000000ull
#define MINUTE_NS 60000000000ull
/* Buckets that are full again are forgotten once there are twice as many as were needed. */
#define SWEEP_MIN 64u

struct bucket {
    struct bucket *next;
    uint64_t level; /* up to per_minute * TOKEN */
    uint64_t at_ns;
    uint64_t taken; /* here, since it was full */
    unsigned per_minute;
    char tenant[];
};

struct rate {
    pthread_mutex_t lock;
    struct bucket *buckets;
    size_t n;
    size_t sweep_at;
};

struct rate *rate_create(void)
{
    struct rate *rate = calloc(1, sizeof(*rate));

    if (!rate)
        return NULL;
    (void)pthread_mutex_init(&rate->lock, NULL);
    rate->sweep_at = SWEEP_MIN;
    return rate;
}

void rate_destroy(struct rate *rate)
{
    if (!rate)
        return;
    while (rate->buckets) {
        struct bucket *b = rate->buckets;

        rate->buckets = b->next;
        free(b);
    }
    (void)pthread_mutex_destroy(&rate->lock);
    free(rate);
}

static void refill(struct bucket *b, uint64_t now_ns)
{
    uint64_t passed = now_ns > b->at_ns ? now_ns - b->at_ns : 0;
    uint64_t full = b->per_minute * TOKEN;

    /* A minute fills it, whatever the rate. */
    if (passed >= MINUTE_NS || b->level + passed * b->per_minute > full)
        b->level = full;
    else
        b->level += passed * b->per_minute;
    if (now_ns > b->at_ns)
        b->at_ns = now_ns;
}

/* A full bucket says the same as none. */
static void sweep(struct rate *rate, uint64_t now_ns)
{
    struct bucket **at = &rate->buckets;

    while (*at) {
        struct bucket *b = *at;

        refill(b, now_ns);
        if (b->level < b->per_minute * TOKEN) {
            at = &b->next;
        } else {
            *at = b->next;
            free(b);
            rate->n--;
        }
    }
    rate->sweep_at = rate->n * 2 > SWEEP_MIN ? rate->n * 2 : SWEEP_MIN;
}

static struct bucket *find_or_add(struct rate *rate, const char *tenant, unsigned per_minute,
                                  uint64_t now_ns)
{
    size_t size = strlen(tenant) + 1;
    struct bucket *b = rate->buckets;

    while (b && strcmp(b->tenant, tenant) != 0)
        b = b->next;
    if (b)
        return b;
    if (rate->n >= rate->sweep_at)
        sweep(rate, now_ns);
    b = calloc(1, sizeof(*b) + size);
    if (!b)
        return NULL;
    memcpy(b->tenant, tenant, size);
    b->level = per_minute * TOKEN;
    b->per_minute = per_minute;
    b->at_ns = now_ns;
    b->next = rate->buckets;
    rate->buckets = b;
    rate->n++;
    return b;
}

/* The bucket of a tenant as it is now, of this size. NULL without memory. */
static struct bucket *look(struct rate *rate, const char *tenant, unsigned per_minute,
                           uint64_t now_ns)
{
    struct bucket *b = find_or_add(rate, tenant, per_minute, now_ns);

    if (!b)
        return NULL;
    refill(b, now_ns);
    b->per_minute = per_minute;
    if (b->level > per_minute * TOKEN)
        b->level = per_minute * TOKEN;
    return b;
}

static unsigned bounded(unsigned per_minute)
{
    return per_minute < RATE_MAX_PER_MINUTE ? per_minute : RATE_MAX_PER_MINUTE;
}

int64_t rate_take(struct rate *rate, const char *tenant, unsigned per_minute, uint64_t now_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&rate->lock);
    struct bucket *b;

    if (per_minute == 0)
        return 0;
    per_minute = bounded(per_minute);
    b = look(rate, tenant, per_minute, now_ns);
    if (!b)
        return -ENOMEM;
    if (b->level < TOKEN)
        return (int64_t)((TOKEN - b->level + per_minute - 1) / per_minute);
    b->level -= TOKEN;
    b->taken++;
    return 0;
}

void rate_charge(struct rate *rate, const char *tenant, unsigned per_minute, uint64_t n,
                 uint64_t now_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&rate->lock);
    struct bucket *b = per_minute > 0 ? look(rate, tenant, bounded(per_minute), now_ns) : NULL;

    if (b)
        b->level -= n < b->level / TOKEN ? n * TOKEN : b->level;
}

void rate_each(struct rate *rate, uint64_t now_ns,
               void (*visit)(void *ctx, const char *tenant, uint64_t taken), void *ctx)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&rate->lock);

    for (struct bucket *b = rate->buckets; b; b = b->next) {
        refill(b, now_ns);
        if (b->level == b->per_minute * TOKEN)
            b->taken = 0;
        if (b->taken > 0)
            visit(ctx, b->tenant, b->taken);
    }
}
