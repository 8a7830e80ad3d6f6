/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of executions: the list, one of them, its log, its events, its files. */
#include "api/daemon/engine/result.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/event_stream.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/live.h"
#include "api/daemon/routes/lookup.h"
#include "api/daemon/routes/page.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_walk.h"
#include "api/json/json_write.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_BYTES_MAX (2 * LIMIT_MIB)

enum { QUERY_LIMIT, QUERY_CURSOR, QUERY_SKILL, QUERY_STATUS };

/* Which page the query asks for. False when *reply says what is wrong with it. */
static bool parse_query(const struct http_request *request, struct registry_page *page,
                        struct page *place, struct http_reply *reply)
{
    const char *status = request->query[QUERY_STATUS];
    enum result_status i = RESULT_SUCCESS;

    if (!page_parse(request->query[QUERY_LIMIT], request->query[QUERY_CURSOR], place, reply))
        return false;
    page->max = place->max;
    page->after_ns = place->after;
    page->after_id = place->has_place ? place->after_id : NULL;
    while (status && i <= RESULT_RUNNING && strcmp(status, result_status_name(i)) != 0)
        i++;
    if (i > RESULT_RUNNING)
        return http_reply_error(reply, 400, "bad_request", "there is no status %.32s", status);
    /* The registry does not tell what waits from what runs, and from what was lost. */
    page->status = i == RESULT_RUNNING ? "accepted" : status;
    page->or_status = i == RESULT_FAILED ? "accepted" : NULL;
    page->skill = request->query[QUERY_SKILL];
    return true;
}

/* What the registry says of a row by now, in place of what it said. */
static void read_again(struct daemon *d, struct registry_execution *row)
{
    struct registry_execution now = {0};
    struct err ignored = {0};

    if (registry_execution_get(d->registry, row->tenant, row->id, &now, &ignored) < 0)
        return;
    registry_execution_finish(row);
    *row = now;
}

/*
 * The status of a row, with what the engine knows of one that has not ended. One that nobody
 * has is between its row and its place in the queue for microseconds, or its result was lost.
 */
static const char *status_of(struct daemon *d, struct registry_execution *row, unsigned *tries)
{
    bool again = true;

    while (row->finished_ns == 0 && !lookup_is_elsewhere(row)) {
        struct execution *e = engine_find(d->engine, row->tenant, row->id);
        bool is_here = e != NULL;
        bool running = e && execution_get_state(e) != EXECUTION_ACCEPTED;

        execution_unref(e);
        if (is_here)
            return running ? result_status_name(RESULT_RUNNING) : row->status;
        if (!again)
            return result_status_name(RESULT_FAILED);
        read_again(d, row);
        again = row->finished_ns > 0 || lookup_is_elsewhere(row) || clock_try_again(tries);
    }
    return row->status;
}

static void write_row(struct json_writer *w, const struct registry_execution *row,
                      const char *status)
{
    const struct result_skill skill = {row->skill_name, row->skill_version, row->skill_digest,
                                       NULL};
    uint64_t end_ns = row->finished_ns ? row->finished_ns : clock_realtime_ns();
    json_write_open(w, NULL, '{');
    json_write_string(w, "execution_id", row->id);
    json_write_string(w, "status", status);
    result_write_skill(w, &skill);
    json_write_time(w, "created_at", row->accepted_ns);
    json_write_time(w, "finished_at", row->finished_ns);
    json_write_number(w, "duration_ms",
                      end_ns > row->accepted_ns ? (end_ns - row->accepted_ns) / NS_PER_MS : 0);
    json_write_close(w, '}');
}

static int read_page(struct daemon *d, const char *tenant, const struct registry_page *page,
                     struct registry_execution *rows, size_t *ret_n, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    int r = turn_take(&turn, d, TURN_ROWS, tenant, err);

    return r < 0 ? r : registry_execution_list(d->registry, tenant, page, rows, ret_n, err);
}

void route_execution_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *wanted = request->query[QUERY_STATUS];
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    struct registry_page page = {0};
    struct registry_execution rows[PAGE_ROWS_MAX];
    struct page place;
    struct err err = {0};
    unsigned tries = 0;
    size_t n = 0;
    int r;

    if (!parse_query(request, &page, &place, reply))
        return;
    r = read_page(d, request->caller.tenant, &page, rows, &n, &err);
    page_open(&w, "executions");
    for (size_t i = 0; i < n; i++) {
        const char *status = status_of(d, &rows[i], &tries);

        if (!wanted || strcmp(status, wanted) == 0)
            write_row(&w, &rows[i], status);
        page_count(&place, rows[i].accepted_ns, rows[i].id);
        registry_execution_finish(&rows[i]);
    }
    page_reply(reply, &w, &place, r, &err);
}

/* What is known of an execution that has no result. */
struct unfinished {
    bool is_live; /* it is queued or runs */
    bool runs;
    const char *image; /* NULL: none was chosen */
    const char *image_reason;
};

static struct unfinished unfinished_here(struct execution *e)
{
    return (struct unfinished){
        .is_live = true,
        .runs = execution_get_state(e) != EXECUTION_ACCEPTED,
        .image = execution_image(e),
        .image_reason = execution_image(e) ? e->image.why : NULL,
    };
}

