/* SPDX-License-Identifier: Apache-2.0 */
/* Shares and limits of tenants, through a whole daemon: each refusal, and how it ends. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/tenants_world.h"

#include "base/buf.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define expect harness_expect

#define TRIES  3u /* to take a measure */
#define GREEDY "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"greedy\"}}"

/* How many of the first that succeeded, so many of them, were a tenant's, and for how many
   milliseconds they had a slot. */
static unsigned count_first(const struct world *w, const struct tenant *t, unsigned n,
                            double *ret_ms)
{
    char path[160], sql[400];
    sqlite3_stmt *s = NULL;
    sqlite3 *db = NULL;
    unsigned ret;

    snprintf(path, sizeof(path), "%s/skillvm.db", w->h.data);
    snprintf(sql, sizeof(sql),
             "SELECT count(*), total(json_extract(result, '$.duration_ms')"
             " - json_extract(result, '$.phases_ms.queue'))"
             " FROM (SELECT * FROM executions WHERE status = 'success' "
             "ORDER BY finished_ns LIMIT %u) WHERE tenant_id = '%s'",
             n, t->id);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    ret = (unsigned)sqlite3_column_int(s, 0);
    *ret_ms = sqlite3_column_double(s, 1);
    assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return ret;
}

/* For how many milliseconds each of two tenants had a slot, of whom one weighs three times what
   the other does. */
static void measure_shares(double *ret_a, double *ret_b)
{
    const struct tenant other = {.headers = ""};
    struct world w;
    char id[ID_SIZE], first[2][ID_SIZE];

    begin(&w, "2", "0");
    set_limits(&w, &w.a, "\"weight\":10");
    set_limits(&w, &w.b, "\"weight\":30");
    /* Until all are there, so that there is a choice, somebody else has the machines. */
    assert_int_equal(harness_push(&w.h, "demo", "1", "print(1)"), 201);
    for (size_t i = 0; i < 2; i++) {
        submit(&w, &other, ASYNC("ticks", ""), first[i]);
        wait_status(&w, &other, first[i], "running");
    }
    for (int i = 0; i < 60; i++) {
        submit(&w, &w.a, ASYNC("sleep", "100"), id);
        submit(&w, &w.b, ASYNC("sleep", "100"), id);
    }
    for (size_t i = 0; i < 2; i++)
        expect(cancel(&w, &other, first[i]), 202, "cancelling");
    wait_metric(&w, "skillvm_execution_seconds_count", 122);
    assert_int_equal(count_first(&w, &w.a, 60, ret_a) + count_first(&w, &w.b, 60, ret_b), 60);
    end(&w);
}

/* It is time that is shared: a machine of one may be slower than one of the other, and on a
   busy machine much slower once. */
static void slots_are_shared_by_weight(void **state)
{
    unsigned tries = 0;
    double a, b;

    (void)state;
    do {
        assert_true(tries++ < TRIES);
        measure_shares(&a, &b);
        print_message("%.0f ms and %.0f\n", a, b);
    } while (b <= 2 * a || b >= 8 * a);
}

/* Many executions of one tenant do not keep another from its turn. */
static void a_flood_holds_up_nobody_else(void **state)
{
    struct world w;
    char first[ID_SIZE], id[ID_SIZE];

    (void)state;
    begin(&w, "1", "0");
    /* Who has the only machine keeps all others where they are, for as long as it takes to
     * look. */
    submit(&w, &w.a, ASYNC("ticks", ""), first);
    wait_status(&w, &w.a, first, "running");
    for (int i = 0; i < 60; i++)
        submit(&w, &w.a, ASYNC("sleep", "1"), id);
    submit(&w, &w.b, ASYNC("ticks", ""), id);
    expect(cancel(&w, &w.a, first), 202, "cancelling");
    wait_status(&w, &w.b, id, "running");
    assert_true(ended(&w, &w.a) <= 1);
    assert_true(metric_of(&w, &w.a, "skillvm_tenant_executions_queued", "") >= 59);
    assert_true(metric(&w, "skillvm_queue_oldest_wait_seconds") > 0);
    end(&w);
}

