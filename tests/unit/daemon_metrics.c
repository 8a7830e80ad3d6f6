/* SPDX-License-Identifier: Apache-2.0 */
/* The text that Prometheus reads, held against a strict reader, and that counts are counted. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/metrics.h"
#include "base/process_stats.h"
#include "tests/unit/prometheus_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000ull

static char *write_text(struct metrics *m, const struct metrics_gauges *gauges)
{
    struct buf out = buf_init(METRICS_BYTES_MAX);
    char why[256] = "";
    char *text;

    assert_int_equal(metrics_write(m, gauges, &out), 0);
    text = strdup(buf_cstr(&out));
    buf_finish(&out);
    assert_non_null(text);
    if (!prometheus_check(text, why, sizeof(why)))
        fail_msg("%s in:\n%s", why, text);
    return text;
}

static void expect(const char *text, const char *series, double value)
{
    double found = -1;

    if (!prometheus_value(text, series, &found) || found < value - 1e-9 || found > value + 1e-9)
        fail_msg("%s is %g, expected %g in:\n%s", series, found, value, text);
}

static void nothing_counted_is_all_zero(void **state)
{
    const struct metrics_gauges none = {0};
    struct metrics *m = metrics_create();
    char *text = write_text(m, &none);

    (void)state;
    expect(text, "skillvm_executions_total{status=\"success\"}", 0);
    expect(text, "skillvm_executions_total{status=\"cancelled\"}", 0);
    expect(text, "skillvm_vmm_deaths_total{cause=\"sigsys\"}", 0);
    expect(text, "skillvm_auth_failures_total{reason=\"no_key\"}", 0);
    expect(text, "skillvm_execution_seconds_count", 0);
    /* Who is not there has no series, not even of zeros. */
    assert_null(strstr(text, "tenant=\""));
    free(text);
    metrics_destroy(m);
    metrics_destroy(NULL);
}

static void executions_are_counted(void **state)
{
    const struct metrics_gauges none = {0};
    const struct result good = {.status = RESULT_SUCCESS,
                                .host_cpu_us = 1500000,
                                .duration_ns = 3 * MS,
                                .phase_ns = {[RESULT_QUEUE] = 1 * MS, [RESULT_RUN] = 2 * MS}};
    const struct result late = {.status = RESULT_TIMEOUT, .duration_ns = 700000 * MS};
    struct metrics *m = metrics_create();
    char *text;

    (void)state;
    metrics_count_execution(m, "default", &good);
    metrics_count_execution(m, "ten_1", &good);
    metrics_count_execution(m, "ten_1", &late);
    text = write_text(m, &none);
    expect(text, "skillvm_executions_total{status=\"success\"}", 2);
    expect(text, "skillvm_executions_total{status=\"timeout\"}", 1);
    expect(text, "skillvm_executions_total{status=\"failed\"}", 0);
    expect(text, "skillvm_execution_cpu_seconds_total", 3);
    expect(text, "skillvm_tenant_executions_total{tenant=\"default\",status=\"success\"}", 1);
    expect(text, "skillvm_tenant_executions_total{tenant=\"ten_1\",status=\"timeout\"}", 1);
    expect(text, "skillvm_tenant_cpu_seconds_total{tenant=\"ten_1\"}", 1.5);
    expect(text, "skillvm_execution_seconds_count", 3);
    expect(text, "skillvm_execution_seconds_sum", 700.006);
    expect(text, "skillvm_execution_seconds_bucket{le=\"0.0025\"}", 0);
    expect(text, "skillvm_execution_seconds_bucket{le=\"0.005\"}", 2);
    expect(text, "skillvm_execution_seconds_bucket{le=\"600\"}", 2);
    expect(text, "skillvm_execution_seconds_bucket{le=\"+Inf\"}", 3);
    /* A phase that did not happen is not counted as one of no length. */
    expect(text, "skillvm_execution_phase_seconds_count{phase=\"run\"}", 2);
    expect(text, "skillvm_execution_phase_seconds_count{phase=\"take\"}", 0);
    free(text);
    metrics_destroy(m);
}