static struct unfinished unfinished_elsewhere(const struct live *live)
{
    const struct live_answer *answer = &live->copy.answer;
    bool has_image = answer->image[0] != '\0';

    return (struct unfinished){
        .is_live = lookup_is_elsewhere(&live->row),
        .runs = answer->state == LIVE_RUNS,
        .image = has_image ? answer->image : NULL,
        .image_reason = has_image ? answer->image_reason : NULL,
    };
}

/*
 * Whether its end is still being told: the others of a cluster hear of it before a caller, who
 * may go on at any of them.
 */
static bool is_told_now(struct execution *e)
{
    return e && execution_get_state(e) < EXECUTION_ENDED;
}

/* The shape of a result, for an execution that has none. */
static void reply_unfinished(struct http_reply *reply, const struct registry_execution *row,
                             const struct unfinished *known)
{
    uint64_t now_ns = clock_realtime_ns();
    struct buf body;
    struct result result = {
        .execution_id = row->id,
        .status = known->runs ? RESULT_RUNNING : RESULT_ACCEPTED,
        .skill = {row->skill_name, row->skill_version, row->skill_digest, NULL},
        .image = known->image,
        .image_reason = known->image_reason,
        .duration_ns = now_ns > row->accepted_ns ? now_ns - row->accepted_ns : 0,
    };

    if (!known->is_live) {
        result.status = RESULT_FAILED;
        result.error = "the daemon stopped while this execution ran, or had no room to store "
                       "its result";
    }
    if (result_write(&result, &body) < 0)
        http_reply_error(reply, 500, "internal_error", "out of memory");
    else
        http_reply_json(reply, 200, &body);
}

void route_execution_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *tenant = request->caller.tenant, *id = request->params[0];
    _cleanup_live_ struct live live = {0};
    struct registry_execution *row = &live.row;
    _cleanup_turn_ struct turn turn = {0};
    struct unfinished known;

    if (!live_lookup(d, tenant, id, LIMIT_LOG_BYTES, &live, reply))
        return;
    known = live.e ? unfinished_here(live.e) : unfinished_elsewhere(&live);
    /* Read after the state: what ended in between has its result by now. */
    if ((live.e && !lookup_row(d, tenant, id, row, reply)) ||
        (!is_told_now(live.e) && !lookup_result(d, request, row, &turn, reply)))
        return;
    if (row->result)
        lookup_reply_result(d, request, row, reply);
    else
        reply_unfinished(reply, row, &known);
}

/* The text of a string member of a stored result. 0 or -errno. */
static int read_member(const char *result, const char *key, struct buf *out)
{
    struct json_slice object, value;
    int r = json_text_check(result, strlen(result), &object, NULL);

    if (r < 0)
        return r;
    return json_find(object, key, &value) ? json_append_decoded(out, value) : -ENOENT;
}

/* Of a large one there is three times as much, and more, until it is sent: by turns. */
static int copy_log(struct daemon *d, struct http_request *http, struct live *live,
                    struct buf *out, struct err *err)
{
    _cleanup_buf_ struct buf raw = buf_init(LIMIT_LOG_BYTES);
    _cleanup_turn_ struct turn turn = {0};
    struct utf8_tail tail = {0};
    bool is_large = live->e && execution_log_memory(live->e) > TURN_LOOK_BYTES;
    int r = is_large ? turn_take(&turn, d, TURN_LOOK, live->e->tenant, err) : 0;

    if (r < 0)
        return r;
    r = live->e ? execution_copy_log(live->e, &raw) : live_copy_log(d, http, live, &raw);
    return r < 0 ? r : utf8_repair(&tail, raw.data, raw.len, true, out);
}

void route_execution_logs(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_live_ struct live live = {0};
    _cleanup_turn_ struct turn turn = {0};
    struct buf text = buf_init(4 * LIMIT_LOG_BYTES);
    struct err err = {0};
    int r;

    if (!live_lookup(d, request->caller.tenant, request->params[0], 0, &live, reply) ||
        !lookup_result(d, request, &live.row, &turn, reply))
        return;
    r = live.row.result ? read_member(live.row.result, "logs", &text)
                        : copy_log(d, request, &live, &text, &err);
    if (r < 0) {
        buf_finish(&text);
        if (reply->status != 0)
            return;
        if (!err.code)
            (void)err_set_errno(&err, -r, "cannot read the log");
        (void)failure_reply(reply, r == -EBUSY ? r : -EIO, &err);
        return;
    }
    http_reply_empty(reply, 200);
    reply->content_type = "text/plain; charset=utf-8";
    reply->body = text;
}

void route_execution_events(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_execution_ struct registry_execution row = {0};
    struct execution *e;

    if (!lookup_execution(d, request->caller.tenant, request->params[0], &e, &row, reply))
        return;
    if (e)
        event_stream_reply(d, e, reply);
    else if (lookup_is_elsewhere(&row))
        event_stream_reply_elsewhere(d, &row, reply);
    else
        event_stream_reply_stored(d, request, &row, reply);
}
