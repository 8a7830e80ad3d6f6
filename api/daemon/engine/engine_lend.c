/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/engine_lend.h"

#include "api/daemon/engine/engine_internal.h"
#include "base/clock.h"
#include "base/lock.h"

static bool may(const struct fair_entry *place)
{
    const struct execution *e =
        (const struct execution *)(const void *)((const char *)place -
                                                 offsetof(struct execution, place));

    return e->waits;
}

bool engine_lend(struct engine *engine, struct lending *ret)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);
    struct fair_entry *place =
        engine->stopping
            ? NULL
            : fair_queue_lend(engine->queue, may, clock_monotonic_ns(), &ret->place);

    ret->e = place ? engine_of_place(place) : NULL;
    return ret->e != NULL;
}

/* It is nowhere in the engine any more. Under the lock. */
static void forget(struct engine *engine, const struct lending *lending)
{
    fair_queue_give_back(engine->queue, lending->place);
    sessions_leave(lending->e);
    LIST_REMOVE(lending->e, live);
    engine_note_load(engine);
    (void)pthread_cond_broadcast(&engine->idle);
}

void engine_lend_end(struct engine *engine, const struct lending *lending, bool is_given)
{
    bool is_stopping;

    (void)pthread_mutex_lock(&engine->lock);
    is_stopping = engine->stopping && !is_given;
    if (is_given) {
        forget(engine, lending);
    } else if (is_stopping) {
        /* The queue was emptied meanwhile, and nobody will look at it again. */
        fair_queue_give_back(engine->queue, lending->place);
        engine->n_ending++;
    } else {
        fair_queue_return(lending->place, &lending->e->place);
        (void)pthread_cond_signal(&engine->work);
    }
    (void)pthread_mutex_unlock(&engine->lock);
    if (is_given)
        execution_unref(lending->e);
    else if (is_stopping)
        engine_end_unrun(engine, lending->e, false);
}
