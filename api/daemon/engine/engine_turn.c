/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the queue that are kept for drafts, and whether there is a slot behind one. */
#include "api/daemon/engine/engine_internal.h"

#include "base/cleanup.h"
#include "base/lock.h"

struct fair_tenant *engine_keep_place(struct engine *engine, struct execution *e)
{
    const struct fair_limits limits = engine_fair_limits(&e->limits);
    struct fair_tenant *place = fair_queue_reserve(engine->queue, e->tenant, &limits);

    if (!place)
        return NULL;
    sessions_take(&engine->sessions, e);
    engine_look_elsewhere(engine, place, e->tenant, &limits);
    engine_note_load(engine);
    return place;
}

void engine_give_back(struct engine *engine, struct execution *e, struct fair_tenant *place)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    sessions_leave(e);
    fair_queue_give_back(engine->queue, place);
    engine_note_load(engine);
    (void)pthread_cond_broadcast(&engine->idle);
}

/* Under the lock. */
static bool has_turn(struct engine *engine, const struct execution *e)
{
    const struct fair_count own = fair_queue_count_of(engine->queue, e->tenant);
    unsigned most = (unsigned)e->limits.max_running;

    return engine_slot_is_free(engine) &&
           (most == 0 ||
            own.waiting + own.running + engine_running_elsewhere(engine, e->tenant) < most);
}

bool engine_take_turn(struct engine *engine, struct execution *e)
{
    bool can = engine_can_start(engine);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    e->turn = can && has_turn(engine, e) ? engine_keep_place(engine, e) : NULL;
    return e->turn != NULL;
}

void engine_leave_turn(struct engine *engine, struct execution *e)
{
    if (e && e->turn)
        engine_give_back(engine, e, steal_ptr(&e->turn));
}
