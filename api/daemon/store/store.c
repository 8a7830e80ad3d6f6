/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/store/store.h"

#include "api/daemon/store/storage.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DIR_FLAGS     (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define LOCK_ATTEMPTS 50u
#define LOCK_PAUSE_NS 20000000

/* Creates every folder on the way. */
static int make_folders(const char *path, struct err *err)
{
    char text[PATH_MAX];

    if (strlen(path) >= sizeof(text))
        return err_set(err, ENAMETOOLONG, "the path of the data folder is too long");
    memcpy(text, path, strlen(path) + 1);
    for (char *p = text + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        (void)mkdir(text, 0755);
        *p = '/';
    }
    if (mkdir(text, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot create the data folder %s", path);
    return 0;
}

static int open_folder(struct store *store, const char *name, int *ret_fd, struct err *err)
{
    if (mkdirat(store->dir_fd, name, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot create %s in the data folder", name);
    *ret_fd = openat(store->dir_fd, name, DIR_FLAGS | O_NOFOLLOW);
    if (*ret_fd < 0)
        return err_set_errno(err, errno, "cannot open %s in the data folder", name);
    return 0;
}

static int take_lock(struct store *store, const char *path, struct err *err)
{
    store->lock_fd =
        openat(store->dir_fd, "skillvmd.lock", O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock_fd < 0)
        return err_set_errno(err, errno, "cannot open the lock of the data folder");
    for (unsigned i = 0; flock(store->lock_fd, LOCK_EX | LOCK_NB) < 0; i++) {
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

        if (errno != EWOULDBLOCK)
            return err_set_errno(err, errno, "cannot lock the data folder");
        /* A daemon that was killed holds it until its last child is past exec, or dead too. */
        if (i == LOCK_ATTEMPTS)
            return err_set(err, EBUSY, "another skillvmd uses the data folder %s", path);
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

static void empty_folder(int dir_fd)
{
    DIR *dir = fd_opendir(dir_fd);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        /* A folder in tmp is a snapshot that was never finished. */
        if (unlinkat(dir_fd, entry->d_name, 0) < 0)
            fd_remove_folder(dir_fd, entry->d_name);
    }
    (void)closedir(dir);
}

int store_open(const char *path, struct store *ret, struct err *err)
{
    struct store store = {-1, -1, -1, -1, -1};
    int r = make_folders(path, err);

    if (r == 0) {
        store.dir_fd = open(path, DIR_FLAGS);
        if (store.dir_fd < 0)
            r = err_set_errno(err, errno, "cannot open the data folder %s", path);
    }
    if (r == 0)
        r = take_lock(&store, path, err);
    if (r == 0)
        r = open_folder(&store, "tmp", &store.tmp_fd, err);
    if (r == 0)
        r = open_folder(&store, "objects", &store.objects_fd, err);
    if (r == 0)
        r = open_folder(&store, "snapshots", &store.snapshots_fd, err);
    if (r < 0) {
        store_close(&store);
        return r;
    }
    empty_folder(store.tmp_fd);
    *ret = store;
    return 0;
}

void store_close(struct store *store)
{
    fd_close(&store->tmp_fd);
    fd_close(&store->objects_fd);
    fd_close(&store->snapshots_fd);
    fd_close(&store->lock_fd);
    fd_close(&store->dir_fd);
}

int store_sweep(struct store *store, struct registry *registry, struct err *err)
{
    pthread_mutex_t nobody_else = PTHREAD_MUTEX_INITIALIZER;
    unsigned n;

    /* A name that a daemon gave and did not live to fsync is not given again: now it lasts. */
    if (fsync(store->objects_fd) < 0)
        return err_set_errno(err, errno, "cannot write the folder of objects to disk");
    return storage_sweep(registry, store->objects_fd, &nobody_else, &n, err);
}
