/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of a cluster: what any node wrote is read at all of them, once and in one order. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define STREAM   "KV_skillvm_audit"
#define AUDIT    "/v1/admin/audit?limit=200"
#define TOLD     "\nskillvm_cluster_audit_untold 0\n"
#define FOLLOWED "\"audit\":{\"followed\":true,"
#define WRONG    "Authorization: Bearer skv_nobodys\r\n"
/* More than are read again when who follows them begins. */
#define REVISIONS 1100u
#define DIGITS    "0123456789abcdef0123456789abcdef"
#define MEMBERS   "\"tenant\":\"default\",\"actor\":\"uid:0\",\"action\":\"skill.push\""

struct world {
    struct nats_world nats;
    struct harness a, b;
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

static void push(const struct harness *h, const char *name)
{
    assert_int_equal(harness_push(h, name, "1.0", "print(1)"), 201);
}

/* Waits until a node shows what one of this name wrote of a target. */
static void wait_shown(const struct harness *h, const char *node, const char *action,
                       const char *target)
{
    char part[192];

    snprintf(part, sizeof(part), "\"node\":\"%s\",\"action\":\"%s\",\"target\":\"%s\"", node,
             action, target);
    nodes_wait(h, AUDIT, 200, part);
}

/* Once one has heard of the last that the other wrote. */
static void expect_same(const struct harness *one, const struct harness *other)
{
    uint64_t until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    bool is_same = false;

    while (!is_same) {
        struct answer a = harness_get(one, AUDIT), b = harness_get(other, AUDIT);

        assert_int_equal(a.status, 200);
        is_same = strcmp(a.body, b.body) == 0;
        if (!is_same && clock_monotonic_ns() > until_ns)
            fail_msg("%s is never %s", a.body, b.body);
        answer_finish(&a);
        answer_finish(&b);
        if (!is_same)
            usleep(50000);
    }
}

static unsigned count(const struct harness *h, const char *target)
{
    struct answer a = harness_get(h, AUDIT);
    cJSON *json = cJSON_Parse(a.body);
    const cJSON *entry;
    unsigned n = 0;

    cJSON_ArrayForEach(entry, cJSON_GetObjectItem(json, "entries"))
        n += strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(entry, "target")), target) == 0;
    cJSON_Delete(json);
    answer_finish(&a);
    return n;
}

/* Also the numbers that entries have at the node that wrote them. */
static void what_one_node_wrote_is_read_at_another(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    push(&w.a, "from_a");
    wait_shown(&w.b, "a", "skill.push", "from_a");
    push(&w.b, "from_b");
    wait_shown(&w.a, "b", "skill.push", "from_b");
    wait_shown(&w.b, "b", "skill.push", "from_b");
    expect_same(&w.a, &w.b);
    nodes_tenant(&w.b, "acme");
    wait_shown(&w.a, "b", "skill.push", "from_b");
    nodes_wait(&w.a, AUDIT, 200, "\"node\":\"b\",\"action\":\"tenant.create\"");
    nodes_wait(&w.a, "/v1/admin/audit?tenant=default", 200, "\"target\":\"from_b\"");
    expect(harness_get(&w.a, "/v1/admin/audit?tenant=acme"), 200, "\"next_cursor\":null");
    harness_wait_metrics(&w.a, TOLD, true);
    /* Who is started again goes on where it was. */
    nodes_stop(&w.b);
    push(&w.a, "meanwhile");
    nats_start_node(&w.b, &w.nats, "b", "");
    wait_shown(&w.b, "a", "skill.push", "meanwhile");
    expect_same(&w.a, &w.b);
    assert_int_equal(count(&w.b, "from_b"), 1);
    end(&w);
}

/* A daemon on its own, which joins: it shows who wrote what from then on, and the others do. */
static void who_joins_brings_its_audit_along(void **state)
{
    struct world w = {0};
    struct harness c = {0};
    const char *const alone[] = {NULL};

    (void)state;
    begin(&w);
    harness_init(&c, "boot", "restore");
    harness_start(&c, alone);
    harness_wait_ready(&c);
    expect(harness_request(&c, "GET", "/v1/skills", WRONG, "", 0), 401, "");
    nodes_wait(&c, AUDIT, 200, "\"node\":null,\"action\":\"auth.refused\"");
    assert_int_equal(harness_stop(&c, SIGTERM), 0);
    nats_start_node(&c, &w.nats, "c", "");
    nats_wait_node(&c, NODE_JOINED);
    nodes_wait(&w.a, AUDIT, 200, "\"node\":\"c\",\"action\":\"auth.refused\"");
    push(&w.a, "later");
    wait_shown(&c, "a", "skill.push", "later");
    expect_same(&c, &w.a);
    nodes_end(&c);
    end(&w);
}

