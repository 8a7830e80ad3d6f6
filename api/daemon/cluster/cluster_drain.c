/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator wants of one node: it goes from the node that was asked to that one. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool cluster_is_self(const struct cluster *c, const char *node)
{
    return strcmp(c->self.node, node) == 0;
}

void cluster_set_draining(struct cluster *c, bool is_draining)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->is_draining = is_draining;
    (void)pthread_cond_broadcast(&c->room);
}

/* Nobody takes it: whether there is such a node at all. */
static int explain_silence(struct cluster *c, struct cluster_link *link, const char *node,
                           struct err *err)
{
    struct cluster_entry entry = {0};
    struct err why = {0};
    enum cluster_fault fault = c->driver->get(link, CLUSTER_BUCKET, node, &entry, &why);
    bool is_there = fault == CLUSTER_OK && !entry.is_removed;
    uint64_t now = clock_realtime_ns(), stored = entry.stored_ns;

    c->driver->release(&entry);
    if (fault != CLUSTER_OK && fault != CLUSTER_NO_ENTRY)
        return cluster_result(fault, &why, err);
    if (!is_there)
        return err_set(err, ENOENT, "there is no node %s", node);
    return err_set(err, EAGAIN,
                   "the node %s, which said %llu s ago how it is, does not take this: it is "
                   "gone, cut off, or of an earlier version",
                   node,
                   (unsigned long long)(now > stored ? (now - stored) / NS_PER_SECOND : 0));
}

static int take_answer(const char *node, const struct cluster_entry *answer,
                       struct node_drain *ret, struct err *err)
{
    struct node_drain drain;

    if (node_drain_parse(answer->data, answer->len, &drain) < 0)
        return err_set(err, EAGAIN, "what the node %s answers cannot be read", node);
    if (drain.refused[0])
        return err_set(err, EAGAIN, "the node %s: %s", node, drain.refused);
    *ret = drain;
    return 0;
}

static int ask(struct cluster *c, struct cluster_link *link, const char *node, struct buf *wish,
               struct node_drain *ret, struct err *err)
{
    struct cluster_entry answer = {0};
    char subject[CLUSTER_SUBJECT_SIZE];
    struct err why = {0};
    enum cluster_fault fault;
    int r;

    cluster_name_subject("node.", node, subject);
    fault = c->driver->call(link, subject, buf_cstr(wish), wish->len, CLUSTER_CALL_MS, &answer,
                            &why);
    if (fault == CLUSTER_NO_ENTRY)
        return explain_silence(c, link, node, err);
    if (fault == CLUSTER_NO_QUORUM)
        return err_set(err, EAGAIN, "the node %s does not answer in time", node);
    if (fault != CLUSTER_OK)
        return cluster_result(fault, &why, err);
    r = take_answer(node, &answer, ret, err);
    c->driver->release(&answer);
    return r;
}

int cluster_wish(struct cluster *c, const char *node, enum node_wish wish,
                 struct node_drain *ret, struct err *err)
{
    _cleanup_buf_ struct buf text = {0};
    struct cluster_link *link;
    int r;

    if (!fleet_node_valid(node))
        return err_set(err, ENOENT, "there is no node %.64s", node);
    if (node_wish_write(wish, &text) < 0)
        return err_no_memory(err);
    r = cluster_connect(c, 0, false, &link, err);
    if (r < 0)
        return r;
    r = ask(c, link, node, &text, ret, err);
    c->driver->close(link);
    return r;
}

static void grant(void *ctx, const char *data, size_t len, struct buf *answer)
{
    const struct cluster_service *service = ctx;
    struct node_drain drain = {0};
    _cleanup_buf_ struct buf text = {0};
    enum node_wish wish;
    struct err err = {0};

    if (node_wish_parse(data, len, &wish) < 0)
        (void)snprintf(drain.refused, sizeof(drain.refused), "it does not know this wish");
    else if (service->wish(service->ctx, wish, &drain, &err) < 0)
        (void)snprintf(drain.refused, sizeof(drain.refused), "%.200s", err.message);
    if (node_drain_write(&drain, &text) < 0)
        return;
    (void)buf_append(answer, text.data, text.len);
}

/* Takes what is wished of this node over a connection, while it is joined under its name. */
static enum cluster_fault serve_while_joined(void *cluster, struct cluster_link *link,
                                             struct err *err)
{
    struct cluster *c = cluster;
    const struct cluster_caller caller = {.ctx = &c->service, .take = grant};
    char subject[CLUSTER_SUBJECT_SIZE];
    enum cluster_fault fault;

    cluster_name_subject("node.", c->self.node, subject);
    fault = c->driver->serve(link, subject, "node", CLUSTER_PENDING, err);
    while (fault == CLUSTER_OK && cluster_is_joined(c) && !cluster_is_stopping(c)) {
        bool some;

        fault = cluster_serve_one(c, link, &caller, CLUSTER_SLICE_MS, &some, err);
    }
    return fault;
}

void *cluster_serve_wishes(void *cluster)
{
    cluster_serve_joined(cluster, "wishes=\"not taken\"", serve_while_joined, cluster);
    return NULL;
}
