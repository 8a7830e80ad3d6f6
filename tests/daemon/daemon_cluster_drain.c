/* SPDX-License-Identifier: Apache-2.0 */
/* A node that is drained, or ended, loses nothing, and another one takes its place. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define expect harness_expect

#define DRAIN(node) "/v1/admin/cluster/nodes/" node "/drain"
#define ONE_SLOT    "limits:\n  max_running: 1\n"
#define FAKE(how)   "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define SHORT       "{" FAKE("exit") "}"
#define LONG        "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}"
#define TOLD        "{" FAKE("told") ",\"timeout\":600,\"async\":true}"
#define RAN(n)      "\nskillvm_executions_total{status=\"success\"} " n "\n"
#define RUNNING(n)  "\nskillvm_executions_running " n "\n"
#define IS_DRAINED  "this node is being drained: it takes no executions"

struct world {
    struct nats_world nats;
    struct harness a, b;
};

static void begin(struct world *w, const char *lines)
{
    nodes_begin_two(&w->nats, &w->a, lines, &w->b, lines);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    nats_wait_node(&w->a, "\"takes_executions\":true");
    nats_wait_node(&w->b, "\"takes_executions\":true");
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* Takes the only slot of a node. */
static void fill(const struct harness *h, const char *json, char ret_id[38])
{
    nodes_fill(h, json, ret_id);
}

/* The same with one that ends once its node's machines are told to. */
static void fill_told(const struct harness *h, char ret_id[38])
{
    char path[80];

    fill(h, TOLD, ret_id);
    snprintf(path, sizeof(path), "%s/logs", nodes_path_of(ret_id));
    nodes_wait(h, path, 200, "waits");
}

/* The node goes on with what it has; what is sent to it then runs at the other one. */
static void a_drained_node_takes_no_more(void **state)
{
    struct world w = {0};
    char held[38];

    (void)state;
    begin(&w, "");
    fill(&w.b, LONG, held);
    expect(nodes_admin_sure(&w.a, "POST", DRAIN("b"), ""), 200,
           "\"node\":\"b\",\"draining\":true,\"running\":1,\"waiting\":0");
    nodes_wait(&w.b, "/ready", 503, IS_DRAINED);
    nodes_wait(&w.a, "/v1/admin/cluster", 200, "\"node\":\"b\",\"state\":\"draining\"");
    nats_wait_node(&w.b, "\"draining\":true,\"takes_executions\":false");
    expect(nodes_admin_sure(&w.b, "POST", "/v1/executions", SHORT), 200,
           "\"status\":\"success\"");
    harness_wait_metrics(&w.a, RAN("1"), true);
    harness_wait_metrics(&w.b, RAN("0"), true);
    nodes_wait(&w.b, nodes_path_of(held), 200, "\"status\":\"running\"");
    nodes_cancel(&w.b, held);
    nodes_wait(&w.a, DRAIN("b"), 200, "\"running\":0,\"waiting\":0");
    /* Also once it is another process. */
    nodes_stop(&w.b);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.b, "/ready", 503, IS_DRAINED);
    nodes_wait(&w.a, DRAIN("b"), 200, "\"draining\":true");
    expect(nodes_admin_sure(&w.a, "DELETE", DRAIN("b"), ""), 200, "\"draining\":false");
    harness_wait_ready(&w.b);
    nodes_wait(&w.a, "/v1/admin/cluster", 200, "\"node\":\"b\",\"state\":\"joined\"");
    nats_wait_node(&w.b, "\"takes_executions\":true");
    expect(harness_run(&w.b, SHORT), 200, "\"status\":\"success\"");
    harness_wait_metrics(&w.b, RAN("1"), true);
    end(&w);
}

