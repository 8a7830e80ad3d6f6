/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/event_stream.h"

#include "api/daemon/callers/held.h"
#include "api/daemon/routes/live.h"
#include "api/daemon/routes/lookup.h"
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
#define UTF8_GROWS   3u              /* by repairs */
#define PAUSE_NS     NS_PER_SECOND   /* until one is asked again that says nothing at once */
#define REST_NS      (2 * NS_PER_MS) /* between two asks of all who follow what is elsewhere */
#define TOGETHER     (8u * 1024u)    /* events of a log that there are at once */
#define COUNTED      (256u * 1024u)  /* what takes more room counts as held */
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

/* Adds bytes of a stream, which are UTF-8, as one event. */
static void add_text(struct buf *out, enum guest_stream stream, const void *text, size_t len)
{
    (void)buf_printf(out, "event: %s\ndata: {\"data\":", name_of(stream));
    (void)json_append_string(out, text, len);
    (void)buf_append(out, "}\n\n", 3);
}

/* Adds what a stored result has of a stream behind what was given of it, as one event; nothing
   where that is all. */
static int add_stored_log(struct buf *out, struct json_slice result, enum guest_stream stream,
                          size_t given)
{
    _cleanup_buf_ struct buf text = buf_init(UTF8_GROWS * LIMIT_LOG_BYTES);
    struct json_slice value;

    if (!json_find(result, name_of(stream), &value) || json_slice_is(value, "\"\""))
        return 0;
    if (given == 0) {
        (void)buf_printf(out, "event: %s\ndata: {\"data\":", name_of(stream));
        (void)buf_append(out, value.data, value.len);
        return buf_append(out, "}\n\n", 3);
    }
    if (json_append_decoded(&text, value) < 0)
        return -EINVAL;
    if (text.len > given)
        add_text(out, stream, text.data + given, text.len - given);
    return out->error;
}

/* given: how much of the streams' texts is known already, by enum guest_stream. */
static int add_stored(struct buf *out, const struct registry_execution *row,
                      const size_t given[2])
{
    struct json_slice result;

    if (json_text_check(row->result, strcspn(row->result, "\n"), &result, NULL) < 0 ||
        add_stored_log(out, result, GUEST_STDOUT, given[GUEST_STDOUT]) < 0 ||
        add_stored_log(out, result, GUEST_STDERR, given[GUEST_STDERR]) < 0)
        return -EINVAL;
    (void)buf_printf(out, "event: result\ndata: ");
    (void)buf_append(out, result.data, result.len);
    (void)buf_append(out, "\n\n", 2);
    return out->error;
}

struct event_stream {
    struct daemon *daemon;
    char tenant[TENANT_ID_SIZE];
    char id[EXECUTION_ID_SIZE];
    struct execution *e;            /* a reference while it is here, else NULL */
    struct execution_cursor cursor; /* elsewhere, of it only log_at and told_ran count */
    struct live_copy copy;          /* what the node said last that has it */
    size_t piece_at;                /* in that */
    struct live_piece piece;        /* the rest of one */
    uint64_t held_bytes;
    struct utf8_tail tails[2]; /* by enum guest_stream, as what follows */
    size_t given[2];           /* bytes of texts */
    struct buf pending;        /* events on their way out, of which */
    size_t given_at;           /* so many bytes are out */
    uint64_t beat_ns;          /* monotonic: when something has to be given */
    size_t result_at;          /* bytes of the result already given */
    bool is_elsewhere;         /* counted as that */
    bool greeted;
    bool has_ended; /* as far as it knows, and its log was counted */
    bool result_begun;
    bool finished;
};

static ssize_t give(struct event_stream *s, char *data, size_t size)
{
    size_t left = s->pending.len - s->given_at, n = left < size ? left : size;

    memcpy(data, s->pending.data + s->given_at, n);
    s->given_at += n;
    return (ssize_t)n;
}

/* Adds an event with bytes of a stream; nothing when they only begin a character. */
static int add_log(struct event_stream *s, enum guest_stream stream, const void *data,
                   size_t len, bool end)
{
    _cleanup_buf_ struct buf text = buf_init(EVENT_MAX);
    int r = utf8_repair(&s->tails[stream], data, len, end, &text);

    if (r < 0 || text.len == 0)
        return r;
    s->given[stream] += text.len;
    add_text(&s->pending, stream, text.data, text.len);
    return s->pending.error;
}

/* So many bytes more take room until the reader has all. False: that is too much. */
static bool hold(struct event_stream *s, uint64_t bytes)
{
    uint64_t before;

    if (bytes > 0 && held_add(s->daemon->held, s->tenant, HTTP_HELD_ANSWER, bytes,
                              LIMIT_ANSWERS_BYTES, &before) < 0)
        return false;
    s->held_bytes += bytes;
    return true;
}

static bool hold_large(struct event_stream *s, uint64_t bytes)
{
    return bytes <= COUNTED || hold(s, bytes);
}

