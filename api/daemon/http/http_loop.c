/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_loop.h"

#include "api/daemon/http/http_internal.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS    1000000ull
#define EVENTS       64
#define ACCEPTS      32 /* of one listener before the others' turn */
#define TICK_MS      1000u
#define THREAD_STACK (512u * 1024u)
#define LINGER_BYTES (64u * 1024u)
#define PAUSE_NS     (50 * NS_PER_MS)

struct http_loop {
    struct http_conns *conns;
    struct listener *listeners;
    size_t n_listeners;
    void *(*serve)(void *conn);
    pthread_t thread;
    int stop_fd;          /* an event: stop */
    pthread_mutex_t lock; /* of the listeners */
    /* The thread's own. */
    uint64_t resume_ns; /* the listeners are not watched until then; 0: they are */
    uint64_t tick_ns;
    uint64_t tick_every_ns;
    uint64_t put_off_ns[HTTP_LISTENERS_MAX]; /* since then somebody waits for room; 0: nobody */
};

/* What the epoll set's data points at where it is no connection. */
static char stop_mark;
static char listener_mark;

static int watch(const struct http_loop *l, int operation, int fd, uint32_t what, void *data)
{
    struct epoll_event event = {.events = what, .data.ptr = data};

    return epoll_ctl(l->conns->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

/* Says why, and waits a moment, so that a peer that still sends reads it. */
static void refuse(struct http_conns *conns, struct http_conn *c, unsigned status)
{
    http_refusal_send(c->fd, status);
    (void)shutdown(c->fd, SHUT_WR);
    http_conns_give(conns, c, HTTP_PHASE_LINGERING);
}

int http_loop_look(struct http_conns *conns, struct http_conn *c)
{
    int r = http_head_feed(&c->head, c->in, c->in_len);

    if (r > 0) {
        refuse(conns, c, (unsigned)r);
    } else if (r < 0 && c->in_len == 0) {
        free(c->in);
        c->in = NULL;
        http_conns_give(conns, c, HTTP_PHASE_IDLE);
    } else if (r < 0) {
        http_conns_give(conns, c, HTTP_PHASE_HEAD);
    }
    return r;
}

/* Swallows what still comes after the last answer. */
static void linger(struct http_conns *conns, struct http_conn *c)
{
    char block[4096];
    ssize_t n = 1;

    for (size_t i = 0; i < LINGER_BYTES && n > 0; i += (size_t)n)
        n = recv(c->fd, block, sizeof(block), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        http_conns_close(conns, c);
}

/* Runs beside all others until serve returns. 0 or -errno. */
static int start_thread(void *(*serve)(void *conn), struct http_conn *c)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r = pthread_attr_init(&attr);

    if (r != 0)
        return -r;
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, serve, c);
    (void)pthread_attr_destroy(&attr);
    return -r;
}

static void on_input(const struct http_loop *l, struct http_conn *c)
{
    struct http_conns *conns = l->conns;
    ssize_t n = -1;

    if (c->phase == HTTP_PHASE_LINGERING) {
        linger(conns, c);
        return;
    }
    if (!c->in)
        c->in = malloc(HTTP_INPUT_MAX);
    if (c->in)
        n = recv(c->fd, c->in + c->in_len, HTTP_INPUT_MAX - c->in_len, MSG_DONTWAIT);
    if (n < 0 && c->in && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == 0 && c->phase == HTTP_PHASE_HEAD) {
        refuse(conns, c, 400);
        return;
    }
    if (n <= 0) {
        http_conns_close(conns, c);
        return;
    }
    c->in_len += (size_t)n;
    if (http_loop_look(conns, c) != 0)
        return;
    http_conns_take(conns, c);
    if (start_thread(l->serve, c) < 0)
        refuse(conns, c, 503);
}

static void expire(struct http_loop *l, uint64_t now_ns)
{
    struct http_conns *conns = l->conns;
    struct http_conn *c;

    if (now_ns < l->tick_ns)
        return;
    l->tick_ns = now_ns + l->tick_every_ns;
    while ((c = http_conns_expired(conns, now_ns))) {
        if (c->phase == HTTP_PHASE_HEAD)
            refuse(conns, c, 408);
        else
            http_conns_close(conns, c);
    }
}

/* Watches the listeners, or nobody new for a moment. Under the lock. */
static void listen_on(struct http_loop *l, bool on)
{
    for (size_t i = 0; i < l->n_listeners; i++) {
        if (l->listeners[i].fd >= 0)
            (void)watch(l, EPOLL_CTL_MOD, l->listeners[i].fd, on ? EPOLLIN : 0, &listener_mark);
    }
}

static void welcome(struct http_loop *l, int fd, bool is_tcp)
{
    const int on = 1;
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);

    if (is_tcp)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        peer.uid = (uid_t)-1;
    http_conns_add(l->conns, fd, is_tcp, peer.uid);
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
        welcome(l, fd, !listener->is_unix);
    } else {
        http_refusal_send(fd, 503);
        (void)close(fd);
    }
    return 1;
}

