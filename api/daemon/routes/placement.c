/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/placement.h"

#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/forward.h"

static const char *image_of(const struct daemon *d, const struct execution *e)
{
    return d->images.known.list[e->image.place].name;
}

static enum forward_result send(struct daemon *d, const struct placement_wish *wish,
                                const struct execution *e)
{
    const struct forward_wish forward = {.tenant = e->tenant,
                                         .id = e->id,
                                         .digest = wish->digest,
                                         .image = image_of(d, e),
                                         .text = wish->text,
                                         .len = wish->len};

    return forward_send(d, &forward);
}

/* Others may run it until it begins, or where this node is lost. */
static bool keep(struct daemon *d, struct http_request *http, const struct placement_wish *wish,
                 struct execution *e, struct http_reply *reply)
{
    struct err err = {0};
    int r;

    /* It is in a file for a moment. */
    if (wish->len > RECORD_REQUEST_MAX / 2 && !http_request_hold(http, wish->len))
        return false;
    r = waiting_keep(d->store, d->objects, image_of(d, e), wish->text, wish->len, &e->request,
                     &err);
    e->request.retries = e->retries;
    e->waits = r == 0;
    return r == 0 || failure_reply(reply, r, &err);
}

enum placement placement_choose(struct daemon *d, struct http_request *http,
                                const struct placement_wish *wish, struct execution *e,
                                struct http_reply *reply)
{
    enum forward_result result = FORWARD_NOBODY;

    /* The node that is asked has its session for it. */
    if (!d->ledger || e->session)
        return PLACEMENT_HERE;
    /* What others need is with its record. */
    e->waits = e->is_taken;
    if (e->is_taken)
        return PLACEMENT_HERE;
    if (engine_has_turn(d->engine, e))
        return e->retries == 0 || keep(d, http, wish, e, reply) ? PLACEMENT_HERE
                                                                : PLACEMENT_FAILED;
    /* Where its tenant has all it may there is no turn for it elsewhere either. */
    if (!e->is_given && !engine_has_room(d->engine))
        result = send(d, wish, e);
    if (result == FORWARD_TAKEN)
        return PLACEMENT_ELSEWHERE;
    if (wish->request->is_async && !keep(d, http, wish, e, reply))
        return PLACEMENT_FAILED;
    return result == FORWARD_DOUBT ? PLACEMENT_DOUBTFUL : PLACEMENT_HERE;
}
