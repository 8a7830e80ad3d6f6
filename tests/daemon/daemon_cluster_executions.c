/* SPDX-License-Identifier: Apache-2.0 */
/* Executions of several nodes: what one accepts and ends is so at all, whatever is lost. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define EXECUTIONS "/v1/executions"
#define FAKE(how)  "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"

static const char *path_of(const char *id, const char *rest)
{
    static char path[2][128];
    static unsigned n;

    n = !n;
    snprintf(path[n], sizeof(path[n]), EXECUTIONS "/%s%s", id, rest);
    return path[n];
}

static struct answer get_of(const struct harness *h, const char *id, const char *rest)
{
    return harness_get(h, path_of(id, rest));
}

/* Begins one, which runs then; where it is refused for a while, again. */
static void begin_json(const struct harness *h, const char *json, char ret[38])
{
    struct answer a = nodes_admin_sure(h, "POST", EXECUTIONS, json);

    assert_int_equal(a.status, 202);
    nodes_take_id(&a, ret);
    nodes_wait(h, path_of(ret, ""), 200, "\"status\":\"running\"");
}

/* Begins one that runs until it is ended. */
static void begin_long(const struct harness *h, char ret[38])
{
    begin_json(h, "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}", ret);
}

/* The same bytes at both, once each has heard what the other one did. */
static void expect_same(const struct waiting_world *w, const char *path)
{
    uint64_t until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    for (;; usleep(10000)) {
        struct answer a = harness_get(&w->a, path), b = harness_get(&w->b, path);
        bool is_same = a.status == 200 && b.status == 200 && a.len == b.len &&
                       memcmp(a.body, b.body, a.len) == 0;

        if (!is_same && clock_monotonic_ns() > until)
            fail_msg("%s is never the same: %d %.2000s and %d %.2000s", path, a.status, a.body,
                     b.status, b.body);
        answer_finish(&a);
        answer_finish(&b);
        if (is_same)
            return;
    }
}

/* Result, list, log, events and files, also where the result is too large for a record. */
static void what_ran_at_one_is_read_at_another(void **state)
{
    struct waiting_world w = {0};
    struct answer a;
    char small[38], large[38];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.a, "{" FAKE("files") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, small);
    nodes_wait(&w.b, path_of(small, ""), 200, "\"status\":\"success\"");
    expect_same(&w, path_of(small, ""));
    expect_same(&w, path_of(small, "/logs"));
    expect_same(&w, path_of(small, "/files"));
    expect(get_of(&w.b, small, "/files/a.txt"), 200, "alpha");
    expect(get_of(&w.b, small, "/events"), 200, "event: result");
    a = nodes_run(&w.a, "{" FAKE("greedy") "}");
    assert_int_equal(a.status, 200);
    assert_true(a.len > 4000000);
    nodes_take_id(&a, large);
    nodes_wait(&w.b, path_of(large, ""), 200, "\"status\":\"success\"");
    expect_same(&w, path_of(large, ""));
    expect_same(&w, EXECUTIONS);
    expect_same(&w, EXECUTIONS "?status=success&skill=demo");
    /* Those of a node that is new, and of one that was away. */
    nodes_stop(&w.b);
    a = nodes_run(&w.a, "{" FAKE("files") "}");
    nodes_take_id(&a, small);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    expect_same(&w, EXECUTIONS);
    expect(get_of(&w.b, small, "/files/a.txt"), 200, "alpha");
    nats_wait_node(&w.b, "\"conflicts\":0");
    waiting_finish(&w);
}

/* While it runs elsewhere, and until somebody ends it from there. */
static void what_runs_at_one_is_ended_from_another(void **state)
{
    struct waiting_world w = {0};
    char id[38];
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    begin_long(&w.a, id);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"running\"");
    nodes_wait(&w.b, path_of(id, "/logs"), 200, "tick");
    expect(get_of(&w.b, id, "/files/x"), 404, "has not ended yet");
    expect(harness_get(&w.b, EXECUTIONS "?status=accepted"), 200, id);
    /* A key of another tenant's sees none of it, nor ends it. */
    {
        char key[80], key_id[64], headers[160];

        nodes_tenant(&w.b, "other");
        nodes_key(&w.b, "other", key, key_id);
        snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", key);
        expect(harness_request(&w.b, "GET", path_of(id, ""), headers, "", 0), 404, "");
        expect(harness_request(&w.b, "DELETE", path_of(id, ""), headers, "", 0), 404, "");
    }
    expect(harness_request(&w.b, "DELETE", path_of(id, ""), "", "", 0), 202,
           "\"status\":\"cancelling\"");
    /* Its events come to the end, there too. */
    a = get_of(&w.b, id, "/events");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "tick"));
    assert_non_null(strstr(a.body, "\"status\":\"cancelled\""));
    answer_finish(&a);
    expect(get_of(&w.a, id, ""), 200, "\"status\":\"cancelled\"");
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"cancelled\"");
    expect_same(&w, path_of(id, ""));
    expect(harness_request(&w.b, "DELETE", path_of(id, ""), "", "", 0), 409,
           "has ended already");
    waiting_finish(&w);
}

