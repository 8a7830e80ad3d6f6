/* SPDX-License-Identifier: Apache-2.0 */
/* What another node has the snapshot of begins there, while that node has room. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define NODES 3
#define TRIES 4u
#define RUNS  12u /* which chance alone gives to one of two once in 4,096 times */
#define A     (&w.nodes[0])
#define B     (&w.nodes[1])
#define C     (&w.nodes[2])
#define WARM  "{\"skill\":\"warm\",\"env\":{\"FAKE\":\"exit\"}}"
#define LONG(of)                                                                               \
    "{\"skill\":\"" of "\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":600,\"async\":true}"
#define PLAIN   "{" WAITING_OF("exit") "}"
#define RAN(n)  "\nskillvm_executions_total{status=\"success\"} " n "\n"
#define SENT(n) "\nskillvm_cluster_executions_total{what=\"sent\"} " n "\n"
#define KEPT(n) "\nskillvm_snapshots_kept " n "\n"
#define IDLE    "\nskillvm_executions_running 0\n"
#define ASKS    "\nskillvm_executions_queued 1\n" /* of another node */

struct world {
    struct nats_world nats;
    struct harness nodes[NODES];
    size_t n;
    bool
        is_b_apart; /* it has one image less: what others send to one of their own is not its */
};

/* With an image that has a module which is worth a snapshot. */
static void start(struct world *w, size_t i)
{
    static const char *const names[NODES] = {"a", "b", "c"};
    char other_image[128];

    harness_init(&w->nodes[i], "boot", "restore");
    harness_write(&w->nodes[i], "python.modules", "heavy\n");
    snprintf(other_image, sizeof(other_image), "%s/data.erofs", w->nodes[i].dir);
    if (i == 1 && w->is_b_apart)
        assert_int_equal(unlink(other_image), 0);
    nats_start_node(&w->nodes[i], &w->nats, names[i], WAITING_LINES);
    if (i == 0)
        nats_make(&w->nodes[0]);
    nats_wait_node(&w->nodes[i], NODE_JOINED);
    harness_wait_ready(&w->nodes[i]);
}

static void begin(struct world *w, size_t n)
{
    nats_begin(&w->nats, 1);
    for (w->n = 0; w->n < n; w->n++)
        start(w, w->n);
    assert_int_equal(harness_push(&w->nodes[0], "demo", "1.0", "print(1)"), 201);
    assert_int_equal(harness_push(&w->nodes[0], "warm", "1.0", "import heavy"), 201);
    for (size_t i = 1; i < n; i++)
        nodes_wait(&w->nodes[i], "/v1/skills", 200, "\"name\":\"warm\"");
}

static void end(struct world *w)
{
    while (w->n > 0)
        nodes_end(&w->nodes[--w->n]);
    nats_end(&w->nats);
}

/* One that runs at a node, which has its snapshot from then on; a knows it. */
static void warm_up(const struct harness *a, const struct harness *node)
{
    expect(harness_run(node, WARM), 200, "\"status\":\"success\"");
    harness_wait_metrics(node, RAN("1"), true);
    harness_wait_metrics(node, KEPT("1"), true);
    harness_wait_metrics(node, IDLE, true);
    nats_wait_node(a, "\"snapshots\":1");
    nats_wait_node(a, "\"running\":0,\"waiting\":0");
    nats_wait_node(node, "\"takes_executions\":true");
}

static bool has_run(const struct harness *h, unsigned n)
{
    char line[sizeof(RAN("")) + 10];

    snprintf(line, sizeof(line), RAN("%u"), n);
    return harness_metrics_have(h, line);
}

/* What a busy machine is seldom too late for: others may hear too late of a node's room. */
static void expect_once(bool (*is_so)(void))
{
    unsigned tries = 1;

    for (; !is_so(); tries++)
        assert_true(tries < TRIES);
}

static bool is_run_where_it_is(void)
{
    struct world w = {0};
    bool is_sent;

    begin(&w, 2);
    warm_up(A, B);
    expect(harness_run(A, PLAIN), 200, "\"status\":\"success\"");
    harness_wait_metrics(A, RAN("1"), true);
    expect(harness_run(A, WARM), 200, "\"status\":\"success\"");
    harness_until(has_run(A, 2) || has_run(B, 2));
    is_sent = has_run(B, 2);
    if (is_sent) {
        harness_wait_metrics(A, RAN("1"), true);
        harness_wait_metrics(A, SENT("1"), true);
        harness_wait_metrics(A, KEPT("0"), true);
        /* What b has itself stays there. */
        harness_wait_metrics(B, IDLE, true);
        expect(harness_run(B, WARM), 200, "\"status\":\"success\"");
        harness_wait_metrics(B, RAN("3"), true);
    }
    end(&w);
    return is_sent;
}

