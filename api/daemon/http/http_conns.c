/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_conns.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define NS_PER_MS 1000000ull

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

int http_conns_init(struct http_conns *conns, struct http_server *server, unsigned max,
                    const struct http_deadlines *deadlines)
{
    *conns = (struct http_conns){.server = server, .max = max, .deadlines = *deadlines};
    (void)pthread_mutex_init(&conns->lock, NULL);
    cond_init(&conns->quiet);
    set_default(&conns->deadlines.idle_ms, IDLE_MS);
    set_default(&conns->deadlines.head_ms, HEAD_MS);
    set_default(&conns->deadlines.body_ms, BODY_MS);
    set_default(&conns->deadlines.send_ms, SEND_MS);
    conns->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return conns->epoll_fd < 0 ? -errno : 0;
}

static bool is_working(enum http_phase phase)
{
    return phase >= HTTP_PHASE_WORK;
}

/* All below but the contract's functions: under the lock. */

static void enter(struct http_conns *conns, struct http_conn *c, enum http_phase phase)
{
    conns->n_working += is_working(phase);
    conns->n_working -= is_working(c->phase);
    if (conns->n_working == 0)
        (void)pthread_cond_broadcast(&conns->quiet);
    c->phase = phase;
    c->since_ns = clock_monotonic_ns();
    if (!is_working(phase))
        c->tenant[0] = '\0';
}

static void free_conn(struct http_conn *c)
{
    fd_close(&c->fd);
    free(c->in);
    free(c);
}

static void destroy(struct http_conns *conns, struct http_conn *c)
{
    if (c->previous)
        c->previous->next = c->next;
    else
        conns->first = c->next;
    if (c->next)
        c->next->previous = c->previous;
    enter(conns, c, HTTP_PHASE_IDLE);
    conns->n--;
    conns->n_ended -= c->ended;
    conns->n_tcp -= c->is_tcp && !c->ended;
    /* Closing is not enough: a child that has not called exec yet has it open too. */
    (void)epoll_ctl(conns->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    free_conn(c);
}

/* The loop watches it. */
static void watch(struct http_conns *conns, struct http_conn *c)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

    if (epoll_ctl(conns->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) < 0 && errno != EEXIST)
        destroy(conns, c);
}

/* Who has it sees the end of its socket. */
static void end(struct http_conns *conns, struct http_conn *c)
{
    if (c->ended)
        return;
    (void)shutdown(c->fd, SHUT_RDWR);
    c->ended = true;
    conns->n_ended++;
    conns->n_tcp -= c->is_tcp;
}

void http_conns_finish(struct http_conns *conns)
{
    struct http_conn *next;

    for (struct http_conn *c = conns->first; c; c = next) {
        next = c->next;
        free_conn(c);
    }
    fd_close(&conns->epoll_fd);
    (void)pthread_cond_destroy(&conns->quiet);
    (void)pthread_mutex_destroy(&conns->lock);
}

void http_conns_add(struct http_conns *conns, int fd, bool is_tcp, uid_t uid)
{
    struct http_conn *c = calloc(1, sizeof(*c));

    if (!c) {
        fd_close(&fd);
        return;
    }
    *c = (struct http_conn){.server = conns->server,
                            .fd = fd,
                            .is_tcp = is_tcp,
                            .uid = uid,
                            .since_ns = clock_monotonic_ns()};
    (void)pthread_mutex_lock(&conns->lock);
    c->next = conns->first;
    if (c->next)
        c->next->previous = c;
    conns->first = c;
    conns->n++;
    conns->n_tcp += is_tcp;
    watch(conns, c);
    (void)pthread_mutex_unlock(&conns->lock);
}

void http_conns_close(struct http_conns *conns, struct http_conn *conn)
{
    (void)pthread_mutex_lock(&conns->lock);
    destroy(conns, conn);
    (void)pthread_mutex_unlock(&conns->lock);
}

void http_conns_give(struct http_conns *conns, struct http_conn *conn, enum http_phase phase)
{
    (void)pthread_mutex_lock(&conns->lock);
    if (conn->phase != phase)
        enter(conns, conn, phase);
    watch(conns, conn);
    (void)pthread_mutex_unlock(&conns->lock);
}

