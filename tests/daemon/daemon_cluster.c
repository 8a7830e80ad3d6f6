/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a cluster of three real nats-servers: they join, see each other, and lose servers.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nats_world.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define JOINED      "\"state\":\"joined\",\"reason\":null"
#define OTHER(name) "\"node\":\"" name "\",\"alive\":true,\"state\":\"joined\""
#define THREE       "  replicas: 3\n"
#define CUT_OFF     "\"status\":\"cut_off\",\"checks\":{\"snapshot\":\"ok\""

static void end_node(struct harness *h)
{
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_finish(h);
}

/* The daemon says one reason or another, by what its last look met. */
static void wait_ready_says(const struct harness *h, int status, const char *part)
{
    bool says = false;

    for (unsigned i = 0; !says && i < 4000; i++) {
        struct answer a = harness_get(h, "/ready");

        says = a.status == status && answer_has(&a, part);
        answer_finish(&a);
        usleep(20000);
    }
    assert_true(says);
}

/* The whole of a node's life: not initialised, joined, seen, gone. */
static void nodes_join_and_see_each_other(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0}, b = {0};

    (void)state;
    nats_begin(&w, 3);
    nats_start_node(&a, &w, "a", THREE "  labels: rack=a7 disk=nvme\n");
    nats_wait_node(&a, "\"state\":\"cut_off\",\"reason\":\"not_initialised\"");
    wait_ready_says(&a, 503, CUT_OFF);
    wait_ready_says(&a, 503, "run `skillvm cluster init`");
    nats_make(&a);
    nats_wait_node(&a, JOINED);
    harness_wait_ready(&a);
    expect(nats_ask(&a, "POST", ""), 200, "\"made\":false");
    wait_ready_says(&a, 200, "\"cluster\":\"ok\"");
    nats_start_node(&b, &w, "b", "");
    expect(nats_ask(&b, "POST", ""), 409,
           "is there with 3 replicas, and cluster.replicas says 1");
    nats_wait_node(&a, OTHER("b"));
    nats_wait_node(&b, OTHER("a"));
    nats_wait_node(&b, "\"rack\":\"a7\",\"disk\":\"nvme\"");
    harness_wait_metrics(&b, "\nskillvm_cluster_joined 1\n", true);
    harness_wait_metrics(&b, "\nskillvm_cluster_nodes 2\n", true);
    expect(nats_ask(&a, "DELETE", "/nodes/b"), 409, "the node b is alive");
    expect(nats_ask(&a, "DELETE", "/nodes/c"), 404, "there is no node c");
    /* Who ends says so. */
    end_node(&b);
    nats_wait_gone(&a, "b");
    /* Its mark is nothing that had to be refused. */
    expect(harness_get(&a, "/v1/admin/cluster"), 200, "\"malformed\":0");
    end_node(&a);
    nats_end(&w);
}

/* With one server less, and then without the leader of what is left after it came back, nodes
   join and see each other. */
static void one_server_may_be_lost(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0}, b = {0}, c = {0};
    size_t leader;

    (void)state;
    nats_begin(&w, 3);
    nats_start_node(&a, &w, "a", THREE);
    nats_make(&a);
    nats_start_node(&b, &w, "b", THREE);
    nats_wait_node(&a, OTHER("b"));
    leader = nats_leader(&w, NATS_NODES);
    nats_kill(&w, (leader + 1) % 3);
    nats_start_node(&c, &w, "c", THREE);
    nats_wait_node(&a, OTHER("c"));
    end_node(&c);
    nats_restart(&w, (leader + 1) % 3);
    leader = nats_leader(&w, NATS_NODES);
    nats_kill(&w, leader);
    assert_int_not_equal(nats_leader(&w, NATS_NODES), leader);
    /* One that joins now is seen by those whose server it was. */
    nats_start_node(&c, &w, "c", THREE);
    nats_wait_node(&a, OTHER("c"));
    nats_wait_node(&b, OTHER("c"));
    nats_wait_node(&c, OTHER("a"));
    end_node(&c);
    end_node(&b);
    end_node(&a);
    nats_end(&w);
}

/* Once the server that is left knows as well that it leads nobody. */
static void expect_unavailable(const struct harness *h)
{
    struct answer a = harness_request(h, "POST", "/v1/admin/cluster", "", "", 0);

    for (unsigned i = 0; a.status == 200 && i < 4000; i++) {
        answer_finish(&a);
        usleep(20000);
        a = harness_request(h, "POST", "/v1/admin/cluster", "", "", 0);
    }
    expect(a, 503, "cluster_unavailable");
}

/* Once the servers have leaders of all that it takes. */
static void push_sure(const struct harness *h)
{
    int status = harness_push(h, "demo", "1.0", "print(1)");

    for (unsigned i = 0; status == 503 && i < 4000; i++) {
        usleep(20000);
        status = harness_push(h, "demo", "1.0", "print(1)");
    }
    assert_int_equal(status, 201);
}

/* Without a majority a node is cut off, says so, and takes nothing that it could lose. */
static void without_a_majority_a_node_is_cut_off(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0};

    (void)state;
    nats_begin(&w, 3);
    nats_start_node(&a, &w, "a", THREE);
    nats_make(&a);
    nats_wait_node(&a, JOINED);
    harness_wait_ready(&a);
    push_sure(&a);
    nats_kill(&w, 0);
    nats_kill(&w, 1);
    nats_wait_node(&a, "\"state\":\"cut_off\",\"reason\":\"no_quorum\"");
    wait_ready_says(&a, 503, "no majority of the servers answers");
    harness_wait_metrics(&a, "\nskillvm_cluster_joined 0\n", true);
    expect_unavailable(&a);
    assert_int_equal(harness_push(&a, "more", "1.0", "print(1)"), 503);
    expect(harness_run(&a, "{\"skill\":\"demo\"}"), 503, "cluster_unavailable");
    expect(harness_get(&a, "/v1/skills/demo/1.0"), 200, "main.py");
    nats_kill(&w, 2);
    nats_wait_node(&a, "\"state\":\"cut_off\",\"reason\":\"unreachable\"");
    for (size_t i = 0; i < 3; i++)
        nats_restart(&w, i);
    nats_wait_node(&a, JOINED);
    wait_ready_says(&a, 200, "\"cluster\":\"ok\"");
    end_node(&a);
    nats_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_join_and_see_each_other),
        cmocka_unit_test(one_server_may_be_lost),
        cmocka_unit_test(without_a_majority_a_node_is_cut_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
