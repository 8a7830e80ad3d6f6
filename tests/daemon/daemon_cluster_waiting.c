/* SPDX-License-Identifier: Apache-2.0 */
/* What was accepted and has not begun is run by others where its node ends, or is lost. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define expect harness_expect

#define EXECUTIONS "/v1/executions"
#define LINES      "limits:\n  max_running: 1\n"
#define FAKE(how)  "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define LARGE      40000 /* bytes of an input, which no record has room for */

struct world {
    struct nats_world nats;
    struct harness a, b;
    char busy_a[38], busy_b[38];
};

struct reader {
    const struct world *world;
    char path[80];
    struct answer answer;
};

static const char *path_of(const char *id)
{
    static char path[2][64];
    static unsigned n;

    n = !n;
    snprintf(path[n], sizeof(path[n]), EXECUTIONS "/%s", id);
    return path[n];
}

static void begin_json(const struct harness *h, const char *json, char ret[38])
{
    struct answer a = harness_run(h, json);

    if (a.status != 202)
        fail_msg("%d %s", a.status, a.body);
    nodes_take_id(&a, ret);
}

/* Its one slot is taken until that is ended. */
static void fill(const struct harness *h, char ret[38])
{
    begin_json(h, "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}", ret);
    nodes_wait(h, path_of(ret), 200, "\"status\":\"running\"");
}

static void end_one(const struct harness *h, const char *id)
{
    expect(harness_request(h, "DELETE", path_of(id), "", "", 0), 202, "");
}

/* Both are full. */
static void begin(struct world *w)
{
    nodes_begin_two(&w->nats, &w->a, LINES, &w->b, LINES);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    fill(&w->a, w->busy_a);
    fill(&w->b, w->busy_b);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* What the servers have of one. */
static void expect_record(const struct world *w, const char *id, const char *part, bool there)
{
    char subject[128], found[256], *record;

    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    record = nats_last(&w->nats, "KV_skillvm_executions", subject, found);
    assert_non_null(record);
    if ((strstr(record, part) != NULL) != there)
        fail_msg("%s is%s in %s", part, there ? " not" : "", record);
    free(record);
}

/* An asynchronous one that waits at a. */
static void wait_at_a(const struct world *w, char ret[38])
{
    begin_json(&w->a, "{" FAKE("exit") ",\"async\":true}", ret);
    expect(harness_get(&w->a, path_of(ret)), 200, "\"status\":\"accepted\"");
    expect_record(w, ret, "\"waits\":{\"object\":\"\",\"request\":\"{", true);
    nodes_wait(&w->b, path_of(ret), 200, "\"status\":\"accepted\"");
}

static void wait_large_at_a(const struct world *w, char ret[38])
{
    static char json[LARGE + 256];
    int n = snprintf(json, sizeof(json), "{" FAKE("exit") ",\"async\":true,\"input\":\"");

    memset(json + n, 'x', LARGE);
    (void)strcpy(json + n + LARGE, "\"}");
    begin_json(&w->a, json, ret);
    expect_record(w, ret, "\"request\":\"{", false);
    expect_record(w, ret, "\"waits\":{\"object\":\"", true);
}

/* It is run where it was accepted once there is room, and its record says so. */
static void where_nothing_is_lost_it_waits_its_turn(void **state)
{
    struct world w = {0};
    char id[38], cancelled[38];

    (void)state;
    begin(&w);
    wait_at_a(&w, id);
    wait_at_a(&w, cancelled);
    end_one(&w.b, cancelled);
    nodes_wait(&w.a, path_of(cancelled), 200, "\"status\":\"cancelled\"");
    end_one(&w.a, w.busy_a);
    nodes_wait(&w.b, path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"waits\"", false);
    expect_record(&w, id, "\"node\":\"a\"", true);
    nodes_wait(&w.b, path_of(cancelled), 200, "\"status\":\"cancelled\"");
    end(&w);
}

/* The events of one at a, until its end. */
static void *read_events(void *ctx)
{
    struct reader *reader = ctx;

    reader->answer = harness_get(&reader->world->a, reader->path);
    return NULL;
}

/* It does not wait for the node that it was sent to while another has room. */
static void where_there_is_room_what_waits_goes(void **state)
{
    struct world w = {0};
    struct reader reader = {.world = &w};
    pthread_t thread;
    char id[38];

    (void)state;
    begin(&w);
    wait_at_a(&w, id);
    snprintf(reader.path, sizeof(reader.path), EXECUTIONS "/%s/events", id);
    assert_int_equal(pthread_create(&thread, NULL, read_events, &reader), 0);
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (!answer_has(&reader.answer, "event: result") ||
        !answer_has(&reader.answer, "\"status\":\"success\""))
        fail_msg("events end with %s", reader.answer.body);
    answer_finish(&reader.answer);
    expect(harness_get(&w.a, path_of(w.busy_a)), 200, "\"status\":\"running\"");
    end(&w);
}

/* Who stops leaves what waits to others; who comes back knows what became of it. */
static void what_waits_at_a_node_that_stops_another_runs(void **state)
{
    struct world w = {0};
    char id[38], large[38];

    (void)state;
    begin(&w);
    wait_at_a(&w, id);
    wait_large_at_a(&w, large);
    assert_int_equal(kill(w.a.pid, SIGTERM), 0);
    /* Twice: what runs is not waited for. */
    assert_int_equal(harness_stop(&w.a, SIGTERM), 0);
    nodes_wait(&w.b, path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, path_of(large), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    nats_start_node(&w.a, &w.nats, "a", LINES);
    nodes_wait(&w.a, path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, path_of(large), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    end(&w);
}

/* The same of who is lost, and what it ran has failed. It comes back before it is missed. */
static void what_waited_at_a_lost_node_is_run(void **state)
{
    struct world w = {0};
    char id[38];

    (void)state;
    begin(&w);
    wait_at_a(&w, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nats_start_node(&w.a, &w.nats, "a", LINES);
    nodes_wait(&w.a, path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, path_of(w.busy_a), 200, "the daemon stopped while this execution ran");
    end_one(&w.b, w.busy_b);
    end(&w);
}

/* A node that stood still for long begins nothing that others began meanwhile. */
static void who_was_away_begins_nothing_twice(void **state)
{
    struct world w = {0};
    struct answer answer;
    char id[38];

    (void)state;
    begin(&w);
    wait_at_a(&w, id);
    assert_int_equal(kill(w.a.pid, SIGSTOP), 0);
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    /* Unless b has ended that too. */
    answer = harness_request(&w.a, "DELETE", path_of(w.busy_a), "", "", 0);
    answer_finish(&answer);
    nodes_wait(&w.a, path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nothing_is_lost_it_waits_its_turn),
        cmocka_unit_test(where_there_is_room_what_waits_goes),
        cmocka_unit_test(what_waits_at_a_node_that_stops_another_runs),
        cmocka_unit_test(what_waited_at_a_lost_node_is_run),
        cmocka_unit_test(who_was_away_begins_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
