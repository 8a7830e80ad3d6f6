/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants and keys of three nodes and three real nats-servers: what one changes is so at all.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define TENANTS "/v1/admin/tenants"
#define THREE   "  replicas: 3\n"

struct world {
    struct nats_world nats;
    struct harness a, b, c;
};

static void begin(struct world *w)
{
    nats_begin(&w->nats, 3);
    nats_start_node(&w->a, &w->nats, "a", THREE);
    nats_make(&w->a);
    nats_start_node(&w->b, &w->nats, "b", THREE);
    nats_start_node(&w->c, &w->nats, "c", THREE);
    nats_wait_node(&w->a, NODE_JOINED);
    nats_wait_node(&w->b, NODE_JOINED);
    nats_wait_node(&w->c, NODE_JOINED);
}

static void end(struct world *w)
{
    nodes_end(&w->c);
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

/* Whoever changes something reads it at once; the others do soon. */
static void what_one_changes_is_so_at_all(void **state)
{
    struct world w = {0};
    char key[80], id[64], path[128];

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "acme");
    expect(harness_get(&w.a, TENANTS "/acme"), 200, "\"name\":\"acme\"");
    expect(nodes_admin_sure(&w.a, "POST", TENANTS, "{\"name\":\"acme\"}"), 409,
           "there is a tenant named acme already");
    nodes_wait(&w.b, TENANTS "/acme", 200, "\"name\":\"acme\"");
    nodes_key(&w.b, "acme", key, id);
    assert_int_equal(nodes_try_key(&w.b, key), 200);
    nodes_wait_key(&w.c, key, 200);
    nodes_wait_key(&w.a, key, 200);
    expect(nodes_admin_sure(&w.c, "PATCH", TENANTS "/acme",
                            "{\"name\":\"other\",\"limits\":{\"max_running\":3,\"images\":"
                            "[\"python\",\"data\"],\"network\":\"a.example\"}}"),
           200, "\"max_running\":3");
    nodes_wait(&w.a, TENANTS "/other", 200, "\"max_running\":3");
    expect(harness_get(&w.a, TENANTS "/other"), 200, "\"network\":\"a.example\"");
    /* The name is free again, at all of them. */
    nodes_wait(&w.b, TENANTS "/acme", 404, "there is no tenant acme");
    nodes_tenant(&w.b, "acme");
    expect(nodes_admin_sure(&w.a, "PATCH", TENANTS "/other", "{\"disabled\":true}"), 200,
           "\"disabled\":true");
    assert_int_equal(nodes_try_key(&w.a, key), 401);
    nodes_wait_key(&w.b, key, 401);
    nodes_wait_key(&w.c, key, 401);
    expect(nodes_admin_sure(&w.b, "PATCH", TENANTS "/other", "{\"disabled\":false}"), 200, "");
    nodes_wait_key(&w.c, key, 200);
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    expect(nodes_admin_sure(&w.c, "DELETE", path, ""), 204, "");
    nodes_wait_key(&w.a, key, 401);
    nodes_wait_key(&w.b, key, 401);
    expect(nodes_admin_sure(&w.a, "DELETE", TENANTS "/other", ""), 204, "");
    nodes_wait(&w.c, TENANTS "/other", 404, "there is no tenant other");
    nodes_wait(&w.c, TENANTS, 200, "\"name\":\"acme\"");
    expect(nodes_admin_sure(&w.a, "DELETE", TENANTS "/other", ""), 404, "");
    end(&w);
}

/* One of many that change one tenant at once, each another limit. */
struct changer {
    const struct harness *node;
    const char *limit;
    pthread_t thread;
};

static void *change_often(void *ctx)
{
    struct changer *c = ctx;
    char json[96];

    for (unsigned i = 1; i <= 10; i++) {
        snprintf(json, sizeof(json), "{\"limits\":{\"%s\":%u}}", c->limit, i);
        expect(nodes_admin_sure(c->node, "PATCH", TENANTS "/acme", json), 200, "");
    }
    return NULL;
}

