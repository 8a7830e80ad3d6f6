/* SPDX-License-Identifier: Apache-2.0 */
/* Executions beyond one synchronous run: lists, logs, events, single files, async, keys. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/fd.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect     harness_expect
#define FAKE(mode) "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"" mode "\"}}"
#define FAKE2(mode, data)                                                                      \
    "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"" mode "\",\"FAKE_DATA\":\"" data "\"}}"
#define TICKS "\"skill\":\"demo\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":600"

static int start(void **state)
{
    (void)harness_setup(state);
    return harness_push(*state, "other", "1.0", "print(2)") == 201 ? 0 : -1;
}

/* Takes the execution id out of an answer, which it finishes. */
static void take_id(struct answer *a, char id[38])
{
    answer_text(a, "execution_id", id, 38);
    answer_finish(a);
}

static struct answer get_of(const struct harness *h, const char *id, const char *rest)
{
    char path[256];

    snprintf(path, sizeof(path), "/v1/executions/%s%s", id, rest);
    return harness_get(h, path);
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        n++;
    }
    return n;
}

static void lists_executions(void **state)
{
    struct answer a = harness_get(*state, "/v1/executions");
    char path[256], cursor[64];

    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "{\"executions\":[],\"next_cursor\":null}\n");
    answer_finish(&a);
    for (int i = 0; i < 3; i++)
        expect(harness_run(*state, FAKE2("exit", "0")), 200, "success");
    expect(harness_run(*state, FAKE2("exit", "3")), 200, "failed");
    expect(harness_run(*state, "{\"skill\":\"other\"}"), 200, "success");
    a = harness_get(*state, "/v1/executions?limit=2");
    assert_int_equal(a.status, 200);
    assert_int_equal(answer_count(&a, "execution_id"), 2);
    /* The newest first. */
    assert_true(answer_has(&a, "\"status\":\"success\",\"skill\":{\"name\":\"other\","
                               "\"version\":\"1.0\",\"digest\":\""));
    assert_true(strstr(a.body, "\"other\"") < strstr(a.body, "\"status\":\"failed\""));
    assert_true(answer_has(&a, "\"created_at\":\"20"));
    assert_true(answer_has(&a, "\"finished_at\":\"20"));
    answer_text(&a, "next_cursor", cursor, sizeof(cursor));
    answer_finish(&a);
    snprintf(path, sizeof(path), "/v1/executions?limit=200&cursor=%s", cursor);
    a = harness_get(*state, path);
    assert_int_equal(answer_count(&a, "execution_id"), 3);
    assert_int_equal(count(a.body, "\"name\":\"demo\""), 3);
    assert_true(answer_has(&a, "\"next_cursor\":null"));
    answer_finish(&a);
    a = harness_get(*state, "/v1/executions?skill=demo&status=failed");
    assert_int_equal(answer_count(&a, "execution_id"), 1);
    answer_finish(&a);
    a = harness_get(*state, "/v1/executions?skill=nobody");
    assert_int_equal(count(a.body, "exec_"), 0);
    answer_finish(&a);
    expect(harness_get(*state, "/v1/executions?limit=0"), 400, "limit must be");
    expect(harness_get(*state, "/v1/executions?limit=201"), 400, "limit must be");
    expect(harness_get(*state, "/v1/executions?limit=x"), 400, "limit must be");
    expect(harness_get(*state, "/v1/executions?cursor=zz"), 400, "cursor");
    expect(harness_get(*state, "/v1/executions?status=good"), 400, "no status good");
}

static void gives_logs(void **state)
{
    struct answer a = harness_run(*state, FAKE2("exit", "0"));
    char id[38];

    take_id(&a, id);
    a = get_of(*state, id, "/logs");
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "out\nerr\n");
    assert_non_null(strstr(a.headers, "text/plain; charset=utf-8"));
    answer_finish(&a);
    a = harness_run(*state, FAKE("utf8"));
    take_id(&a, id);
    expect(get_of(*state, id, "/logs"), 200, "\xe2\x82\xac");
    expect(get_of(*state, "exec_0123456789abcdef0123456789abcdef", "/logs"), 404, "not_found");
    expect(get_of(*state, "x", "/logs"), 404, "not_found");
}

