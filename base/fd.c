/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_MAX 8u

void fd_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved;
}

int fd_steal(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/* From an offset on, or where the descriptor stands: -1. */
static ssize_t read_full(int fd, void *data, size_t len, off_t offset)
{
    uint8_t *p = data;
    size_t done = 0;

    while (done < len) {
        ssize_t n = offset < 0 ? read(fd, p + done, len - done)
                               : pread(fd, p + done, len - done, offset + (off_t)done);

        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

ssize_t fd_read_full(int fd, void *data, size_t len)
{
    return read_full(fd, data, len, -1);
}

ssize_t fd_pread_full(int fd, void *data, size_t len, uint64_t offset)
{
    return offset > INT64_MAX ? -EINVAL : read_full(fd, data, len, (off_t)offset);
}

ssize_t fd_read_text(const char *path, char *out, size_t size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : fd_read_full(fd, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
    return n;
}

int fd_write_full(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;
    bool is_socket = true;

    while (len > 0) {
        ssize_t n = is_socket ? send(fd, p, len, MSG_NOSIGNAL) : write(fd, p, len);

        if (n < 0 && errno == ENOTSOCK) {
            is_socket = false;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int fd_pwrite_full(int fd, const void *data, size_t len, uint64_t offset)
{
    const uint8_t *p = data;

    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

DIR *fd_opendir(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        fd_close(&fd);
    return dir;
}

void fd_remove_folder(int parent_fd, const char *name)
{
    _cleanup_fd_ int fd =
        openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fd_opendir(fd);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)))
        (void)unlinkat(fd, entry->d_name, 0);
    (void)closedir(dir);
    (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

int fd_make_folders(char *path, mode_t above, mode_t last)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, above) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return mkdir(path, last) < 0 && errno != EEXIST ? -errno : 0;
}

int fd_reopen(int fd, int flags)
{
    char path[32];
    int r;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    r = open(path, flags | O_CLOEXEC);
    return r < 0 ? -errno : r;
}

bool fd_is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&p, 1, 0) > 0;
}

int fd_connect_unix(const char *path, int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    if (fd < 0)
        return -errno;
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return fd_steal(&fd);
}

int fd_peer(int fd, struct ucred *ret)
{
    socklen_t len = sizeof(*ret);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len) < 0 ? -errno : 0;
}

int fd_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
    union {
        char raw[CMSG_SPACE(sizeof(int) * FDS_MAX)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (n_fds > FDS_MAX)
        return -EINVAL;
    /* sendmsg(2) does not write through iov_base; the field is not const for recvmsg's sake. */
    memcpy(&iov.iov_base, &data, sizeof(data));
    if (n_fds > 0) {
        struct cmsghdr *c;

        msg.msg_control = control.raw;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EMSGSIZE;
}

ssize_t fd_receive(int sock, void *data, size_t len, int *ret_fds, size_t max_fds,
                   size_t *ret_n_fds)
{
    union {
        char raw[CMSG_SPACE(sizeof(int) * FDS_MAX)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = data, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.raw,
                         .msg_controllen = sizeof(control.raw)};
    int fds[FDS_MAX];
    size_t n_fds = 0;
    ssize_t n;

    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
        size_t count;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > FDS_MAX - n_fds)
            count = FDS_MAX - n_fds;
        memcpy(fds + n_fds, CMSG_DATA(c), count * sizeof(int));
        n_fds += count;
    }
    if (n_fds > max_fds || (msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
        for (size_t i = 0; i < n_fds; i++)
            fd_close(&fds[i]);
        return -EMSGSIZE;
    }
    if (n_fds > 0)
        memcpy(ret_fds, fds, n_fds * sizeof(int));
    if (ret_n_fds)
        *ret_n_fds = n_fds;
    return n;
}