static void max_running_caps_one_tenant_only(void **state)
{
    struct world w;
    char id[ID_SIZE], ids[4][ID_SIZE];

    (void)state;
    begin(&w, "3", "0");
    set_limits(&w, &w.a, "\"max_running\":1");
    for (int i = 0; i < 4; i++)
        submit(&w, &w.a, ASYNC("ticks", ""), ids[i]);
    wait_status(&w, &w.a, ids[0], "running");
    submit(&w, &w.b, ASYNC("ticks", ""), id);
    wait_status(&w, &w.b, id, "running");
    assert_true(metric_of(&w, &w.a, "skillvm_tenant_executions_running", "") == 1);
    assert_true(metric_of(&w, &w.a, "skillvm_tenant_executions_queued", "") == 3);
    assert_true(metric(&w, "skillvm_executions_running") == 2);
    assert_true(metric(&w, "skillvm_machines") == 2);
    assert_true(metric(&w, "skillvm_machines_private_memory_bytes") > 0);
    /* The next one of it once the first has ended. */
    expect(cancel(&w, &w.a, ids[0]), 202, "cancelling");
    wait_status(&w, &w.a, ids[1], "running");
    assert_true(metric_of(&w, &w.a, "skillvm_tenant_executions_running", "") == 1);
    /* A higher cap lets one that waits run at once. */
    set_limits(&w, &w.a, "\"max_running\":2");
    wait_status(&w, &w.a, ids[2], "running");
    assert_true(metric_of(&w, &w.a, "skillvm_tenant_executions_queued", "") == 1);
    end(&w);
}

static void max_queued_is_refused_until_there_is_room(void **state)
{
    struct world w;
    char running[ID_SIZE], first[ID_SIZE], id[ID_SIZE];

    (void)state;
    begin(&w, "1", "0");
    set_limits(&w, &w.a, "\"max_queued\":2");
    submit(&w, &w.a, ASYNC("ticks", ""), running);
    wait_status(&w, &w.a, running, "running");
    submit(&w, &w.a, ASYNC("ticks", ""), first);
    submit(&w, &w.a, ASYNC("ticks", ""), id);
    assert_true(expect_refused(run_as(&w, &w.a, ASYNC("ticks", "")), "overloaded",
                               "max_queued: 2 of the tenant's executions") <= 60);
    submit(&w, &w.b, ASYNC("ticks", ""), id);
    expect(cancel(&w, &w.a, first), 202, "\"status\":\"cancelled\"");
    submit(&w, &w.a, ASYNC("ticks", ""), id);
    expect_refused(run_as(&w, &w.a, ASYNC("ticks", "")), "overloaded", "max_queued");
    set_limits(&w, &w.a, "\"max_queued\":3");
    submit(&w, &w.a, ASYNC("ticks", ""), id);
    assert_true(
        metric_of(&w, &w.a, "skillvm_tenant_refusals_total", ",reason=\"overloaded\"") == 2);
    end(&w);
}

/*
 * Begins executions of a's until one is refused. Nobody waits for them: on a slow machine as
 * many come back in that time as are used up.
 */
static struct answer submit_until_refused(const struct world *w)
{
    struct answer a = run_as(w, &w->a, ASYNC("sleep", "0"));

    for (int i = 0; a.status == 202; i++) {
        assert_true(i < 60);
        answer_finish(&a);
        a = run_as(w, &w->a, ASYNC("sleep", "0"));
    }
    return a;
}

