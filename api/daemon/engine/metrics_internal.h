/* SPDX-License-Identifier: Apache-2.0 */
/* What metrics.c counts and metrics_text.c writes. */
#ifndef SKILLVM_API_DAEMON_ENGINE_METRICS_INTERNAL_H
#define SKILLVM_API_DAEMON_ENGINE_METRICS_INTERNAL_H

#include "api/daemon/engine/metrics.h"

#include <pthread.h>

#define METRICS_BOUNDS   18u
#define METRICS_STATUSES (RESULT_CANCELLED + 1)

enum metrics_fault {
    METRICS_FAULT_PROTOCOL,
    METRICS_FAULT_DEADLINE,
    METRICS_FAULT_DIED,
    METRICS_FAULT_GUEST,
    METRICS_FAULT_OTHER,
};
#define METRICS_FAULTS (METRICS_FAULT_OTHER + 1)

struct metrics_histogram {
    uint64_t buckets[METRICS_BOUNDS]; /* not cumulative */
    uint64_t count;
    uint64_t sum_ns;
};

struct metrics_tenant {
    char id[TENANT_ID_SIZE];
    uint64_t executions[METRICS_STATUSES];
    uint64_t refusals[METRICS_REFUSALS];
    uint64_t cpu_us;
};

struct metrics {
    uint64_t started_ns; /* realtime */

    pthread_mutex_t lock; /* for all below */
    uint64_t executions[METRICS_STATUSES];
    uint64_t cpu_us;
    uint64_t faults[METRICS_FAULTS];
    uint64_t auth_failures[METRICS_AUTH_FAILURES];
    uint64_t session_conflicts;
    uint64_t passings[METRICS_PASSINGS];
    struct metrics_histogram phases[RESULT_PHASES];
    struct metrics_histogram whole;
    struct metrics_tenant tenants[METRICS_TENANTS];
    size_t n_tenants;
    struct metrics_tenant other; /* all that came later */
};

/* Upper bounds of the histograms. */
extern const uint64_t metrics_bounds_us[METRICS_BOUNDS];

#endif
