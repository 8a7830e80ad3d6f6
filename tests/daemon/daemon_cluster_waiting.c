/* SPDX-License-Identifier: Apache-2.0 */
/* What was accepted and has not begun is run by others where those have room, or its node
 * stops. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect harness_expect

#define EXECUTIONS        "/v1/executions"
#define LARGE             40000 /* bytes of an input, which no record has room for */
#define WAIT_ELSEWHERE(n) "\nskillvm_cluster_elsewhere_queued " n "\n"

struct reader {
    const struct waiting_world *world;
    char path[80];
    struct answer answer;
};

static void wait_large_at_a(const struct waiting_world *w, char ret[38])
{
    static char json[LARGE + 256];
    int n = snprintf(json, sizeof(json), "{" WAITING_OF("exit") ",\"async\":true,\"input\":\"");

    memset(json + n, 'x', LARGE);
    (void)strcpy(json + n + LARGE, "\"}");
    nodes_submit(&w->a, json, ret);
    waiting_expect(w, ret, "\"request\":\"{", false);
    waiting_expect(w, ret, "\"waits\":{\"object\":\"", true);
}

/* It is run where it was accepted once there is room, and its record says so. */
static void where_nothing_is_lost_it_waits_its_turn(void **state)
{
    struct waiting_world w = {0};
    char id[38], cancelled[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    waiting_at_a(&w, cancelled);
    waiting_end(&w.b, cancelled);
    nodes_wait(&w.a, nodes_path_of(cancelled), 200, "\"status\":\"cancelled\"");
    waiting_end(&w.a, w.busy_a);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"waits\"", false);
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    nodes_wait(&w.b, nodes_path_of(cancelled), 200, "\"status\":\"cancelled\"");
    waiting_finish(&w);
}

/* The events of one at a, until its end. */
static void *read_events(void *ctx)
{
    struct reader *reader = ctx;

    reader->answer = harness_get(&reader->world->a, reader->path);
    return NULL;
}

/* A word to take it that comes late: what has begun where it waited goes on there. */
static void what_has_begun_is_not_taken(void **state)
{
    struct waiting_world w = {0};
    char once[38], retried[38], next[38];

    (void)state;
    waiting_begin_free(&w, "a", "limits:\n  max_running: 2\n", WAITING_LINES);
    /* b has no room for these. */
    waiting_fill(&w.b, w.busy_b);
    nodes_submit(&w.a, WAITING_RETRIED, retried);
    waiting_fill(&w.a, once);
    nodes_wait(&w.a, nodes_path_of(retried), 200, "\"status\":\"running\"");
    waiting_end(&w.b, w.busy_b);
    harness_wait_metrics(&w.b, "\nskillvm_executions_running 0\n", true);
    nodes_wait(&w.b, nodes_path_of(retried), 200, "\"status\":\"running\"");
    nodes_wait(&w.b, nodes_path_of(once), 200, "\"status\":\"running\"");
    waiting_tell_b(&w, once);
    waiting_tell_b(&w, retried);
    /* Behind these. */
    nodes_submit(&w.a, "{" WAITING_OF("exit") ",\"async\":true}", next);
    nodes_wait(&w.a, nodes_path_of(next), 200, "\"status\":\"success\"");
    waiting_expect(&w, next, "\"node\":\"b\"", true);
    expect(harness_get(&w.a, nodes_path_of(once)), 200, "\"status\":\"running\"");
    expect(harness_get(&w.a, nodes_path_of(retried)), 200, "\"status\":\"running\"");
    waiting_expect(&w, once, "\"status\"", false);
    waiting_expect(&w, retried, "\"node\":\"a\"", true);
    waiting_end(&w.a, once);
    waiting_end(&w.a, retried);
    waiting_finish(&w);
}

/* Who has room by now when it asks whether somebody has it may be who is asked. */
static void no_node_takes_what_it_asks_others(void **state)
{
    struct waiting_world w = {0};
    unsigned n = 0;

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    waiting_fill(&w.a, w.busy_a);
    for (uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND; n < 3;) {
        assert_false(waiting_ask_b(&w, "b"));
        n += waiting_ask_b(&w, "a");
        assert_true(clock_monotonic_ns() < until_ns);
    }
    waiting_end(&w.a, w.busy_a);
    waiting_finish(&w);
}