static void a_rate_recovers_when_it_says(void **state)
{
    static const char keyed[] = "{\"skill\":\"demo\",\"idempotency_key\":\"k\"}";
    struct world w;
    unsigned seconds;

    (void)state;
    begin(&w, "2", "0");
    set_limits(&w, &w.a, "\"rate_per_minute\":30");
    expect(run_as(&w, &w.a, keyed), 200, "success");
    seconds = expect_refused(submit_until_refused(&w), "rate_limited",
                             "rate_per_minute: the tenant may begin 30");
    assert_true(seconds <= 2);
    /* A request that repeats one costs nothing, and another tenant has its own. */
    expect(run_as(&w, &w.a, keyed), 200, "success");
    expect(run_as(&w, &w.b, SLEEP("0")), 200, "success");
    sleep(seconds);
    expect(run_as(&w, &w.a, SLEEP("0")), 200, "success");
    expect_refused(submit_until_refused(&w), "rate_limited", "the next in");
    set_limits(&w, &w.a, "\"rate_per_minute\":0");
    expect(run_as(&w, &w.a, SLEEP("0")), 200, "success");
    end(&w);
}

/* Makes today's usage yesterday's, as if midnight had passed. */
static void pass_midnight(const struct world *w)
{
    char path[160];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/skillvm.db", w->h.data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE usage SET day = day - 1", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void cpu_time_is_what_the_host_measured(void **state)
{
    struct world w;
    char path[128];
    struct answer a;
    double host_ms, today_ms;

    (void)state;
    begin(&w, "1", "0");
    /* The guest burns 200 ms and says 13. */
    a = run_as(&w, &w.a,
               "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"burn\",\"FAKE_DATA\":\"200\"}}");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"usage\":{\"cpu_ms\":13.000,"));
    host_ms = answer_number(&a, "host_cpu_ms");
    assert_true(host_ms >= 200 && host_ms < 10000);
    answer_finish(&a);
    /* One that claims more than there was is cut to it. */
    a = run_as(&w, &w.b, SLEEP("0"));
    assert_true(answer_number(&a, "cpu_ms") <= answer_number(&a, "host_cpu_ms"));
    answer_finish(&a);
    snprintf(path, sizeof(path), "/v1/admin/tenants/%s", w.a.id);
    a = admin(&w.h, "GET", path, "");
    today_ms = answer_number(&a, "cpu_ms_today");
    assert_true(today_ms >= host_ms && today_ms < host_ms + 2);
    answer_finish(&a);
    assert_true(metric_of(&w, &w.a, "skillvm_tenant_cpu_seconds_total", "") >= 0.2);
    end(&w);
}

static void a_day_of_cpu_time_is_refused_until_midnight(void **state)
{
    struct world w;
    char burning[ID_SIZE], waiting[ID_SIZE];
    unsigned seconds;
    time_t before, after;

    (void)state;
    begin(&w, "1", "0");
    set_limits(&w, &w.a, "\"cpu_ms_per_day\":150");
    submit(&w, &w.a, ASYNC("burn", "200"), burning);
    submit(&w, &w.a, ASYNC("sleep", "0"), waiting);
    wait_status(&w, &w.a, burning, "success");
    /* What waited was accepted, so it has a result, and that names the limit. */
    wait_status(&w, &w.a, waiting, "failed");
    expect(show(&w, &w.a, waiting), 200, "\"error\":\"cpu_ms_per_day: ");
    before = time(NULL);
    seconds = expect_refused(run_as(&w, &w.a, SLEEP("0")), "quota_exceeded",
                             "of the tenant's 150; the day ends at 00:00 UTC");
    after = time(NULL);
    assert_in_range(seconds, 86400 - after % 86400 - 1, 86400 - before % 86400 + 1);
    expect(run_as(&w, &w.b, SLEEP("0")), 200, "success");
    pass_midnight(&w);
    expect(run_as(&w, &w.a, SLEEP("0")), 200, "success");
    end(&w);
}

