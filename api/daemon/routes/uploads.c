/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/uploads.h"

#include "api/daemon/engine/file_changes.h"
#include "api/daemon/engine/retention.h"
#include "api/daemon/routes/turn.h"
#include "api/daemon/terms/ids.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct spool *uploads_receive(struct http_request *request, struct http_reply *reply)
{
    if (!http_request_receive(request))
        return NULL;
    if (!request->is_multipart)
        return &request->body;
    if (request->parts[0].seen)
        return &request->parts[0].content;
    http_reply_error(reply, 400, "bad_request", "the part \"file\" is missing");
    return NULL;
}

static int put(struct daemon *d, struct store *store, const char *tenant, int fd,
               const struct registry_file *row, struct err *err)
{
    int r = store_put(store, fd, row->digest, err);

    return r < 0 ? r : registry_file_create(d->registry, tenant, row, err);
}

/* Under the store lock: the object, then the row. */
static int store_locked(struct daemon *d, struct store *store, const char *tenant, int fd,
                        const struct registry_file *row, struct err *err)
{
    int r = file_changes_check_room(d->registry, tenant, row->bytes, err);

    if (r < 0)
        return r;
    r = put(d, store, tenant, fd, row, err);
    if (r < 0)
        (void)store_release(store, row->digest, NULL);
    return r;
}

/* A file on its way to all nodes. */
struct sharing {
    struct daemon *daemon;
    const char *tenant;
    int fd;
    const struct registry_file *row;
};

static int change(void *ctx, struct err *err)
{
    const struct sharing *s = ctx;

    return file_changes_put(s->daemon->changes, s->daemon->registry, s->tenant, s->row, err);
}

static int send_and_change(void *ctx, bool *ret_sent, struct err *err)
{
    const struct sharing *s = ctx;
    const struct objects_put put = {.tenant = s->tenant,
                                    .kept = CLUSTER_OF_CHANGES,
                                    .wait_ns = OBJECTS_WAIT_NS,
                                    .digest = s->row->digest,
                                    .fd = s->fd};

    return objects_share(s->daemon->objects, &put, change, ctx, ret_sent, err);
}

/* The object at the servers, then the row of all nodes. What is refused leaves no row. */
static int store_everywhere(struct daemon *d, const char *tenant, int fd,
                            const struct registry_file *row, struct err *err)
{
    const struct skill_room_row room = {
        .tenant = tenant, .digest = row->digest, .packages_digest = "", .bytes = row->bytes};
    struct sharing sharing = {.daemon = d, .tenant = tenant, .fd = fd, .row = row};
    struct err ignored = {0};
    int r = file_changes_check_room(d->registry, tenant, row->bytes, err);

    if (r < 0)
        return r;
    r = skill_room_hold(d->skill_room, &room, row->bytes, send_and_change, &sharing, err);
    /* It is asked for here first, as likely as not. */
    if (r == 0)
        (void)objects_keep(d->objects, row->digest, fd, &ignored);
    return r;
}

int uploads_store(struct daemon *d, struct http_request *request, struct spool *upload,
                  struct registry_file *row, struct err *err)
{
    _cleanup_turn_ struct turn turn = {0};
    _cleanup_store_lock_ struct store *store = NULL;
    int fd = spool_to_fd(upload);
    int r;

    if (fd < 0)
        return err_set_errno(err, -fd, "cannot keep the file");
    row->digest = malloc(SHA256_HEX_SIZE);
    if (!row->digest)
        return err_no_memory(err);
    spool_digest(upload, row->digest);
    row->bytes = upload->size;
    row->created_ns = clock_realtime_ns();
    row->expires_ns = retention_file_expiry(d->retention, row->created_ns);
    r = ids_make(ID_FILE, row->id, sizeof(row->id));
    if (r < 0)
        return err_set(err, EIO, "no random bytes for an id");
    if (d->cluster)
        return store_everywhere(d, request->caller.tenant, fd, row, err);
    /* Again under the lock, where it then takes no time: others wait for that lock. */
    (void)fsync(fd);
    r = turn_take(&turn, d, TURN_ROWS, request->caller.tenant, err);
    if (r < 0)
        return r;
    store = store_lock(d->store);
    http_request_stored(request);
    return store_locked(d, store, request->caller.tenant, fd, row, err);
}

int uploads_find(struct daemon *d, const char *tenant, const char *id,
                 struct registry_file *ret, struct err *err)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    int r = ids_valid(ID_FILE, id) ? registry_file_get(d->registry, tenant, id, &row, err)
                                   : -ENOENT;

    if (r < 0)
        return r;
    if (row.expires_ns <= clock_realtime_ns())
        return -ENOENT;
    *ret = row;
    row = (struct registry_file){0};
    return 0;
}

/* Another node may have written the row. */
static int check_size(const struct registry_file *row, int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read the file");
    return (uint64_t)st.st_size == row->bytes
               ? 0
               : err_set(err, EREMOTEIO, "object %.12s is not of the size that its row has",
                         row->digest);
}

int uploads_judge_missing(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    int r = uploads_find(d, tenant, id, &row, err);

    return r < 0 ? r : -EIO;
}

int uploads_open(struct daemon *d, const char *tenant, const char *id,
                 struct registry_file *ret, int *ret_fd, struct err *err)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    _cleanup_fd_ int fd = -1;
    int r = uploads_find(d, tenant, id, &row, err);

    if (r < 0)
        return r;
    fd = objects_get(d->objects, row.digest, err);
    if (fd < 0)
        return fd == -ENOENT ? uploads_judge_missing(d, tenant, id, err) : fd;
    r = check_size(&row, fd, err);
    if (r < 0)
        return r;
    *ret = row;
    row = (struct registry_file){0};
    *ret_fd = fd_steal(&fd);
    return 0;
}

/* The row, then the object, on its own. */
static int delete_here(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    _cleanup_registry_file_ struct registry_file row = {0};
    int r = registry_file_get(d->registry, tenant, id, &row, err);

    if (r < 0)
        return r;
    r = registry_file_delete(d->registry, tenant, id, err);
    return r < 0 ? r : store_release(store, row.digest, err);
}

/* The row of all nodes, then the object at the servers; what stays of it for a while counts. */
static int delete_everywhere(struct daemon *d, const char *tenant, const char *id,
                             struct err *err)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    struct err ignored = {0};
    int r = registry_file_get(d->registry, tenant, id, &row, err);
    const struct skill_room_row room = {
        .tenant = tenant, .digest = row.digest, .packages_digest = "", .bytes = row.bytes};

    if (r < 0)
        return r;
    r = file_changes_delete(d->changes, d->registry, tenant, id, err);
    if (r == 0 && objects_drop(d->objects, row.digest, &ignored) < 0)
        skill_room_left(d->skill_room, &room, clock_monotonic_ns());
    return r;
}

int uploads_delete(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    if (!ids_valid(ID_FILE, id))
        return -ENOENT;
    return d->cluster ? delete_everywhere(d, tenant, id, err) : delete_here(d, tenant, id, err);
}
