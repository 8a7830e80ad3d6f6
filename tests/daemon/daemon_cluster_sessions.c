/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of several nodes: what one run leaves the next one finds, wherever it runs. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"
#include "tests/daemon/sessions_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS "/v1/sessions"
#define TENANTS  "/v1/admin/tenants"
#define ROW      "$KV.skillvm_registry.session.ses_00000000000000000000000000000000"

struct world {
    struct nats_world nats;
    struct harness a, b;
};

static void begin_with(struct world *w, const char *a_lines, const char *b_lines)
{
    nodes_begin_two(&w->nats, &w->a, a_lines, &w->b, b_lines);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* What is in the only session of all tenants; "": there is none. */
static void take_row(const struct world *w, char ret[1024])
{
    char found[256], *last = nats_last(&w->nats, NATS_CHANGES, ROW, found);

    snprintf(ret, 1024, "%s", last ? last : "");
    free(last);
}

/* Begins one that goes on until it is cancelled. */
static void begin_run(const struct harness *h, const char *session, char ret_id[38])
{
    char json[256];

    snprintf(json, sizeof(json),
             "{\"code\":\"print(1)\",\"session_id\":\"%s\",\"env\":{\"FAKE\":\"ticks\"},"
             "\"timeout\":600,\"async\":true}",
             session);
    nodes_submit(h, json, ret_id);
    nodes_wait(h, nodes_path_of(ret_id), 200, "\"status\":\"running\"");
}

static void the_next_run_finds_it_anywhere(void **state)
{
    struct world w = {0};

    (void)state;
    begin_with(&w, "", "");
    /* At once, each time: what the one before left is never late. */
    expect(run(&w.a, "s", "session", "a=one"), 200, "\"committed\":true,\"bytes\":3");
    for (unsigned i = 0; i < 10; i++) {
        expect_both(run(&w.b, "s", "session-only", "b=two!"), "\"a\":[3,", "\"bytes\":4");
        expect_both(run(&w.a, "s", "session-only", "a=one"), "\"b\":[4,", "\"bytes\":3");
    }
    expect(run(&w.b, "s", "session", "c/d=three"), 200, "\"bytes\":8,\"files\":2");
    nodes_wait(&w.a, SESSIONS "/s", 200, "\"bytes\":8,\"files\":2");
    expect(harness_get(&w.a, SESSIONS "/s/files/c/d"), 200, "three");
    expect(harness_get(&w.b, SESSIONS "/s/files/a"), 200, "one");
    expect(harness_get(&w.a, "/v1/files?session_id=s"), 200, "\"name\":\"c/d\"");
    /* Nothing of what it was before stays, here or at the servers. */
    nodes_wait_objects(&w.a, 1);
    nodes_wait_objects(&w.b, 1);
    expect_status(remove_file(&w.a, "", "s", "a"), 204);
    expect_status(remove_file(&w.a, "", "s", "a"), 404);
    expect(run(&w.b, "s", "session", ""), 200, "\"output\":{\"c/d\":[5,");
    nodes_wait(&w.a, SESSIONS "/s", 200, "\"bytes\":5,\"files\":1");
    forget(&w.b, "s");
    nodes_wait(&w.a, SESSIONS "/s", 404, "there is no session s");
    expect_status(request(&w.a, "", "DELETE", SESSIONS "/s", NULL), 404);
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 0);
    expect(run(&w.a, "s", "session", "x=1"), 200, "\"committed\":true,\"bytes\":1");
    end(&w);
}

