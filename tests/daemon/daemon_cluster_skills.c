/* SPDX-License-Identifier: Apache-2.0 */
/* Skills of several nodes: what one registers, replaces and removes is so at all. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define SKILLS  "/v1/skills"
#define TENANTS "/v1/admin/tenants"
#define TYPE    "Content-Type: application/octet-stream\r\n"

struct world {
    struct nats_world nats;
    struct harness a, b, c;
};

static void begin(struct world *w)
{
    nodes_begin_two(&w->nats, &w->a, "", &w->b, "");
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

static struct answer push(const struct harness *h, const char *headers, const char *name,
                          const char *version, const char *script, const char *query)
{
    char path[64], all[256];
    size_t len;
    char *tar = harness_skill(name, version, script, &len);
    struct answer a;

    snprintf(path, sizeof(path), SKILLS "%s", query);
    snprintf(all, sizeof(all), TYPE "%s", headers);
    a = harness_request(h, "POST", path, all, tar, len);
    free(tar);
    return a;
}

/* A skill that says no version. */
static struct answer push_floating(const struct harness *h, const char *script)
{
    const struct harness_file files[] = {
        {"SKILL.md", "---\nname: f\ndescription: x\n---\nBody.\n"},
        {"main.py", script},
        {NULL, NULL}};

    return harness_push_files(h, files);
}

/* The row is at all nodes; what it holds comes where it is needed, once. */
static void what_is_pushed_at_one_runs_at_another(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    assert_int_equal(harness_push(&w.a, "demo", "1.0", "print(1)"), 201);
    expect(harness_get(&w.a, SKILLS "/demo/latest"), 200, "\"version\":\"1.0\"");
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"demo\"");
    assert_int_equal(harness_count_files(&w.b, "objects"), 0);
    expect(harness_run(&w.b, "{\"skill\":\"demo\",\"version\":\"1.0\"}"), 200,
           "\"status\":\"success\"");
    assert_int_equal(harness_count_files(&w.b, "objects"), 1);
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 200, "\"path\":\"main.py\"");
    expect(harness_get(&w.b, SKILLS "/demo/1.0/inspect"), 200, "\"name\":\"demo\"");
    /* A row lasts, and what a row names is kept. */
    nodes_stop(&w.b);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_JOINED);
    assert_int_equal(harness_count_files(&w.b, "objects"), 1);
    /* The same again changes nothing, also where it is pushed at another. */
    assert_int_equal(harness_push(&w.b, "demo", "1.0", "print(1)"), 201);
    assert_int_equal(nats_count(&w.nats, NATS_OBJECTS), 2);
    expect(nodes_admin_sure(&w.b, "DELETE", SKILLS "/demo/1.0", ""), 204, "");
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 404, "no skill named demo");
    nodes_wait(&w.a, SKILLS "/demo/1.0", 404, "no skill named demo");
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 0);
    expect(nodes_admin_sure(&w.a, "DELETE", SKILLS "/demo/1.0", ""), 404, "");
    end(&w);
}

/* Every tool of a tenant is there at every node. */
static void tools_are_at_all_nodes(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    assert_int_equal(harness_push(&w.a, "hammer", "1.0", "print(1)"), 201);
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"hammer\"");
    expect(harness_get(&w.b, "/v1/tools"), 200, "\"name\":\"hammer\"");
    assert_int_equal(harness_count_files(&w.b, "objects"), 1);
    end(&w);
}

