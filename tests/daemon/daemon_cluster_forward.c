/* SPDX-License-Identifier: Apache-2.0 */
/* What a node has no room for another one runs, for whoever asked the first. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/fake_built.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define EXECUTIONS "/v1/executions"
#define ONE_SLOT   "limits:\n  max_running: 1\n"
#define FAKE(how)  "\"skill\":\"demo\",\"env\":{\"FAKE\":\"" how "\"}"
#define LONG       "{" FAKE("ticks") ",\"timeout\":600,\"async\":true}"
#define RAN(n)     "\nskillvm_executions_total{status=\"success\"} " n "\n"

struct world {
    struct nats_world nats;
    struct harness a, b;
};

/* A node that others can give something to. */
static void wait_free(const struct harness *h)
{
    harness_wait_metrics(h, "\nskillvm_executions_running 0\n", true);
    nats_wait_node(h, "\"takes_executions\":true");
}

/* Two nodes of one slot each; b has what the first needs. */
static void begin(struct world *w)
{
    nodes_begin_two(&w->nats, &w->a, ONE_SLOT, &w->b, ONE_SLOT);
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    wait_free(&w->b);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* Takes the only slot of a node. */
static void fill(const struct harness *h, char ret_id[38])
{
    nodes_fill(h, LONG, ret_id);
}

/* The answer is that of any execution, and its input is what came, byte for byte. */
static void who_has_no_room_asks_another(void **state)
{
    static const char json[] =
        "{\"skill\":\"demo\",\"input\":{ \"a\" :  [1,2] ,\"b\":\"\\u00e9\"}}";
    struct world w = {0};
    struct answer here, there;
    const char *one, *other;
    char held[38];

    (void)state;
    begin(&w);
    here = nodes_run(&w.b, json);
    assert_int_equal(here.status, 200);
    harness_wait_metrics(&w.b, RAN("1"), true);
    wait_free(&w.b);
    fill(&w.a, held);
    there = nodes_run(&w.a, json);
    assert_int_equal(there.status, 200);
    assert_true(answer_has(&there, "\"status\":\"success\""));
    harness_wait_metrics(&w.b, RAN("2"), true);
    harness_wait_metrics(&w.a, RAN("0"), true);
    one = strstr(here.body, "\"output\":");
    other = strstr(there.body, "\"output\":");
    assert_non_null(one);
    assert_non_null(other);
    assert_memory_equal(one, other, strcspn(one, "}"));
    answer_finish(&here);
    answer_finish(&there);
    wait_free(&w.b);
    /* What it leaves, events, and one that is only accepted. */
    there = nodes_run(&w.a, "{" FAKE("files") "}");
    assert_int_equal(there.status, 200);
    {
        char id[38], path[160];

        nodes_take_id(&there, id);
        snprintf(path, sizeof(path), "%s/files/a.txt", nodes_path_of(id));
        expect(harness_get(&w.a, path), 200, "alpha");
    }
    wait_free(&w.b);
    there = harness_request(&w.a, "POST", EXECUTIONS, "Accept: text/event-stream\r\n",
                            "{" FAKE("utf8") "}", strlen("{" FAKE("utf8") "}"));
    assert_int_equal(there.status, 200);
    assert_non_null(strstr(there.body, "event: result"));
    answer_finish(&there);
    harness_wait_metrics(&w.b, RAN("4"), true);
    nodes_cancel(&w.a, held);
    end(&w);
}

static void take_up_image(const struct harness *h)
{
    char folder[160];

    snprintf(folder, sizeof(folder), "%s/images", h->data);
    assert_int_equal(fd_make_folders(folder, 0700, 0700), 0);
    fake_built(folder, "tools.erofs", "restore, tools");
    expect(harness_request(h, "POST", "/v1/admin/images/reload", "", "", 0), 200,
           "\"added\":[\"tools\"]");
}

#define HAS_TOOLS(node) "\"node\":\"" node "\",\"images\":[\"python\",\"data\",\"tools\"]"

/* Nodes of other images are another group, which is asked for what it alone has. */
static void who_takes_up_an_image_is_asked_for_it(void **state)
{
    static const char json[] = "{\"skill\":\"demo\",\"image\":\"tools\",\"async\":true,"
                               "\"env\":{\"FAKE\":\"image\"}}";
    struct world w = {0};
    char held[38], given[38];

    (void)state;
    begin(&w);
    take_up_image(&w.a);
    nodes_wait(&w.b, "/v1/admin/cluster", 200, HAS_TOOLS("a"));
    expect(harness_run(&w.b, json), 400, "there is no image");
    /* b is not of the group of a, which finds it by what it says of itself. */
    fill(&w.a, held);
    expect(nodes_run(&w.a, "{" FAKE("exit") "}"), 200, "\"status\":\"success\"");
    harness_wait_metrics(&w.b, RAN("1"), true);
    wait_free(&w.b);
    /* It waits while nobody else has its image. */
    nodes_submit(&w.a, json, given);
    take_up_image(&w.b);
    nodes_wait(&w.a, "/v1/admin/cluster", 200, HAS_TOOLS("b"));
    nodes_wait(&w.a, nodes_path_of(given), 200,
               "\"status\":\"success\",\"logs\":\"restore, tools\"");
    harness_wait_metrics(&w.b, RAN("2"), true);
    nodes_cancel(&w.a, held);
    end(&w);
}

struct waiting {
    const struct harness *node;
    struct answer answer;
    pthread_t thread;
};

static void *run_short(void *ctx)
{
    struct waiting *p = ctx;

    p->answer = harness_run(p->node, "{" FAKE("exit") "}");
    return NULL;
}

/* Where all are full it waits where it came. */
static void where_nobody_has_room_it_waits(void **state)
{
    struct world w = {0};
    struct waiting p = {.node = &w.a};
    char held[38], other[38];

    (void)state;
    begin(&w);
    fill(&w.a, held);
    /* This one goes to b, which is full then. */
    {
        struct answer a = nodes_run(&w.a, LONG);

        assert_int_equal(a.status, 202);
        nodes_take_id(&a, other);
    }
    nodes_wait(&w.b, nodes_path_of(other), 200, "\"status\":\"running\"");
    nodes_wait(&w.a, nodes_path_of(other), 200, "\"status\":\"running\"");
    assert_int_equal(pthread_create(&p.thread, NULL, run_short, &p), 0);
    harness_wait_metrics(&w.a, "\nskillvm_executions_queued 1\n", true);
    nodes_cancel(&w.a, held);
    assert_int_equal(pthread_join(p.thread, NULL), 0);
    expect(p.answer, 200, "\"status\":\"success\"");
    harness_wait_metrics(&w.a, RAN("1"), true);
    /* From where it was asked for. */
    nodes_cancel(&w.a, other);
    end(&w);
}

/* A key is one execution also where it goes elsewhere, and its tenant's there too. */
static void keys_and_tenants_go_with_it(void **state)
{
    static const char json[] = "{\"code\":\"print(1)\",\"lang\":\"python\","
                               "\"idempotency_key\":\"k\"}";
    struct world w = {0};
    char held[38], id[38], key[80], key_id[64], headers[200];
    struct answer one, again, list;

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "other");
    nodes_key(&w.a, "other", key, key_id);
    nodes_wait_key(&w.b, key, 200);
    snprintf(headers, sizeof(headers),
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n", key);
    fill(&w.a, held);
    one = harness_request(&w.a, "POST", EXECUTIONS, headers, json, strlen(json));
    assert_int_equal(one.status, 200);
    harness_wait_metrics(&w.b, RAN("1"), true);
    again = harness_request(&w.b, "POST", EXECUTIONS, headers, json, strlen(json));
    assert_string_equal(one.body, again.body);
    answer_finish(&again);
    again = harness_request(&w.a, "POST", EXECUTIONS, headers, json, strlen(json));
    assert_string_equal(one.body, again.body);
    answer_finish(&again);
    list = harness_request(&w.b, "GET", EXECUTIONS, headers, "", 0);
    answer_text(&one, "execution_id", id, sizeof(id));
    assert_non_null(strstr(list.body, id));
    answer_finish(&list);
    /* It is nobody else's. */
    expect(harness_get(&w.b, nodes_path_of(id)), 404, "no execution");
    answer_finish(&one);
    /* What is refused there is refused here: nothing is accepted twice or not at all. */
    expect(harness_request(&w.a, "POST", EXECUTIONS, headers, "{\"skill\":\"demo\"}",
                           strlen("{\"skill\":\"demo\"}")),
           404, "no skill named demo");
    nodes_cancel(&w.a, held);
    end(&w);
}

/* The node that took it is lost: whoever waits hears of that. */
static void who_waits_hears_that_a_node_is_lost(void **state)
{
    struct world w = {0};
    char held[38], other[38];
    struct answer a;

    (void)state;
    begin(&w);
    fill(&w.a, held);
    a = nodes_run(&w.a, LONG);
    nodes_take_id(&a, other);
    nodes_wait(&w.b, nodes_path_of(other), 200, "\"status\":\"running\"");
    assert_int_equal(harness_stop(&w.b, SIGKILL), -1);
    nodes_wait(&w.a, nodes_path_of(other), 200, "the node b was lost while this execution ran");
    nodes_cancel(&w.a, held);
    nats_start_node(&w.b, &w.nats, "b", ONE_SLOT);
    nats_wait_node(&w.b, NODE_JOINED);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_room_asks_another),
        cmocka_unit_test(who_takes_up_an_image_is_asked_for_it),
        cmocka_unit_test(where_nobody_has_room_it_waits),
        cmocka_unit_test(keys_and_tenants_go_with_it),
        cmocka_unit_test(who_waits_hears_that_a_node_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