static void one_run_of_all_nodes_has_it(void **state)
{
    struct world w = {0};
    char id[38], other[38], said[128];

    (void)state;
    begin_with(&w, "", "");
    expect(run(&w.b, "s", "session", "a=one"), 200, "\"committed\":true");
    begin_run(&w.a, "s", id);
    snprintf(said, sizeof(said), "execution %s has session s", id);
    expect(run(&w.b, "s", "session", "b=two"), 409, said);
    expect(run(&w.a, "s", "session", "b=two"), 409, said);
    expect(request(&w.b, "", "DELETE", SESSIONS "/s", NULL), 409, said);
    expect(request(&w.a, "", "DELETE", SESSIONS "/s", NULL), 409, said);
    expect(remove_file(&w.b, "", "s", "a"), 409, said);
    /* It is read meanwhile, and another one is another. */
    expect(harness_get(&w.b, SESSIONS "/s/files/a"), 200, "one");
    begin_run(&w.b, "t", other);
    nodes_cancel(&w.b, other);
    nodes_cancel(&w.a, id);
    expect(run(&w.b, "s", "session", "b=two"), 200, "\"a\":[3,");
    expect(harness_get(&w.b, SESSIONS "/t"), 404, "there is no session t");
    end(&w);
}

/* Who reads of its end may go on with its session at any node. */
static void what_others_do_not_know_has_not_ended(void **state)
{
    struct world w = {0};
    char id[38];
    bool is_told_now = false;

    (void)state;
    begin_with(&w, "", "");
    while (!is_told_now) {
        struct answer a;

        begin_run(&w.a, "s", id);
        harness_freeze(w.nats.servers[0].pid);
        expect(request(&w.a, "", "DELETE", nodes_path_of(id), NULL), 202, "cancel");
        harness_until(harness_metrics_have(&w.a, "\nskillvm_cluster_untold 1\n"));
        a = harness_get(&w.a, nodes_path_of(id));
        /* Or it has ended, and is told later: a busy machine may take that long. */
        is_told_now = harness_metrics_have(&w.a, "\nskillvm_executions_running 1\n");
        assert_int_equal(kill(w.nats.servers[0].pid, SIGCONT), 0);
        if (is_told_now)
            expect(a, 200, "\"status\":\"running\"");
        else
            answer_finish(&a);
        nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
        harness_wait_metrics(&w.a, "\nskillvm_cluster_untold 0\n", true);
        nats_wait_node(&w.a, NODE_JOINED);
    }
    end(&w);
}

struct racer {
    const struct harness *node;
    unsigned committed;
    char wrong[200]; /* what nobody is to be answered */
    pthread_t thread;
};

static void *race(void *ctx)
{
    struct racer *r = ctx;

    while (r->committed < 10 && !r->wrong[0]) {
        struct answer a = run(r->node, "s", "session", "n=x");

        if (a.status == 200 && answer_has(&a, "\"committed\":true"))
            r->committed++;
        else if (a.status != 409)
            snprintf(r->wrong, sizeof(r->wrong), "%d %s", a.status, a.body);
        answer_finish(&a);
    }
    return NULL;
}

/* Each that is taken finds what the one before left, and commits: none is lost or refused. */
static void who_comes_at_once_waits_for_its_turn(void **state)
{
    struct world w = {0};
    struct racer racers[4] = {{.node = &w.a}, {.node = &w.b}, {.node = &w.a}, {.node = &w.b}};

    (void)state;
    begin_with(&w, "", "");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(racers[i].wrong, "");
    expect(run(&w.a, "s", "session-only", "n=x"), 200, "\"files\":1");
    end(&w);
}

static void a_lost_node_has_it_no_more(void **state)
{
    struct world w = {0};
    char id[38];

    (void)state;
    begin_with(&w, "", "");
    expect(run(&w.a, "s", "session", "a=one"), 200, "\"committed\":true");
    nodes_wait(&w.b, SESSIONS "/s", 200, "");
    begin_run(&w.a, "s", id);
    nodes_wait(&w.b, nodes_path_of(id), 200, "");
    (void)harness_stop(&w.a, SIGKILL);
    expect(run(&w.b, "s", "session", ""), 409, "has session s");
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"failed\"");
    expect(run(&w.b, "s", "session", "b=two"), 200, "\"a\":[3,");
    nats_start_node(&w.a, &w.nats, "a", "");
    nats_wait_node(&w.a, NODE_JOINED);
    expect(run(&w.a, "s", "session", ""), 200, "\"b\":[3,");
    end(&w);
}

