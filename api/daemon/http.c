/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http.h"

#include "api/daemon/json_text.h"
#include "api/daemon/listener.h"
#include "base/fd.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_SECONDS      60u
#define CONNECTIONS_MAX   1100u
#define CONNECTION_MEMORY (32u * 1024u)
#define THREAD_STACK      (512u * 1024u)
#define STREAM_BLOCK      (16u * 1024u)
#define FORM_BUFFER       (16u * 1024u)
#define FAREWELL_SECONDS  2
#define ERROR_BODY_MAX    8192u
/* A body over its limit is read to its end, up to here, so that its sender hears why. */
#define DRAIN_MAX (64ull * 1024 * 1024)

struct http_server {
    struct http_config config;
    struct MHD_Daemon *daemon;
    struct listener listener;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned exchanges; /* under the lock: requests that are not answered to their end */
};

/* One request on its way. */
struct exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    const struct http_route *route;
    struct http_request request;
    struct http_reply reply; /* status 0 until it is known */
    char allow[64];
    struct MHD_PostProcessor *form;
    uint64_t drained;
};

static struct http_reply empty_reply(void)
{
    return (struct http_reply){.body = buf_init(SIZE_MAX / 2), .file_fd = -1};
}

static void reply_finish(struct http_reply *reply)
{
    buf_finish(&reply->body);
    fd_close(&reply->file_fd);
    if (reply->release)
        reply->release(reply->stream_ctx);
    *reply = empty_reply();
}

void http_reply_empty(struct http_reply *reply, unsigned status)
{
    reply_finish(reply);
    reply->status = status;
}

void http_reply_json(struct http_reply *reply, unsigned status, struct buf *body)
{
    reply_finish(reply);
    reply->status = status;
    reply->content_type = "application/json";
    reply->body = *body;
    *body = buf_init(0);
}

void http_reply_error(struct http_reply *reply, unsigned status, const char *code,
                      const char *format, ...)
{
    struct buf body = buf_init(ERROR_BODY_MAX);
    char message[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (buf_printf(&body, "{\"error\":\"%s\",\"message\":", code) < 0 ||
        json_append_cstr(&body, message) < 0 || buf_append(&body, "}\n", 2) < 0)
        buf_clear(&body);
    http_reply_json(reply, status, &body);
}

/* Where the parameters of a path are. */
struct match {
    const char *at[HTTP_PARAMS_MAX];
    size_t len[HTTP_PARAMS_MAX];
    size_t n;
};

/* Compares a path with a route's. */
static bool match_path(const char *pattern, const char *path, struct match *ret)
{
    ret->n = 0;
    while (*pattern && *path) {
        if (*pattern == ':' || *pattern == '*') {
            size_t len = *pattern == ':' ? strcspn(path, "/") : strlen(path);

            if (len == 0 || ret->n == HTTP_PARAMS_MAX)
                return false;
            ret->at[ret->n] = path;
            ret->len[ret->n++] = len;
            path += len;
            pattern++;
            continue;
        }
        if (*pattern != *path)
            return false;
        pattern++;
        path++;
    }
    return *pattern == '\0' && *path == '\0';
}

static void set_params(struct exchange *x, const struct match *match)
{
    for (size_t i = 0; i < match->n; i++) {
        x->request.params[i] = strndup(match->at[i], match->len[i]);
        if (!x->request.params[i])
            http_reply_error(&x->reply, 500, "internal_error", "out of memory");
    }
    for (size_t i = 0; i < HTTP_QUERY_MAX && x->route->query[i]; i++)
        x->request.query[i] = MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND,
                                                          x->route->query[i]);
}

/* Finds the route, or replies 404 or 405. */
static void find_route(struct exchange *x, const char *method, const char *path)
{
    struct match match;
    size_t used = 0;

    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (const struct http_route *r = x->server->config.routes; r->method; r++) {
        if (!match_path(r->path, path, &match))
            continue;
        if (strcmp(r->method, method) == 0) {
            x->route = r;
            set_params(x, &match);
            return;
        }
        if (used + strlen(r->method) + 3 < sizeof(x->allow))
            used += (size_t)snprintf(x->allow + used, sizeof(x->allow) - used, "%s%s",
                                     used ? ", " : "", r->method);
    }
    if (used > 0)
        http_reply_error(&x->reply, 405, "method_not_allowed", "%.16s is not allowed here: %s",
                         method, x->allow);
    else
        http_reply_error(&x->reply, 404, "not_found", "there is nothing at %.200s", path);
}