static void gives_single_files(void **state)
{
    struct answer a = harness_run(*state, FAKE("files"));
    char id[38];

    take_id(&a, id);
    a = get_of(*state, id, "/files/a.txt");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.headers, "text/plain"));
    assert_non_null(strstr(a.headers, "Content-Disposition: attachment\r\n"));
    assert_true(a.len > 0);
    answer_finish(&a);
    a = get_of(*state, id, "/files/sub/b.txt");
    assert_int_equal(a.status, 200);
    answer_finish(&a);
    a = get_of(*state, id, "/files/sub%2Fb.txt");
    assert_int_equal(a.status, 200);
    answer_finish(&a);
    expect(get_of(*state, id, "/files/sub"), 404, "left no file sub");
    expect(get_of(*state, id, "/files/c.txt"), 404, "left no file c.txt");
    expect(get_of(*state, id, "/files/../files.tar.gz"), 404, "not_found");
    a = harness_run(*state, FAKE2("exit", "0"));
    take_id(&a, id);
    expect(get_of(*state, id, "/files/a.txt"), 404, "left no files");
}

static void replays_events(void **state)
{
    static const char *const order[] = {
        "event: status\ndata: {\"execution_id\":\"exec_",
        "event: stdout\ndata: {\"data\":\"out\\n\"}\n\n",
        "event: stderr\ndata: {\"data\":\"err\\n\"}\n\n",
        "event: result\ndata: {\"execution_id\":",
        "\"warnings\":[]}\n\n",
    };
    struct answer a = harness_run(*state, FAKE2("exit", "0"));
    const char *at;
    char id[38];

    take_id(&a, id);
    a = get_of(*state, id, "/events");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.headers, "text/event-stream"));
    at = a.body;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        at = strstr(at, order[i]);
        if (!at) {
            fail_msg("%s is missing in %s", order[i], a.body);
            break;
        }
    }
    answer_finish(&a);
    expect(get_of(*state, "exec_0123456789abcdef0123456789abcdef", "/events"), 404,
           "not_found");
}

struct follower {
    const struct harness *h;
    const char *id;
    struct answer answer;
};

static void *follow(void *ctx)
{
    struct follower *f = ctx;

    f->answer = get_of(f->h, f->id, "/events");
    return NULL;
}

static void expect_followed(struct answer *a)
{
    assert_non_null(strstr(a->body, "tick 1"));
    assert_non_null(strstr(a->body, "event: result\ndata: {\"execution_id\":"));
    answer_finish(a);
}

/* Accepted, then followed to its end, which somebody else asks for, by two readers. */
static void runs_asynchronously(void **state)
{
    struct answer a = harness_run(*state, "{" TICKS ",\"async\":true}");
    char id[38], location[80], path[80];
    struct follower follower = {.h = *state, .id = id};
    pthread_t thread;

    assert_int_equal(a.status, 202);
    assert_true(answer_has(&a, "\",\"status\":\"accepted\"}"));
    snprintf(location, sizeof(location), "Location: /v1/executions/%.37s\r\n",
             strstr(a.body, "exec_"));
    assert_non_null(strstr(a.headers, location));
    take_id(&a, id);
    assert_int_equal(pthread_create(&thread, NULL, follow, &follower), 0);
    for (int i = 0; i < 1500; i++) {
        char *found;

        a = get_of(*state, id, "/logs");
        assert_int_equal(a.status, 200);
        found = strstr(a.body, "tick 1");
        answer_finish(&a);
        if (found)
            break;
        usleep(20000);
    }
    expect(get_of(*state, id, ""), 200, "\"status\":\"running\"");
    expect(harness_get(*state, "/v1/executions?status=running"), 200, id);
    a = harness_get(*state, "/v1/executions?status=accepted");
    assert_null(strstr(a.body, id));
    answer_finish(&a);
    expect(get_of(*state, id, "/files/a.txt"), 404, "has not ended yet");
    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    expect(harness_request(*state, "DELETE", path, "", "", 0), 202, "cancelling");
    assert_int_equal(pthread_join(thread, NULL), 0);
    a = get_of(*state, id, "/events");
    expect_followed(&a);
    expect_followed(&follower.answer);
    expect(get_of(*state, id, ""), 200, "\"status\":\"cancelled\"");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"async\":1}"), 400, "true or false");
    expect(harness_run(*state, "{\"skill\":\"nobody\",\"async\":true}"), 404, "not_found");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"version\":\"9\",\"async\":true}"), 202,
           "accepted");
}

