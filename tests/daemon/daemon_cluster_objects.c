/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What skills hold, as it lies at the servers: where these are lost, are full, or somebody
 * changes there what is a node's.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/fd.h"

#include <cjson/cJSON.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

#define SKILLS "/v1/skills"
#define LARGE  (24u << 20) /* of a script that cannot be pressed */
#define METAS  "$O.skillvm_objects.M.>"

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

static struct answer push(const struct harness *h, const char *name, const char *script)
{
    size_t len;
    char *tar = harness_skill(name, "1.0", script, &len);
    struct answer a = harness_request(h, "POST", SKILLS,
                                      "Content-Type: application/octet-stream\r\n", tar, len);

    free(tar);
    return a;
}

/* Cannot be pressed much, and is text. */
static char *large_script(void)
{
    char *script = malloc(LARGE + 1);
    uint32_t x = 1;

    assert_non_null(script);
    for (size_t i = 0; i < LARGE; i++) {
        x = x * 1664525u + 1013904223u;
        script[i] = (char)('a' + (x >> 24) % 26);
    }
    script[LARGE] = '\0';
    return script;
}

/*
 * What is said of the object that was said last, and under which subject its chunks are. Its
 * size.
 */
static size_t last_object(const struct world *w, char subject[256], char chunks[256])
{
    char *text = nats_last(&w->nats, NATS_OBJECTS, METAS, subject);
    cJSON *json;
    size_t size;

    assert_non_null(text);
    json = cJSON_Parse(text);
    size = (size_t)cJSON_GetNumberValue(cJSON_GetObjectItem(json, "size"));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "bucket")),
                        "skillvm_objects");
    snprintf(chunks, 256, "$O.skillvm_objects.C.%s",
             cJSON_GetStringValue(cJSON_GetObjectItem(json, "nuid")));
    cJSON_Delete(json);
    free(text);
    return size;
}

static void *read_large(void *node)
{
    expect(harness_get(node, SKILLS "/large/1.0"), 200, "\"size_bytes\":25165824");
    return NULL;
}

/* A large one comes as it was, in chunks as NATS's tools make them. */
static void a_large_one_comes_as_it_was(void **state)
{
    struct world w = {0};
    char *script = large_script();
    pthread_t threads[12];
    uint64_t n;

    (void)state;
    begin(&w);
    expect(push(&w.a, "large", script), 201, "large");
    n = nats_count(&w.nats, NATS_OBJECTS);
    assert_true(n > LARGE / (128 * 1024) && n < LARGE / (128 * 1024) + 4);
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"large\"");
    /* Many who need it at once wait for one. */
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_large, &w.b), 0);
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    expect(harness_run(&w.b, "{\"skill\":\"large\",\"version\":\"1.0\"}"), 200,
           "\"status\":\"success\"");
    free(script);
    end(&w);
}

/* Both know that no server is there: what is said of them later is no more what was before. */
static void wait_cut_off(const struct world *w)
{
    nats_wait_node(&w->a, NODE_CUT_OFF("unreachable"));
    nats_wait_node(&w->b, NODE_CUT_OFF("unreachable"));
}

/* Cut off a node takes no skill and begins nothing, and shows what it has. */
static void cut_off_it_shows_what_it_has(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    expect(push(&w.a, "near", "print(1)"), 201, "near");
    expect(push(&w.a, "far", "print(2)"), 201, "far");
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"far\"");
    expect(harness_get(&w.b, SKILLS "/near/1.0"), 200, "main.py");
    nats_kill(&w.nats, 0);
    expect(push(&w.a, "more", "print(3)"), 503, "cluster_unavailable");
    expect(nodes_admin(&w.b, "DELETE", SKILLS "/near/1.0", ""), 503, "cluster_unavailable");
    expect(harness_get(&w.b, SKILLS "/near/1.0"), 200, "main.py");
    expect(harness_get(&w.b, SKILLS "/far/1.0"), 503, "cluster_unavailable");
    expect(harness_run(&w.b, "{\"skill\":\"far\",\"version\":\"1.0\"}"), 503,
           "cluster_unavailable");
    expect(harness_get(&w.a, SKILLS "/far/1.0"), 200, "main.py");
    wait_cut_off(&w);
    nats_restart(&w.nats, 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    expect(harness_get(&w.b, SKILLS "/far/1.0"), 200, "main.py");
    expect(push(&w.a, "more", "print(3)"), 201, "more");
    end(&w);
}