static const char *header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

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

    for (const char *const *t = body == HTTP_BODY_JSON ? json : archive; *t; t++) {
        if (is_type(type, *t))
            return true;
    }
    return false;
}

static enum MHD_Result take_form_data(void *ctx, enum MHD_ValueKind kind, const char *key,
                                      const char *file_name, const char *content_type,
                                      const char *transfer_encoding, const char *data,
                                      uint64_t offset, size_t size);

/* Looks at the headers: which body comes, and may it? */
static void check_body(struct exchange *x)
{
    const struct http_route *route = x->route;
    const char *type = header(x, MHD_HTTP_HEADER_CONTENT_TYPE);

    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        x->request.parts[i].name = route->parts[i].name;
        x->request.parts[i].content =
            spool_init(x->server->config.tmp_fd, route->parts[i].max_bytes);
    }
    x->request.body = spool_init(x->server->config.tmp_fd, route->max_bytes);
    if (route->body == HTTP_BODY_NONE)
        return;
    if (route->body == HTTP_BODY_FILE &&
        (spool_hash(&x->request.body) < 0 || spool_hash(&x->request.parts[0].content) < 0)) {
        http_reply_error(&x->reply, 500, "internal_error", "out of memory");
        return;
    }
    if (type && is_type(type, "multipart/form-data")) {
        x->request.is_multipart = true;
        x->form = MHD_create_post_processor(x->connection, FORM_BUFFER, take_form_data, x);
        if (!x->form)
            http_reply_error(&x->reply, 400, "bad_request",
                             "multipart/form-data without a usable boundary");
    } else if (route->body != HTTP_BODY_FILE &&
               (type ? !type_fits(route->body, type) : route->body != HTTP_BODY_JSON)) {
        http_reply_error(&x->reply, 415, "unsupported_type", "%s is not taken here: %s",
                         type ? type : "a body without Content-Type",
                         route->body == HTTP_BODY_JSON
                             ? "application/json or multipart/form-data"
                             : "application/zip, application/octet-stream or "
                               "multipart/form-data");
    }
}

static uint64_t body_limit(const struct exchange *x)
{
    uint64_t limit = x->route->max_bytes;

    for (size_t i = 0; x->request.is_multipart && i < HTTP_PARTS_MAX; i++)
        limit += x->route->parts[i].name ? x->route->parts[i].max_bytes + FORM_BUFFER : 0;
    return limit;
}

static void reply_too_large(struct exchange *x, uint64_t limit)
{
    http_reply_error(&x->reply, 413, "too_large", "the body is larger than %llu MiB",
                     (unsigned long long)(limit / (1024 * 1024)));
}

/*
 * Looks at the declared length. True when the reply should go out before the body comes: the
 * sender asked first, or it is hopelessly large.
 */
static bool check_length(struct exchange *x)
{
    const char *length = header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *expect = header(x, MHD_HTTP_HEADER_EXPECT);
    uint64_t bytes = length ? strtoull(length, NULL, 10) : 0;
    uint64_t limit = x->route ? body_limit(x) : 0;

    if (x->reply.status == 0 && x->route && x->route->body != HTTP_BODY_NONE && bytes > limit)
        reply_too_large(x, limit);
    if (x->reply.status == 0)
        return false;
    return bytes > limit + DRAIN_MAX || (expect && strcasecmp(expect, "100-continue") == 0);
}

