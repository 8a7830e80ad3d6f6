/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/listener.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 256

struct listener listener_init(void)
{
    return (struct listener){.fd = -1};
}

/* True unless it is certain that nobody accepts connections at this address. */
static bool is_alive(const struct sockaddr_un *address)
{
    /* Not blocking: a daemon that is stopped, or busy, with a full backlog is alive. */
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 ||
           connect(fd, (const struct sockaddr *)address, (socklen_t)sizeof(*address)) == 0 ||
           (errno != ECONNREFUSED && errno != ENOENT);
}

static int bind_to(int fd, const struct sockaddr_un *address, mode_t mode)
{
    const struct sockaddr *any = (const struct sockaddr *)address;
    int r = bind(fd, any, (socklen_t)sizeof(*address)) < 0 ? -errno : 0;

    if (r == -EADDRINUSE && !is_alive(address) && unlink(address->sun_path) == 0)
        r = bind(fd, any, (socklen_t)sizeof(*address)) < 0 ? -errno : 0;
    /* The daemon's umask kept everybody out until now; nothing is accepted before listen. */
    if (r == 0 && chmod(address->sun_path, mode) < 0)
        r = -errno;
    return r;
}

int listener_open(struct listener *ret, const char *path, mode_t mode, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct listener l = listener_init();
    int r;

    l.is_unix = true;
    if (strlen(path) >= sizeof(address.sun_path))
        return err_set(err, ENAMETOOLONG, "the socket path is longer than %zu bytes: %s",
                       sizeof(address.sun_path) - 1, path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    memcpy(l.path, path, strlen(path) + 1);
    l.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l.fd < 0)
        return err_set_errno(err, errno, "cannot create a socket");
    r = bind_to(l.fd, &address, mode);
    if (r == 0 && (stat(path, &l.made) < 0 || listen(l.fd, BACKLOG) < 0))
        r = -errno;
    if (r < 0) {
        listener_close(&l);
        if (r == -EADDRINUSE)
            return err_set(err, EADDRINUSE, "another process listens on %s", path);
        return err_set_errno(err, -r, "cannot listen on %s", path);
    }
    *ret = l;
    return 0;
}

/* The address of "ADDRESS:PORT". 0 or -EINVAL. */
static int parse_address(const char *text, struct sockaddr_in6 *ret6, struct sockaddr_in *ret4)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    char host[INET6_ADDRSTRLEN];
    unsigned long port;
    char *end;

    if (len == 0 || colon[1] < '0' || colon[1] > '9')
        return -EINVAL;
    port = strtoul(colon + 1, &end, 10);
    if (*end || port > 65535)
        return -EINVAL;
    if (text[0] == '[' && len > 2 && text[len - 1] == ']' && len - 2 < sizeof(host)) {
        memcpy(host, text + 1, len - 2);
        host[len - 2] = '\0';
        ret6->sin6_family = AF_INET6;
        ret6->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &ret6->sin6_addr) == 1 ? 0 : -EINVAL;
    }
    if (len >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, len);
    host[len] = '\0';
    ret4->sin_family = AF_INET;
    ret4->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &ret4->sin_addr) == 1 ? 0 : -EINVAL;
}

int listener_open_tcp(struct listener *ret, const char *address, struct err *err)
{
    struct sockaddr_in6 ipv6 = {0};
    struct sockaddr_in ipv4 = {0};
    struct listener l = listener_init();
    const struct sockaddr *any = (const struct sockaddr *)&ipv4;
    socklen_t len = sizeof(ipv4);
    const int on = 1, off = 0;
    int r = 0;

    if (parse_address(address, &ipv6, &ipv4) < 0)
        return err_set(err, EINVAL, "%s is no address of the form 127.0.0.1:8080 or [::1]:8080",
                       address);
    if (ipv6.sin6_family == AF_INET6) {
        any = (const struct sockaddr *)&ipv6;
        len = sizeof(ipv6);
    }
    l.fd = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l.fd < 0)
        return err_set_errno(err, errno, "cannot create a socket for %s", address);
    if (any->sa_family == AF_INET6)
        (void)setsockopt(l.fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (setsockopt(l.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(l.fd, any, len) < 0 || listen(l.fd, BACKLOG) < 0)
        r = -errno;
    if (r < 0) {
        listener_close(&l);
        return err_set_errno(err, -r, "cannot listen on %s", address);
    }
    *ret = l;
    return 0;
}

int listener_adopt(struct listener *ret, int fd, struct err *err)
{
    struct listener l = listener_init();
    int listens = 0, type = 0, domain = 0;
    socklen_t size = sizeof(int);
    bool fits;
    int r;

    l.fd = fd;
    fits = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           (domain == AF_UNIX || domain == AF_INET || domain == AF_INET6);
    if (!fits) {
        listener_close(&l);
        return err_set(err, EINVAL, "descriptor %d is not a stream socket that listens", fd);
    }
    l.is_unix = domain == AF_UNIX;
    r = fd_set_nonblock(fd, true);
    if (r == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        r = -errno;
    if (r < 0) {
        listener_close(&l);
        return err_set_errno(err, -r, "cannot use descriptor %d", fd);
    }
    *ret = l;
    return 0;
}

void listener_unlink(struct listener *l)
{
    struct stat now;

    if (l->made.st_ino != 0 && stat(l->path, &now) == 0 && now.st_ino == l->made.st_ino &&
        now.st_dev == l->made.st_dev)
        (void)unlink(l->path);
    l->made.st_ino = 0;
}

void listener_close(struct listener *l)
{
    listener_unlink(l);
    fd_close(&l->fd);
}
