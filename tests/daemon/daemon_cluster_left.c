/* SPDX-License-Identifier: Apache-2.0 */
/* What is left to other nodes, and those missed something of it, or cannot read what it needs.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSION(data)                                                                          \
    "\"skill\":\"demo\",\"session_id\":\"kept\",\"env\":{\"FAKE\":\"session\",\"FAKE_DATA\":"  \
    "\"" data "\"}"
#define DIGEST "\"digest\":\""
#define OTHER(how)                                                                             \
    "{\"skill\":\"other\",\"version\":\"1.0\",\"env\":{\"FAKE\":\"" how "\"},\"async\":true}"
#define OTHER_AGAIN                                                                            \
    "{\"skill\":\"other\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":600,\"async\":true,"        \
    "\"retries\":1}"
/* Of the tenant that the operator works for it begins an id that comes after nearly all. */
#define LATE    "{" WAITING_OF("exit") ",\"async\":true,\"idempotency_key\":\"k211\"}"
#define LATE_ID "exec_ffb7e60e17fca6a46f5583268e6c1a81"

/* a is gone. */
static void finish(struct waiting_world *w)
{
    nodes_end(&w->b);
    harness_finish(&w->a);
    nats_end(&w->nats);
}

/* Takes the statement over. How many rows it changed. */
static int change_database(const struct harness *h, char *sql)
{
    sqlite3 *db = NULL;
    char path[256];
    int n;

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    n = sqlite3_changes(db);
    sqlite3_free(sql);
    sqlite3_close(db);
    return n;
}

/* As if a node had heard that one was accepted, and nothing since. */
static void miss_offer(const struct harness *h, const char *id)
{
    char *sql = sqlite3_mprintf("UPDATE records SET waits = 0 WHERE id = %Q", id);

    assert_int_equal(change_database(h, sql), 1);
}