static enum MHD_Result take_form_data(void *ctx, enum MHD_ValueKind kind, const char *key,
                                      const char *file_name, const char *content_type,
                                      const char *transfer_encoding, const char *data,
                                      uint64_t offset, size_t size)
{
    struct exchange *x = ctx;

    (void)kind;
    (void)content_type;
    (void)transfer_encoding;
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        struct http_part *part = &x->request.parts[i];
        int r;

        if (!part->name || !key || strcmp(part->name, key) != 0)
            continue;
        if (offset == 0 && part->content.size > 0) {
            http_reply_error(&x->reply, 400, "bad_request", "the part \"%s\" comes twice", key);
            return MHD_NO;
        }
        part->seen = true;
        if (file_name && !part->file_name && !(part->file_name = strdup(file_name))) {
            http_reply_error(&x->reply, 500, "internal_error", "out of memory");
            return MHD_NO;
        }
        r = spool_append(&part->content, data, size);
        if (r == -EFBIG)
            reply_too_large(x, part->content.max);
        else if (r < 0)
            http_reply_error(&x->reply, 500, "internal_error", "cannot keep the body: %s",
                             strerror(-r));
        return r < 0 ? MHD_NO : MHD_YES;
    }
    http_reply_error(&x->reply, 400, "bad_request", "unknown part \"%.64s\"", key ? key : "");
    return MHD_NO;
}

/* Takes a piece of the body. MHD_NO closes the connection. */
static enum MHD_Result take_body(struct exchange *x, const char *data, size_t size)
{
    int r;

    if (x->reply.status != 0) {
        x->drained += size;
        return x->drained > DRAIN_MAX + (x->route ? body_limit(x) : 0) ? MHD_NO : MHD_YES;
    }
    if (x->route->body == HTTP_BODY_NONE) {
        x->drained += size;
        return x->drained > DRAIN_MAX ? MHD_NO : MHD_YES;
    }
    if (x->form) {
        if (MHD_post_process(x->form, data, size) != MHD_YES && x->reply.status == 0)
            http_reply_error(&x->reply, 400, "bad_request", "bad multipart/form-data");
        return MHD_YES;
    }
    r = spool_append(&x->request.body, data, size);
    if (r == -EFBIG)
        reply_too_large(x, x->request.body.max);
    else if (r < 0)
        http_reply_error(&x->reply, 500, "internal_error", "cannot keep the body: %s",
                         strerror(-r));
    return MHD_YES;
}

static ssize_t read_stream(void *ctx, uint64_t at, char *data, size_t size)
{
    struct http_reply *reply = ctx;
    ssize_t n;

    (void)at;
    n = reply->read(reply->stream_ctx, data, size);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void free_stream(void *ctx)
{
    struct http_reply *reply = ctx;

    reply_finish(reply);
    free(reply);
}

static struct MHD_Response *make_response(struct http_reply *reply)
{
    struct MHD_Response *response = NULL;
    struct http_reply *copy;

    if (reply->read) {
        copy = malloc(sizeof(*copy));
        if (!copy)
            return NULL;
        *copy = *reply;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                     read_stream, copy, free_stream);
        if (!response) {
            free(copy);
            return NULL;
        }
        *reply = (struct http_reply){.status = copy->status,
                                     .content_type = copy->content_type,
                                     .body = buf_init(0),
                                     .file_fd = -1};
    } else if (reply->file_fd >= 0) {
        response = MHD_create_response_from_fd64(reply->file_bytes, reply->file_fd);
        if (response)
            (void)fd_steal(&reply->file_fd);
    } else {
        response = MHD_create_response_from_buffer(reply->body.len, reply->body.data,
                                                   MHD_RESPMEM_MUST_FREE);
        if (response)
            reply->body = buf_init(0);
    }
    return response;
}

static enum MHD_Result send_reply(struct exchange *x)
{
    struct http_reply *reply = &x->reply;
    const char *file_name = reply->file_name;
    unsigned status = reply->status;
    unsigned retry_after_s = reply->retry_after_s;
    const char *type = reply->content_type;
    char location[sizeof(reply->location)];
    struct MHD_Response *response;
    enum MHD_Result result;
    char text[96];

