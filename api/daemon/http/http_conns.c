/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_conns.h"

#include "api/daemon/http/http_refusal.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define NS_PER_MS 1000000ull

#define IDLE_MS   60000u
#define HEAD_MS   20000u
#define BODY_MS   30000u
#define SEND_MS   60000u
#define LINGER_MS 2000u
#define PASSED_MS 30000u /* a thread that never came: memory ran out */
#define YOUNG_MS  250u   /* too young to give way; nobody waits longer for that */
#define RESERVE   8u     /* one place of so many is not for TCP */
#define RANK_LAST 1u

void http_conns_init(struct http_conns *conns, unsigned max,
                     const struct http_deadlines *deadlines)
{
    *conns = (struct http_conns){.max = max, .deadlines = *deadlines};
    (void)pthread_mutex_init(&conns->lock, NULL);
    if (conns->deadlines.idle_ms == 0)
        conns->deadlines.idle_ms = IDLE_MS;
    if (conns->deadlines.head_ms == 0)
        conns->deadlines.head_ms = HEAD_MS;
    if (conns->deadlines.body_ms == 0)
        conns->deadlines.body_ms = BODY_MS;
    if (conns->deadlines.send_ms == 0)
        conns->deadlines.send_ms = SEND_MS;
}

void http_conns_finish(struct http_conns *conns)
{
    struct http_conn *next;

    for (struct http_conn *c = conns->first; c; c = next) {
        next = c->next;
        free(c);
    }
    (void)pthread_mutex_destroy(&conns->lock);
}

struct http_conn *http_conns_add(struct http_conns *conns, int fd, bool is_tcp, uid_t uid)
{
    struct http_conn *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    *c = (struct http_conn){
        .fd = fd, .is_tcp = is_tcp, .uid = uid, .since_ns = clock_monotonic_ns()};
    (void)pthread_mutex_lock(&conns->lock);
    c->next = conns->first;
    if (c->next)
        c->next->previous = c;
    conns->first = c;
    conns->n++;
    conns->n_tcp += is_tcp;
    (void)pthread_mutex_unlock(&conns->lock);
    return c;
}

/* Under the lock. */
static void forget(struct http_conns *conns, struct http_conn *c)
{
    if (c->previous)
        c->previous->next = c->next;
    else
        conns->first = c->next;
    if (c->next)
        c->next->previous = c->previous;
    conns->n--;
    conns->n_ended -= c->ended;
    conns->n_tcp -= c->is_tcp && !c->ended;
    free(c);
}

void http_conns_remove(struct http_conns *conns, struct http_conn *conn)
{
    (void)pthread_mutex_lock(&conns->lock);
    forget(conns, conn);
    (void)pthread_mutex_unlock(&conns->lock);
}

struct http_conn *http_conns_passed(struct http_conns *conns, int fd)
{
    struct http_conn *c;

    (void)pthread_mutex_lock(&conns->lock);
    for (c = conns->first; c; c = c->next) {
        if (c->fd == fd && c->phase == HTTP_PHASE_PASSED)
            break;
    }
    (void)pthread_mutex_unlock(&conns->lock);
    return c;
}

void http_conns_enter(struct http_conns *conns, struct http_conn *conn, enum http_phase phase)
{
    if (!conn)
        return;
    (void)pthread_mutex_lock(&conns->lock);
    conn->phase = phase;
    conn->since_ns = clock_monotonic_ns();
    conn->bytes = 0;
    if (phase == HTTP_PHASE_IDLE)
        conn->tenant[0] = '\0';
    (void)pthread_mutex_unlock(&conns->lock);
}

void http_conns_progress(struct http_conns *conns, struct http_conn *conn, size_t bytes)
{
    if (!conn)
        return;
    (void)pthread_mutex_lock(&conns->lock);
    conn->bytes += bytes;
    /* What it has brought buys no more time than that, however much it was. */
    if (conn->phase == HTTP_PHASE_BODY &&
        conn->bytes >= (uint64_t)conns->deadlines.body_ms * HTTP_BODY_RATE / 1000) {
        conn->bytes = 0;
        conn->since_ns = clock_monotonic_ns();
    }
    (void)pthread_mutex_unlock(&conns->lock);
}

bool http_conns_claim(struct http_conns *conns, struct http_conn *conn, const char *tenant)
{
    unsigned used = 0;

    if (!conn)
        return true;
    (void)pthread_mutex_lock(&conns->lock);
    (void)snprintf(conn->tenant, sizeof(conn->tenant), "%s", tenant);
    if (conns->n > conns->max / 2) {
        for (const struct http_conn *c = conns->first; c; c = c->next)
            used += strcmp(c->tenant, tenant) == 0;
    }
    (void)pthread_mutex_unlock(&conns->lock);
    return used <= conns->max / 2;
}

unsigned http_conns_count(struct http_conns *conns, unsigned *ret_living)
{
    unsigned n;

    (void)pthread_mutex_lock(&conns->lock);
    n = conns->n;
    *ret_living = n - conns->n_ended;
    (void)pthread_mutex_unlock(&conns->lock);
    return n;
}

