/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_lobby.h"

#include "api/daemon/http/http_head.h"
#include "api/daemon/http/http_refusal.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NS_PER_MS    1000000ull
#define EVENTS       64
#define ACCEPTS      32 /* of one listener before the others' turn */
#define TICK_MS      1000u
#define LOOK_SHIFT   9u  /* at most half a second between two looks at a slow head */
#define OVERFLOW     32u /* connections that end make room a moment later */
#define LINGER_BYTES (64u * 1024u)
#define PAUSE_NS     (50 * NS_PER_MS)

struct http_lobby {
    struct http_lobby_config config;
    pthread_t thread;
    int epoll_fd;
    int wake_fd;
    atomic_bool stop;
    pthread_mutex_t lock; /* of the listeners */
    /* The thread's own. */
    bool paused; /* the listeners are not watched */
    uint64_t resume_ns;
    uint64_t tick_ns;
    uint64_t tick_every_ns;
    uint64_t look_ns; /* the next time one with news is due; 0: none is */
    uint64_t put_off_ns[HTTP_LISTENERS_MAX]; /* since then somebody waits for room; 0: nobody */
    char head[HTTP_HEAD_MAX + 1];
};

/* What the epoll set's data points at where it is no connection. */
static char wake_mark;
static char listener_mark;

static int watch(const struct http_lobby *l, int operation, int fd, uint32_t what, void *data)
{
    struct epoll_event event = {.events = what, .data.ptr = data};

    return epoll_ctl(l->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

static void drop(struct http_lobby *l, struct http_conn *c)
{
    int fd = c->fd;

    /* Closing is not enough: a child that has not called exec yet has it open too. */
    (void)watch(l, EPOLL_CTL_DEL, fd, 0, NULL);
    http_conns_remove(l->config.conns, c);
    (void)close(fd);
}

/* Says why and waits a moment, so that a peer that still sends reads it. */
static void refuse(struct http_lobby *l, struct http_conn *c, unsigned status)
{
    http_refusal_send(c->fd, status);
    (void)shutdown(c->fd, SHUT_WR);
    c->has_news = true;
    http_conns_enter(l->config.conns, c, HTTP_PHASE_LINGERING);
}

/* Swallows what still comes. */
static void linger(struct http_lobby *l, struct http_conn *c)
{
    ssize_t n = 1;

    for (size_t i = 0; i < LINGER_BYTES && n > 0; i += (size_t)n)
        n = recv(c->fd, l->head, sizeof(l->head), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        drop(l, c);
}

static void pass(struct http_lobby *l, struct http_conn *c)
{
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof(peer);
    const int fd = c->fd;

    (void)watch(l, EPOLL_CTL_DEL, fd, 0, NULL);
    if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0) {
        drop(l, c);
        return;
    }
    http_conns_enter(l->config.conns, c, HTTP_PHASE_PASSED);
    if (l->config.pass(l->config.ctx, fd, (const struct sockaddr *)&peer, len))
        return;
    /* Unless it had its thread for a moment, which has removed it then. */
    c = http_conns_passed(l->config.conns, fd);
    if (c)
        http_conns_remove(l->config.conns, c);
}

/* Looks at what has come, without taking it. */
static void look(struct http_lobby *l, struct http_conn *c, uint64_t now_ns)
{
    ssize_t n = recv(c->fd, l->head, sizeof(l->head), MSG_PEEK | MSG_DONTWAIT);
    int r;

    c->has_news = false;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(l, c);
        return;
    }
    r = http_head_check(l->head, (size_t)n);
    if (r == 0) {
        pass(l, c);
        return;
    }
    if (r > 0 || c->half_closed) {
        refuse(l, c, r > 0 ? (unsigned)r : 400);
        return;
    }
    if (c->looks == 0)
        http_conns_enter(l->config.conns, c, HTTP_PHASE_WAITING);
    /* Each look reads all from the beginning: whoever sends by the byte waits for it. */
    c->look_ns = now_ns + (NS_PER_MS << (c->looks < LOOK_SHIFT ? c->looks : LOOK_SHIFT));
    c->looks++;
}

static void on_news(struct http_lobby *l, struct http_conn *c, uint32_t events, uint64_t now_ns)
{
    if (c->phase == HTTP_PHASE_LINGERING) {
        linger(l, c);
        return;
    }
    if (events & EPOLLERR) {
        drop(l, c);
        return;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP))
        c->half_closed = true;
    if (now_ns >= c->look_ns) {
        look(l, c, now_ns);
        return;
    }
    c->has_news = true;
    if (l->look_ns == 0 || c->look_ns < l->look_ns)
        l->look_ns = c->look_ns;
}

