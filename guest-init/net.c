/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest-init/dns.h"
#include "guest-init/net_conn.h"

#define EVENTS       32
#define BACKLOG      64
#define DNS_PACKET   512u
#define DNS_IN_A_ROW 16
/* What is left in the writer for the skill's output, beside a frame of ours. */
#define ROOM_LEFT (2u * PROTO_NET_DATA_MAX)
/* Of names, from 127.127.0.1 on. */
#define FIRST_ADDRESS 0x7f7f0001u

/* What epoll calls things by. */
enum { KEY_DNS = 0x10000, KEY_LISTENER = 0x20000 };

enum query_state { QUERY_FREE, QUERY_DUE, QUERY_ASKED };

struct query {
    enum query_state state;
    struct dns_query dns;
    struct sockaddr_in from;
};

struct listener {
    int fd;
    uint16_t port;
    bool readable;
};

struct name {
    bool is_known;
    unsigned n;
    struct listener listeners[PROTO_NET_PORTS];
};

struct net {
    int epoll_fd, dns_fd;
    unsigned turn;
    struct query queries[PROTO_NET_QUERIES];
    struct name names[PROTO_NET_NAMES];
    struct net_conn conns[PROTO_NET_CONNECTIONS];
};

static struct sockaddr_in loopback(uint32_t address, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
}

static int watch(const struct net *n, int fd, uint32_t key)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.u32 = key};

    return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_resolver(struct net *n, uint16_t port)
{
    struct sockaddr_in at = loopback(ntohl(inet_addr(NET_RESOLVER)), port);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = KEY_DNS};

    n->dns_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->dns_fd < 0 || bind(n->dns_fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
        epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, n->dns_fd, &event) < 0)
        return -errno;
    return 0;
}

struct net *net_open(uint16_t dns_port, struct err *err)
{
    struct net *n = calloc(1, sizeof(*n));
    int r;

    if (!n) {
        err_no_memory(err);
        return NULL;
    }
    n->dns_fd = -1;
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++)
        n->conns[i].fd = -1;
    n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r = n->epoll_fd < 0 ? -errno : open_resolver(n, dns_port);
    if (r < 0) {
        err_set_errno(err, -r, "cannot make the skill's resolver");
        net_close(n);
        return NULL;
    }
    return n;
}

void net_close(struct net *n)
{
    if (!n)
        return;
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++)
        net_conn_free(&n->conns[i]);
    for (unsigned i = 0; i < PROTO_NET_NAMES; i++) {
        for (unsigned j = 0; j < n->names[i].n; j++)
            fd_close(&n->names[i].listeners[j].fd);
    }
    fd_close(&n->dns_fd);
    fd_close(&n->epoll_fd);
    free(n);
}

int net_fd(const struct net *n)
{
    return n->epoll_fd;
}

static void answer(const struct net *n, const struct query *q, enum dns_result result,
                   uint32_t address)
{
    const uint32_t big_endian = htonl(address);
    uint8_t ipv4[4], out[DNS_ANSWER_MAX];
    size_t len;

    memcpy(ipv4, &big_endian, sizeof(ipv4));
    len = dns_answer(&q->dns, result, ipv4, out);
    (void)sendto(n->dns_fd, out, len, MSG_NOSIGNAL, (const struct sockaddr *)&q->from,
                 sizeof(q->from));
}

static struct query *free_query(struct net *n)
{
    for (unsigned i = 0; i < PROTO_NET_QUERIES; i++) {
        if (n->queries[i].state == QUERY_FREE)
            return &n->queries[i];
    }
    return NULL;
}

static void take_question(struct net *n, const uint8_t *data, size_t len,
                          const struct sockaddr_in *from)
{
    struct query q = {.state = QUERY_DUE, .from = *from};
    struct query *place;

    if (dns_parse(data, len, &q.dns) < 0)
        return;
    if (!q.dns.name[0] || !q.dns.wants_ipv4) {
        answer(n, &q, q.dns.name[0] ? DNS_GOOD : DNS_NOBODY, 0);
        return;
    }
    place = free_query(n);
    if (place)
        *place = q;
    else
        answer(n, &q, DNS_FAILED, 0);
}

static void take_questions(struct net *n)
{
    for (unsigned i = 0; i < DNS_IN_A_ROW; i++) {
        uint8_t data[DNS_PACKET];
        struct sockaddr_in from;
        socklen_t size = sizeof(from);
        ssize_t len = recvfrom(n->dns_fd, data, sizeof(data), MSG_DONTWAIT,
                               (struct sockaddr *)&from, &size);

        if (len < 0)
            return;
        take_question(n, data, (size_t)len, &from);
    }
}