    memcpy(location, reply->location, sizeof(location));
    response = make_response(reply);
    if (!response)
        return MHD_NO;
    if (type)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (location[0])
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, location);
    if (type && strcmp(type, "text/event-stream") == 0)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (x->allow[0] && status == 405)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, x->allow);
    if (retry_after_s > 0) {
        (void)snprintf(text, sizeof(text), "%u", retry_after_s);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
    }
    if (file_name) {
        (void)snprintf(text, sizeof(text),
                       *file_name ? "attachment; filename=\"%s\"" : "attachment%s", file_name);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
    }
    result = MHD_queue_response(x->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Calls the handler; it may take as long as an execution takes. */
static void handle(struct exchange *x)
{
    /* The idle clock stands still meanwhile, and starts anew when it is set again. */
    (void)MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    if (x->form) {
        enum MHD_Result complete = MHD_destroy_post_processor(x->form);

        x->form = NULL;
        if (complete != MHD_YES && x->reply.status == 0)
            http_reply_error(&x->reply, 400, "bad_request",
                             "multipart/form-data without its end");
    }
    if (x->reply.status == 0)
        x->route->handle(x->server->config.ctx, &x->request, &x->reply);
    (void)MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
}

static void count_exchange(struct http_server *server, int change)
{
    (void)pthread_mutex_lock(&server->lock);
    server->exchanges += (unsigned)change;
    if (server->exchanges == 0)
        (void)pthread_cond_broadcast(&server->idle);
    (void)pthread_mutex_unlock(&server->lock);
}

static struct exchange *begin_exchange(struct http_server *server, struct MHD_Connection *c)
{
    struct exchange *x = calloc(1, sizeof(*x));
    const char *accept;

    if (!x)
        return NULL;
    count_exchange(server, 1);
    x->server = server;
    x->connection = c;
    x->reply = empty_reply();
    accept = header(x, MHD_HTTP_HEADER_ACCEPT);
    x->request.wants_events = accept && strstr(accept, "text/event-stream");
    return x;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *size, void **slot)
{
    struct exchange *x = *slot;

    (void)version;
    if (!x) {
        x = begin_exchange(ctx, connection);
        if (!x)
            return MHD_NO;
        *slot = x;
        find_route(x, method, path);
        if (x->route)
            check_body(x);
        return check_length(x) ? send_reply(x) : MHD_YES;
    }
    if (*size > 0) {
        enum MHD_Result result = take_body(x, data, *size);

        *size = 0;
        return result;
    }
    handle(x);
    return send_reply(x);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *slot;

    (void)ctx;
    (void)connection;
    (void)code;
    if (!x)
        return;
    if (x->form)
        (void)MHD_destroy_post_processor(x->form);
    spool_finish(&x->request.body);
    for (size_t i = 0; i < HTTP_PARAMS_MAX; i++)
        free(x->request.params[i]);
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        spool_finish(&x->request.parts[i].content);
        free(x->request.parts[i].file_name);
    }
    reply_finish(&x->reply);
    count_exchange(x->server, -1);
    free(x);
    *slot = NULL;
}

int http_start(const struct http_config *config, struct http_server **ret, struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    pthread_condattr_t attr;
    int r;

    if (!server)
        return err_set(err, ENOMEM, "out of memory");
    server->config = *config;
    server->listener = listener_init();
    (void)pthread_mutex_init(&server->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&server->idle, &attr);
    (void)pthread_condattr_destroy(&attr);
    r = listener_open(&server->listener, config->socket_path, config->socket_mode, err);
    if (r == 0) {
        server->daemon = MHD_start_daemon(
            MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
                MHD_USE_ITC,
            0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, server->listener.fd,
            MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_TIMEOUT,
            IDLE_SECONDS, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
            MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_END);
        if (!server->daemon)
            r = err_set(err, EIO, "cannot start the HTTP server");
    }
    if (r < 0) {
        listener_close(&server->listener);
        free(server);
        return r;
    }
    *ret = server;
    return 0;
}

void http_quiesce(struct http_server *server)
{
    listener_unlink(&server->listener);
    server->listener.fd = MHD_quiesce_daemon(server->daemon);
}

void http_stop(struct http_server *server)
{
    struct timespec until;

    if (!server)
        return;
    /* Answers that are on their way arrive; who does not read them is not waited for. */
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FAREWELL_SECONDS;
    (void)pthread_mutex_lock(&server->lock);
    while (server->exchanges > 0 &&
           pthread_cond_timedwait(&server->idle, &server->lock, &until) != ETIMEDOUT)
        ;
    (void)pthread_mutex_unlock(&server->lock);
    MHD_stop_daemon(server->daemon);
    listener_close(&server->listener);
    (void)pthread_cond_destroy(&server->idle);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}
