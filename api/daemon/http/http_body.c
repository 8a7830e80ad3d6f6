/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_internal.h"

#include <microhttpd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_STEP   (4ull * 1024 * 1024)
#define FORM_BUFFER (16u * 1024u)
/* A body over its limit is read to its end, up to here, so that its sender hears why. */
#define DRAIN_MAX (64ull * 1024 * 1024)

const char *http_header(const struct http_exchange *x, const char *name)
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

static void reply_too_large(struct http_exchange *x, uint64_t limit)
{
    http_reply_error(&x->reply, 413, "too_large", "the body is larger than %llu MiB",
                     (unsigned long long)(limit / (1024 * 1024)));
}

static enum http_held held_as(const struct http_exchange *x)
{
    return x->route->body == HTTP_BODY_FILE ? HTTP_HELD_FILE : HTTP_HELD_BODY;
}

/* Asks whether so many bytes of the body may be held. False: there is a reply. */
static bool hold(struct http_exchange *x, uint64_t bytes)
{
    const struct http_config *config = x->config;

    if (config->hold && config->hold(config->ctx, x->request.caller.tenant, held_as(x), bytes,
                                     &x->reply) == HTTP_PLACE_NONE)
        return false;
    x->held += bytes;
    return true;
}

/* The same for what comes now, as far as it was not asked for. Few bytes stay in memory. */
static bool hold_piece(struct http_exchange *x, const struct spool *spool, size_t size)
{
    x->kept += size;
    if (x->kept <= x->held || spool->size + size <= SPOOL_MEMORY_MAX)
        return true;
    return hold(x, x->kept - x->held);
}

static void release(struct http_exchange *x)
{
    if (x->held > 0 && x->config->release)
        x->config->release(x->config->ctx, x->request.caller.tenant, held_as(x), x->held);
    x->held = 0;
}

void http_request_stored(struct http_request *request)
{
    release(
        (struct http_exchange *)((char *)request - offsetof(struct http_exchange, request)));
}

/* Gives back all room that the body took. */
static void drop(struct http_exchange *x)
{
    release(x);
    spool_finish(&x->request.body);
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++)
        spool_finish(&x->request.parts[i].content);
}

/* False: there is a reply. */
static bool append(struct http_exchange *x, struct spool *spool, const char *data, size_t size)
{
    const uint64_t steps = spool->size / ROOM_STEP;
    int r = spool_append(spool, data, size);

    if (r < 0)
        http_reply_error(&x->reply, 500, "internal_error", "cannot keep the body: %s",
                         strerror(-r));
    return r == 0 && (spool->size / ROOM_STEP == steps || !x->config->room ||
                      x->config->room(x->config->ctx, &x->reply));
}

/* Adds bytes to what is kept of the body. False: there is a reply. */
static bool keep(struct http_exchange *x, struct spool *spool, const char *data, size_t size)
{
    if (size > spool->max - spool->size)
        reply_too_large(x, spool->max);
    else if (hold_piece(x, spool, size) && append(x, spool, data, size))
        return true;
    /* The rest is not kept, and what came gives its room back at once. */
    drop(x);
    return false;
}

/* Copies a text, once. False without memory. */
static bool keep_text(char **at, const char *text)
{
    if (text && !*at)
        *at = strdup(text);
    return !text || *at;
}

static enum MHD_Result take_form_data(void *ctx, enum MHD_ValueKind kind, const char *key,
                                      const char *file_name, const char *content_type,
                                      const char *transfer_encoding, const char *data,
                                      uint64_t offset, size_t size)
{
    struct http_exchange *x = ctx;

    (void)kind;
    (void)transfer_encoding;
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        struct http_part *part = &x->request.parts[i];

        if (!part->name || !key || strcmp(part->name, key) != 0)
            continue;
        if (offset == 0 && part->content.size > 0) {
            http_reply_error(&x->reply, 400, "bad_request", "the part \"%s\" comes twice", key);
            return MHD_NO;
        }
        part->seen = true;
        if (!keep_text(&part->file_name, file_name) ||
            !keep_text(&part->content_type, content_type)) {
            http_reply_error(&x->reply, 500, "internal_error", "out of memory");
            return MHD_NO;
        }
        return keep(x, &part->content, data, size) ? MHD_YES : MHD_NO;
    }
    http_reply_error(&x->reply, 400, "bad_request", "unknown part \"%.64s\"", key ? key : "");
    return MHD_NO;
}

