/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution left: its files, one of them, and the address that needs no key. */
#include "api/daemon/callers/uses.h"
#include "api/daemon/registry/registry_changes.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/lookup.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/limits.h"
#include "api/skill/artifacts_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static uint64_t now_s(void)
{
    return clock_realtime_ns() / 1000000000u;
}

/* Nodes of a cluster have one secret; it is another one with another bucket of changes. */
static int links_of(struct daemon *d, struct download_links *ret, struct err *err)
{
    struct change_place place;
    int r = registry_place_get(d->registry, REGISTRY_PLACE_OF_CHANGES, &place, err);

    if (r < 0)
        return r;
    return download_links_of(&d->links, place.bucket, ret) < 0 ? err_no_memory(err) : 0;
}

/* Writes a result for somebody who came over TCP, before whose addresses base stands. */
static int present(struct daemon *d, const char *base, const char *tenant,
                   const struct buf *result, struct buf *body)
{
    struct download_links links;
    int r = links_of(d, &links, NULL);

    return r < 0 ? r
                 : download_links_present(&links, base, tenant, (const char *)result->data,
                                          result->len, now_s(), body);
}

void daemon_reply_result(struct daemon *d, const struct http_request *request,
                         struct http_reply *reply, struct buf *result)
{
    struct buf body = buf_init(SIZE_MAX / 2);
    char base[HTTP_HOST_MAX + 16];
    int r;

    /* A client on the socket has no address to put before a path. */
    if (!request->is_tcp || (!*d->public_url && !*request->host)) {
        http_reply_json(reply, 200, result);
        return;
    }
    (void)snprintf(base, sizeof(base), "http://%s", request->host);
    r = present(d, *d->public_url ? d->public_url : base, request->caller.tenant, result,
                &body);
    buf_finish(result);
    if (r == 0) {
        http_reply_json(reply, 200, &body);
        return;
    }
    buf_finish(&body);
    http_reply_error(reply, 500, "internal_error", "cannot write the result: %s", strerror(-r));
}

/* Opens the archive of files. A descriptor, or -1 when *reply says why not. */
static int open_files(struct daemon *d, const char *tenant, const char *id,
                      struct http_reply *reply)
{
    struct err err = {0};
    int fd = lookup_files(d, tenant, id, &err);

    if (fd < 0)
        (void)failure_reply(reply, fd, &err);
    return fd < 0 ? -1 : fd;
}

int daemon_reply_object(struct daemon *d, const char *tenant, struct http_reply *reply, int fd,
                        const char *content_type, const char *file_name, struct err *err)
{
    _cleanup_fd_ int object = fd;
    struct use *use;
    struct stat st;
    int r;

    if (fstat(object, &st) < 0)
        return err_set_errno(err, EIO, "cannot read an object");
    r = uses_begin(d->uses, tenant, object, "", &use, err);
    if (r < 0)
        return r;
    http_reply_empty(reply, 200);
    reply->content_type = content_type;
    reply->file_name = file_name;
    reply->file_bytes = (uint64_t)st.st_size;
    reply->file_fd = fd_steal(&object);
    reply->release = uses_end;
    reply->stream_ctx = use;
    return 0;
}

static void reply_files(struct daemon *d, const char *tenant, const char *id,
                        struct http_reply *reply)
{
    int fd = open_files(d, tenant, id, reply);
    struct err err = {0};
    int r;

    if (fd < 0)
        return;
    r = daemon_reply_object(d, tenant, reply, fd, "application/gzip", "files.tar.gz", &err);
    if (r < 0)
        (void)failure_reply(reply, r, &err);
}

void route_execution_files(void *ctx, struct http_request *request, struct http_reply *reply)
{
    reply_files(ctx, request->caller.tenant, request->params[0], reply);
}