/* Versions, those without one, what replaces and what follows: one order at all nodes. */
static void versions_have_one_order(void **state)
{
    struct world w = {0};
    char path[160];
    struct answer a;
    char previous[80];

    (void)state;
    begin(&w);
    expect(push(&w.a, "", "v", "1.0", "print(1)", ""), 201, "\"version\":\"1.0\"");
    nodes_wait_same(&w.a, &w.b, SKILLS);
    expect(push(&w.b, "", "v", "0.9", "print(2)", ""), 201, "\"version\":\"0.9\"");
    nodes_wait_same(&w.b, &w.a, SKILLS);
    expect(harness_get(&w.a, SKILLS "/v/latest"), 200, "\"version\":\"0.9\"");
    /* Other content under a version is a conflict wherever it comes, or replaces it. */
    expect(push(&w.b, "", "v", "1.0", "print(3)", ""), 409, "registered already with other");
    expect(push(&w.b, "", "v", "1.0", "print(3)", "?replace=true"), 201,
           "\"replaced\":\"sha256:");
    nodes_wait_same(&w.b, &w.a, SKILLS);
    expect(harness_get(&w.a, SKILLS "/v/latest"), 200, "\"version\":\"1.0\"");
    /* Without a version of its own other content follows, and the earlier one stays. */
    expect(push_floating(&w.a, "print(1)"), 201, "\"version\":\"1.0.0\"");
    nodes_wait_same(&w.a, &w.b, SKILLS);
    a = push_floating(&w.b, "print(2)");
    assert_int_equal(a.status, 201);
    answer_text(&a, "previous", previous, sizeof(previous));
    snprintf(path, sizeof(path), SKILLS "/f/%s", previous);
    answer_finish(&a);
    nodes_wait_same(&w.b, &w.a, SKILLS);
    expect(harness_get(&w.a, path), 200, "\"name\":\"f\"");
    /* Content that is back is not an earlier one any more. */
    expect(push_floating(&w.a, "print(1)"), 201, "\"previous\":\"sha256:");
    nodes_wait_same(&w.a, &w.b, SKILLS);
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    nodes_wait_same(&w.a, &w.c, SKILLS);
    expect(harness_get(&w.c, SKILLS "/v/1.0"), 200, "\"digest\"");
    nodes_end(&w.c);
    end(&w);
}

struct pusher {
    const struct harness *node;
    const char *script;
    int status;
    pthread_t thread;
};

static void *push_once(void *ctx)
{
    struct pusher *p = ctx;

    p->status = harness_push(p->node, "one", "1.0", p->script);
    return NULL;
}

static void of_two_that_push_one_name_one_is_first(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    for (unsigned round = 0; round < 5; round++) {
        struct pusher p[] = {{.node = &w.a, .script = "print(1)"},
                             {.node = &w.b, .script = "print(2)"}};

        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&p[i].thread, NULL, push_once, &p[i]), 0);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_join(p[i].thread, NULL), 0);
        assert_int_equal(p[0].status + p[1].status, 201 + 409);
        nodes_wait_same(&w.a, &w.b, SKILLS);
        expect(nodes_admin_sure(&w.b, "DELETE", SKILLS "/one/1.0", ""), 204, "");
        nodes_wait(&w.a, SKILLS "/one/1.0", 404, "");
    }
    end(&w);
}

static void bearer(const char *key, char ret[160])
{
    snprintf(ret, 160, "Authorization: Bearer %s\r\n", key);
}

/* Whose a skill is counts at every node; it goes everywhere with its tenant. */
static void a_tenants_skills_are_its_own_at_all_nodes(void **state)
{
    struct world w = {0};
    char key[80], other[80], id[64], headers[160], others[160];

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "acme");
    nodes_tenant(&w.a, "evil");
    nodes_key(&w.a, "acme", key, id);
    nodes_key(&w.a, "evil", other, id);
    bearer(key, headers);
    bearer(other, others);
    expect(push(&w.a, headers, "mine", "1.0", "print(1)", ""), 201, "mine");
    nodes_wait_key(&w.b, key, 200);
    nodes_wait_key(&w.b, other, 200);
    nodes_wait(&w.b, TENANTS "/acme", 200, "\"name\":\"acme\"");
    expect(harness_request(&w.b, "GET", SKILLS "/mine/1.0", others, "", 0), 404, "no skill");
    expect(harness_request(&w.b, "DELETE", SKILLS "/mine/1.0", others, "", 0), 404, "no skill");
    expect(harness_request(&w.b, "GET", SKILLS "/mine/1.0", headers, "", 0), 200, "main.py");
    expect(harness_request(&w.b, "GET", SKILLS, others, "", 0), 200, "[]");
    /* What it holds counts to its tenant's storage at every node. */
    expect(nodes_admin_sure(&w.b, "PATCH", TENANTS "/acme",
                            "{\"limits\":{\"storage_bytes\":4096}}"),
           200, "");
    expect(push(&w.b, headers, "more", "1.0", "print(2)", ""), 413, "quota_exceeded");
    expect(nodes_admin_sure(&w.a, "DELETE", TENANTS "/acme", ""), 204, "");
    nodes_wait(&w.b, TENANTS "/acme", 404, "");
    nodes_wait_key(&w.b, key, 401);
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 0);
    end(&w);
}

