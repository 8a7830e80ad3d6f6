/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/uploads.h"

#include "api/daemon/engine/retention.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/terms/ids.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int check_room(struct daemon *d, const char *tenant, uint64_t bytes, struct err *err)
{
    uint64_t n = 0;
    int r = registry_tenant_check_room(d->registry, tenant, bytes, err);

    if (r < 0)
        return r;
    r = registry_file_count(d->registry, tenant, &n, err);
    if (r < 0 || n < LIMIT_STORED_FILES)
        return r;
    return err_set(err, EDQUOT, "files: %llu are kept already, which is the limit: remove one",
                   (unsigned long long)n);
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
    int r = check_room(d, tenant, row->bytes, err);

    if (r < 0)
        return r;
    r = put(d, store, tenant, fd, row, err);
    if (r < 0)
        (void)store_release(store, row->digest, NULL);
    return r;
}

int uploads_store(struct daemon *d, struct http_request *request, struct spool *upload,
                  struct registry_file *row, struct err *err)
{
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
    /* Again under the lock, where it then takes no time: others wait for that lock. */
    (void)fsync(fd);
    store = store_lock(d->store);
    http_request_stored(request);
    return store_locked(d, store, request->caller.tenant, fd, row, err);
}

/* Its row and its object, at one moment. */
static int find_file(struct daemon *d, const char *tenant, const char *id,
                     struct registry_file *ret, int *ret_fd, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    int r = registry_file_get(d->registry, tenant, id, ret, err);

    if (r == 0)
        *ret_fd = store_get(store, ret->digest, err);
    return r;
}

int uploads_open(struct daemon *d, const char *tenant, const char *id,
                 struct registry_file *ret, int *ret_fd, struct err *err)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    _cleanup_fd_ int fd = -1;
    int r;

    if (!ids_valid(ID_FILE, id))
        return -ENOENT;
    r = find_file(d, tenant, id, &row, &fd, err);
    if (r < 0)
        return r;
    if (fd < 0 || row.expires_ns <= clock_realtime_ns())
        return fd < 0 ? -EIO : -ENOENT;
    *ret = row;
    row = (struct registry_file){0};
    *ret_fd = fd_steal(&fd);
    return 0;
}

int uploads_delete(struct daemon *d, const char *tenant, const char *id, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(d->store);
    _cleanup_registry_file_ struct registry_file row = {0};
    int r = ids_valid(ID_FILE, id) ? registry_file_get(d->registry, tenant, id, &row, err)
                                   : -ENOENT;

    if (r < 0)
        return r;
    r = registry_file_delete(d->registry, tenant, id, err);
    return r < 0 ? r : store_release(store, row.digest, err);
}