/* What a node runs that was taken for lost changes nothing of what others have since. */
static void who_was_taken_for_lost_commits_nothing(void **state)
{
    struct world w = {0};
    char id[38], json[256];

    (void)state;
    begin_with(&w, "", "");
    expect(run(&w.a, "s", "session", "a=one"), 200, "\"committed\":true");
    nodes_wait(&w.b, SESSIONS "/s", 200, "");
    snprintf(json, sizeof(json),
             "{\"code\":\"print(1)\",\"session_id\":\"s\",\"env\":{\"FAKE\":\"sleep\","
             "\"FAKE_DATA\":\"20000\"},\"timeout\":600,\"async\":true}");
    nodes_submit(&w.a, json, id);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"running\"");
    nodes_wait(&w.b, nodes_path_of(id), 200, "");
    harness_freeze(w.a.pid);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"failed\"");
    expect(run(&w.b, "s", "session-only", "b=two"), 200, "\"committed\":true");
    assert_int_equal(kill(w.a.pid, SIGCONT), 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nodes_wait(&w.a, nodes_path_of(id), 200, "\"status\":\"failed\"");
    nodes_wait(&w.a, SESSIONS "/s", 200, "\"files_list\":[{\"path\":\"b\",\"size_bytes\":3}]");
    expect(run(&w.a, "s", "session", ""), 200, "\"output\":{\"b\":[3,");
    end(&w);
}

static void cut_off_nobody_has_one(void **state)
{
    struct world w = {0};
    char before[1024], after[1024];

    (void)state;
    begin_with(&w, "", "");
    expect(run(&w.a, "s", "session", "a=one"), 200, "\"committed\":true");
    nodes_wait(&w.b, SESSIONS, 200, "\"id\":\"s\"");
    take_row(&w, before);
    nats_kill(&w.nats, 0);
    nats_wait_node(&w.a, "\"state\":\"cut_off\"");
    nats_wait_node(&w.b, "\"state\":\"cut_off\"");
    expect(run(&w.a, "s", "session", "b=two"), 503, "cluster_unavailable");
    expect(request(&w.b, "", "DELETE", SESSIONS "/s", NULL), 503, "cluster_unavailable");
    expect(remove_file(&w.a, "", "s", "a"), 503, "cluster_unavailable");
    /* What is here is read. */
    expect(harness_get(&w.a, SESSIONS "/s/files/a"), 200, "one");
    expect(harness_get(&w.b, SESSIONS "/s/files/a"), 503, "cluster_unavailable");
    nats_restart(&w.nats, 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    take_row(&w, after);
    assert_string_equal(after, before);
    expect(run(&w.b, "s", "session", "b=two"), 200, "\"a\":[3,");
    end(&w);
}

/* A tenant of a cluster, as the header that says it. */
static void make_tenant(const struct world *w, const char *name, char ret_headers[160])
{
    char key[80], id[64];

    nodes_tenant(&w->a, name);
    nodes_key(&w->a, name, key, id);
    nodes_wait_key(&w->b, key, 200);
    snprintf(ret_headers, 160, "Authorization: Bearer %s\r\n", key);
}

static void each_tenant_has_its_own(void **state)
{
    struct world w = {0};
    char mine[160], others[160];

    (void)state;
    begin_with(&w, "", "");
    make_tenant(&w, "acme", mine);
    make_tenant(&w, "evil", others);
    expect(session_run_as(&w.a, mine, "s", "session", "a=secret"), 200, "\"committed\":true");
    for (const struct harness *h = &w.a; h <= &w.b; h++) {
        expect(request(h, others, "GET", SESSIONS "/s", NULL), 404, "there is no session s");
        expect(request(h, others, "GET", SESSIONS "/s/files/a", NULL), 404, "");
        expect(request(h, others, "DELETE", SESSIONS "/s", NULL), 404, "");
        expect(request(h, others, "GET", SESSIONS, NULL), 200, "[]");
    }
    expect(session_run_as(&w.b, others, "s", "session", "a=x"), 200, "\"output\":{},");
    expect(session_run_as(&w.b, mine, "s", "session", ""), 200, "\"a\":[6,");
    /* It goes with whose it is. */
    expect(nodes_admin_sure(&w.b, "DELETE", TENANTS "/acme", ""), 204, "");
    nodes_wait(&w.a, TENANTS "/acme", 404, "");
    nodes_wait(&w.b, TENANTS "/acme", 404, "");
    /* The other one's, where it ran. */
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 1);
    end(&w);
}

