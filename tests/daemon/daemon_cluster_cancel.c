/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody wants to end while it goes from one node to another, or its node stops. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOW  "stop_timeout: 10m\n" WAITING_LINES
#define GRACE "grace: 20s\n"
/* One that may be begun again, and does not end before its grace is over. */
#define DEAF "{" WAITING_OF("deaf") ",\"timeout\":600,\"async\":true,\"retries\":1}"

/* a has ended, or does so now. */
static void finish(struct waiting_world *w)
{
    assert_int_equal(harness_stop(&w->a, SIGCONT), 0);
    nodes_end(&w->b);
    harness_finish(&w->a);
    nats_end(&w->nats);
}

/* A node that was away takes the wish as soon as it can. */
static void end_sure(const struct harness *h, const char *id)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    int status;

    do {
        struct answer a = harness_request(h, "DELETE", nodes_path_of(id), "", "", 0);

        status = a.status;
        answer_finish(&a);
        usleep(50000);
    } while (status == 503 && clock_monotonic_ns() < until_ns);
    assert_int_equal(status, 202);
}

static void who_gave_it_away_ends_it_where_it_is(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin(&w);
    nodes_submit(&w.a, WAITING_BUSY, id);
    waiting_end(&w.b, w.busy_b);
    waiting_until(&w, id, "\"node\":\"b\"", "");
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    end_sure(&w.a, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    harness_expect(harness_get(&w.a, nodes_path_of(w.busy_a)), 200, "\"status\":\"running\"");
    waiting_finish(&w);
}

/* Its old node has not heard that another one has begun it again, and hears it before its run
 * is over. */
static void a_wish_goes_with_what_another_node_has(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_running(&w, GRACE WAITING_LINES, DEAF, id);
    harness_freeze(w.a.pid);
    waiting_again_at_b(&w, id);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    end_sure(&w.a, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    waiting_expect(&w, id, "\"node\":\"b\"", true);
    waiting_finish(&w);
}

/*
 * Servers may take a wish and an end that came at the same moment: the wish, which came last,
 * is all that who joins later hears of.
 */
static void an_end_that_was_written_over_is_told_again(void **state)
{
    struct waiting_world w = {0};
    char id[38], subject[80];
    char *record, *wish;

    (void)state;
    waiting_begin_running(&w, WAITING_LINES, WAITING_BUSY, id);
    record = nodes_record_of(&w.nats, id);
    wish = strstr(record, "\"cancel\":false");
    assert_non_null(wish);
    /* As long as before: JSON may have spaces. */
    memcpy(wish, "\"cancel\": true", strlen("\"cancel\": true"));
    nodes_cancel(&w.a, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    nats_publish(&w.nats, subject, record, strlen(record));
    free(record);
    waiting_until(&w, id, "\"status\":\"cancelled\"", "\"cancel\":true");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    waiting_finish(&w);
}

static void what_waits_ends_while_its_node_stops(void **state)
{
    struct waiting_world w = {0};
    char id[38];

    (void)state;
    waiting_begin_as(&w, "a", SLOW);
    waiting_at_a(&w, id);
    waiting_stop_a(&w);
    waiting_end(&w.b, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    waiting_end(&w.b, w.busy_a);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    waiting_end(&w.b, w.busy_b);
    finish(&w);
}

/* hurries: also where its node has begun to leave it to others. */
static void end_while_it_stops(bool hurries)
{
    struct waiting_world w = {0};
    char id[38];

    waiting_begin_running(&w, GRACE SLOW, DEAF, id);
    waiting_stop_a(&w);
    if (hurries)
        assert_int_equal(kill(w.a.pid, SIGTERM), 0);
    waiting_end(&w.b, id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
    waiting_expect(&w, id, "\"node\":\"a\"", true);
    finish(&w);
}

static void what_runs_ends_while_its_node_stops(void **state)
{
    (void)state;
    end_while_it_stops(false);
}

static void what_is_about_to_be_left_to_others_ends(void **state)
{
    (void)state;
    end_while_it_stops(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_gave_it_away_ends_it_where_it_is),
        cmocka_unit_test(a_wish_goes_with_what_another_node_has),
        cmocka_unit_test(an_end_that_was_written_over_is_told_again),
        cmocka_unit_test(what_waits_ends_while_its_node_stops),
        cmocka_unit_test(what_runs_ends_while_its_node_stops),
        cmocka_unit_test(what_is_about_to_be_left_to_others_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