static void ceilings_cut_what_is_asked_for(void **state)
{
    struct world w;
    struct answer a;

    (void)state;
    begin(&w, "2", "0");
    set_limits(&w, &w.a, "\"max_timeout_ms\":500,\"max_memory_bytes\":67108864");
    a = run_as(&w, &w.a,
               "{\"skill\":\"demo\",\"timeout\":60,\"limits\":{\"memory\":\"512Mi\"}}");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"warnings\":[\"the timeout was cut to 0.5 s\","
                               "\"the memory limit was cut to 64 MiB\"]"));
    assert_non_null(strstr(a.body, ":500,"));
    assert_non_null(strstr(a.body, ":67108864,"));
    answer_finish(&a);
    /* Also what nobody asked for. */
    expect(run_as(&w, &w.a, "{\"skill\":\"demo\"}"), 200, "the timeout was cut to 0.5 s");
    a = run_as(&w, &w.b, "{\"skill\":\"demo\"}");
    assert_true(answer_has(&a, "\"warnings\":[]"));
    expect(a, 200, "\"status\":\"success\"");
    end(&w);
}

/* The same key is another one in the hands of another tenant. */
static void idempotency_keys_are_the_tenants_own(void **state)
{
    static const char keyed[] = "{\"skill\":\"demo\",\"idempotency_key\":\"k\",\"async\":true}";
    static const char other[] =
        "{\"skill\":\"demo\",\"idempotency_key\":\"k\",\"async\":true,\"args\":[\"x\"]}";
    struct world w;
    char a[ID_SIZE], b[ID_SIZE], again[ID_SIZE];

    (void)state;
    begin(&w, "2", "0");
    submit(&w, &w.a, keyed, a);
    submit(&w, &w.b, keyed, b);
    assert_string_not_equal(a, b);
    submit(&w, &w.a, keyed, again);
    assert_string_equal(a, again);
    submit(&w, &w.b, keyed, again);
    assert_string_equal(b, again);
    expect(run_as(&w, &w.b, other), 409, b);
    wait_status(&w, &w.a, a, "success");
    expect(show(&w, &w.a, b), 404, "not_found");
    expect(cancel(&w, &w.a, b), 404, "not_found");
    end(&w);
}

/* One that waits has ended when the answer comes, whatever holds the slot. */
static void what_waits_is_cancelled_at_once(void **state)
{
    struct world w;
    char running[ID_SIZE], waiting[ID_SIZE], path[64];

    (void)state;
    begin(&w, "1", "0");
    submit(&w, &w.a, ASYNC("ticks", ""), running);
    wait_status(&w, &w.a, running, "running");
    submit(&w, &w.b, ASYNC("ticks", ""), waiting);
    expect(show(&w, &w.b, waiting), 200, "\"status\":\"accepted\"");
    expect(cancel(&w, &w.a, waiting), 404, "not_found");
    expect(cancel(&w, &w.b, waiting), 202, "\"status\":\"cancelled\"");
    expect(show(&w, &w.b, waiting), 200,
           "\"status\":\"cancelled\",\"output\":null,\"files_url\":null");
    snprintf(path, sizeof(path), "/v1/executions/%.37s/events", waiting);
    expect(as(&w, &w.b, "GET", path, ""), 200, "event: result\ndata: {");
    expect(cancel(&w, &w.b, waiting), 409, "has ended already");
    expect(show(&w, &w.a, running), 200, "\"status\":\"running\"");
    assert_true(metric(&w, "skillvm_executions_queued") == 0);
    assert_true(metric(&w, "skillvm_executions_total{status=\"cancelled\"}") == 1);
    end(&w);
}