/* What a tenant stores, as a node has it. */
static unsigned stored(const struct harness *h)
{
    struct answer a = harness_get(h, TENANTS "/acme");
    unsigned n = (unsigned)answer_number(&a, "stored_bytes");

    answer_finish(&a);
    return n;
}

static void wait_stored(const struct harness *h, unsigned n)
{
    char part[64];

    snprintf(part, sizeof(part), "\"stored_bytes\":%u,", n);
    nodes_wait(h, TENANTS "/acme", 200, part);
}

/* Waits until a node has so many of its executions, with what they left. */
static void wait_ran(const struct harness *h, const char *headers, unsigned n)
{
    for (unsigned i = 0;; i++) {
        struct answer a = request(h, headers, "GET", "/v1/executions?status=success", NULL);
        unsigned found = answer_count(&a, "execution_id");

        answer_finish(&a);
        if (found == n)
            return;
        if (i == NODES_LOOKS)
            fail_msg("%u of its executions are known, never %u", found, n);
        harness_pause(i);
    }
}

static void it_counts_once_over_all_nodes(void **state)
{
    struct world w = {0};
    char headers[160], json[128];
    unsigned before;

    (void)state;
    begin_with(&w, "", "");
    make_tenant(&w, "acme", headers);
    expect(session_run_as(&w.a, headers, "s", "session", "a=one"), 200, "\"committed\":true");
    before = stored(&w.a);
    wait_stored(&w.b, before);
    /* Room for the results to come, and for no file more in a session. */
    snprintf(json, sizeof(json), "{\"limits\":{\"storage_bytes\":%u}}", before + 1024);
    expect(nodes_admin_sure(&w.a, "PATCH", TENANTS "/acme", json), 200, "");
    snprintf(json, sizeof(json), "\"storage_bytes\":%u,", before + 1024);
    nodes_wait(&w.b, TENANTS "/acme", 200, json);
    /* What is as large takes its place; one more, or a larger one, has none. */
    expect(session_run_as(&w.b, headers, "s", "session-only", "b=two"), 200,
           "\"committed\":true");
    expect(session_run_as(&w.b, headers, "s", "session", "c=three"), 200, "storage_bytes");
    expect(session_run_as(&w.a, headers, "t", "session", "a=one"), 200, "storage_bytes");
    expect(request(&w.a, headers, "GET", SESSIONS "/s", NULL), 200, "\"files\":1");
    expect(request(&w.a, headers, "GET", SESSIONS "/t", NULL), 404, "");
    /* Those of the other node are heard of. */
    wait_ran(&w.a, headers, 4);
    wait_ran(&w.b, headers, 4);
    before = stored(&w.a);
    wait_stored(&w.b, before);
    expect(request(&w.a, headers, "DELETE", SESSIONS "/s", NULL), 204, "");
    wait_stored(&w.a, before - 2048);
    wait_stored(&w.b, before - 2048);
    end(&w);
}

