/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All nodes are started again, one after the other as docs/fleet.md says, while clients go on:
 * each of them gets an answer or is told when to come again, and what was accepted is run.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/chaos_clients.h"
#include "tests/daemon/nodes_world.h"

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NODES    3u
#define CLIENTS  4u
#define SENT_MAX 20000u
#define STEP     12u /* requests that clients send between two steps of the restart */
#define LINES    "limits:\n  max_running: 2\n"
#define PAUSE_US 20000u
#define REQUEST                                                                                \
    "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"sleep\",\"FAKE_DATA\":\"100\"},\"async\":%s}"

static const char *const names[NODES] = {"a", "b", "c"};

struct world {
    struct nats_world nats;
    struct harness nodes[NODES];
    bool may_end; /* atomic */
    unsigned n;   /* atomic: requests that were answered, or refused with a time */
    char (*ids)[38];
    unsigned n_ids;      /* atomic */
    char (*doubted)[38]; /* what another node did not answer for in time */
    unsigned n_doubted;  /* atomic */
    unsigned n_later;    /* atomic: that were told to come again */
    struct client {
        struct world *world;
        unsigned at;
        pthread_t thread;
        char fault[512]; /* what no client shall be told; "": nothing */
    } clients[CLIENTS];
};

static bool may_end(const struct world *w)
{
    return __atomic_load_n(&w->may_end, __ATOMIC_RELAXED);
}

/* The next node, as who has several addresses or a balancer before them. */
static const struct harness *turn(struct client *c)
{
    return &c->world->nodes[c->at++ % NODES];
}

/* Asks all nodes in turn until one says that it has succeeded. */
static void await(struct client *c, const char *id)
{
    uint64_t until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    char path[80];

    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    while (clock_monotonic_ns() < until) {
        struct answer a = chaos_ask(turn(c), "GET", path, "");
        bool is_done = a.status == 200 && answer_has(&a, "\"status\":\"success\"");

        answer_finish(&a);
        if (is_done)
            return;
        usleep(PAUSE_US);
    }
    snprintf(c->fault, sizeof(c->fault), "%s has not succeeded in %d s", id, NATS_WAIT_S);
}

static void note_id(struct client *c, const struct answer *a, bool is_later)
{
    struct world *w = c->world;
    unsigned at = __atomic_fetch_add(&w->n_ids, 1, __ATOMIC_RELAXED);
    cJSON *json = cJSON_Parse(a->body);
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(json, "execution_id"));

    if (!id || at >= SENT_MAX || (!is_later && !answer_has(a, "\"status\":\"success\"")))
        snprintf(c->fault, sizeof(c->fault), "got %d %.400s", a->status, a->body);
    else
        snprintf(w->ids[at], sizeof(w->ids[at]), "%s", id);
    cJSON_Delete(json);
    if (is_later && !c->fault[0])
        await(c, w->ids[at]);
}

/*
 * On a machine that is busy the one that was called may not answer in time, which is 2 s: then
 * it runs, or nobody has it. Who says so at once called nobody.
 */
static bool is_doubted(struct world *w, const struct answer *a, uint64_t asked_ns)
{
    const char *id = strstr(a->body, " as exec_");
    unsigned at;

    if (!id || !strstr(a->body, "another node may have accepted this") ||
        clock_monotonic_ns() < asked_ns + NS_PER_SECOND)
        return false;
    at = __atomic_fetch_add(&w->n_doubted, 1, __ATOMIC_RELAXED);
    if (at >= SENT_MAX)
        return false;
    snprintf(w->doubted[at], sizeof(w->doubted[at]), "%.37s", id + strlen(" as "));
    return true;
}

static void send_one(struct client *c, bool is_later)
{
    uint64_t asked_ns = clock_monotonic_ns();
    char json[160];
    struct answer a;

    snprintf(json, sizeof(json), REQUEST, is_later ? "true" : "false");
    a = chaos_ask(turn(c), "POST", "/v1/executions", json);
    /* Nobody is there at the moment: the next one is. */
    if (a.status == 0) {
        answer_finish(&a);
        return;
    }
    if (a.status == 200 || a.status == 202)
        note_id(c, &a, is_later);
    else if (a.status == 503 && strcasestr(a.headers, "\r\nRetry-After: "))
        (void)__atomic_fetch_add(&c->world->n_later, 1, __ATOMIC_RELAXED);
    else if (a.status != 503 || !is_doubted(c->world, &a, asked_ns))
        snprintf(c->fault, sizeof(c->fault), "got %d %.400s", a.status, a.body);
    answer_finish(&a);
    (void)__atomic_fetch_add(&c->world->n, 1, __ATOMIC_RELAXED);
}