/* None of two changes is made of what the other one was not made of. */
static void changes_at_once_are_all_made(void **state)
{
    struct world w = {0};
    struct changer changers[] = {{.node = &w.a, .limit = "max_running"},
                                 {.node = &w.b, .limit = "max_queued"},
                                 {.node = &w.c, .limit = "rate_per_minute"}};

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "acme");
    nodes_wait(&w.b, TENANTS "/acme", 200, "");
    nodes_wait(&w.c, TENANTS "/acme", 200, "");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&changers[i].thread, NULL, change_often, &changers[i]),
                         0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(changers[i].thread, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        nodes_wait(changers[i].node, TENANTS "/acme", 200, "\"max_running\":10");
        nodes_wait(changers[i].node, TENANTS "/acme", 200, "\"max_queued\":10");
        nodes_wait(changers[i].node, TENANTS "/acme", 200, "\"rate_per_minute\":10");
    }
    end(&w);
}

/* The leader of the stream may go; what was changed meanwhile is so at all. */
static void the_leader_may_be_lost(void **state)
{
    struct world w = {0};
    size_t leader;
    char key[80], id[64], path[128];
    struct answer a;

    (void)state;
    begin(&w);
    nodes_key(&w.a, "default", key, id);
    leader = nats_leader(&w.nats, NATS_CHANGES);
    nats_kill(&w.nats, leader);
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    a = nodes_admin_sure(&w.b, "DELETE", path, "");
    /* What was not confirmed may have been made all the same. */
    expect(a, a.status == 404 ? 404 : 204, "");
    nodes_tenant(&w.b, "acme");
    nodes_wait_key(&w.a, key, 401);
    nodes_wait_key(&w.c, key, 401);
    nodes_wait(&w.a, TENANTS "/acme", 200, "");
    nodes_wait(&w.c, TENANTS "/acme", 200, "");
    end(&w);
}

/* A node with an older database, and one with none, have everything before they are joined. */
static void who_was_away_catches_up(void **state)
{
    struct world w = {0};
    struct harness d = {0};
    char key[80], id[64], path[128], kept[80], kept_id[64];

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "acme");
    nodes_tenant(&w.a, "gone");
    nodes_key(&w.a, "acme", key, id);
    nodes_key(&w.a, "acme", kept, kept_id);
    nodes_wait_key(&w.b, kept, 200);
    nodes_stop(&w.b);
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    expect(nodes_admin_sure(&w.a, "DELETE", path, ""), 204, "");
    /* Names go round while it is away. */
    expect(nodes_admin_sure(&w.a, "PATCH", TENANTS "/acme", "{\"name\":\"x\"}"), 200, "");
    expect(nodes_admin_sure(&w.a, "PATCH", TENANTS "/gone", "{\"name\":\"acme\"}"), 200, "");
    expect(nodes_admin_sure(&w.a, "PATCH", TENANTS "/x", "{\"name\":\"gone\"}"), 200, "");
    nodes_tenant(&w.c, "new");
    nats_start_node(&w.b, &w.nats, "b", THREE);
    nats_wait_node(&w.b, NODE_JOINED);
    assert_int_equal(nodes_try_key(&w.b, key), 401);
    assert_int_equal(nodes_try_key(&w.b, kept), 200);
    expect(harness_get(&w.b, TENANTS "/new"), 200, "");
    expect(harness_get(&w.b, TENANTS "/x"), 404, "");
    expect(harness_get(&w.b, TENANTS "/acme"), 200, "");
    expect(harness_get(&w.b, "/v1/admin/keys?tenant=gone"), 200, kept_id);
    expect(nodes_admin_sure(&w.b, "DELETE", TENANTS "/acme", ""), 204, "");
    nats_start_node(&d, &w.nats, "d", THREE);
    nats_wait_node(&d, NODE_JOINED);
    assert_int_equal(nodes_try_key(&d, key), 401);
    assert_int_equal(nodes_try_key(&d, kept), 200);
    expect(harness_get(&d, TENANTS "/acme"), 404, "");
    expect(harness_get(&d, TENANTS "/new"), 200, "");
    nodes_end(&d);
    end(&w);
}

/* So many tries of a key take a second on an idle machine, with the pauses between them. */
#define TRIES_OF_A_SECOND 80u

