/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/placement.h"

#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/forward.h"

/*
 * To another node, where this one has no room, or would begin it from less than another one
 * has. Where its tenant has all it may there is no turn for it elsewhere either.
 */
static enum forward_result send(struct daemon *d, const struct placement_wish *wish,
                                const struct execution *e, bool has_turn)
{
    const struct forward_wish forward = {.e = e,
                                         .digest = wish->digest,
                                         .text = wish->text,
                                         .len = wish->len,
                                         .is_kept = has_turn};
    bool is_for_here = has_turn ? forward_has_snapshot(d, e) : engine_has_room(d->engine);

    return e->is_given || is_for_here ? FORWARD_NOBODY : forward_send(d, &forward);
}

/* Others may run it until it begins, or where this node is lost. */
static bool keep(struct daemon *d, struct http_request *http, const struct placement_wish *wish,
                 struct execution *e, struct http_reply *reply)
{
    const struct waiting_place place = {
        .store = d->store, .objects = d->objects, .tenant = e->tenant};
    struct err err = {0};
    int r;

    /* It is in a file for a moment. */
    if (wish->len > RECORD_REQUEST_MAX / 2 && !http_request_hold(http, wish->len))
        return false;
    r = waiting_keep(&place, forward_image(e), wish->text, wish->len, &e->request, &err);
    e->request.retries = e->retries;
    e->waits = r == 0;
    return r == 0 || failure_reply(reply, r, &err);
}

bool placement_refuse(const struct execution *e, struct http_reply *reply)
{
    return http_reply_error(reply, 503, "cluster_unavailable",
                            "another node may have accepted this as %s, and this one does not "
                            "run it: look for it before you ask again",
                            e->id);
}

enum placement placement_choose(struct daemon *d, struct http_request *http,
                                const struct placement_wish *wish, struct execution *e,
                                struct http_reply *reply)
{
    enum forward_result result;
    bool has_turn;

    /* The node that is asked has its session for it. */
    if (!d->ledger || e->session)
        return PLACEMENT_HERE;
    /* What others need is with its record. */
    e->waits = e->is_taken;
    if (e->is_taken)
        return PLACEMENT_HERE;
    has_turn = engine_take_turn(d->engine, e);
    result = send(d, wish, e, has_turn);
    if (result == FORWARD_TAKEN || result == FORWARD_UNSEEN)
        engine_leave_turn(d->engine, e);
    if (result == FORWARD_TAKEN)
        return PLACEMENT_ELSEWHERE;
    /* Who has it runs it, also where servers forget that: nobody else is to begin it. */
    if (result == FORWARD_UNSEEN) {
        placement_refuse(e, reply);
        return PLACEMENT_FAILED;
    }
    if ((has_turn ? e->retries > 0 : wish->request->is_async) && !keep(d, http, wish, e, reply))
        return PLACEMENT_FAILED;
    return result == FORWARD_DOUBT ? PLACEMENT_DOUBTFUL : PLACEMENT_HERE;
}