static void repeats_by_key(void **state)
{
    static const char json[] = "{\"skill\":\"demo\",\"input\":1,\"idempotency_key\":\"k1\"}";
    struct answer a = harness_run(*state, json);
    struct answer b = harness_run(*state, json);

    assert_int_equal(a.status, 200);
    assert_int_equal(b.status, 200);
    assert_string_equal(a.body, b.body);
    answer_finish(&b);
    /* With events too. */
    b = harness_request(*state, "POST", "/v1/executions", "Accept: text/event-stream\r\n", json,
                        strlen(json));
    assert_int_equal(b.status, 200);
    assert_non_null(strstr(b.body, "event: result\n"));
    assert_memory_equal(strstr(b.body, "exec_"), strstr(a.body, "exec_"), 37);
    answer_finish(&a);
    answer_finish(&b);
    expect(harness_run(*state, "{\"skill\":\"demo\",\"input\":2,\"idempotency_key\":\"k1\"}"),
           409, "another request began");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"input\":2,\"idempotency_key\":\"k2\"}"),
           200, "success");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"idempotency_key\":\"\"}"), 400, "empty");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"idempotency_key\":7}"), 400, "string");
}

/* A request that is repeated while the first still runs joins it. */
static void joins_by_key(void **state)
{
    static const char json[] = "{" TICKS ",\"idempotency_key\":\"k3\",\"async\":true}";
    struct answer a = harness_run(*state, json);
    struct answer b = harness_run(*state, json);
    char id[38], path[80];

    assert_int_equal(a.status, 202);
    assert_int_equal(b.status, 202);
    assert_string_equal(a.body, b.body);
    answer_finish(&b);
    take_id(&a, id);
    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    expect(harness_request(*state, "DELETE", path, "", "", 0), 202, "");
    a = get_of(*state, id, "/events");
    assert_non_null(strstr(a.body, "event: result\n"));
    answer_finish(&a);
}

static void keeps_keys_over_a_restart(void **state)
{
    static const char json[] = "{\"skill\":\"demo\",\"idempotency_key\":\"k4\"}";
    struct harness *h = *state;
    struct answer a = harness_run(h, json);
    struct answer b;

    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_start(h, NULL);
    harness_wait_ready(h);
    b = harness_run(h, json);
    assert_string_equal(a.body, b.body);
    answer_finish(&a);
    answer_finish(&b);
}

/* Runs with a file of another execution so many times over, under other names. */
static struct answer run_with_left(const struct harness *h, const char *id, unsigned n)
{
    struct buf json = buf_init(16384);
    struct answer a;

    buf_printf(&json, "{\"skill\":\"demo\",\"files\":[");
    for (unsigned i = 0; i < n; i++)
        buf_printf(&json, "%s{\"uri\":\"execution://%s/files/a.txt\",\"name\":\"%u\"}",
                   i > 0 ? "," : "", id, i);
    assert_int_equal(buf_printf(&json, "]}"), 0);
    a = harness_run(h, buf_cstr(&json));
    buf_finish(&json);
    return a;
}

/* Each is looked for from the start of its archive. */
static void takes_so_many_that_were_left(void **state)
{
    struct answer a = harness_run(*state, FAKE("files"));
    char id[38];

    take_id(&a, id);
    expect(run_with_left(*state, id, 16), 200, "\"status\":\"success\"");
    expect(run_with_left(*state, id, 17), 400,
           "up to 16 \\\"files\\\" may be what executions left");
}

