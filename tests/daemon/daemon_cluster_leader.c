/* SPDX-License-Identifier: Apache-2.0 */
/* Another server leads a bucket, which may lack what the one before it had, or have more. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXECUTIONS "/v1/executions"
#define FAKE(how)  "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define LINES      "  replicas: 3\n"

struct world {
    struct nats_world nats;
    struct harness a, b;
};

static void begin(struct world *w)
{
    nats_begin(&w->nats, 3);
    nats_start_node(&w->a, &w->nats, "a", LINES);
    nats_start_node(&w->b, &w->nats, "b", LINES);
    nats_make(&w->a);
    nats_wait_node(&w->a, NODE_JOINED);
    nats_wait_node(&w->b, NODE_JOINED);
    harness_wait_ready(&w->a);
    nodes_push_sure(&w->a, "demo");
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

static void run_at(const struct harness *h, const char *json, int status, char ret[38])
{
    struct answer a = nodes_admin_sure(h, "POST", EXECUTIONS, json);

    assert_int_equal(a.status, status);
    nodes_take_id(&a, ret);
}

/* Runs one at a node, whose end both have then, or one that goes on. */
static void run(const struct world *w, const char *json, int status, const char *state,
                char ret[38])
{
    char path[64];

    run_at(&w->a, json, status, ret);
    snprintf(path, sizeof(path), EXECUTIONS "/%s", ret);
    nodes_wait(&w->b, path, 200, state);
}

static bool has_record(const struct world *w, const char *id)
{
    char *record = nodes_record_of(&w->nats, id);
    const bool is_there = record != NULL;

    free(record);
    return is_there;
}

/* Where a busy machine's servers have just chosen another leader, its node tells it once more.
 */
static void lose(const struct world *w, const char *id)
{
    char subject[128];

    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    do
        nats_purge(&w->nats, NATS_RECORDS, subject);
    while (has_record(w, id));
}

static void wait_record(const struct world *w, const char *id)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    while (!has_record(w, id)) {
        if (clock_monotonic_ns() > until_ns)
            fail_msg("%s is not told anew", id);
        usleep(50000);
    }
}

/* Waits until what the servers have of one says something. */
static void wait_said(const struct world *w, const char *id, const char *part)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    for (;;) {
        char *record = nodes_record_of(&w->nats, id);
        bool is_said = record && strstr(record, part);

        if (!is_said && clock_monotonic_ns() > until_ns)
            fail_msg("%s is not told as %s, but %s", id, part, record ? record : "nothing");
        free(record);
        if (is_said)
            return;
        usleep(50000);
    }
}

/* Takes the statement over. */
static void change_rows(const struct harness *h, char *sql)
{
    sqlite3 *db = NULL;
    char path[256];

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_free(sql);
    sqlite3_close(db);
}

/* As if what a server that led wrote had never come. */
static void miss(const struct harness *h, const char *id)
{
    change_rows(h, sqlite3_mprintf("DELETE FROM executions WHERE id = %Q", id));
}

/* Until its node is joined again. A wish that was not confirmed may have come all the same. */
static void end_sure(const struct harness *h, const char *path)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    bool was_refused = false;
    int status = 503;

    while (status == 503 && clock_monotonic_ns() < until_ns) {
        struct answer a = harness_request(h, "DELETE", path, "", "", 0);

        status = a.status;
        was_refused |= status == 503;
        answer_finish(&a);
        usleep(50000);
    }
    if (status != 409 || !was_refused)
        assert_int_equal(status, 202);
}

static void what_another_leader_has_not_is_told_and_read_again(void **state)
{
    struct world w = {0};
    char missed[38], ended[38], runs[38], other[38], path[64];
    size_t leader;

    (void)state;
    begin(&w);
    run(&w, "{" FAKE("exit") "}", 200, "\"status\":\"success\"", missed);
    run(&w, "{" FAKE("exit") "}", 200, "\"status\":\"success\"", ended);
    run(&w, "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}", 202, "", runs);
    /* Nothing more is told of it then. */
    nodes_wait(&w.a, nodes_path_of(runs), 200, "\"status\":\"running\"");
    miss(&w.b, missed);
    lose(&w, ended);
    lose(&w, runs);
    run(&w, "{" FAKE("exit") "}", 200, "\"status\":\"success\"", other);
    nats_wait_replicas(&w.nats, NATS_RECORDS);
    leader = nats_leader(&w.nats, NATS_RECORDS);
    nats_kill(&w.nats, leader);
    snprintf(path, sizeof(path), EXECUTIONS "/%s", missed);
    nodes_wait(&w.b, path, 200, "\"status\":\"success\"");
    nats_restart(&w.nats, leader);
    wait_record(&w, ended);
    wait_record(&w, runs);
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    snprintf(path, sizeof(path), EXECUTIONS "/%s", runs);
    end_sure(&w.b, path);
    nodes_wait(&w.a, path, 200, "\"status\":\"cancelled\"");
    nodes_wait(&w.b, path, 200, "\"status\":\"cancelled\"");
    end(&w);
}

