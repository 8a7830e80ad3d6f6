/* SPDX-License-Identifier: Apache-2.0 */
/* A node is lost: what waited there is run by others, and what ran has failed. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define expect harness_expect

#define SLOTS "limits:\n  max_running: 4\n"
#define MANY  80 /* more than one look sees to */
/* Of the tenant that the operator works for it begins an id that comes after nearly all. */
#define LATE                                                                                   \
    "{" WAITING_OF("ticks") ",\"timeout\":600,\"async\":true,\"idempotency_key\":\"k211\"}"
#define LATE_ID "exec_ffb7e60e17fca6a46f5583268e6c1a81"

/* What waits there another runs, and what it ran has failed. It comes back before it is missed.
 */
static void lose_and_begin_anew(const char *a_name)
{
    struct waiting_world w = {0};
    char id[38];

    waiting_begin_as(&w, a_name, WAITING_LINES);
    waiting_at_a(&w, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nats_start_node(&w.a, &w.nats, a_name, WAITING_LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    /* By itself, or by b where it was away for so long. */
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    waiting_end(&w.b, w.busy_b);
    waiting_finish(&w);
}

static void what_waited_at_a_lost_node_is_run(void **state)
{
    (void)state;
    lose_and_begin_anew("a");
}

static void a_node_that_has_its_hosts_name_is_no_other(void **state)
{
    (void)state;
    lose_and_begin_anew(NULL);
}

/*
 * A slot is free, but its tenant has all it may: also that waits for a turn at whatever node,
 * and at the one that took it over as where it came from.
 */
static void what_waits_for_its_tenant_alone_is_run_too(void **state)
{
    struct waiting_world w = {0};
    char runs[38], id[38], own[38];

    (void)state;
    waiting_begin_free(&w, "a", SLOTS, SLOTS);
    nodes_set_limits(&w.a, &w.b, "\"max_running\":1");
    waiting_fill(&w.a, runs);
    harness_wait_metrics(&w.b, "\nskillvm_cluster_elsewhere_running 1\n", true);
    waiting_at_a(&w, id);
    nodes_submit(&w.b, WAITING_BUSY, own);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(runs), 200, "\"status\":\"failed\"");
    nodes_wait(&w.b, nodes_path_of(own), 200, "\"status\":\"running\"");
    waiting_at_b(&w, id);
    waiting_end(&w.b, own);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

/* Who has no such image has room, and leaves what waits to who has. */
static void what_needs_an_image_waits_for_who_has_it(void **state)
{
    struct waiting_world w = {0};
    struct harness c = {0};
    char ids[8][38], runs[38], path[256];

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, SLOTS);
    nodes_stop(&w.b);
    snprintf(path, sizeof(path), "%s/data.erofs", w.b.dir);
    assert_int_equal(unlink(path), 0);
    nats_start_node(&w.b, &w.nats, "b", SLOTS);
    nats_start_node(&c, &w.nats, "c", WAITING_LINES);
    nats_wait_node(&w.b, NODE_JOINED);
    nats_wait_node(&c, NODE_JOINED);
    waiting_fill(&w.a, w.busy_a);
    waiting_fill(&c, runs);
    for (size_t i = 0; i < 8; i++)
        nodes_submit(&w.a, "{" WAITING_OF("exit") ",\"image\":\"data\",\"async\":true}",
                     ids[i]);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    waiting_end(&c, runs);
    for (size_t i = 0; i < 8; i++)
        nodes_wait(&c, nodes_path_of(ids[i]), 200, "\"status\":\"success\"");
    nodes_end(&c);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

/* However much waited there, and nobody has room for it: what ran fails. */
static void what_waits_keeps_no_end_waiting(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    waiting_fill(&w.b, w.busy_b);
    nodes_submit(&w.a, LATE, id);
    assert_string_equal(id, LATE_ID);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    for (unsigned i = 0; i < MANY; i++)
        nodes_submit(&w.a, "{" WAITING_OF("exit") ",\"async\":true}", id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(LATE_ID), 200,
               "the node a was lost while this execution ran");
    expect(harness_get(&w.b, nodes_path_of(w.busy_b)), 200, "\"status\":\"running\"");
    waiting_end(&w.b, w.busy_b);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

/* A node that stood still for long begins nothing that others began meanwhile. */
static void who_was_away_begins_nothing_twice(void **state)
{
    struct waiting_world w = {0};
    struct answer answer;
    char id[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    harness_freeze(w.a.pid);
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    /* Unless b has ended that too. */
    answer = harness_request(&w.a, "DELETE", nodes_path_of(w.busy_a), "", "", 0);
    answer_finish(&answer);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    waiting_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waited_at_a_lost_node_is_run),
        cmocka_unit_test(a_node_that_has_its_hosts_name_is_no_other),
        cmocka_unit_test(what_waits_for_its_tenant_alone_is_run_too),
        cmocka_unit_test(what_needs_an_image_waits_for_who_has_it),
        cmocka_unit_test(what_waits_keeps_no_end_waiting),
        cmocka_unit_test(who_was_away_begins_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