/* Who asks the node itself drains it too; who has nowhere to go hears when to come again. */
static void where_nobody_has_room_it_refuses(void **state)
{
    struct world w = {0};
    struct answer refused;
    char held[38], id[38];

    (void)state;
    begin(&w, ONE_SLOT);
    fill(&w.a, LONG, held);
    /* Before it is drained one may wait there. */
    fill_told(&w.b, id);
    expect(nodes_admin_sure(&w.b, "POST", DRAIN("b"), ""), 200,
           "\"draining\":true,\"running\":1");
    refused = harness_run(&w.b, SHORT);
    assert_non_null(strcasestr(refused.headers, "\r\nRetry-After: "));
    expect(refused, 503, "\"error\":\"draining\"");
    /* What only this node has goes nowhere else. */
    expect(harness_run(&w.b, "{\"skill\":\"demo\",\"session_id\":\"s\"}"), 503, "draining");
    harness_tell_children(&w.b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_cancel(&w.a, held);
    harness_wait_metrics(&w.a, RUNNING("0"), true);
    nats_wait_node(&w.a, "\"takes_executions\":true");
    /* Where the other one is busy it may not take it in time. */
    expect(nodes_admin_sure(&w.b, "POST", "/v1/executions", SHORT), 200,
           "\"status\":\"success\"");
    harness_wait_metrics(&w.a, RAN("1"), true);
    end(&w);
}

static void a_node_that_cannot_be_asked_is_said_to_be_so(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w, "");
    expect(nodes_admin(&w.a, "POST", DRAIN("c"), ""), 404, "there is no node c");
    expect(nodes_admin(&w.a, "POST", DRAIN("no.node"), ""), 404, "there is no node no.node");
    /* It is joined before it is there to be asked. */
    nodes_wait(&w.a, DRAIN("b"), 200, "\"draining\":false");
    harness_freeze(w.b.pid);
    expect(nodes_admin(&w.a, "POST", DRAIN("b"), ""), 503, "b does not answer in time");
    assert_int_equal(kill(w.b.pid, SIGCONT), 0);
    nats_wait_node(&w.b, NODE_JOINED);
    /* It tells the servers again how it is: that word is read once it is gone. */
    nodes_wait(&w.a, DRAIN("b"), 200, "\"draining\":");
    assert_int_equal(harness_stop(&w.b, SIGKILL), -1);
    nodes_wait(&w.a, DRAIN("b"), 503, "the node b, which said ");
    nats_wait_gone(&w.a, "b");
    nodes_wait(&w.a, DRAIN("b"), 404, "there is no node b");
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    end(&w);
}

/* A daemon that is ended: what runs may go on, what waits is left to the other node, and that
   one knows all of it. */
static void an_end_loses_nothing(void **state)
{
    struct world w = {0};
    char held[38], runs[38], waits[38];

    (void)state;
    begin(&w, "stop_timeout: 1m\n" ONE_SLOT);
    fill(&w.a, LONG, held);
    fill_told(&w.b, runs);
    nodes_submit(&w.b, LONG, waits);
    nodes_wait(&w.a, nodes_path_of(waits), 200, "\"status\":\"accepted\"");
    nodes_begin_stop(&w.b);
    harness_tell_children(&w.b);
    assert_int_equal(harness_stop(&w.b, 0), 0);
    nodes_wait(&w.a, nodes_path_of(runs), 200, "\"status\":\"success\"");
    expect(harness_get(&w.a, nodes_path_of(waits)), 200, "\"status\":\"accepted\"");
    nats_start_node(&w.b, &w.nats, "b", ONE_SLOT);
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.b, nodes_path_of(runs), 200, "\"status\":\"success\"");
    /* Who has room first runs what waited. */
    nodes_wait(&w.b, nodes_path_of(waits), 200, "\"status\":\"running\"");
    nodes_cancel(&w.a, waits);
    nodes_wait(&w.b, nodes_path_of(waits), 200, "\"status\":\"cancelled\"");
    nodes_cancel(&w.a, held);
    end(&w);
}

/* Nor has it anybody that could take it back: what it was as a node is nothing to it. */
static void a_daemon_on_its_own_is_no_node(void **state)
{
    struct harness h = {0};
    char path[160];
    FILE *f;

    (void)state;
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    expect(nodes_admin(&h, "POST", DRAIN("a"), ""), 404, "this daemon is on its own");
    nodes_stop(&h);
    snprintf(path, sizeof(path), "%s/draining", h.data);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    nodes_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drained_node_takes_no_more),
        cmocka_unit_test(where_nobody_has_room_it_refuses),
        cmocka_unit_test(a_node_that_cannot_be_asked_is_said_to_be_so),
        cmocka_unit_test(an_end_loses_nothing),
        cmocka_unit_test(a_daemon_on_its_own_is_no_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