/* Listens where a name is reached from now on. What is taken already is left out. */
static void listen_at(struct net *n, unsigned at, uint16_t port)
{
    struct name *name = &n->names[at];
    struct sockaddr_in address = loopback(FIRST_ADDRESS + at, port);
    struct listener *l = &name->listeners[name->n];
    const int on = 1;

    *l = (struct listener){.fd = -1, .port = port};
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return;
    (void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(l->fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(l->fd, BACKLOG) < 0 ||
        watch(n, l->fd, KEY_LISTENER + at * PROTO_NET_PORTS + name->n) < 0)
        fd_close(&l->fd);
    else
        name->n++;
}

static struct net_conn *free_conn_of(struct net *n)
{
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        if (n->conns[i].state == CONN_FREE)
            return &n->conns[i];
    }
    return NULL;
}

/* Accepts as long as there are connections and numbers for them; others wait where they are. */
static void accept_all(struct net *n, unsigned at, struct listener *l)
{
    struct net_conn *c;

    while (l->readable && (c = free_conn_of(n))) {
        const int on = 1;
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        l->readable = fd >= 0;
        if (fd < 0)
            return;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        *c = (struct net_conn){.state = CONN_DUE,
                               .fd = fd,
                               .name = at,
                               .port = l->port,
                               .in = buf_init(PROTO_NET_WINDOW),
                               .in_flight = c->in_flight};
        if (watch(n, fd, (uint32_t)(c - n->conns)) < 0)
            net_conn_free(c);
    }
}

static void note(struct net *n, uint32_t key, uint32_t events)
{
    if (key == KEY_DNS) {
        take_questions(n);
    } else if (key >= KEY_LISTENER) {
        key -= KEY_LISTENER;
        n->names[key / PROTO_NET_PORTS].listeners[key % PROTO_NET_PORTS].readable = true;
    } else {
        n->conns[key].readable |= (events & ~(uint32_t)EPOLLOUT) != 0;
        n->conns[key].writable |= (events & ~(uint32_t)(EPOLLIN | EPOLLRDHUP)) != 0;
    }
}

void net_work(struct net *n)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(n->epoll_fd, events, EVENTS, 0);

    for (int i = 0; i < count; i++)
        note(n, events[i].data.u32, events[i].events);
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        if (n->conns[i].state == CONN_OPEN) {
            net_conn_write(&n->conns[i]);
            net_conn_free_if_over(&n->conns[i]);
        }
    }
    for (unsigned i = 0; i < PROTO_NET_NAMES; i++) {
        for (unsigned j = 0; j < n->names[i].n; j++)
            accept_all(n, i, &n->names[i].listeners[j]);
    }
}

static int take_answer(struct net *n, struct bytes_reader *r)
{
    static const enum dns_result results[] = {[PROTO_NET_GOOD] = DNS_GOOD,
                                              [PROTO_NET_NOBODY] = DNS_NOBODY,
                                              [PROTO_NET_FAILED] = DNS_FAILED};
    unsigned key = bytes_get_u16(r);
    unsigned result = bytes_get_u8(r), at = bytes_get_u8(r);

    if (key >= PROTO_NET_QUERIES || n->queries[key].state != QUERY_ASKED ||
        result > PROTO_NET_FAILED || at >= PROTO_NET_NAMES)
        return -EPROTO;
    for (unsigned i = 0; bytes_left(r) > 0 && i < PROTO_NET_PORTS; i++) {
        uint16_t port = bytes_get_u16(r);

        if (!n->names[at].is_known)
            listen_at(n, at, port);
    }
    if (!bytes_done(r))
        return -EPROTO;
    n->names[at].is_known |= result == PROTO_NET_GOOD;
    answer(n, &n->queries[key], results[result], FIRST_ADDRESS + at);
    n->queries[key].state = QUERY_FREE;
    return 0;
}

