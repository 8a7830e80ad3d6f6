/* SPDX-License-Identifier: Apache-2.0 */
/* Input files: uploaded once, used by any number of executions, removed when they expire. */
#include "api/daemon/callers/held.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/page.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/routes/session_files.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/routes/uploads.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_BYTES_MAX (4 * LIMIT_MIB)
#define TYPE_UNKNOWN   "application/octet-stream"

enum { UPLOAD_NAME };
enum { LIST_LIMIT, LIST_OFFSET, LIST_SESSION, LIST_EXECUTION };

static void write_file(struct json_writer *w, const struct registry_file *file)
{
    json_write_open(w, NULL, '{');
    json_write_string(w, "id", file->id);
    json_write_string(w, "name", file->name);
    json_write_number(w, "size_bytes", file->bytes);
    json_write_string(w, "digest", file->digest);
    json_write_string(w, "content_type", file->content_type);
    json_write_string(w, "tenant_id", file->tenant);
    json_write_number(w, "version", 1);
    json_write_time(w, "created_at", file->created_ns);
    json_write_time(w, "updated_at", file->created_ns);
    json_write_time(w, "expires_at", file->expires_ns < INT64_MAX ? file->expires_ns : 0);
    json_write_close(w, '}');
}

/* The media type as it came, if it looks like one; parameters are left out. */
static char *copy_type(const char *type)
{
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "!#$&^_.+-";
    size_t main_len = type ? strspn(type, token) : 0;
    size_t len = 0;

    if (main_len > 0 && type[main_len] == '/')
        len = main_len + 1 + strspn(type + main_len + 1, token);
    if (len <= main_len + 1 || len > LIMIT_TYPE_BYTES)
        return strdup(TYPE_UNKNOWN);
    return strndup(type, len);
}

/* The name and the type it was uploaded under; NULL where they were not said. */
static void find_names(const struct http_request *request, const char **ret_name,
                       const char **ret_type)
{
    const struct http_part *part = &request->parts[0];

    *ret_name = request->query[UPLOAD_NAME];
    if (!*ret_name && request->is_multipart)
        *ret_name = part->file_name;
    *ret_type = request->is_multipart ? part->content_type : request->content_type;
}

void route_file_upload(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_file_ struct registry_file row = {0};
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    char clean[REQUEST_FILE_NAME_SIZE] = "file";
    const char *name, *type;
    struct spool *upload;
    struct err err = {0};
    int r;

    upload = held_admit(d->held, 0, reply) ? uploads_receive(request, reply) : NULL;
    if (!upload)
        return;
    find_names(request, &name, &type);
    if (name && request_file_name(name, clean, &err) < 0) {
        http_reply_error(reply, 400, "bad_request", "%s", err.message);
        return;
    }
    row.name = strdup(clean);
    row.content_type = copy_type(type);
    r = row.name && row.content_type ? uploads_store(d, request, upload, &row, &err)
                                     : err_no_memory(&err);
    (void)snprintf(row.tenant, sizeof(row.tenant), "%s", request->caller.tenant);
    if (r == -ENOENT) {
        http_reply_error(reply, 401, "unauthorized", "the tenant was deleted");
    } else if (r < 0) {
        failure_reply(reply, r, &err);
    } else {
        write_file(&w, &row);
        if (failure_or_json(reply, 201, &w, 0, &err))
            (void)snprintf(reply->location, sizeof(reply->location), "/v1/files/%s", row.id);
        log_info("files", "stored id=%s bytes=%llu digest=%.12s", row.id,
                 (unsigned long long)row.bytes, row.digest);
    }
}

static bool given(const struct http_request *request, unsigned parameter)
{
    return request->query[parameter] && *request->query[parameter];
}

static int read_rows(struct daemon *d, const char *tenant, size_t offset, size_t max,
                     struct registry_file *rows, size_t *ret_n, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    int r = turn_take(&turn, d, TURN_ROWS, tenant, err);

    return r < 0 ? r
                 : registry_file_list(d->registry, tenant, clock_realtime_ns(), offset, max,
                                      rows, ret_n, err);
}

void route_file_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    _cleanup_free_ struct registry_file *rows = NULL;
    struct err err = {0};
    size_t limit, offset, n = 0;
    int r;

    if (!page_range(request->query[LIST_LIMIT], request->query[LIST_OFFSET], &limit, &offset,
                    reply))
        return;
    if (given(request, LIST_SESSION) && !given(request, LIST_EXECUTION)) {
        session_files_reply(d, request, request->query[LIST_SESSION], limit, offset, reply);
        return;
    }
    rows = calloc(limit, sizeof(*rows));
    r = rows ? 0 : err_no_memory(&err);
    /* No file that is kept belongs to an execution. */
    if (rows && !given(request, LIST_EXECUTION))
        r = read_rows(d, request->caller.tenant, offset, limit, rows, &n, &err);
    json_write_open(&w, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        write_file(&w, &rows[i]);
        registry_file_finish(&rows[i]);
    }
    json_write_close(&w, ']');
    (void)failure_or_json(reply, 200, &w, r, &err);
}

void route_file_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    _cleanup_registry_file_ struct registry_file row = {0};
    const char *id = request->params[0];
    struct err err = {0};
    int r = uploads_find(ctx, request->caller.tenant, id, &row, &err);

    if (r < 0) {
        failure_of(reply, r, "file", id, &err);
        return;
    }
    write_file(&w, &row);
    (void)failure_or_json(reply, 200, &w, 0, &err);
}

void route_file_download(void *ctx, struct http_request *request, struct http_reply *reply)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    const char *tenant = request->caller.tenant, *id = request->params[0];
    struct err err = {0};
    int fd = -1, r = uploads_open(ctx, tenant, id, &row, &fd, &err);

    if (r < 0) {
        failure_of(reply, r, "file", id, &err);
        return;
    }
    /* The type was the uploader's word: nothing here vouches for it. */
    r = daemon_reply_object(ctx, tenant, reply, fd, TYPE_UNKNOWN, "", &err);
    if (r < 0)
        (void)failure_reply(reply, r, &err);
}

void route_file_delete(void *ctx, struct http_request *request, struct http_reply *reply)
{
    const char *id = request->params[0];
    struct err err = {0};
    int r = uploads_delete(ctx, request->caller.tenant, id, &err);

    if (r < 0) {
        failure_of(reply, r, "file", id, &err);
        return;
    }
    log_info("files", "deleted id=%s", id);
    http_reply_empty(reply, 204);
}
