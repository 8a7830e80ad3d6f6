/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ROOM_STEP (4ull * 1024 * 1024)
/* A body over its limit is read to its end, up to here, so that its sender hears why. */
#define DRAIN_MAX (64ull * 1024 * 1024)

/* True when the media type is this one, whatever its parameters. */
static bool is_type(const char *value, const char *type)
{
    size_t len = strlen(type);

    return strncasecmp(value, type, len) == 0 &&
           (value[len] == '\0' || value[len] == ';' || value[len] == ' ');
}

static bool type_fits(enum http_body body, const char *type)
{
    /* curl -d says x-www-form-urlencoded of any body. */
    static const char *const json[] = {"application/json", "text/json",
                                       "application/x-www-form-urlencoded", NULL};
    static const char *const archive[] = {"application/zip",
                                          "application/x-zip-compressed",
                                          "application/octet-stream",
                                          "application/x-tar",
                                          "application/gzip",
                                          "application/x-gzip",
                                          "application/zstd",
                                          "application/x-xz",
                                          NULL};

    if (body == HTTP_BODY_FILE)
        return true;
    if (!type)
        return body == HTTP_BODY_JSON;
    for (const char *const *t = body == HTTP_BODY_JSON ? json : archive; *t; t++) {
        if (is_type(type, *t))
            return true;
    }
    return false;
}

static bool refuse_size(struct http_exchange *x, uint64_t limit)
{
    return http_reply_error(&x->reply, 413, "too_large", "the body is larger than %llu MiB",
                            (unsigned long long)(limit / (1024 * 1024)));
}

enum http_place http_hold(struct http_exchange *x, enum http_held what, uint64_t bytes,
                          uint64_t already)
{
    const struct http_keeper *keeper = &x->config->keeper;

    if (!keeper->hold)
        return HTTP_PLACE_DISK;
    return keeper->hold(keeper->ctx, x->request.caller.tenant, what, bytes, already, &x->reply);
}

void http_release(struct http_exchange *x, enum http_held what, uint64_t *bytes)
{
    const struct http_keeper *keeper = &x->config->keeper;

    if (*bytes > 0 && keeper->release)
        keeper->release(keeper->ctx, x->request.caller.tenant, what, *bytes);
    *bytes = 0;
}

static enum http_held held_as(const struct http_exchange *x)
{
    return x->route->body == HTTP_BODY_FILE ? HTTP_HELD_FILE : HTTP_HELD_BODY;
}

/* Asks whether so many bytes like those of the body may be held. False: there is a reply. */
static bool hold(struct http_exchange *x, uint64_t bytes, uint64_t *held)
{
    if (http_hold(x, held_as(x), bytes, x->held + x->held_beside) == HTTP_PLACE_NONE)
        return false;
    *held += bytes;
    return true;
}

struct http_exchange *http_exchange_of(struct http_request *request)
{
    return (struct http_exchange *)((char *)request - offsetof(struct http_exchange, request));
}

void http_request_stored(struct http_request *request)
{
    struct http_exchange *x = http_exchange_of(request);

    http_release(x, held_as(x), &x->held);
}

bool http_request_hold(struct http_request *request, uint64_t bytes)
{
    struct http_exchange *x = http_exchange_of(request);

    return hold(x, bytes, &x->held_beside);
}

void http_request_shrink(struct http_request *request, uint64_t bytes)
{
    struct http_exchange *x = http_exchange_of(request);
    uint64_t gone = x->held_beside > bytes ? x->held_beside - bytes : 0;

    x->held_beside -= gone;
    http_release(x, held_as(x), &gone);
}

uint64_t http_request_hand_over(struct http_request *request, uint64_t bytes)
{
    struct http_exchange *x = http_exchange_of(request);
    uint64_t beside = bytes < x->held_beside ? bytes : x->held_beside;
    uint64_t body = bytes - beside < x->held ? bytes - beside : x->held;

    x->held_beside -= beside;
    x->held -= body;
    return beside + body;
}

/* Adds bytes to what is kept of the body. False: there is a reply. */
static bool keep(struct http_exchange *x, struct spool *spool, const char *data, size_t size)
{
    const struct http_keeper *keeper = &x->config->keeper;
    const uint64_t steps = spool->size / ROOM_STEP;
    int r;

    if (size > spool->max - spool->size)
        return refuse_size(x, spool->max);
    /* What was not asked for yet; few bytes stay in memory. */
    x->kept += size;
    if (x->kept > x->held && spool->size + size > SPOOL_MEMORY_MAX &&
        !hold(x, x->kept - x->held, &x->held))
        return false;
    r = spool_append(spool, data, size);
    if (r < 0)
        return http_reply_error(&x->reply, 500, "internal_error", "cannot keep the body: %s",
                                strerror(-r));
    return spool->size / ROOM_STEP == steps || !keeper->room ||
           keeper->room(keeper->ctx, &x->reply);
}

