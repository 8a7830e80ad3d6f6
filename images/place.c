/* SPDX-License-Identifier: Apache-2.0 */
#include "images/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "images/inside.h"

void place_finish(struct place *place)
{
    fd_close(&place->parent);
}

/* Opens a folder, made if it is not there. path ends where *end is, and is whole again then. */
static int open_part(int root_fd, char *path, char *end, bool make)
{
    char behind = *end, *slash;
    int fd, above;

    *end = '\0';
    fd = inside_open(root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY);
    if (fd == -ENOENT && make) {
        slash = strrchr(path, '/');
        above = slash ? open_part(root_fd, path, slash, true)
                      : inside_open(root_fd, ".", O_RDONLY | O_DIRECTORY);
        /* What is there and yet is not is a link that leads nowhere. */
        fd = above < 0 ? above
             : mkdirat(above, slash ? slash + 1 : path, 0755) < 0
                 ? (errno == EEXIST ? -ELOOP : -errno)
                 : inside_open(root_fd, path, O_RDONLY | O_DIRECTORY);
        fd_close(&above);
    }
    *end = behind;
    return fd;
}

/* Links could make a tree deeper than any of its paths is long. */
static int check_depth(int root_fd, int folder_fd)
{
    char path[PATH_MAX];
    size_t depth = 1;
    int r = inside_where(root_fd, folder_fd, path);

    for (const char *c = path; r == 0 && *c; c++)
        depth += *c == '/';
    return r < 0                                                    ? r
           : depth > PLACE_DEPTH_MAX || strlen(path) > PATH_MAX / 2 ? -ENAMETOOLONG
                                                                    : 0;
}

static int refuse(int code, const char *path, struct err *err)
{
    if (code == -ELOOP)
        return err_set(err, ELOOP, "%.200s lies behind a link that leads nowhere", path);
    if (code == -ENOTDIR)
        return err_set(err, ENOTDIR, "%.200s lies in what is no folder", path);
    if (code == -ENAMETOOLONG)
        return err_set(err, ENAMETOOLONG, "%.200s lies too deep", path);
    return err_set_errno(err, -code, "%.200s", path);
}

int place_find(int root_fd, const char *path, bool make, struct place *ret, struct err *err)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int fd, r;

    *ret = PLACE_NONE;
    if (strlen(path) >= sizeof(above) || strlen(name) >= sizeof(ret->name) || !*name)
        return refuse(-ENAMETOOLONG, path, err);
    (void)snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 0, path);
    fd = open_part(root_fd, above, above + strlen(above), make);
    if (fd == -ENOENT && !make)
        return fd;
    if (fd < 0)
        return refuse(fd, path, err);
    r = check_depth(root_fd, fd);
    if (r < 0) {
        fd_close(&fd);
        return refuse(r, path, err);
    }
    ret->parent = fd;
    ret->path = path;
    strcpy(ret->name, name);
    return 0;
}

static int empty_folder(int fd);

static int remove_entry(int parent, const char *name)
{
    int fd, r;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = empty_folder(fd);
    fd_close(&fd);
    if (r < 0)
        return r;
    return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* No deeper than PLACE_DEPTH_MAX, as nothing deeper was put. */
static int empty_folder(int fd) // NOLINT(misc-no-recursion)
{
    DIR *dir = fd_opendir(fd);
    const struct dirent *entry;
    int r = 0;

    if (!dir)
        return -errno;
    while (r == 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = remove_entry(fd, entry->d_name);
    }
    (void)closedir(dir);
    return r;
}

int place_clear(const struct place *place, struct err *err)
{
    int r = remove_entry(place->parent, place->name);

    return r < 0 ? err_set_errno(err, -r, "cannot remove %.200s", place->path) : 0;
}

int place_empty(const struct place *place, struct err *err)
{
    _cleanup_fd_ int fd =
        openat(place->parent, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? 0 : empty_folder(fd);

    return r < 0 ? err_set_errno(err, -r, "cannot empty %.200s", place->path) : 0;
}

int place_empty_root(int root_fd, struct err *err)
{
    int r = empty_folder(root_fd);

    return r < 0 ? err_set_errno(err, -r, "cannot empty the root") : 0;
}

int place_file(const struct place *place, mode_t mode, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = place_clear(place, err);

    if (r < 0)
        return r;
    fd = openat(place->parent, place->name,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* fchmod: the mode must not depend on the umask of whoever builds. */
    if (fd < 0 || fchmod(fd, mode & 0777) < 0)
        return err_set_errno(err, errno, "%.200s", place->path);
    return fd_steal(&fd);
}

int place_folder(const struct place *place, mode_t mode, struct err *err)
{
    struct stat st;
    int r;

    if (fstatat(place->parent, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISDIR(st.st_mode)) {
        r = place_clear(place, err);
        if (r < 0)
            return r;
        if (mkdirat(place->parent, place->name, 0700) < 0)
            return err_set_errno(err, errno, "%.200s", place->path);
    }
    if (fchmodat(place->parent, place->name, mode & 01777, 0) < 0)
        return err_set_errno(err, errno, "%.200s", place->path);
    return 0;
}

int place_link(const struct place *place, const char *target, struct err *err)
{
    int r = place_clear(place, err);

    if (r < 0)
        return r;
    return symlinkat(target, place->parent, place->name) < 0
               ? err_set_errno(err, errno, "%.200s", place->path)
               : 0;
}

int place_same(const struct place *place, const struct place *other, struct err *err)
{
    struct stat here, there;
    int r;

    if (fstatat(other->parent, other->name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
        S_ISDIR(there.st_mode))
        return err_set(err, ENOENT, "%.150s is the same file as %.150s, which is not there",
                       place->path, other->path);
    if (fstatat(place->parent, place->name, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
        here.st_dev == there.st_dev && here.st_ino == there.st_ino)
        return 0;
    r = place_clear(place, err);
    if (r < 0)
        return r;
    return linkat(other->parent, other->name, place->parent, place->name, 0) < 0
               ? err_set_errno(err, errno, "%.200s", place->path)
               : 0;
}
