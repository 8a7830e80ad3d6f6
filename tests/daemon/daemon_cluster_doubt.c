/* SPDX-License-Identifier: Apache-2.0 */
/* What servers have as a node's that has no row of it, or that of another: it ends all the
 * same.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBJECT "$KV.skillvm_executions."
#define SHORT   "{" WAITING_OF("exit") "}"
#define LATE    "{" WAITING_OF("hang") ",\"timeout\":10,\"async\":true}"

/* A record of another execution with the id of this one, and another moment. */
static void write_second(const struct waiting_world *w, const char *of, const char *id)
{
    static const char *const kept[] = {"schema", "tenant",  "node",   "instance",
                                       "skill",  "version", "digest", "seen"};
    char subject[96];
    char *text = nodes_record_of(&w->nats, of);
    cJSON *json = cJSON_Parse(text), *second = cJSON_CreateObject();

    assert_non_null(json);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        cJSON_AddItemToObject(second, kept[i], cJSON_DetachItemFromObject(json, kept[i]));
    cJSON_AddStringToObject(second, "key", "");
    cJSON_AddStringToObject(second, "request", "");
    snprintf(subject, sizeof(subject), "%llu", (unsigned long long)clock_realtime_ns());
    cJSON_AddRawToObject(second, "accepted_ns", subject);
    cJSON_AddFalseToObject(second, "cancel");
    free(text);
    text = cJSON_PrintUnformatted(second);
    snprintf(subject, sizeof(subject), SUBJECT "%s", id);
    nats_publish(&w->nats, subject, text, strlen(text));
    free(text);
    cJSON_Delete(json);
    cJSON_Delete(second);
}

/* Both say the same of it, which is known by this. */
static void expect_end(const struct waiting_world *w, const char *id, const char *part)
{
    nodes_wait(&w->b, nodes_path_of(id), 200, part);
    nodes_wait(&w->a, nodes_path_of(id), 200, part);
    nodes_wait(&w->a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    nodes_wait_same(&w->a, &w->b, nodes_path_of(id));
    nodes_wait_same(&w->a, &w->b, "/v1/executions");
}

/* What one node began twice under one id, where the servers have the second alone. */
static void what_was_begun_twice_ends(void **state)
{
    struct waiting_world w = {0};
    char of[38], id[38] = "";
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    /* So that there is a connection that the next one goes over. */
    a = nodes_run(&w.a, SHORT);
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, of);
    a = waiting_unconfirmed(&w, SHORT);
    snprintf(id, sizeof(id), "%s", strstr(a.body, "exec_"));
    answer_finish(&a);
    harness_freeze(w.a.pid);
    /* What it had in its memory alone is lost. */
    nats_kill(&w.nats, 0);
    nats_restart(&w.nats, 0);
    write_second(&w, of, id);
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.b, nodes_path_of(id), 200, "");
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    expect_end(&w, id, "was not confirmed");
    waiting_finish(&w);
}

/* Nobody else writes a node's rows until that is closed. */
static sqlite3 *lock_rows(const struct harness *h)
{
    sqlite3 *db = NULL;
    char path[256];

    snprintf(path, sizeof(path), "%s/skillvm.db", h->data);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 60000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

/* The first execution that the servers have. */
static void wait_record(const struct nats_world *w, char ret[38])
{
    const uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    char found[256];
    char *text;

    while (!(text = nats_last(w, NATS_RECORDS, SUBJECT ">", found)))
        assert_true(clock_monotonic_ns() < until_ns);
    free(text);
    snprintf(ret, 38, "%.37s", found + strlen(SUBJECT));
}

/* What the servers confirmed has no row, and they are gone when they are to hear of that. */
static void what_found_no_room_for_its_row_ends(void **state)
{
    struct waiting_world w = {0};
    struct answer a;
    sqlite3 *db;
    char id[38];
    int fd;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    db = lock_rows(&w.a);
    fd = harness_send(&w.a, "POST", "/v1/executions", "Content-Type: application/json\r\n",
                      SHORT, strlen(SHORT));
    wait_record(&w.nats, id);
    harness_freeze(w.nats.servers[0].pid);
    a = harness_read_answer(fd);
    assert_true(a.status >= 500);
    answer_finish(&a);
    close(fd);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(kill(w.nats.servers[0].pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    expect_end(&w, id, "\"status\":\"failed\"");
    waiting_finish(&w);
}

/*
 * What ran here has ended so, while the servers have another beginning of it that goes on: a
 * tells what it ran in the order of their ids.
 */
static void what_ran_here_keeps_its_end(void **state)
{
    struct waiting_world w = {0};
    char of[38], one[38], other[38], *first = one, *last = other;
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.b, SHORT);
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, of);
    nodes_submit(&w.a, LATE, one);
    nodes_submit(&w.a, LATE, other);
    if (strcmp(one, other) > 0) {
        first = other;
        last = one;
    }
    /* Who might take a for lost. */
    harness_freeze(w.b.pid);
    nats_kill(&w.nats, 0);
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 2\n");
    harness_freeze(w.a.pid);
    nats_restart(&w.nats, 0);
    write_second(&w, of, first);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    waiting_until(&w, last, "\"status\":\"timeout\"", "\"node\":\"a\"");
    harness_expect(harness_get(&w.a, nodes_path_of(first)), 200, "\"status\":\"timeout\"");
    assert_int_equal(kill(w.b.pid, SIGCONT), 0);
    waiting_finish(&w);
}

/* Who says that it took one has it: where that does not arrive nobody else begins it. */
static void what_another_node_took_is_not_begun_here(void **state)
{
    static char taken[] = "{\"schema\":1,\"accepted\":true,\"node\":\"b\"}";
    struct waiting_world w = {0};
    struct nats_answering b;
    struct answer a;
    char id[38] = "";

    (void)state;
    waiting_begin(&w);
    b = waiting_answer_as_b(&w, taken);
    a = harness_run(&w.a, "{" WAITING_OF("exit") ",\"async\":true}");
    nats_answer_end(&b);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body, "another node may have accepted this as exec_"));
    snprintf(id, sizeof(id), "%s", strstr(a.body, "exec_"));
    answer_finish(&a);
    harness_expect(harness_get(&w.a, nodes_path_of(id)), 404, "");
    assert_null(nodes_record_of(&w.nats, id));
    waiting_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_begun_twice_ends),
        cmocka_unit_test(what_found_no_room_for_its_row_ends),
        cmocka_unit_test(what_ran_here_keeps_its_end),
        cmocka_unit_test(what_another_node_took_is_not_begun_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
