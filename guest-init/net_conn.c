/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/net_conn.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

#define ROOM_MIN (PROTO_NET_WINDOW / 4)

void net_conn_free(struct net_conn *c)
{
    fd_close(&c->fd);
    buf_finish(&c->in);
    *c = (struct net_conn){.fd = -1, .in_flight = c->in_flight};
}

void net_conn_reset(struct net_conn *c)
{
    const struct linger now = {.l_onoff = 1};

    if (c->fd >= 0)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    fd_close(&c->fd);
}

static void break_off(struct net_conn *c)
{
    c->broke = true;
    c->skill_ended = true;
    net_conn_reset(c);
    buf_clear(&c->in);
}

void net_conn_free_if_over(struct net_conn *c)
{
    if (c->host_ended && c->end_sent && c->in.len == 0)
        net_conn_free(c);
}

void net_conn_write(struct net_conn *c)
{
    while (c->fd >= 0 && c->writable && c->in.len > 0) {
        ssize_t len = send(c->fd, c->in.data, c->in.len, MSG_NOSIGNAL);

        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0) {
            c->writable = false;
            if (errno != EAGAIN)
                break_off(c);
            return;
        }
        buf_consume(&c->in, (size_t)len);
        c->passed_on += (uint32_t)len;
        if (c->in.len == 0 && c->host_ended)
            (void)shutdown(c->fd, SHUT_WR);
    }
}

int net_conn_take_data(struct net_conn *c, struct bytes_reader *r)
{
    size_t len = bytes_left(r);

    if (c->host_ended || c->in.len + len > PROTO_NET_WINDOW)
        return -EPROTO;
    if (c->broke)
        return 0;
    return buf_append(&c->in, bytes_take(r, len), len);
}

int net_conn_take_end(struct net_conn *c, struct bytes_reader *r)
{
    uint16_t broke = bytes_get_u16(r);

    if (c->host_ended || broke > 1)
        return -EPROTO;
    c->host_ended = true;
    if (broke)
        break_off(c);
    else if (c->in.len == 0 && c->fd >= 0)
        (void)shutdown(c->fd, SHUT_WR);
    net_conn_free_if_over(c);
    return 0;
}

/* As the host does: what crossed the end of its connection is of that one, up to the next. */
int net_conn_take_room(struct net_conn *c, struct bytes_reader *r)
{
    uint32_t room;

    (void)bytes_get_u16(r);
    room = bytes_get_u32(r);
    if (!bytes_done(r) || room == 0 || room > c->in_flight)
        return -EPROTO;
    c->in_flight -= room;
    return 0;
}

bool net_conn_send_data(struct net_conn *c, unsigned key, struct frame_writer *w)
{
    uint8_t payload[2 + PROTO_NET_DATA_MAX];
    struct bytes_writer b = bytes_writer_init(payload, sizeof(payload));
    size_t room = PROTO_NET_WINDOW - c->in_flight;
    size_t max = room < PROTO_NET_DATA_MAX ? room : PROTO_NET_DATA_MAX;
    ssize_t len;

    if (!c->readable || c->skill_ended || max == 0)
        return false;
    bytes_put_u16(&b, (uint16_t)key);
    do
        len = recv(c->fd, payload + b.len, max, 0);
    while (len < 0 && errno == EINTR);
    if (len > 0) {
        c->in_flight += (uint32_t)len;
        return frame_writer_add(w, PROTO_NET_GUEST_DATA, payload, b.len + (size_t)len) == 0;
    }
    c->readable = false;
    c->skill_ended = len == 0;
    if (len < 0 && errno != EAGAIN)
        break_off(c);
    return false;
}

bool net_conn_send_news(struct net_conn *c, unsigned key, struct frame_writer *w)
{
    uint8_t payload[8];
    struct bytes_writer b = bytes_writer_init(payload, sizeof(payload));
    uint8_t type;

    bytes_put_u16(&b, (uint16_t)key);
    if (c->state == CONN_DUE) {
        type = PROTO_NET_OPEN;
        bytes_put_u16(&b, (uint16_t)c->name);
        bytes_put_u16(&b, c->port);
        c->state = CONN_ASKED;
    } else if (c->state == CONN_OPEN && c->passed_on >= ROOM_MIN && !c->host_ended) {
        type = PROTO_NET_GUEST_ROOM;
        bytes_put_u16(&b, 0);
        bytes_put_u32(&b, c->passed_on);
        c->passed_on = 0;
    } else if (c->state == CONN_OPEN && c->skill_ended && !c->end_sent) {
        type = PROTO_NET_GUEST_END;
        bytes_put_u16(&b, c->broke);
        c->end_sent = true;
    } else {
        return false;
    }
    (void)frame_writer_add(w, type, payload, b.len);
    net_conn_free_if_over(c);
    return true;
}

bool net_conn_has_to_send(const struct net_conn *c)
{
    int bytes = 0;

    if (c->state == CONN_FREE || c->state == CONN_OPEN)
        return c->state == CONN_OPEN && !c->end_sent;
    return ioctl(c->fd, FIONREAD, &bytes) < 0 || bytes > 0;
}