/* What may be begun again may be so also where the servers lost that. */
static void what_another_leader_has_not_may_still_be_begun_again(void **state)
{
    struct world w = {0};
    char runs[38], other[38];
    size_t leader;

    (void)state;
    begin(&w);
    run(&w, "{" FAKE("ticks") ",\"timeout\":600,\"async\":true,\"retries\":1}", 202, "", runs);
    nodes_wait(&w.a, nodes_path_of(runs), 200, "\"status\":\"running\"");
    wait_said(&w, runs, "\"again\":{");
    lose(&w, runs);
    run(&w, "{" FAKE("exit") "}", 200, "\"status\":\"success\"", other);
    nats_wait_replicas(&w.nats, NATS_RECORDS);
    leader = nats_leader(&w.nats, NATS_RECORDS);
    nats_kill(&w.nats, leader);
    nats_restart(&w.nats, leader);
    wait_said(&w, runs, "\"again\":{");
    (void)harness_stop(&w.a, SIGKILL);
    nodes_wait(&w.b, nodes_path_of(runs), 200, "\"status\":\"running\"");
    nodes_cancel(&w.b, runs);
    nats_start_node(&w.a, &w.nats, "a", LINES);
    nats_wait_node(&w.a, NODE_JOINED);
    end(&w);
}

/*
 * Asks b under a key for what a had run, of which the servers and b know nothing: a does, and
 * tells it before b has it. With another leader b may have read it again, and asks nobody: then
 * once more.
 */
static void ask_under_key(const struct world *w, const char *json, const char *id,
                          const char *path)
{
    do {
        miss(&w->b, id);
        lose(w, id);
        harness_expect(nodes_admin_sure(&w->b, "POST", EXECUTIONS, json), 200,
                       "\"status\":\"success\"");
    } while (!has_record(w, id));
    wait_said(w, id, "\"node\":\"a\"");
    assert_int_equal(nodes_count_log(path, id), 0);
}

/* A key begins one execution also where the servers lost that it did. */
static void what_the_servers_lost_its_key_does_not_begin_again(void **state)
{
    static const char json[] = "{" FAKE("exit") ",\"idempotency_key\":\"one\"}";
    char id[38], path[128];
    struct world w = {0};

    (void)state;
    begin(&w);
    run(&w, json, 200, "\"status\":\"success\"", id);
    nodes_stop(&w.b);
    nodes_start_logged(&w.b, &w.nats, "b", LINES, path);
    nats_wait_node(&w.b, NODE_JOINED);
    harness_wait_ready(&w.b);
    /* It reads again what was told last: not after it missed it. */
    nodes_wait_log(path, "executions=followed", 1);
    ask_under_key(&w, json, id, path);
    end(&w);
}

/* As if a server had never given the end of one to who watches there. */
static void forget_end(const struct harness *h, const char *id)
{
    change_rows(h,
                sqlite3_mprintf("UPDATE executions SET status = 'accepted', result = NULL,"
                                " finished_ns = NULL, accepted_ns = accepted_ns - 60000000000"
                                " WHERE id = %Q",
                                id));
}

/* What ends is known everywhere, whatever a watch brings. */
static void an_end_that_did_not_come_is_asked_for(void **state)
{
    struct world w = {0};
    char id[38], path[64];

    (void)state;
    begin(&w);
    run(&w, "{" FAKE("exit") "}", 200, "\"status\":\"success\"", id);
    forget_end(&w.b, id);
    snprintf(path, sizeof(path), EXECUTIONS "/%s", id);
    nodes_wait(&w.b, path, 200, "\"status\":\"success\"");
    end(&w);
}

/* What somebody removed by hand, or a server does not send, keeps nobody from following. */
static void a_gap_keeps_nobody_waiting(void **state)
{
    struct world w = {0};
    char kept[38], removed[38], path[64];

    (void)state;
    begin(&w);
    nodes_stop(&w.b);
    run_at(&w.a, "{" FAKE("exit") "}", 200, kept);
    run_at(&w.a, "{" FAKE("exit") "}", 200, kept);
    run_at(&w.a, "{" FAKE("exit") "}", 200, removed);
    lose(&w, removed);
    nats_start_node(&w.b, &w.nats, "b", LINES);
    nats_wait_node(&w.b, NODE_JOINED);
    snprintf(path, sizeof(path), EXECUTIONS "/%s", kept);
    nodes_wait(&w.b, path, 200, "\"status\":\"success\"");
    run(&w, "{" FAKE("exit") "}", 200, "\"status\":\"success\"", kept);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_keeps_nobody_waiting),
        cmocka_unit_test(an_end_that_did_not_come_is_asked_for),
        cmocka_unit_test(what_the_servers_lost_its_key_does_not_begin_again),
        cmocka_unit_test(what_another_leader_has_not_is_told_and_read_again),
        cmocka_unit_test(what_another_leader_has_not_may_still_be_begun_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
