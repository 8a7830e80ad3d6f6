/* SPDX-License-Identifier: Apache-2.0 */
/* Connections for what is done so often that one of its own each time would cost too much. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/lock.h"

int cluster_link_take(struct cluster *c, struct cluster_link **ret, bool *ret_used,
                      struct err *err)
{
    size_t server;

    (void)pthread_mutex_lock(&c->lock);
    *ret_used = c->links.n > 0;
    if (*ret_used)
        *ret = c->links.idle[--c->links.n];
    server = c->follow.tail.server;
    (void)pthread_mutex_unlock(&c->lock);
    return *ret_used ? 0 : cluster_connect(c, server, ret, err);
}

void cluster_link_give(struct cluster *c, struct cluster_link *link, bool is_good)
{
    bool is_kept;

    (void)pthread_mutex_lock(&c->lock);
    is_kept = is_good && !c->is_stopping && c->links.n < CLUSTER_LINKS;
    if (is_kept)
        c->links.idle[c->links.n++] = link;
    (void)pthread_mutex_unlock(&c->lock);
    if (!is_kept)
        c->driver->close(link);
}
