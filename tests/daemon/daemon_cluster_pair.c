/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two nodes of five are lost at one moment: what was accepted ends at those that are left, and
 * nothing begins a second time but what may.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/waiting_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NODES   5u
#define LOST    2u
#define WAITING 5u /* at each that is lost */
#define SHORT   "{" WAITING_OF("exit") ",\"async\":true}"

struct world {
    struct nats_world nats;
    struct harness nodes[NODES];
    char logs[NODES][128];
    char held[NODES][38]; /* what runs at each; at the second it may be begun again */
    char waits[LOST][WAITING][38];
};

static const char *const names[NODES] = {"a", "b", "c", "d", "e"};

static void begin(struct world *w)
{
    nats_begin(&w->nats, NATS_SERVERS_MAX);
    for (size_t i = 0; i < NODES; i++) {
        nodes_start_logged(&w->nodes[i], &w->nats, names[i], WAITING_LINES, w->logs[i]);
        if (i == 0)
            nats_make(&w->nodes[0]);
        nats_wait_node(&w->nodes[i], NODE_JOINED);
        harness_wait_ready(&w->nodes[i]);
    }
    nodes_push_sure(&w->nodes[0], "demo");
    for (size_t i = 1; i < NODES; i++)
        nodes_wait(&w->nodes[i], "/v1/skills", 200, "\"name\":\"demo\"");
}

static void end(struct world *w)
{
    for (size_t i = NODES; i-- > LOST;)
        nodes_end(&w->nodes[i]);
    for (size_t i = 0; i < LOST; i++)
        nodes_end(&w->nodes[i]);
    nats_end(&w->nats);
}

/* Each runs one, and at those that will be lost more wait. */
static void fill(struct world *w)
{
    for (size_t i = 0; i < NODES; i++)
        if (i != 1)
            nodes_fill(&w->nodes[i], WAITING_BUSY, w->held[i]);
    /* The others have no room for it. */
    nodes_submit(&w->nodes[1], WAITING_RETRIED, w->held[1]);
    nodes_wait(&w->nodes[1], nodes_path_of(w->held[1]), 200, "\"status\":\"running\"");
    for (size_t i = 0; i < LOST; i++) {
        for (size_t k = 0; k < WAITING; k++)
            nodes_submit(&w->nodes[i], SHORT, w->waits[i][k]);
    }
}

static void lose(struct world *w)
{
    for (size_t i = 0; i < LOST; i++)
        assert_int_equal(kill(w->nodes[i].pid, SIGKILL), 0);
    for (size_t i = 0; i < LOST; i++)
        assert_int_equal(harness_stop(&w->nodes[i], SIGKILL), -1);
}

/* How often one began at all of them. */
static unsigned count_begun(const struct world *w, const char *id)
{
    char text[80];
    unsigned n = 0;

    snprintf(text, sizeof(text), "execution=%s begun ", id);
    for (size_t i = 0; i < NODES; i++)
        n += nodes_count_log(w->logs[i], text);
    return n;
}

static void expect_ends(const struct world *w, const struct harness *h)
{
    nodes_wait(h, nodes_path_of(w->held[0]), 200, "the node a was lost");
    for (size_t i = 0; i < LOST; i++) {
        for (size_t k = 0; k < WAITING; k++)
            nodes_wait(h, nodes_path_of(w->waits[i][k]), 200, "\"status\":\"success\"");
    }
    for (size_t i = 1; i < NODES; i++)
        nodes_wait(h, nodes_path_of(w->held[i]), 200, "\"status\":\"cancelled\"");
}

static void expect_begun_once(const struct world *w)
{
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(count_begun(w, w->held[i]), i == 1 ? 2 : 1);
    for (size_t i = 0; i < LOST; i++) {
        for (size_t k = 0; k < WAITING; k++)
            assert_int_equal(count_begun(w, w->waits[i][k]), 1);
    }
}

/* They come back when all of it is over, and know it as the others do. */
static void of_two_that_are_lost_at_once_nothing_is_lost(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    fill(&w);
    lose(&w);
    for (size_t i = LOST; i < NODES; i++)
        nodes_cancel(&w.nodes[i], w.held[i]);
    nodes_wait(&w.nodes[LOST], nodes_path_of(w.held[1]), 200, "\"status\":\"running\"");
    nodes_cancel(&w.nodes[LOST], w.held[1]);
    for (size_t i = LOST; i < NODES; i++)
        expect_ends(&w, &w.nodes[i]);
    for (size_t i = 0; i < LOST; i++) {
        nodes_start_logged(&w.nodes[i], &w.nats, names[i], WAITING_LINES, w.logs[i]);
        nats_wait_node(&w.nodes[i], NODE_JOINED);
        expect_ends(&w, &w.nodes[i]);
    }
    expect_begun_once(&w);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_that_are_lost_at_once_nothing_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