static void faults_deaths_and_refusals_are_counted(void **state)
{
    static const int reasons[] = {-EPROTO, -ETIMEDOUT, -EPIPE, -EREMOTEIO, -ENOMEM};
    struct metrics_gauges gauges = {0};
    struct metrics *m = metrics_create();
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        metrics_count_fault(m, reasons[i]);
    for (int i = 0; i < VM_DEATHS; i++)
        gauges.machines.deaths[i] = 1;
    metrics_count_auth_failure(m, METRICS_AUTH_NO_KEY);
    metrics_count_auth_failure(m, METRICS_AUTH_BAD_KEY);
    metrics_count_auth_failure(m, METRICS_AUTH_BAD_KEY);
    metrics_count_session_conflict(m);
    gauges.sessions = 3;
    gauges.sessions_bytes = 4096;
    gauges.sessions_expired = 2;
    metrics_count_refusal(m, "ten_1", METRICS_REFUSED_RATE);
    metrics_count_refusal(m, "ten_1", METRICS_REFUSED_QUEUE);
    text = write_text(m, &gauges);
    expect(text, "skillvm_vmm_faults_total{cause=\"protocol\"}", 1);
    expect(text, "skillvm_vmm_faults_total{cause=\"deadline\"}", 1);
    expect(text, "skillvm_vmm_faults_total{cause=\"vmm_died\"}", 1);
    expect(text, "skillvm_vmm_faults_total{cause=\"guest\"}", 1);
    expect(text, "skillvm_vmm_faults_total{cause=\"other\"}", 1);
    for (int i = 0; i < VM_DEATHS; i++) {
        char series[128];

        snprintf(series, sizeof(series), "skillvm_vmm_deaths_total{cause=\"%s\"}",
                 vm_death_names[i]);
        expect(text, series, 1);
    }
    expect(text, "skillvm_sessions", 3);
    expect(text, "skillvm_sessions_bytes", 4096);
    expect(text, "skillvm_sessions_expired_total", 2);
    expect(text, "skillvm_session_conflicts_total", 1);
    expect(text, "skillvm_auth_failures_total{reason=\"no_key\"}", 1);
    expect(text, "skillvm_auth_failures_total{reason=\"bad_key\"}", 2);
    expect(text, "skillvm_auth_failures_total{reason=\"no_operator\"}", 0);
    expect(text, "skillvm_tenant_refusals_total{tenant=\"ten_1\",reason=\"rate_limited\"}", 1);
    expect(text, "skillvm_tenant_refusals_total{tenant=\"ten_1\",reason=\"overloaded\"}", 1);
    expect(text, "skillvm_tenant_refusals_total{tenant=\"ten_1\",reason=\"quota_exceeded\"}",
           0);
    free(text);
    metrics_destroy(m);
}

/* Ten thousand tenants make no more series than a hundred, and none is counted twice. */
static void the_series_of_tenants_are_bounded(void **state)
{
    const struct result good = {.status = RESULT_SUCCESS, .duration_ns = 1};
    struct metrics_gauges *gauges = calloc(1, sizeof(*gauges));
    struct metrics *m = metrics_create();
    size_t before, after;
    double sum = 0, value;
    char *text;

    (void)state;
    assert_non_null(gauges);
    for (size_t i = 0; i < METRICS_TENANTS; i++)
        snprintf(gauges->tenants[i].tenant, TENANT_ID_SIZE, "ten_%032zx", i);
    gauges->n_tenants = METRICS_TENANTS;
    for (unsigned i = 0; i < 10000; i++) {
        char id[TENANT_ID_SIZE];

        snprintf(id, sizeof(id), "ten_%032x", i);
        metrics_count_execution(m, id, &good);
        metrics_count_execution(m, id, &good);
        if (i == METRICS_TENANTS) {
            text = write_text(m, gauges);
            before = prometheus_count(text);
            free(text);
        }
    }
    text = write_text(m, gauges);
    after = prometheus_count(text);
    assert_int_equal(after, before);
    for (unsigned i = 0; i < METRICS_TENANTS; i++) {
        char series[128];

        snprintf(series, sizeof(series),
                 "skillvm_tenant_executions_total{tenant=\"ten_%032x\",status=\"success\"}", i);
        assert_true(prometheus_value(text, series, &value));
        sum += value;
    }
    expect(text, "skillvm_tenant_executions_total{tenant=\"other\",status=\"success\"}",
           20000 - sum);
    expect(text, "skillvm_executions_total{status=\"success\"}", 20000);
    free(text);
    free(gauges);
    metrics_destroy(m);
}

