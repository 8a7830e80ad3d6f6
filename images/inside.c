/* SPDX-License-Identifier: Apache-2.0 */
#include "images/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

const char *const inside_folders[INSIDE_N_FOLDERS] = {"usr/local/bin", "usr/bin", "bin"};

static int open_as(int root_fd, const char *path, int flags, unsigned resolve)
{
    const struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve};
    long fd;

    do
        fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return fd < 0 ? -errno : (int)fd;
}

int inside_open(int root_fd, const char *path, int flags)
{
    return open_as(root_fd, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int inside_open_plain(int root_fd, const char *path, int flags)
{
    return open_as(root_fd, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

static int where(int fd, char ret_path[PATH_MAX])
{
    char link[64];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, ret_path, PATH_MAX - 1);
    if (n < 0)
        return -errno;
    ret_path[n] = '\0';
    return n < PATH_MAX - 1 ? 0 : -ENAMETOOLONG;
}

int inside_where(int root_fd, int fd, char ret_path[PATH_MAX])
{
    char root[PATH_MAX], path[PATH_MAX];
    size_t n;
    int r = where(root_fd, root);

    if (r < 0)
        return r;
    r = where(fd, path);
    if (r < 0)
        return r;
    n = strlen(root);
    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return -EXDEV;
    strcpy(ret_path, path + n + (path[n] == '/'));
    return 0;
}

static bool is_program(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

int inside_program(int root_fd, const char *name)
{
    for (size_t i = 0; i < INSIDE_N_FOLDERS; i++) {
        char path[PATH_MAX];
        _cleanup_fd_ int fd = -1;

        (void)snprintf(path, sizeof(path), "%s/%.255s", inside_folders[i], name);
        fd = inside_open(root_fd, path, O_PATH);
        if (fd >= 0 && is_program(fd))
            return fd_steal(&fd);
    }
    return -ENOENT;
}
