/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/engine_lend.h"

#include "api/daemon/engine/engine_internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"

bool engine_lend(struct engine *engine, struct lending *ret)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);
    struct fair_entry *place = engine->left
                                   ? NULL
                                   : fair_queue_lend(engine->queue, engine_can_move,
                                                     clock_monotonic_ns(), &ret->place);

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

/* It waits as before; false where it is to be ended. Under the lock. */
static bool take_back(struct engine *engine, const struct lending *lending, bool cancelled)
{
    if (cancelled || engine->left) {
        fair_queue_give_back(engine->queue, lending->place);
        engine->n_ending++;
        engine_note_load(engine);
        return false;
    }
    fair_queue_return(lending->place, &lending->e->place);
    (void)pthread_cond_signal(&engine->work);
    return true;
}

void engine_lend_end(struct engine *engine, const struct lending *lending, bool is_given)
{
    bool cancelled, waits = false;

    (void)pthread_mutex_lock(&engine->lock);
    /* Who wanted it to end meanwhile was told that it would. */
    cancelled = fd_is_readable(lending->e->cancel_fd);
    if (is_given)
        forget(engine, lending);
    else
        waits = take_back(engine, lending, cancelled);
    (void)pthread_mutex_unlock(&engine->lock);
    if (is_given)
        execution_unref(lending->e);
    else if (!waits)
        engine_end_unrun(engine, lending->e, cancelled);
}
