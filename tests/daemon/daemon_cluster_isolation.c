/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of three nodes: what is one's at the first no node gives to another. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/isolation.h"
#include "tests/daemon/nodes_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NODES 3u

struct world {
    struct nats_world nats;
    struct place nodes[NODES];
};

static void start_node(struct world *w, size_t i)
{
    static const char *const names[NODES] = {"a", "b", "c"};
    struct place *p = &w->nodes[i];
    char lines[128];

    p->tcp = two_tenants_port();
    snprintf(lines, sizeof(lines),
             "listen:\n  address: 127.0.0.1:%u\nlimits:\n  max_running: 4\n",
             ntohs(p->tcp.sin_port));
    nats_start_node(&p->h, &w->nats, names[i], lines);
    if (i == 0)
        nats_make(&p->h);
    nats_wait_node(&p->h, NODE_JOINED);
    harness_wait_ready(&p->h);
}

/* Waits until a node knows all that the first tenant has, and which keys are no good. */
static void wait_things(const struct place *p)
{
    static const char *const paths[][2] = {
        {"/v1/skills/{skill}/1", "\"name\""},
        {"/v1/files/{file}", "\"name\""},
        {"/v1/sessions/{session}", "\"id\""},
        {"/v1/executions/{ended}", "\"status\":\"success\""},
        {"/v1/executions/{live}", "\"status\":\"running\""},
    };

    nodes_wait_key(&p->h, p->first, 200);
    nodes_wait_key(&p->h, p->revoked, 401);
    nodes_wait_key(&p->h, p->disabled, 401);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char path[256];
        bool is_there = false;

        fill_in(paths[i][0], &p->things, path, sizeof(path));
        for (unsigned tries = 0; !is_there && tries < 3000; tries++) {
            struct answer a = ask_as(p, p->first, "", "GET", path, "");

            is_there = a.status == 200 && answer_has(&a, paths[i][1]);
            answer_finish(&a);
        }
        if (!is_there)
            fail_msg("%s is not there", path);
    }
}

static int start(void **state)
{
    static struct world w;
    static const char *const skills[NODES] = {"another", "another-b", "another-c"};

    nats_begin(&w.nats, 1);
    for (size_t i = 0; i < NODES; i++)
        start_node(&w, i);
    two_tenants_make(&w.nodes[0]);
    for (size_t i = 1; i < NODES; i++) {
        two_tenants_copy(&w.nodes[i], &w.nodes[0], skills[i]);
        wait_things(&w.nodes[i]);
    }
    *state = &w;
    return 0;
}

/* Whatever strangers tried, it is all still there and at work. */
static int stop(void **state)
{
    struct world *w = *state;
    const struct place *a = &w->nodes[0];

    for (size_t i = 0; i < NODES; i++)
        wait_things(&w->nodes[i]);
    harness_expect(harness_request(&a->h, "DELETE", nodes_path_of(a->things.live),
                                   "X-Tenant-ID: first\r\n", NULL, 0),
                   202, "cancelling");
    for (size_t i = NODES; i-- > 0;) {
        assert_int_equal(harness_stop(&w->nodes[i].h, SIGTERM), 0);
        two_tenants_finish(&w->nodes[i]);
    }
    nats_end(&w->nats);
    return 0;
}

static void other_tenants_get_nothing_at_any_node(void **state)
{
    const struct world *w = *state;

    for (size_t i = 0; i < NODES; i++)
        isolation_of_tenants(&w->nodes[i]);
}

static void strangers_are_refused_at_every_node(void **state)
{
    const struct world *w = *state;

    for (size_t i = 0; i < NODES; i++)
        isolation_of_strangers(&w->nodes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_tenants_get_nothing_at_any_node),
        cmocka_unit_test(strangers_are_refused_at_every_node),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
