/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs next: a weighted fair queue over tenants, each with a first-in first-out queue of
 * its own. A value of the engine's, under the engine's lock; it waits for nothing and knows
 * nothing of executions but their places in it.
 *
 * What is shared are the slots (workers), so the cost of an execution is the time for which it
 * holds one, by the daemon's own clock, charged while it passes. What an execution will cost is
 * not known when it is chosen: its timeout is a claim of the tenant's, and an average of its
 * past would let a tenant follow many short ones with long ones at the price of short ones. CPU
 * time would let sleepers hold every slot for nothing. Of those that may run the tenant is
 * chosen that has had least, where a second costs 1/weight. Each execution costs COST_MIN at
 * the moment it is chosen, so that several slots that come free at once are shared as well, and
 * so that every turn brings the others nearer to theirs.
 *
 * A tenant that comes back, from having nothing to run or from its own cap, counts as having
 * had no less than the least served of those that wait: it gains nothing by having been away,
 * and what it owes it goes on owing. Where nobody waits for a slot, all is forgotten: capacity
 * that nobody else wanted is nobody's debt.
 *
 * No tenant starves: one that waits stands still while every turn of another moves that one on
 * by at least COST_MIN / weight, and none enters behind the least.
 *
 * What a tenant has at other nodes of a cluster counts too, as far as it is known here: what
 * runs there to its cap and to what it has had, so that shares hold over all nodes. That debt
 * has a bound, and who waits here without a turn for PATIENCE gets no more of it: so it has one
 * after at most that, and what ELSEWHERE_MAX is for the others. The last place of
 * a cap is left to whoever waits longer elsewhere, for YIELD at most: a tenant's executions at
 * one node do not keep those at another from ever running.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_FAIR_QUEUE_H
#define SKILLVM_API_DAEMON_ENGINE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define FAIR_COST_MIN_US      1000u
#define FAIR_ELSEWHERE_MAX_US 10000000u /* of a slot, past the least served */
#define FAIR_PATIENCE_NS      10000000000ull
#define FAIR_YIELD_NS         250000000ull
#define FAIR_YIELD_MARGIN_NS  50000000ull /* by which another has to wait longer */

struct fair_queue;
struct fair_tenant;

/* What a tenant may have. */
struct fair_limits {
    unsigned weight;      /* 1..TENANT_WEIGHT_MAX; 0: TENANT_WEIGHT_DEFAULT */
    unsigned max_running; /* at the same time; 0: as many as there are slots */
};

/* What a tenant has at other nodes. */
struct fair_elsewhere {
    unsigned running;
    /* Monotonic: since when its first waits at one with a free slot; 0: none does. */
    uint64_t since_ns;
};

/* A place in the queue, inside of what waits or runs. Zero-initialise; the queue's own after.
 */
struct fair_entry {
    TAILQ_ENTRY(fair_entry) link;
    struct fair_tenant *tenant; /* NULL: neither waits nor runs */
    bool running;
    uint64_t since_ns;   /* monotonic: waits, or runs, since then */
    uint64_t charged_us; /* of the time it has run */
};

/* NULL without memory. */
struct fair_queue *fair_queue_create(void);
/* Nothing may wait or run in it. NULL is fine. */
void fair_queue_destroy(struct fair_queue *q);

/*
 * Keeps a place for one more of a tenant, which counts as waiting from now on, and sets the
 * tenant's limits. The place is to be filled or given back. NULL without memory.
 */
struct fair_tenant *fair_queue_reserve(struct fair_queue *q, const char *tenant,
                                       const struct fair_limits *limits);
/* Sets what a tenant has elsewhere; it has nothing at first. */
void fair_queue_set_elsewhere(struct fair_tenant *tenant,
                              const struct fair_elsewhere *elsewhere, uint64_t now_ns);
/* Asks for it anew of every tenant that is there; look must not change the queue. */
void fair_queue_look_elsewhere(struct fair_queue *q,
                               void (*look)(void *ctx, const char *tenant,
                                            const struct fair_limits *limits,
                                            struct fair_elsewhere *ret),
                               void *ctx, uint64_t now_ns);
void fair_queue_give_back(struct fair_queue *q, struct fair_tenant *tenant);
/* Fills a place that was kept. */
void fair_queue_push(struct fair_queue *q, struct fair_tenant *tenant, struct fair_entry *entry,
                     uint64_t now_ns);

/* Sets the limits of a tenant that is there; nothing where it is not. */
void fair_queue_set_limits(struct fair_queue *q, const char *tenant,
                           const struct fair_limits *limits);

/* Chooses who runs next; it runs from now on. NULL: nobody waits who may run. */
struct fair_entry *fair_queue_take(struct fair_queue *q, uint64_t now_ns);
/* Takes out one that waits and that stays (NULL: nothing does) does not keep, of whatever
   tenant; NULL when there is none. */
struct fair_entry *fair_queue_drain(struct fair_queue *q,
                                    bool (*stays)(const struct fair_entry *));
/*
 * Takes out one that waits, could run, and may be lent: of the tenant that has had least. Its
 * place is kept, in *ret_tenant, to be given back, or filled by fair_queue_return. NULL: none.
 */
struct fair_entry *fair_queue_lend(struct fair_queue *q, bool (*may)(const struct fair_entry *),
                                   uint64_t now_ns, struct fair_tenant **ret_tenant);
/* Before those of its tenant that came later, as if it had never been away. */
void fair_queue_return(struct fair_tenant *tenant, struct fair_entry *entry);
/* Takes out one that waits. */
void fair_queue_remove(struct fair_queue *q, struct fair_entry *entry);
/* Takes out one that runs. */
void fair_queue_done(struct fair_queue *q, struct fair_entry *entry, uint64_t now_ns);

/* How many wait (with places that are kept) and how many run. */
struct fair_count {
    unsigned waiting;
    unsigned running;
    uint64_t since_ns; /* of one tenant: since when its first waits; 0 where none does */
};

struct fair_count fair_queue_count(const struct fair_queue *q);
/* Of one tenant; zeros for one that is not there. */
struct fair_count fair_queue_count_of(const struct fair_queue *q, const char *tenant);
/* Calls visit for every tenant that is there; it must not change the queue. */
void fair_queue_each(const struct fair_queue *q,
                     void (*visit)(void *ctx, const char *tenant, struct fair_count count),
                     void *ctx);
/* Since when the one waits that waits longest; 0 when nobody does. */
uint64_t fair_queue_oldest_ns(const struct fair_queue *q);
/* How long one holds a slot: a moving average over those that ended. 0 before the first. */
uint64_t fair_queue_mean_ns(const struct fair_queue *q);

#endif
