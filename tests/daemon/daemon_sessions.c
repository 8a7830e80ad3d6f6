/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: an execution finds what the one before left, once that ended by itself; one at a
 * time, each tenant its own, within limits, over a daemon that is killed, until nobody uses it.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/sessions_world.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void three_steps(void **state)
{
    expect_both(run(*state, "three", "session", "a=one"),
                "\"id\":\"three\",\"committed\":true,\"bytes\":3,\"files\":1,\"reason\":null",
                "\"output\":{}");
    expect(run(*state, "three", "session", "sub/b=two!"), 200,
           "\"committed\":true,\"bytes\":7,\"files\":2");
    expect(run(*state, "three", "session-only", "c=last"), 200,
           "\"committed\":true,\"bytes\":4,\"files\":1");
    expect(run(*state, "three", "session", ""), 200, "\"c\":[4,");
    expect(harness_get(*state, "/v1/sessions/three/files/c"), 200, "last");
    expect(harness_get(*state, "/v1/sessions/three/files/a"), 404,
           "session three has no file a");
    forget(*state, "three");
}

/* What each step finds is what the step before left, bytes included. */
static void finds_what_was_left(void **state)
{
    expect_status(run(*state, "found", "session", "a=one"), 200);
    expect(run(*state, "found", "session", "b/c=two"), 200, "\"a\":[3,2053932785,\"one\"]");
    expect(run(*state, "found", "echo", ""), 200, "\"committed\":true,\"files\":1");
    expect(run(*state, "found", "session", ""), 200, "\"touched\":[4,");
    forget(*state, "found");
}

static void without_one_there_is_none(void **state)
{
    expect(harness_run(*state, "{\"skill\":\"demo\",\"session_id\":null}"), 200,
           "\"session\":null");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"session_id\":\"\"}"), 200,
           "\"session\":null");
    expect(harness_get(*state, "/v1/sessions"), 200, "[]\n");
    expect(harness_get(*state, "/v1/sessions/none"), 404, "there is no session none");
    expect(harness_get(*state, "/v1/sessions/none/files"), 200, "[]\n");
    expect(harness_get(*state, "/v1/sessions/none/files/a"), 404, "there is no session none");
    expect(request(*state, "", "DELETE", "/v1/sessions/none", NULL), 404,
           "there is no session none");
}

static void names_are_checked(void **state)
{
    static const char *const bad[] = {"../x", ".x", "-x", "a b", "a/b", "\xc3\xa4"};
    char longest[140];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect(run(*state, bad[i], "session", ""), 400, "session_id");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"session_id\":7}"), 400, "session_id");
    memset(longest, 'x', sizeof(longest));
    longest[129] = '\0';
    expect(run(*state, longest, "session", ""), 400, "up to 128 letters");
    longest[128] = '\0';
    expect(run(*state, longest, "session", "a=1"), 200, "\"committed\":true");
    forget(*state, longest);
    expect(run(*state, "Chat:1.2_3-x", "session", "a=1"), 200, "\"committed\":true");
    forget(*state, "Chat:1.2_3-x");
}

/* Nothing of a run that did not end by itself is kept, and all that was is. */
static void interrupted_runs_leave_it(void **state)
{
    static const struct {
        const char *how, *data, *reason;
    } runs[] = {{"timeout", "", "timed out"},
                {"oom", "", "out of memory"},
                {"session-oom", "x=1", "went over its memory"},
                {"signal", "11", "killed by signal 11"},
                {"die", "", "while the skill ran"},
                {"hostile-order", "", "the guest broke the protocol"},
                {"hostile-output", "", "more bytes than it was allowed"},
                {"session-junk", "", "not a tar"},
                {"session-none", "", "the guest handed over nothing"},
                {"session-flag", "", "larger than a session may be"},
                {"session-big", "x=1",
                 "100 MiB; leave there what the next run needs, and write "
                 "the rest to /tmp or as artifacts"}};
    unsigned objects;

    expect(run(*state, "kept", "session", "a=one"), 200, "\"committed\":true");
    objects = harness_count_files(*state, "objects");
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct answer a = run(*state, "kept", runs[i].how, runs[i].data);

        assert_non_null(strstr(a.body, runs[i].reason));
        expect(a, 200, "\"id\":\"kept\",\"committed\":false,\"bytes\":3,\"files\":1");
        expect(harness_get(*state, "/v1/sessions/kept"), 200,
               "\"files_list\":[{\"path\":\"a\",\"size_bytes\":3}]");
    }
    harness_assert_clean(*state);
    assert_int_equal(harness_count_files(*state, "objects"), objects);
    expect(run(*state, "never", "timeout", ""), 200,
           "\"id\":\"never\",\"committed\":false,\"bytes\":0,\"files\":0");
    expect_status(harness_get(*state, "/v1/sessions/never"), 404);
    forget(*state, "kept");
}