/* A key begins one execution, wherever it comes. */
static void a_key_begins_one_at_all_nodes(void **state)
{
    static const char json[] = "{" FAKE("exit") ",\"input\":1,\"idempotency_key\":\"k1\"}";
    static const char running[] = "{" FAKE("ticks") ",\"timeout\":600,\"async\":true,"
                                                    "\"idempotency_key\":\"k2\"}";
    struct waiting_world w = {0};
    struct answer a, b;
    char id[38], other[38];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.a, json);
    b = nodes_run(&w.b, json);
    assert_int_equal(a.status, 200);
    assert_int_equal(b.status, 200);
    assert_string_equal(a.body, b.body);
    answer_finish(&a);
    answer_finish(&b);
    expect(harness_run(&w.b, "{" FAKE("exit") ",\"input\":2,\"idempotency_key\":\"k1\"}"), 409,
           "another request began");
    a = nodes_run(&w.a, running);
    nodes_take_id(&a, id);
    b = nodes_run(&w.b, running);
    assert_int_equal(b.status, 202);
    nodes_take_id(&b, other);
    assert_string_equal(id, other);
    expect(harness_request(&w.b, "DELETE", path_of(id, ""), "", "", 0), 202,
           "\"status\":\"cancelling\"");
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"cancelled\"");
    waiting_finish(&w);
}

/* A node that is killed: what it ran fails at all nodes, and at itself once it is back. */
static void what_a_lost_node_ran_has_failed(void **state)
{
    struct waiting_world w = {0};
    char done[38], lost[38];
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.b, "{" FAKE("files") "}");
    nodes_take_id(&a, done);
    begin_long(&w.b, lost);
    assert_int_equal(harness_stop(&w.b, SIGKILL), -1);
    nodes_wait(&w.a, path_of(lost, ""), 200, "the node b was lost while this execution ran");
    expect(get_of(&w.a, lost, ""), 200, "\"status\":\"failed\"");
    expect(get_of(&w.a, done, "/files/a.txt"), 200, "alpha");
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.b, path_of(lost, ""), 200, "the node b was lost while this execution ran");
    expect_same(&w, EXECUTIONS);
    expect_same(&w, path_of(lost, ""));
    waiting_finish(&w);
}

/* One that comes back at once says itself what it lost. */
static void who_comes_back_tells_what_it_lost(void **state)
{
    struct waiting_world w = {0};
    char lost[38];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    begin_long(&w.b, lost);
    assert_int_equal(harness_stop(&w.b, SIGKILL), -1);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.a, path_of(lost, ""), 200, "\"status\":\"failed\"");
    nodes_wait(&w.b, path_of(lost, ""), 200, "\"status\":\"failed\"");
    nodes_wait(&w.b, "/metrics", 200, "skillvm_cluster_untold 0\n");
    expect_same(&w, path_of(lost, ""));
    waiting_finish(&w);
}

/* Without servers what runs goes on and is told later, and nothing is accepted. */
static void without_servers_nothing_is_accepted(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    begin_long(&w.a, id);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"running\"");
    nats_kill(&w.nats, 0);
    nats_wait_node(&w.a, "\"state\":\"cut_off\",\"reason\":\"unreachable\"");
    expect(harness_run(&w.a, "{" FAKE("exit") "}"), 503, "cluster_unavailable");
    expect(harness_request(&w.a, "DELETE", path_of(id, ""), "", "", 0), 202, "");
    nodes_wait(&w.a, path_of(id, ""), 200, "\"status\":\"cancelled\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 1\n");
    nats_restart(&w.nats, 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    /* Both say the same of it: that it was cancelled, or that its node was lost. */
    expect_same(&w, path_of(id, ""));
    waiting_finish(&w);
}