static void accept_all(struct http_loop *l, uint64_t now_ns)
{
    bool put_off = false;

    (void)pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n_listeners; i++) {
        int r = 1;

        for (unsigned n = 0; n < ACCEPTS && r > 0; n++)
            r = accept_one(l, i, now_ns);
        put_off |= r < 0;
    }
    if (put_off != (l->resume_ns > 0))
        listen_on(l, !put_off);
    l->resume_ns = put_off ? now_ns + PAUSE_NS : 0;
    (void)pthread_mutex_unlock(&l->lock);
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
            if (events[i].data.ptr == &stop_mark)
                return NULL;
            if (events[i].data.ptr == &listener_mark)
                accepting = true;
            else
                on_input(l, events[i].data.ptr);
        }
        if (accepting)
            accept_all(l, now_ns);
        expire(l, now_ns);
    }
}

static uint64_t tick_every_ns(const struct http_deadlines *d)
{
    const unsigned ms = d->idle_ms < d->head_ms ? d->idle_ms : d->head_ms;

    return ((ms / 4 < TICK_MS ? ms / 4 : TICK_MS) + 1) * NS_PER_MS;
}

static void destroy(struct http_loop *l)
{
    fd_close(&l->stop_fd);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

int http_loop_start(struct http_conns *conns, struct listener *listeners, size_t n_listeners,
                    void *(*serve)(void *conn), struct http_loop **ret, struct err *err)
{
    struct http_loop *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return err_set(err, ENOMEM, "out of memory");
    *l = (struct http_loop){.conns = conns,
                            .listeners = listeners,
                            .n_listeners = n_listeners,
                            .serve = serve,
                            .tick_every_ns = tick_every_ns(&conns->deadlines)};
    (void)pthread_mutex_init(&l->lock, NULL);
    l->stop_fd = eventfd(0, EFD_CLOEXEC);
    r = l->stop_fd < 0 ? -errno : watch(l, EPOLL_CTL_ADD, l->stop_fd, EPOLLIN, &stop_mark);
    for (size_t i = 0; r == 0 && i < n_listeners; i++)
        r = watch(l, EPOLL_CTL_ADD, listeners[i].fd, EPOLLIN, &listener_mark);
    if (r == 0)
        r = -pthread_create(&l->thread, NULL, run, l);
    if (r < 0) {
        destroy(l);
        return err_set_errno(err, -r, "cannot start to accept connections");
    }
    *ret = l;
    return 0;
}

void http_loop_quiesce(struct http_loop *loop)
{
    (void)pthread_mutex_lock(&loop->lock);
    for (size_t i = 0; i < loop->n_listeners; i++)
        listener_close(&loop->listeners[i]);
    (void)pthread_mutex_unlock(&loop->lock);
}

void http_loop_stop(struct http_loop *loop)
{
    const uint64_t one = 1;

    if (!loop)
        return;
    (void)!write(loop->stop_fd, &one, sizeof(one));
    (void)pthread_join(loop->thread, NULL);
    destroy(loop);
}
