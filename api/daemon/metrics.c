/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/metrics.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Upper bounds of the histograms. */
static const uint64_t bounds_us[] = {
    500,    1000,    2500,    5000,    10000,    25000,    50000,    100000,    250000,
    500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000, 120000000, 600000000};
#define N_BOUNDS (sizeof(bounds_us) / sizeof(bounds_us[0]))

enum phase { QUEUE, RESTORE, CONNECT, INJECT, RUN, COLLECT, TEARDOWN, N_PHASES };
static const char *const phase_names[N_PHASES] = {"queue", "restore", "connect", "inject",
                                                  "run",   "collect", "teardown"};

enum fault { FAULT_PROTOCOL, FAULT_DEADLINE, FAULT_DIED, FAULT_GUEST, FAULT_OTHER, N_FAULTS };
static const char *const fault_names[N_FAULTS] = {"protocol", "deadline", "vmm_died", "guest",
                                                  "other"};

#define N_STATUSES (RESULT_CANCELLED + 1)

struct histogram {
    uint64_t buckets[N_BOUNDS]; /* not cumulative */
    uint64_t count;
    uint64_t sum_ns;
};

struct metrics {
    pthread_mutex_t lock; /* for all below */
    uint64_t executions[N_STATUSES];
    uint64_t faults[N_FAULTS];
    struct histogram phases[N_PHASES];
    struct histogram whole;
};

struct metrics *metrics_create(void)
{
    struct metrics *m = calloc(1, sizeof(*m));

    if (m)
        (void)pthread_mutex_init(&m->lock, NULL);
    return m;
}

void metrics_destroy(struct metrics *m)
{
    if (!m)
        return;
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

static void observe(struct histogram *h, uint64_t ns)
{
    for (size_t i = 0; i < N_BOUNDS; i++) {
        if (ns <= bounds_us[i] * 1000) {
            h->buckets[i]++;
            break;
        }
    }
    h->count++;
    h->sum_ns += ns;
}

void metrics_count_execution(struct metrics *m, const struct result *result)
{
    const uint64_t phases[N_PHASES] = {
        [QUEUE] = result->queue_ns,       [RESTORE] = result->restore_ns,
        [CONNECT] = result->connect_ns,   [INJECT] = result->inject_ns,
        [RUN] = result->run_ns,           [COLLECT] = result->collect_ns,
        [TEARDOWN] = result->teardown_ns,
    };

    (void)pthread_mutex_lock(&m->lock);
    if (result->status < N_STATUSES)
        m->executions[result->status]++;
    observe(&m->whole, result->duration_ns);
    /* A phase that did not happen is none that took no time. */
    for (int i = 0; i < N_PHASES; i++) {
        if (phases[i] > 0)
            observe(&m->phases[i], phases[i]);
    }
    (void)pthread_mutex_unlock(&m->lock);
}

void metrics_count_fault(struct metrics *m, int reason)
{
    enum fault fault = reason == -EPROTO      ? FAULT_PROTOCOL
                       : reason == -ETIMEDOUT ? FAULT_DEADLINE
                       : reason == -EPIPE     ? FAULT_DIED
                       : reason == -EREMOTEIO ? FAULT_GUEST
                                              : FAULT_OTHER;

    (void)pthread_mutex_lock(&m->lock);
    m->faults[fault]++;
    (void)pthread_mutex_unlock(&m->lock);
}

static int write_head(struct buf *out, const char *name, const char *type, const char *help)
{
    return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* label is "" or 'name="value"'. */
static int write_histogram(struct buf *out, const char *name, const char *label,
                           const struct histogram *h)
{
    const char *comma = label[0] ? "," : "";
    const char *open = label[0] ? "{" : "", *close = label[0] ? "}" : "";
    uint64_t below = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < N_BOUNDS; i++) {
        below += h->buckets[i];
        r = buf_printf(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, label, comma,
                       (double)bounds_us[i] / 1e6, (unsigned long long)below);
    }
    if (r == 0)
        r = buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma,
                       (unsigned long long)h->count);
    if (r == 0)
        r = buf_printf(out, "%s_sum%s%s%s %.9f\n%s_count%s%s%s %llu\n", name, open, label,
                       close, (double)h->sum_ns / 1e9, name, open, label, close,
                       (unsigned long long)h->count);
    return r;
}

static int write_phases(struct buf *out, const struct metrics *m)
{
    char label[32];
    int r = write_head(out, "skillvm_execution_phase_seconds", "histogram",
                       "How long the phases of executions took.");

    for (int i = 0; r == 0 && i < N_PHASES; i++) {
        (void)snprintf(label, sizeof(label), "phase=\"%s\"", phase_names[i]);
        r = write_histogram(out, "skillvm_execution_phase_seconds", label, &m->phases[i]);
    }
    if (r == 0)
        r = write_head(out, "skillvm_execution_seconds", "histogram",
                       "How long executions took from acceptance to their result.");
    return r < 0 ? r : write_histogram(out, "skillvm_execution_seconds", "", &m->whole);
}

static int write_counters(struct buf *out, const struct metrics *m)
{
    int r = write_head(out, "skillvm_executions_total", "counter",
                       "Executions that ended, by their status.");

    for (int i = 0; r == 0 && i < N_STATUSES; i++)
        r = buf_printf(out, "skillvm_executions_total{status=\"%s\"} %llu\n",
                       result_status_name((enum result_status)i),
                       (unsigned long long)m->executions[i]);
    if (r == 0)
        r = write_head(out, "skillvm_vmm_faults_total", "counter",
                       "Machines that did not do their work, by cause.");
    for (int i = 0; r == 0 && i < N_FAULTS; i++)
        r = buf_printf(out, "skillvm_vmm_faults_total{cause=\"%s\"} %llu\n", fault_names[i],
                       (unsigned long long)m->faults[i]);
    return r;
}

static int write_gauge(struct buf *out, const char *name, const char *help,
                       unsigned long long value)
{
    int r = write_head(out, name, "gauge", help);

    return r < 0 ? r : buf_printf(out, "%s %llu\n", name, value);
}

/* Resident bytes of this process; 0 when that cannot be read. */
static unsigned long long resident_bytes(void)
{
    _cleanup_fd_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char text[128];
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    char *end;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10) * (unsigned long long)sysconf(_SC_PAGESIZE);
}

int metrics_write(struct metrics *m, const struct metrics_gauges *gauges, struct buf *out)
{
    int r = write_head(out, "skillvm_build_info", "gauge", "The version that runs.");

    if (r == 0)
        r = buf_printf(out, "skillvm_build_info{version=\"" SKILLVM_VERSION "\"} 1\n");
    if (r == 0)
        r = write_gauge(out, "skillvm_executions_running", "Executions that run now.",
                        gauges->running);
    if (r == 0)
        r = write_gauge(out, "skillvm_executions_queued", "Executions that wait now.",
                        gauges->queued);
    if (r == 0)
        r = write_gauge(out, "skillvm_snapshot_ready", "1 once the snapshot is loaded.",
                        gauges->snapshot_ready);
    if (r == 0)
        r = write_gauge(out, "process_resident_memory_bytes", "Memory of the daemon.",
                        resident_bytes());
    (void)pthread_mutex_lock(&m->lock);
    if (r == 0)
        r = write_counters(out, m);
    if (r == 0)
        r = write_phases(out, m);
    (void)pthread_mutex_unlock(&m->lock);
    return r;
}