/* What one node could not have confirmed another one begins: that is what counts. */
static void a_key_that_was_not_confirmed_is_another_nodes(void **state)
{
    static const char json[] = "{" FAKE("ticks") ",\"timeout\":600,\"async\":true,"
                                                 "\"idempotency_key\":\"k\"}";
    struct waiting_world w = {0};
    char id[38], later[38];
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    /* So that there is a connection that it goes over. */
    expect(nodes_run(&w.a, "{" FAKE("exit") "}"), 200, "\"status\":\"success\"");
    /* Whom it would ask whether it knows the key. */
    nodes_stop(&w.b);
    nats_wait_gone(&w.a, "b");
    /* The server has it in its memory alone, and is lost with it. */
    a = waiting_unconfirmed(&w, json);
    answer_finish(&a);
    harness_freeze(w.a.pid);
    nats_kill(&w.nats, 0);
    nats_restart(&w.nats, 0);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    harness_wait_ready(&w.b);
    /* Once the entry of the other node is gone, which stands still. */
    begin_json(&w.b, json, id);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    a = nodes_run(&w.b, "{" FAKE("exit") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, later);
    nodes_wait(&w.a, path_of(later, ""), 200, "\"status\":\"success\"");
    expect(get_of(&w.b, id, ""), 200, "\"status\":\"running\"");
    /* And is so at the first, which has it end too. */
    nodes_wait(&w.a, path_of(id, ""), 200, "\"status\":\"running\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    expect(harness_request(&w.a, "DELETE", path_of(id, ""), "", "", 0), 202, "");
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"cancelled\"");
    nodes_wait(&w.a, path_of(id, ""), 200, "\"status\":\"cancelled\"");
    expect_same(&w, path_of(id, ""));
    expect_same(&w, EXECUTIONS);
    waiting_finish(&w);
}

/* CPU time of a day counts over all nodes. */
static void cpu_time_counts_over_all_nodes(void **state)
{
    struct waiting_world w = {0};
    char key[80], key_id[64], headers[160];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    expect(nodes_admin_sure(&w.a, "POST", "/v1/admin/tenants",
                            "{\"name\":\"busy\",\"limits\":{\"cpu_ms_per_day\":1}}"),
           201, "");
    nodes_key(&w.a, "busy", key, key_id);
    snprintf(headers, sizeof(headers),
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n", key);
    for (unsigned i = 0;; i++) {
        static const char json[] = "{\"code\":\"print(1)\",\"lang\":\"python\","
                                   "\"env\":{\"FAKE\":\"burn\"}}";
        struct answer a =
            harness_request(&w.a, "POST", EXECUTIONS, headers, json, strlen(json));
        int status = a.status;

        if (status != 200 && status != 429)
            fail_msg("%d %s", a.status, a.body);
        answer_finish(&a);
        if (status == 429)
            break;
        if (i == 100)
            fail_msg("its CPU time is never used up");
    }
    nodes_wait_key(&w.b, key, 200);
    for (unsigned i = 0;; i++) {
        static const char json[] = "{\"code\":\"print(1)\",\"lang\":\"python\"}";
        struct answer a =
            harness_request(&w.b, "POST", EXECUTIONS, headers, json, strlen(json));
        bool is_used_up = a.status == 429 && answer_has(&a, "quota_exceeded");

        answer_finish(&a);
        if (is_used_up)
            break;
        if (i == NODES_LOOKS)
            fail_msg("the other node never knows of it");
        harness_pause(i);
    }
    waiting_finish(&w);
}

/* What does not fit the servers is told without it, and takes no room of what comes after. */
static void what_executions_leave_has_a_room_of_its_own(void **state)
{
    struct waiting_world w = {0};
    char large[38], small[38];
    struct answer a;

    (void)state;
    nodes_begin_two(&w.nats, &w.a, "  artifacts_bytes: 1MiB\n", &w.b, "");
    assert_int_equal(harness_push(&w.a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w.b, "/v1/skills", 200, "\"name\":\"demo\"");
    a = nodes_run(&w.a, "{" FAKE("greedy") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, large);
    expect(get_of(&w.a, large, ""), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, EXECUTIONS "?status=success", 200, large);
    expect(get_of(&w.b, large, ""), 503, "object_unavailable");
    a = nodes_run(&w.a, "{" FAKE("files") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, small);
    nodes_wait(&w.b, path_of(small, ""), 200, "\"status\":\"success\"");
    expect(get_of(&w.b, small, "/files/a.txt"), 200, "alpha");
    assert_int_equal(harness_push(&w.b, "more", "1.0", "print(2)"), 201);
    waiting_finish(&w);
}

/* The others have a large result from the servers, and who ran it its own. */
static void who_ran_it_needs_no_servers_for_its_result(void **state)
{
    struct waiting_world w = {0};
    char id[38];
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.a, "{" FAKE("flood") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, id);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"success\"");
    nats_kill(&w.nats, 0);
    nats_wait_node(&w.a, "\"state\":\"cut_off\",\"reason\":\"unreachable\"");
    expect(get_of(&w.a, id, ""), 200, "\"status\":\"success\"");
    expect(get_of(&w.a, id, "/logs"), 200, "xxxx");
    expect(get_of(&w.a, id, "/events"), 200, "event: result");
    nats_restart(&w.nats, 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    waiting_finish(&w);
}

/* Without the bucket of what they leave none is accepted; made anew it takes what comes. */
static void without_a_place_for_what_they_leave_it_is_told(void **state)
{
    struct waiting_world w = {0};
    char before[38], after[38];
    struct answer a;

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.a, "{" FAKE("files") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, before);
    nats_delete_bucket(&w.nats, "OBJ_skillvm_artifacts");
    nats_wait_node(&w.a, NODE_CUT_OFF("no_objects"));
    nats_wait_node(&w.b, NODE_CUT_OFF("no_objects"));
    nodes_wait(&w.a, "/ready", 503, "a bucket of objects");
    expect(harness_run(&w.a, "{" FAKE("files") "}"), 503, "cluster_unavailable");
    /* Where it ran it is there as before. */
    expect(get_of(&w.a, before, "/files/a.txt"), 200, "alpha");
    expect(nats_ask(&w.a, "POST", ""), 200, "\"made\":true");
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    a = nodes_run(&w.a, "{" FAKE("files") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, after);
    nodes_wait(&w.b, path_of(after, ""), 200, "\"status\":\"success\"");
    expect(get_of(&w.b, after, "/files/a.txt"), 200, "alpha");
    waiting_finish(&w);
}