/* When a node says that a session goes. */
static void expires_at(const struct harness *h, char ret[64])
{
    struct answer a = harness_get(h, SESSIONS);

    answer_text(&a, "expires_at", ret, 64);
    answer_finish(&a);
}

static void a_use_anywhere_keeps_it(void **state)
{
    struct world w = {0};
    char first[64], here[64], there[64];

    (void)state;
    begin_with(&w, "retention:\n  sessions_age: 20s\n  interval: 1d\n",
               "retention:\n  sessions_age: 20s\n  interval: 100ms\n");
    expect(run(&w.a, "s", "session", "a=one"), 200, "\"committed\":true");
    nodes_wait(&w.b, SESSIONS, 200, "\"id\":\"s\"");
    expires_at(&w.b, first);
    do {
        expect(harness_get(&w.b, SESSIONS "/s"), 200, "");
        expires_at(&w.b, here);
        usleep(100000);
    } while (strcmp(first, here) == 0);
    for (unsigned i = 0;; i++) {
        expires_at(&w.a, there);
        if (strcmp(first, there) != 0)
            break;
        if (i == NODES_LOOKS)
            fail_msg("it stays %s", there);
        harness_pause(i);
    }
    end(&w);
}

static void what_nobody_uses_goes_everywhere(void **state)
{
    struct world w = {0};
    char row[1024];

    (void)state;
    begin_with(&w, "retention:\n  sessions_age: 1s\n  interval: 100ms\n",
               "retention:\n  sessions_age: 1d\n  interval: 1h\n");
    expect(run(&w.b, "s", "session", "a=one"), 200, "\"committed\":true");
    nodes_wait(&w.b, SESSIONS "/s", 404, "there is no session s");
    nodes_wait(&w.a, SESSIONS "/s", 404, "");
    take_row(&w, row);
    assert_string_equal(row, "");
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 0);
    end(&w);
}

/* Of what a daemon had on its own the cluster has that of the node that makes it; what another
   one brings is that one's until a run of it commits. */
static void sessions_of_before_are_kept(void **state)
{
    struct world w = {0};

    (void)state;
    nats_begin(&w.nats, 1);
    harness_init(&w.a, "boot", "restore");
    harness_start(&w.a, NULL);
    expect(run(&w.a, "old", "session", "a=one"), 200, "\"committed\":true");
    nodes_stop(&w.a);
    harness_init(&w.b, "boot", "restore");
    harness_start(&w.b, NULL);
    expect(run(&w.b, "own", "session", "b=two"), 200, "\"committed\":true");
    nodes_stop(&w.b);
    nats_start_node(&w.a, &w.nats, "a", "");
    nats_make(&w.a);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    expect(harness_get(&w.b, SESSIONS "/old/files/a"), 200, "one");
    expect(run(&w.b, "old", "session", ""), 200, "\"a\":[3,");
    expect(harness_get(&w.a, SESSIONS "/own"), 404, "");
    expect(run(&w.b, "own", "session", "c=three"), 200, "\"b\":[3,");
    nodes_wait(&w.a, SESSIONS "/own", 200, "\"files\":2");
    expect(run(&w.a, "own", "session", ""), 200, "\"c\":[5,");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_run_finds_it_anywhere),
        cmocka_unit_test(one_run_of_all_nodes_has_it),
        cmocka_unit_test(what_others_do_not_know_has_not_ended),
        cmocka_unit_test(who_comes_at_once_waits_for_its_turn),
        cmocka_unit_test(a_lost_node_has_it_no_more),
        cmocka_unit_test(who_was_taken_for_lost_commits_nothing),
        cmocka_unit_test(cut_off_nobody_has_one),
        cmocka_unit_test(each_tenant_has_its_own),
        cmocka_unit_test(it_counts_once_over_all_nodes),
        cmocka_unit_test(a_use_anywhere_keeps_it),
        cmocka_unit_test(what_nobody_uses_goes_everywhere),
        cmocka_unit_test(sessions_of_before_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
