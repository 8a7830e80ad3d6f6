/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* A pipe that poll says is writable takes this much at once. */
#define CHUNK_MAX PIPE_BUF

static bool wait_for_room(const struct output *out)
{
    struct pollfd fds[] = {{.fd = out->fd, .events = POLLOUT},
                           {.fd = out->stop_fd, .events = POLLIN}};

    for (;;) {
        if (poll(fds, 2, -1) < 0) {
            if (errno != EINTR)
                return false;
        } else if (fds[0].revents & POLLOUT) {
            return true;
        } else if (fds[0].revents || fds[1].revents) {
            return false;
        }
    }
}

static ssize_t write_some(int fd, const char *data, size_t len)
{
    ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno == ENOTSOCK)
        n = write(fd, data, len < CHUNK_MAX ? len : CHUNK_MAX);
    return n;
}

void output_write(struct output *out, const char *data, size_t len)
{
    while (len > 0 && !out->broken) {
        if (!wait_for_room(out)) {
            out->broken = true;
            return;
        }
        ssize_t n = write_some(out->fd, data, len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0) {
            out->broken = true;
            return;
        }
        data += n;
        len -= (size_t)n;
    }
}