/* Copies a text, once. False without memory. */
static bool keep_text(char **at, const char *text)
{
    if (text && !*at)
        *at = strdup(text);
    return !text || *at;
}

static bool begin_part(void *ctx, const char *name, const char *file_name, const char *type)
{
    struct http_exchange *x = ctx;

    x->part = NULL;
    for (size_t i = 0; name && i < HTTP_PARTS_MAX; i++) {
        if (x->request.parts[i].name && strcmp(x->request.parts[i].name, name) == 0)
            x->part = &x->request.parts[i];
    }
    if (!x->part)
        return http_reply_error(&x->reply, 400, "bad_request", "unknown part \"%.64s\"",
                                name ? name : "");
    if (x->part->seen)
        return http_reply_error(&x->reply, 400, "bad_request", "the part \"%s\" comes twice",
                                name);
    if (!keep_text(&x->part->file_name, file_name) || !keep_text(&x->part->content_type, type))
        return http_reply_error(&x->reply, 500, "internal_error", "out of memory");
    x->part->seen = true;
    return true;
}

static bool keep_part(void *ctx, const char *data, size_t len)
{
    struct http_exchange *x = ctx;

    return keep(x, &x->part->content, data, len);
}

/* What a rule's max_bytes stands for. */
static uint64_t limit_of(const struct http_exchange *x, uint64_t max_bytes)
{
    return max_bytes == HTTP_BYTES_ARCHIVE ? x->config->archive_bytes : max_bytes;
}

static uint64_t body_limit(const struct http_exchange *x)
{
    uint64_t limit;

    if (!x->route)
        return 0;
    limit = limit_of(x, x->route->max_bytes);
    for (size_t i = 0; x->request.is_multipart && i < HTTP_PARTS_MAX; i++) {
        if (x->route->parts[i].name)
            limit += limit_of(x, x->route->parts[i].max_bytes) + HTTP_FORM_BUFFER;
    }
    return limit;
}

/* A form, or a body of a type that the route takes? */
static bool check_type(struct http_exchange *x)
{
    const struct http_form_events events = {begin_part, keep_part, x};
    const char *type = x->request.content_type;

    if (type && is_type(type, "multipart/form-data")) {
        x->request.is_multipart = true;
        x->form = http_form_create(type, &events);
        return x->form || http_reply_error(&x->reply, 400, "bad_request",
                                           "multipart/form-data without a usable boundary");
    }
    return type_fits(x->route->body, type) ||
           http_reply_error(&x->reply, 415, "unsupported_type", "%.100s is not taken here: %s",
                            type ? type : "a body without Content-Type",
                            x->route->body == HTTP_BODY_JSON
                                ? "application/json or multipart/form-data"
                                : "application/zip, application/octet-stream or "
                                  "multipart/form-data");
}

/*
 * Asks for a body's declared length before any of it is kept. Of a form some is not kept: what
 * is, is asked for as it comes.
 */
static bool hold_declared(struct http_exchange *x)
{
    uint64_t bytes = x->head->length;

    if (bytes > body_limit(x))
        return refuse_size(x, body_limit(x));
    if (x->form)
        bytes = bytes > HTTP_FORM_BUFFER ? bytes - HTTP_FORM_BUFFER : 0;
    return bytes <= SPOOL_MEMORY_MAX || hold(x, bytes, &x->held);
}

bool http_body_begin(struct http_exchange *x)
{
    const struct http_route *route = x->route;

    if (route->body == HTTP_BODY_NONE) {
        http_body_drain(x);
        return x->reply.status == 0;
    }
    x->request.content_type = http_head_find(x->head, "Content-Type", NULL);
    x->request.body = spool_init(x->config->tmp_fd, limit_of(x, route->max_bytes));
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        x->request.parts[i].name = route->parts[i].name;
        x->request.parts[i].content =
            spool_init(x->config->tmp_fd, limit_of(x, route->parts[i].max_bytes));
    }
    if (route->body == HTTP_BODY_FILE &&
        (spool_hash(&x->request.body) < 0 || spool_hash(&x->request.parts[0].content) < 0))
        return http_reply_error(&x->reply, 500, "internal_error", "out of memory");
    return check_type(x) && hold_declared(x);
}

void http_pace_add(struct http_pace *pace, unsigned body_ms, size_t bytes, uint64_t now_ns)
{
    pace->bytes += bytes;
    /* What it has brought buys no more time than that, however much it was. */
    if (pace->bytes >= (uint64_t)body_ms * HTTP_BODY_RATE / 1000)
        *pace = (struct http_pace){.since_ns = now_ns};
}