void http_body_begin(struct http_exchange *x)
{
    const struct http_route *route = x->route;
    const char *type = http_header(x, MHD_HTTP_HEADER_CONTENT_TYPE);

    x->request.content_type = type;
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        x->request.parts[i].name = route->parts[i].name;
        x->request.parts[i].content = spool_init(x->config->tmp_fd, route->parts[i].max_bytes);
    }
    x->request.body = spool_init(x->config->tmp_fd, route->max_bytes);
    if (route->body == HTTP_BODY_NONE || x->reply.status != 0)
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
    } else if (!type_fits(route->body, type)) {
        http_reply_error(&x->reply, 415, "unsupported_type", "%.100s is not taken here: %s",
                         type ? type : "a body without Content-Type",
                         route->body == HTTP_BODY_JSON
                             ? "application/json or multipart/form-data"
                             : "application/zip, application/octet-stream or "
                               "multipart/form-data");
    }
}

static uint64_t body_limit(const struct http_exchange *x)
{
    uint64_t limit;

    if (!x->route)
        return 0;
    limit = x->route->max_bytes;
    for (size_t i = 0; x->request.is_multipart && i < HTTP_PARTS_MAX; i++)
        limit += x->route->parts[i].name ? x->route->parts[i].max_bytes + FORM_BUFFER : 0;
    return limit;
}

/*
 * Asks for a body's declared length before any of it is kept. Of a form some is not kept: what
 * is, is asked for as it comes.
 */
static bool hold_declared(struct http_exchange *x, uint64_t bytes)
{
    if (x->form)
        bytes = bytes > FORM_BUFFER ? bytes - FORM_BUFFER : 0;
    return bytes <= SPOOL_MEMORY_MAX || hold(x, bytes);
}

bool http_body_refused(struct http_exchange *x)
{
    const char *length = http_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *expect = http_header(x, MHD_HTTP_HEADER_EXPECT);
    uint64_t bytes = length ? strtoull(length, NULL, 10) : 0;
    uint64_t limit = body_limit(x);

    if (x->reply.status == 0 && x->route->body != HTTP_BODY_NONE && bytes > limit)
        reply_too_large(x, limit);
    if (x->reply.status == 0 && (x->route->body == HTTP_BODY_NONE || hold_declared(x, bytes)))
        return false;
    return bytes > limit + DRAIN_MAX || (expect && strcasecmp(expect, "100-continue") == 0);
}

bool http_body_take(struct http_exchange *x, const char *data, size_t size)
{
    if (x->reply.status != 0 || x->route->body == HTTP_BODY_NONE) {
        x->drained += size;
        return x->drained <= DRAIN_MAX + body_limit(x);
    }
    if (x->form) {
        if (MHD_post_process(x->form, data, size) != MHD_YES && x->reply.status == 0)
            http_reply_error(&x->reply, 400, "bad_request", "bad multipart/form-data");
    } else {
        (void)keep(x, &x->request.body, data, size);
    }
    return true;
}

void http_body_end(struct http_exchange *x)
{
    enum MHD_Result complete;

    if (!x->form)
        return;
    complete = MHD_destroy_post_processor(x->form);
    x->form = NULL;
    if (complete != MHD_YES && x->reply.status == 0)
        http_reply_error(&x->reply, 400, "bad_request", "multipart/form-data without its end");
}

void http_body_finish(struct http_exchange *x)
{
    if (x->form)
        (void)MHD_destroy_post_processor(x->form);
    x->form = NULL;
    drop(x);
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++) {
        free(x->request.parts[i].file_name);
        free(x->request.parts[i].content_type);
        x->request.parts[i].file_name = x->request.parts[i].content_type = NULL;
    }
}