bool http_conns_full(struct http_conns *conns, bool is_tcp)
{
    bool full;

    (void)pthread_mutex_lock(&conns->lock);
    full = conns->n - conns->n_ended >= conns->max ||
           (is_tcp && conns->n_tcp >= conns->max - conns->max / RESERVE);
    (void)pthread_mutex_unlock(&conns->lock);
    return full;
}

size_t http_conns_due(struct http_conns *conns, uint64_t now_ns, struct http_conn **ret,
                      size_t max, uint64_t *ret_next_ns)
{
    size_t n = 0;

    *ret_next_ns = 0;
    (void)pthread_mutex_lock(&conns->lock);
    for (struct http_conn *c = conns->first; c; c = c->next) {
        if (c->phase != HTTP_PHASE_WAITING || !c->has_news)
            continue;
        if (now_ns >= c->look_ns && n < max)
            ret[n++] = c;
        else if (*ret_next_ns == 0 || c->look_ns < *ret_next_ns)
            *ret_next_ns = c->look_ns;
    }
    (void)pthread_mutex_unlock(&conns->lock);
    return n;
}

static bool is_lobbys(const struct http_conn *c)
{
    return c->phase == HTTP_PHASE_WAITING || c->phase == HTTP_PHASE_LINGERING;
}

/* How long it may stay in its phase; 0: as long as it likes. */
static uint64_t allowed_ms(const struct http_conns *conns, const struct http_conn *c)
{
    switch (c->phase) {
    case HTTP_PHASE_WAITING:
        return c->looks ? conns->deadlines.head_ms : conns->deadlines.idle_ms;
    case HTTP_PHASE_LINGERING:
        return LINGER_MS;
    case HTTP_PHASE_PASSED:
        return PASSED_MS;
    case HTTP_PHASE_IDLE:
        return conns->deadlines.idle_ms;
    case HTTP_PHASE_HEAD:
        return conns->deadlines.head_ms;
    case HTTP_PHASE_UNWANTED:
    case HTTP_PHASE_BODY:
        return conns->deadlines.body_ms;
    case HTTP_PHASE_ANSWER:
    case HTTP_PHASE_PUBLIC:
        break;
    }
    return 0;
}

/* Its thread sees the end of its socket, and ends. Under the lock. */
static void end(struct http_conns *conns, struct http_conn *c)
{
    if (c->ended)
        return;
    (void)shutdown(c->fd, SHUT_RDWR);
    c->ended = true;
    conns->n_ended++;
    conns->n_tcp -= c->is_tcp;
}

/* The same for one whose time is over. Nothing of an answer has gone out while a body comes. */
static void end_late(struct http_conns *conns, struct http_conn *c)
{
    if (!c->ended && (c->phase == HTTP_PHASE_BODY || c->phase == HTTP_PHASE_UNWANTED))
        http_refusal_send(c->fd, 408);
    end(conns, c);
}

struct http_conn *http_conns_expire(struct http_conns *conns, uint64_t now_ns)
{
    struct http_conn *next, *found = NULL;

    (void)pthread_mutex_lock(&conns->lock);
    for (struct http_conn *c = conns->first; c && !found; c = next) {
        uint64_t ms = allowed_ms(conns, c);

        next = c->next;
        if (ms == 0 || now_ns < c->since_ns + ms * NS_PER_MS)
            continue;
        if (is_lobbys(c))
            found = c;
        else if (c->phase == HTTP_PHASE_PASSED)
            forget(conns, c);
        else
            end_late(conns, c);
    }
    (void)pthread_mutex_unlock(&conns->lock);
    return found;
}

/* The more, the sooner it goes; 0: never. Only the operator's have RANK_LAST. */
static unsigned eviction_rank(const struct http_conn *c)
{
    switch (c->phase) {
    case HTTP_PHASE_LINGERING:
        return 4;
    case HTTP_PHASE_WAITING:
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

enum http_room http_conns_evict(struct http_conns *conns, bool is_tcp, uint64_t waited_ns,
                                uint64_t now_ns, struct http_conn **ret)
{
    const uint64_t grace_ns = waited_ns < YOUNG_MS * NS_PER_MS ? YOUNG_MS * NS_PER_MS : 0;
    enum http_room room = HTTP_ROOM_NONE;
    struct http_conn *victim = NULL;
    unsigned best = 0, highest = 0;

    *ret = NULL;
    (void)pthread_mutex_lock(&conns->lock);
    for (struct http_conn *c = conns->first; c; c = c->next) {
        unsigned rank = c->ended || (is_tcp && !c->is_tcp) ? 0 : eviction_rank(c);

        highest = rank > highest ? rank : highest;
        if (rank == 0 || now_ns < c->since_ns + grace_ns)
            continue;
        if (rank > best || (rank == best && c->since_ns < victim->since_ns)) {
            best = rank;
            victim = c;
        }
    }
    /* Not even for one that will give way in a moment. */
    if (best == RANK_LAST && highest > RANK_LAST)
        victim = NULL;
    if (victim)
        room = HTTP_ROOM_MADE;
    else if (highest > 0)
        room = HTTP_ROOM_SOON;
    if (victim && is_lobbys(victim))
        *ret = victim;
    else if (victim)
        end(conns, victim);
    (void)pthread_mutex_unlock(&conns->lock);
    return room;
}