/* It is written here at once, and told when the servers are back. */
static void who_is_cut_off_tells_later(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    push(&w.a, "before");
    wait_shown(&w.b, "a", "skill.push", "before");
    harness_wait_metrics(&w.a, TOLD, true);
    nats_kill(&w.nats, 0);
    nats_wait_node(&w.a, NODE_CUT_OFF("unreachable"));
    expect(harness_request(&w.a, "GET", "/v1/skills", WRONG, "", 0), 401, "");
    wait_shown(&w.a, "a", "auth.refused", "");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_audit_untold 1\n");
    /* Not by a daemon that ended meanwhile, either. */
    assert_int_equal(harness_stop(&w.a, SIGKILL), -1);
    nats_start_node(&w.a, &w.nats, "a", "");
    nodes_wait(&w.a, "/metrics", 200, "skillvm_cluster_audit_untold 1\n");
    assert_int_equal(count(&w.b, ""), 0);
    nats_restart(&w.nats, 0);
    wait_shown(&w.b, "a", "auth.refused", "");
    harness_wait_metrics(&w.a, TOLD, true);
    assert_int_equal(count(&w.a, ""), 1);
    assert_int_equal(count(&w.b, ""), 1);
    expect_same(&w.a, &w.b);
    end(&w);
}

/* It is no reason to be cut off, and who comes later has all of it. */
static void what_servers_lost_is_told_anew(void **state)
{
    struct world w = {0};
    struct harness c = {0};

    (void)state;
    begin(&w);
    push(&w.a, "from_a");
    push(&w.b, "from_b");
    wait_shown(&w.b, "a", "skill.push", "from_a");
    wait_shown(&w.a, "b", "skill.push", "from_b");
    nats_delete_bucket(&w.nats, STREAM);
    nodes_wait(&w.a, "/v1/admin/cluster", 200, "\"audit\":{\"followed\":false,");
    nodes_wait(&w.b, "/v1/admin/cluster", 200, "\"audit\":{\"followed\":false,");
    nats_wait_node(&w.a, NODE_JOINED);
    push(&w.a, "without");
    nats_make(&w.a);
    nats_start_node(&c, &w.nats, "c", "");
    wait_shown(&c, "a", "skill.push", "from_a");
    wait_shown(&c, "b", "skill.push", "from_b");
    wait_shown(&c, "a", "skill.push", "without");
    wait_shown(&w.b, "a", "skill.push", "without");
    expect_same(&w.a, &w.b);
    assert_int_equal(count(&w.a, "from_a"), 1);
    assert_int_equal(count(&c, "from_a"), 1);
    nodes_end(&c);
    end(&w);
}

/* Of the last minute, where they may have: as when another one leads, or they were not there.
 */
static void what_servers_may_have_lost_is_told_once_more(void **state)
{
    struct world w = {0};
    char subject[256];
    uint64_t until_ns;
    char *found;

    (void)state;
    begin(&w);
    push(&w.a, "lost");
    wait_shown(&w.b, "a", "skill.push", "lost");
    push(&w.b, "kept");
    wait_shown(&w.a, "b", "skill.push", "kept");
    harness_wait_metrics(&w.a, TOLD, true);
    nats_purge(&w.nats, STREAM, "$KV.skillvm_audit.a.*");
    assert_null(nats_last(&w.nats, STREAM, "$KV.skillvm_audit.a.*", subject));
    nats_kill(&w.nats, 0);
    nats_wait_node(&w.a, NODE_CUT_OFF("unreachable"));
    nats_restart(&w.nats, 0);
    until_ns = clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
    while (!(found = nats_last(&w.nats, STREAM, "$KV.skillvm_audit.a.*", subject))) {
        if (clock_monotonic_ns() > until_ns)
            fail_msg("it is never told again");
        usleep(50000);
    }
    free(found);
    harness_wait_metrics(&w.a, TOLD, true);
    assert_int_equal(count(&w.a, "lost"), 1);
    assert_int_equal(count(&w.b, "lost"), 1);
    end(&w);
}

