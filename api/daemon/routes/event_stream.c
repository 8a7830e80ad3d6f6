/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/event_stream.h"

#include "api/daemon/terms/limits.h"
#include "api/json/json_walk.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_CHUNK    8192u
#define HEARTBEAT_NS 15000000000ull
#define EVENT_MAX    (8u * LOG_CHUNK)
#define KEPT         "the result is kept: read the answers that wait, then ask for it"

static int add_status(struct buf *out, const char *id, const char *status)
{
    return buf_printf(out,
                      "event: status\ndata: {\"execution_id\":\"%s\",\"status\":\"%s\"}\n\n",
                      id, status);
}

static int add_error(struct buf *out, const char *code, const char *why)
{
    (void)buf_printf(out, "event: error\ndata: {\"error\":\"%s\",\"message\":", code);
    (void)json_append_cstr(out, why);
    (void)buf_append(out, "}\n\n", 3);
    return out->error;
}

static const char *name_of(enum guest_stream stream)
{
    return stream == GUEST_STDERR ? "stderr" : "stdout";
}

/* Adds a stream as one event; nothing for an empty one. */
static void add_stored_log(struct buf *out, struct json_slice result, enum guest_stream stream)
{
    struct json_slice text;

    if (!json_find(result, name_of(stream), &text) || json_slice_is(text, "\"\""))
        return;
    (void)buf_printf(out, "event: %s\ndata: {\"data\":", name_of(stream));
    (void)buf_append(out, text.data, text.len);
    (void)buf_append(out, "}\n\n", 3);
}

static int add_stored(struct buf *out, const struct registry_execution *row)
{
    struct json_slice result;
    int r = json_text_check(row->result, strcspn(row->result, "\n"), &result, NULL);

    if (r < 0)
        return r;
    add_stored_log(out, result, GUEST_STDOUT);
    add_stored_log(out, result, GUEST_STDERR);
    (void)buf_printf(out, "event: result\ndata: ");
    (void)buf_append(out, result.data, result.len);
    (void)buf_append(out, "\n\n", 2);
    return out->error;
}

static ssize_t give(struct buf *pending, char *data, size_t size)
{
    size_t n = pending->len < size ? pending->len : size;

    memcpy(data, pending->data, n);
    buf_consume(pending, n);
    return (ssize_t)n;
}

/* What another node runs: its end is waited for. */
struct elsewhere {
    struct ledger *ledger;
    struct held *held;
    uint64_t held_bytes;
    char tenant[TENANT_ID_SIZE];
    char id[EXECUTION_ID_SIZE];
    struct buf pending;
    bool finished;
};

/* What a result takes until its reader has it: as a text, and in events. */
static bool hold_elsewhere(struct elsewhere *s, const struct registry_execution *row)
{
    const uint64_t bytes = row->result ? 0 : 3 * row->result_bytes;
    uint64_t before;

    if (bytes > 0 &&
        held_add(s->held, s->tenant, HTTP_HELD_ANSWER, bytes, LIMIT_ANSWERS_BYTES, &before) < 0)
        return false;
    s->held_bytes = bytes;
    return true;
}

static int end_elsewhere(struct elsewhere *s, struct registry_execution *row)
{
    struct err err = {0};

    s->finished = true;
    if (!hold_elsewhere(s, row))
        return add_error(&s->pending, "overloaded", KEPT);
    if (ledger_fetch_result(s->ledger, row, &err) < 0 || !row->result)
        return add_error(&s->pending, "object_unavailable",
                         err.code ? err.message : "its result was lost");
    return add_stored(&s->pending, row);
}

/* Waits for its end. What cannot be known any more ends the stream. */
static int next_elsewhere(struct elsewhere *s)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};
    struct err err = {0};
    int r = ledger_wait(s->ledger, s->tenant, s->id, clock_monotonic_ns() + HEARTBEAT_NS, &row,
                        &err);

    if (r < 0)
        return r;
    return row.finished_ns == 0 ? buf_append(&s->pending, ":\n\n", 3) : end_elsewhere(s, &row);
}

static ssize_t read_elsewhere(void *ctx, char *data, size_t size)
{
    struct elsewhere *s = ctx;

    while (s->pending.len == 0) {
        buf_clear(&s->pending);
        if (s->finished || next_elsewhere(s) < 0)
            return -1;
    }
    return give(&s->pending, data, size);
}

static struct elsewhere elsewhere_init(struct ledger *ledger, struct held *held,
                                       const char *tenant, const char *id)
{
    struct elsewhere s = {.ledger = ledger, .held = held, .pending = buf_init(SIZE_MAX / 2)};

    (void)snprintf(s.tenant, sizeof(s.tenant), "%s", tenant);
    (void)snprintf(s.id, sizeof(s.id), "%s", id);
    return s;
}

static void elsewhere_finish(struct elsewhere *s)
{
    if (s->held_bytes > 0)
        held_remove(s->held, s->tenant, HTTP_HELD_ANSWER, s->held_bytes);
    buf_finish(&s->pending);
}

static void release_elsewhere(void *ctx)
{
    elsewhere_finish(ctx);
    free(ctx);
}

struct event_stream {
    struct execution *e;
    struct held *held;
    uint64_t held_bytes;
    struct execution_cursor cursor;
    struct utf8_tail tails[2]; /* by enum guest_stream */
    struct buf pending;        /* an event on its way out */
    size_t result_at;          /* bytes of the result already given */
    struct ledger *ledger;
    bool is_moved;
    struct elsewhere rest; /* once it was */
    bool greeted;
    bool result_begun;
    bool finished;
};