static void a_failure_is_an_end_too(void **state)
{
    expect_both(run(*state, "failed", "session-exit", "a=one"),
                "\"committed\":true,\"files\":1", "\"status\":\"failed\",\"exit_code\":3");
    forget(*state, "failed");
}

static void names_in_it_are_checked(void **state)
{
    struct answer a = run(*state, "odd", "session-odd", "");

    assert_non_null(strstr(a.body, "in the session \\\"../escape\\\" was left out"));
    assert_non_null(strstr(a.body, "in the session \\\"link\\\" was left out"));
    expect(a, 200, "\"committed\":true,\"bytes\":4,\"files\":2");
    a = harness_get(*state, "/v1/sessions/odd");
    assert_false(answer_has(&a, "escape"));
    expect(a, 200,
           "\"files_list\":[{\"path\":\"empty/"
           "\",\"size_bytes\":0},{\"path\":\"good\",\"size_bytes\":4}],\"truncated\":false");
    expect(run(*state, "odd", "session", ""), 200, "\"empty/\":[0,");
    expect_status(harness_get(*state, "/v1/sessions/odd/files/empty"), 404);
    forget(*state, "odd");
}

static void cancel_all(const struct harness *h)
{
    struct answer a = harness_get(h, "/v1/executions?status=running");
    char path[80];

    for (const char *at = a.body; (at = strstr(at, "\"execution_id\":\"")); at++) {
        snprintf(path, sizeof(path), "/v1/executions/%.37s", at + 16);
        expect_status(request(h, "", "DELETE", path, NULL), 202);
    }
    answer_finish(&a);
}

/* Until no execution has a session: one that is told to have ended has it for a moment more. */
static void wait_free(const struct harness *h)
{
    harness_wait_metrics(h, "\nskillvm_executions_running 0\n", true);
}

static void one_at_a_time(void **state)
{
    struct answer a;

    expect_status(run(*state, "busy", "session", "a=one"), 200);
    expect_status(harness_run(*state, "{\"skill\":\"demo\",\"session_id\":\"busy\",\"async\":"
                                      "true,\"env\":{\"FAKE\":\"ticks\"}}"),
                  202);
    a = run(*state, "busy", "session", "b=two");
    assert_non_null(strstr(a.headers, "Retry-After: 1"));
    expect(a, 409, "\"error\":\"session_busy\"");
    expect(run(*state, "busy", "session", "b=two"), 409, "has session busy");
    expect(request(*state, "", "DELETE", "/v1/sessions/busy", NULL), 409,
           "let it end or cancel it, then remove the session or its file");
    expect(remove_file(*state, "", "busy", "a"), 409, "\"error\":\"session_busy\"");
    expect(harness_get(*state, "/metrics"), 200, "\nskillvm_session_conflicts_total 4\n");
    expect(run(*state, "free", "session", "b=two"), 200, "\"committed\":true");
    expect(harness_get(*state, "/v1/sessions/busy/files/a"), 200, "one");
    harness_wait_executions(*state, "running", 1);
    cancel_all(*state);
    wait_free(*state);
    expect(harness_get(*state, "/v1/executions?status=cancelled"), 200, "cancelled");
    /* Whoever has the answer may have the session. */
    for (int i = 0; i < 50; i++)
        expect(run(*state, "busy", "session-only", "a=two"), 200, "\"committed\":true");
    forget(*state, "busy");
    forget(*state, "free");
}

