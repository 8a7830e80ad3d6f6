/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine share. */
#ifndef SKILLVM_API_DAEMON_ENGINE_ENGINE_INTERNAL_H
#define SKILLVM_API_DAEMON_ENGINE_ENGINE_INTERNAL_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/engine/engine.h"
#include "api/daemon/engine/fair_queue.h"
#include "api/daemon/engine/sessions_taken.h"

#include <pthread.h>
#include <stddef.h>

#define LIVE_BUCKETS 1024u

LIST_HEAD(live, execution);

struct engine {
    struct engine_config config;
    struct rate *rate;
    pthread_t *workers;
    unsigned n_workers;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t work;  /* something to take, or stopping */
    pthread_cond_t idle;  /* something ended */
    struct fair_queue *queue;
    /* By their ids: all that wait, run, or are being ended without having run. */
    struct live live[LIVE_BUCKETS];
    struct sessions_taken sessions;
    unsigned n_ending;
    bool stopping;
    bool left; /* with stopping: the queue is emptied, and nobody looks at it again */
    bool draining;
    struct cluster *cluster; /* that its load is shared with; NULL: nobody's */
};

/* The execution that a place in the queue is in. */
static inline struct execution *engine_of_place(struct fair_entry *place)
{
    return (struct execution *)(void *)((char *)place - offsetof(struct execution, place));
}

static inline struct fair_limits engine_fair_limits(const struct tenant_limits *limits)
{
    return (struct fair_limits){.weight = (unsigned)limits->weight,
                                .max_running = (unsigned)limits->max_running};
}

/* Whether others can run one that waits. */
static inline bool engine_can_move(const struct fair_entry *place)
{
    const struct execution *e =
        (const struct execution *)(const void *)((const char *)place -
                                                 offsetof(struct execution, place));

    return e->waits && !e->is_bound;
}

/* Keeps a place in the queue for one that was admitted, with its session. NULL without memory.
 * Under the lock. */
struct fair_tenant *engine_keep_place(struct engine *engine, struct execution *e);
void engine_give_back(struct engine *engine, struct execution *e, struct fair_tenant *place);
/* Whether one more begins at once, as far as slots say. Under the lock. */
bool engine_slot_is_free(const struct engine *engine);
/* Whether machines can start. Not under the lock. */
bool engine_can_start(const struct engine *engine);
/* Ends one that is live and will not run here. Gives the engine's reference up. */
void engine_end_unrun(struct engine *engine, struct execution *e, bool cancelled);
/* Something of what tenants have here changed: others hear of it. Under the lock. */
void engine_note_load(struct engine *engine);
/* How many of a tenant's wait, and run, at other nodes. Under the lock. */
unsigned engine_waiting_elsewhere(struct engine *engine, const char *tenant);
unsigned engine_running_elsewhere(struct engine *engine, const char *tenant);
/* Notes what a tenant that came has at other nodes. Under the lock. */
void engine_look_elsewhere(struct engine *engine, struct fair_tenant *place, const char *tenant,
                           const struct fair_limits *limits);

#endif
