/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/metrics_internal.h"
#include "base/process_stats.h"

#include <stdio.h>

static const char *const fault_names[METRICS_FAULTS] = {"protocol", "deadline", "vmm_died",
                                                        "guest", "other"};
static const char *const auth_names[METRICS_AUTH_FAILURES] = {"no_key", "bad_key",
                                                              "no_operator"};
static const char *const refusal_names[METRICS_REFUSALS] = {"rate_limited", "quota_exceeded",
                                                            "overloaded"};

static const char *const passing_names[METRICS_PASSINGS] = {"sent", "taken", "taken_over",
                                                            "begun_again"};

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* label is "" or 'name="value"'. */
static void put_histogram(struct buf *out, const char *name, const char *label,
                          const struct metrics_histogram *h)
{
    const char *comma = label[0] ? "," : "";
    const char *open = label[0] ? "{" : "", *close = label[0] ? "}" : "";
    uint64_t below = 0;

    for (size_t i = 0; i < METRICS_BOUNDS; i++) {
        below += h->buckets[i];
        (void)buf_printf(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, label, comma,
                         (double)metrics_bounds_us[i] / 1e6, (unsigned long long)below);
    }
    (void)buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma,
                     (unsigned long long)h->count);
    (void)buf_printf(out, "%s_sum%s%s%s %.9f\n%s_count%s%s%s %llu\n", name, open, label, close,
                     (double)h->sum_ns / 1e9, name, open, label, close,
                     (unsigned long long)h->count);
}

static void put_phases(struct buf *out, const struct metrics *m)
{
    char label[32];

    put_head(out, "skillvm_execution_phase_seconds", "histogram",
             "How long the phases of executions took.");
    for (int i = 0; i < RESULT_PHASES; i++) {
        (void)snprintf(label, sizeof(label), "phase=\"%s\"", result_phase_names[i]);
        put_histogram(out, "skillvm_execution_phase_seconds", label, &m->phases[i]);
    }
    put_head(out, "skillvm_execution_seconds", "histogram",
             "How long executions took from acceptance to their result.");
    put_histogram(out, "skillvm_execution_seconds", "", &m->whole);
}

/* One counter with one label, of which names has the n values. */
static void put_labelled(struct buf *out, const char *name, const char *help, const char *label,
                         const char *const *names, const uint64_t *values, size_t n)
{
    put_head(out, name, "counter", help);
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(out, "%s{%s=\"%s\"} %llu\n", name, label, names[i],
                         (unsigned long long)values[i]);
}

static void put_counters(struct buf *out, const struct metrics *m)
{
    const char *statuses[METRICS_STATUSES];

    for (int i = 0; i < METRICS_STATUSES; i++)
        statuses[i] = result_status_name((enum result_status)i);
    put_labelled(out, "skillvm_executions_total", "Executions that ended, by status.", "status",
                 statuses, m->executions, METRICS_STATUSES);
    put_labelled(out, "skillvm_vmm_faults_total",
                 "Machines that did not do their work, by cause.", "cause", fault_names,
                 m->faults, METRICS_FAULTS);
    put_labelled(out, "skillvm_auth_failures_total", "Requests answered with 401, by reason.",
                 "reason", auth_names, m->auth_failures, METRICS_AUTH_FAILURES);
    put_labelled(out, "skillvm_cluster_executions_total",
                 "Executions that went to another node or came from one, by how.", "what",
                 passing_names, m->passings, METRICS_PASSINGS);
    put_head(out, "skillvm_execution_cpu_seconds_total", "counter",
             "CPU time of executions, as the host measured it.");
    (void)buf_printf(out, "skillvm_execution_cpu_seconds_total %.6f\n",
                     (double)m->cpu_us / 1e6);
}

/* The i-th tenant that has counters; the one after the last is the others together. */
static const struct metrics_tenant *tenant_at(const struct metrics *m, size_t i)
{
    return i < m->n_tenants ? &m->tenants[i] : &m->other;
}

static void put_tenant_counters(struct buf *out, const struct metrics *m)
{
    /* The others are there once there are any. */
    size_t n = m->n_tenants + (m->n_tenants == METRICS_TENANTS);

    put_head(out, "skillvm_tenant_executions_total", "counter",
             "Executions that ended, by tenant and status.");
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < METRICS_STATUSES; k++)
            (void)buf_printf(
                out, "skillvm_tenant_executions_total{tenant=\"%s\",status=\"%s\"} %llu\n",
                tenant_at(m, i)->id, result_status_name((enum result_status)k),
                (unsigned long long)tenant_at(m, i)->executions[k]);
    }
    put_head(out, "skillvm_tenant_refusals_total", "counter",
             "Executions that were not accepted, by tenant and reason.");
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < METRICS_REFUSALS; k++)
            (void)buf_printf(
                out, "skillvm_tenant_refusals_total{tenant=\"%s\",reason=\"%s\"} %llu\n",
                tenant_at(m, i)->id, refusal_names[k],
                (unsigned long long)tenant_at(m, i)->refusals[k]);
    }
    put_head(out, "skillvm_tenant_cpu_seconds_total", "counter",
             "CPU time of executions, by tenant.");
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(out, "skillvm_tenant_cpu_seconds_total{tenant=\"%s\"} %.6f\n",
                         tenant_at(m, i)->id, (double)tenant_at(m, i)->cpu_us / 1e6);
}