static void *run_client(void *ctx)
{
    struct client *c = ctx;

    while (!may_end(c->world) && !c->fault[0]) {
        send_one(c, c->at % 2);
        usleep(PAUSE_US);
    }
    /* One that fails ends the test. */
    __atomic_store_n(&c->world->may_end, true, __ATOMIC_RELAXED);
    return NULL;
}

static void begin(struct world *w)
{
    nats_begin(&w->nats, 1);
    for (unsigned i = 0; i < NODES; i++) {
        nats_start_node(&w->nodes[i], &w->nats, names[i], LINES);
        if (i == 0)
            nats_make(&w->nodes[i]);
        nats_wait_node(&w->nodes[i], NODE_JOINED);
        harness_wait_ready(&w->nodes[i]);
    }
    nodes_push_sure(&w->nodes[0], "demo");
    for (unsigned i = 0; i < NODES; i++) {
        nodes_wait(&w->nodes[i], "/v1/skills", 200, "\"name\":\"demo\"");
        nats_wait_node(&w->nodes[i], "\"takes_executions\":true");
    }
    w->ids = calloc(SENT_MAX, sizeof(*w->ids));
    w->doubted = calloc(SENT_MAX, sizeof(*w->doubted));
    assert_non_null(w->ids);
    assert_non_null(w->doubted);
    for (unsigned i = 0; i < CLIENTS; i++) {
        w->clients[i] = (struct client){.world = w, .at = i};
        assert_int_equal(
            pthread_create(&w->clients[i].thread, NULL, run_client, &w->clients[i]), 0);
    }
}

/* That there are clients all the time. */
static void wait_sent(const struct world *w)
{
    unsigned from = __atomic_load_n(&w->n, __ATOMIC_RELAXED);
    uint64_t until = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;

    while (!may_end(w) && __atomic_load_n(&w->n, __ATOMIC_RELAXED) < from + STEP) {
        if (clock_monotonic_ns() > until)
            fail_msg("nobody is answered");
        usleep(PAUSE_US);
    }
}

/* The loop of docs/fleet.md for one node; another one is asked. */
static void restart(struct world *w, unsigned i)
{
    const struct harness *other = &w->nodes[(i + 1) % NODES];
    char drain[80];

    snprintf(drain, sizeof(drain), "/v1/admin/cluster/nodes/%s/drain", names[i]);
    harness_expect(nodes_admin_sure(other, "POST", drain, ""), 200, "\"draining\":true");
    nodes_wait(other, drain, 200, "\"running\":0,\"waiting\":0");
    wait_sent(w);
    nodes_stop(&w->nodes[i]);
    wait_sent(w);
    nats_start_node(&w->nodes[i], &w->nats, names[i], LINES);
    nats_wait_node(&w->nodes[i], NODE_JOINED);
    nats_wait_node(other, "\"state\":\"draining\"");
    harness_expect(nodes_admin_sure(other, "DELETE", drain, ""), 200, "\"draining\":false");
    harness_wait_ready(&w->nodes[i]);
    nats_wait_node(&w->nodes[i], "\"takes_executions\":true");
    wait_sent(w);
}

static void end_clients(struct world *w)
{
    __atomic_store_n(&w->may_end, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(w->clients[i].thread, NULL), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (w->clients[i].fault[0])
            fail_msg("a client: %s", w->clients[i].fault);
    }
}

static void expect_run(const struct world *w, const char *id)
{
    for (unsigned i = 0; i < NODES; i++)
        nodes_wait(&w->nodes[i], nodes_path_of(id), 200, "\"status\":\"success\"");
}

static bool is_known(const struct world *w, const char *id)
{
    char *record = nodes_record_of(&w->nats, id);
    bool is_there = record != NULL;

    free(record);
    return is_there;
}

static void a_rolling_restart_loses_nothing(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    wait_sent(&w);
    for (unsigned i = 0; i < NODES && !may_end(&w); i++)
        restart(&w, i);
    end_clients(&w);
    print_message("  %u ran, %u were told to come again, of %u nobody knew\n", w.n_ids,
                  w.n_later, w.n_doubted);
    assert_true(w.n_ids > NODES * STEP);
    for (unsigned i = 0; i < w.n_ids; i++)
        expect_run(&w, w.ids[i]);
    for (unsigned i = 0; i < w.n_doubted; i++) {
        if (is_known(&w, w.doubted[i]))
            expect_run(&w, w.doubted[i]);
    }
    for (unsigned i = NODES; i-- > 0;)
        nodes_end(&w.nodes[i]);
    nats_end(&w.nats);
    free(w.ids);
    free(w.doubted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rolling_restart_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