/* Though a has a free slot; what needs no more than every node has stays where it comes. */
static void who_has_the_snapshot_runs_it(void **state)
{
    (void)state;
    expect_once(is_run_where_it_is);
}

/* And has it then, too. */
static void where_it_has_no_room_another_runs_it(void **state)
{
    struct world w = {0};
    char held[38];

    (void)state;
    begin(&w, 2);
    warm_up(A, B);
    waiting_fill(B, held);
    expect(harness_run(A, WARM), 200, "\"status\":\"success\"");
    harness_wait_metrics(A, RAN("1"), true);
    harness_wait_metrics(A, KEPT("1"), true);
    waiting_end(B, held);
    harness_wait_metrics(B, IDLE, true);
    nats_wait_node(B, "\"takes_executions\":true");
    expect(harness_run(A, WARM), 200, "\"status\":\"success\"");
    harness_wait_metrics(A, RAN("2"), true);
    harness_wait_metrics(A, SENT("0"), true);
    end(&w);
}

static void where_it_is_gone_another_runs_it(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w, 2);
    warm_up(A, B);
    assert_int_equal(harness_stop(B, SIGKILL), -1);
    expect(harness_run(A, WARM), 200, "\"status\":\"success\"");
    harness_wait_metrics(A, RAN("1"), true);
    harness_finish(B);
    w.n = 1;
    end(&w);
}

static bool is_run_by_the_better_one(void)
{
    struct world w = {0};
    char held[38];
    bool is_so = true;

    begin(&w, 3);
    warm_up(A, C);
    nats_wait_node(A, "\"loads\":{\"nodes\":2");
    waiting_fill(A, held);
    for (unsigned i = 2; is_so && i < RUNS + 2; i++) {
        expect(harness_run(A, WARM), 200, "\"status\":\"success\"");
        harness_until(has_run(C, i) || has_run(B, 1));
        is_so = has_run(C, i);
        harness_wait_metrics(C, IDLE, true);
        nats_wait_node(A, "\"running\":0,\"waiting\":0");
        nats_wait_node(C, "\"takes_executions\":true");
    }
    waiting_end(A, held);
    end(&w);
    return is_so;
}

/* Of those with room the one that has it: of three, of which chance would choose another. */
static void of_two_with_room_the_better_one_runs_it(void **state)
{
    (void)state;
    expect_once(is_run_by_the_better_one);
}

static void *send_warm(void *ctx)
{
    const struct world *w = ctx;
    static struct answer answer;

    answer = harness_run(&w->nodes[0], LONG("warm"));
    return &answer;
}

/* Whether who comes while another node is asked was sent where there is room, which may not
 * answer in time on a busy machine; then nothing is known of the slot. */
static bool is_sent_on(void)
{
    char warm[38], plain[38], *record;
    struct world w = {.is_b_apart = true};
    pthread_t thread;
    void *answer;
    bool is_sent, asks;

    begin(&w, 3);
    warm_up(A, B);
    nats_wait_node(A, "\"loads\":{\"nodes\":2");
    harness_freeze(B->pid);
    assert_int_equal(pthread_create(&thread, NULL, send_warm, &w), 0);
    /* A look may come when nobody is waited for any more. */
    harness_until((asks = harness_metrics_have(A, ASKS)) || !harness_metrics_have(A, IDLE));
    nodes_submit(A, LONG("demo"), plain);
    record = nodes_record_of(&w.nats, plain);
    assert_non_null(record);
    is_sent = asks && strstr(record, "\"node\":\"c\"");
    free(record);
    if (is_sent)
        nodes_wait(C, nodes_path_of(plain), 200, "\"status\":\"running\"");
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_int_equal(((struct answer *)answer)->status, 202);
    nodes_take_id(answer, warm);
    if (is_sent)
        nodes_wait(A, nodes_path_of(warm), 200, "\"status\":\"running\"");
    assert_int_equal(kill(B->pid, SIGCONT), 0);
    waiting_end(A, plain);
    waiting_end(A, warm);
    end(&w);
    return is_sent;
}

/* Who comes while another node is asked does not take its slot, but goes where there is room.
 */
static void who_asks_another_keeps_its_slot(void **state)
{
    (void)state;
    expect_once(is_sent_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_the_snapshot_runs_it),
        cmocka_unit_test(where_it_has_no_room_another_runs_it),
        cmocka_unit_test(where_it_is_gone_another_runs_it),
        cmocka_unit_test(of_two_with_room_the_better_one_runs_it),
        cmocka_unit_test(who_asks_another_keeps_its_slot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
