/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/stream.h"

#include "api/daemon/egress/address.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* All addresses of a name together, and the rest of what a guest sent before it ended. */
#define CONNECT_NS (15 * NS_PER_SECOND)
#define DRAIN_NS   (15 * NS_PER_SECOND)
/* An address that is silent for so long goes on beside the next one (RFC 8305), */
#define NEXT_NS (500 * NS_PER_MS)
/* and for so long where another one would need its place. */
#define ATTEMPT_NS (5 * NS_PER_SECOND)
/* What the kernel may hold of a connection each way, which counts it twice. */
#define KERNEL_BYTES (128 * 1024)

struct stream stream_init(void)
{
    return (struct stream){.fd = -1, .attempts = {[0 ... STREAM_ATTEMPTS - 1] = {.fd = -1}}};
}

static void close_attempts(struct stream *s)
{
    for (size_t i = 0; i < STREAM_ATTEMPTS; i++)
        fd_close(&s->attempts[i].fd);
}

static bool has_attempts(const struct stream *s)
{
    for (size_t i = 0; i < STREAM_ATTEMPTS; i++)
        if (s->attempts[i].fd >= 0)
            return true;
    return false;
}

void stream_reset(struct stream *s)
{
    struct stream next = stream_init();

    next.in_flight = s->in_flight;
    next.opens_again = s->opens_again;
    next.next_name = s->next_name;
    next.next_port = s->next_port;
    fd_close(&s->fd);
    close_attempts(s);
    buf_finish(&s->out);
    *s = next;
}

void stream_refuse(struct stream *s)
{
    stream_reset(s);
    s->state = STREAM_REFUSED;
}

static void fail(struct stream *s, struct stream_shared *shared, const char *why)
{
    (void)egress_records_add(shared->records, s->host, s->port, EGRESS_FAILED, why);
    stream_refuse(s);
}

/* Where all addresses failed, or there was no time for more. */
static void fail_if_over(struct stream *s, struct stream_shared *shared)
{
    char why[EGRESS_REFUSED_SIZE];

    (void)snprintf(why, sizeof(why), "it cannot be connected to: %s", strerror(s->error));
    if (!has_attempts(s))
        fail(s, shared, why);
    else if (clock_monotonic_ns() >= s->deadline_ns)
        fail(s, shared, "it cannot be connected to in time");
}