/* One that waits has its session as well, and gives it back when it is cancelled. */
static void it_is_taken_while_it_waits(void **state)
{
    static const char ticks[] =
        "{\"skill\":\"demo\",\"async\":true,\"env\":{\"FAKE\":\"ticks\"}}";
    struct answer a;
    char path[80];

    for (int i = 0; i < 2; i++)
        expect_status(harness_run(*state, ticks), 202);
    harness_wait_executions(*state, "running", 2);
    a = harness_run(*state, "{\"skill\":\"demo\",\"session_id\":\"w\",\"async\":true}");
    assert_int_equal(a.status, 202);
    answer_execution_path(&a, path, sizeof(path));
    answer_finish(&a);
    expect(run(*state, "w", "session", ""), 409, "session_busy");
    expect_status(request(*state, "", "DELETE", path, NULL), 202);
    expect(harness_get(*state, path), 200,
           "\"id\":\"w\",\"committed\":false,\"reason\":\"cancelled\"");
    expect_status(
        harness_run(*state, "{\"skill\":\"demo\",\"session_id\":\"w\",\"async\":true}"), 202);
    cancel_all(*state);
    harness_wait_executions(*state, "accepted", 0);
    wait_free(*state);
    forget(*state, "w");
}

static void tenants_have_their_own(void **state)
{
    unsigned objects;

    expect_status(request(*state, "", "POST", "/v1/admin/tenants", "{\"name\":\"acme\"}"), 201);
    expect_status(run(*state, "same", "session", "a=one"), 200);
    objects = harness_count_files(*state, "objects");
    expect_status(harness_run(*state, "{\"skill\":\"demo\",\"session_id\":\"same\",\"async\":"
                                      "true,\"env\":{\"FAKE\":\"ticks\"}}"),
                  202);
    /* Which no other tenant waits for. */
    expect_both(session_run_as(*state, ACME, "same", "session", "b=theirs"),
                "\"committed\":true,\"files\":1", "\"output\":{}");
    expect(run(*state, "same", "session", ""), 409, "\"error\":\"session_busy\"");
    harness_wait_executions(*state, "running", 1);
    cancel_all(*state);
    wait_free(*state);
    expect(request(*state, ACME, "GET", "/v1/sessions/same/files/a", NULL), 404, "no file a");
    expect(request(*state, ACME, "GET", "/v1/sessions/same/files/b", NULL), 200, "theirs");
    expect(remove_file(*state, ACME, "same", "a"), 404, "no file a");
    expect_status(remove_file(*state, ACME, "same", "b"), 204);
    expect(harness_get(*state, "/v1/sessions/same"), 200,
           "\"files_list\":[{\"path\":\"a\",\"size_bytes\":3}]");
    expect_status(request(*state, "", "DELETE", "/v1/admin/tenants/acme", NULL), 204);
    assert_int_equal(harness_count_files(*state, "objects"), objects);
    expect(harness_get(*state, "/v1/sessions/same/files/a"), 200, "one");
    forget(*state, "same");
}

/* A tenant may store 1000 bytes more than it does, which is less than one file more. */
static void leave_little_room(const struct harness *h)
{
    struct answer a = harness_get(h, "/v1/admin/tenants/small");
    char json[80];

    snprintf(json, sizeof(json), "{\"limits\":{\"storage_bytes\":%.0f}}",
             answer_number(&a, "stored_bytes") + 1000);
    answer_finish(&a);
    expect_status(request(h, "", "PATCH", "/v1/admin/tenants/small", json), 200);
}

static void it_counts_as_stored(void **state)
{
    expect_status(request(*state, "", "POST", "/v1/admin/tenants", "{\"name\":\"small\"}"),
                  201);
    expect(session_run_as(*state, SMALL, "s", "session", "a=one"), 200, "\"committed\":true");
    expect(session_run_as(*state, SMALL, "s", "session", "b=two"), 200, "\"committed\":true");
    leave_little_room(*state);
    expect_both(session_run_as(*state, SMALL, "s", "session", "more=1"),
                "\"committed\":false,\"files\":2", "\"status\":\"success\"");
    expect(session_run_as(*state, SMALL, "s", "session", "more=1"), 200, "storage_bytes: ");
    /* Removing needs no room of it. */
    expect_status(remove_file(*state, SMALL, "s", "a"), 204);
    /* What takes no more room may take its place. */
    expect(session_run_as(*state, SMALL, "s", "session-only", "b=2"), 200,
           "\"committed\":true,\"files\":1");
    expect_status(request(*state, "", "DELETE", "/v1/admin/tenants/small", NULL), 204);
}

