/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that cannot have what is new, or are told nonsense: nothing is half done, and said so.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect harness_expect

#define SLOT     "limits:\n  max_running: 1\n"
#define RUN(how) "{\"skill\":\"demo\",\"async\":true,\"env\":{\"FAKE\":\"" how "\"}"
#define TENANTS  "/v1/admin/tenants"
#define TENANT   "$KV.skillvm_registry.tenant."
#define HOLD     "ses_0123456789abcdef0123456789abcdef"
/* More than are read again in any case. */
#define REVISIONS 1100u
#define NOBODY    "ten_0123456789abcdef0123456789abcdef"

static void begin(struct nats_world *w, struct harness *a, struct harness *b)
{
    nodes_begin_two(w, a, "  keys_timeout: 10s\n", b, "");
}

static void end(struct nats_world *w, struct harness *a, struct harness *b)
{
    nodes_end(b);
    nodes_end(a);
    nats_end(w);
}

/* What cannot be made durable is refused, and after a while keys are, by who restarted too. */
static void without_servers_keys_end(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0}, b = {0};
    char key[80], id[64], path[128];

    (void)state;
    begin(&w, &a, &b);
    nodes_tenant(&a, "acme");
    nodes_key(&a, "acme", key, id);
    nodes_wait_key(&b, key, 200);
    nats_kill(&w, 0);
    /* Sooner or later: before it knows of that, and after. */
    expect(nodes_admin(&a, "POST", TENANTS, "{\"name\":\"late\"}"), 503,
           "\"error\":\"cluster_unavailable\"");
    nats_wait_node(&a, NODE_CUT_OFF("unreachable"));
    snprintf(path, sizeof(path), "/v1/admin/keys/%s", id);
    expect(nodes_admin(&a, "DELETE", path, ""), 503, "changed while this node");
    expect(harness_get(&a, TENANTS "/late"), 404, "");
    nodes_wait_key(&a, key, 503);
    nodes_wait(&a, "/ready", 503, "no server can be reached");
    expect(harness_get(&a, "/v1/admin/cluster"), 200, "\"takes_keys\":false");
    /* The operator's socket needs none. */
    expect(harness_get(&a, TENANTS "/acme"), 200, "");
    assert_int_equal(nodes_try_key(&b, key), 200);
    nodes_stop(&a);
    nats_start_node(&a, &w, "a", "  keys_timeout: 10s\n");
    assert_int_equal(nodes_try_key(&a, key), 503);
    nats_restart(&w, 0);
    nats_wait_node(&a, NODE_JOINED);
    assert_int_equal(nodes_try_key(&a, key), 200);
    expect(nodes_admin_sure(&a, "DELETE", path, ""), 204, "");
    nodes_wait_key(&b, key, 401);
    end(&w, &a, &b);
}

/* Where nobody could change anything yet, nothing is; a key that is there works all along. */
static void before_it_is_initialised_nothing_is_changed(void **state)
{
    struct nats_world w = {0};
    struct harness h = {0};
    char key[80], id[64];

    (void)state;
    nats_begin(&w, 1);
    /* On its own it has a tenant and a key, which are the cluster's from its beginning on. */
    harness_init(&h, "boot", "restore");
    harness_start(&h, NULL);
    nodes_tenant(&h, "acme");
    nodes_key(&h, "acme", key, id);
    nodes_stop(&h);
    nats_start_node(&h, &w, "a", "");
    nats_wait_node(&h, NODE_CUT_OFF("not_initialised"));
    expect(nodes_admin(&h, "POST", TENANTS, "{\"name\":\"x\"}"), 503, "skillvm cluster init");
    assert_int_equal(nodes_try_key(&h, key), 200);
    nats_make(&h);
    nats_wait_node(&h, NODE_JOINED);
    assert_int_equal(nodes_try_key(&h, key), 200);
    expect(harness_get(&h, TENANTS "/acme"), 200, "");
    nodes_end(&h);
    nats_end(&w);
}

/* Who has what the cluster has not is not mixed with it, and loses nothing. */
static void rows_of_its_own_keep_a_node_out(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0}, b = {0}, c = {0};

    (void)state;
    begin(&w, &a, &b);
    harness_init(&c, "boot", "restore");
    harness_start(&c, NULL);
    nodes_tenant(&c, "own");
    nodes_stop(&c);
    nats_start_node(&c, &w, "c", "");
    nats_wait_node(&c, NODE_CUT_OFF("own_rows"));
    expect(harness_get(&c, TENANTS "/own"), 200, "");
    nodes_stop(&c);
    harness_start(&c, NULL);
    expect(nodes_admin(&c, "DELETE", TENANTS "/own", ""), 204, "");
    nodes_stop(&c);
    nats_start_node(&c, &w, "c", "");
    nats_wait_node(&c, NODE_JOINED);
    nodes_end(&c);
    end(&w, &a, &b);
}