static const char *type_of(const char *path)
{
    static const char *const types[][2] = {
        {".txt", "text/plain; charset=utf-8"},
        {".log", "text/plain; charset=utf-8"},
        {".md", "text/markdown; charset=utf-8"},
        {".csv", "text/csv; charset=utf-8"},
        {".tsv", "text/tab-separated-values; charset=utf-8"},
        {".html", "text/html; charset=utf-8"},
        {".htm", "text/html; charset=utf-8"},
        {".json", "application/json"},
        {".xml", "application/xml"},
        {".pdf", "application/pdf"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},
        {".gif", "image/gif"},
        {".webp", "image/webp"},
        {".svg", "image/svg+xml"},
        {".zip", "application/zip"},
        {".gz", "application/gzip"},
        {".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
        {".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
        {".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    };
    const char *dot = strrchr(basename(path), '.');

    for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcasecmp(dot, types[i][0]) == 0)
            return types[i][1];
    }
    return "application/octet-stream";
}

/* A file of an archive that is sent. */
struct shown {
    struct artifact_reader *reader;
    struct use *use; /* of the archive */
};

static ssize_t read_file(void *ctx, char *data, size_t size)
{
    const struct shown *shown = ctx;
    ssize_t n = artifact_reader_read(shown->reader, data, size);

    return n > 0 ? n : -1;
}

static void release_file(void *ctx)
{
    struct shown *shown = ctx;

    if (!shown)
        return;
    uses_end(shown->use);
    artifact_reader_close(shown->reader);
    free(shown);
}
CLEANUP_WITH(struct shown *, release_file)

/* What is to be read. The descriptor is taken over. */
static int open_shown(struct daemon *d, const char *tenant, int fd, const char *path,
                      struct shown **ret, uint64_t *ret_bytes, struct err *err)
{
    _cleanup_fd_ int archive = fd;
    _cleanup_(release_file) struct shown *shown = calloc(1, sizeof(*shown));
    int r;

    if (!shown)
        return err_no_memory(err);
    r = uses_begin(d->uses, tenant, archive, "", &shown->use, err);
    if (r < 0)
        return r;
    r = artifact_reader_open(fd_steal(&archive), path, &shown->reader, ret_bytes, err);
    if (r < 0)
        return r;
    *ret = steal_ptr(&shown);
    return 0;
}

int daemon_reply_file(struct daemon *d, const char *tenant, struct http_reply *reply, int fd,
                      const char *path, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_(release_file) struct shown *shown = NULL;
    _cleanup_fd_ int archive = fd;
    uint64_t bytes = 0;
    int r = turn_take(&turn, d, TURN_LOOK, tenant, err);

    if (r < 0)
        return r;
    r = open_shown(d, tenant, fd_steal(&archive), path, &shown, &bytes, err);
    if (r < 0)
        return r;
    http_reply_empty(reply, 200);
    reply->content_type = type_of(path);
    /* A page of a skill's is looked at, not shown as one of this server's. */
    reply->file_name = "";
    if (bytes == 0)
        return 0;
    reply->read = read_file;
    reply->release = release_file;
    reply->stream_ctx = steal_ptr(&shown);
    reply->stream_bytes = bytes;
    return 0;
}

void route_execution_file(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *tenant = request->caller.tenant, *path = request->params[1];
    int fd = open_files(d, tenant, request->params[0], reply);
    struct err err = {0};
    int r;

    if (fd < 0)
        return;
    r = daemon_reply_file(d, tenant, reply, fd, path, &err);
    if (r == -ENOENT)
        (void)err_set(&err, ENOENT, "execution %s left no file %.200s", request->params[0],
                      path);
    if (r < 0)
        (void)failure_reply(reply, r, &err);
}

void route_download(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct download_links links;
    struct download_link link;
    struct err err = {0};
    int r = links_of(d, &links, &err);

    if (r < 0)
        (void)failure_reply(reply, r, &err);
    else if (download_links_check(&links, request->params[0], now_s(), &link))
        reply_files(d, link.tenant, link.id, reply);
    else
        http_reply_error(reply, 404, "not_found",
                         "this address was never good, or is older than %u minutes",
                         DOWNLOAD_LINK_SECONDS / 60);
}
