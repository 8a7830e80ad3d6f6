/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/execution_reply.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/lookup.h"
#include "base/clock.h"

#include <errno.h>

/* Its node hears of it from the servers. */
static void cancel_elsewhere(struct daemon *d, const char *id, struct http_reply *reply)
{
    struct err err = {0};
    int r = ledger_cancel(d->ledger, id, &err);

    if (r == 0)
        execution_reply_status(reply, id, "cancelling");
    else if (r == -ENOENT)
        http_reply_error(reply, 409, "conflict", "execution %s has ended already", id);
    else
        (void)failure_reply(reply, r, &err);
}

void route_execution_cancel(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *id = request->params[0];
    unsigned tries = 0;
    bool ended = false, wait = true;
    int r = -ENOENT;

    /* Between its row and its place in the queue an execution is for microseconds. */
    while (r == -ENOENT && wait) {
        _cleanup_registry_execution_ struct registry_execution row = {0};

        if (!lookup_row(d, request->caller.tenant, id, &row, reply))
            return;
        if (lookup_is_elsewhere(&row)) {
            cancel_elsewhere(d, id, reply);
            return;
        }
        r = engine_cancel(d->engine, request->caller.tenant, id, &ended);
        wait = r == -ENOENT && row.finished_ns == 0 && clock_try_again(&tries);
    }
    if (r < 0)
        http_reply_error(reply, 409, "conflict", "execution %s has ended already", id);
    else
        execution_reply_status(reply, id, ended ? "cancelled" : "cancelling");
}
