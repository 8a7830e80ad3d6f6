/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaching the relay inside the software host.
 */
#include "api/host/dial.h"

#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

int dial_start(struct dial *d, uint16_t port, enum wire_op op, uid_t uid, const uint8_t *token,
               uint32_t timeout_ms)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct wire_request request = {op, clock_realtime_ns(), uid};
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;

    *d = DIAL_IDLE;
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 && errno != EINPROGRESS)
        return -errno;
    wire_encode(d->preamble, &request, token);
    d->deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    d->fd = fd_steal(&fd);
    return 0;
}

struct pollfd dial_poll(const struct dial *d)
{
    return (struct pollfd){.fd = d->fd,
                           .events = d->sent < WIRE_PREAMBLE_SIZE ? POLLOUT : POLLIN};
}

/* -EINPROGRESS, 0 or another -errno; leaves closing to dial_run. */
static int dial_step(struct dial *d)
{
    char answer;
    ssize_t n;

    if (d->sent < WIRE_PREAMBLE_SIZE) {
        n = send(d->fd, d->preamble + d->sent, WIRE_PREAMBLE_SIZE - d->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? -EINPROGRESS : -errno;
        d->sent += (size_t)n;
        return -EINPROGRESS;
    }
    n = recv(d->fd, &answer, 1, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -EINPROGRESS : -errno;
    if (n == 0)
        return -ECONNRESET;
    if (answer == WIRE_NO_DAEMON)
        return -EAGAIN;
    return answer == WIRE_OK ? 0 : -EPROTO;
}

int dial_run(struct dial *d, uint64_t now_ns, int *ret_fd)
{
    int r;

    if (d->fd < 0)
        return -ENOTCONN;
    r = dial_step(d);
    if (r == -EINPROGRESS && now_ns >= d->deadline_ns)
        r = -ETIMEDOUT;
    if (r == -EINPROGRESS)
        return r;
    if (r == 0)
        *ret_fd = fd_steal(&d->fd);
    dial_finish(d);
    return r;
}

void dial_finish(struct dial *d)
{
    fd_close(&d->fd);
    *d = DIAL_IDLE;
}
