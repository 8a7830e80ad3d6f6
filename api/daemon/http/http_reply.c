/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include "api/json/json_text.h"
#include "base/fd.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_BLOCK   (16u * 1024u)
#define ERROR_BODY_MAX 8192u
/* Larger bodies wait for their reader on disk: a slow one costs no memory. */
#define MEMORY_BODY_MAX (256u * 1024u)

struct http_reply http_reply_init(void)
{
    return (struct http_reply){.body = buf_init(SIZE_MAX / 2), .file_fd = -1};
}

void http_reply_finish(struct http_reply *reply)
{
    buf_finish(&reply->body);
    fd_close(&reply->file_fd);
    if (reply->release)
        reply->release(reply->stream_ctx);
    *reply = http_reply_init();
}

void http_reply_empty(struct http_reply *reply, unsigned status)
{
    http_reply_finish(reply);
    reply->status = status;
}

void http_reply_json(struct http_reply *reply, unsigned status, struct buf *body)
{
    http_reply_finish(reply);
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

static ssize_t read_stream(void *ctx, uint64_t at, char *data, size_t size)
{
    struct http_reply *reply = ctx;
    ssize_t n;

    (void)at;
    n = reply->read(reply->stream_ctx, data, size);
    if (n >= 0)
        return n;
    /* One that told its length and gave less has failed: nobody may take it for whole. */
    return reply->stream_bytes > 0 ? MHD_CONTENT_READER_END_WITH_ERROR
                                   : MHD_CONTENT_READER_END_OF_STREAM;
}

static void free_stream(void *ctx)
{
    struct http_reply *reply = ctx;

    http_reply_finish(reply);
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
        response = MHD_create_response_from_callback(
            copy->stream_bytes > 0 ? copy->stream_bytes : MHD_SIZE_UNKNOWN, STREAM_BLOCK,
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

/* Asks where a large body may wait for its reader; on disk where nobody cares. */
static enum http_place hold(struct http_exchange *x)
{
    const struct http_config *config = x->config;
    const uint64_t bytes = x->reply.body.len;
    enum http_place place;

    if (!config->hold)
        return HTTP_PLACE_DISK;
    place =
        config->hold(config->ctx, x->request.caller.tenant, HTTP_HELD_ANSWER, bytes, &x->reply);
    if (place != HTTP_PLACE_NONE)
        x->held_answer = bytes;
    return place;
}

void http_reply_release(struct http_exchange *x)
{
    if (x->held_answer > 0 && x->config->release)
        x->config->release(x->config->ctx, x->request.caller.tenant, HTTP_HELD_ANSWER,
                           x->held_answer);
    x->held_answer = 0;
}

/* Where that fails the body stays where it is. */
static void set_aside(struct http_exchange *x)
{
    const struct http_config *config = x->config;
    struct http_reply *reply = &x->reply;
    int fd;

    if (reply->read || reply->file_fd >= 0 || reply->body.len <= MEMORY_BODY_MAX ||
        hold(x) != HTTP_PLACE_DISK)
        return;
    fd = spool_open_nameless(config->tmp_fd);
    if (fd < 0 || fd_pwrite_full(fd, reply->body.data, reply->body.len, 0) < 0) {
        fd_close(&fd);
        return;
    }
    reply->file_fd = fd;
    reply->file_bytes = reply->body.len;
    buf_finish(&reply->body);
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

bool http_reply_send(struct http_exchange *x)
{
    struct http_reply *reply = &x->reply;
    const char *file_name, *type;
    unsigned status, retry_after_s;
    char location[sizeof(reply->location)];
    struct MHD_Response *response;
    enum MHD_Result result;
    char text[96];

    /* Where the answer finds no place, this still tells where it is. */
    memcpy(location, reply->location, sizeof(location));
    set_aside(x);
    file_name = reply->file_name;
    status = reply->status;
    retry_after_s = reply->retry_after_s;
    type = reply->content_type;
    response = make_response(reply);
    if (!response)
        return false;
    if (type)
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    add_header(response, "X-Content-Type-Options", "nosniff");
    if (location[0])
        add_header(response, MHD_HTTP_HEADER_LOCATION, location);
    if (type && strcmp(type, "text/event-stream") == 0)
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (x->allow[0] && (status == 405 || status == 204))
        add_header(response, MHD_HTTP_HEADER_ALLOW, x->allow);
    if (status == 401)
        add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"skillvm\"");
    if (x->must_close)
        add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (retry_after_s > 0) {
        (void)snprintf(text, sizeof(text), "%u", retry_after_s);
        add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
    }
    if (file_name) {
        (void)snprintf(text, sizeof(text),
                       *file_name ? "attachment; filename=\"%s\"" : "attachment%s", file_name);
        add_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
    }
    result = MHD_queue_response(x->connection, status, response);
    MHD_destroy_response(response);
    return result == MHD_YES;
}