static void its_files_are_listed(void **state)
{
    static const char shape[] =
        "\"id\":null,\"name\":\"a.txt\",\"size_bytes\":3,\"digest\":null,\"tenant_id\":"
        "\"default\",\"version\":1,\"session_id\":\"list\"";
    struct answer a;

    expect_status(run(*state, "list", "session", "a.txt=one"), 200);
    expect_status(run(*state, "list", "session", "b.txt=two"), 200);
    expect(harness_get(*state, "/v1/files?session_id=list"), 200, shape);
    expect(harness_get(*state, "/v1/sessions/list/files"), 200, shape);
    a = harness_get(*state, "/v1/sessions/list/files?limit=1&offset=1");
    assert_null(strstr(a.body, "a.txt"));
    expect(a, 200, "b.txt");
    expect(harness_get(*state, "/v1/files?session_id=list&offset=2"), 200, "[]\n");
    expect(harness_get(*state, "/v1/sessions/list/files?limit=0"), 400, "limit");
    expect(harness_get(*state, "/v1/files?session_id=list&execution_id=e"), 200, "[]\n");
    expect(harness_get(*state, "/v1/sessions"), 200, "\"id\":\"list\",\"bytes\":6,\"files\":2");
    a = harness_get(*state, "/v1/sessions/list/files/a.txt");
    assert_non_null(strstr(a.headers, "Content-Type: text/plain"));
    expect(a, 200, "one");
    forget(*state, "list");
}

static void tools_take_it(void **state)
{
    static const char beside[] = "{\"name\":\"demo\",\"arguments\":{},\"session_id\":\"t\","
                                 "\"env\":{\"FAKE\":\"session\",\"FAKE_DATA\":\"a=1\"}}";
    static const char within[] = "{\"name\":\"run_code\",\"arguments\":{\"code\":\"print(1)\","
                                 "\"session_id\":\"t\"},\"env\":{\"FAKE\":\"session\"}}";

    expect(request(*state, "", "POST", "/v1/tools/call", beside), 200,
           "\"id\":\"t\",\"committed\":true");
    expect(request(*state, "", "POST", "/v1/tools/call", within), 200, "\"a\":[1,");
    forget(*state, "t");
}

/* Behind the daemon's back. */
static void execute_sql(const struct harness *h, const char *sql)
{
    char path[160];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Rows that name an object which is there. */
static void add_rows(const struct harness *h, unsigned n)
{
    char sql[512];

    snprintf(
        sql, sizeof(sql),
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %u) INSERT "
        "INTO sessions(tenant_id, id, digest, bytes, files, content_bytes, created_ns, "
        "changed_ns, used_ns) SELECT tenant_id, 'n' || i, digest, bytes, files, content_bytes, "
        "created_ns, changed_ns, used_ns FROM n, sessions WHERE id = 'first'",
        n);
    execute_sql(h, sql);
}

/* Where a result cannot be stored as it is, one without all that may be large takes its place.
 */
static void what_cannot_be_stored_is_cut(void **state)
{
    static const char run_long[] =
        "{\"skill\":\"demo\",\"session_id\":\"cut\",\"limits\":{\"memory\":\"2Gi\"}}";

    expect(harness_run(*state, run_long), 200, "the memory limit was cut to");
    execute_sql(*state,
                "CREATE TRIGGER too_much BEFORE UPDATE OF result ON executions WHEN "
                "NEW.result LIKE '%the memory limit was cut%' BEGIN SELECT RAISE(ABORT, "
                "'too much'); END");
    expect(harness_run(*state, run_long), 200, "\"warnings\":[]");
    execute_sql(*state, "DROP TRIGGER too_much");
    forget(*state, "cut");
}

static void their_number_is_bounded(void **state)
{
    expect_status(run(*state, "first", "session", "a=one"), 200);
    add_rows(*state, 999);
    expect(run(*state, "more", "session", "a=one"), 200, "\"committed\":false");
    expect(run(*state, "more", "session", "a=one"), 200,
           "sessions: 1000 are kept already, which is the limit: remove one");
    expect(run(*state, "n7", "session", "b=two"), 200, "\"committed\":true");
    expect(harness_get(*state, "/v1/sessions"), 200, "\"id\":\"n999\"");
    forget(*state, "n8");
    expect(run(*state, "more", "session", "a=one"), 200, "\"committed\":true");
}