/* The bucket goes: what was in it is in every node, and makes the next one. */
static void a_deleted_bucket_loses_nothing(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0}, b = {0}, c = {0};
    char key[80], id[64];

    (void)state;
    begin(&w, &a, &b);
    nodes_tenant(&a, "acme");
    nodes_key(&a, "acme", key, id);
    nodes_wait_key(&b, key, 200);
    nats_delete_bucket(&w, NATS_CHANGES);
    nats_wait_node(&a, NODE_CUT_OFF("bucket_gone"));
    nats_wait_node(&b, NODE_CUT_OFF("bucket_gone"));
    expect(nodes_admin(&a, "POST", TENANTS, "{\"name\":\"x\"}"), 503, "was deleted");
    expect(nats_ask(&b, "POST", ""), 200, "\"made\":true");
    nats_wait_node(&a, NODE_JOINED);
    nats_wait_node(&b, NODE_JOINED);
    nats_start_node(&c, &w, "c", "");
    nats_wait_node(&c, NODE_JOINED);
    assert_int_equal(nodes_try_key(&c, key), 200);
    nodes_tenant(&a, "x");
    nodes_wait(&b, TENANTS "/x", 200, "");
    nodes_end(&c);
    end(&w, &a, &b);
}

/* It goes and another comes before anybody asks for it, whose revisions begin anew. */
static void another_bucket_of_the_name_is_noticed(void **state)
{
    struct nats_world w = {0};
    struct harness a = {0}, b = {0};

    (void)state;
    begin(&w, &a, &b);
    for (unsigned i = 0; i < 10; i++) {
        nodes_tenant(&a, "gone");
        expect(nodes_admin_sure(&a, "DELETE", TENANTS "/gone", ""), 204, "");
    }
    nodes_tenant(&a, "acme");
    nodes_wait(&b, TENANTS "/acme", 200, "");
    nats_delete_bucket(&w, NATS_CHANGES);
    expect(nats_ask(&a, "POST", ""), 200, "");
    nodes_tenant(&a, "late");
    nodes_wait(&b, TENANTS "/late", 200, "");
    nodes_wait(&a, TENANTS "/late", 200, "");
    expect(harness_get(&b, TENANTS "/acme"), 200, "");
    end(&w, &a, &b);
}

static void nonsense_changes_nothing(void **state)
{
    static const struct {
        const char *key;
        const char *text;
        const char *why;
        bool is_healed;
    } cases[] = {
        {"tenant." NOBODY, "{\"schema\":1}", "malformed", false},
        {"tenant." NOBODY, "[", "malformed", false},
        {"key.key_0123456789abcdef0123456789abcdef", "{\"schema\":1,\"tenant\":\"default\"}",
         "malformed", false},
        {"tenant.x", "{\"schema\":1}", "wrong_name", false},
        {"somewhere", "{\"schema\":1}", "wrong_name", false},
        {"tenant.default", "nonsense", "malformed", true},
        {"begin", "nonsense", "malformed", true},
    };
    struct nats_world w = {0};
    struct harness a = {0}, b = {0}, c = {0};
    char key[80], id[64], subject[128];

    (void)state;
    begin(&w, &a, &b);
    nodes_tenant(&a, "acme");
    nodes_key(&a, "acme", key, id);
    nodes_wait_key(&b, key, 200);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(subject, sizeof(subject), "$KV.skillvm_registry.%s", cases[i].key);
        nats_publish(&w, subject, cases[i].text, strlen(cases[i].text));
        nats_wait_refused_by(&a, &b, cases[i].why, cases[i].key);
        if (cases[i].is_healed)
            continue;
        nats_wait_refused(&a, cases[i].why, cases[i].key);
        nats_wait_refused(&b, cases[i].why, cases[i].key);
    }
    /* A key that is there is written over: it is written anew by who has it. */
    snprintf(subject, sizeof(subject), "$KV.skillvm_registry.key.%s", id);
    nats_publish(&w, subject, "{}", 2);
    nats_wait_refused_by(&a, &b, "malformed", strstr(subject, "key."));
    nats_wait_node(&a, NODE_JOINED);
    nats_start_node(&c, &w, "c", "");
    nats_wait_node(&c, NODE_JOINED);
    assert_int_equal(nodes_try_key(&c, key), 200);
    nodes_tenant(&b, "more");
    nodes_wait(&c, TENANTS "/more", 200, "");
    nodes_end(&c);
    end(&w, &a, &b);
}

/* What a later version wrote may be anything: this one follows no further, and says so. */
static void a_newer_version_is_told(void **state)
{
    static const char newer[] = "{\"schema\":2,\"what\":\"ever\"}";
    struct nats_world w = {0};
    struct harness a = {0}, b = {0};

    (void)state;
    begin(&w, &a, &b);
    nodes_tenant(&a, "acme");
    nats_publish(&w, TENANT NOBODY, newer, strlen(newer));
    nats_wait_node(&a, NODE_CUT_OFF("newer_version"));
    nats_wait_node(&b, NODE_CUT_OFF("newer_version"));
    expect(nodes_admin(&a, "POST", TENANTS, "{\"name\":\"x\"}"), 503, "a newer skillvm");
    expect(harness_get(&a, TENANTS "/acme"), 200, "");
    end(&w, &a, &b);
}