static void push_with_image(const struct harness *h, const char *name, const char *image)
{
    char text[256];
    const struct harness_file files[] = {
        {"SKILL.md", text}, {"main.py", "print(1)\n"}, {NULL, NULL}};

    snprintf(text, sizeof(text), "---\nname: %s\ndescription: d\nimage: %s\n---\nBody.\n", name,
             image);
    expect(harness_push_files(h, files), 201, "\"digest\"");
}

/* The one that the skill names, where there is one of that name. */
static void runs_in_the_skills_image(void **state)
{
    struct answer usual, data;
    char first[65], second[65];

    push_with_image(*state, "pandas", "data");
    push_with_image(*state, "elsewhere", "registry.example/python:3.12");
    expect(harness_run(*state, "{\"skill\":\"demo\"}"), 200, "\"image\":\"python\"");
    expect(harness_run(*state, "{\"skill\":\"elsewhere\"}"), 200,
           "\"warnings\":[\"there is no image registry.example/python:3.12 here: it ran in "
           "python\"]");
    usual = harness_run(*state, "{\"skill\":\"demo\"}");
    data = harness_run(*state, "{\"skill\":\"pandas\"}");
    assert_true(answer_has(&data, "\"image\":\"data\""));
    assert_true(answer_has(&data, "\"warnings\":[]"));
    /* Their machines begin from snapshots of their own. */
    answer_text(&usual, "snapshot", first, sizeof(first));
    answer_text(&data, "snapshot", second, sizeof(second));
    assert_string_not_equal(first, second);
    answer_finish(&usual);
    answer_finish(&data);
}

static void counts_for_prometheus(void **state)
{
    struct answer a;

    expect(harness_run(*state, FAKE2("exit", "0")), 200, "success");
    a = harness_get(*state, "/metrics");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.headers, "text/plain; version=0.0.4"));
    assert_non_null(strstr(a.body, "# TYPE skillvm_executions_total counter\n"
                                   "skillvm_executions_total{status=\"success\"} "));
    assert_null(strstr(a.body, "skillvm_executions_total{status=\"success\"} 0\n"));
    assert_non_null(strstr(a.body, "\nskillvm_executions_running "));
    assert_non_null(strstr(a.body, "\nskillvm_executions_queued "));
    assert_non_null(strstr(a.body, "\nskillvm_snapshot_ready 1\n"));
    assert_non_null(strstr(a.body, "\nskillvm_vmm_faults_total{cause=\"vmm_died\"} "));
    assert_non_null(strstr(
        a.body, "\nskillvm_execution_phase_seconds_bucket{phase=\"run\",le=\"0.001\"} "));
    assert_non_null(strstr(a.body, "\nskillvm_execution_seconds_bucket{le=\"+Inf\"} "));
    assert_non_null(strstr(a.body, "\nskillvm_execution_seconds_count "));
    answer_finish(&a);
}

/* Whether an execution is on a page of a list, each of which has one row. */
static bool is_listed(const struct harness *h, const char *query, const char *id)
{
    char path[256], row[80], cursor[80] = "";
    bool found = false;

    snprintf(row, sizeof(row), "\"execution_id\":\"%s\"", id);
    do {
        struct answer a;
        const char *at;

        snprintf(path, sizeof(path), "/v1/executions?limit=1&%s%s%s", query,
                 cursor[0] ? "&cursor=" : "", cursor);
        a = harness_get(h, path);
        assert_int_equal(a.status, 200);
        found = strstr(a.body, row) != NULL;
        at = strstr(a.body, "\"next_cursor\":\"");
        snprintf(cursor, sizeof(cursor), "%.*s", at ? (int)strcspn(at + 15, "\"") : 0,
                 at ? at + 15 : "");
        answer_finish(&a);
    } while (!found && cursor[0]);
    return found;
}

