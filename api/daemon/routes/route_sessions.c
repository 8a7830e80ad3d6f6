/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: files that an execution finds as the one before left them. Executions make and
 * change them; here they are looked at and removed, and who looks at one has used it.
 */
#include "api/daemon/callers/held.h"
#include "api/daemon/engine/retention.h"
#include "api/daemon/engine/shared_sessions.h"
#include "api/daemon/registry/registry_sessions.h"
#include "api/daemon/routes/failure.h"
#include "api/daemon/routes/page.h"
#include "api/daemon/routes/session_files.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/limits.h"
#include "api/json/json_write.h"
#include "api/skill/artifacts_read.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_BYTES_MAX (4 * LIMIT_MIB)

enum { FILES_LIMIT, FILES_OFFSET };

static void write_expiry(struct json_writer *w, struct daemon *d,
                         const struct registry_session *row)
{
    uint64_t expires_ns = retention_session_expiry(d->retention, row->used_ns);

    json_write_time(w, "expires_at", expires_ns < INT64_MAX ? expires_ns : 0);
}

/* Begins its object. */
static void open_session(struct json_writer *w, struct daemon *d,
                         const struct registry_session *row)
{
    json_write_open(w, NULL, '{');
    json_write_string(w, "id", row->id);
    json_write_number(w, "bytes", row->content_bytes);
    json_write_number(w, "files", row->files);
    json_write_time(w, "created_at", row->created_ns);
    json_write_time(w, "updated_at", row->changed_ns);
    write_expiry(w, d, row);
}

static int read_rows(struct daemon *d, const char *tenant, struct registry_session *rows,
                     size_t *ret_n, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    int r = turn_take(&turn, d, TURN_ROWS, tenant, err);

    return r < 0 ? r
                 : registry_session_list(d->registry, tenant, LIMIT_SESSIONS, rows, ret_n, err);
}

void route_session_list(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    _cleanup_free_ struct registry_session *rows = calloc(LIMIT_SESSIONS, sizeof(*rows));
    struct err err = {0};
    size_t n = 0;
    int r = rows ? read_rows(d, request->caller.tenant, rows, &n, &err) : err_no_memory(&err);

    json_write_open(&w, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        open_session(&w, d, &rows[i]);
        json_write_close(&w, '}');
        registry_session_finish(&rows[i]);
    }
    json_write_close(&w, ']');
    (void)failure_or_json(reply, 200, &w, r, &err);
}

/* Finds a session that somebody looks at, and opens what is in it. As retention_open_session.
 */
static int look_at(struct daemon *d, const char *tenant, const char *id,
                   struct registry_session *ret, int *ret_fd, struct err *err)
{
    return retention_open_session(d->retention, d->sessions, tenant, id, ret, ret_fd, err);
}

/* The same of a path. False where there is a reply. */
static bool look_at_path(struct daemon *d, const struct http_request *request,
                         struct registry_session *ret, int *ret_fd, struct http_reply *reply)
{
    const char *id = request->params[0];
    struct err err = {0};
    int r = look_at(d, request->caller.tenant, id, ret, ret_fd, &err);

    return r == 0 || failure_of(reply, r, "session", id, &err);
}

/* Files of a session on their way to JSON. */
struct listing {
    struct json_writer *w;
    const struct registry_session *row;
    struct daemon *d;
    size_t skip, left;
    uint64_t names; /* bytes of them */
    bool truncated;
};

/* Tells visit of the files of a tenant's tree, which it takes over, by turns. As of
 * artifact_each. */
static int walk(struct daemon *d, int tree_fd, const char *tenant, artifact_visit *visit,
                struct listing *l, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_fd_ int fd = tree_fd;
    int r = turn_take(&turn, d, TURN_LOOK, tenant, err);

    return r < 0 ? r : artifact_each(fd_steal(&fd), visit, l, err);
}

static int list_name(void *ctx, const char *path, uint64_t bytes)
{
    struct listing *l = ctx;

    l->names += strlen(path);
    l->truncated = l->names > LIMIT_LIST_BYTES;
    if (l->truncated)
        return 1;
    json_write_open(l->w, NULL, '{');
    json_write_string(l->w, "path", path);
    json_write_number(l->w, "size_bytes", bytes);
    json_write_close(l->w, '}');
    return 0;
}

void route_session_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    _cleanup_registry_session_ struct registry_session row = {0};
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    struct listing listing = {.w = &w};
    _cleanup_fd_ int fd = -1;
    struct err err = {0};
    int r;

    if (!look_at_path(d, request, &row, &fd, reply))
        return;
    open_session(&w, d, &row);
    json_write_open(&w, "files_list", '[');
    r = walk(d, fd_steal(&fd), request->caller.tenant, list_name, &listing, &err);
    json_write_close(&w, ']');
    json_write_bool(&w, "truncated", listing.truncated);
    json_write_close(&w, '}');
    (void)failure_or_json(reply, 200, &w, r < 0 ? r : 0, &err);
}