struct pusher {
    const struct harness *node;
    const char *script;
    struct answer answer;
    pthread_t thread;
};

static void *push_once(void *ctx)
{
    struct pusher *p = ctx;

    p->answer = push(p->node, "large", p->script);
    return NULL;
}

/*
 * What was not all sent is no skill; the same again is one. Where all was sent before the
 * server ended it is there.
 */
static void servers_are_lost_in_the_middle(void **state)
{
    struct world w = {0};
    char *script = large_script();
    struct pusher p = {.node = &w.a, .script = script};

    (void)state;
    begin(&w);
    assert_int_equal(pthread_create(&p.thread, NULL, push_once, &p), 0);
    while (nats_count(&w.nats, NATS_OBJECTS) < 4)
        ;
    nats_kill(&w.nats, 0);
    assert_int_equal(pthread_join(p.thread, NULL), 0);
    if (p.answer.status != 201)
        assert_int_equal(p.answer.status, 503);
    expect(p.answer, p.answer.status, p.answer.status == 503 ? "cluster_unavailable" : "large");
    wait_cut_off(&w);
    nats_restart(&w.nats, 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    expect(push(&w.a, "large", script), 201, "large");
    /* Without what had come of the first one. */
    assert_true(nats_count(&w.nats, NATS_OBJECTS) < LARGE / (128 * 1024) + 4);
    nodes_wait(&w.b, SKILLS "/large/1.0", 200, "\"size_bytes\":25165824");
    free(script);
    end(&w);
}

/* Of a version that is taken nothing is sent that nobody would name. */
static void a_refused_push_sends_nothing(void **state)
{
    struct world w = {0};
    uint64_t n;

    (void)state;
    begin(&w);
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    n = nats_count(&w.nats, NATS_OBJECTS);
    expect(push(&w.a, "demo", "print(2)"), 409, "registered already with other");
    assert_int_equal(nats_count(&w.nats, NATS_OBJECTS), n);
    end(&w);
}

/* A push as one of a tenant's. */
static struct answer push_as(const struct harness *h, const char *key, const char *name,
                             const char *script)
{
    char headers[256];
    size_t len;
    char *tar = harness_skill(name, "1.0", script, &len);
    struct answer a;

    snprintf(headers, sizeof(headers),
             "Content-Type: application/octet-stream\r\nAuthorization: Bearer %s\r\n", key);
    a = harness_request(h, "POST", SKILLS, headers, tar, len);
    free(tar);
    return a;
}

static struct answer remove_as(const struct harness *h, const char *key, const char *name)
{
    char headers[160], path[64];

    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", key);
    snprintf(path, sizeof(path), SKILLS "/%s/1.0", name);
    return harness_request(h, "DELETE", path, headers, "", 0);
}

static void wait_gone(const struct harness *h, const char *key, const char *name)
{
    for (unsigned i = 0;; i++) {
        struct answer a = remove_as(h, key, name);
        int status = a.status;

        answer_finish(&a);
        if (status == 404)
            return;
        if (i == NODES_LOOKS)
            fail_msg("%s is still there: %d", name, status);
        harness_pause(i);
    }
}

/* Removes what was pushed at another node, once this one has heard of it. */
static void remove_sure(const struct harness *h, const char *key, const char *name)
{
    for (unsigned i = 0;; i++) {
        struct answer a = remove_as(h, key, name);

        if (a.status != 404 || i == NODES_LOOKS) {
            expect(a, 204, "");
            return;
        }
        answer_finish(&a);
        harness_pause(i);
    }
}

/* What was pushed and removed is still at the servers, and counts at every node. */
static void what_was_removed_counts_for_a_while(void **state)
{
    struct world w = {0};
    char key[80], id[64], first, *script = large_script();

    (void)state;
    script[100 << 10] = '\0';
    begin(&w);
    nodes_tenant(&w.a, "acme");
    nodes_key(&w.a, "acme", key, id);
    expect(nodes_admin_sure(&w.a, "PATCH", "/v1/admin/tenants/acme",
                            "{\"limits\":{\"storage_bytes\":314000}}"),
           200, "");
    nodes_wait_key(&w.b, key, 200);
    nodes_wait(&w.b, "/v1/admin/tenants/acme", 200, "314000");
    expect(push_as(&w.a, key, "one", script), 201, "one");
    expect(remove_as(&w.a, key, "one"), 204, "");
    first = script[0];
    script[0] = 'A';
    expect(push_as(&w.a, key, "two", script), 201, "two");
    expect(remove_as(&w.a, key, "two"), 204, "");
    script[0] = 'B';
    expect(push_as(&w.a, key, "three", script), 413, "stay at the servers");
    wait_gone(&w.b, key, "two");
    expect(push_as(&w.b, key, "three", script), 413, "stay at the servers");
    /* What is there still takes nothing more. */
    script[0] = first;
    expect(push_as(&w.b, key, "one", script), 201, "one");
    remove_sure(&w.a, key, "one");
    expect(push_as(&w.a, key, "small", "print(1)"), 201, "small");
    free(script);
    end(&w);
}

/* Says of an object that it has another size. */
static void say_size(const struct world *w, const char *subject, const char *size)
{
    char found[256], text[1024];
    char *was = nats_last(&w->nats, NATS_OBJECTS, subject, found);
    char *at = strstr(was, "\"size\":");

    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s\"size\":%s%s", (int)(at - was), was, size,
             strchr(at, ','));
    nats_publish(&w->nats, subject, text, strlen(text));
    free(was);
}