/* What a daemon had on its own is the cluster's where it makes it, and else keeps it out. */
static void skills_of_before_are_the_clusters(void **state)
{
    struct world w = {0};

    (void)state;
    nats_begin(&w.nats, 1);
    harness_init(&w.a, "boot", "restore");
    harness_start(&w.a, NULL);
    assert_int_equal(harness_push(&w.a, "old", "1.0", "print(1)"), 201);
    nodes_stop(&w.a);
    harness_init(&w.b, "boot", "restore");
    harness_start(&w.b, NULL);
    assert_int_equal(harness_push(&w.b, "own", "1.0", "print(1)"), 201);
    nodes_stop(&w.b);
    nats_start_node(&w.a, &w.nats, "a", "");
    nats_make(&w.a);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    expect(harness_get(&w.c, SKILLS "/old/1.0"), 200, "main.py");
    nodes_end(&w.c);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_CUT_OFF("own_rows"));
    expect(harness_get(&w.b, "/v1/admin/cluster"), 200, "skill own 1.0 of default");
    expect(nodes_admin(&w.b, "DELETE", SKILLS "/own/1.0", ""), 503, "cluster_unavailable");
    end(&w);
}

#define ID "0123456789abcdef0123456789abcdef"
#define ENTRY                                                                                  \
    "{\"schema\":1,\"tenant\":\"default\",\"name\":\"%s\",\"version\":\"1\",\"digest\":"       \
    "\"" ID ID "\",\"description\":\"\",\"created_ns\":1,\"bytes\":%s,\"place\":1,"            \
    "\"floating\":false,\"packages_digest\":\"\",\"packages_python\":0}"

static void wait_not(const struct world *w, const char *subject, const char *text)
{
    for (unsigned i = 0;; i++) {
        char found[256], *last = nats_last(&w->nats, NATS_CHANGES, subject, found);
        bool same = last && strcmp(last, text) == 0;

        free(last);
        if (!same)
            return;
        if (i == NODES_LOOKS)
            fail_msg("%s is %s for ever", subject, text);
        harness_pause(i);
    }
}

static void nonsense_is_no_skill(void **state)
{
    static const char subject[] = "$KV.skillvm_registry.skill.skl_" ID;
    static const char *const cases[][2] = {
        {"x", "-1"}, {"../x", "1"}, {"", "1"}, {"x", "\"\""}};
    struct world w = {0};
    char text[1024], was[256];

    (void)state;
    begin(&w);
    assert_int_equal(harness_push(&w.a, "demo", "1.0", "print(1)"), 201);
    nodes_wait_same(&w.a, &w.b, SKILLS);
    /* The entry of one that is there is written over: it is written anew by who has it. */
    free(nats_last(&w.nats, NATS_CHANGES, "$KV.skillvm_registry.skill.>", was));
    nats_publish(&w.nats, was, "{}", 2);
    wait_not(&w, was, "{}");
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    expect(harness_get(&w.c, SKILLS "/demo/1.0"), 200, "main.py");
    nodes_end(&w.c);
    for (size_t i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), ENTRY, cases[i][0], cases[i][1]);
        nats_publish(&w.nats, subject, text, strlen(text));
        nats_wait_refused(&w.a, "malformed", "skill.skl_" ID);
        nats_wait_refused(&w.b, "malformed", "skill.skl_" ID);
    }
    /* One whose object nobody has is there, and says so. */
    snprintf(text, sizeof(text), ENTRY, "ghost", "10");
    nats_publish(&w.nats, subject, text, strlen(text));
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"ghost\"");
    expect(harness_get(&w.b, SKILLS "/ghost/1"), 503, "object_unavailable");
    expect(harness_run(&w.b, "{\"skill\":\"ghost\",\"version\":\"1\"}"), 503,
           "object_unavailable");
    expect(harness_get(&w.b, "/v1/tools"), 200, "\"name\":\"demo\"");
    expect(nodes_admin_sure(&w.b, "DELETE", SKILLS "/ghost/1", ""), 204, "");
    end(&w);
}