/* As an uploaded file is told of: one of a session has no id, and is known by its path. */
static int list_file(void *ctx, const char *path, uint64_t bytes)
{
    struct listing *l = ctx;

    if (l->left == 0)
        return 1;
    if (path[strlen(path) - 1] == '/')
        return 0;
    if (l->skip > 0) {
        l->skip--;
        return 0;
    }
    l->left--;
    json_write_open(l->w, NULL, '{');
    json_write_string(l->w, "id", NULL);
    json_write_string(l->w, "name", path);
    json_write_number(l->w, "size_bytes", bytes);
    json_write_string(l->w, "digest", NULL);
    json_write_string(l->w, "content_type", "application/octet-stream");
    json_write_string(l->w, "tenant_id", l->row->tenant);
    json_write_number(l->w, "version", 1);
    json_write_time(l->w, "created_at", l->row->created_ns);
    json_write_time(l->w, "updated_at", l->row->changed_ns);
    write_expiry(l->w, l->d, l->row);
    json_write_string(l->w, "session_id", l->row->id);
    json_write_close(l->w, '}');
    return 0;
}

/* Where there is no such session there are no files. */
static int list_files(struct listing *l, const char *tenant, const char *id,
                      struct registry_session *row, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = look_at(l->d, tenant, id, row, &fd, err);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = walk(l->d, fd_steal(&fd), tenant, list_file, l, err);
    return r < 0 ? r : 0;
}

void session_files_reply(struct daemon *d, const struct http_request *request, const char *id,
                         size_t limit, size_t offset, struct http_reply *reply)
{
    _cleanup_registry_session_ struct registry_session row = {0};
    struct json_writer w = json_writer_init(LIST_BYTES_MAX);
    struct listing listing = {.w = &w, .row = &row, .d = d, .skip = offset, .left = limit};
    struct err err = {0};
    int r;

    json_write_open(&w, NULL, '[');
    r = list_files(&listing, request->caller.tenant, id, &row, &err);
    json_write_close(&w, ']');
    (void)failure_or_json(reply, 200, &w, r, &err);
}

void route_session_files(void *ctx, struct http_request *request, struct http_reply *reply)
{
    size_t limit, offset;

    if (page_range(request->query[FILES_LIMIT], request->query[FILES_OFFSET], &limit, &offset,
                   reply))
        session_files_reply(ctx, request, request->params[0], limit, offset, reply);
}

void route_session_file(void *ctx, struct http_request *request, struct http_reply *reply)
{
    _cleanup_registry_session_ struct registry_session row = {0};
    const char *path = request->params[1];
    _cleanup_fd_ int fd = -1;
    struct err err = {0};
    int r;

    if (!look_at_path(ctx, request, &row, &fd, reply))
        return;
    r = daemon_reply_file(ctx, request->caller.tenant, reply, fd_steal(&fd), path, &err);
    if (r == -ENOENT)
        (void)err_set(&err, ENOENT, "session %s has no file %.200s", row.id, path);
    if (r < 0)
        (void)failure_reply(reply, r, &err);
}

/* Under the store's lock: who reserved the session looks for its row after that. */
static int check_free(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    return engine_has_session(d->engine, tenant, id)
               ? err_set(err, EADDRINUSE,
                         "an execution that waits or runs has session %s: let it end or "
                         "cancel it, then remove the session or its file",
                         id)
               : 0;
}

static int forget_here(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    _cleanup_registry_session_ struct registry_session row = {0};
    int r = check_free(d, tenant, id, err);

    if (r < 0)
        return r;
    r = registry_session_get(d->registry, tenant, id, &row, err);
    if (r < 0)
        return r;
    r = registry_session_delete(d->registry, tenant, id, err);
    return r < 0 ? r : store_release(store, row.digest, err);
}

/* Replies to what may have met an execution. */
static void reply_failure(struct daemon *d, struct http_reply *reply, int result,
                          const char *id, struct err *err)
{
    if (result == -EADDRINUSE)
        metrics_count_session_conflict(d->metrics);
    (void)failure_of(reply, result, "session", id, err);
}

void route_session_delete(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *tenant = request->caller.tenant, *id = request->params[0];
    struct err err = {0};
    int r;

    r = d->sessions ? shared_sessions_remove(d->sessions, tenant, id, &err)
                    : forget_here(d, tenant, id, &err);
    if (r < 0) {
        reply_failure(d, reply, r, id, &err);
        return;
    }
    log_info("sessions", "deleted id=%s", id);
    http_reply_empty(reply, 204);
}