/* Behind the daemon's back. */
static void execute_sql(const struct harness *h, const char *sql)
{
    char path[160];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* One whose result could not be stored is listed as what is said of it. */
static void lists_what_was_lost(void **state)
{
    const struct harness *h = *state;
    struct answer a = harness_run(h, FAKE2("exit", "0"));
    char path[512], sql[256], id[38];

    assert_int_equal(a.status, 200);
    answer_text(&a, "execution_id", id, sizeof(id));
    answer_finish(&a);
    /* One that has its answer is in memory, too, for a moment more. */
    harness_wait_metrics(h, "\nskillvm_executions_running 0\n", true);
    snprintf(sql, sizeof(sql),
             "UPDATE executions SET status = 'accepted', result = NULL, finished_ns = NULL"
             " WHERE id = '%s'",
             id);
    execute_sql(h, sql);
    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    expect(harness_get(h, path), 200, "\"status\":\"failed\"");
    expect(harness_get(h, "/v1/executions?limit=1"), 200, "\"status\":\"failed\"");
    /* Found as what it is, and not as what is stored; between others, page by page. */
    expect(harness_run(h, FAKE2("exit", "1")), 200, "\"status\":\"failed\"");
    assert_true(is_listed(h, "status=failed", id));
    assert_true(is_listed(h, "skill=demo&status=failed", id));
    assert_false(is_listed(h, "status=accepted", id));
    assert_false(is_listed(h, "skill=other&status=failed", id));
}

static struct answer replace_demo(const struct harness *h)
{
    size_t len;
    char *tar = harness_skill("demo", "1.0", "print(2)", &len);
    struct answer a = harness_request(h, "POST", "/v1/skills?replace=true",
                                      "Content-Type: application/octet-stream\r\n", tar, len);

    free(tar);
    return a;
}

static bool is_replaced(const struct harness *h)
{
    struct answer a = replace_demo(h);
    bool is = a.status == 201;

    assert_true(is || a.status == 409);
    answer_finish(&a);
    return is;
}

/* Its row says so as soon as there is room again, and is in nobody's way. */
static void what_could_not_be_stored_ends(void **state)
{
    static char path[160];
    static const char *const extra[] = {"--config", path, NULL};
    struct harness h;
    struct answer a;
    char id[38];

    (void)state;
    harness_init(&h, "boot", "restore");
    snprintf(path, sizeof(path), "%s/skillvmd.yaml", h.dir);
    harness_write(&h, "skillvmd.yaml", "retention:\n  interval: 100ms\n");
    harness_start(&h, extra);
    harness_wait_ready(&h);
    assert_int_equal(harness_push(&h, "demo", "1.0", "print(1)"), 201);
    execute_sql(&h, "CREATE TRIGGER full BEFORE UPDATE OF result ON executions BEGIN"
                    " SELECT RAISE(FAIL, 'database or disk is full'); END");
    expect(harness_run(&h, FAKE2("exit", "0")), 500, "its result could not be stored");
    expect(replace_demo(&h), 409, "waits or runs");
    execute_sql(&h, "DROP TRIGGER full");
    harness_until(is_replaced(&h));
    /* One that has its answer is in memory, too, for a moment more. */
    harness_wait_metrics(&h, "\nskillvm_executions_running 0\n", true);
    a = harness_get(&h, "/v1/executions");
    assert_int_equal(count(a.body, "\"status\":\"failed\""), 1);
    take_id(&a, id);
    expect(get_of(&h, id, ""), 200, "\"error\":\"its result could not be stored: database");
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_executions),
        cmocka_unit_test(gives_logs),
        cmocka_unit_test(gives_single_files),
        cmocka_unit_test(replays_events),
        cmocka_unit_test(runs_asynchronously),
        cmocka_unit_test(repeats_by_key),
        cmocka_unit_test(joins_by_key),
        cmocka_unit_test(takes_so_many_that_were_left),
        cmocka_unit_test(runs_in_the_skills_image),
        cmocka_unit_test(counts_for_prometheus),
        cmocka_unit_test(lists_what_was_lost),
        cmocka_unit_test(what_could_not_be_stored_ends),
        cmocka_unit_test(keeps_keys_over_a_restart),
    };

    return cmocka_run_group_tests(tests, start, harness_teardown);
}
