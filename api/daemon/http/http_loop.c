/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_loop.h"

#include "api/daemon/http/http_internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS       64
#define ACCEPTS      32 /* of one listener before the others' turn */
#define TICK_NS      1000000000ull
#define THREAD_STACK (512u * 1024u)
#define LINGER_BYTES (64u * 1024u)
#define PAUSE_NS     50000000ull

/* Says why, and waits a moment, so that a peer that still sends reads it. */
static void refuse(struct http_conn *c, unsigned status)
{
    http_refusal_send(c->fd, status);
    (void)shutdown(c->fd, SHUT_WR);
    http_conn_enter(c, HTTP_PHASE_LINGERING);
}

bool http_loop_look(struct http_conn *c)
{
    struct http_input *in = c->in;
    int r = http_head_feed(&in->head, in->text, in->len);

    if (r > 0) {
        refuse(c, (unsigned)r);
    } else if (r < 0 && in->len > 0) {
        http_conn_enter(c, HTTP_PHASE_HEAD);
    } else if (r < 0) {
        free(in);
        c->in = NULL;
        http_conn_enter(c, HTTP_PHASE_IDLE);
    }
    return r == 0;
}

/* Swallows what still comes after the last answer. */
static void linger(struct http_conn *c)
{
    char block[4096];
    ssize_t n = 1;

    for (size_t i = 0; i < LINGER_BYTES && n > 0; i += (size_t)n)
        n = recv(c->fd, block, sizeof(block), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        http_conn_close(c);
    else
        http_conn_enter(c, HTTP_PHASE_LINGERING);
}

/* Gives it a thread of its own until it waits for a head again. */
static void serve(struct http_conn *c)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    http_conn_enter(c, HTTP_PHASE_WORK);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, http_serve, c);
    (void)pthread_attr_destroy(&attr);
    if (r != 0)
        refuse(c, 503);
}

static void on_input(struct http_conn *c)
{
    const enum http_phase phase = http_conn_phase(c);
    ssize_t n;

    if (phase == HTTP_PHASE_LINGERING) {
        linger(c);
        return;
    }
    n = http_conn_receive(c);
    if (n == 0 && phase == HTTP_PHASE_HEAD)
        refuse(c, 400);
    else if (n <= 0 && n != -EAGAIN)
        http_conn_close(c);
    else if (http_loop_look(c))
        serve(c);
}

static void expire(struct http_loop *l, uint64_t now_ns)
{
    struct http_conn *c;

    if (now_ns < l->tick_ns)
        return;
    l->tick_ns = now_ns + TICK_NS;
    while ((c = http_conns_expired(l->conns, now_ns))) {
        if (c->phase == HTTP_PHASE_HEAD)
            refuse(c, 408);
        else
            http_conn_close(c);
    }
}

static int watch(const struct http_loop *l, int operation, int fd, uint32_t what, void *data)
{
    struct epoll_event event = {.events = what, .data.ptr = data};

    return epoll_ctl(l->conns->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

/* Accepts one. 1; 0: there is none; -EAGAIN: there is no room for it yet. Under the lock. */
static int accept_one(struct http_loop *l, size_t which, uint64_t now_ns)
{
    const struct listener *listener = &l->listeners[which];
    uint64_t *put_off_ns = &l->put_off_ns[which];
    enum http_room room;
    int fd;

    /* First of all: nobody gives way for nobody. */
    if (listener->fd < 0 || !fd_is_readable(listener->fd)) {
        *put_off_ns = 0;
        return 0;
    }
    if (*put_off_ns == 0)
        *put_off_ns = now_ns;
    room = http_conns_make_room(l->conns, !listener->is_unix, now_ns - *put_off_ns, now_ns);
    if (room == HTTP_ROOM_SOON)
        return -EAGAIN;
    fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        return errno != EAGAIN;
    if (fd < 0) {
        /* Descriptors or memory ran out, which is not for this thread to solve. */
        http_conns_shed(l->conns, now_ns);
        return -EAGAIN;
    }
    *put_off_ns = 0;
    if (room == HTTP_ROOM_MADE) {
        http_conns_add(l->conns, fd, !listener->is_unix);
    } else {
        http_refusal_send(fd, 503);
        (void)close(fd);
    }
    return 1;
}

static void accept_all(struct http_loop *l, uint64_t now_ns)
{
    bool put_off = false;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&l->lock);

    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++) {
        int r = 1;

        for (unsigned n = 0; n < ACCEPTS && r > 0; n++)
            r = accept_one(l, i, now_ns);
        put_off |= r < 0;
    }
    /* Nobody new is looked at for a moment, or they are again. */
    for (size_t i = 0; i < HTTP_LISTENERS_MAX && put_off != (l->resume_ns > 0); i++)
        (void)watch(l, EPOLL_CTL_MOD, l->listeners[i].fd, put_off ? 0 : EPOLLIN, NULL);
    l->resume_ns = put_off ? now_ns + PAUSE_NS : 0;
}