/*
 * Whether a key that was revoked at c is refused by a and b within a second of the answer, or
 * where requests take longer here, within as long as so many tries of that key take.
 */
static bool is_refused_soon(const struct world *w)
{
    char key[80], id[64], path[128];
    uint64_t answered_ns;
    unsigned tries = 0;
    bool is_soon = true;

    nodes_key(&w->c, "acme", key, id);
    nodes_wait_key(&w->a, key, 200);
    nodes_wait_key(&w->b, key, 200);
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    expect(nodes_admin_sure(&w->c, "DELETE", path, ""), 204, "");
    answered_ns = clock_monotonic_ns();
    while (is_soon && (nodes_try_key(&w->a, key) != 401 || nodes_try_key(&w->b, key) != 401)) {
        is_soon =
            ++tries < TRIES_OF_A_SECOND || clock_monotonic_ns() - answered_ns < NS_PER_SECOND;
        usleep(10000);
    }
    print_message("refused after %u tries and %llu ms\n", tries,
                  (unsigned long long)((clock_monotonic_ns() - answered_ns) / NS_PER_MS));
    nodes_wait_key(&w->a, key, 401);
    nodes_wait_key(&w->b, key, 401);
    return is_soon;
}

/* A busy machine may keep one key from it, and no two. */
static void a_key_is_revoked_everywhere_within_a_second(void **state)
{
    struct world w = {0};
    bool is_soon;

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "acme");
    nodes_wait(&w.c, TENANTS "/acme", 200, "");
    is_soon = is_refused_soon(&w);
    if (!is_soon)
        is_soon = is_refused_soon(&w);
    assert_true(is_soon);
    end(&w);
}

/*
 * Where the servers have no room for a change it is made nowhere, and who asked is told; the
 * nodes go on with what there is, and change things again once there is room.
 */
static void a_full_registry_changes_nothing(void **state)
{
    char key[80], id[64], json[64], path[64], log[128];
    struct world w = {0};
    int status = 201;

    (void)state;
    begin(&w);
    nodes_end(&w.a);
    w.a = (struct harness){0};
    nodes_start_logged(&w.a, &w.nats, "a", THREE, log);
    nats_wait_node(&w.a, NODE_JOINED);
    expect(harness_get(&w.a, "/v1/admin/cluster"), 200, "\"no_room\":null");
    nodes_tenant(&w.a, "acme");
    nodes_key(&w.a, "acme", key, id);
    nodes_wait_key(&w.b, key, 200);
    nats_limit(&w.nats, NATS_CHANGES, 8192);
    for (unsigned i = 0; status == 201; i++) {
        struct answer a;

        assert_true(i < 100);
        snprintf(json, sizeof(json), "{\"name\":\"t%u\"}", i);
        snprintf(path, sizeof(path), TENANTS "/t%u", i);
        a = nodes_admin(&w.a, "POST", TENANTS, json);
        status = a.status;
        if (status != 201 && (status != 503 || !answer_has(&a, "the servers have no room")))
            fail_msg("%d %s", status, a.body);
        answer_finish(&a);
    }
    expect(harness_get(&w.a, path), 404, "");
    expect(harness_get(&w.b, path), 404, "");
    /* The operator sees it, too. */
    expect(harness_get(&w.a, "/v1/admin/cluster"), 200,
           "\"no_room\":\"the servers have no room");
    nodes_wait_log(log, "changes=refused node=a message=\"the servers have no room", 1);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    assert_int_equal(nodes_try_key(&w.a, key), 200);
    assert_int_equal(nodes_try_key(&w.b, key), 200);
    nats_limit(&w.nats, NATS_CHANGES, 1 << 20);
    nodes_wait(&w.a, "/v1/admin/cluster", 200, "\"no_room\":null");
    expect(nodes_admin_sure(&w.b, "POST", TENANTS, json), 201, "");
    nodes_wait(&w.a, path, 200, "");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_changes_is_so_at_all),
        cmocka_unit_test(changes_at_once_are_all_made),
        cmocka_unit_test(the_leader_may_be_lost),
        cmocka_unit_test(who_was_away_catches_up),
        cmocka_unit_test(a_key_is_revoked_everywhere_within_a_second),
        cmocka_unit_test(a_full_registry_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