/* What somebody did to an object by hand is told, and pushed again it is good. */
static void what_is_altered_by_hand_is_told(void **state)
{
    static const char *const words[] = {
        "nonsense", "{\"name\":\"x\"}",
        "{\"name\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}"};
    struct world w = {0};
    static const char call[] = "{\"name\":\"demo\",\"arguments\":{}}";
    char subject[256], chunks[256], *bytes;
    size_t size;

    (void)state;
    begin(&w);
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"demo\"");
    last_object(&w, subject, chunks);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        nats_publish(&w.nats, subject, words[i], strlen(words[i]));
        expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "object_unavailable");
    }
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    last_object(&w, subject, chunks);
    say_size(&w, subject, "1099511627776");
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "of the size that its row has");
    say_size(&w, subject, "2");
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "that is whole");
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    /* Other bytes, as many; too many; and none. */
    size = last_object(&w, subject, chunks);
    assert_true(size < 64 * 1024);
    nats_purge(&w.nats, NATS_OBJECTS, chunks);
    bytes = calloc(1, 64 * 1024);
    nats_publish(&w.nats, chunks, bytes, size);
    expect(harness_run(&w.b, "{\"skill\":\"demo\",\"version\":\"1.0\"}"), 503,
           "is another: remove it there");
    nats_purge(&w.nats, NATS_OBJECTS, chunks);
    nats_publish(&w.nats, chunks, bytes, 64 * 1024);
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "object_unavailable");
    nats_purge(&w.nats, NATS_OBJECTS, chunks);
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "object_unavailable");
    assert_int_equal(harness_count_files(&w.b, "objects"), 0);
    /* Pieces that bring nothing, and no end. */
    for (int i = 0; i < 3; i++)
        nats_publish(&w.nats, chunks, "", 0);
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "that is whole");
    /* Who calls it as a tool hears of it, and a list is one without it. */
    expect(harness_request(&w.b, "POST", "/v1/tools/call", "Content-Type: application/json\r\n",
                           call, strlen(call)),
           503, "object_unavailable");
    expect(harness_get(&w.b, "/v1/tools"), 200, "run_code");
    /* Removed as an operator does it. */
    nats_purge(&w.nats, NATS_OBJECTS, subject);
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "object_unavailable");
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    expect(harness_run(&w.b, "{\"skill\":\"demo\",\"version\":\"1.0\"}"), 200,
           "\"status\":\"success\"");
    free(bytes);
    end(&w);
}