/* Whatever waits when it stops has a result, and nothing of it ever runs. */
static void stopping_ends_every_queue(void **state)
{
    struct world w;
    char ids[2][3][ID_SIZE], running[ID_SIZE];

    (void)state;
    begin(&w, "1", "0");
    submit(&w, &w.a, ASYNC("ticks", ""), running);
    wait_status(&w, &w.a, running, "running");
    for (int i = 0; i < 3; i++) {
        submit(&w, &w.a, ASYNC("ticks", ""), ids[0][i]);
        submit(&w, &w.b, ASYNC("ticks", ""), ids[1][i]);
    }
    assert_int_equal(harness_stop(&w.h, SIGTERM), 0);
    harness_start(&w.h, NULL);
    harness_wait_ready(&w.h);
    expect(show(&w, &w.a, running), 200, "\"status\":\"cancelled\"");
    for (int i = 0; i < 3; i++) {
        expect(show(&w, &w.a, ids[0][i]), 200, "the daemon stopped before this execution ran");
        expect(show(&w, &w.b, ids[1][i]), 200, "the daemon stopped before this execution ran");
    }
    expect(run_as(&w, &w.b, SLEEP("0")), 200, "success");
    end(&w);
}

static unsigned count_rows(const struct world *w, const struct tenant *t, const char *status)
{
    char path[128];
    struct answer a;
    unsigned n;

    snprintf(path, sizeof(path), "/v1/executions?limit=200&status=%s", status);
    a = as(w, t, "GET", path, "");
    assert_int_equal(a.status, 200);
    n = answer_count(&a, "execution_id");
    answer_finish(&a);
    return n;
}

static void counters_equal_rows(void **state)
{
    static const char *const statuses[] = {"success", "failed", "timeout", "cancelled"};
    static const char *const how[] = {"exit", "exit", "timeout", "die", "abort", "vmm-failed"};
    struct world w;
    double sum = 0;

    (void)state;
    begin(&w, "3", "0");
    for (int i = 0; i < 36; i++) {
        const struct tenant *t = i % 3 ? &w.a : &w.b;
        char json[160], id[ID_SIZE];
        struct answer a;

        snprintf(json, sizeof(json),
                 "{\"skill\":\"demo\",\"async\":true,\"env\":{\"FAKE\":\"%s\","
                 "\"FAKE_DATA\":\"%d\"}}",
                 how[i % 6], i % 4);
        submit(&w, t, json, id);
        if (i % 9 != 0)
            continue;
        /* Some come too late, and that is as good. */
        a = cancel(&w, t, id);
        answer_finish(&a);
    }
    for (int i = 0; i < 4500 && sum < 36; i++) {
        char series[80];

        sum = 0;
        for (int k = 0; k < 4; k++) {
            snprintf(series, sizeof(series), "skillvm_executions_total{status=\"%s\"}",
                     statuses[k]);
            sum += metric(&w, series);
        }
        usleep(20000);
    }
    assert_true(sum == 36);
    for (int k = 0; k < 4; k++) {
        char label[64];

        snprintf(label, sizeof(label), ",status=\"%s\"", statuses[k]);
        assert_int_equal(metric_of(&w, &w.a, "skillvm_tenant_executions_total", label),
                         count_rows(&w, &w.a, statuses[k]));
        assert_int_equal(metric_of(&w, &w.b, "skillvm_tenant_executions_total", label),
                         count_rows(&w, &w.b, statuses[k]));
    }
    assert_true(metric(&w, "skillvm_execution_seconds_count") == 36);
    /* What is ended behind an answer is counted there. */
    wait_metric(&w, "skillvm_executions_running", 0);
    wait_metric(&w, "skillvm_machines_behind", 0);
    assert_true(metric(&w, "skillvm_machines") == 0);
    assert_true(metric(&w, "skillvm_vmm_deaths_total{cause=\"sigabrt\"}") > 0);
    assert_true(metric(&w, "skillvm_vmm_deaths_total{cause=\"exit_1\"}") > 0);
    assert_true(metric(&w, "skillvm_vmm_deaths_total{cause=\"killed\"}") > 0);
    assert_true(metric(&w, "skillvm_vmm_deaths_total{cause=\"sigkill\"}") == 0);
    end(&w);
}