/* However much is written, only the oldest of it goes there, and nothing of anything else. */
static void the_servers_keep_the_last_of_it(void **state)
{
    struct world w = {0};
    struct harness c = {0};
    uint64_t changes;
    char name[16];

    (void)state;
    begin(&w);
    assert_int_equal(nats_messages_max(&w.nats, STREAM), 100000);
    nats_limit(&w.nats, STREAM, 4096);
    for (unsigned i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        push(&w.a, name);
        /* Before the servers drop it. */
        wait_shown(&w.b, "a", "skill.push", name);
    }
    changes = nats_count(&w.nats, NATS_CHANGES);
    harness_wait_metrics(&w.a, TOLD, true);
    assert_true(nats_count(&w.nats, STREAM) < 20);
    assert_true(changes > 30);
    assert_int_equal(nats_count(&w.nats, NATS_CHANGES), changes);
    expect_same(&w.a, &w.b);
    /* Who comes later has what is left. */
    nats_start_node(&c, &w.nats, "c", "");
    wait_shown(&c, "a", "skill.push", "s29");
    assert_int_equal(count(&c, "s0"), 0);
    nodes_wait(&c, "/v1/skills?limit=200", 200, "\"name\":\"s0\"");
    nodes_end(&c);
    end(&w);
}

static void publish(const struct world *w, const char *entry, const char *members)
{
    char subject[192], text[8192];

    snprintf(subject, sizeof(subject), "$KV.skillvm_audit.%s", entry);
    snprintf(text, sizeof(text), "{\"schema\":1,\"id\":1,%s}", members);
    nats_publish(&w->nats, subject, text, strlen(text));
}

/* What is refused, and why. */
static void publish_nonsense(const struct world *w)
{
    char members[4096];

    nats_publish(&w->nats, "$KV.skillvm_audit.b." DIGITS, "\xff\xfe", 2);
    nats_publish(&w->nats, "$KV.skillvm_audit.b." DIGITS, "{}", 2);
    publish(w, "b." DIGITS, "\"at_ns\":5," MEMBERS ",\"target\":1,\"detail\":\"\"");
    publish(w, "b." DIGITS, "\"at_ns\":0," MEMBERS ",\"target\":\"bad\",\"detail\":\"\"");
    publish(w, "b." DIGITS, "\"at_ns\":-5," MEMBERS ",\"target\":\"bad\",\"detail\":\"\"");
    publish(w, "b." DIGITS, "\"at_ns\":5," MEMBERS ",\"target\":\"bad\",\"detail\":\"\xc3(\"");
    /* Of a time that is not yet. */
    publish(w, "b." DIGITS,
            "\"at_ns\":9223372036854775807," MEMBERS ",\"target\":\"bad\",\"detail\":\"\"");
    snprintf(members, sizeof(members),
             "\"at_ns\":5," MEMBERS ",\"target\":\"bad\",\"detail\":\"%02060d\"", 0);
    publish(w, "b." DIGITS, members);
    publish(w, "b.x", "\"at_ns\":5," MEMBERS ",\"target\":\"bad\",\"detail\":\"\"");
}

/* It takes nothing away, is said of in the log, and what comes after it is taken. */
static void nonsense_is_left_out(void **state)
{
    struct world w = {0};
    char path[128], subject[256] = "";

    (void)state;
    begin(&w);
    nodes_end(&w.b);
    w.b = (struct harness){0};
    nodes_start_logged(&w.b, &w.nats, "b", "", path);
    nats_wait_node(&w.b, NODE_JOINED);
    push(&w.a, "true");
    wait_shown(&w.b, "a", "skill.push", "true");
    publish_nonsense(&w);
    nats_wait_refused(&w.a, "wrong_name", "b.x");
    nats_wait_refused(&w.b, "wrong_name", "b.x");
    nats_publish(&w.nats, "$KV.skillvm_audit.b." DIGITS, "{\"schema\":2}", 12);
    nats_wait_refused(&w.b, "newer_schema", "b." DIGITS);
    nodes_wait_log(
        path, "entry=\"left out\" of=skillvm_audit key=\"b." DIGITS "\" reason=malformed", 1);
    /* Another content under the key of one that is there. */
    free(nats_last(&w.nats, STREAM, "$KV.skillvm_audit.a.*", subject));
    assert_non_null(strstr(subject, ".a."));
    publish(&w, strstr(subject, "a."),
            "\"at_ns\":5," MEMBERS ",\"target\":\"bad\",\"detail\":\"\"");
    push(&w.a, "after");
    wait_shown(&w.b, "a", "skill.push", "after");
    expect_same(&w.a, &w.b);
    assert_int_equal(count(&w.b, "bad"), 0);
    assert_int_equal(count(&w.b, "true"), 1);
    end(&w);
}