/* Pushes versions of one skill until one is refused. How many were taken. */
static unsigned push_many(const struct harness *h, const char *headers, const char *name,
                          unsigned max)
{
    for (unsigned i = 0; i < max; i++) {
        char version[16];
        struct answer a;

        snprintf(version, sizeof(version), "%u.0", i + 1);
        a = push(h, headers, name, version, "print(1)", "");
        if (a.status != 201) {
            expect(a, 413, "remove versions, files or sessions");
            return i;
        }
        answer_finish(&a);
    }
    fail_msg("%u versions were taken", max);
    return max;
}

/* Whatever tenants push, keys are revoked, and another tenant has its share. */
static void skills_take_no_room_of_keys(void **state)
{
    struct world w = {0};
    char one[80], other[80], id[64], path[128], headers[160];
    unsigned n, of_other;

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "one");
    nodes_tenant(&w.a, "other");
    nodes_key(&w.a, "one", one, id);
    nodes_key(&w.a, "other", other, id);
    nats_limit(&w.nats, NATS_CHANGES, 64 << 10);
    bearer(one, headers);
    n = push_many(&w.a, headers, "x", 64);
    assert_true(n >= 8);
    nodes_wait_key(&w.b, other, 200);
    bearer(other, headers);
    of_other = push_many(&w.b, headers, "y", 64);
    assert_true(of_other >= n / 4);
    expect(push(&w.b, headers, "y", "1.0", "print(2)", "?replace=true"), 201, "replaced");
    nodes_tenant(&w.b, "third");
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    expect(nodes_admin_sure(&w.b, "DELETE", path, ""), 204, "");
    nodes_wait_key(&w.a, other, 401);
    end(&w);
}

/* A version that was removed leaves its place to the next one. */
static void removed_versions_leave_their_place(void **state)
{
    struct world w = {0};
    uint64_t before;

    (void)state;
    begin(&w);
    assert_int_equal(harness_push(&w.a, "kept", "1.0", "print(1)"), 201);
    before = nats_count(&w.nats, NATS_CHANGES);
    for (unsigned i = 0; i < 20; i++) {
        const struct harness *h = i % 2 ? &w.a : &w.b;
        char version[16], path[64];

        snprintf(version, sizeof(version), "%u.0", i);
        snprintf(path, sizeof(path), SKILLS "/x/%s", version);
        assert_int_equal(harness_push(h, "x", version, "print(1)"), 201);
        expect(nodes_admin_sure(h, "DELETE", path, ""), 204, "");
    }
    assert_int_equal(nats_count(&w.nats, NATS_CHANGES), before + 1);
    nodes_wait_same(&w.a, &w.b, SKILLS);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_pushed_at_one_runs_at_another),
        cmocka_unit_test(tools_are_at_all_nodes),
        cmocka_unit_test(versions_have_one_order),
        cmocka_unit_test(of_two_that_push_one_name_one_is_first),
        cmocka_unit_test(a_tenants_skills_are_its_own_at_all_nodes),
        cmocka_unit_test(skills_of_before_are_the_clusters),
        cmocka_unit_test(nonsense_is_no_skill),
        cmocka_unit_test(skills_take_no_room_of_keys),
        cmocka_unit_test(removed_versions_leave_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