static void put_tenant_gauges(struct buf *out, const struct metrics_gauges *g)
{
    put_head(out, "skillvm_tenant_executions_queued", "gauge",
             "Executions that wait now, by tenant.");
    for (size_t i = 0; i < g->n_tenants; i++)
        (void)buf_printf(out, "skillvm_tenant_executions_queued{tenant=\"%s\"} %u\n",
                         g->tenants[i].tenant, g->tenants[i].queued);
    put_head(out, "skillvm_tenant_executions_running", "gauge",
             "Executions that run now, by tenant.");
    for (size_t i = 0; i < g->n_tenants; i++)
        (void)buf_printf(out, "skillvm_tenant_executions_running{tenant=\"%s\"} %u\n",
                         g->tenants[i].tenant, g->tenants[i].running);
}

/* One with a single value. */
struct value {
    const char *name, *type, *help;
    double value;
};

static void put_values(struct buf *out, const struct value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_head(out, values[i].name, values[i].type, values[i].help);
        (void)buf_printf(out, "%s %.15g\n", values[i].name, values[i].value);
    }
}

static void put_gauges(struct buf *out, const struct metrics_gauges *g)
{
    const struct value gauges[] = {
        {"skillvm_execution_slots", "gauge", "Executions that may run at the same time.",
         g->slots},
        {"skillvm_executions_running", "gauge", "Executions that run now.", g->running},
        {"skillvm_executions_queued", "gauge", "Executions that wait now.", g->queued},
        {"skillvm_queue_oldest_wait_seconds", "gauge",
         "How long the one waits that waits longest.", (double)g->oldest_wait_ns / 1e9},
        {"skillvm_snapshot_ready", "gauge", "1 once the snapshot is loaded.",
         g->snapshot.is_ready},
        {"skillvm_snapshot_age_seconds", "gauge", "Since the snapshot was made.",
         (double)g->snapshot.age_ns / 1e9},
        {"skillvm_snapshot_uses", "gauge",
         "Executions that began from it since it came into use.", (double)g->snapshot.uses},
        {"skillvm_snapshots_kept", "gauge", "Snapshots in use beside the common plain one.",
         g->snapshot.kept},
        {"skillvm_snapshots_kept_bytes", "gauge", "What those take on disk.",
         (double)g->snapshot.kept_bytes},
        {"skillvm_machines", "gauge", "Processes of machines now.", g->machines.machines},
        {"skillvm_machines_resident_memory_bytes", "gauge",
         "Memory of the machines, each with the snapshot's pages that they share.",
         (double)g->machines.resident_bytes},
        {"skillvm_machines_private_memory_bytes", "gauge",
         "Memory of the machines that none shares.", (double)g->machines.private_bytes},
        {"skillvm_machines_parked_private_memory_bytes", "gauge",
         "That of the machines that wait, as of when they began to.",
         (double)g->machines.parked_bytes},
        {"skillvm_machines_behind", "gauge", "Machines that are being reset or ended now.",
         g->machines.behind},
    };

    put_values(out, gauges, sizeof(gauges) / sizeof(gauges[0]));
    put_tenant_gauges(out, g);
}

static void put_sessions(struct buf *out, const struct metrics_gauges *g, uint64_t conflicts)
{
    const struct value values[] = {
        {"skillvm_sessions", "gauge", "Sessions that are kept.", (double)g->sessions},
        {"skillvm_sessions_bytes", "gauge", "What their files take on disk.",
         (double)g->sessions_bytes},
        {"skillvm_sessions_expired_total", "counter", "Sessions that nobody used for too long.",
         (double)g->sessions_expired},
        {"skillvm_session_conflicts_total", "counter",
         "Requests that were refused because another had the session.", (double)conflicts},
    };

    put_values(out, values, sizeof(values) / sizeof(values[0]));
}

static void put_snapshots(struct buf *out, const struct snapshots_measure *s)
{
    static const char *const names[] = {"ok", "failed"};
    const struct value dropped = {"skillvm_snapshots_dropped_total", "counter",
                                  "Of those kept, that gave way or that nobody asked for.",
                                  (double)s->dropped};
    const uint64_t made[] = {s->made, s->failed};

    put_values(out, &dropped, 1);
    put_labelled(out, "skillvm_snapshots_made_total",
                 "Snapshots that were to be made, by how that went.", "result", names, made, 2);
}