/* Where the servers have no room a skill is not taken, and what there is goes on. */
static void full_servers_take_no_skill(void **state)
{
    struct world w = {0};
    char *script = large_script();

    (void)state;
    begin(&w);
    nats_limit(&w.nats, NATS_OBJECTS, 4 << 20);
    expect(push(&w.a, "small", "print(1)"), 201, "small");
    expect(push(&w.a, "large", script), 503, "the servers have no room");
    nodes_tenant(&w.a, "acme");
    expect(harness_get(&w.a, SKILLS "/large/1.0"), 404, "");
    /* What had come of it is gone: there is room again. */
    expect(push(&w.b, "other", "print(2)"), 201, "other");
    nodes_wait(&w.a, SKILLS "/other/1.0", 200, "main.py");
    end(&w);
    free(script);
}

/* As many of 100 KiB at A, of which B asks for each in turn. */
static void ask_for(const struct world *w, unsigned from, unsigned to)
{
    static char script[100 << 10];
    char name[32], path[64];

    for (unsigned i = from; i < to; i++) {
        memset(script, 'a' + (int)i, sizeof(script) - 1);
        snprintf(name, sizeof(name), "s%u", i);
        snprintf(path, sizeof(path), SKILLS "/%s/1.0", name);
        expect(push(&w->a, name, script), 201, name);
        nodes_wait(&w->b, SKILLS, 200, name);
        expect(harness_get(&w->b, path), 200, "main.py");
    }
}

/* A node keeps so much, and reads the rest again; what the servers do not have it keeps. */
static void a_node_keeps_what_it_may(void **state)
{
    struct world w = {0};
    char subject[256], chunks[256];

    (void)state;
    nodes_begin_two(&w.nats, &w.a, "", &w.b, "  cache_bytes: 500KiB\n");
    ask_for(&w, 0, 1);
    last_object(&w, subject, chunks);
    ask_for(&w, 1, 10);
    assert_int_equal(harness_count_files(&w.a, "objects"), 10);
    assert_true(harness_count_files(&w.b, "objects") < 5);
    expect(harness_get(&w.b, SKILLS "/s0/1.0"), 200, "main.py");
    nats_purge(&w.nats, NATS_OBJECTS, subject);
    ask_for(&w, 10, 20);
    nats_kill(&w.nats, 0);
    expect(harness_get(&w.b, SKILLS "/s0/1.0"), 200, "main.py");
    expect(harness_get(&w.b, SKILLS "/s1/1.0"), 503, "cluster_unavailable");
    end(&w);
}

/* Without the bucket of objects a node is cut off; made anew it has what nodes had. */
static void without_their_bucket_it_is_told(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w);
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"demo\"");
    nats_delete_bucket(&w.nats, NATS_OBJECTS);
    expect(push(&w.a, "more", "print(2)"), 503, "a bucket of objects (of skills");
    nats_wait_node(&w.a, NODE_CUT_OFF("no_objects"));
    nats_wait_node(&w.b, NODE_CUT_OFF("no_objects"));
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 503, "cluster_unavailable");
    expect(nats_ask(&w.a, "POST", ""), 200, "\"made\":true");
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    expect(harness_get(&w.b, SKILLS "/demo/1.0"), 200, "main.py");
    end(&w);
}

