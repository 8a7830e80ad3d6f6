/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the daemon lives, and whether it can take an execution now. */
#include "api/daemon/callers/held.h"
#include "api/daemon/routes/daemon.h"
#include "api/json/json_text.h"

#include <errno.h>
#include <stdio.h>

#define BODY_MAX       8192u
#define RETRY_SNAPSHOT 1u /* seconds */

void route_health(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct buf body = buf_init(64);

    (void)ctx;
    (void)request;
    (void)buf_printf(&body, "{\"status\":\"ok\"}\n");
    http_reply_json(reply, 200, &body);
}

/* "ok", or how much of what is too little. */
static void append_level(struct buf *body, const char *name,
                         const struct watermarks_level *level)
{
    char text[128] = "ok";

    if (level->low)
        watermarks_describe(level, text, sizeof(text));
    (void)buf_printf(body, ",\"%s\":", name);
    (void)json_append_cstr(body, text);
}

/* "ok", or the layers of the jail that this host does not allow. Never a reason to wait. */
static void append_isolation(struct buf *body, const struct jail *jail)
{
    _cleanup_buf_ struct buf text = buf_init(BODY_MAX);

    for (int i = 0; i < JAIL_LAYERS; i++) {
        const char *why = jail_missing(jail, (enum jail_layer)i);

        if (why)
            (void)buf_printf(&text, "%sno %s (%s)", text.len ? "; " : "", jail_layer_names[i],
                             why);
    }
    (void)buf_printf(body, ",\"isolation\":");
    (void)json_append_cstr(body, text.len ? buf_cstr(&text) : "ok");
}

/* "ok", or why this node is not joined; only where it is to be. */
static void append_cluster(struct buf *body, const struct cluster_status *status)
{
    (void)buf_printf(body, ",\"cluster\":");
    (void)json_append_cstr(body, status->state == CLUSTER_JOINED       ? "ok"
                                 : status->state == CLUSTER_CONNECTING ? "connecting"
                                                                       : status->message);
}

void route_ready(void *ctx, struct http_request *request, struct http_reply *reply)
{
    struct daemon *d = ctx;
    struct buf body = buf_init(BODY_MAX);
    char text[ERR_MESSAGE_MAX];
    enum snapshots_state state = snapshots_get_state(d->snapshots, text, sizeof(text));
    struct cluster_status cluster = {.state = CLUSTER_JOINED};
    struct watermarks_state levels;
    struct err pool = {0};
    bool can_start, ready;

    (void)request;
    if (d->cluster)
        cluster_look(d->cluster, &cluster);
    watermarks_look(d->watermarks, &levels);
    if (__atomic_load_n(&d->stopping, __ATOMIC_RELAXED))
        (void)err_set(&pool, ESHUTDOWN, "the daemon is stopping");
    else if (engine_is_draining(d->engine))
        (void)err_set(&pool, EHOSTDOWN, "this node is being drained: it takes no executions");
    else
        (void)pool_check_starts(d->pool, &pool);
    can_start =
        state == SNAPSHOTS_READY && pool.code == 0 && !levels.disk.low && !levels.memory.low;
    /* Who is not joined accepts nothing. */
    ready = can_start && cluster.state == CLUSTER_JOINED && cluster_takes_keys(d->cluster);
    (void)buf_printf(&body, "{\"status\":\"%s\",\"checks\":{\"snapshot\":",
                     ready                                           ? "ready"
                     : state == SNAPSHOTS_FAILED                     ? "failed"
                     : can_start && cluster.state == CLUSTER_CUT_OFF ? "cut_off"
                                                                     : "not_ready");
    (void)json_append_cstr(&body, text);
    (void)buf_printf(&body, ",\"pool\":");
    (void)json_append_cstr(&body, pool.code ? pool.message : "ok");
    append_level(&body, "disk", &levels.disk);
    append_level(&body, "memory", &levels.memory);
    /* Before what is no reason to wait: the first that is not ok is shown. */
    if (d->cluster)
        append_cluster(&body, &cluster);
    append_isolation(&body, d->jail);
    (void)buf_printf(&body, "}}\n");
    http_reply_json(reply, ready ? 200 : 503, &body);
    if (state == SNAPSHOTS_PREPARING)
        reply->retry_after_s = RETRY_SNAPSHOT;
    else if (!ready && state == SNAPSHOTS_READY)
        reply->retry_after_s = HELD_RETRY_S;
}
