/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/store/data_folder.h"

#include "base/clock.h"
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
#include <unistd.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* Creates every folder on the way. */
static int make_folders(const char *path, struct err *err)
{
    char text[PATH_MAX];
    int r;

    if (strlen(path) >= sizeof(text))
        return err_set(err, ENAMETOOLONG, "the path of the data folder is too long");
    memcpy(text, path, strlen(path) + 1);
    r = fd_make_folders(text, 0755, 0700);
    return r < 0 ? err_set_errno(err, -r, "cannot create the data folder %s", path) : 0;
}

static int open_folder(struct data_folder *folder, const char *name, int *ret_fd,
                       struct err *err)
{
    if (mkdirat(folder->dir_fd, name, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot create %s in the data folder", name);
    *ret_fd = openat(folder->dir_fd, name, DIR_FLAGS | O_NOFOLLOW);
    if (*ret_fd < 0)
        return err_set_errno(err, errno, "cannot open %s in the data folder", name);
    return 0;
}

static int take_lock(struct data_folder *folder, const char *path, struct err *err)
{
    unsigned tries = 0;

    folder->lock_fd = openat(folder->dir_fd, "skillvmd.lock",
                             O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (folder->lock_fd < 0)
        return err_set_errno(err, errno, "cannot open the lock of the data folder");
    while (flock(folder->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_set_errno(err, errno, "cannot lock the data folder");
        if (!clock_try_again(&tries))
            return err_set(err, EBUSY, "another skillvmd uses the data folder %s", path);
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

static int open_all(struct data_folder *folder, const char *path, struct err *err)
{
    int r = make_folders(path, err);

    if (r < 0)
        return r;
    folder->dir_fd = open(path, DIR_FLAGS);
    if (folder->dir_fd < 0)
        return err_set_errno(err, errno, "cannot open the data folder %s", path);
    r = take_lock(folder, path, err);
    if (r < 0)
        return r;
    r = open_folder(folder, "tmp", &folder->tmp_fd, err);
    if (r < 0)
        return r;
    r = open_folder(folder, "objects", &folder->objects_fd, err);
    return r < 0 ? r : open_folder(folder, "snapshots", &folder->snapshots_fd, err);
}

int data_folder_open(const char *path, struct data_folder *ret, struct err *err)
{
    struct data_folder folder = {-1, -1, -1, -1, -1};
    int r = open_all(&folder, path, err);

    if (r < 0) {
        data_folder_close(&folder);
        return r;
    }
    empty_folder(folder.tmp_fd);
    *ret = folder;
    return 0;
}

void data_folder_close(struct data_folder *folder)
{
    fd_close(&folder->tmp_fd);
    fd_close(&folder->objects_fd);
    fd_close(&folder->snapshots_fd);
    fd_close(&folder->lock_fd);
    fd_close(&folder->dir_fd);
}