static void gauges_are_written(void **state)
{
    struct metrics_gauges gauges = {
        .slots = 4,
        .running = 3,
        .queued = 5,
        .oldest_wait_ns = 2500 * MS,
        .snapshot = {.is_ready = true,
                     .age_ns = 90 * 1000 * MS,
                     .uses = 7,
                     .kept = 3,
                     .kept_bytes = 5000,
                     .made = 2,
                     .failed = 1,
                     .dropped = 4},
        .machines = {.machines = 3, .resident_bytes = 1ull << 40, .private_bytes = 12345678},
        .tenants = {{"default", 5, 1}, {"ten_1", 0, 2}},
        .n_tenants = 2};
    struct metrics *m = metrics_create();
    char *text = write_text(m, &gauges);
    double value;

    (void)state;
    expect(text, "skillvm_execution_slots", 4);
    expect(text, "skillvm_executions_running", 3);
    expect(text, "skillvm_executions_queued", 5);
    expect(text, "skillvm_queue_oldest_wait_seconds", 2.5);
    expect(text, "skillvm_snapshot_ready", 1);
    expect(text, "skillvm_snapshot_age_seconds", 90);
    expect(text, "skillvm_snapshot_uses", 7);
    expect(text, "skillvm_snapshots_kept", 3);
    expect(text, "skillvm_snapshots_kept_bytes", 5000);
    expect(text, "skillvm_snapshots_dropped_total", 4);
    expect(text, "skillvm_snapshots_made_total{result=\"ok\"}", 2);
    expect(text, "skillvm_snapshots_made_total{result=\"failed\"}", 1);
    expect(text, "skillvm_machines", 3);
    expect(text, "skillvm_machines_resident_memory_bytes", 1099511627776.0);
    expect(text, "skillvm_machines_private_memory_bytes", 12345678);
    expect(text, "skillvm_tenant_executions_queued{tenant=\"default\"}", 5);
    expect(text, "skillvm_tenant_executions_running{tenant=\"ten_1\"}", 2);
    assert_true(prometheus_value(text, "process_resident_memory_bytes", &value));
    assert_true(value > 100000);
    assert_true(prometheus_value(text, "process_open_fds", &value) && value >= 3);
    assert_true(prometheus_value(text, "process_start_time_seconds", &value) && value > 1.7e9);
    free(text);
    metrics_destroy(m);
}

static void a_full_buffer_is_an_error(void **state)
{
    const struct metrics_gauges none = {0};
    struct metrics *m = metrics_create();

    (void)state;
    for (size_t size = 1; size < 8000; size += 97) {
        struct buf out = buf_init(size);

        assert_int_equal(metrics_write(m, &none, &out), -E2BIG);
        buf_finish(&out);
    }
    metrics_destroy(m);
}

static void processes_are_measured(void **state)
{
    struct process_memory self = process_memory(0), same = process_memory(getpid());
    struct process_memory none = process_memory(0x3fffffff);
    uint64_t before = process_open_fds();
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_true(self.resident_bytes > 0 && self.resident_bytes < self.virtual_bytes);
    assert_true(self.private_bytes > 0 && self.private_bytes < self.resident_bytes);
    assert_true(same.virtual_bytes > 0);
    assert_int_equal(none.resident_bytes, 0);
    assert_true(fd >= 0);
    assert_int_equal(process_open_fds(), before + 1);
    close(fd);
    assert_true(process_max_fds() > before);
}

static char *read_page(void)
{
    const char *source = getenv("SKILLVM_TEST_SOURCE");
    char *page = calloc(1, 65536);
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/docs/metrics.md", source ? source : ".");
    f = fopen(path, "re");
    assert_non_null(page);
    assert_non_null(f);
    assert_true(fread(page, 1, 65535, f) > 0);
    (void)fclose(f);
    return page;
}