/* Adds an event with bytes of a stream; nothing when they only begin a character. */
static int add_log(struct event_stream *s, enum guest_stream stream, const void *data,
                   size_t len, bool end)
{
    _cleanup_buf_ struct buf text = buf_init(EVENT_MAX);
    int r = utf8_repair(&s->tails[stream], data, len, end, &text);

    if (r < 0 || text.len == 0)
        return r;
    (void)buf_printf(&s->pending, "event: %s\ndata: {\"data\":", name_of(stream));
    (void)json_append_string(&s->pending, text.data, text.len);
    (void)buf_append(&s->pending, "}\n\n", 3);
    return s->pending.error;
}

/* A large result takes room until its reader has it. False where that is too much. */
static bool hold_result(struct event_stream *s)
{
    uint64_t before;

    if (s->e->result_fd < 0)
        return true;
    if (held_add(s->held, s->e->tenant, HTTP_HELD_ANSWER, s->e->result_len, LIMIT_ANSWERS_BYTES,
                 &before) < 0)
        return false;
    s->held_bytes = s->e->result_len;
    return true;
}

static int end_logs(struct event_stream *s)
{
    int r = add_log(s, GUEST_STDOUT, "", 0, true);

    return r < 0 ? r : add_log(s, GUEST_STDERR, "", 0, true);
}

static int begin_result(struct event_stream *s)
{
    const char *code = "internal_error", *why = s->e->lost;
    int r = end_logs(s);

    s->result_begun = true;
    if (r < 0)
        return r;
    if (!*why && hold_result(s))
        return buf_printf(&s->pending, "event: result\ndata: ");
    if (!*why) {
        code = "overloaded";
        why = KEPT;
    }
    s->finished = true;
    return add_error(&s->pending, code, why);
}

/* Puts the next event into pending; the result itself is read from where it is. */
static int next_event(struct event_stream *s)
{
    uint8_t data[LOG_CHUNK];
    enum guest_stream stream = GUEST_STDOUT;
    size_t len = 0;

    if (!s->greeted) {
        s->greeted = true;
        return add_status(&s->pending, s->e->id, "accepted");
    }
    switch (execution_next(s->e, &s->cursor, clock_monotonic_ns() + HEARTBEAT_NS, &stream, data,
                           sizeof(data), &len)) {
    case EXECUTION_NOTHING:
        return buf_append(&s->pending, ":\n\n", 3);
    case EXECUTION_STATE:
        return add_status(&s->pending, s->e->id, "running");
    case EXECUTION_LOG:
        return add_log(s, stream, data, len, false);
    case EXECUTION_RESULT:
        return begin_result(s);
    case EXECUTION_GONE:
        s->is_moved = true;
        s->rest = elsewhere_init(s->ledger, s->held, s->e->tenant, s->e->id);
        break;
    }
    return 0;
}

/* Bytes of the result, which is longer than what was given of it. */
static ssize_t read_result(struct event_stream *s, char *data, size_t size)
{
    size_t left = s->e->result_len - 1 - s->result_at, n = left < size ? left : size;

    if (execution_read_result(s->e, s->result_at, data, n) < 0)
        return -1;
    s->result_at += n;
    return (ssize_t)n;
}

static ssize_t read_events(void *ctx, char *data, size_t size)
{
    struct event_stream *s = ctx;

    for (;;) {
        if (s->pending.len > 0)
            return give(&s->pending, data, size);
        buf_clear(&s->pending);
        if (s->finished)
            return -1;
        if (s->is_moved)
            return read_elsewhere(&s->rest, data, size);
        if (!s->result_begun) {
            if (next_event(s) < 0)
                return -1;
            continue;
        }
        /* Without the end of its line, which the event brings. */
        if (s->result_at < s->e->result_len - 1)
            return read_result(s, data, size);
        if (buf_append(&s->pending, "\n\n", 2) < 0)
            return -1;
        s->finished = true;
    }
}

static void release(void *ctx)
{
    struct event_stream *s = ctx;

    if (s->held_bytes > 0)
        held_remove(s->held, s->e->tenant, HTTP_HELD_ANSWER, s->held_bytes);
    if (s->is_moved)
        elsewhere_finish(&s->rest);
    execution_unref(s->e);
    buf_finish(&s->pending);
    free(s);
}

void event_stream_reply(struct execution *e, struct ledger *ledger, struct held *held,
                        struct http_reply *reply)
{
    struct event_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        execution_unref(e);
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    s->e = e;
    s->ledger = ledger;
    s->held = held;
    s->pending = buf_init(2 * EVENT_MAX + 4096);
    reply->status = 200;
    reply->content_type = "text/event-stream";
    reply->read = read_events;
    reply->release = release;
    reply->stream_ctx = s;
}

void event_stream_reply_stored(const struct registry_execution *row, struct http_reply *reply)
{
    struct buf body = buf_init(SIZE_MAX / 2);

    if (!row->result || add_status(&body, row->id, "accepted") < 0 ||
        add_stored(&body, row) < 0) {
        buf_finish(&body);
        http_reply_error(reply, 500, "internal_error", "cannot read the result of %s", row->id);
        return;
    }
    http_reply_empty(reply, 200);
    reply->content_type = "text/event-stream";
    reply->body = body;
}

void event_stream_reply_elsewhere(struct ledger *ledger, struct held *held,
                                  const struct registry_execution *row,
                                  struct http_reply *reply)
{
    struct elsewhere *s = calloc(1, sizeof(*s));

    if (!s) {
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    *s = elsewhere_init(ledger, held, row->tenant, row->id);
    (void)add_status(&s->pending, s->id, "accepted");
    reply->status = 200;
    reply->content_type = "text/event-stream";
    reply->read = read_elsewhere;
    reply->release = release_elsewhere;
    reply->stream_ctx = s;
}
