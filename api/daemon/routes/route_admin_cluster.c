/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster that this daemon is a node of, for the operator. */
#include "api/daemon/callers/audit.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/drain.h"
#include "api/daemon/routes/failure.h"

/* 1,024 nodes, each with less than 16 KiB to show. */
#define CLUSTER_JSON_MAX (17u * 1024u * 1024u)

/* False with a reply where there is none. */
static bool has_cluster(const struct daemon *d, struct http_reply *reply)
{
    return d->cluster || http_reply_error(reply, 404, "not_found",
                                          "this daemon is on its own: no cluster.servers are "
                                          "in its settings");
}

void route_admin_cluster_get(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(CLUSTER_JSON_MAX);
    const struct err none = {0};

    (void)request;
    if (!has_cluster(d, reply))
        return;
    cluster_write(d->cluster, &w);
    (void)failure_or_json(reply, 200, &w, 0, &none);
}

void route_admin_cluster_init(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct json_writer w = json_writer_init(4096);
    struct err err = {0};
    bool made = false;

    if (!has_cluster(d, reply) ||
        !failure_or_true(reply, cluster_init(d->cluster, &made, &err), &err))
        return;
    if (made)
        audit_note(d->audit, &request->caller, "cluster.init", CLUSTER_BUCKET, "%s", "");
    json_write_open(&w, NULL, '{');
    json_write_string(&w, "bucket", CLUSTER_BUCKET);
    json_write_bool(&w, "made", made);
    json_write_close(&w, '}');
    (void)failure_or_json(reply, 200, &w, 0, &err);
}

void route_admin_cluster_remove(void *ctx, struct http_request *request,
                                struct http_reply *reply)
{
    struct daemon *d = ctx;
    const char *node = request->params[0];
    struct err err = {0};

    if (!has_cluster(d, reply) ||
        !failure_or_true(reply, cluster_remove(d->cluster, node, &err), &err))
        return;
    audit_note(d->audit, &request->caller, "cluster.remove", node, "%s", "");
    http_reply_empty(reply, 204);
}

/* What was wished is done by the node of the path, this one or another. */
static void wish(struct daemon *d, const struct http_request *request, enum node_wish wish,
                 const char *action, struct http_reply *reply)
{
    struct json_writer w = json_writer_init(4096);
    const char *node = request->params[0];
    struct node_drain drain = {0};
    struct err err = {0};
    int r;

    if (!has_cluster(d, reply))
        return;
    r = cluster_is_self(d->cluster, node) ? drain_wish(d, wish, &drain, &err)
                                          : cluster_wish(d->cluster, node, wish, &drain, &err);
    if (!failure_or_true(reply, r, &err))
        return;
    if (action)
        audit_note(d->audit, &request->caller, action, node, "%s", "");
    json_write_open(&w, NULL, '{');
    json_write_string(&w, "node", node);
    json_write_bool(&w, "draining", drain.is_draining);
    json_write_number(&w, "running", drain.running);
    json_write_number(&w, "waiting", drain.waiting);
    json_write_close(&w, '}');
    (void)failure_or_json(reply, 200, &w, 0, &err);
}

void route_admin_cluster_drain(void *ctx, struct http_request *request,
                               struct http_reply *reply)
{
    wish(ctx, request, NODE_WISH_DRAIN, "cluster.drain", reply);
}

void route_admin_cluster_undrain(void *ctx, struct http_request *request,
                                 struct http_reply *reply)
{
    wish(ctx, request, NODE_WISH_UNDO, "cluster.undrain", reply);
}

void route_admin_cluster_drained(void *ctx, struct http_request *request,
                                 struct http_reply *reply)
{
    wish(ctx, request, NODE_WISH_LOOK, NULL, reply);
}