/*
 * So is a record of a later version, but this one goes on: what comes behind it is here. Yet a
 * process that begins reads from it on, for it may be of that version; what began with the last
 * of all would not see it, for more came than is read again.
 */
static void a_newer_record_is_read_again(void **state)
{
    static const char newer[] = "{\"schema\":2,\"what\":\"ever\"}";
    static const char id[] = "exec_0123456789abcdef0123456789abcdef";
    struct nats_world w = {0};
    struct harness a = {0}, b = {0};
    char subject[128], later[38];

    (void)state;
    begin(&w, &a, &b);
    assert_int_equal(harness_push(&a, "demo", "1.0", "print(1)"), 201);
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", id);
    nats_publish(&w, subject, newer, strlen(newer));
    nats_wait_refused(&a, "newer_schema", id);
    /* Of sessions, which are not looked at here. */
    for (unsigned i = 0; i < REVISIONS; i++)
        nats_publish(&w, "$KV.skillvm_executions." HOLD, "{}", 2);
    nodes_submit(&a, "{\"skill\":\"demo\",\"async\":true}", later);
    nodes_wait(&b, nodes_path_of(later), 200, "\"status\":\"success\"");
    for (unsigned round = 0; round < 2; round++) {
        nodes_stop(&b);
        nats_start_node(&b, &w, "b", "");
        nats_wait_node(&b, NODE_JOINED);
        nats_wait_refused(&b, "newer_schema", id);
        nodes_wait(&b, nodes_path_of(later), 200, "\"status\":\"success\"");
    }
    end(&w, &a, &b);
}

/* As a later version would have written the last of a subject. */
static void add_member(const struct nats_world *w, const char *stream, const char *subject)
{
    static const char more[] = ",\"later\":{\"of\":[1,null]}}";
    char found[256], *text = nats_last(w, stream, subject, found);
    size_t len = text ? strcspn(text, "\n") : 0;

    assert_true(len > 1 && text[len - 1] == '}');
    text = realloc(text, len + sizeof(more));
    assert_non_null(text);
    memcpy(text + len - 1, more, sizeof(more));
    nats_publish(w, found, text, len - 1 + strlen(more));
    free(text);
}

/*
 * While nodes are upgraded one after the other some write members that others do not know: what
 * they wrote is followed, by who comes anew too, and what waits begins and ends.
 */
static void what_a_later_version_adds_is_left_alone(void **state)
{
    static const char *const changes[] = {"tenant", "key", "skill"};
    struct nats_world w = {0};
    struct harness a = {0}, b = {0}, c = {0};
    char key[80], id[64], ended[38], runs[38], others[38], waits[38], subject[128];

    (void)state;
    nodes_begin_two(&w, &a, SLOT, &b, SLOT);
    nodes_tenant(&a, "acme");
    nodes_key(&a, "acme", key, id);
    assert_int_equal(harness_push(&a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&b, "/v1/skills", 200, "\"name\":\"demo\"");
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        snprintf(subject, sizeof(subject), "$KV.skillvm_registry.%s.>", changes[i]);
        add_member(&w, NATS_CHANGES, subject);
    }
    nodes_submit(&a, RUN("exit") "}", ended);
    nodes_wait(&a, nodes_path_of(ended), 200, "\"status\":\"success\"");
    /* The servers have its end, in whose place nothing older is to come. */
    nodes_wait(&b, nodes_path_of(ended), 200, "\"status\":\"success\"");
    nodes_fill(&a, RUN("ticks") ",\"timeout\":600}", runs);
    nodes_fill(&b, RUN("ticks") ",\"timeout\":600}", others);
    nodes_submit(&a, RUN("exit") "}", waits);
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", ended);
    add_member(&w, NATS_RECORDS, subject);
    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%s", waits);
    add_member(&w, NATS_RECORDS, subject);
    nodes_cancel(&a, runs);
    nodes_wait(&b, nodes_path_of(waits), 200, "\"status\":\"success\"");
    nats_start_node(&c, &w, "c", "");
    nats_wait_node(&c, NODE_JOINED);
    nodes_wait(&c, nodes_path_of(ended), 200, "\"status\":\"success\"");
    nodes_wait(&c, nodes_path_of(waits), 200, "\"status\":\"success\"");
    nodes_wait_key(&c, key, 200);
    expect(harness_run(&c, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    nodes_cancel(&b, others);
    nodes_end(&c);
    end(&w, &a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_servers_keys_end),
        cmocka_unit_test(before_it_is_initialised_nothing_is_changed),
        cmocka_unit_test(rows_of_its_own_keep_a_node_out),
        cmocka_unit_test(a_deleted_bucket_loses_nothing),
        cmocka_unit_test(another_bucket_of_the_name_is_noticed),
        cmocka_unit_test(nonsense_changes_nothing),
        cmocka_unit_test(a_newer_version_is_told),
        cmocka_unit_test(a_newer_record_is_read_again),
        cmocka_unit_test(what_a_later_version_adds_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
