/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of all nodes say by its id what became of an execution, each thing once; it counts.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <stdio.h>

#define SHORT "{" WAITING_OF("exit") "}"
/* The lines of the counter are in this order. */
#define COUNTED(sent, taken, over, again)                                                      \
    "\nskillvm_cluster_executions_total{what=\"sent\"} " sent                                  \
    "\nskillvm_cluster_executions_total{what=\"taken\"} " taken                                \
    "\nskillvm_cluster_executions_total{what=\"taken_over\"} " over                            \
    "\nskillvm_cluster_executions_total{what=\"begun_again\"} " again "\n"
#define TWO_SLOTS "limits:\n  max_running: 2\n"

struct world {
    struct waiting_world nodes;
    char a_log[128], b_log[128];
};

static void begin(struct world *w, const char *b_lines)
{
    struct waiting_world *n = &w->nodes;

    nats_begin(&n->nats, 1);
    nodes_start_logged(&n->a, &n->nats, "a", WAITING_LINES, w->a_log);
    nats_make(&n->a);
    nodes_start_logged(&n->b, &n->nats, "b", b_lines, w->b_log);
    nats_wait_node(&n->a, "\"node\":\"b\",\"alive\":true");
    harness_wait_ready(&n->a);
    harness_wait_ready(&n->b);
    nats_wait_node(&n->b, "\"takes_executions\":true");
    nodes_push_sure(&n->a, "demo");
    nodes_wait(&n->b, "/v1/skills", 200, "\"name\":\"demo\"");
}

/* Nothing runs there, and others may give it something. */
static void wait_free(const struct harness *h)
{
    harness_wait_metrics(h, "\nskillvm_executions_running 0\n", true);
    nats_wait_node(h, "\"takes_executions\":true");
}

/* One that runs and has ended. */
static void run(const struct harness *h, const char *json, char ret[38])
{
    struct answer a = harness_run(h, json);

    assert_int_equal(a.status, 200);
    nodes_take_id(&a, ret);
}

static void expect_line(const char *log, const char *id, const char *words)
{
    char line[160];

    snprintf(line, sizeof(line), " execution=%s %s\n", id, words);
    nodes_wait_log(log, line, 1);
    assert_int_equal(nodes_count_log(log, line), 1);
}

/* All lines of it but how it ended. */
static void expect_lines(const char *log, const char *id, unsigned n, unsigned ends)
{
    char part[64];

    snprintf(part, sizeof(part), " execution=%s ", id);
    nodes_wait_log(log, part, n + ends);
    assert_int_equal(nodes_count_log(log, part), n + ends);
    snprintf(part, sizeof(part), " execution=%s skill=", id);
    assert_int_equal(nodes_count_log(log, part), ends);
}

static void what_runs_where_it_came_is_followed(struct world *w)
{
    char id[38];

    run(&w->nodes.a, SHORT, id);
    expect_line(w->a_log, id, "accepted node=a");
    expect_line(w->a_log, id, "begun node=a");
    expect_lines(w->a_log, id, 2, 1);
    expect_lines(w->b_log, id, 0, 0);
}

static void what_is_passed_on_is_followed(struct world *w)
{
    char id[38];

    run(&w->nodes.a, SHORT, id);
    expect_line(w->a_log, id, "sent_to=b");
    expect_lines(w->a_log, id, 1, 0);
    expect_line(w->b_log, id, "taken_from=a");
    expect_line(w->b_log, id, "accepted node=b");
    expect_line(w->b_log, id, "begun node=b");
    expect_lines(w->b_log, id, 3, 1);
}

/* It was accepted where it waited. */
static void what_waits_and_is_given_is_followed(struct world *w)
{
    char id[38];

    waiting_fill(&w->nodes.b, w->nodes.busy_b);
    waiting_at_a(&w->nodes, id);
    waiting_end(&w->nodes.b, w->nodes.busy_b);
    nodes_wait(&w->nodes.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_line(w->a_log, id, "accepted node=a");
    expect_line(w->a_log, id, "sent_to=b");
    expect_line(w->b_log, id, "taken_from=a");
    expect_line(w->b_log, id, "begun node=b");
    expect_lines(w->b_log, id, 2, 1);
}

static void who_gives_and_takes_says_so(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w, WAITING_LINES);
    what_runs_where_it_came_is_followed(&w);
    wait_free(&w.nodes.a);
    waiting_fill(&w.nodes.a, w.nodes.busy_a);
    what_is_passed_on_is_followed(&w);
    wait_free(&w.nodes.b);
    what_waits_and_is_given_is_followed(&w);
    harness_wait_metrics(&w.nodes.a, COUNTED("2", "0", "0", "0"), true);
    harness_wait_metrics(&w.nodes.b, COUNTED("0", "2", "0", "0"), true);
    waiting_end(&w.nodes.a, w.nodes.busy_a);
    waiting_finish(&w.nodes);
}

static void who_takes_over_says_so(void **state)
{
    struct world w = {0};
    struct waiting_world *n = &w.nodes;
    char second[38], waits[38], runs[38];

    (void)state;
    begin(&w, TWO_SLOTS);
    waiting_fill(&n->b, n->busy_b);
    waiting_fill(&n->b, second);
    nodes_submit(&n->a, WAITING_RETRIED, runs);
    nodes_wait(&n->a, nodes_path_of(runs), 200, "\"status\":\"running\"");
    waiting_expect(n, runs, "\"again\":{", true);
    waiting_at_a(n, waits);
    assert_int_equal(harness_stop(&n->a, SIGKILL), -1);
    waiting_end(&n->b, n->busy_b);
    waiting_end(&n->b, second);
    nodes_wait(&n->b, nodes_path_of(waits), 200, "\"status\":\"success\"");
    waiting_again_at_b(n, runs);
    expect_line(w.b_log, waits, "taken_over_of=a");
    expect_line(w.b_log, waits, "begun node=b");
    expect_lines(w.b_log, waits, 2, 1);
    expect_line(w.b_log, runs, "begun_again_of=a");
    expect_line(w.b_log, runs, "begun node=b");
    harness_wait_metrics(&n->b, COUNTED("0", "0", "1", "1"), true);
    nodes_cancel(&n->b, runs);
    nodes_end(&n->b);
    harness_finish(&n->a);
    nats_end(&n->nats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_gives_and_takes_says_so),
        cmocka_unit_test(who_takes_over_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
