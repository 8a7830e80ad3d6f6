/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_conns.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define IDLE_MS   60000u
#define HEAD_MS   20000u
#define BODY_MS   30000u
#define SEND_MS   60000u
#define LINGER_MS 2000u
#define YOUNG_MS  250u  /* too young to give way; nobody waits longer for that */
#define BUSY_MS   1000u /* nobody waits longer for one of those that have just begun to work */
#define RESERVE   8u    /* one place of so many is not for TCP */
#define OVERFLOW  32u   /* connections that end make room a moment later */
#define RANK_LAST 1u

static void set_default(unsigned *ms, unsigned value)
{
    *ms = *ms > 0 ? *ms : value;
}

/* Connections leave half of the descriptors to what is done for them. */
static unsigned bound(unsigned wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < wanted)
        return limit.rlim_cur > 2 ? (unsigned)(limit.rlim_cur / 2) : 1;
    return wanted;
}

void http_conns_init(struct http_conns *conns, const struct http_config *config)
{
    *conns = (struct http_conns){.config = config, .deadlines = config->deadlines};
    conns->max =
        bound(config->max_connections > 0 ? config->max_connections : HTTP_CONNECTIONS_DEFAULT);
    set_default(&conns->deadlines.idle_ms, IDLE_MS);
    set_default(&conns->deadlines.head_ms, HEAD_MS);
    set_default(&conns->deadlines.body_ms, BODY_MS);
    set_default(&conns->deadlines.send_ms, SEND_MS);
    (void)pthread_mutex_init(&conns->lock, NULL);
    cond_init(&conns->quiet);
    conns->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (conns->epoll_fd < 0)
        conns->epoll_fd = -errno;
}

static bool is_working(const struct http_conn *c)
{
    return c->phase >= HTTP_PHASE_WORK;
}

/* All below but the contract's functions: under the lock. */

static void destroy(struct http_conn *c)
{
    LIST_REMOVE(c, of_all);
    if (is_working(c))
        (void)pthread_cond_broadcast(&c->conns->quiet);
    /* Closing is not enough: a child that has not called exec yet has it open too. */
    (void)epoll_ctl(c->conns->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    fd_close(&c->fd);
    free(c->in);
    free(c);
}

/* Tells the loop of what comes next, once. */
static int watch(struct http_conn *c, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = c};

    return epoll_ctl(c->conns->epoll_fd, operation, c->fd, &event);
}

/* Who has it sees the end of its socket. */
static void end(struct http_conn *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
    c->ended = true;
}

static void wait_quiet(struct http_conns *conns, uint64_t deadline_ns)
{
    const struct http_conn *c;

    do {
        for (c = LIST_FIRST(&conns->all); c && !is_working(c); c = LIST_NEXT(c, of_all))
            ;
    } while (c && cond_wait_until(&conns->quiet, &conns->lock, deadline_ns));
}

void http_conns_finish(struct http_conns *conns, uint64_t deadline_ns)
{
    struct http_conn *c, *next;

    (void)pthread_mutex_lock(&conns->lock);
    wait_quiet(conns, deadline_ns);
    LIST_FOREACH(c, &conns->all, of_all)
        end(c);
    wait_quiet(conns, UINT64_MAX);
    for (c = LIST_FIRST(&conns->all); c; c = next) {
        next = LIST_NEXT(c, of_all);
        destroy(c);
    }
    (void)pthread_mutex_unlock(&conns->lock);
    fd_close(&conns->epoll_fd);
    (void)pthread_cond_destroy(&conns->quiet);
    (void)pthread_mutex_destroy(&conns->lock);
}

/* Whose process connected, or (uid_t)-1. */
static uid_t find_peer(int fd)
{
    struct ucred peer;

    return fd_peer(fd, &peer) == 0 ? peer.uid : (uid_t)-1;
}

void http_conns_add(struct http_conns *conns, int fd, bool is_tcp)
{
    struct http_conn *c = malloc(sizeof(*c));
    const int on = 1;

    if (!c) {
        fd_close(&fd);
        return;
    }
    if (is_tcp)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *c = (struct http_conn){.conns = conns,
                            .fd = fd,
                            .is_tcp = is_tcp,
                            .uid = is_tcp ? (uid_t)-1 : find_peer(fd),
                            .since_ns = clock_monotonic_ns()};
    (void)pthread_mutex_lock(&conns->lock);
    LIST_INSERT_HEAD(&conns->all, c, of_all);
    if (watch(c, EPOLL_CTL_ADD) < 0)
        destroy(c);
    (void)pthread_mutex_unlock(&conns->lock);
}

void http_conn_close(struct http_conn *c)
{
    struct http_conns *conns = c->conns;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&conns->lock);

    destroy(c);
}

void http_conn_enter(struct http_conn *c, enum http_phase phase)
{
    struct http_conns *conns = c->conns;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&conns->lock);

    if (c->phase != phase)
        c->since_ns = clock_monotonic_ns();
    c->phase = phase;
    if (!is_working(c)) {
        c->tenant[0] = '\0';
        (void)pthread_cond_broadcast(&conns->quiet);
        (void)watch(c, EPOLL_CTL_MOD); /* from here on it may be gone */
    }
}

