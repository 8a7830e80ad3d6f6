/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/execution_reply.h"

#include "api/daemon/routes/event_stream.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/lookup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

#define WAIT_SLICE_NS (30 * NS_PER_SECOND)

/* Says where it is, also where the answer itself is too much now. */
static void say_where(struct http_reply *reply, const char *id)
{
    (void)snprintf(reply->location, sizeof(reply->location), "/v1/executions/%s", id);
}

static bool read_result(const struct execution *e, struct buf *body, struct http_reply *reply)
{
    if (buf_reserve(body, e->result_len) < 0 ||
        execution_read_result(e, 0, body->data, e->result_len) < 0)
        return http_reply_error(reply, 500, "internal_error", "cannot read the result of %s",
                                e->id);
    body->len = e->result_len;
    return true;
}

static void reply_result(struct daemon *d, struct http_request *http, struct http_reply *reply,
                         struct execution *e)
{
    _cleanup_buf_ struct buf body = buf_init(SIZE_MAX / 2);

    if (e->lost[0]) {
        http_reply_error(reply, 500, "internal_error",
                         "execution %s ended, but its result could not be stored: %s", e->id,
                         e->lost);
        return;
    }
    if (http_request_hold_answer(http, e->result_len) && read_result(e, &body, reply))
        daemon_reply_result(d, http, reply, &body);
    say_where(reply, e->id);
}

void execution_reply_status(struct http_reply *reply, const char *id, const char *status)
{
    struct buf body = buf_init(256);

    (void)buf_printf(&body, "{\"execution_id\":\"%s\",\"status\":\"%s\"}\n", id, status);
    http_reply_json(reply, 202, &body);
}

static void reply_accepted(struct http_reply *reply, const char *id, const char *status)
{
    execution_reply_status(reply, id, status);
    say_where(reply, id);
}

/* Answers with a stored result in the way that was asked for. */
static void reply_stored(struct daemon *d, struct http_request *http, struct http_reply *reply,
                         struct registry_execution *row, bool is_async)
{
    if (is_async)
        reply_accepted(reply, row->id, row->status);
    else if (http->wants_events && lookup_is_elsewhere(row))
        event_stream_reply_elsewhere(d, row, reply);
    else if (http->wants_events)
        event_stream_reply_stored(d, http, row, reply);
    else if (!row->result)
        http_reply_error(reply, 500, "internal_error", "the result of %s was lost", row->id);
    else
        lookup_reply_result(d, http, row, reply);
}

/* Waits for what another node has begun under the same key, as lookup_result. False: *reply
 * says why not. */
static bool wait_elsewhere(struct daemon *d, struct http_request *http,
                           struct registry_execution *row, struct turn *turn,
                           struct http_reply *reply)
{
    char id[EXECUTION_ID_SIZE];
    struct err err = {0};
    int r = 0;

    (void)snprintf(id, sizeof(id), "%s", row->id);
    while (r == 0 && lookup_is_elsewhere(row)) {
        registry_execution_finish(row);
        r = ledger_wait(d->ledger, http->caller.tenant, id,
                        clock_monotonic_ns() + WAIT_SLICE_NS, row, &err);
    }
    return r < 0 ? failure_of(reply, r, "execution", id, &err)
                 : lookup_result(d, http, row, turn, reply);
}

/* Another node has it. */
static void reply_moved(struct daemon *d, struct http_request *http, struct http_reply *reply,
                        const struct execution *e)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};

    if (lookup_row(d, e->tenant, e->id, &row, reply))
        execution_reply_row(d, http, reply, &row, false);
}

void execution_reply(struct daemon *d, struct http_request *http, struct http_reply *reply,
                     struct execution *e, bool is_async)
{
    if (http->wants_events && !is_async) {
        event_stream_reply(d, e, reply);
        return;
    }
    if (is_async)
        reply_accepted(reply, e->id, "accepted");
    else if (execution_wait(e))
        reply_result(d, http, reply, e);
    else
        reply_moved(d, http, reply, e);
    execution_unref(e);
}

void execution_reply_row(struct daemon *d, struct http_request *http, struct http_reply *reply,
                         struct registry_execution *row, bool is_async)
{
    _cleanup_turn_ struct turn turn = {0};
    char id[EXECUTION_ID_SIZE];

    (void)snprintf(id, sizeof(id), "%s", row->id);
    if (is_async || http->wants_events || wait_elsewhere(d, http, row, &turn, reply))
        reply_stored(d, http, reply, row, is_async);
    say_where(reply, id);
}