/* It does not wait for the node that it was sent to while another has room. */
static void where_there_is_room_what_waits_goes(void **state)
{
    struct waiting_world w = {0};
    struct reader reader = {.world = &w};
    pthread_t thread;
    char id[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    snprintf(reader.path, sizeof(reader.path), EXECUTIONS "/%s/events", id);
    assert_int_equal(pthread_create(&thread, NULL, read_events, &reader), 0);
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (!answer_has(&reader.answer, "event: result") ||
        !answer_has(&reader.answer, "\"status\":\"success\""))
        fail_msg("events end with %s", reader.answer.body);
    answer_finish(&reader.answer);
    expect(harness_get(&w.a, nodes_path_of(w.busy_a)), 200, "\"status\":\"running\"");
    waiting_finish(&w);
}

/* A limit of what waits is none of what goes: it counts as waiting where it comes from. */
static void what_goes_was_let_in_already(void **state)
{
    static const char limit[] = "\"max_queued\":1";
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    expect(nodes_admin_sure(&w.a, "PATCH", "/v1/admin/tenants/default",
                            "{\"limits\":{\"max_queued\":1}}"),
           200, limit);
    nodes_wait(&w.b, "/v1/admin/tenants/default", 200, limit);
    /* What runs at b waited there for a moment. */
    harness_wait_metrics(&w.a, "\nskillvm_cluster_elsewhere_running 1\n", true);
    harness_wait_metrics(&w.a, WAIT_ELSEWHERE("0"), true);
    waiting_at_a(&w, id);
    harness_wait_metrics(&w.b, WAIT_ELSEWHERE("1"), true);
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    waiting_finish(&w);
}

/* Also while another node is asked whether it takes it, which does not answer: so it is for
   nearly all of the time, and for that of the next one's beginning. */
static void what_waits_can_be_cancelled(void **state)
{
    struct waiting_world w = {0};
    char ids[3][38];

    (void)state;
    waiting_begin_free(&w, "a", WAITING_LINES, WAITING_LINES);
    nats_wait_node(&w.b, "\"takes_executions\":true");
    waiting_fill(&w.a, w.busy_a);
    harness_freeze(w.b.pid);
    for (size_t i = 0; i < 3; i++)
        nodes_submit(&w.a, "{" WAITING_OF("exit") ",\"async\":true}", ids[i]);
    for (size_t i = 0; i < 3; i++)
        waiting_end(&w.a, ids[i]);
    for (size_t i = 0; i < 3; i++)
        nodes_wait(&w.a, nodes_path_of(ids[i]), 200, "\"status\":\"cancelled\"");
    expect(harness_get(&w.a, nodes_path_of(w.busy_a)), 200, "\"status\":\"running\"");
    assert_int_equal(kill(w.b.pid, SIGCONT), 0);
    nats_wait_node(&w.b, NODE_JOINED);
    waiting_finish(&w);
}

/* It does not wait for what runs there to end. */
static void while_a_node_stops_what_waits_goes(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_as(&w, "a", "stop_timeout: 10m\n" WAITING_LINES);
    waiting_at_a(&w, id);
    waiting_stop_a(&w);
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    /* What ran there is not over yet. */
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"running\"");
    assert_int_equal(harness_stop(&w.a, SIGTERM), 0);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    nats_start_node(&w.a, &w.nats, "a", WAITING_LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    waiting_finish(&w);
}

/* Who stops leaves what waits to others; who comes back knows what became of it. */
static void what_waits_at_a_node_that_stops_another_runs(void **state)
{
    struct waiting_world w = {0};
    char id[38], large[38];

    (void)state;
    waiting_begin(&w);
    waiting_at_a(&w, id);
    wait_large_at_a(&w, large);
    waiting_stop_a(&w);
    /* Twice: what runs is not waited for. */
    assert_int_equal(harness_stop(&w.a, SIGTERM), 0);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    waiting_end(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, nodes_path_of(large), 200, "\"status\":\"success\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    nats_start_node(&w.a, &w.nats, "a", WAITING_LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, nodes_path_of(large), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    waiting_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nothing_is_lost_it_waits_its_turn),
        cmocka_unit_test(what_has_begun_is_not_taken),
        cmocka_unit_test(no_node_takes_what_it_asks_others),
        cmocka_unit_test(where_there_is_room_what_waits_goes),
        cmocka_unit_test(what_goes_was_let_in_already),
        cmocka_unit_test(what_waits_can_be_cancelled),
        cmocka_unit_test(while_a_node_stops_what_waits_goes),
        cmocka_unit_test(what_waits_at_a_node_that_stops_another_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
