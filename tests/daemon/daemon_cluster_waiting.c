/* SPDX-License-Identifier: Apache-2.0 */
/* What was accepted and has not begun is run by others where its node ends, or is lost. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

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
#define LINES             "limits:\n  max_running: 1\n  max_queued: 200\n"
#define SLOTS             "limits:\n  max_running: 4\n"
#define FAKE(how)         "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define BUSY              "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}"
#define LARGE             40000 /* bytes of an input, which no record has room for */
#define WAIT_ELSEWHERE(n) "\nskillvm_cluster_elsewhere_queued " n "\n"
#define MANY              80 /* more than one look sees to */
/* Of the tenant that the operator works for it begins an id that comes after nearly all. */
#define LATE    "{" FAKE("ticks") ",\"timeout\":600,\"async\":true,\"idempotency_key\":\"k211\"}"
#define LATE_ID "exec_ffb7e60e17fca6a46f5583268e6c1a81"

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

/* Its one slot is taken until that is ended. */
static void fill(const struct harness *h, char ret[38])
{
    nodes_submit(h, BUSY, ret);
    nodes_wait(h, nodes_path_of(ret), 200, "\"status\":\"running\"");
}

static void end_one(const struct harness *h, const char *id)
{
    expect(harness_request(h, "DELETE", nodes_path_of(id), "", "", 0), 202, "");
}

/* Nothing runs yet. The first is called so, or as its host is. */
static void begin_free(struct world *w, const char *a_name, const char *a_lines,
                       const char *b_lines)
{
    nodes_begin_named(&w->nats, &w->a, a_name, a_lines, &w->b, b_lines);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
}

/* Both are full. */
static void begin_as(struct world *w, const char *a_name, const char *a_lines)
{
    begin_free(w, a_name, a_lines, LINES);
    fill(&w->a, w->busy_a);
    fill(&w->b, w->busy_b);
}

static void begin(struct world *w)
{
    begin_as(w, "a", LINES);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* What the servers have of one. The caller's. */
static char *record_of(const struct world *w, const char *id)
{
    char subject[128], found[256], *record;

    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    record = nats_last(&w->nats, "KV_skillvm_executions", subject, found);
    assert_non_null(record);
    return record;
}

static void expect_record(const struct world *w, const char *id, const char *part, bool there)
{
    char *record = record_of(w, id);

    if ((strstr(record, part) != NULL) != there)
        fail_msg("%s is%s in %s", part, there ? " not" : "", record);
    free(record);
}

/* Until it waits at b. */
static void wait_at_b(const struct world *w, const char *id)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    bool waits = false;

    while (!waits) {
        char *record = record_of(w, id);

        waits = strstr(record, "\"node\":\"b\"") && strstr(record, "\"request\":\"{");
        if (!waits && clock_monotonic_ns() > until_ns)
            fail_msg("what waits is %s", record);
        free(record);
        usleep(50000);
    }
}

/* An asynchronous one that waits at a. */
static void wait_at_a(const struct world *w, char ret[38])
{
    nodes_submit(&w->a, "{" FAKE("exit") ",\"async\":true}", ret);
    expect(harness_get(&w->a, nodes_path_of(ret)), 200, "\"status\":\"accepted\"");
    expect_record(w, ret, "\"request\":\"{", true);
    nodes_wait(&w->b, nodes_path_of(ret), 200, "\"status\":\"accepted\"");
}

static void wait_large_at_a(const struct world *w, char ret[38])
{
    static char json[LARGE + 256];
    int n = snprintf(json, sizeof(json), "{" FAKE("exit") ",\"async\":true,\"input\":\"");

    memset(json + n, 'x', LARGE);
    (void)strcpy(json + n + LARGE, "\"}");
    nodes_submit(&w->a, json, ret);
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
    nodes_wait(&w.a, nodes_path_of(cancelled), 200, "\"status\":\"cancelled\"");
    end_one(&w.a, w.busy_a);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"waits\"", false);
    expect_record(&w, id, "\"node\":\"a\"", true);
    nodes_wait(&w.b, nodes_path_of(cancelled), 200, "\"status\":\"cancelled\"");
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
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (!answer_has(&reader.answer, "event: result") ||
        !answer_has(&reader.answer, "\"status\":\"success\""))
        fail_msg("events end with %s", reader.answer.body);
    answer_finish(&reader.answer);
    expect(harness_get(&w.a, nodes_path_of(w.busy_a)), 200, "\"status\":\"running\"");
    end(&w);
}