void http_conns_take(struct http_conns *conns, struct http_conn *conn)
{
    (void)pthread_mutex_lock(&conns->lock);
    enter(conns, conn, HTTP_PHASE_WORK);
    (void)epoll_ctl(conns->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    (void)pthread_mutex_unlock(&conns->lock);
}

void http_conns_enter(struct http_conns *conns, struct http_conn *conn, enum http_phase phase)
{
    (void)pthread_mutex_lock(&conns->lock);
    enter(conns, conn, phase);
    (void)pthread_mutex_unlock(&conns->lock);
}

bool http_conns_claim(struct http_conns *conns, struct http_conn *conn, const char *tenant)
{
    unsigned used = 0;

    (void)pthread_mutex_lock(&conns->lock);
    (void)snprintf(conn->tenant, sizeof(conn->tenant), "%s", tenant);
    if (conns->n > conns->max / 2) {
        for (const struct http_conn *c = conns->first; c; c = c->next)
            used += strcmp(c->tenant, tenant) == 0;
    }
    (void)pthread_mutex_unlock(&conns->lock);
    return used <= conns->max / 2;
}

bool http_conns_wait(struct http_conns *conns, uint64_t deadline_ns)
{
    bool quiet;

    (void)pthread_mutex_lock(&conns->lock);
    while (conns->n_working > 0 && cond_wait_until(&conns->quiet, &conns->lock, deadline_ns))
        ;
    quiet = conns->n_working == 0;
    (void)pthread_mutex_unlock(&conns->lock);
    return quiet;
}

void http_conns_end(struct http_conns *conns)
{
    (void)pthread_mutex_lock(&conns->lock);
    for (struct http_conn *c = conns->first; c; c = c->next)
        end(conns, c);
    (void)pthread_mutex_unlock(&conns->lock);
}

/* How long it may stay in its phase; of a request at work its thread knows. */
static uint64_t allowed_ns(const struct http_conns *conns, const struct http_conn *c)
{
    switch (c->phase) {
    case HTTP_PHASE_IDLE:
        return conns->deadlines.idle_ms * NS_PER_MS;
    case HTTP_PHASE_HEAD:
        return conns->deadlines.head_ms * NS_PER_MS;
    case HTTP_PHASE_LINGERING:
        return LINGER_MS * NS_PER_MS;
    default:
        return UINT64_MAX / 2;
    }
}

struct http_conn *http_conns_expired(struct http_conns *conns, uint64_t now_ns)
{
    struct http_conn *c;

    (void)pthread_mutex_lock(&conns->lock);
    for (c = conns->first; c && now_ns < c->since_ns + allowed_ns(conns, c); c = c->next)
        ;
    (void)pthread_mutex_unlock(&conns->lock);
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
    struct http_conn *victim = NULL;
    unsigned best = 0, highest = 0;
    bool soon = false;

    for (struct http_conn *c = conns->first; c; c = c->next) {
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
    if (is_working(victim->phase))
        end(conns, victim);
    else
        destroy(conns, victim);
    return HTTP_ROOM_MADE;
}

enum http_room http_conns_make_room(struct http_conns *conns, bool is_tcp, uint64_t waited_ns,
                                    uint64_t now_ns)
{
    enum http_room room = HTTP_ROOM_MADE;

    (void)pthread_mutex_lock(&conns->lock);
    if (conns->n >= conns->max + OVERFLOW) /* those that were told to end make it in a moment */
        room = HTTP_ROOM_SOON;
    else if (conns->n - conns->n_ended >= conns->max ||
             (is_tcp && conns->n_tcp >= conns->max - conns->max / RESERVE))
        room = evict(conns, is_tcp, waited_ns, now_ns);
    (void)pthread_mutex_unlock(&conns->lock);
    return room;
}

void http_conns_shed(struct http_conns *conns, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&conns->lock);
    if (conns->n_ended == 0)
        (void)evict(conns, false, 0, now_ns);
    (void)pthread_mutex_unlock(&conns->lock);
}
