/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/ledger_waits.h"

#include "base/cond.h"
#include "base/lock.h"

#include <stdio.h>
#include <string.h>

void ledger_waits_init(struct ledger_waits *waits)
{
    *waits = (struct ledger_waits){0};
    (void)pthread_mutex_init(&waits->lock, NULL);
}

void ledger_waits_finish(struct ledger_waits *waits)
{
    (void)pthread_mutex_destroy(&waits->lock);
}

void ledger_waiter_begin(struct ledger_waits *waits, const char *id, struct ledger_waiter *ret)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&waits->lock);

    (void)snprintf(ret->id, sizeof(ret->id), "%s", id);
    ret->is_told = false;
    cond_init(&ret->told);
    ret->next = waits->first;
    waits->first = ret;
}

void ledger_waiter_end(struct ledger_waits *waits, struct ledger_waiter *waiter)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&waits->lock);
    struct ledger_waiter **at = &waits->first;

    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    (void)pthread_cond_destroy(&waiter->told);
}

bool ledger_waiter_wait(struct ledger_waits *waits, struct ledger_waiter *waiter,
                        uint64_t deadline_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&waits->lock);
    bool is_told;

    while (!waiter->is_told && cond_wait_until(&waiter->told, &waits->lock, deadline_ns))
        ;
    is_told = waiter->is_told;
    waiter->is_told = false;
    return is_told;
}

void ledger_waits_tell(struct ledger_waits *waits, const char *id)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&waits->lock);

    for (struct ledger_waiter *w = waits->first; w; w = w->next) {
        if (strcmp(w->id, id) != 0)
            continue;
        w->is_told = true;
        (void)pthread_cond_signal(&w->told);
    }
}