static void put_machines(struct buf *out, const struct pool_measure *p)
{
    static const char *const reset_names[] = {"ok", "failed"};
    const uint64_t resets[] = {p->resets, p->resets_failed};

    put_head(out, "skillvm_machines_parked", "gauge", "Machines that wait now.");
    (void)buf_printf(out,
                     "skillvm_machines_parked{kind=\"fresh\"} %u\n"
                     "skillvm_machines_parked{kind=\"used\"} %u\n",
                     p->parked_fresh, p->parked_used);
    put_labelled(out, "skillvm_machine_takes_total",
                 "Machines that were taken, by where they came from.", "kind", pool_kind_names,
                 p->takes, POOL_KINDS);
    put_labelled(out, "skillvm_machine_resets_total",
                 "Resets of machines after executions, by how they went.", "result",
                 reset_names, resets, 2);
    put_labelled(out, "skillvm_machine_ends_total", "Machines that were given up, by why.",
                 "reason", pool_end_names, p->ends, POOL_ENDS);
    put_labelled(out, "skillvm_vmm_deaths_total",
                 "Ends of the processes of machines, by how they ended. killed is the ordinary "
                 "one: by the daemon, once they were not needed.",
                 "cause", vm_death_names, p->deaths, VM_DEATHS);
}

static void put_cluster(struct buf *out, const struct metrics_gauges *g)
{
    const struct cluster_measure *c = &g->cluster;
    const struct value values[] = {
        {"skillvm_cluster_joined", "gauge", "1 while this daemon is a node of its cluster.",
         c->is_joined},
        {"skillvm_cluster_nodes", "gauge", "Nodes that it knows of, itself among them.",
         c->nodes},
        {"skillvm_cluster_revision", "gauge",
         "Up to which revision changes of tenants and keys are made here.",
         (double)c->revision},
        {"skillvm_cluster_executions_revision", "gauge",
         "Up to which revision executions of others are noted here.",
         (double)c->records_revision},
        {"skillvm_cluster_untold", "gauge",
         "Executions of this daemon whose end the cluster was not told yet.",
         (double)g->untold},
        {"skillvm_cluster_audit_untold", "gauge",
         "Rows of this daemon's audit that the cluster was not told yet.",
         (double)g->audit_untold},
        {"skillvm_cluster_draining", "gauge", "1 while this node is drained.", c->is_draining},
        {"skillvm_cluster_load_nodes", "gauge",
         "Other nodes that told lately what tenants have there.", c->load.nodes},
        {"skillvm_cluster_elsewhere_running", "gauge", "Executions that run at those.",
         (double)c->load.running},
        {"skillvm_cluster_elsewhere_queued", "gauge", "Executions that wait at those.",
         (double)c->load.waiting},
        {"skillvm_cluster_load_told_total", "counter", "Messages on what tenants have here.",
         (double)c->load.told},
        {"skillvm_cluster_load_taken_total", "counter", "Messages on what they have elsewhere.",
         (double)c->load.taken},
        {"skillvm_cluster_takes_keys", "gauge",
         "0 while it is cut off for too long to take keys.", c->takes_keys},
    };

    put_values(out, values, sizeof(values) / sizeof(values[0]));
    put_labelled(out, "skillvm_cluster_messages_refused_total",
                 "Entries of others that were not taken, by why.", "reason", node_refusal_names,
                 c->refused, NODE_REFUSALS);
}

static void put_process(struct buf *out, const struct metrics *m)
{
    const struct process_memory memory = process_memory(0);
    const struct value values[] = {
        {"process_cpu_seconds_total", "counter", "CPU time of the daemon.",
         (double)process_cpu_us() / 1e6},
        {"process_resident_memory_bytes", "gauge", "Resident memory of the daemon.",
         (double)memory.resident_bytes},
        {"process_virtual_memory_bytes", "gauge", "Address space of the daemon.",
         (double)memory.virtual_bytes},
        {"process_open_fds", "gauge", "Descriptors the daemon has.",
         (double)process_open_fds()},
        {"process_max_fds", "gauge", "Descriptors the daemon may have.",
         (double)process_max_fds()},
        {"process_start_time_seconds", "gauge", "When the daemon started.",
         (double)m->started_ns / 1e9},
    };

    put_values(out, values, sizeof(values) / sizeof(values[0]));
}

int metrics_write(struct metrics *m, const struct metrics_gauges *gauges, struct buf *out)
{
    put_head(out, "skillvm_build_info", "gauge", "The version that runs.");
    (void)buf_printf(out, "skillvm_build_info{version=\"" SKILLVM_VERSION "\"} 1\n");
    put_gauges(out, gauges);
    put_snapshots(out, &gauges->snapshot);
    put_machines(out, &gauges->machines);
    put_cluster(out, gauges);
    put_process(out, m);
    (void)pthread_mutex_lock(&m->lock);
    put_counters(out, m);
    put_sessions(out, gauges, m->session_conflicts);
    put_tenant_counters(out, m);
    put_phases(out, m);
    (void)pthread_mutex_unlock(&m->lock);
    return out->error;
}