/* Who told them tells them again, and a node that comes later knows of it. */
static void what_servers_lost_is_told_anew(void **state)
{
    struct waiting_world w = {0};
    struct harness c = {0};
    struct answer a;
    char id[38];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.a, "{" FAKE("exit") "}");
    assert_int_equal(a.status, 200);
    nodes_take_id(&a, id);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"success\"");
    nats_delete_bucket(&w.nats, NATS_RECORDS);
    nats_wait_node(&w.a, NODE_CUT_OFF("bucket_gone"));
    nats_make(&w.a);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_start_node(&c, &w.nats, "c", "");
    nats_wait_node(&c, NODE_JOINED);
    nodes_wait(&c, path_of(id, ""), 200, "\"status\":\"success\"");
    expect_same(&w, path_of(id, ""));
    nodes_end(&c);
    waiting_finish(&w);
}

/* Nonsense of a broken node's is left out, counted, and takes nothing away. */
static void nonsense_changes_nothing(void **state)
{
    struct waiting_world w = {0};
    struct answer a;
    char id[38], subject[128];

    (void)state;
    waiting_begin_free(&w, "a", "", "");
    a = nodes_run(&w.a, "{" FAKE("files") "}");
    nodes_take_id(&a, id);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"status\":\"success\"");
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    nats_publish(&w.nats, subject, "{}", 2);
    nats_publish(&w.nats, "$KV.skillvm_executions.exec_x", "{}", 2);
    nodes_wait(&w.b, "/v1/admin/cluster", 200, "wrong_name at \\\"exec_x\\\"");
    nodes_wait(&w.a, "/v1/admin/cluster", 200, "wrong_name at \\\"exec_x\\\"");
    expect_same(&w, path_of(id, ""));
    expect_same(&w, EXECUTIONS);
    expect(get_of(&w.b, id, "/files/a.txt"), 200, "alpha");
    waiting_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_at_one_is_read_at_another),
        cmocka_unit_test(what_runs_at_one_is_ended_from_another),
        cmocka_unit_test(a_key_begins_one_at_all_nodes),
        cmocka_unit_test(what_a_lost_node_ran_has_failed),
        cmocka_unit_test(who_comes_back_tells_what_it_lost),
        cmocka_unit_test(without_servers_nothing_is_accepted),
        cmocka_unit_test(a_key_that_was_not_confirmed_is_another_nodes),
        cmocka_unit_test(cpu_time_counts_over_all_nodes),
        cmocka_unit_test(what_executions_leave_has_a_room_of_its_own),
        cmocka_unit_test(who_ran_it_needs_no_servers_for_its_result),
        cmocka_unit_test(without_a_place_for_what_they_leave_it_is_told),
        cmocka_unit_test(what_servers_lost_is_told_anew),
        cmocka_unit_test(nonsense_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
