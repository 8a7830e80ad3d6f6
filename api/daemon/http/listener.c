/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/listener.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/ip_address.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 256

struct listener listener_init(void)
{
    return (struct listener){.fd = -1};
}

/* True unless it is certain that nobody accepts connections at this address. */
static bool is_alive(const char *path)
{
    /* Not blocking: a daemon that is stopped, or busy, with a full backlog is alive. */
    _cleanup_fd_ int fd = fd_connect_unix(path, SOCK_NONBLOCK);

    return fd != -ECONNREFUSED && fd != -ENOENT;
}

static int bind_to(struct listener *l, const struct sockaddr_un *address, mode_t mode)
{
    unsigned tries = 0;

    while (bind(l->fd, (const struct sockaddr *)address, (socklen_t)sizeof(*address)) < 0) {
        if (errno != EADDRINUSE)
            return -errno;
        if (is_alive(l->path) ? !clock_try_again(&tries) : unlink(l->path) < 0)
            return -EADDRINUSE;
    }
    /* The daemon's umask kept everybody out until now; nothing is accepted before listen. */
    return chmod(l->path, mode) < 0 || stat(l->path, &l->made) < 0 || listen(l->fd, BACKLOG) < 0
               ? -errno
               : 0;
}

int listener_open(struct listener *l, const char *path, mode_t mode, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int r;

    l->is_unix = true;
    if (strlen(path) >= sizeof(address.sun_path))
        return err_set(err, ENAMETOOLONG, "the socket path is longer than %zu bytes: %s",
                       sizeof(address.sun_path) - 1, path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    memcpy(l->path, path, strlen(path) + 1);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = l->fd < 0 ? -errno : bind_to(l, &address, mode);
    if (r == -EADDRINUSE)
        return err_set(err, EADDRINUSE, "another process listens on %s", path);
    return r < 0 ? err_set_errno(err, -r, "cannot listen on %s", path) : 0;
}

static int bind_to_port(int fd, const union ip_address *at, socklen_t len)
{
    unsigned tries = 0;

    while (bind(fd, &at->any, len) < 0 || listen(fd, BACKLOG) < 0) {
        if (errno != EADDRINUSE || !clock_try_again(&tries))
            return -1;
    }
    return 0;
}

int listener_open_tcp(struct listener *l, const char *address, struct err *err)
{
    union ip_address at;
    const socklen_t len = ip_address_parse(address, &at);
    const int on = 1, off = 0;

    if (len == 0)
        return err_set(err, EINVAL, "%s is no address of the form 127.0.0.1:8080 or [::1]:8080",
                       address);
    l->fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (at.any.sa_family == AF_INET6 &&
         setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
        bind_to_port(l->fd, &at, len) < 0)
        return err_set_errno(err, errno, "cannot listen on %s", address);
    return 0;
}

static int get_option(int fd, int option)
{
    int value = -1;
    socklen_t len = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

int listener_family(int fd)
{
    const int family = get_option(fd, SO_DOMAIN);

    if (get_option(fd, SO_TYPE) != SOCK_STREAM || get_option(fd, SO_ACCEPTCONN) != 1 ||
        (family != AF_UNIX && family != AF_INET && family != AF_INET6))
        return -EINVAL;
    return family;
}

int listener_adopt(struct listener *l, int fd, struct err *err)
{
    const int family = listener_family(fd);
    int r;

    l->fd = fd;
    if (family < 0)
        return err_set(err, EINVAL, "descriptor %d is not a stream socket that listens", fd);
    l->is_unix = family == AF_UNIX;
    r = fd_set_nonblock(fd, true);
    if (r == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        r = -errno;
    return r < 0 ? err_set_errno(err, -r, "cannot use descriptor %d", fd) : 0;
}

void listener_close(struct listener *l)
{
    struct stat now;

    if (l->made.st_ino != 0 && stat(l->path, &now) == 0 && now.st_ino == l->made.st_ino &&
        now.st_dev == l->made.st_dev)
        (void)unlink(l->path);
    l->made.st_ino = 0;
    fd_close(&l->fd);
}
