/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are gone, and whose turn it is to see to what they had. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* After an outage of the servers all entries are gone, and nodes come back one by one. */
static int check_joined_long(struct cluster *c, struct err *err)
{
    const uint64_t long_ns = (CLUSTER_TTL_MS + 2ull * CLUSTER_BACKOFF_MAX_MS) * NS_PER_MS;
    int r = cluster_check_joined(c, err);

    if (r < 0)
        return r;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    return clock_monotonic_ns() - c->joined_ns > long_ns
               ? 0
               : err_set(err, EAGAIN, "this node has just come back itself");
}

int cluster_process_is_gone(struct cluster *c, const char *node, const char *instance,
                            bool *ret, struct err *err)
{
    struct cluster_entry entry = {0};
    struct node_entry *found;
    struct cluster_link *link;
    struct err why = {0};
    enum cluster_fault fault;
    enum node_refusal unused;
    bool is_used;
    int r = check_joined_long(c, err);

    if (r < 0)
        return r;
    r = cluster_link_take(c, &link, &is_used, err);
    if (r < 0)
        return r;
    fault = c->driver->get(link, CLUSTER_BUCKET, node, &entry, &why);
    cluster_link_give(c, link, fault == CLUSTER_OK || fault == CLUSTER_NO_ENTRY);
    found = fault == CLUSTER_OK ? calloc(1, sizeof(*found)) : NULL;
    *ret = fault == CLUSTER_NO_ENTRY || entry.is_removed;
    /* What is no entry says nothing: its node writes it anew. */
    if (found && !entry.is_removed &&
        node_entry_parse(node, entry.data, entry.len, found, &unused) == 0)
        *ret = strcmp(found->instance, instance) != 0;
    free(found);
    c->driver->release(&entry);
    return fault == CLUSTER_NO_ENTRY ? 0 : cluster_result(fault, &why, err);
}

bool cluster_has_turn(struct cluster *c, const char *id)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    size_t n, place = nodes_place(&c->nodes, c->self.node, &n);
    uint64_t turn = clock_realtime_ns() / NS_PER_SECOND;

    for (; *id; id++)
        turn = turn * 31 + (unsigned char)*id;
    return turn % n == place;
}