/* A session without one of its files, on its way to be the session. */
struct cut {
    struct daemon *daemon;
    const char *tenant, *id;
    bool is_taken;                  /* in a cluster: no execution has it */
    struct registry_session before; /* as it was */
    struct registry_session row;    /* as it is to be; borrows */
    int from_fd, to_fd;
    char digest[SHA256_HEX_SIZE]; /* of what to_fd has */
};

static void cut_finish(struct cut *cut)
{
    if (cut->is_taken)
        shared_sessions_give(cut->daemon->sessions, cut->tenant, cut->id, "");
    registry_session_finish(&cut->before);
    fd_close(&cut->from_fd);
    fd_close(&cut->to_fd);
}
#define _cleanup_cut_ __attribute__((cleanup(cut_finish)))

/* At its turn, and beside the lock of the store: it may be much. */
static int cut_file(struct cut *cut, const char *path, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    uint64_t content = 0;
    struct stat st;
    int r = turn_take(&turn, cut->daemon, TURN_ARCHIVE, cut->tenant, err);

    if (r < 0)
        return r;
    cut->to_fd = store_temporary(cut->daemon->store);
    if (cut->to_fd < 0)
        return err_set_errno(err, -cut->to_fd, "cannot create a temporary file");
    r = artifact_cut(cut->from_fd, path, cut->to_fd, &content, err);
    if (r == -ENOENT)
        return err_set(err, ENOENT, "session %s has no file %.200s", cut->id, path);
    if (r < 0)
        return r;
    if (fsync(cut->to_fd) < 0 || fstat(cut->to_fd, &st) < 0)
        return err_set_errno(err, errno, "cannot write the files to disk");
    r = sha256_of_fd(cut->to_fd, cut->digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the files back");
    cut->row = cut->before;
    cut->row.digest = cut->digest;
    cut->row.bytes = (uint64_t)st.st_size;
    cut->row.files--;
    cut->row.content_bytes -= content;
    cut->row.changed_ns = clock_realtime_ns();
    return 0;
}

/* What was cut takes its place, if that is still what it was cut from. */
static int commit_here(struct cut *cut, struct err *err)
{
    struct daemon *d = cut->daemon;
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    int r = check_free(d, cut->tenant, cut->id, err);

    if (r < 0)
        return r;
    r = store_put(store, cut->to_fd, cut->digest, err);
    if (r < 0)
        return r;
    r = registry_session_change(d->registry, &cut->row, cut->before.digest, err);
    if (r == 0)
        return store_release(store, cut->before.digest, err);
    (void)store_release(store, cut->digest, NULL);
    return r == -ENOENT ? err_set(err, EADDRINUSE,
                                  "session %s was changed at the same time: ask again", cut->id)
                        : r;
}

/* In a cluster nobody has it until it is given; on its own that is asked again at the end. */
static int take(struct cut *cut, struct err *err)
{
    struct daemon *d = cut->daemon;
    int r = d->sessions ? shared_sessions_take(d->sessions, cut->tenant, cut->id, "", err)
                        : check_free(d, cut->tenant, cut->id, err);

    cut->is_taken = r == 0 && d->sessions;
    return r;
}

static int open_cut(struct cut *cut, struct err *err)
{
    int r = take(cut, err);

    return r < 0 ? r
                 : look_at(cut->daemon, cut->tenant, cut->id, &cut->before, &cut->from_fd, err);
}

static int cut_and_commit(struct cut *cut, const char *path, struct err *err)
{
    int r = cut_file(cut, path, err);

    if (r < 0)
        return r;
    return cut->is_taken ? shared_sessions_commit(cut->daemon->sessions, "", &cut->row,
                                                  &cut->before, cut->to_fd, err)
                         : commit_here(cut, err);
}

void route_session_file_delete(void *ctx, struct http_request *request,
                               struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *id = request->params[0];
    _cleanup_cut_ struct cut cut = {
        .daemon = d, .tenant = request->caller.tenant, .id = id, .from_fd = -1, .to_fd = -1};
    struct err err = {0};
    int r = open_cut(&cut, &err);

    if (r < 0) {
        reply_failure(d, reply, r, id, &err);
        return;
    }
    if (!held_admit(d->held, cut.before.bytes, reply))
        return;
    r = cut_and_commit(&cut, request->params[1], &err);
    if (r < 0) {
        reply_failure(d, reply, r, id, &err);
        return;
    }
    log_info("sessions", "deleted_file id=%s", id);
    http_reply_empty(reply, 204);
}
