/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/fair_gate.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct fair_gate {
    unsigned places;

    pthread_mutex_t lock; /* for all below, and for the entries */
    struct fair_queue *queue;
};

struct fair_gate *fair_gate_create(unsigned places)
{
    struct fair_gate *gate = calloc(1, sizeof(*gate));

    if (gate)
        gate->queue = fair_queue_create();
    if (!gate || !gate->queue) {
        free(gate);
        return NULL;
    }
    gate->places = places;
    (void)pthread_mutex_init(&gate->lock, NULL);
    return gate;
}

void fair_gate_destroy(struct fair_gate *gate)
{
    if (!gate)
        return;
    fair_queue_destroy(gate->queue);
    (void)pthread_mutex_destroy(&gate->lock);
    free(gate);
}

/* Lets in whoever's turn it is. Under the lock. */
static void let_in(struct fair_gate *gate)
{
    struct fair_entry *next;

    /* Each is woken on its own: hundreds may wait. */
    while (fair_queue_count(gate->queue).running < gate->places &&
           (next = fair_queue_take(gate->queue, clock_monotonic_ns())))
        (void)pthread_cond_signal(&((struct fair_gate_entry *)next)->let_in);
}

int fair_gate_enter(struct fair_gate *gate, const char *tenant, struct fair_gate_entry *entry,
                    uint64_t deadline_ns, struct err *err)
{
    /* One place is always another's: what is done behind the gate cannot be interrupted. */
    const struct fair_limits limits = {.max_running = gate->places > 1 ? gate->places - 1 : 1};
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&gate->lock);
    struct fair_tenant *place = fair_queue_reserve(gate->queue, tenant, &limits);

    if (!place)
        return err_no_memory(err);
    cond_init(&entry->let_in);
    fair_queue_push(gate->queue, place, &entry->queued, clock_monotonic_ns());
    let_in(gate);
    while (!entry->queued.running && cond_wait_until(&entry->let_in, held, deadline_ns))
        ;
    (void)pthread_cond_destroy(&entry->let_in);
    if (entry->queued.running)
        return 0;
    fair_queue_remove(gate->queue, &entry->queued);
    return err_set(err, EBUSY, "others are waiting for their turn already");
}

void fair_gate_leave(struct fair_gate *gate, struct fair_gate_entry *entry)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&gate->lock);

    fair_queue_done(gate->queue, &entry->queued, clock_monotonic_ns());
    let_in(gate);
}
