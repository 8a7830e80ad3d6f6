/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon counts since its start, and how Prometheus reads it. Counting never fails and
 * never waits for anything but its own lock; nothing of a stranger's becomes a label. Of
 * tenants at most METRICS_TENANTS have counters of their own, those that came first; the others
 * are counted together as "other".
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_METRICS_H
#define SKILLVM_API_DAEMON_ENGINE_METRICS_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/engine/result.h"
#include "api/daemon/machine/pool.h"
#include "api/daemon/terms/tenant.h"
#include "base/buf.h"

#include <stdint.h>

#define METRICS_TENANTS 100u
/* More than metrics_write ever writes. */
#define METRICS_BYTES_MAX (512u * 1024u)

struct metrics;

/* Why a request was turned away for who sent it. */
enum metrics_auth_failure {
    METRICS_AUTH_NO_KEY,
    METRICS_AUTH_BAD_KEY,     /* unknown, revoked or malformed */
    METRICS_AUTH_NO_OPERATOR, /* good, and not good enough */
};
#define METRICS_AUTH_FAILURES (METRICS_AUTH_NO_OPERATOR + 1)

/* Why an execution was not accepted. */
enum metrics_refusal {
    METRICS_REFUSED_RATE,
    METRICS_REFUSED_QUOTA,
    METRICS_REFUSED_QUEUE,
};
#define METRICS_REFUSALS (METRICS_REFUSED_QUEUE + 1)

/* How an execution of one node came to another. */
enum metrics_passing {
    METRICS_SENT,        /* another one has it now */
    METRICS_TAKEN,       /* of one that gave it */
    METRICS_TAKEN_OVER,  /* of one that is lost, where it waited */
    METRICS_BEGUN_AGAIN, /* of one that is lost, where it ran */
};
#define METRICS_PASSINGS (METRICS_BEGUN_AGAIN + 1)

/* A tenant with something in the engine. */
struct metrics_tenant_gauge {
    char tenant[TENANT_ID_SIZE];
    unsigned queued;
    unsigned running;
};

/* What is so now, for metrics_write. */
struct metrics_gauges {
    unsigned slots; /* how many may run */
    unsigned running;
    unsigned queued;
    uint64_t oldest_wait_ns; /* of those queued */
    struct snapshots_measure snapshot;
    struct pool_measure machines;
    struct cluster_measure cluster; /* all zero without one */
    uint64_t untold;                /* executions that the cluster does not know the end of */
    uint64_t audit_untold;          /* rows of the audit that it was not told */
    struct metrics_tenant_gauge tenants[METRICS_TENANTS];
    size_t n_tenants;
    uint64_t sessions; /* that are kept */
    uint64_t sessions_bytes;
    uint64_t sessions_expired; /* since the start */
};

/* NULL without memory. */
struct metrics *metrics_create(void);
/* NULL is fine. */
void metrics_destroy(struct metrics *m);

/* Counts an execution that ended, with its phases and its CPU time. */
void metrics_count_execution(struct metrics *m, const char *tenant,
                             const struct result *result);
/* Counts a machine that did not do its work; reason is the negative errno of its session. */
void metrics_count_fault(struct metrics *m, int reason);
void metrics_count_auth_failure(struct metrics *m, enum metrics_auth_failure why);
void metrics_count_refusal(struct metrics *m, const char *tenant, enum metrics_refusal why);

void metrics_count_passing(struct metrics *m, enum metrics_passing what);
/* Counts a request that something else had the session of. */
void metrics_count_session_conflict(struct metrics *m);

/* Appends everything in the Prometheus text format 0.0.4. 0, -E2BIG or -ENOMEM. */
int metrics_write(struct metrics *m, const struct metrics_gauges *gauges, struct buf *out);

#endif