static void start(struct harness *h, const char *settings)
{
    static char path[160];
    const char *const extra[] = {"--config", path, NULL};

    harness_init(h, "boot", "restore");
    snprintf(path, sizeof(path), "%s/skillvmd.yaml", h->dir);
    harness_write(h, "skillvmd.yaml", settings);
    harness_start(h, extra);
    harness_wait_ready(h);
    assert_int_equal(harness_push(h, "demo", "1.0", "print(1)"), 201);
}

/* Kills the daemon, and starts it once nobody has its socket: a machine that it was about to
 * start may, for a moment. */
static void kill_and_start(struct harness *h)
{
    int fd;

    assert_int_equal(harness_stop(h, SIGKILL), -1);
    while ((fd = harness_connect(h)) >= 0) {
        close(fd);
        usleep(1000);
    }
    harness_start(h, NULL);
    harness_wait_ready(h);
}

static void a_killed_daemon_leaves_the_last(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "");
    expect_status(run(&h, "s", "session", "a=one"), 200);
    expect_status(harness_run(&h, "{\"skill\":\"demo\",\"session_id\":\"s\",\"async\":true,"
                                  "\"env\":{\"FAKE\":\"hang-collect\"}}"),
                  202);
    harness_wait_executions(&h, "running", 1);
    kill_and_start(&h);
    expect_both(run(&h, "s", "session", "b=two"), "\"committed\":true,\"files\":2",
                "\"output\":{\"a\":[3,2053932785,\"one\"]}");
    kill_and_start(&h);
    expect(harness_get(&h, "/v1/sessions/s"), 200, "\"files\":2");
    /* The skill, and the session as it is now. */
    assert_int_equal(harness_count_files(&h, "objects"), 2);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

/* Commits without an end, and a daemon that is killed between any two instructions of it. */
static void a_commit_is_whole_or_not_at_all(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "");
    for (int i = 0; i < 12; i++) {
        char json[160];
        struct answer a;
        int found = 0, size = 0;

        snprintf(json, sizeof(json),
                 "{\"code\":\"1\",\"session_id\":\"s\",\"async\":true,\"env\":{\"FAKE\":"
                 "\"session\",\"FAKE_DATA\":\"f%d=0123456789\"}}",
                 i);
        expect_status(harness_run(&h, json), 202);
        usleep((useconds_t)i * 1500);
        kill_and_start(&h);
        a = harness_get(&h, "/v1/sessions/s/files?limit=1000");
        assert_int_equal(a.status, 200);
        for (const char *at = a.body; (at = strstr(at, "\"size_bytes\":10,")); at++)
            found++;
        for (const char *at = a.body; (at = strstr(at, "\"name\"")); at++)
            size++;
        assert_int_equal(found, size);
        answer_finish(&a);
        a = harness_get(&h, "/v1/sessions");
        assert_int_equal(strcmp(a.body, "[]\n") == 0, found == 0);
        answer_finish(&a);
    }
    expect(run(&h, "s", "session", "last=0"), 200, "\"committed\":true");
    assert_int_equal(harness_count_files(&h, "objects"), 2);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

/* When the session "s" goes, by an answer that has it. */
static void take_expiry(struct answer a, char ret[32])
{
    assert_int_equal(a.status, 200);
    answer_text(&a, "expires_at", ret, 32);
    answer_finish(&a);
}

