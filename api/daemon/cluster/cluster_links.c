/* SPDX-License-Identifier: Apache-2.0 */
/* Connections for what is done so often that one of its own each time would cost too much. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"

#include "base/log.h"

#include <errno.h>

#define WAIT_NS (5 * NS_PER_SECOND)

/* A place for one more, once somebody gave one back; for a moment. Under the lock. */
static int take_place(struct cluster *c, struct err *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + WAIT_NS;

    while (c->links.n == 0 && c->links.open == CLUSTER_LINKS_OPEN && !c->is_stopping) {
        if (!cond_wait_until(&c->links.given, &c->lock, deadline_ns))
            return err_set(err, EAGAIN,
                           "the servers of the cluster are asked too much at once");
    }
    c->links.open++;
    return 0;
}

int cluster_link_take(struct cluster *c, struct cluster_link **ret, bool *ret_used,
                      struct err *err)
{
    int r;

    (void)pthread_mutex_lock(&c->lock);
    r = take_place(c, err);
    *ret_used = r == 0 && c->links.n > 0;
    if (*ret_used)
        *ret = c->links.idle[--c->links.n];
    (void)pthread_mutex_unlock(&c->lock);
    if (r < 0 || *ret_used)
        return r;
    r = cluster_connect_near(c, false, ret, err);
    if (r < 0)
        cluster_link_give(c, NULL, false);
    return r;
}

void cluster_link_give(struct cluster *c, struct cluster_link *link, bool is_good)
{
    struct cluster_link *dead[CLUSTER_LINKS + 1] = {link};
    size_t n = 1;

    (void)pthread_mutex_lock(&c->lock);
    c->links.open--;
    if (is_good && !c->is_stopping && c->links.n < CLUSTER_LINKS) {
        c->links.idle[c->links.n++] = link;
        n = 0;
    }
    /* The others are to the same server. */
    while (!is_good && c->links.n > 0)
        dead[n++] = c->links.idle[--c->links.n];
    (void)pthread_cond_signal(&c->links.given);
    (void)pthread_mutex_unlock(&c->lock);
    while (n > 0)
        c->driver->close(dead[--n]);
}

static enum cluster_fault serve_over_one(struct cluster *c, cluster_serve_fn *serve, void *ctx,
                                         struct err *err)
{
    struct cluster_link *link = NULL;
    enum cluster_fault fault;

    if (cluster_connect(c, 0, false, &link, err) < 0)
        return CLUSTER_UNREACHABLE;
    fault = serve(ctx, link, err);
    c->driver->close(link);
    return fault;
}

void cluster_serve_joined(struct cluster *c, const char *undone, cluster_serve_fn *serve,
                          void *ctx)
{
    while (!cluster_is_stopping(c)) {
        struct err err = {0};

        if (!cluster_is_joined(c)) {
            cluster_pause_ms(c, CLUSTER_JOIN_MS);
            continue;
        }
        if (serve_over_one(c, serve, ctx, &err) == CLUSTER_OK)
            continue;
        log_warn("cluster", "%s node=%s reason=\"%s\"", undone, c->self.node, err.message);
        cluster_pause_ms(c, CLUSTER_BACKOFF_MS);
    }
}
