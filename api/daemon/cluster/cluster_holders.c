/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that have a snapshot. Each says in its entry which ones are there, and takes under a
 * subject of its own what is to begin from them, while it has room. Who asks knows from that,
 * and from what each tells of its slots, whom to call.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/lock.h"

#include <errno.h>
#include <string.h>

#define AT "run.at-" /* no group is called so: groups are digits alone */

/* Also looks which snapshots are here, for the thread that says so. */
static bool look_at_room(struct cluster *c)
{
    uint64_t found[NODE_SNAPSHOTS_MAX];
    size_t n = c->service.snapshots(c->service.ctx, found, NODE_SNAPSHOTS_MAX);

    (void)pthread_mutex_lock(&c->lock);
    memcpy(c->snapshots, found, n * sizeof(*found));
    c->n_snapshots = n;
    (void)pthread_mutex_unlock(&c->lock);
    return cluster_has_room(c);
}

bool cluster_take_snapshots(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    size_t bytes = c->n_snapshots * sizeof(*c->snapshots);

    if (c->self.n_snapshots == c->n_snapshots &&
        memcmp(c->self.snapshots, c->snapshots, bytes) == 0)
        return false;
    c->self.n_snapshots = c->n_snapshots;
    memcpy(c->self.snapshots, c->snapshots, bytes);
    return true;
}

static bool has_snapshot(const struct node_entry *node, uint64_t snapshot)
{
    for (size_t i = 0; i < node->n_snapshots; i++) {
        if (node->snapshots[i] == snapshot)
            return true;
    }
    return false;
}

/* Whether it says that it can begin from a snapshot now. Under both locks. */
static bool is_holder(const struct cluster *c, const struct node_entry *node, uint64_t snapshot)
{
    return has_snapshot(node, snapshot) && strcmp(node->state, "joined") == 0 &&
           strcmp(node->node, c->self.node) != 0 &&
           loads_free(&c->load.loads, node->node, node->instance) > 0;
}

/* The next one behind the one that was called last. */
static bool find_holder(struct cluster *c, uint64_t snapshot, char ret[FLEET_NODE_SIZE])
{
    _cleanup_lock_ pthread_mutex_t *loads_held = lock_hold(&c->load.lock);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    for (size_t i = 1; i <= c->nodes.n; i++) {
        size_t at = (c->holder + i) % c->nodes.n;
        const struct node_entry *node = &c->nodes.list[at]->entry;

        if (!is_holder(c, node, snapshot))
            continue;
        c->holder = at;
        memcpy(ret, node->node, FLEET_NODE_SIZE);
        return true;
    }
    return false;
}

int cluster_call_holder(struct cluster *c, uint64_t snapshot, const char *data, size_t len,
                        struct buf *ret_answer, struct err *err)
{
    char node[FLEET_NODE_SIZE], subject[CLUSTER_SUBJECT_SIZE];
    enum cluster_fault fault;
    bool is_sent;

    if (!cluster_is_joined(c) || !find_holder(c, snapshot, node))
        return err_set(err, ENOENT, "no other node has room and that snapshot");
    cluster_name_subject(AT, node, subject);
    fault = cluster_call_subject(c, subject, data, len, ret_answer, &is_sent, err);
    if (fault == CLUSTER_OK)
        return 0;
    if (fault == CLUSTER_NO_ENTRY)
        return -EBUSY;
    return is_sent ? -EAGAIN : -ENOENT;
}

static enum cluster_fault serve_while_joined(void *cluster, struct cluster_link *link,
                                             struct err *err)
{
    struct cluster *c = cluster;
    char subject[CLUSTER_SUBJECT_SIZE];
    const struct cluster_desk desk = {subject, "node", look_at_room, false, 0};
    enum cluster_fault fault = CLUSTER_OK;

    cluster_name_subject(AT, c->self.node, subject);
    while (fault == CLUSTER_OK && cluster_is_joined(c) && !cluster_is_stopping(c)) {
        if (look_at_room(c))
            fault = cluster_serve_while_room(c, link, &desk, err);
        else
            cluster_wait_room(c);
    }
    return fault;
}

void *cluster_serve_snapshots(void *cluster)
{
    cluster_serve_joined(cluster, "snapshots=\"not served\"", serve_while_joined, cluster);
    return NULL;
}