/* A limit of what waits is none of what goes: it counts as waiting where it comes from. */
static void what_goes_was_let_in_already(void **state)
{
    static const char limit[] = "\"max_queued\":1";
    struct world w = {0};
    char id[38];

    (void)state;
    begin(&w);
    expect(nodes_admin_sure(&w.a, "PATCH", "/v1/admin/tenants/default",
                            "{\"limits\":{\"max_queued\":1}}"),
           200, limit);
    nodes_wait(&w.b, "/v1/admin/tenants/default", 200, limit);
    /* What runs at b waited there for a moment. */
    harness_wait_metrics(&w.a, "\nskillvm_cluster_elsewhere_running 1\n", true);
    harness_wait_metrics(&w.a, WAIT_ELSEWHERE("0"), true);
    wait_at_a(&w, id);
    harness_wait_metrics(&w.b, WAIT_ELSEWHERE("1"), true);
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    end(&w);
}

/* Also while another node is asked whether it takes it, which does not answer: so it is for
   nearly all of the time, and for that of the next one's beginning. */
static void what_waits_can_be_cancelled(void **state)
{
    struct world w = {0};
    char ids[3][38];

    (void)state;
    begin_free(&w, "a", LINES, LINES);
    nats_wait_node(&w.b, "\"takes_executions\":true");
    fill(&w.a, w.busy_a);
    harness_freeze(w.b.pid);
    for (size_t i = 0; i < 3; i++)
        nodes_submit(&w.a, "{" FAKE("exit") ",\"async\":true}", ids[i]);
    for (size_t i = 0; i < 3; i++)
        end_one(&w.a, ids[i]);
    for (size_t i = 0; i < 3; i++)
        nodes_wait(&w.a, nodes_path_of(ids[i]), 200, "\"status\":\"cancelled\"");
    expect(harness_get(&w.a, nodes_path_of(w.busy_a)), 200, "\"status\":\"running\"");
    assert_int_equal(kill(w.b.pid, SIGCONT), 0);
    nats_wait_node(&w.b, NODE_JOINED);
    end(&w);
}

/* A node that stops accepts no connection any more. */
static void wait_stopping(const struct harness *h)
{
    uint64_t until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    while (access(h->socket, F_OK) == 0) {
        if (clock_monotonic_ns() > until)
            fail_msg("it does not stop");
        usleep(10000);
    }
}

/* It does not wait for what runs there to end. */
static void while_a_node_stops_what_waits_goes(void **state)
{
    struct world w = {0};
    char id[38];

    (void)state;
    begin_as(&w, "a", "stop_timeout: 10m\n" LINES);
    wait_at_a(&w, id);
    assert_int_equal(kill(w.a.pid, SIGTERM), 0);
    wait_stopping(&w.a);
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    /* What ran there is not over yet. */
    expect(harness_get(&w.b, nodes_path_of(w.busy_a)), 200, "\"status\":\"accepted\"");
    assert_int_equal(harness_stop(&w.a, SIGTERM), 0);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    nats_start_node(&w.a, &w.nats, "a", LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
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
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"cancelled\"");
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, nodes_path_of(large), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    nats_start_node(&w.a, &w.nats, "a", LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, nodes_path_of(large), 200, "\"status\":\"success\"");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    end(&w);
}

/* The same of who is lost, and what it ran has failed. It comes back before it is missed. */
static void lose_and_begin_anew(const char *a_name)
{
    struct world w = {0};
    char id[38];

    begin_as(&w, a_name, LINES);
    wait_at_a(&w, id);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nats_start_node(&w.a, &w.nats, a_name, LINES);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200,
               "the daemon stopped while this execution ran");
    end_one(&w.b, w.busy_b);
    end(&w);
}

static void what_waited_at_a_lost_node_is_run(void **state)
{
    (void)state;
    lose_and_begin_anew("a");
}

static void a_node_that_has_its_hosts_name_is_no_other(void **state)
{
    (void)state;
    lose_and_begin_anew(NULL);
}

