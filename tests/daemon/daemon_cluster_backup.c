/* SPDX-License-Identifier: Apache-2.0 */
/* Backup and restore as docs/fleet.md has them: of the servers' folders, and of a node's. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define expect harness_expect

#define SERVERS    3u
#define TENANTS    "/v1/admin/tenants"
#define REPLICAS   "  replicas: 3\n"
#define AUDIT      "/v1/admin/audit"
#define NOTED_BY_A "\"node\":\"a\",\"action\":\"tenant.update\""

struct world {
    struct nats_world nats;
    struct harness a, b, c;
    char key[80];
};

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
    char command[512];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    assert_int_equal(system(command), 0);
}

static void join(struct world *w, struct harness *h, const char *name)
{
    nats_start_node(h, &w->nats, name, REPLICAS);
    nats_wait_node(h, NODE_JOINED);
}

/*
 * A row of the audit, for certain: what was made without being confirmed has none, and asked
 * for again it is there already.
 */
static void note(const struct harness *h, const char *tenant)
{
    char path[64];

    snprintf(path, sizeof(path), TENANTS "/%s", tenant);
    expect(nodes_admin_sure(h, "PATCH", path, "{\"disabled\":false}"), 200, "");
}

static void run(const struct harness *h)
{
    expect(nodes_admin_sure(h, "POST", "/v1/executions",
                            "{\"skill\":\"demo\",\"version\":\"1.0\"}"),
           200, "\"status\":\"success\"");
}

/* Two nodes with a tenant that has a key, and a skill that was pushed at the first. */
static void begin(struct world *w)
{
    char id[64];

    nats_begin(&w->nats, SERVERS);
    nats_start_node(&w->a, &w->nats, "a", REPLICAS);
    nats_make(&w->a);
    nats_wait_node(&w->a, NODE_JOINED);
    join(w, &w->b, "b");
    nodes_tenant(&w->a, "acme");
    nodes_key(&w->a, "acme", w->key, id);
    nodes_push_sure(&w->a, "demo");
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
}

/* As a service manager stops them. */
static void stop_servers(struct nats_world *w)
{
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(kill(w->servers[i].pid, SIGTERM), 0);
    for (size_t i = 0; i < w->n; i++) {
        assert_int_equal(waitpid(w->servers[i].pid, NULL, 0), w->servers[i].pid);
        w->servers[i].pid = -1;
    }
}

static void start_servers(struct nats_world *w)
{
    for (size_t i = 0; i < w->n; i++)
        nats_restart(w, i);
}

static void end(struct world *w)
{
    nodes_end(&w->c);
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

static void the_folders_of_stopped_servers_are_a_backup(void **state)
{
    struct world w = {0};
    const char *dir = w.nats.dir;

    (void)state;
    begin(&w);
    stop_servers(&w.nats);
    for (size_t i = 0; i < SERVERS; i++)
        shell("cp -a %s/%zu %s/copy%zu", dir, i, dir, i);
    start_servers(&w.nats);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_tenant(&w.a, "late");
    note(&w.a, "late");
    nodes_wait(&w.b, TENANTS "/late", 200, "");

    stop_servers(&w.nats);
    for (size_t i = 0; i < SERVERS; i++)
        shell("rm -r %s/%zu && cp -a %s/copy%zu %s/%zu", dir, i, dir, i, dir, i);
    start_servers(&w.nats);
    /* A new node has all of it, with what the skill holds. */
    join(&w, &w.c, "c");
    assert_int_equal(nodes_try_key(&w.c, w.key), 200);
    run(&w.c);
    expect(harness_get(&w.c, TENANTS "/late"), 404, "");
    /* Nodes that know of later changes keep them, and say so. */
    nats_wait_node(&w.a, NODE_CUT_OFF("own_rows"));
    nats_wait_node(&w.b, NODE_CUT_OFF("own_rows"));
    expect(harness_get(&w.a, TENANTS "/late"), 200, "");
    /* What they have becomes the cluster's. */
    nats_delete_bucket(&w.nats, NATS_CHANGES);
    expect(nats_ask(&w.a, "POST", ""), 200, "");
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    nodes_wait(&w.c, TENANTS "/late", 200, "");
    /* So does what their audit has of after the copy. */
    nodes_wait(&w.c, AUDIT, 200, NOTED_BY_A);
    end(&w);
}

static void the_data_of_a_node_makes_the_cluster_anew(void **state)
{
    struct world w = {0};
    const char *dir = w.nats.dir;

    (void)state;
    begin(&w);
    note(&w.a, "acme");
    nodes_stop(&w.a);
    shell("cp -a %s %s/data", w.a.data, dir);
    harness_finish(&w.a);
    nodes_end(&w.b);
    stop_servers(&w.nats);
    for (size_t i = 0; i < SERVERS; i++)
        shell("rm -r %s/%zu", dir, i);
    start_servers(&w.nats);

    /* Everything is gone but the copy. */
    w.a = w.b = (struct harness){0};
    harness_init(&w.a, "boot", "restore");
    shell("rm -rf %s && cp -a %s/data %s", w.a.data, dir, w.a.data);
    nats_start_node(&w.a, &w.nats, "a", REPLICAS);
    nats_wait_node(&w.a, "\"state\":\"cut_off\"");
    expect(nats_ask(&w.a, "POST", ""), 200, "");
    nats_wait_node(&w.a, NODE_JOINED);
    assert_int_equal(nodes_try_key(&w.a, w.key), 200);
    join(&w, &w.b, "b");
    join(&w, &w.c, "c");
    assert_int_equal(nodes_try_key(&w.c, w.key), 200);
    nodes_wait(&w.c, AUDIT, 200, NOTED_BY_A);
    run(&w.c);
    end(&w);
}

/* The others fill it: with it, and without one of them, there is a majority that has all. */
static void a_server_that_lost_its_folder_is_filled(void **state)
{
    struct world w = {0};
    char id[64], key[80];

    (void)state;
    begin(&w);
    nats_kill(&w.nats, 2);
    shell("rm -r %s/2", w.nats.dir);
    nats_restart(&w.nats, 2);
    nats_wait_replicas(&w.nats, NATS_CHANGES);
    nats_wait_replicas(&w.nats, NATS_OBJECTS);
    nats_kill(&w.nats, 0);
    nodes_key(&w.a, "acme", key, id);
    nodes_wait_key(&w.b, key, 200);
    join(&w, &w.c, "c");
    assert_int_equal(nodes_try_key(&w.c, w.key), 200);
    run(&w.c);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folders_of_stopped_servers_are_a_backup),
        cmocka_unit_test(a_server_that_lost_its_folder_is_filled),
        cmocka_unit_test(the_data_of_a_node_makes_the_cluster_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