static void failed_authorisation_is_counted(void **state)
{
    struct tenant nobody = {.headers = "Authorization: Bearer sk-none\r\n"};
    struct world w;

    (void)state;
    begin(&w, "1", "0");
    expect(as(&w, &nobody, "GET", "/v1/executions", ""), 401, "unauthorized");
    expect(as(&w, &nobody, "GET", "/metrics", ""), 401, "unauthorized");
    expect(as(&w, &w.a, "GET", "/metrics", ""), 401, "unauthorized");
    assert_true(metric(&w, "skillvm_auth_failures_total{reason=\"bad_key\"}") == 2);
    assert_true(metric(&w, "skillvm_auth_failures_total{reason=\"no_operator\"}") == 1);
    end(&w);
}

/* KiB, of a line of /proc/PID/status. */
static unsigned long memory_of(const struct world *w, const char *what)
{
    char path[64], line[128];
    unsigned long kib = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)w->h.pid);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, what, strlen(what)) == 0)
            kib = strtoul(line + strlen(what), NULL, 10);
    }
    fclose(f);
    return kib;
}

/* What docs/deploy.md says of the daemon's own memory. */
static void memory_for_an_execution_is_bounded(void **state)
{
    struct world w;
    unsigned long before_kib;

    (void)state;
    begin(&w, "1", "0");
    expect(run_as(&w, &w.a, SLEEP("0")), 200, "\"status\":\"success\"");
    before_kib = memory_of(&w, "VmRSS:");
    expect(run_as(&w, &w.a, GREEDY), 200, "more files were left out");
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
    assert_in_range(memory_of(&w, "VmHWM:") - before_kib, 1, 64 * 1024);
#else
    (void)before_kib;
#endif
    end(&w);
}

/* A file that comes with a request is held beside its body, and given back after its end. */
static void files_of_a_request_count(void **state)
{
    struct world w;
    _cleanup_buf_ struct buf json = buf_init(1u << 20);

    (void)state;
    begin(&w, "1", "0");
    (void)buf_printf(&json, "{\"skill\":\"demo\",\"files\":[{\"name\":\"a\",\"text\":\"");
    while (json.len < 700 * 1024)
        (void)buf_append(&json, "0123456789abcdef", 16);
    (void)buf_printf(&json, "\"}]}");
    assert_non_null(buf_cstr(&json));
    set_limits(&w, &w.a, "\"storage_bytes\":1048576");
    expect(run_as(&w, &w.a, buf_cstr(&json)), 413, "quota_exceeded");
    set_limits(&w, &w.a, "\"storage_bytes\":2097152");
    for (int i = 0; i < 3; i++) {
        struct answer a = run_as(&w, &w.a, buf_cstr(&json));

        /* What the one before held goes behind its answer. */
        for (int k = 0; k < 1000 && a.status == 429; k++) {
            usleep(10000);
            answer_finish(&a);
            a = run_as(&w, &w.a, buf_cstr(&json));
        }
        expect(a, 200, "\"success\"");
    }
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_shared_by_weight),
        cmocka_unit_test(a_flood_holds_up_nobody_else),
        cmocka_unit_test(max_running_caps_one_tenant_only),
        cmocka_unit_test(max_queued_is_refused_until_there_is_room),
        cmocka_unit_test(a_rate_recovers_when_it_says),
        cmocka_unit_test(cpu_time_is_what_the_host_measured),
        cmocka_unit_test(a_day_of_cpu_time_is_refused_until_midnight),
        cmocka_unit_test(ceilings_cut_what_is_asked_for),
        cmocka_unit_test(idempotency_keys_are_the_tenants_own),
        cmocka_unit_test(what_waits_is_cancelled_at_once),
        cmocka_unit_test(stopping_ends_every_queue),
        cmocka_unit_test(counters_equal_rows),
        cmocka_unit_test(failed_authorisation_is_counted),
        cmocka_unit_test(memory_for_an_execution_is_bounded),
        cmocka_unit_test(files_of_a_request_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
