/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster as this node sees it, as JSON. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"

static const char *const state_names[] = {
    [CLUSTER_CONNECTING] = "connecting",
    [CLUSTER_JOINED] = "joined",
    [CLUSTER_CUT_OFF] = "cut_off",
};

static void write_node(struct json_writer *w, const struct node *node, uint64_t now_ns)
{
    uint64_t age_ns = now_ns > node->renewed_ns ? now_ns - node->renewed_ns : 0;

    json_write_open(w, NULL, '{');
    node_entry_write_members(w, &node->entry);
    json_write_number(w, "snapshots", node->entry.n_snapshots);
    json_write_time(w, "started_at", node->entry.started_ns);
    json_write_number(w, "age_ms", age_ns / NS_PER_MS);
    json_write_bool(w, "alive", age_ns < CLUSTER_LEASE_MS * NS_PER_MS);
    json_write_close(w, '}');
}

static void write_refused(struct json_writer *w, const struct refused *refused)
{
    json_write_open(w, "refused", '{');
    for (int i = 0; i < NODE_REFUSALS; i++)
        json_write_number(w, node_refusal_names[i], refused->n[i]);
    json_write_string(w, "last", refused->last[0] ? refused->last : NULL);
    json_write_close(w, '}');
}

/* How this node follows a bucket. */
static void write_tail(struct json_writer *w, const struct cluster_tail *tail)
{
    json_write_bool(w, "followed", tail->is_good);
    json_write_number(w, "revision", tail->revision);
    write_refused(w, &tail->refused);
}

static void write_conflicts(struct json_writer *w, const struct cluster_tail *tail)
{
    json_write_number(w, "conflicts", tail->refused.n[REFUSED_CONFLICT]);
}

/* Until something was removed, or the bucket may take more. */
static bool is_full(const struct cluster_follow *f)
{
    return f->full[0] && f->tail.bytes >= f->full_bytes && f->tail.max_bytes <= f->full_max;
}

static void write_changes(struct json_writer *w, const struct cluster_follow *f)
{
    uint64_t age_ns = clock_monotonic_ns() - f->tail.confirmed_ns;

    json_write_open(w, "changes", '{');
    json_write_bool(w, "takes_keys", cluster_keys_good(f));
    if (f->tail.is_replica)
        json_write_number(w, "confirmed_ms_ago", age_ns / NS_PER_MS);
    json_write_string(w, "no_room", is_full(f) ? f->full : NULL);
    write_conflicts(w, &f->tail);
    write_tail(w, &f->tail);
    json_write_close(w, '}');
}

static void write_records(struct json_writer *w, const struct cluster_tail *tail)
{
    json_write_open(w, "executions", '{');
    write_conflicts(w, tail);
    write_tail(w, tail);
    json_write_close(w, '}');
}

static void write_audit(struct json_writer *w, const struct cluster_tail *tail)
{
    json_write_open(w, "audit", '{');
    write_tail(w, tail);
    json_write_string(w, "message", tail->message[0] && !tail->is_good ? tail->message : NULL);
    json_write_close(w, '}');
}

static void write_loads(struct json_writer *w, const struct cluster_load_measure *load)
{
    json_write_open(w, "loads", '{');
    json_write_number(w, "nodes", load->nodes);
    json_write_number(w, "running", load->running);
    json_write_number(w, "waiting", load->waiting);
    write_refused(w, &load->refused);
    json_write_close(w, '}');
}

void cluster_write(struct cluster *c, struct json_writer *w)
{
    struct cluster_load_measure load;

    cluster_load_measure(c, &load);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    uint64_t now_ns = clock_monotonic_ns();
    struct cluster_status now;

    cluster_state_now(c, &now);
    json_write_open(w, NULL, '{');
    json_write_string(w, "node", c->self.node);
    json_write_string(w, "state", state_names[now.state]);
    json_write_string(w, "reason", now.reason);
    json_write_string(w, "message", now.reason ? now.message : NULL);
    json_write_time(w, "since", c->since_ns);
    json_write_string(w, "server", c->server[0] ? c->server : NULL);
    json_write_number(w, "replicas", c->replicas);
    json_write_bool(w, "draining", c->is_draining);
    json_write_bool(w, "takes_executions", c->n_serving > 0);
    json_write_open(w, "nodes", '[');
    for (size_t i = 0; i < c->nodes.n; i++)
        write_node(w, c->nodes.list[i], now_ns);
    json_write_close(w, ']');
    write_refused(w, &c->nodes.refused);
    if (c->follow.tail.has_thread)
        write_changes(w, &c->follow);
    if (c->records.has_thread)
        write_records(w, &c->records);
    if (c->audit.has_thread)
        write_audit(w, &c->audit);
    write_loads(w, &load);
    json_write_close(w, '}');
}