enum http_phase http_conn_phase(struct http_conn *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->conns->lock);

    return c->phase;
}

ssize_t http_conn_receive(struct http_conn *c)
{
    struct http_input *in = c->in ? c->in : malloc(sizeof(*in));
    ssize_t n;

    if (!in)
        return -ENOMEM;
    if (!c->in) {
        in->head = (struct http_head){0};
        in->len = 0;
        c->in = in;
    }
    n = recv(c->fd, in->text + in->len, sizeof(in->text) - in->len, MSG_DONTWAIT);
    in->len += n > 0 ? (size_t)n : 0;
    return n < 0 ? -errno : n;
}

bool http_conn_claim(struct http_conn *c, const char *tenant)
{
    struct http_conns *conns = c->conns;
    const struct http_conn *other;
    unsigned used = 0;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&conns->lock);

    (void)snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    LIST_FOREACH(other, &conns->all, of_all)
        used += strcmp(other->tenant, tenant) == 0;
    return used <= conns->max / 2;
}

/* How long it may stay in its phase; of a request at work its thread knows. */
static uint64_t allowed_ns(const struct http_conn *c)
{
    const struct http_deadlines *deadlines = &c->conns->deadlines;

    switch (c->phase) {
    case HTTP_PHASE_IDLE:
        return deadlines->idle_ms * NS_PER_MS;
    case HTTP_PHASE_HEAD:
        return deadlines->head_ms * NS_PER_MS;
    case HTTP_PHASE_LINGERING:
        return LINGER_MS * NS_PER_MS;
    default:
        return UINT64_MAX / 2;
    }
}

struct http_conn *http_conns_expired(struct http_conns *conns, uint64_t now_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&conns->lock);
    struct http_conn *c;

    for (c = LIST_FIRST(&conns->all); c && now_ns < c->since_ns + allowed_ns(c);
         c = LIST_NEXT(c, of_all))
        ;
    return c;
}

/* The more, the sooner it goes; 0: never. Only the operator's have RANK_LAST. */
static unsigned eviction_rank(const struct http_conn *c)
{
    switch (c->phase) {
    case HTTP_PHASE_LINGERING:
        return 4;
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_HEAD:
    case HTTP_PHASE_UNWANTED:
        return c->is_tcp ? 3 : RANK_LAST;
    case HTTP_PHASE_PUBLIC:
        return c->is_tcp ? 2 : RANK_LAST;
    default:
        return 0;
    }
}

static bool is_young(const struct http_conn *c, uint64_t now_ns)
{
    return now_ns < c->since_ns + YOUNG_MS * NS_PER_MS;
}

static enum http_room evict(struct http_conns *conns, bool is_tcp, uint64_t waited_ns,
                            uint64_t now_ns)
{
    const bool may_wait = waited_ns < YOUNG_MS * NS_PER_MS;
    struct http_conn *c, *victim = NULL;
    unsigned best = 0, highest = 0;
    bool soon = false;

    LIST_FOREACH(c, &conns->all, of_all) {
        unsigned rank = eviction_rank(c);

        if (c->ended || (is_tcp && !c->is_tcp))
            continue;
        highest = rank > highest ? rank : highest;
        soon |= rank == 0 && is_young(c, now_ns) && waited_ns < BUSY_MS * NS_PER_MS;
        if (rank == 0 || (may_wait && is_young(c, now_ns)))
            continue;
        if (rank > best || (rank == best && c->since_ns < victim->since_ns)) {
            best = rank;
            victim = c;
        }
    }
    /* Not even for one that will give way in a moment. */
    if (!victim || (best == RANK_LAST && highest > RANK_LAST))
        return highest > 0 || soon ? HTTP_ROOM_SOON : HTTP_ROOM_NONE;
    if (is_working(victim))
        end(victim);
    else
        destroy(victim);
    return HTTP_ROOM_MADE;
}

enum http_room http_conns_make_room(struct http_conns *conns, bool is_tcp, uint64_t waited_ns,
                                    uint64_t now_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&conns->lock);
    unsigned used = 0, used_tcp = 0, ended = 0;
    const struct http_conn *c;

    LIST_FOREACH(c, &conns->all, of_all) {
        used += !c->ended;
        used_tcp += !c->ended && c->is_tcp;
        ended += c->ended;
    }
    if (used + ended >= conns->max + OVERFLOW) /* the latter make it in a moment */
        return HTTP_ROOM_SOON;
    if (used >= conns->max || (is_tcp && used_tcp >= conns->max - conns->max / RESERVE))
        return evict(conns, is_tcp, waited_ns, now_ns);
    return HTTP_ROOM_MADE;
}

void http_conns_shed(struct http_conns *conns, uint64_t now_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&conns->lock);

    (void)evict(conns, false, 0, now_ns);
}
