/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/listener.h"

#include "base/fd.h"

#include <errno.h>
#include <stdbool.h>
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