/* Looks at those whose next look is due. */
static void look_again(struct http_lobby *l, uint64_t now_ns)
{
    struct http_conn *due[EVENTS];
    size_t n;

    if (l->look_ns == 0 || now_ns < l->look_ns)
        return;
    n = http_conns_due(l->config.conns, now_ns, due, EVENTS, &l->look_ns);
    for (size_t i = 0; i < n; i++)
        look(l, due[i], now_ns);
}

static void expire(struct http_lobby *l, uint64_t now_ns)
{
    struct http_conn *c;

    if (now_ns < l->tick_ns)
        return;
    l->tick_ns = now_ns + l->tick_every_ns;
    while ((c = http_conns_expire(l->config.conns, now_ns))) {
        if (c->phase == HTTP_PHASE_WAITING && c->looks > 0)
            refuse(l, c, 408);
        else
            drop(l, c);
    }
}

/* Nobody new for a moment. Under the lock. */
static void pause_listener(struct http_lobby *l, const struct listener *listener,
                           uint64_t now_ns)
{
    (void)watch(l, EPOLL_CTL_MOD, listener->fd, 0, &listener_mark);
    if (!l->paused)
        l->resume_ns = now_ns + PAUSE_NS;
    l->paused = true;
}

static void resume(struct http_lobby *l)
{
    (void)pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->config.n_listeners; i++) {
        if (l->config.listeners[i].fd >= 0)
            (void)watch(l, EPOLL_CTL_MOD, l->config.listeners[i].fd, EPOLLIN, &listener_mark);
    }
    (void)pthread_mutex_unlock(&l->lock);
    l->paused = false;
}

static enum http_room evict(struct http_lobby *l, bool is_tcp, uint64_t waited_ns,
                            uint64_t now_ns)
{
    struct http_conn *own;
    enum http_room room = http_conns_evict(l->config.conns, is_tcp, waited_ns, now_ns, &own);

    if (own)
        drop(l, own);
    return room;
}

static void welcome(struct http_lobby *l, int fd, bool is_tcp)
{
    const int on = 1;
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);
    struct http_conn *c;

    if (is_tcp)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        peer.uid = (uid_t)-1;
    c = http_conns_add(l->config.conns, fd, is_tcp, peer.uid);
    if (!c)
        (void)close(fd);
    else if (watch(l, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP | EPOLLET, c) < 0)
        drop(l, c);
}

static enum http_room make_room(struct http_lobby *l, size_t which, uint64_t now_ns)
{
    const bool is_tcp = !l->config.listeners[which].is_unix;
    const uint64_t since_ns = l->put_off_ns[which];
    unsigned living;

    /* Those that were told to end make room in a moment. */
    if (http_conns_count(l->config.conns, &living) >= l->config.conns->max + OVERFLOW)
        return HTTP_ROOM_SOON;
    if (!http_conns_full(l->config.conns, is_tcp))
        return HTTP_ROOM_MADE;
    return evict(l, is_tcp, since_ns ? now_ns - since_ns : 0, now_ns);
}

/* Accepts one. False: no more for now. Under the lock. */
static bool accept_one(struct http_lobby *l, size_t which, uint64_t now_ns)
{
    const struct listener *listener = &l->config.listeners[which];
    uint64_t *put_off_ns = &l->put_off_ns[which];
    unsigned living, n;
    enum http_room room;
    int fd = -1;

    /* First of all: nobody gives way for nobody. */
    if (!fd_is_readable(listener->fd)) {
        *put_off_ns = 0;
        return false;
    }
    room = make_room(l, which, now_ns);
    if (room != HTTP_ROOM_SOON)
        fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        *put_off_ns = 0;
        if (room == HTTP_ROOM_MADE) {
            welcome(l, fd, !listener->is_unix);
            return true;
        }
        http_refusal_send(fd, 503);
        (void)close(fd);
        return true;
    }
    if (room != HTTP_ROOM_SOON && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        return errno != EAGAIN;
    /* Descriptors or memory ran out, which is not for this thread to solve. */
    n = http_conns_count(l->config.conns, &living);
    if (room != HTTP_ROOM_SOON && living == n)
        (void)evict(l, false, 0, now_ns);
    if (*put_off_ns == 0)
        *put_off_ns = now_ns;
    pause_listener(l, listener, now_ns);
    return false;
}