static void *run(void *ctx)
{
    struct http_loop *l = ctx;
    struct epoll_event events[EVENTS];

    for (;;) {
        uint64_t next_ns =
            l->resume_ns > 0 && l->resume_ns < l->tick_ns ? l->resume_ns : l->tick_ns;
        int n = epoll_wait(l->conns->epoll_fd, events, EVENTS, clock_timeout_ms(next_ns));
        uint64_t now_ns = clock_monotonic_ns();
        bool accepting = l->resume_ns > 0 && now_ns >= l->resume_ns;

        /* Connections first: accepting may close some that have news here. */
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == l)
                return NULL;
            if (events[i].data.ptr)
                on_input(events[i].data.ptr);
            else
                accepting = true;
        }
        if (accepting)
            accept_all(l, now_ns);
        expire(l, now_ns);
    }
}

static int open_listener(const struct http_listen *place, struct listener *ret, struct err *err)
{
    if (place->socket_path)
        return listener_open(ret, place->socket_path, place->socket_mode, err);
    if (place->address)
        return listener_open_tcp(ret, place->address, err);
    return listener_adopt(ret, place->fd, err);
}

/* Takes every descriptor over that was given, whatever it returns. */
static int open_listeners(struct http_loop *l, struct err *err)
{
    const struct http_config *config = l->conns->config;
    bool failed = false;
    int r = 0;

    for (size_t i = 0; i < config->n_listeners; i++) {
        const struct http_listen *place = &config->listeners[i];

        if (!failed)
            r = open_listener(place, &l->listeners[i], err);
        else if (!place->socket_path && !place->address)
            (void)close(place->fd);
        failed = r < 0;
    }
    return r;
}

static int watch_all(struct http_loop *l, int stop_fd)
{
    for (size_t i = 0; i < l->conns->config->n_listeners; i++) {
        int r = watch(l, EPOLL_CTL_ADD, l->listeners[i].fd, EPOLLIN, NULL);

        if (r < 0)
            return r;
    }
    return watch(l, EPOLL_CTL_ADD, stop_fd, EPOLLIN, l);
}

/* Starts the thread. 0 or -errno. */
static int start(struct http_loop *l)
{
    _cleanup_fd_ int stop_fd = eventfd(0, EFD_CLOEXEC);
    int r;

    if (stop_fd < 0)
        return -errno;
    if (l->conns->epoll_fd < 0)
        return l->conns->epoll_fd;
    r = watch_all(l, stop_fd);
    if (r < 0)
        return r;
    r = pthread_create(&l->thread, NULL, run, l);
    if (r != 0)
        return -r;
    l->stop_fd = fd_steal(&stop_fd);
    return 0;
}

int http_loop_start(struct http_loop *l, struct http_conns *conns, struct err *err)
{
    int r;

    *l = (struct http_loop){.conns = conns, .stop_fd = -1};
    (void)pthread_mutex_init(&l->lock, NULL);
    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++)
        l->listeners[i] = listener_init();
    r = open_listeners(l, err);
    if (r < 0)
        return r;
    r = start(l);
    return r < 0 ? err_set_errno(err, -r, "cannot start to accept connections") : 0;
}

void http_loop_quiesce(struct http_loop *l)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&l->lock);

    for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++) {
        /* Closing is not enough: who gave us a descriptor has it open too. */
        (void)watch(l, EPOLL_CTL_DEL, l->listeners[i].fd, 0, NULL);
        listener_close(&l->listeners[i]);
    }
}

void http_loop_stop(struct http_loop *l)
{
    const uint64_t one = 1;

    if (l->stop_fd >= 0) {
        (void)!write(l->stop_fd, &one, sizeof(one));
        (void)pthread_join(l->thread, NULL);
        fd_close(&l->stop_fd);
    }
    http_loop_quiesce(l);
    (void)pthread_mutex_destroy(&l->lock);
}