/* Begins to connect to an address. 0 or -errno. */
static int begin(const struct stream *s, const struct stream_shared *shared, unsigned key,
                 union ip_address *to, int *ret_fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.u32 = key};
    _cleanup_fd_ int fd =
        socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1, bytes = KERNEL_BYTES;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* Before it connects; without these they grow with what passes, to megabytes. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0)
        return -errno;
    egress_address_set_port(to, s->port);
    if ((connect(fd, &to->any, egress_address_size(to)) < 0 && errno != EINPROGRESS) ||
        epoll_ctl(shared->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return -errno;
    *ret_fd = fd_steal(&fd);
    return 0;
}

/* A place for another attempt, or the one that has gone on for the longest. */
static struct stream_attempt *find_place(struct stream *s)
{
    struct stream_attempt *oldest = s->attempts;

    for (size_t i = 0; i < STREAM_ATTEMPTS; i++) {
        if (s->attempts[i].fd < 0)
            return &s->attempts[i];
        if (s->attempts[i].since_ns < oldest->since_ns)
            oldest = &s->attempts[i];
    }
    return oldest;
}

/* Begins with the next address that there is, beside those before it. */
static void try_next(struct stream *s, const struct stream_shared *shared, unsigned key)
{
    uint64_t now_ns = clock_monotonic_ns();
    struct stream_attempt *place = find_place(s);

    if (place->fd >= 0 && now_ns < place->since_ns + ATTEMPT_NS) {
        s->next_ns = place->since_ns + ATTEMPT_NS;
        return;
    }
    if (s->tried < s->n_addresses)
        fd_close(&place->fd);
    s->next_ns = now_ns + NEXT_NS;
    place->since_ns = now_ns;
    while (s->tried < s->n_addresses && place->fd < 0) {
        int r = begin(s, shared, key, &s->addresses[s->tried++], &place->fd);

        if (r < 0)
            s->error = -r;
    }
}

void stream_connect(struct stream *s, struct stream_shared *shared, const struct name *name,
                    uint16_t port, unsigned key)
{
    *s = stream_init();
    s->state = STREAM_CONNECTING;
    s->port = port;
    s->n_addresses = name->n_addresses;
    s->deadline_ns = clock_monotonic_ns() + CONNECT_NS;
    s->out = buf_init(PROTO_NET_WINDOW);
    s->may_take = PROTO_NET_WINDOW;
    memcpy(s->host, name->text, sizeof(s->host));
    memcpy(s->addresses, name->addresses, sizeof(s->addresses));
    try_next(s, shared, key);
    fail_if_over(s, shared);
}

uint64_t stream_due_ns(const struct stream *s)
{
    if (s->state == STREAM_CONNECTING && s->tried < s->n_addresses)
        return s->next_ns < s->deadline_ns ? s->next_ns : s->deadline_ns;
    return s->state == STREAM_CONNECTING || s->state == STREAM_DRAINING ? s->deadline_ns
                                                                        : UINT64_MAX;
}

void stream_note(struct stream *s, uint32_t events)
{
    s->readable |= (events & ~(uint32_t)EPOLLOUT) != 0;
    s->writable |= (events & ~(uint32_t)(EPOLLIN | EPOLLRDHUP)) != 0;
}

/* True for an attempt that came through; one that failed is closed. */
static bool is_connected(struct stream *s, int *fd)
{
    struct pollfd p = {.fd = *fd, .events = POLLOUT};
    socklen_t size = sizeof(s->error);

    if (*fd < 0 || poll(&p, 1, 0) <= 0)
        return false;
    if (getsockopt(*fd, SOL_SOCKET, SO_ERROR, &s->error, &size) < 0)
        s->error = errno;
    if (s->error == 0)
        return true;
    fd_close(fd);
    return false;
}

/*
 * True when one of its attempts came through, which is the one that it has then. Where one
 * failed the next is due.
 */
static bool take_first(struct stream *s)
{
    for (size_t i = 0; i < STREAM_ATTEMPTS; i++) {
        struct stream_attempt *attempt = &s->attempts[i];
        bool was_there = attempt->fd >= 0;

        if (is_connected(s, &attempt->fd)) {
            s->fd = fd_steal(&attempt->fd);
            close_attempts(s);
            return true;
        }
        if (was_there && attempt->fd < 0)
            s->next_ns = 0;
    }
    return false;
}

static void work_connecting(struct stream *s, struct stream_shared *shared, unsigned key)
{
    if (s->writable && take_first(s)) {
        s->record = egress_records_add(shared->records, s->host, s->port, EGRESS_REACHED, "");
        s->state = STREAM_OPEN;
        /* Which of them was readable is not known. */
        s->readable = true;
        s->opened_due = true;
        return;
    }
    s->writable = false;
    if (clock_monotonic_ns() >= s->next_ns)
        try_next(s, shared, key);
    fail_if_over(s, shared);
}

/* Nothing more goes in either direction. */
static void break_off(struct stream *s)
{
    s->broke = true;
    s->peer_ended = true;
    fd_close(&s->fd);
    buf_finish(&s->out);
    s->out = buf_init(PROTO_NET_WINDOW);
}

/* Bytes are left out: to the peer that shall not look like their end. */
static void abort_peer(struct stream *s)
{
    const struct linger now = {.l_onoff = 1};

    (void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    break_off(s);
}

/* How much of len may still be relayed; over it the connection ends, which is a refusal. */
static size_t within_limit(struct stream *s, struct stream_shared *shared, size_t len)
{
    uint64_t left = shared->bytes_max - shared->bytes;
    char why[EGRESS_REFUSED_SIZE];

    if (left > 0 || len == 0)
        return left < len ? (size_t)left : len;
    (void)snprintf(why, sizeof(why), "more than %llu bytes in one execution",
                   (unsigned long long)shared->bytes_max);
    (void)egress_records_add(shared->records, s->host, s->port, EGRESS_OVER_LIMIT, why);
    abort_peer(s);
    return 0;
}

static void write_out(struct stream *s, struct stream_shared *shared)
{
    while (s->fd >= 0 && s->writable && s->out.len > 0) {
        size_t len = within_limit(s, shared, s->out.len);
        ssize_t n;

        if (len == 0)
            return;
        n = send(s->fd, s->out.data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            s->writable = false;
            return;
        }
        if (n < 0) {
            break_off(s);
            return;
        }
        buf_consume(&s->out, (size_t)n);
        shared->bytes += (uint64_t)n;
        s->record->bytes_sent += (uint64_t)n;
        s->passed_on += (uint32_t)n;
    }
}

void stream_work(struct stream *s, struct stream_shared *shared, unsigned key)
{
    bool had_out = s->out.len > 0;

    if (s->state == STREAM_CONNECTING)
        work_connecting(s, shared, key);
    if (s->state != STREAM_OPEN && s->state != STREAM_DRAINING)
        return;
    write_out(s, shared);
    if (s->guest_ended && had_out && s->out.len == 0 && s->fd >= 0)
        (void)shutdown(s->fd, SHUT_WR);
    if (s->state != STREAM_DRAINING)
        return;
    if (s->out.len > 0 && clock_monotonic_ns() >= s->deadline_ns)
        abort_peer(s);
    if (s->out.len == 0)
        stream_reset(s);
}

int stream_take(struct stream *s, const uint8_t *data, size_t len)
{
    if (s->guest_ended || len > s->may_take)
        return -EPROTO;
    s->may_take -= (uint32_t)len;
    /* It broke, and the guest did not know yet. */
    return s->broke ? 0 : buf_append(&s->out, data, len);
}

/* Both have ended: the number is the guest's again, at once or when the peer has the rest. */
static void part(struct stream *s)
{
    if (!s->guest_ended || !s->end_sent)
        return;
    if (s->out.len == 0) {
        stream_reset(s);
        return;
    }
    s->state = STREAM_DRAINING;
    s->deadline_ns = clock_monotonic_ns() + DRAIN_NS;
}

void stream_end(struct stream *s, uint64_t deadline_ns)
{
    /* The guest has more of it, or its skill was ended. */
    if (s->fd >= 0 && !s->guest_ended)
        abort_peer(s);
    if (s->fd < 0 || s->out.len == 0) {
        stream_reset(s);
        return;
    }
    s->state = STREAM_DRAINING;
    s->deadline_ns = deadline_ns;
}

void stream_abort(struct stream *s)
{
    /* Whose bytes are all there was told their end. */
    if (s->fd >= 0 && (!s->guest_ended || s->out.len > 0))
        abort_peer(s);
    stream_reset(s);
}

int stream_take_end(struct stream *s, bool broke)
{
    if (s->guest_ended)
        return -EPROTO;
    s->guest_ended = true;
    /* Nothing is read any more; what was sent before goes on. */
    s->broke |= broke;
    s->peer_ended |= broke;
    if (s->out.len == 0 && s->fd >= 0)
        (void)shutdown(s->fd, SHUT_WR);
    part(s);
    return 0;
}

size_t stream_read(struct stream *s, struct stream_shared *shared, uint8_t *data, size_t max)
{
    size_t room = PROTO_NET_WINDOW - s->in_flight;
    size_t len = max < room ? max : room;
    ssize_t n;

    if (s->fd < 0 || !s->readable || s->peer_ended || s->opened_due || len == 0)
        return 0;
    len = within_limit(s, shared, len);
    if (len == 0)
        return 0;
    do
        n = recv(s->fd, data, len, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        shared->bytes += (uint64_t)n;
        s->record->bytes_received += (uint64_t)n;
        s->in_flight += (uint32_t)n;
        return (size_t)n;
    }
    s->readable = false;
    s->peer_ended = n == 0;
    if (n < 0 && errno != EAGAIN)
        break_off(s);
    return 0;
}

bool stream_end_is_due(const struct stream *s)
{
    return s->state == STREAM_OPEN && s->peer_ended && !s->end_sent && !s->opened_due;
}

void stream_told_end(struct stream *s)
{
    s->end_sent = true;
    part(s);
}
