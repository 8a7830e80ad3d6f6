/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/handover.h"

#include "api/daemon/engine/ledger.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>

#define ASK_AGAIN_MS 500

int handover_accept(struct ledger *ledger, struct execution *e,
                    const struct registry_execution *acceptance, struct err *err)
{
    struct err why = {0};
    int r = e->is_taken ? ledger_take(ledger, e->tenant, acceptance, e->waits, err)
                        : ledger_accept(ledger, e->tenant, acceptance, e->waits, err);

    if (r == 0 && !e->is_taken)
        ledger_note(ledger, e->id, "accepted");
    /* Once it is confirmed: what is not, and said so, nobody may run. */
    if (r == 0 && e->waits && !e->is_taken &&
        ledger_offer(ledger, acceptance, &e->request, &why) < 0)
        log_warn("engine", "execution=%s is=\"this node's alone\" reason=\"%s\"", e->id,
                 why.message);
    /* Servers that lose it are told it anew, where it may be begun again. */
    if (r < 0 || e->retries == 0)
        buf_finish(&e->request.text);
    return r;
}

/* Another node has it. Who wanted it to end was told that it would. */
static void move(struct ledger *ledger, struct execution *e)
{
    struct err err = {0};

    execution_move(e);
    if (__atomic_load_n(&e->is_wanted, __ATOMIC_ACQUIRE) &&
        ledger_cancel(ledger, e->id, &err) == -EAGAIN)
        log_warn("engine", "execution=%s is=\"not cancelled\" reason=\"%s\"", e->id,
                 err.message);
}

int handover_begin(struct ledger *ledger, struct execution *e)
{
    struct pollfd cancel = {.fd = e->cancel_fd, .events = POLLIN};
    struct err err = {0};
    int r = e->waits ? ledger_begin(ledger, e->id, e->retries > 0, &err) : 0;

    while (r < 0 && r != -EEXIST) {
        log_warn("engine", "execution=%s waits=\"%s\"", e->id, err.message);
        if (poll(&cancel, 1, ASK_AGAIN_MS) > 0)
            return -ECANCELED;
        err = (struct err){0};
        r = ledger_begin(ledger, e->id, e->retries > 0, &err);
    }
    e->waits = false;
    if (r < 0)
        move(ledger, e);
    else if (ledger)
        ledger_note(ledger, e->id, "begun");
    return r;
}

bool handover_is_gone(struct ledger *ledger, struct execution *e)
{
    struct err err = {0};
    int r = ledger_begin(ledger, e->id, e->retries > 0, &err);

    if (r == 0)
        e->waits = false;
    if (r != -EEXIST)
        return false;
    move(ledger, e);
    return true;
}

bool handover_leave(struct ledger *ledger, struct execution *e)
{
    struct err err = {0};

    if (!ledger || (!e->waits && e->retries == 0))
        return false;
    if (ledger_leave(ledger, e->id, &err) < 0) {
        log_error("engine", "execution=%s not_left=\"%s\"", e->id, err.message);
        return false;
    }
    log_info("engine", "execution=%s left=\"to other nodes\"", e->id);
    execution_move(e);
    return true;
}

bool handover_resign(struct ledger *ledger, struct execution *e, bool is_cancelled)
{
    if (__atomic_load_n(&e->is_gone, __ATOMIC_ACQUIRE)) {
        log_info("engine", "execution=%s given_up=\"another node has begun it again\"", e->id);
        move(ledger, e);
        return true;
    }
    return is_cancelled && __atomic_load_n(&e->is_left, __ATOMIC_ACQUIRE) &&
           handover_leave(ledger, e);
}
