/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/metrics.h"

#include "api/daemon/engine/metrics_internal.h"
#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint64_t metrics_bounds_us[METRICS_BOUNDS] = {
    500,    1000,    2500,    5000,    10000,    25000,    50000,    100000,    250000,
    500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000, 120000000, 600000000};

struct metrics *metrics_create(void)
{
    struct metrics *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    (void)pthread_mutex_init(&m->lock, NULL);
    m->started_ns = clock_realtime_ns();
    (void)snprintf(m->other.id, sizeof(m->other.id), "other");
    return m;
}

void metrics_destroy(struct metrics *m)
{
    if (!m)
        return;
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

static void observe(struct metrics_histogram *h, uint64_t ns)
{
    for (size_t i = 0; i < METRICS_BOUNDS; i++) {
        if (ns <= metrics_bounds_us[i] * 1000) {
            h->buckets[i]++;
            break;
        }
    }
    h->count++;
    h->sum_ns += ns;
}

static struct metrics_tenant *find_tenant(struct metrics *m, const char *tenant)
{
    for (size_t i = 0; i < m->n_tenants; i++) {
        if (strcmp(m->tenants[i].id, tenant) == 0)
            return &m->tenants[i];
    }
    if (m->n_tenants == METRICS_TENANTS)
        return &m->other;
    (void)snprintf(m->tenants[m->n_tenants].id, TENANT_ID_SIZE, "%s", tenant);
    return &m->tenants[m->n_tenants++];
}

void metrics_count_execution(struct metrics *m, const char *tenant, const struct result *result)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&m->lock);
    struct metrics_tenant *t = find_tenant(m, tenant);

    if (result->status < METRICS_STATUSES) {
        m->executions[result->status]++;
        t->executions[result->status]++;
    }
    m->cpu_us += result->host_cpu_us;
    t->cpu_us += result->host_cpu_us;
    observe(&m->whole, result->duration_ns);
    /* A phase that did not happen is none that took no time. */
    for (int i = 0; i < RESULT_PHASES; i++) {
        if (result->phase_ns[i] > 0)
            observe(&m->phases[i], result->phase_ns[i]);
    }
}

static void count(struct metrics *m, uint64_t *counter)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&m->lock);

    (*counter)++;
}

void metrics_count_fault(struct metrics *m, int reason)
{
    enum metrics_fault fault = reason == -EPROTO      ? METRICS_FAULT_PROTOCOL
                               : reason == -ETIMEDOUT ? METRICS_FAULT_DEADLINE
                               : reason == -EPIPE     ? METRICS_FAULT_DIED
                               : reason == -EREMOTEIO ? METRICS_FAULT_GUEST
                                                      : METRICS_FAULT_OTHER;

    count(m, &m->faults[fault]);
}

void metrics_count_auth_failure(struct metrics *m, enum metrics_auth_failure why)
{
    count(m, &m->auth_failures[why]);
}

void metrics_count_passing(struct metrics *m, enum metrics_passing what)
{
    count(m, &m->passings[what]);
}

void metrics_count_session_conflict(struct metrics *m)
{
    count(m, &m->session_conflicts);
}

void metrics_count_refusal(struct metrics *m, const char *tenant, enum metrics_refusal why)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&m->lock);

    find_tenant(m, tenant)->refusals[why]++;
}
