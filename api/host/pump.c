/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stream sockets joined, with half-close in both directions.
 */
#include "api/host/pump.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int pump_init(struct pump *p, int fd_a, int fd_b)
{
    int r;

    *p = (struct pump){.fd = {fd_a, fd_b}};
    for (int i = 0; i < 2; i++) {
        p->way[i].data = malloc(PUMP_BUFFER);
        r = p->way[i].data ? fd_set_nonblock(p->fd[i], true) : -ENOMEM;
        if (r < 0) {
            pump_finish(p);
            return r;
        }
    }
    return 0;
}

void pump_preload(struct pump *p, int side, const void *data, size_t len)
{
    struct pump_way *way = &p->way[side];

    memcpy(way->data, data, len);
    way->at = 0;
    way->len = len;
}

void pump_poll(const struct pump *p, struct pollfd *ret_pollfds)
{
    for (int i = 0; i < 2; i++) {
        const struct pump_way *from = &p->way[i], *to = &p->way[1 - i];
        short events = 0;

        if (!from->eof && from->len == 0)
            events |= POLLIN;
        if (!to->done && to->len > 0)
            events |= POLLOUT;
        /* An end that hung up would wake poll(2) without pause although nobody waits for it. */
        ret_pollfds[i] = (struct pollfd){.fd = events ? p->fd[i] : -1, .events = events};
    }
}

static void pump_way_end(struct pump_way *way)
{
    way->eof = true;
    way->done = true;
    way->len = 0;
}

static void pump_way_run(struct pump_way *way, int from, int to)
{
    for (;;) {
        ssize_t n;

        if (way->len == 0 && !way->eof) {
            n = recv(from, way->data, PUMP_BUFFER, 0);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0 && errno == EAGAIN)
                return;
            if (n < 0)
                n = 0;
            way->at = 0;
            way->len = (size_t)n;
            way->eof = n == 0;
        }
        if (way->len == 0) {
            shutdown(to, SHUT_WR);
            way->done = true;
            return;
        }
        n = send(to, way->data + way->at, way->len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            /* Nobody takes it any more; the source learns by its own end closing. */
            shutdown(from, SHUT_RD);
            pump_way_end(way);
            return;
        }
        way->at += (size_t)n;
        way->len -= (size_t)n;
    }
}

bool pump_run(struct pump *p)
{
    for (int i = 0; i < 2; i++) {
        if (!p->way[i].done)
            pump_way_run(&p->way[i], p->fd[i], p->fd[1 - i]);
    }
    return !(p->way[0].done && p->way[1].done);
}

void pump_finish(struct pump *p)
{
    for (int i = 0; i < 2; i++) {
        fd_close(&p->fd[i]);
        free(p->way[i].data);
        p->way[i].data = NULL;
    }
}