static int end_as_too_much(struct event_stream *s)
{
    s->finished = true;
    return add_error(&s->pending, "overloaded", KEPT);
}

/* Its row has all that is left to say. It takes room as a text, and in events. */
static int end_elsewhere(struct event_stream *s, struct registry_execution *row)
{
    struct err err = {0};

    s->finished = true;
    if (!hold_large(s, 3 * row->result_bytes))
        return end_as_too_much(s);
    if (ledger_read_result(s->daemon->registry, s->daemon->objects, row, &err) < 0 ||
        !row->result)
        return add_error(&s->pending, "object_unavailable",
                         err.code ? err.message : "its result was lost");
    return add_stored(&s->pending, row, s->given);
}

/* Until it has ended, for up to so long. As ledger_wait. */
static int await_end(struct event_stream *s, uint64_t ns, struct registry_execution *ret_row)
{
    struct err ignored = {0};

    return ledger_wait(s->daemon->ledger, s->tenant, s->id, clock_monotonic_ns() + ns, ret_row,
                       &ignored);
}

static int pause_elsewhere(struct event_stream *s, uint64_t ns)
{
    _cleanup_registry_execution_ struct registry_execution unused = {0};

    return await_end(s, ns, &unused);
}

/* Counts it as one of what other nodes have, or not. */
static void set_elsewhere(struct event_stream *s, bool is_elsewhere)
{
    if (s->is_elsewhere == is_elsewhere)
        return;
    s->is_elsewhere = is_elsewhere;
    (void)__atomic_add_fetch(&s->daemon->n_followed, is_elsewhere ? 1u : -1u, __ATOMIC_RELAXED);
}

/* It is this node's own: between its row and its place in the queue for microseconds. */
static int come_here(struct event_stream *s)
{
    unsigned tries = 0;

    while (!s->e && clock_try_again(&tries))
        s->e = engine_find(s->daemon->engine, s->tenant, s->id);
    if (s->e) {
        set_elsewhere(s, false);
        execution_seek(s->e, s->cursor.log_at, &s->cursor);
        return 0;
    }
    s->finished = true;
    return add_error(&s->pending, "internal_error", "its result was lost");
}

static int ask_owner(struct event_stream *s, const struct registry_execution *row)
{
    struct live_ask ask = {.log_at = (uint32_t)s->cursor.log_at,
                           .wait_ms = LIVE_WAIT_MAX_MS,
                           .is_begun = s->cursor.told_ran};
    struct err ignored = {0};

    live_copy_finish(&s->copy);
    s->piece_at = 0;
    return live_ask_owner(s->daemon, row, &ask, &s->copy, &ignored);
}

/* As execution_rest(), of all streams of what other nodes have. */
static void rest_elsewhere(struct event_stream *s)
{
    const uint64_t ns = REST_NS * __atomic_load_n(&s->daemon->n_followed, __ATOMIC_RELAXED);

    s->cursor.rests_ns = clock_monotonic_ns() + (ns < PAUSE_NS ? ns : PAUSE_NS);
}

/* Asks the node that has it for news. Who says nothing at once is not asked again at once. */
static int hear_owner(struct event_stream *s, const struct registry_execution *row)
{
    const struct live_answer *answer = &s->copy.answer;
    uint64_t asked_ns = clock_monotonic_ns();

    if (asked_ns < s->cursor.rests_ns)
        return pause_elsewhere(s, s->cursor.rests_ns - asked_ns);
    if (ask_owner(s, row) < 0)
        return pause_elsewhere(s, PAUSE_NS);
    s->cursor.log_at += answer->log_len;
    if (answer->log_len < LIVE_LOG_MAX / 2)
        rest_elsewhere(s);
    if (!s->cursor.told_ran && (answer->state == LIVE_RUNS || answer->log_len > 0)) {
        s->cursor.told_ran = true;
        return add_status(&s->pending, s->id, "running");
    }
    if (answer->log_len > 0 || clock_monotonic_ns() - asked_ns > PAUSE_NS / 2)
        return 0;
    return pause_elsewhere(s, PAUSE_NS);
}

/* What another node has: its log comes from there, its end with its row. */
static int next_elsewhere(struct event_stream *s)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};
    size_t n;
    int r;

    if (s->piece.len > 0 || live_next_piece(&s->copy.answer, &s->piece_at, &s->piece)) {
        n = s->piece.len < LOG_CHUNK ? s->piece.len : LOG_CHUNK;
        s->piece.data += n;
        s->piece.len -= n;
        return add_log(s, s->piece.is_stderr ? GUEST_STDERR : GUEST_STDOUT, s->piece.data - n,
                       n, false);
    }
    if (clock_monotonic_ns() >= s->beat_ns)
        return buf_append(&s->pending, ":\n\n", 3);
    r = await_end(s, 0, &row);
    if (r < 0)
        return r;
    if (row.finished_ns > 0)
        return end_elsewhere(s, &row);
    return lookup_is_elsewhere(&row) ? hear_owner(s, &row) : come_here(s);
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
    if (!*why && hold(s, s->e->result_fd < 0 ? 0 : s->e->result_len))
        return buf_printf(&s->pending, "event: result\ndata: ");
    if (!*why) {
        code = "overloaded";
        why = KEPT;
    }
    s->finished = true;
    return add_error(&s->pending, code, why);
}