int net_take(struct net *n, const struct frame *frame)
{
    struct bytes_reader r = bytes_reader_init(frame->data, frame->len);
    struct net_conn *c;
    unsigned key;

    if (frame->type == PROTO_NET_ANSWER)
        return take_answer(n, &r);
    key = bytes_get_u16(&r);
    if (key >= PROTO_NET_CONNECTIONS)
        return -EPROTO;
    c = &n->conns[key];
    if (frame->type == PROTO_NET_OPENED || frame->type == PROTO_NET_REFUSED) {
        if (c->state != CONN_ASKED)
            return -EPROTO;
        c->state = CONN_OPEN;
        c->in_flight = 0;
        if (frame->type == PROTO_NET_REFUSED) {
            net_conn_reset(c);
            net_conn_free(c);
        }
        return 0;
    }
    if (frame->type == PROTO_NET_HOST_ROOM)
        return net_conn_take_room(c, &r);
    if (c->state != CONN_OPEN)
        return -EPROTO;
    switch (frame->type) {
    case PROTO_NET_HOST_DATA:
        return net_conn_take_data(c, &r);
    case PROTO_NET_HOST_END:
        return net_conn_take_end(c, &r);
    default:
        return -EPROTO;
    }
}

static void send_questions(struct net *n, struct frame_writer *w)
{
    for (unsigned i = 0; i < PROTO_NET_QUERIES; i++) {
        uint8_t payload[2 + PROTO_NET_NAME_MAX];
        struct bytes_writer b = bytes_writer_init(payload, sizeof(payload));
        struct query *q = &n->queries[i];

        if (q->state != QUERY_DUE)
            continue;
        bytes_put_u16(&b, (uint16_t)i);
        bytes_put(&b, q->dns.name, strlen(q->dns.name));
        if (frame_writer_add(w, PROTO_NET_ASK, payload, b.len) < 0)
            return;
        q->state = QUERY_ASKED;
    }
}

/* A connection may wait for a number. */
static bool has_waiting(const struct net *n)
{
    for (unsigned i = 0; i < PROTO_NET_NAMES; i++) {
        for (unsigned j = 0; j < n->names[i].n; j++) {
            if (n->names[i].listeners[j].readable)
                return true;
        }
    }
    return false;
}

static bool has_room(const struct frame_writer *w)
{
    return frame_writer_room(w) >= ROOM_LEFT + PROTO_NET_DATA_MAX;
}

bool net_send(struct net *n, struct frame_writer *w)
{
    if (has_room(w))
        send_questions(n, w);
    /* Each in its turn, until all of them have nothing. */
    for (unsigned idle = 0; idle < PROTO_NET_CONNECTIONS; idle++) {
        struct net_conn *c = &n->conns[n->turn];

        if (!has_room(w))
            return true;
        if ((c->state == CONN_OPEN && net_conn_send_data(c, n->turn, w)) ||
            net_conn_send_news(c, n->turn, w))
            idle = 0;
        n->turn = (n->turn + 1) % PROTO_NET_CONNECTIONS;
    }
    /* A number may have become free for what waits. */
    return has_waiting(n) && free_conn_of(n);
}

bool net_is_used(const struct net *n)
{
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        if (n->conns[i].state != CONN_FREE)
            return true;
    }
    return has_waiting(n);
}

/* True while there is something of the skill's that the host was not given. */
static bool is_sending(const struct net *n)
{
    for (unsigned i = 0; i < PROTO_NET_CONNECTIONS; i++) {
        if (net_conn_has_to_send(&n->conns[i]))
            return true;
    }
    return has_waiting(n);
}

static int take_frames(struct net *n, struct frame_reader *r, int fd)
{
    struct frame frame;
    int result = frame_reader_fill(r, fd, MSG_DONTWAIT);

    if (result <= 0)
        return result == -EAGAIN ? 0 : -ECONNRESET;
    while ((result = frame_reader_next(r, &frame)) > 0) {
        if (frame.type == PROTO_CANCEL)
            return -ECANCELED;
        if (net_take(n, &frame) < 0)
            return -EPROTO;
    }
    return result;
}

int net_drain(struct net *n, struct frame_reader *r, struct frame_writer *w,
              uint64_t deadline_ns)
{
    for (;;) {
        struct pollfd p[] = {{.fd = w->fd, .events = POLLIN},
                             {.fd = n->epoll_fd, .events = POLLIN}};
        bool more;
        int result;

        net_work(n);
        more = net_send(n, w);
        result = frame_writer_flush(w);
        if (result < 0)
            return result;
        if (!is_sending(n) || clock_monotonic_ns() >= deadline_ns)
            return 0;
        (void)poll(p, 2, more ? 0 : clock_timeout_ms(deadline_ns));
        result = take_frames(n, r, w->fd);
        if (result < 0)
            return result;
    }
}