/* The body cannot be read on. */
static int fail(struct http_exchange *x, unsigned status, const char *code, const char *why)
{
    http_reply_error(&x->reply, status, code, "%s", why);
    x->must_close = true;
    return -1;
}

static int fail_late(struct http_exchange *x)
{
    return fail(x, 408, "timeout", "the request did not come in time");
}

/* When the body is late, if no more of it comes. */
static uint64_t late_ns(const struct http_exchange *x)
{
    return x->pace.since_ns + x->conn->conns->deadlines.body_ms * NS_PER_MS;
}

/* Waits for more input, where what was taken was. 0, or -1 with a reply. */
static int refill(struct http_exchange *x)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http_input *in = x->conn->in;
    struct pollfd pfd = {.fd = x->conn->fd, .events = POLLIN};
    ssize_t n;

    if (x->head->expects)
        (void)send(pfd.fd, go_on, sizeof(go_on) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    x->head->expects = false;
    in->len -= x->at - x->head->at;
    memmove(in->text + x->head->at, in->text + x->at, in->len - x->head->at);
    x->at = x->head->at;
    while ((n = http_conn_receive(x->conn)) == -EAGAIN) {
        if (clock_monotonic_ns() >= late_ns(x))
            return fail_late(x);
        (void)poll(&pfd, 1, clock_timeout_ms(late_ns(x)));
    }
    if (n <= 0)
        return fail(x, 400, "bad_request", "the body ends before it is whole");
    return 0;
}

ssize_t http_request_read(struct http_request *request, const char **ret)
{
    struct http_exchange *x = http_exchange_of(request);
    struct http_framing *f = &x->framing;
    const struct http_input *in = x->conn->in;
    size_t len = 0;

    while (!x->must_close) {
        ssize_t n = http_framing_skip(f, in->text + x->at, in->len - x->at);

        if (n < 0)
            return fail(x, 400, "bad_request", "these are no chunks");
        x->at += (size_t)n;
        len = in->len - x->at < f->left ? in->len - x->at : (size_t)f->left;
        if (len > 0 || f->done)
            break;
        (void)refill(x);
    }
    if (x->must_close)
        return -1;
    *ret = in->text + x->at;
    x->at += len;
    http_framing_take(f, len);
    if (x->conn->phase == HTTP_PHASE_UNWANTED)
        return clock_monotonic_ns() < late_ns(x) ? (ssize_t)len : fail_late(x);
    /* Lines around it do not count, or a body of lines alone would last for ever. */
    http_pace_add(&x->pace, x->conn->conns->deadlines.body_ms, len, clock_monotonic_ns());
    return (ssize_t)len;
}

static bool take_form(struct http_exchange *x, const char *data, size_t len)
{
    int r = http_form_feed(x->form, data, len);

    if (r < 0 && x->reply.status == 0)
        http_reply_error(&x->reply, r == -ENOMEM ? 500 : 400,
                         r == -ENOMEM ? "internal_error" : "bad_request",
                         r == -ENOMEM ? "out of memory" : "bad multipart/form-data");
    return r == 0;
}

bool http_request_receive(struct http_request *request)
{
    struct http_exchange *x = http_exchange_of(request);
    bool kept = true;
    const char *data;
    ssize_t n = 1;

    while (kept && (n = http_request_read(request, &data)) > 0)
        kept = x->form ? take_form(x, data, (size_t)n)
                       : keep(x, &x->request.body, data, (size_t)n);
    if (kept && n == 0 && x->form && !http_form_is_whole(x->form))
        http_reply_error(&x->reply, 400, "bad_request", "multipart/form-data without its end");
    return x->reply.status == 0;
}

void http_body_drain(struct http_exchange *x)
{
    const uint64_t max = DRAIN_MAX + body_limit(x);
    uint64_t drained = 0;
    const char *data;
    ssize_t n;

    if (x->framing.done || x->must_close)
        return;
    if (x->head->expects || x->head->length > max) {
        x->must_close = true;
        return;
    }
    http_conn_enter(x->conn, HTTP_PHASE_UNWANTED);
    x->pace.since_ns = clock_monotonic_ns();
    while (drained <= max && (n = http_request_read(&x->request, &data)) > 0)
        drained += (uint64_t)n;
    if (drained > max)
        (void)fail(x, 413, "too_large", "the body is too large");
    http_conn_enter(x->conn, HTTP_PHASE_WORK);
}

void http_body_finish(struct http_exchange *x)
{
    http_form_destroy(x->form);
    if (x->route) {
        http_release(x, held_as(x), &x->held);
        http_release(x, held_as(x), &x->held_beside);
    }
    spool_finish(&x->request.body);
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        spool_finish(&x->request.parts[i].content);
        free(x->request.parts[i].file_name);
        free(x->request.parts[i].content_type);
    }
}