/* The servers set aside what skills may hold, and no skill takes more. */
static void what_skills_may_hold_is_set_aside(void **state)
{
    struct world w = {.nats = {.file_store = "512MB"}};
    char *script = large_script();
    uint64_t n;

    (void)state;
    nats_begin(&w.nats, 1);
    nats_start_node(&w.a, &w.nats, "a", "");
    expect(harness_request(&w.a, "POST", "/v1/admin/cluster", "", "", 0), 503,
           "cluster.objects_bytes");
    nodes_stop(&w.a);
    nats_start_node(&w.a, &w.nats, "a", "  objects_bytes: 8MiB\n  artifacts_bytes: 8MiB\n");
    expect(nats_ask(&w.a, "POST", ""), 200, "\"made\":true");
    nats_wait_node(&w.a, NODE_JOINED);
    harness_wait_ready(&w.a);
    expect(push(&w.a, "small", "print(1)"), 201, "small");
    n = nats_count(&w.nats, NATS_OBJECTS);
    expect(push(&w.a, "large", script), 503, "cluster.objects_bytes");
    assert_int_equal(nats_count(&w.nats, NATS_OBJECTS), n);
    nodes_tenant(&w.a, "acme");
    expect(push(&w.a, "other", "print(2)"), 201, "other");
    nodes_end(&w.a);
    nats_end(&w.nats);
    free(script);
}

#define LISTS 8u

/* Whether one of them has an answer. */
static bool is_answered(const int fds[LISTS])
{
    struct pollfd all[LISTS];

    for (size_t i = 0; i < LISTS; i++)
        all[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    return poll(all, LISTS, 0) > 0;
}

/* How many archives are looked at while lists of tools wait for servers that say nothing. */
static unsigned look_meanwhile(const struct world *w, const char *tar, size_t len)
{
    static const char get[] = "GET /v1/tools HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    unsigned n = 0;
    int fds[LISTS];

    harness_freeze(w->nats.servers[0].pid);
    for (size_t i = 0; i < LISTS; i++) {
        fds[i] = harness_connect(&w->b);
        assert_int_equal(fd_write_full(fds[i], get, strlen(get)), 0);
    }
    for (; !is_answered(fds); n++)
        expect(harness_request(&w->b, "POST", SKILLS "/validate",
                               "Content-Type: application/octet-stream\r\n", tar, len),
               200, "\"valid\":true");
    assert_int_equal(kill(w->nats.servers[0].pid, SIGCONT), 0);
    for (size_t i = 0; i < LISTS; i++) {
        expect(harness_read_answer(fds[i]), 200, "run_code");
        close(fds[i]);
    }
    return n;
}

/*
 * Lists that wait hold up no archives of others. Behind them it would have been the first one
 * that waits, each time; a busy machine may not get to more now and then.
 */
static void who_waits_for_servers_holds_nobody_up(void **state)
{
    struct world w = {0};
    unsigned n = 0;
    size_t len;
    char *tar = harness_skill("looked", "1.0", "print(1)", &len);

    (void)state;
    begin(&w);
    expect(push(&w.a, "demo", "print(1)"), 201, "demo");
    nodes_wait(&w.b, SKILLS, 200, "\"name\":\"demo\"");
    for (unsigned tries = 0; n < 3 && tries < 4; tries++) {
        nats_wait_node(&w.b, NODE_JOINED);
        n = look_meanwhile(&w, tar, len);
    }
    print_message("%u archives were looked at meanwhile\n", n);
    assert_true(n >= 3);
    free(tar);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_one_comes_as_it_was),
        cmocka_unit_test(cut_off_it_shows_what_it_has),
        cmocka_unit_test(servers_are_lost_in_the_middle),
        cmocka_unit_test(a_refused_push_sends_nothing),
        cmocka_unit_test(what_was_removed_counts_for_a_while),
        cmocka_unit_test(what_is_altered_by_hand_is_told),
        cmocka_unit_test(full_servers_take_no_skill),
        cmocka_unit_test(what_skills_may_hold_is_set_aside),
        cmocka_unit_test(without_their_bucket_it_is_told),
        cmocka_unit_test(who_waits_for_servers_holds_nobody_up),
        cmocka_unit_test(a_node_keeps_what_it_may),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