static void who_reads_one_uses_it(void **state)
{
    char first[32], listed[32], later[32] = "";
    struct harness h;

    (void)state;
    start(&h, "retention:\n  sessions_age: 20s\n");
    expect_status(run(&h, "s", "session", "a=one"), 200);
    take_expiry(harness_get(&h, "/v1/sessions"), first);
    for (int i = 0; i < 500 && strcmp(later, first) <= 0; i++) {
        take_expiry(harness_get(&h, "/v1/sessions/s"), later);
        usleep(20000);
    }
    assert_true(strcmp(later, first) > 0);
    take_expiry(harness_get(&h, "/v1/sessions"), listed);
    assert_string_equal(listed, later);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

/* It is read where its use cannot be noted, and is told to go when it will. */
static void reading_needs_no_room(void **state)
{
    char before[32], after[32];
    struct harness h;

    (void)state;
    start(&h, "retention:\n  sessions_age: 1h\n");
    expect(run(&h, "s", "session", "a=one"), 200, "\"committed\":true");
    execute_sql(&h, "UPDATE sessions SET used_ns = used_ns - 1800000000000;"
                    "CREATE TRIGGER full BEFORE UPDATE ON sessions BEGIN"
                    " SELECT RAISE(FAIL, 'database or disk is full'); END");
    take_expiry(harness_get(&h, "/v1/sessions"), before);
    take_expiry(harness_get(&h, "/v1/sessions/s"), after);
    assert_string_equal(before, after);
    expect(harness_get(&h, "/v1/sessions/s/files"), 200, "\"name\":\"a\"");
    expect(harness_get(&h, "/v1/sessions/s/files/a"), 200, "one");
    expect(harness_get(&h, "/v1/files?session_id=s"), 200, "\"name\":\"a\"");
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

/* A guest may ignore that it is cancelled, or its deadline, and say that all went well. */
static void who_ends_late_was_interrupted(void **state)
{
    struct harness h;

    (void)state;
    setenv("SKILLVM_GRACE", "30", 1);
    start(&h, "");
    unsetenv("SKILLVM_GRACE");
    expect(harness_run(&h, "{\"skill\":\"demo\",\"session_id\":\"late\",\"timeout\":1,"
                           "\"env\":{\"FAKE\":\"session-late\",\"FAKE_DATA\":\"a=one\"}}"),
           200, "\"status\":\"timeout\"");
    expect_status(harness_get(&h, "/v1/sessions/late"), 404);
    expect_status(harness_run(&h,
                              "{\"skill\":\"demo\",\"session_id\":\"late\",\"async\":true,"
                              "\"env\":{\"FAKE\":\"session-late\",\"FAKE_DATA\":\"a=one\"}}"),
                  202);
    harness_wait_executions(&h, "running", 1);
    cancel_all(&h);
    wait_free(&h);
    expect_status(harness_get(&h, "/v1/sessions/late"), 404);
    expect(harness_get(&h, "/v1/executions?status=cancelled"), 200, "\"name\":\"demo\"");
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

static void unused_ones_go(void **state)
{
    struct harness h;
    struct answer a;
    bool gone = false;

    (void)state;
    start(&h, "retention:\n  sessions_age: 1s\n  interval: 100ms\n");
    expect(run(&h, "s", "session", "a=one"), 200, "\"committed\":true");
    for (int i = 0; i < 4500 && !gone; i++) {
        a = harness_get(&h, "/v1/sessions");
        gone = strcmp(a.body, "[]\n") == 0;
        answer_finish(&a);
        usleep(20000);
    }
    assert_true(gone);
    expect_status(harness_get(&h, "/v1/sessions/s"), 404);
    /* It is counted at the end of the pass, after what it held is gone. */
    harness_wait_metrics(&h, "\nskillvm_sessions_expired_total 1\n", true);
    assert_int_equal(harness_count_files(&h, "objects"), 1);
    expect(run(&h, "s", "session", "b=two"), 200, "\"output\":{}");
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_one_there_is_none),
        cmocka_unit_test(three_steps),
        cmocka_unit_test(finds_what_was_left),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(interrupted_runs_leave_it),
        cmocka_unit_test(a_failure_is_an_end_too),
        cmocka_unit_test(names_in_it_are_checked),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(it_is_taken_while_it_waits),
        cmocka_unit_test(tenants_have_their_own),
        cmocka_unit_test(it_counts_as_stored),
        cmocka_unit_test(its_files_are_listed),
        cmocka_unit_test(tools_take_it),
        cmocka_unit_test(what_cannot_be_stored_is_cut),
        cmocka_unit_test(their_number_is_bounded),
    };
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(a_killed_daemon_leaves_the_last),
        cmocka_unit_test(a_commit_is_whole_or_not_at_all),
        cmocka_unit_test(who_reads_one_uses_it),
        cmocka_unit_test(reading_needs_no_room),
        cmocka_unit_test(who_ends_late_was_interrupted),
        cmocka_unit_test(unused_ones_go),
    };
    int failed = cmocka_run_group_tests(tests, harness_setup, harness_teardown);

    return failed + cmocka_run_group_tests(alone, NULL, NULL);
}
