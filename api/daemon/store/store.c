/* SPDX-License-Identifier: Apache-2.0 */
/* The store in a folder of this machine. */
#include "api/daemon/store/store.h"

#include "api/daemon/store/spool.h"
#include "api/skill/sha256.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In tmp, of what is copied; there is one at a time, under the lock. */
#define COPY_NAME   "object-in-the-making"
#define NOTE_USE_NS (60 * NS_PER_SECOND)

struct store {
    int objects_fd; /* borrowed, as the next */
    int tmp_fd;
    store_named_fn *is_named;
    void *ctx;
    store_removed_fn *removed; /* or NULL */
    void *removed_ctx;
    pthread_mutex_t lock;
};

int store_create(const struct data_folder *folder, store_named_fn *is_named, void *ctx,
                 struct store **ret, struct err *err)
{
    struct store *store;

    /* A name that a daemon gave and did not live to fsync is not given again: now it lasts. */
    if (fsync(folder->objects_fd) < 0)
        return err_set_errno(err, errno, "cannot write the folder of objects to disk");
    store = calloc(1, sizeof(*store));
    if (!store)
        return err_no_memory(err);
    store->objects_fd = folder->objects_fd;
    store->tmp_fd = folder->tmp_fd;
    store->is_named = is_named;
    store->ctx = ctx;
    (void)pthread_mutex_init(&store->lock, NULL);
    *ret = store;
    return 0;
}

void store_on_removal(struct store *store, store_removed_fn *removed, void *ctx)
{
    store->removed = removed;
    store->removed_ctx = ctx;
}

void store_destroy(struct store *store)
{
    if (!store)
        return;
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

struct store *store_lock(struct store *store)
{
    (void)pthread_mutex_lock(&store->lock);
    return store;
}

void store_unlock(struct store **store)
{
    if (*store)
        (void)pthread_mutex_unlock(&(*store)->lock);
}

static bool is_digest(const char *text)
{
    return sha256_leads(text) && strlen(text) == SHA256_HEX_SIZE - 1;
}

static uint64_t used_ns(const struct stat *st)
{
    return (uint64_t)st->st_atim.tv_sec * NS_PER_SECOND + (uint64_t)st->st_atim.tv_nsec;
}

int store_temporary(const struct store *store)
{
    return spool_open_nameless(store->tmp_fd);
}

static int copy(int from, int to)
{
    char block[64 * 1024];
    uint64_t at = 0;
    ssize_t n;

    while ((n = fd_pread_full(from, block, sizeof(block), at)) > 0) {
        int r = fd_pwrite_full(to, block, (size_t)n, at);

        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return n < 0 ? (int)n : fsync(to) < 0 ? -errno : 0;
}

/* Where the file system gives such a file no name. */
static int put_copy(struct store *store, int fd, const char *digest)
{
    _cleanup_fd_ int to = openat(store->tmp_fd, COPY_NAME,
                                 O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = to < 0 ? -errno : copy(fd, to);

    if (r == 0 && renameat(store->tmp_fd, COPY_NAME, store->objects_fd, digest) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(store->tmp_fd, COPY_NAME, 0);
    return r;
}

int store_put(struct store *store, int fd, const char *digest, struct err *err)
{
    char path[32];
    int r = 0;

    if (!is_digest(digest))
        return err_set(err, EINVAL, "not a digest");
    if (faccessat(store->objects_fd, digest, F_OK, 0) == 0)
        return 0;
    if (fsync(fd) < 0)
        return err_set_errno(err, errno, "cannot write an object to disk");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, store->objects_fd, digest, AT_SYMLINK_FOLLOW) < 0)
        r = put_copy(store, fd, digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot store an object");
    /* The name itself must survive a power loss too. */
    if (fsync(store->objects_fd) < 0)
        return err_set_errno(err, errno, "cannot write the folder of objects to disk");
    return 0;
}

void store_note_use(int fd)
{
    const struct timespec now[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    uint64_t now_ns = clock_realtime_ns();
    struct stat st;

    if (fstat(fd, &st) == 0 && used_ns(&st) + NOTE_USE_NS < now_ns)
        (void)futimens(fd, now);
}

int store_get(const struct store *store, const char *digest, struct err *err)
{
    int fd;

    if (!is_digest(digest))
        return err_set(err, EINVAL, "not a digest");
    fd = openat(store->objects_fd, digest, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? err_set_errno(err, errno, "cannot open object %s", digest) : fd;
}

int store_links(const struct store *store)
{
    return store->tmp_fd;
}

int store_link(struct store *store, const char *digest, const char *name, struct err *err)
{
    if (!is_digest(digest))
        return err_set(err, EINVAL, "not a digest");
    if (linkat(store->objects_fd, digest, store->tmp_fd, name, 0) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot keep object %s", digest);
    return 0;
}

/* Under the lock. *ret_removed: no row named it. */
static int remove_unnamed(struct store *store, const char *digest, bool *ret_removed,
                          struct err *err)
{
    struct stat st = {0};
    bool named = true;
    int r = store->is_named(store->ctx, digest, &named, err);

    *ret_removed = r == 0 && !named && is_digest(digest);
    if (!*ret_removed)
        return r;
    (void)fstatat(store->objects_fd, digest, &st, AT_SYMLINK_NOFOLLOW);
    (void)unlinkat(store->objects_fd, digest, 0);
    if (store->removed)
        store->removed(store->removed_ctx, digest, st.st_ino);
    return r;
}

int store_release(struct store *store, const char *digest, struct err *err)
{
    bool removed;

    return remove_unnamed(store, digest, &removed, err);
}

int store_each(struct store *store, store_visit_fn *visit, void *ctx, struct err *err)
{
    DIR *dir = fd_opendir(store->objects_fd);
    struct dirent *entry;
    int r = 0;

    if (!dir)
        return err_set_errno(err, errno, "cannot read the folder of objects");
    while (r >= 0 && (entry = readdir(dir))) {
        struct store_object object = {.bytes = 0};
        struct stat st;

        if (!is_digest(entry->d_name) ||
            fstatat(store->objects_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        memcpy(object.digest, entry->d_name, sizeof(object.digest));
        object.bytes = (uint64_t)st.st_size;
        object.used_ns = used_ns(&st);
        r = visit(ctx, &object);
    }
    (void)closedir(dir);
    return r < 0 ? r : 0;
}

void store_evict(struct store *store, const char *digest)
{
    if (is_digest(digest))
        (void)unlinkat(store->objects_fd, digest, 0);
}

struct sweep {
    struct store *store;
    struct err *err;
    unsigned n;
};

/* Under the lock no object is on its way between its file and its row. */
static int sweep_one(void *ctx, const struct store_object *object)
{
    struct sweep *sweep = ctx;
    _cleanup_store_lock_ struct store *locked = store_lock(sweep->store);
    bool removed = false;
    int r = remove_unnamed(locked, object->digest, &removed, sweep->err);

    sweep->n += removed;
    if (removed)
        log_info("store", "removed object=%.12s reason=\"nothing names it\"", object->digest);
    return r;
}

int store_sweep(struct store *store, unsigned *ret_n, struct err *err)
{
    struct sweep sweep = {.store = store, .err = err};
    int r = store_each(store, sweep_one, &sweep, err);

    *ret_n = sweep.n;
    return r;
}
