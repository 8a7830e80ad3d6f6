/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/resolver.h"

#include "base/clock.h"
#include "base/fd.h"

#include <ares.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* Of one server, and how often each is asked; each time for twice as long. */
#define TRY_MS 1500
#define TRIES  2
#define EVENTS 8

struct under_way {
    struct lookup *lookup;
    unsigned key;
};

struct lookup {
    ares_channel channel;
    int epoll_fd;
    unsigned n; /* under way */
    bool ended;
    lookup_done *done;
    void *ctx;
    struct under_way keys[];
};

static void on_socket(void *ctx, ares_socket_t fd, int readable, int writable)
{
    const struct lookup *l = ctx;
    struct epoll_event event = {.data.fd = fd};

    event.events = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);
    if (event.events == 0)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    else if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* It counts its users without a lock. */
static void init_library(void)
{
    (void)ares_library_init(ARES_LIB_INIT_ALL);
}

static int open_channel(struct lookup *l, const char *servers)
{
    char files_then_dns[] = "fb";
    struct ares_options options = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                                   .timeout = TRY_MS,
                                   .tries = TRIES,
                                   .lookups = files_then_dns,
                                   .sock_state_cb = on_socket,
                                   .sock_state_cb_data = l};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int r;

    (void)pthread_once(&once, init_library);
    r = ares_init_options(&l->channel, &options,
                          ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                              ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
    if (r == ARES_SUCCESS && *servers)
        r = ares_set_servers_ports_csv(l->channel, servers);
    return r;
}

struct lookup *lookup_create(const char *servers, unsigned keys, lookup_done *done, void *ctx,
                             struct err *err)
{
    struct lookup *l = calloc(1, sizeof(*l) + keys * sizeof(l->keys[0]));
    int r;

    if (!l) {
        err_no_memory(err);
        return NULL;
    }
    l->done = done;
    l->ctx = ctx;
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < keys; i++)
        l->keys[i] = (struct under_way){l, i};
    r = l->epoll_fd < 0 ? ARES_ENOMEM : open_channel(l, servers);
    if (r != ARES_SUCCESS) {
        err_set(err, EIO, "names cannot be looked up: %s", ares_strerror(r));
        lookup_destroy(l);
        return NULL;
    }
    return l;
}

void lookup_destroy(struct lookup *l)
{
    if (!l)
        return;
    l->ended = true;
    if (l->channel)
        ares_destroy(l->channel);
    fd_close(&l->epoll_fd);
    free(l);
}

/* All of them, or -E2BIG: one that is left out would not be checked. */
static int copy_found(const struct ares_addrinfo *all, union ip_address *found, size_t *ret_n)
{
    for (const struct ares_addrinfo_node *i = all->nodes; i; i = i->ai_next) {
        if (i->ai_addrlen > sizeof(found[0]) ||
            (i->ai_family != AF_INET && i->ai_family != AF_INET6))
            continue;
        if (*ret_n == LOOKUP_ADDRESSES_MAX)
            return -E2BIG;
        found[*ret_n] = (union ip_address){.ipv6 = {0}};
        memcpy(&found[(*ret_n)++], i->ai_addr, i->ai_addrlen);
    }
    return *ret_n > 0 ? 0 : -ENOENT;
}

static void on_end(void *ctx, int status, int timeouts, struct ares_addrinfo *all)
{
    const struct under_way *u = ctx;
    struct lookup *l = u->lookup;
    union ip_address found[LOOKUP_ADDRESSES_MAX];
    bool is_nobody = status == ARES_SUCCESS || status == ARES_ENOTFOUND ||
                     status == ARES_ENODATA || status == ARES_ENONAME ||
                     status == ARES_EBADNAME;
    int result = is_nobody ? -ENOENT : -EIO;
    size_t n = 0;

    (void)timeouts;
    if (status == ARES_SUCCESS && all)
        result = copy_found(all, found, &n);
    if (all)
        ares_freeaddrinfo(all);
    l->n--;
    if (!l->ended)
        l->done(l->ctx, u->key, result, found, n);
}

void lookup_start(struct lookup *l, unsigned key, const char *name)
{
    const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC,
                                              .ai_socktype = SOCK_STREAM};

    l->n++;
    ares_getaddrinfo(l->channel, name, NULL, &hints, on_end, &l->keys[key]);
}

int lookup_fd(const struct lookup *l)
{
    return l->epoll_fd;
}

uint64_t lookup_deadline_ns(const struct lookup *l)
{
    struct timeval left;

    if (l->n == 0 || !ares_timeout(l->channel, NULL, &left))
        return UINT64_MAX;
    return clock_monotonic_ns() + (uint64_t)left.tv_sec * NS_PER_SECOND +
           (uint64_t)left.tv_usec * 1000u;
}

void lookup_work(struct lookup *l)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(l->epoll_fd, events, EVENTS, 0);

    for (int i = 0; i < n; i++)
        ares_process_fd(l->channel,
                        events[i].events & ~(uint32_t)EPOLLOUT ? events[i].data.fd
                                                               : ARES_SOCKET_BAD,
                        events[i].events & EPOLLOUT ? events[i].data.fd : ARES_SOCKET_BAD);
    /* What has waited for too long is asked again, or given up. */
    if (n <= 0)
        ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