/*
 * Of a later version, it is stepped over. Yet a process that begins reads from it on, for it
 * may be of that version; what began with the last of all would not see it, for more came than
 * is read again.
 */
static void a_newer_entry_is_read_again(void **state)
{
    static const char newer[] = "{\"schema\":2,\"what\":\"ever\"}";
    struct world w = {0};

    (void)state;
    begin(&w);
    nats_publish(&w.nats, "$KV.skillvm_audit.c." DIGITS, newer, strlen(newer));
    nats_wait_refused(&w.b, "newer_schema", "c." DIGITS);
    for (unsigned i = 0; i < REVISIONS; i++)
        publish(&w, "d." DIGITS, "\"at_ns\":5," MEMBERS ",\"target\":\"d\",\"detail\":\"\"");
    push(&w.a, "later");
    wait_shown(&w.b, "a", "skill.push", "later");
    for (unsigned round = 0; round < 2; round++) {
        nodes_stop(&w.b);
        nats_start_node(&w.b, &w.nats, "b", "");
        nats_wait_refused(&w.b, "newer_schema", "c." DIGITS);
        nodes_wait(&w.b, "/v1/admin/cluster", 200, FOLLOWED);
        expect_same(&w.a, &w.b);
    }
    assert_int_equal(count(&w.b, "later"), 1);
    assert_int_equal(count(&w.b, "d"), 1);
    end(&w);
}

/* Takes a page, adds what it names to a list, and gives the cursor of the next one. */
static bool next_page(const struct harness *h, char cursor[192], char *names, size_t size)
{
    char path[256];
    struct answer a;
    const char *next;
    const cJSON *entry;
    cJSON *json;

    snprintf(path, sizeof(path), "/v1/admin/audit?limit=3%s%s", cursor[0] ? "&cursor=" : "",
             cursor);
    a = harness_get(h, path);
    assert_int_equal(a.status, 200);
    json = cJSON_Parse(a.body);
    cJSON_ArrayForEach(entry, cJSON_GetObjectItem(json, "entries")) {
        size_t len = strlen(names);

        snprintf(names + len, size - len, "%s/%s ",
                 cJSON_GetStringValue(cJSON_GetObjectItem(entry, "node")),
                 cJSON_GetStringValue(cJSON_GetObjectItem(entry, "target")));
    }
    next = cJSON_GetStringValue(cJSON_GetObjectItem(json, "next_cursor"));
    snprintf(cursor, 192, "%s", next ? next : "");
    cJSON_Delete(json);
    answer_finish(&a);
    return cursor[0] != '\0';
}

/* Whichever node gives each page, and whatever is written meanwhile. */
static void pages_neither_repeat_nor_skip(void **state)
{
    struct world w = {0};
    char cursor[192] = "", names[2048] = "", wanted[2048] = "", name[16];

    (void)state;
    /* With all that a node's name may have. */
    nodes_begin_named(&w.nats, &w.a, "Rack-1_A", "", &w.b, "");
    for (int i = 9; i >= 0; i--) {
        size_t len = strlen(wanted);

        snprintf(wanted + len, sizeof(wanted) - len, "%s/s%d ", i % 2 ? "b" : "Rack-1_A", i);
    }
    snprintf(wanted + strlen(wanted), 64, "Rack-1_A/skillvm_nodes ");
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        push(i % 2 ? &w.b : &w.a, name);
        wait_shown(i % 2 ? &w.a : &w.b, i % 2 ? "b" : "Rack-1_A", "skill.push", name);
    }
    for (unsigned page = 0; next_page(page % 2 ? &w.b : &w.a, cursor, names, sizeof(names));
         page++) {
        snprintf(name, sizeof(name), "new%u", page);
        push(&w.b, name);
        wait_shown(&w.a, "b", "skill.push", name);
    }
    assert_string_equal(names, wanted);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_node_wrote_is_read_at_another),
        cmocka_unit_test(who_joins_brings_its_audit_along),
        cmocka_unit_test(who_is_cut_off_tells_later),
        cmocka_unit_test(what_servers_lost_is_told_anew),
        cmocka_unit_test(what_servers_may_have_lost_is_told_once_more),
        cmocka_unit_test(the_servers_keep_the_last_of_it),
        cmocka_unit_test(nonsense_is_left_out),
        cmocka_unit_test(a_newer_entry_is_read_again),
        cmocka_unit_test(pages_neither_repeat_nor_skip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
