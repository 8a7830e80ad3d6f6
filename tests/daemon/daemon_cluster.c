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

static void end_node(struct harness *h)
{
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_finish(h);
}

/* The whole of a node's life: not initialised, joined, seen, gone. */
static void nodes_join_and_see_each_other(void **state)
{
    struct nats_world w = {0};
    struct harness a, b;

    (void)state;
    nats_begin(&w, 3);
    nats_start_node(&a, &w, "a", THREE "  labels: rack=a7 disk=nvme\n");
    nats_wait_node(&a, "\"state\":\"cut_off\",\"reason\":\"not_initialised\"");
    /* It is ready all the same, and says why it is not joined. */
    harness_wait_ready(&a);
    expect(harness_get(&a, "/ready"), 200, "run `skillvm cluster init`");
    expect(nats_init(&a), 200, "\"bucket\":\"skillvm_nodes\",\"made\":true");
    nats_wait_node(&a, JOINED);
    expect(nats_init(&a), 200, "\"made\":false");
    expect(harness_get(&a, "/ready"), 200, "\"cluster\":\"ok\"");
    nats_start_node(&b, &w, "b", "");
    expect(nats_init(&b), 409, "is there with 3 replicas, and cluster.replicas says 1");
    nats_wait_node(&a, OTHER("b"));
    nats_wait_node(&b, OTHER("a"));
    nats_wait_node(&b, "\"rack\":\"a7\",\"disk\":\"nvme\"");
    harness_wait_metrics(&b, "\nskillvm_cluster_joined 1\n", true);
    harness_wait_metrics(&b, "\nskillvm_cluster_nodes 2\n", true);
    expect(harness_request(&a, "DELETE", "/v1/admin/cluster/nodes/b", "", "", 0), 409,
           "the node b is alive");
    expect(harness_request(&a, "DELETE", "/v1/admin/cluster/nodes/c", "", "", 0), 404,
           "there is no node c");
    /* Who ends says so; who is killed is gone when its time is up. */
    end_node(&b);
    nats_wait_gone(&a, "b");
    end_node(&a);
    nats_end(&w);
}

/* One server less, and then the leader of what is left after it came back, is no loss. */
static void one_server_may_be_lost(void **state)
{
    struct nats_world w = {0};
    struct harness a, b, c;
    size_t leader;

    (void)state;
    nats_begin(&w, 3);
    nats_start_node(&a, &w, "a", THREE);
    expect(nats_init(&a), 200, "\"made\":true");
    nats_start_node(&b, &w, "b", THREE);
    nats_wait_node(&a, OTHER("b"));
    leader = nats_leader(&w);
    nats_kill(&w, (leader + 1) % 3);
    nats_start_node(&c, &w, "c", THREE);
    nats_wait_node(&a, OTHER("c"));
    end_node(&c);
    nats_restart(&w, (leader + 1) % 3);
    leader = nats_leader(&w);
    nats_kill(&w, leader);
    assert_int_not_equal(nats_leader(&w), leader);
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

/* Without a majority a node is cut off, says so, and goes on with its own. */
static void without_a_majority_a_node_is_cut_off(void **state)
{
    struct nats_world w = {0};
    struct harness a;

    (void)state;
    nats_begin(&w, 3);
    nats_start_node(&a, &w, "a", THREE);
    expect(nats_init(&a), 200, "\"made\":true");
    nats_wait_node(&a, JOINED);
    harness_wait_ready(&a);
    nats_kill(&w, 0);
    nats_kill(&w, 1);
    nats_wait_node(&a, "\"state\":\"cut_off\",\"reason\":\"no_quorum\"");
    expect(harness_get(&a, "/ready"), 200, "no majority of the servers answers");
    harness_wait_metrics(&a, "\nskillvm_cluster_joined 0\n", true);
    expect(nats_init(&a), 503, "cluster_unavailable");
    assert_int_equal(harness_push(&a, "demo", "1.0", "print(1)"), 201);
    expect(harness_run(&a, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    nats_kill(&w, 2);
    nats_wait_node(&a, "\"state\":\"cut_off\",\"reason\":\"unreachable\"");
    for (size_t i = 0; i < 3; i++)
        nats_restart(&w, i);
    nats_wait_node(&a, JOINED);
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