/* A reader keeps what has ended in memory until it has all of it. False: that is too much. */
static bool hold_ended(struct event_stream *s)
{
    if (s->has_ended || execution_get_state(s->e) != EXECUTION_ENDED)
        return true;
    s->has_ended = true;
    return hold_large(s, execution_log_memory(s->e));
}

/*
 * These bytes, and what else there is already: one write of each byte would cost too much. Who
 * has all of it lets more come together.
 */
static int add_logs(struct event_stream *s, enum guest_stream stream, uint8_t data[LOG_CHUNK],
                    size_t len)
{
    int r = add_log(s, stream, data, len, false);

    while (r == 0 && s->pending.len < TOGETHER) {
        if (execution_next(s->e, &s->cursor, 0, &stream, data, LOG_CHUNK, &len) !=
            EXECUTION_LOG) {
            execution_rest(s->e, &s->cursor);
            return 0;
        }
        r = add_log(s, stream, data, len, false);
    }
    return r;
}

/* The result itself is read from where it is. */
static int next_here(struct event_stream *s)
{
    uint8_t data[LOG_CHUNK];
    enum guest_stream stream = GUEST_STDOUT;
    size_t len = 0;

    if (!hold_ended(s))
        return end_as_too_much(s);
    switch (execution_next(s->e, &s->cursor, s->beat_ns, &stream, data, sizeof(data), &len)) {
    case EXECUTION_NOTHING:
        return buf_append(&s->pending, ":\n\n", 3);
    case EXECUTION_STATE:
        return add_status(&s->pending, s->id, "running");
    case EXECUTION_LOG:
        return add_logs(s, stream, data, len);
    case EXECUTION_RESULT:
        return begin_result(s);
    case EXECUTION_GONE:
        execution_unref(s->e);
        s->e = NULL;
        set_elsewhere(s, true);
        break;
    }
    return 0;
}

/* Puts the next event into pending, if there is one. */
static int next_event(struct event_stream *s)
{
    if (s->greeted)
        return s->e ? next_here(s) : next_elsewhere(s);
    s->greeted = true;
    return add_status(&s->pending, s->id, "accepted");
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

    s->beat_ns = clock_monotonic_ns() + HEARTBEAT_NS;
    for (;;) {
        if (s->given_at < s->pending.len)
            return give(s, data, size);
        buf_clear(&s->pending);
        s->given_at = 0;
        if (s->finished)
            return -1;
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
        held_remove(s->daemon->held, s->tenant, HTTP_HELD_ANSWER, s->held_bytes);
    set_elsewhere(s, false);
    execution_unref(s->e);
    live_copy_finish(&s->copy);
    buf_finish(&s->pending);
    free(s);
}

/* e is taken over; NULL: it is elsewhere. */
static void reply_with(struct daemon *d, const char *tenant, const char *id,
                       struct execution *e, struct http_reply *reply)
{
    struct event_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        execution_unref(e);
        http_reply_error(reply, 500, "internal_error", "out of memory");
        return;
    }
    s->daemon = d;
    s->e = e;
    set_elsewhere(s, !e);
    (void)snprintf(s->tenant, sizeof(s->tenant), "%s", tenant);
    (void)snprintf(s->id, sizeof(s->id), "%s", id);
    s->pending = buf_init(SIZE_MAX / 2);
    reply->status = 200;
    reply->content_type = "text/event-stream";
    reply->read = read_events;
    reply->release = release;
    reply->stream_ctx = s;
}

void event_stream_reply(struct daemon *d, struct execution *e, struct http_reply *reply)
{
    reply_with(d, e->tenant, e->id, e, reply);
}

void event_stream_reply_elsewhere(struct daemon *d, const struct registry_execution *row,
                                  struct http_reply *reply)
{
    reply_with(d, row->tenant, row->id, NULL, reply);
}

void event_stream_reply_stored(struct daemon *d, struct http_request *http,
                               struct registry_execution *row, struct http_reply *reply)
{
    static const size_t nothing[2];
    struct buf body = buf_init(SIZE_MAX / 2);
    _cleanup_turn_ struct turn turn = {0};

    if (!lookup_result(d, http, row, &turn, reply))
        return;
    if (!row->result || add_status(&body, row->id, "accepted") < 0 ||
        add_stored(&body, row, nothing) < 0) {
        buf_finish(&body);
        http_reply_error(reply, 500, "internal_error", "cannot read the result of %s", row->id);
        return;
    }
    http_reply_empty(reply, 200);
    reply->content_type = "text/event-stream";
    reply->body = body;
}
