/* SPDX-License-Identifier: Apache-2.0 */
/* What may be begun again elsewhere, and its node ends in order, or comes back. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void finish(struct waiting_world *w)
{
    nodes_end(&w->b);
    harness_finish(&w->a);
    nats_end(&w->nats);
}

/* It need not wait for the rest of its time where a node ends in order. */
static void what_a_node_leaves_as_it_stops_is_begun_again(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_retried(&w, id);
    /* Twice, and not as one signal, which two are that nobody took yet. */
    waiting_stop_a(&w);
    assert_int_equal(harness_stop(&w.a, SIGTERM), 0);
    waiting_again_at_b(&w, id);
    nodes_cancel(&w.b, id);
    finish(&w);
}

/* It has no run of its own any more where another's has ended meanwhile. */
static void who_was_away_ends_what_others_ended(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_retried(&w, id);
    harness_freeze(w.a.pid);
    waiting_again_at_b(&w, id);
    nodes_cancel(&w.b, id);
    /* It follows anew, and hears of the end alone. */
    nats_kill(&w.nats, 0);
    nats_restart(&w.nats, 0);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    harness_wait_metrics(&w.a, "\nskillvm_executions_running 0\n", true);
    nodes_wait(&w.a, nodes_path_of(id), 200, WAITING_AGAIN);
    waiting_finish(&w);
}

/* A node that stood still for so long that it was taken for lost gives up what it ran. */
static void return_late(bool has_ended)
{
    struct waiting_world w = {0};
    char id[38];

    waiting_begin_retried(&w, id);
    harness_freeze(w.a.pid);
    waiting_again_at_b(&w, id);
    if (has_ended)
        harness_kill_children(&w.a);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    harness_wait_metrics(&w.a, "\nskillvm_executions_running 0\n", true);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    nodes_cancel(&w.a, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    nodes_wait(&w.a, nodes_path_of(id), 200, WAITING_AGAIN);
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    waiting_finish(&w);
}

static void who_was_away_ends_what_others_began_again(void **state)
{
    (void)state;
    return_late(false);
}

static void an_end_that_comes_too_late_is_none(void **state)
{
    (void)state;
    return_late(true);
}

/* Says that another node has it, which accepted its id at another moment. */
static void forge_another(const struct waiting_world *w, const char *id)
{
    char *record = nodes_record_of(&w->nats, id);
    char *node = strstr(record, "\"node\":\"a\""), *at = strstr(record, "\"accepted_ns\":");
    char subject[80];

    assert_true(node && at);
    node[strlen("\"node\":\"")] = 'c';
    at = strchr(at, ',') - 1;
    *at = *at == '0' ? '1' : '0';
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    nats_publish(&w->nats, subject, record, strlen(record));
    free(record);
}

/* Of two that have one key each is what its node runs. */
static void what_was_accepted_at_another_moment_goes_on(void **state)
{
    struct waiting_world w = {0};
    char id[38], next[38];

    (void)state;
    waiting_begin_retried(&w, id);
    forge_another(&w, id);
    /* Behind that. */
    nodes_submit(&w.b, "{" WAITING_OF("exit") ",\"async\":true}", next);
    nodes_wait(&w.a, nodes_path_of(next), 200, "\"status\":\"success\"");
    harness_expect(harness_get(&w.a, nodes_path_of(id)), 200, "\"status\":\"running\"");
    waiting_expect(&w, id, "\"cancel\":false", true);
    waiting_finish(&w);
}

/*
 * Who had it before may be heard of after it began here, of a server that lags: then it goes
 * on, as nobody else runs it.
 */
static void what_another_had_before_goes_on(void **state)
{
    struct waiting_world w = {0};
    char id[38], next[38], subject[80];
    char *ours, *before;

    (void)state;
    waiting_begin_retried(&w, id);
    ours = nodes_record_of(&w.nats, id);
    before = strdup(ours);
    assert_non_null(before);
    assert_non_null(strstr(before, "\"node\":\"a\""));
    strstr(before, "\"node\":\"a\"")[strlen("\"node\":\"")] = 'c';
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    /* It looks at what the servers have when it hears of the first: by then there is the
     * second. */
    harness_freeze(w.a.pid);
    nats_publish(&w.nats, subject, before, strlen(before));
    nats_publish(&w.nats, subject, ours, strlen(ours));
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    free(before);
    free(ours);
    /* Behind that. */
    nodes_submit(&w.b, "{" WAITING_OF("exit") ",\"async\":true}", next);
    nodes_wait(&w.a, nodes_path_of(next), 200, "\"status\":\"success\"");
    nodes_cancel(&w.a, id);
    waiting_finish(&w);
}

/* Who wanted it to end does not get it begun again. */
static void what_was_to_end_is_not_begun_again(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_retried(&w, id);
    harness_freeze(w.a.pid);
    waiting_end(&w.b, id);
    waiting_expect(&w, id, "\"cancel\":true", true);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"failed\"");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_node_leaves_as_it_stops_is_begun_again),
        cmocka_unit_test(who_was_away_ends_what_others_began_again),
        cmocka_unit_test(who_was_away_ends_what_others_ended),
        cmocka_unit_test(an_end_that_comes_too_late_is_none),
        cmocka_unit_test(what_was_to_end_is_not_begun_again),
        cmocka_unit_test(what_was_accepted_at_another_moment_goes_on),
        cmocka_unit_test(what_another_had_before_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
