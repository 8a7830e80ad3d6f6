/* SPDX-License-Identifier: Apache-2.0 */
/* What may be begun again is, where its node is lost, as often as it may. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <stdio.h>

/* It has the key that it had, and the second loss is one too many. */
static void what_ran_at_a_lost_node_is_begun_again(void **state)
{
    struct waiting_world w = {0};
    char id[38], again[38];

    (void)state;
    waiting_begin_retried(&w, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    waiting_again_at_b(&w, id);
    nodes_submit(&w.b, WAITING_RETRIED, again);
    assert_string_equal(again, id);
    assert_int_equal(harness_stop(&w.b, SIGKILL), -1);
    nats_start_node(&w.a, &w.nats, "a", WAITING_LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "the node b was lost while this execution ran");
    nodes_end(&w.a);
    harness_finish(&w.b);
    nats_end(&w.nats);
}

/* By itself, or by b, which has no room before. */
static void a_node_that_was_killed_begins_it_again(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_retried(&w, id);
    waiting_fill(&w.b, w.busy_b);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nats_start_node(&w.a, &w.nats, "a", WAITING_LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    nodes_cancel(&w.a, id);
    harness_expect(harness_get(&w.a, nodes_path_of(id)), 200, WAITING_AGAIN);
    waiting_end(&w.b, w.busy_b);
    waiting_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_at_a_lost_node_is_begun_again),
        cmocka_unit_test(a_node_that_was_killed_begins_it_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