/* Every family stands in docs/metrics.md, and nothing that is not there. */
static void the_page_has_them_all(void **state)
{
    const struct metrics_gauges none = {0};
    struct metrics *m = metrics_create();
    char *text = write_text(m, &none), *page = read_page();
    char name[128], part[160];

    (void)state;
    for (const char *at = text; (at = strstr(at, "# HELP ")); at++) {
        assert_int_equal(sscanf(at, "# HELP %127s", name), 1);
        snprintf(part, sizeof(part), "`%s`", name);
        if (!strstr(page, part))
            fail_msg("docs/metrics.md does not have %s", name);
    }
    for (const char *at = page; (at = strstr(at, "\n| `")); at++) {
        assert_int_equal(sscanf(at, "\n| `%127[a-z_]", name), 1);
        snprintf(part, sizeof(part), "# TYPE %s ", name);
        if (!strstr(text, part))
            fail_msg("docs/metrics.md has %s, which is none", name);
    }
    free(text);
    free(page);
    metrics_destroy(m);
}

/* The reader itself: what it must not let pass. */
static void the_reader_is_strict(void **state)
{
    static const char *const wrong[] = {
        "x 1\n",
        "# HELP x a\n# TYPE x gauge\nx 1",
        "# HELP x a\n# TYPE x gauge\nx\n",
        "# HELP x a\n# TYPE x gauge\nx one\n",
        "# HELP x a\n# TYPE x gauge\nx 1\nx 2\n",
        "# HELP x a\n# TYPE x gauge\ny 1\n",
        "# HELP x a\n# TYPE x counter\nx 1\n",
        "# HELP x_total a\n# TYPE x_total counter\nx_total -1\n",
        "# HELP x_total a\n# TYPE x_total gauge\nx_total 1\n",
        "# HELP x a\n# TYPE x gauge\nx{a=\"1} 1\n",
        "# HELP x a\n# TYPE x gauge\nx{a=1} 1\n",
        "# HELP x a\n# TYPE x gauge\nx{a=\"1\"b=\"2\"} 1\n",
        "# HELP x a\n# TYPE x gauge\nx{a=\"\\q\"} 1\n",
        "# HELP x a\n# TYPE x gauge\nx 1\n# HELP y a\n# TYPE y gauge\n# HELP x a\n",
        "# HELP x a\n# TYPE x histogram\nx_bucket{le=\"1\"} 1\nx_sum 1\nx_count 1\n",
        ("# HELP x a\n# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_bucket{le=\"+Inf\"} 1\n"
         "x_sum 1\nx_count 1\n"),
        "# HELP x a\n# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\nx_sum 1\nx_count 2\n",
        "# HELP x a\n# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\nx_count 1\n",
    };
    char why[256];
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (prometheus_check(wrong[i], why, sizeof(why)))
            fail_msg("let pass:\n%s", wrong[i]);
    }
    assert_true(prometheus_check("# HELP x a b\n# TYPE x histogram\nx_bucket{le=\"1\"} 1\n"
                                 "x_bucket{le=\"+Inf\"} 1\nx_sum 1\nx_count 1\n"
                                 "# HELP y a\n# TYPE y gauge\ny{a=\"\\\\\\\"\\n\"} -1.5e3\n",
                                 why, sizeof(why)));
    assert_true(prometheus_value("# HELP y a\n# TYPE y gauge\ny{a=\"1\",b=\"2\"} -1.5e3\n",
                                 "y{a=\"1\",b=\"2\"}", &value));
    assert_true(value < -1499 && value > -1501);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_counted_is_all_zero),
        cmocka_unit_test(executions_are_counted),
        cmocka_unit_test(faults_deaths_and_refusals_are_counted),
        cmocka_unit_test(the_series_of_tenants_are_bounded),
        cmocka_unit_test(gauges_are_written),
        cmocka_unit_test(a_full_buffer_is_an_error),
        cmocka_unit_test(processes_are_measured),
        cmocka_unit_test(the_page_has_them_all),
        cmocka_unit_test(the_reader_is_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