static void what_others_may_begin_does_not_fail_where_that_was_missed(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    miss_offer(&w.b, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    finish(&w);
}

static void what_may_begin_again_does_not_fail_where_that_was_missed(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_retried(&w, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"running\"");
    miss_offer(&w.b, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    waiting_again_at_b(&w, id);
    nodes_cancel(&w.b, id);
    finish(&w);
}

/* What a row says of whose one is; "": this node's. */
static void say_whose(const struct harness *h, const char *id, const char *process)
{
    char *sql = sqlite3_mprintf("UPDATE records SET node = %Q, instance = %Q WHERE id = %Q",
                                process, process, id);

    assert_int_equal(change_database(h, sql), 1);
}

/* A node that lags hears of who had one before when it has taken it over itself: it is begun
 * once what came behind that is heard of. */
static void who_had_it_before_keeps_nobody_from_beginning_it(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    say_whose(&w.a, id, "c");
    waiting_end(&w.a, w.busy_a);
    nodes_wait(&w.a, nodes_path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    harness_wait_metrics(&w.a, "\nskillvm_executions_queued 0\n", true);
    say_whose(&w.a, id, "");
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    waiting_end(&w.b, w.busy_b);
    waiting_finish(&w);
}

/* Registers one more at a, which b knows; "read": and has. */
static void push(const struct waiting_world *w, const char *name, bool read)
{
    char path[64];

    assert_int_equal(harness_push(&w->a, name, "1.0", "print(2)"), 201);
    snprintf(path, sizeof(path), "/v1/skills/%s/1.0", name);
    if (read)
        nodes_wait(&w->b, path, 200, "main.py");
    else
        nodes_wait(&w->b, "/v1/skills", 200, name);
}

/* Removes what was pushed last: all of it as an operator does it ("M"), or its chunks ("C"). */
static void remove_last_object(const struct waiting_world *w, const char *which)
{
    char subjects[64], subject[256];

    snprintf(subjects, sizeof(subjects), "$O.skillvm_objects.%s.>", which);
    free(nats_last(&w->nats, NATS_OBJECTS, subjects, subject));
    nats_purge(&w->nats, NATS_OBJECTS, subject);
}

/* Its skill is nowhere any more: it says which object that was. */
static void what_needs_an_object_that_is_gone_fails(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    push(&w, "other", false);
    nodes_submit(&w.a, OTHER("exit"), id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    remove_last_object(&w, "M");
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "the servers of the cluster have no object");
    waiting_expect(&w, id, "\"status\":\"failed\"", true);
    finish(&w);
}

/* It has one retry, which who claimed it and was lost before it began has not used. */
static void what_was_claimed_and_not_begun_costs_no_retry(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    push(&w, "other", false);
    /* b, which has not the skill yet, is to take it from the one that is lost, and not before.
     */
    waiting_fill(&w.b, w.busy_b);
    nodes_submit(&w.a, OTHER_AGAIN, id);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"running\"");
    waiting_end(&w.b, w.busy_b);
    harness_wait_metrics(&w.b, "\nskillvm_executions_running 0\n", true);
    /* b waits for them for some seconds before it begins it. */
    remove_last_object(&w, "C");
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    waiting_until(&w, id, "\"node\":\"b\"", "");
    assert_int_equal(harness_stop(&w.b, SIGKILL), -1);
    waiting_expect(&w, id, "\"status\"", false);
    nats_start_node(&w.a, &w.nats, "a", WAITING_LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    waiting_expect(&w, id, "\"again\"", false);
    nodes_cancel(&w.a, id);
    harness_expect(harness_get(&w.a, nodes_path_of(id)), 200, WAITING_AGAIN);
    nodes_end(&w.a);
    harness_finish(&w.b);
    nats_end(&w.nats);
}

/* Where a node keeps what a skill holds. */
static void find_object(const struct harness *h, const char *skill_path, char ret[256])
{
    struct answer a = harness_get(h, skill_path);
    const char *digest = strstr(a.body, DIGEST);

    assert_non_null(digest);
    snprintf(ret, 256, "%s/objects/%.64s", h->data, digest + strlen(DIGEST));
    answer_finish(&a);
}

/* It is looked at before what comes after it, and is run once it can be. */
static void what_cannot_be_begun_now_keeps_nobody_waiting(void **state)
{
    struct waiting_world w = {0};
    char id[38], late[38], path[256], aside[264];

    (void)state;
    waiting_begin(&w);
    push(&w, "other", true);
    nodes_submit(&w.a, OTHER("exit"), id);
    nodes_submit(&w.a, LATE, late);
    assert_string_equal(late, LATE_ID);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    nodes_wait(&w.b, nodes_path_of(late), 200, "\"status\":\"accepted\"");
    find_object(&w.b, "/v1/skills/other/1.0", path);
    snprintf(aside, sizeof(aside), "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(late), 200, "\"status\":\"success\"");
    harness_expect(harness_get(&w.b, nodes_path_of(id)), 200, "\"status\":\"accepted\"");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(aside, path), 0);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    finish(&w);
}

/* Whoever cannot run what another node only gives away has no word in it. */
static void what_only_others_cannot_begin_waits_where_it_is(void **state)
{
    struct waiting_world w = {0};
    char id[38], next[38];

    (void)state;
    waiting_begin(&w);
    push(&w, "other", false);
    nodes_submit(&w.a, OTHER("exit"), id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    harness_expect(harness_request(&w.b, "DELETE", "/v1/skills/other/1.0", "", "", 0), 204, "");
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(w.busy_b), 200, "\"status\":\"cancelled\"");
    waiting_tell_b(&w, id);
    /* Behind that. */
    nodes_submit(&w.a, "{" WAITING_OF("exit") ",\"async\":true}", next);
    nodes_wait(&w.a, nodes_path_of(next), 200, "\"status\":\"success\"");
    waiting_expect(&w, next, "\"node\":\"b\"", true);
    waiting_end(&w.a, w.busy_a);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    waiting_finish(&w);
}

/* Its turn comes while another node has it, which then puts it back: it is found again. */
static void what_is_put_back_too_late_is_run(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    push(&w, "other", false);
    nodes_submit(&w.a, OTHER("exit"), id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    /* b waits for them for some seconds before it puts it back. */
    remove_last_object(&w, "C");
    waiting_end(&w.b, w.busy_b);
    waiting_until(&w, id, "\"node\":\"b\"", "");
    waiting_end(&w.a, w.busy_a);
    waiting_until(&w, id, "\"node\":\"a\"", "");
    waiting_fill(&w.b, w.busy_b);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    waiting_end(&w.b, w.busy_b);
    waiting_finish(&w);
}

/* Its row is another process's, or gone, when it ends: nothing names what it left. */
static void what_a_session_was_to_have_goes_with_its_end(void **state)
{
    static const char lose_ends[] = "CREATE TRIGGER lose BEFORE UPDATE OF finished_ns ON "
                                    "executions BEGIN SELECT RAISE(IGNORE); END";
    struct nats_world nats = {0};
    struct harness a = {0};
    unsigned objects;
    char id[38];

    (void)state;
    nats_begin(&nats, 1);
    nats_start_node(&a, &nats, "a", WAITING_LINES);
    nats_make(&a);
    nats_wait_node(&a, NODE_JOINED);
    harness_wait_ready(&a);
    assert_int_equal(harness_push(&a, "demo", "1.0", "print(1)"), 201);
    harness_expect(harness_run(&a, "{" SESSION("a=one") "}"), 200, "\"committed\":true");
    objects = harness_count_files(&a, "objects");
    (void)change_database(&a, sqlite3_mprintf("%s", lose_ends));
    nodes_submit(&a, "{" SESSION("b=two") ",\"async\":true}", id);
    harness_wait_metrics(&a, "\nskillvm_executions_total{status=\"success\"} 2\n", true);
    nodes_wait_objects(&a, objects);
    harness_expect(harness_get(&a, "/v1/sessions/kept/files/a"), 200, "one");
    (void)change_database(&a, sqlite3_mprintf("DROP TRIGGER lose"));
    nodes_end(&a);
    nats_end(&nats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_may_begin_does_not_fail_where_that_was_missed),
        cmocka_unit_test(what_may_begin_again_does_not_fail_where_that_was_missed),
        cmocka_unit_test(who_had_it_before_keeps_nobody_from_beginning_it),
        cmocka_unit_test(what_needs_an_object_that_is_gone_fails),
        cmocka_unit_test(what_was_claimed_and_not_begun_costs_no_retry),
        cmocka_unit_test(what_cannot_be_begun_now_keeps_nobody_waiting),
        cmocka_unit_test(what_only_others_cannot_begin_waits_where_it_is),
        cmocka_unit_test(what_is_put_back_too_late_is_run),
        cmocka_unit_test(what_a_session_was_to_have_goes_with_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