/*
 * A slot is free, but its tenant has all it may: also that waits for a turn at whatever node,
 * and at the one that took it over as where it came from.
 */
static void what_waits_for_its_tenant_alone_is_run_too(void **state)
{
    struct world w = {0};
    char runs[38], id[38], own[38];

    (void)state;
    begin_free(&w, "a", SLOTS, SLOTS);
    nodes_set_limits(&w.a, &w.b, "\"max_running\":1");
    fill(&w.a, runs);
    harness_wait_metrics(&w.b, "\nskillvm_cluster_elsewhere_running 1\n", true);
    wait_at_a(&w, id);
    nodes_submit(&w.b, BUSY, own);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(runs), 200, "\"status\":\"failed\"");
    nodes_wait(&w.b, nodes_path_of(own), 200, "\"status\":\"running\"");
    wait_at_b(&w, id);
    end_one(&w.b, own);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

/* Who has no such image has room, and leaves what waits to who has. */
static void what_needs_an_image_waits_for_who_has_it(void **state)
{
    struct world w = {0};
    struct harness c = {0};
    char ids[8][38], runs[38], path[256];

    (void)state;
    begin_free(&w, "a", LINES, SLOTS);
    nodes_stop(&w.b);
    snprintf(path, sizeof(path), "%s/data.erofs", w.b.dir);
    assert_int_equal(unlink(path), 0);
    nats_start_node(&w.b, &w.nats, "b", SLOTS);
    nats_start_node(&c, &w.nats, "c", LINES);
    nats_wait_node(&w.b, NODE_JOINED);
    nats_wait_node(&c, NODE_JOINED);
    fill(&w.a, w.busy_a);
    fill(&c, runs);
    for (size_t i = 0; i < 8; i++)
        nodes_submit(&w.a, "{" FAKE("exit") ",\"image\":\"data\",\"async\":true}", ids[i]);
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(w.busy_a), 200, "\"status\":\"failed\"");
    end_one(&c, runs);
    for (size_t i = 0; i < 8; i++)
        nodes_wait(&c, nodes_path_of(ids[i]), 200, "\"status\":\"success\"");
    nodes_end(&c);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
}

/* However much waited there, and nobody has room for it: what ran fails. */
static void what_waits_keeps_no_end_waiting(void **state)
{
    struct world w = {0};
    char id[38];

    (void)state;
    begin_free(&w, "a", LINES, LINES);
    nodes_submit(&w.a, LATE, id);
    assert_string_equal(id, LATE_ID);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    fill(&w.b, w.busy_b);
    for (unsigned i = 0; i < MANY; i++)
        nodes_submit(&w.a, "{" FAKE("exit") ",\"async\":true}", id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"accepted\"");
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nodes_wait(&w.b, nodes_path_of(LATE_ID), 200,
               "the node a was lost while this execution ran");
    expect(harness_get(&w.b, nodes_path_of(w.busy_b)), 200, "\"status\":\"running\"");
    end_one(&w.b, w.busy_b);
    nodes_end(&w.b);
    harness_finish(&w.a);
    nats_end(&w.nats);
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
    harness_freeze(w.a.pid);
    end_one(&w.b, w.busy_b);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    /* Unless b has ended that too. */
    answer = harness_request(&w.a, "DELETE", nodes_path_of(w.busy_a), "", "", 0);
    answer_finish(&answer);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_record(&w, id, "\"node\":\"b\"", true);
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_untold 0\n");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nothing_is_lost_it_waits_its_turn),
        cmocka_unit_test(where_there_is_room_what_waits_goes),
        cmocka_unit_test(what_goes_was_let_in_already),
        cmocka_unit_test(what_waits_can_be_cancelled),
        cmocka_unit_test(while_a_node_stops_what_waits_goes),
        cmocka_unit_test(what_waits_at_a_node_that_stops_another_runs),
        cmocka_unit_test(what_waited_at_a_lost_node_is_run),
        cmocka_unit_test(a_node_that_has_its_hosts_name_is_no_other),
        cmocka_unit_test(what_waits_for_its_tenant_alone_is_run_too),
        cmocka_unit_test(what_needs_an_image_waits_for_who_has_it),
        cmocka_unit_test(what_waits_keeps_no_end_waiting),
        cmocka_unit_test(who_was_away_begins_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