static void accept_all(struct http_lobby *l, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->config.n_listeners; i++) {
        const struct listener *listener = &l->config.listeners[i];

        for (unsigned n = 0; n < ACCEPTS && listener->fd >= 0; n++) {
            if (!accept_one(l, i, now_ns))
                break;
        }
    }
    (void)pthread_mutex_unlock(&l->lock);
}

static int next_timeout(const struct http_lobby *l)
{
    uint64_t next_ns = l->tick_ns;

    if (l->look_ns != 0 && l->look_ns < next_ns)
        next_ns = l->look_ns;
    if (l->paused && l->resume_ns < next_ns)
        next_ns = l->resume_ns;
    return clock_timeout_ms(next_ns);
}

static void *run(void *ctx)
{
    struct http_lobby *l = ctx;
    struct epoll_event events[EVENTS];
    struct http_conn *own;

    while (!atomic_load(&l->stop)) {
        int n = epoll_wait(l->epoll_fd, events, EVENTS, next_timeout(l));
        uint64_t now_ns = clock_monotonic_ns(), count;
        bool accepting = false, woken = false;

        /* Connections first: accepting may close some that have news here. */
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &wake_mark)
                woken = read(l->wake_fd, &count, sizeof(count)) > 0;
            else if (events[i].data.ptr == &listener_mark)
                accepting = true;
            else
                on_news(l, events[i].data.ptr, events[i].events, now_ns);
        }
        look_again(l, now_ns);
        if (l->paused && (woken || now_ns >= l->resume_ns))
            resume(l);
        if (accepting)
            accept_all(l, now_ns);
        expire(l, now_ns);
    }
    while ((own = http_conns_expire(l->config.conns, UINT64_MAX)))
        drop(l, own);
    return NULL;
}

static uint64_t tick_every_ns(const struct http_deadlines *d)
{
    unsigned ms = TICK_MS;

    ms = d->idle_ms / 4 < ms ? d->idle_ms / 4 : ms;
    ms = d->head_ms / 4 < ms ? d->head_ms / 4 : ms;
    ms = d->body_ms / 4 < ms ? d->body_ms / 4 : ms;
    return (ms + 1) * NS_PER_MS;
}

int http_lobby_start(const struct http_lobby_config *config, struct http_lobby **ret,
                     struct err *err)
{
    struct http_lobby *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return err_set(err, ENOMEM, "out of memory");
    l->config = *config;
    l->tick_every_ns = tick_every_ns(&config->conns->deadlines);
    (void)pthread_mutex_init(&l->lock, NULL);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = l->epoll_fd < 0 || l->wake_fd < 0 ? -errno : 0;
    if (r == 0)
        r = watch(l, EPOLL_CTL_ADD, l->wake_fd, EPOLLIN, &wake_mark);
    for (size_t i = 0; r == 0 && i < config->n_listeners; i++)
        r = watch(l, EPOLL_CTL_ADD, config->listeners[i].fd, EPOLLIN, &listener_mark);
    /* The threads that it gives connections may wake it at once. */
    *ret = l;
    if (r == 0)
        r = -pthread_create(&l->thread, NULL, run, l);
    if (r < 0) {
        *ret = NULL;
        http_lobby_destroy(l);
        return err_set_errno(err, -r, "cannot start to accept connections");
    }
    return 0;
}

void http_lobby_quiesce(struct http_lobby *lobby)
{
    (void)pthread_mutex_lock(&lobby->lock);
    for (size_t i = 0; i < lobby->config.n_listeners; i++)
        listener_close(&lobby->config.listeners[i]);
    (void)pthread_mutex_unlock(&lobby->lock);
}

void http_lobby_wake(struct http_lobby *lobby)
{
    const uint64_t one = 1;

    (void)!write(lobby->wake_fd, &one, sizeof(one));
}

void http_lobby_stop(struct http_lobby *lobby)
{
    if (!lobby)
        return;
    atomic_store(&lobby->stop, true);
    http_lobby_wake(lobby);
    (void)pthread_join(lobby->thread, NULL);
}

void http_lobby_destroy(struct http_lobby *lobby)
{
    if (!lobby)
        return;
    fd_close(&lobby->epoll_fd);
    fd_close(&lobby->wake_fd);
    (void)pthread_mutex_destroy(&lobby->lock);
    free(lobby);
}
