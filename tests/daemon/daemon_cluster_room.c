/* SPDX-License-Identifier: Apache-2.0 */
/* A node whose machines do not start takes nothing that others would run. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include "base/clock.h"
#include "tests/unit/fake_built.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define expect harness_expect

#define SHORT    "{" WAITING_OF("exit") "}"
#define TAKES    "\"takes_executions\":true"
#define TAKES_NO "\"takes_executions\":false"
#define RAN(n)   "\nskillvm_executions_total{status=\"success\"} " n "\n"
#define IDLE     "\nskillvm_executions_running 0\n"
#define ROUNDS   20
#define FAILED_0 "\nskillvm_executions_total{status=\"failed\"} 0\n"

/* Starts b with a kernel of which it has no snapshot. */
static void restart_b(struct waiting_world *w, const char *kernel, const char *why)
{
    nodes_stop(&w->b);
    fake_built(w->b.dir, "vmlinux", kernel);
    nats_start_node(&w->b, &w->nats, "b", WAITING_LINES);
    nats_wait_node(&w->b, NODE_JOINED);
    nodes_wait(&w->b, "/ready", 503, why);
}

/* What a has no room for waits there, and runs there. */
static void expect_one_at_a(const struct waiting_world *w)
{
    char held[38], id[38];

    waiting_fill(&w->a, held);
    waiting_at_a(w, id);
    waiting_expect(w, id, "\"node\":\"a\"", true);
    waiting_end(&w->a, held);
    nodes_wait(&w->a, nodes_path_of(id), 200, "\"status\":\"success\"");
    harness_wait_metrics(&w->a, IDLE, true);
}

/* Often enough that b would have taken one, a moment after it has joined. */
static void expect_waiting_at_a(const struct waiting_world *w)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        expect_one_at_a(w);
    harness_wait_metrics(&w->a, RAN("20"), true);
    harness_wait_metrics(&w->b, FAILED_0, true);
    nats_wait_node(&w->b, TAKES_NO);
}

/* What a has no room for b runs. */
static void expect_taken_by_b(const struct waiting_world *w)
{
    char held[38];

    nats_wait_node(&w->b, TAKES);
    waiting_fill(&w->a, held);
    expect(harness_run(&w->a, SHORT), 200, "\"status\":\"success\"");
    harness_wait_metrics(&w->b, RAN("1"), true);
    waiting_end(&w->a, held);
}

/* Also what comes to it itself goes where it can run. */
static void who_has_no_snapshot_takes_none(void **state)
{
    struct waiting_world w = {0};

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    restart_b(&w, "boot=failed", "no KVM today");
    expect_waiting_at_a(&w);
    nats_wait_node(&w.a, TAKES);
    expect(harness_run(&w.b, SHORT), 200, "\"status\":\"success\"");
    harness_wait_metrics(&w.a, RAN("21"), true);
    harness_wait_metrics(&w.b, FAILED_0, true);
    waiting_finish(&w);
}

static void who_makes_its_snapshot_takes_some_then(void **state)
{
    struct waiting_world w = {0};

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    /* Of which it has a multiple for its boot, and that has to last for all of them. */
    setenv("SKILLVM_GRACE", "60", 1);
    restart_b(&w, "boot=wait", "booting the guest once");
    unsetenv("SKILLVM_GRACE");
    expect_waiting_at_a(&w);
    harness_write(&w.b, "vmlinux", "boot");
    expect_taken_by_b(&w);
    waiting_finish(&w);
}

/* Its own first ones fail, which shows it; what comes then another runs. */
static void whose_machines_do_not_start_takes_none(void **state)
{
    struct waiting_world w = {0};
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    unsigned failed = 0;
    bool is_run = false;

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    nodes_stop(&w.b);
    fake_built(w.b.dir, "python.erofs", "restore=failed");
    nats_start_node(&w.b, &w.nats, "b", WAITING_LINES);
    harness_wait_ready(&w.b);
    nats_wait_node(&w.b, NODE_JOINED);
    nats_wait_node(&w.a, TAKES);
    while (!is_run) {
        struct answer a = harness_run(&w.b, SHORT);

        is_run = answer_has(&a, "\"status\":\"success\"");
        failed += !is_run;
        answer_finish(&a);
        harness_wait_metrics(&w.b, IDLE, true);
        if (clock_monotonic_ns() > until_ns)
            fail_msg("%u fail, and none runs at another node", failed);
    }
    assert_true(failed >= 3);
    harness_wait_metrics(&w.a, RAN("1"), true);
    waiting_finish(&w);
}

/* What waited at a node that is lost is left to who can run it. */
static void who_has_no_snapshot_takes_nothing_over(void **state)
{
    struct waiting_world w = {0};
    struct harness c = {0};
    char runs[38], id[38];

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    restart_b(&w, "boot=failed", "no KVM today");
    nats_start_node(&c, &w.nats, "c", WAITING_LINES);
    nats_wait_node(&c, NODE_JOINED);
    harness_wait_ready(&c);
    waiting_fill(&c, runs);
    waiting_fill(&w.a, w.busy_a);
    waiting_at_a(&w, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "the node a was lost");
    waiting_end(&c, runs);
    nodes_wait(&c, nodes_path_of(id), 200, "\"status\":\"success\"");
    harness_wait_metrics(&c, RAN("1"), true);
    nodes_end(&c);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

/* It is all that is left: what waits hears why it does not run. */
static void the_last_one_tells_why_it_runs_nothing(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    restart_b(&w, "boot=failed", "no KVM today");
    waiting_fill(&w.a, w.busy_a);
    waiting_at_a(&w, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(id), 200, "no KVM today");
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_snapshot_takes_none),
        cmocka_unit_test(who_makes_its_snapshot_takes_some_then),
        cmocka_unit_test(whose_machines_do_not_start_takes_none),
        cmocka_unit_test(who_has_no_snapshot_takes_nothing_over),
        cmocka_unit_test(the_last_one_tells_why_it_runs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
