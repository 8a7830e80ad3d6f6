/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/activation.h"

#include "api/daemon/http/listener.h"
#include "api/daemon/notify.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_FD (STDERR_FILENO + 1)
#define FDS_MAX  64

struct activation activation_init(void)
{
    return (struct activation){.unix_fd = -1, .tcp_fd = -1};
}

void activation_finish(struct activation *a)
{
    fd_close(&a->unix_fd);
    fd_close(&a->tcp_fd);
}

/* Puts a descriptor where it belongs. It stays the caller's to close on failure. */
static int take(struct activation *a, int fd, struct err *err)
{
    int family = listener_family(fd);
    int *slot = family == AF_UNIX ? &a->unix_fd : &a->tcp_fd;

    if (family < 0)
        return err_set(err, EINVAL, "descriptor %d of $LISTEN_FDS is no listening socket", fd);
    if (*slot >= 0)
        return err_set(err, EINVAL, "$LISTEN_FDS has two %s sockets, one is possible",
                       family == AF_UNIX ? "unix" : "TCP");
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fd_set_nonblock(fd, true) < 0)
        return err_set_errno(err, errno, "cannot use descriptor %d of $LISTEN_FDS", fd);
    *slot = fd;
    return 0;
}

int activation_take(struct activation *ret, struct err *err)
{
    struct activation a = activation_init();
    uint64_t n = notify_number("LISTEN_FDS");
    int fd = FIRST_FD, r = 0;

    if (notify_number("LISTEN_PID") != (uint64_t)getpid())
        n = 0;
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    if (n > FDS_MAX)
        return err_set(err, EINVAL, "$LISTEN_FDS is %llu", (unsigned long long)n);
    for (; r == 0 && fd < FIRST_FD + (int)n; fd++)
        r = take(&a, fd, err);
    if (r < 0) {
        activation_finish(&a);
        return r;
    }
    (void)close_range((unsigned)fd, UINT_MAX, 0);
    *ret = a;
    return 0;
}
