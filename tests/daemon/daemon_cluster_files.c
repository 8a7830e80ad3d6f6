/* SPDX-License-Identifier: Apache-2.0 */
/* Uploaded files of several nodes: what one takes and removes is so at all. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect harness_expect

#define FILES    "/v1/files"
#define TENANTS  "/v1/admin/tenants"
#define TYPE     "Content-Type: text/plain\r\n"
#define ONE_SLOT "limits:\n  max_running: 1\n"
#define BUSY     "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":600,\"async\":true}"
#define ALPHA_IN "\"files_in\":{\"a.txt\":[5,3504355690,\"alpha\"]}"

struct world {
    struct nats_world nats;
    struct harness a, b, c;
};

static void begin_with(struct world *w, const char *a_lines, const char *b_lines)
{
    nodes_begin_two(&w->nats, &w->a, a_lines, &w->b, b_lines);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

static struct answer send_file(const struct harness *h, const char *headers, const char *name,
                               const char *content, size_t len)
{
    char path[600], all[256];

    snprintf(path, sizeof(path), FILES "?name=%s", name);
    snprintf(all, sizeof(all), TYPE "%s", headers);
    return harness_request(h, "POST", path, all, content, len);
}

/* Uploads one, whose id the answer has. */
static void upload(const struct harness *h, const char *headers, const char *name,
                   const char *content, char ret_id[38])
{
    struct answer a = send_file(h, headers, name, content, strlen(content));

    if (a.status != 201)
        fail_msg("got %d %s", a.status, a.body);
    answer_text(&a, "id", ret_id, 38);
    answer_finish(&a);
}

/* Of one of two, at once. */
static const char *path_of(const char *id, const char *rest)
{
    static char paths[2][128];
    static unsigned next;
    char *path = paths[next++ % 2];

    snprintf(path, sizeof(paths[0]), FILES "/%s%s", id, rest);
    return path;
}

static struct answer ask(const struct harness *h, const char *method, const char *path,
                         const char *headers)
{
    return harness_request(h, method, path, headers, "", 0);
}

/* An execution that is given a file. */
static const char *running_with(const char *id, const char *more)
{
    static char json[256];

    snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"files\":[\"%s\"]%s}", id, more);
    return json;
}

static void push_demo(const struct world *w)
{
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
}

static void a_file_is_that_of_all_nodes(void **state)
{
    struct world w = {0};
    char id[38], empty[38];

    (void)state;
    begin_with(&w, "", "");
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    push_demo(&w);
    upload(&w.a, "", "a.txt", "alpha", id);
    upload(&w.b, "", "none", "", empty);
    nodes_wait(&w.b, path_of(id, ""), 200, "\"size_bytes\":5");
    nodes_wait(&w.c, path_of(empty, ""), 200, "\"size_bytes\":0");
    nodes_wait(&w.a, path_of(empty, ""), 200, "");
    nodes_wait(&w.c, path_of(id, ""), 200, "\"content_type\":\"text/plain\"");
    nodes_wait_same(&w.a, &w.b, FILES);
    nodes_wait_same(&w.a, &w.c, FILES);
    /* What it holds comes where it is needed. */
    assert_int_equal(harness_count_files(&w.b, "objects"), 1);
    expect(nodes_run(&w.b, running_with(id, "")), 200, ALPHA_IN);
    expect(harness_get(&w.c, path_of(id, "/download")), 200, "alpha");
    expect(harness_get(&w.c, path_of(empty, "/download")), 200, "");
    /* A node that starts anew has them. */
    nodes_stop(&w.c);
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    nodes_wait_same(&w.a, &w.c, FILES);
    expect(ask(&w.c, "DELETE", path_of(id, ""), ""), 204, "");
    expect(ask(&w.c, "DELETE", path_of(empty, ""), ""), 204, "");
    expect(ask(&w.c, "DELETE", path_of(id, ""), ""), 404, "there is no file");
    nodes_wait(&w.a, path_of(id, ""), 404, "there is no file");
    nodes_wait(&w.b, path_of(empty, ""), 404, "");
    expect(harness_get(&w.a, path_of(id, "/download")), 404, "");
    expect(harness_run(&w.b, running_with(id, "")), 400, "there is no file");
    /* But for the skill; that there were the others the servers know for a while. */
    assert_int_equal(nats_count(&w.nats, NATS_OBJECTS), 2 + 2);
    nodes_wait_objects(&w.a, 1);
    nodes_wait_objects(&w.b, 1);
    nodes_wait_objects(&w.c, 0);
    nodes_end(&w.c);
    end(&w);
}

static void bearer(const char *key, char ret[160])
{
    snprintf(ret, 160, "Authorization: Bearer %s\r\n", key);
}

/* A tenant of a cluster, as the header that says it. */
static void make_tenant(const struct world *w, const char *name, char ret_headers[160])
{
    char key[80], id[64];

    nodes_tenant(&w->a, name);
    nodes_key(&w->a, name, key, id);
    nodes_wait_key(&w->b, key, 200);
    bearer(key, ret_headers);
}

static void nobody_sees_what_is_anothers(void **state)
{
    struct world w = {0};
    char mine[160], others[160], id[38], json[128], headers[256];

    (void)state;
    begin_with(&w, "", "");
    make_tenant(&w, "acme", mine);
    make_tenant(&w, "evil", others);
    upload(&w.a, mine, "a.txt", "alpha", id);
    for (unsigned i = 0;; i++) {
        struct answer a = ask(&w.b, "GET", path_of(id, ""), mine);
        int status = a.status;

        answer_finish(&a);
        if (status == 200)
            break;
        if (i == NODES_LOOKS)
            fail_msg("it never comes");
        harness_pause(i);
    }
    /* Code takes no skill that it would have to have. */
    snprintf(json, sizeof(json), "{\"code\":\"print(1)\",\"files\":[\"%s\"]}", id);
    snprintf(headers, sizeof(headers), "Content-Type: application/json\r\n%s", others);
    for (const struct harness *h = &w.a; h <= &w.b; h++) {
        expect(ask(h, "GET", path_of(id, ""), others), 404, "there is no file");
        expect(ask(h, "GET", path_of(id, "/download"), others), 404, "there is no file");
        expect(ask(h, "DELETE", path_of(id, ""), others), 404, "there is no file");
        expect(ask(h, "GET", FILES, others), 200, "[]");
        expect(harness_get(h, FILES), 200, "[]");
        expect(harness_request(h, "POST", "/v1/executions", headers, json, strlen(json)), 400,
               "there is no file");
    }
    expect(ask(&w.b, "GET", path_of(id, "/download"), mine), 200, "alpha");
    /* It goes with whose it is. */
    expect(nodes_admin_sure(&w.b, "DELETE", TENANTS "/acme", ""), 204, "");
    nodes_wait(&w.a, TENANTS "/acme", 404, "");
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 0);
    end(&w);
}

struct sender {
    const struct harness *node;
    const char *headers;
    char content[600];
    int status;
    pthread_t thread;
};

static void *send_once(void *ctx)
{
    struct sender *s = ctx;
    struct answer a = send_file(s->node, s->headers, "x", s->content, sizeof(s->content));

    s->status = a.status;
    answer_finish(&a);
    return NULL;
}

/* What is stored counts once, wherever it is; of two that pass a limit together one is refused.
 */
static void storage_counts_over_all_nodes(void **state)
{
    struct world w = {0};

    (void)state;
    begin_with(&w, "", "");
    for (unsigned round = 0; round < 4; round++) {
        struct sender s[2] = {{.node = &w.a}, {.node = &w.b}};
        char headers[160], name[16], path[64], id[38];
        struct answer a;

        snprintf(name, sizeof(name), "t%u", round);
        snprintf(path, sizeof(path), TENANTS "/%s", name);
        make_tenant(&w, name, headers);
        expect(nodes_admin_sure(&w.a, "PATCH", path, "{\"limits\":{\"storage_bytes\":1000}}"),
               200, "");
        nodes_wait(&w.b, path, 200, "\"storage_bytes\":1000");
        for (size_t i = 0; i < 2; i++) {
            s[i].headers = headers;
            memset(s[i].content, 'a' + (int)i, sizeof(s[i].content));
            assert_int_equal(pthread_create(&s[i].thread, NULL, send_once, &s[i]), 0);
        }
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_join(s[i].thread, NULL), 0);
        assert_int_equal(s[0].status + s[1].status, 201 + 413);
        nodes_wait(&w.a, path, 200, "\"stored_bytes\":600");
        nodes_wait(&w.b, path, 200, "\"stored_bytes\":600");
        a = send_file(&w.b, headers, "x", s[0].content, 500);
        expect(a, 413, "quota_exceeded");
        /* What is removed makes room everywhere. */
        a = ask(&w.b, "GET", FILES, headers);
        answer_text(&a, "id", id, sizeof(id));
        answer_finish(&a);
        expect(ask(&w.b, "DELETE", path_of(id, ""), headers), 204, "");
        nodes_wait(&w.a, path, 200, "\"stored_bytes\":0");
        a = send_file(&w.a, headers, "x", s[1].content, 600);
        expect(a, 201, "\"size_bytes\":600");
    }
    end(&w);
}

/* Takes the only slot of a node. */
static void fill(const struct harness *h, char ret_id[38])
{
    nodes_fill(h, BUSY, ret_id);
}

static void executions_have_them_where_they_run(void **state)
{
    struct world w = {0};
    char id[38], busy_a[38], busy_b[38], waiting[38];

    (void)state;
    begin_with(&w, ONE_SLOT, ONE_SLOT);
    push_demo(&w);
    upload(&w.a, "", "a.txt", "alpha", id);
    nats_wait_node(&w.b, "\"takes_executions\":true");
    fill(&w.a, busy_a);
    /* Forwarded. */
    expect(nodes_run(&w.a, running_with(id, "")), 200, ALPHA_IN);
    harness_wait_metrics(&w.b, "\nskillvm_executions_total{status=\"success\"} 1\n", true);
    /* Taken over of one that is lost. */
    fill(&w.b, busy_b);
    nodes_submit(&w.a, running_with(id, ",\"async\":true"), waiting);
    nodes_wait(&w.b, nodes_path_of(waiting), 200, "\"status\":\"accepted\"");
    (void)harness_stop(&w.a, SIGKILL);
    nodes_cancel(&w.b, busy_b);
    nodes_wait(&w.b, nodes_path_of(waiting), 200, ALPHA_IN);
    nats_start_node(&w.a, &w.nats, "a", ONE_SLOT);
    nats_wait_node(&w.a, NODE_JOINED);
    end(&w);
}

/* What was accepted keeps it: here it is, so the one that waits stays. */
static void what_was_removed_is_there_for_who_waits(void **state)
{
    struct world w = {0};
    char id[38], busy_a[38], busy_b[38], waiting[38], next[38];

    (void)state;
    begin_with(&w, ONE_SLOT, ONE_SLOT);
    push_demo(&w);
    upload(&w.a, "", "a.txt", "alpha", id);
    nats_wait_node(&w.b, "\"takes_executions\":true");
    fill(&w.a, busy_a);
    fill(&w.b, busy_b);
    nodes_submit(&w.a, running_with(id, ",\"async\":true"), waiting);
    expect(ask(&w.b, "DELETE", path_of(id, ""), ""), 204, "");
    nodes_wait(&w.a, path_of(id, ""), 404, "");
    nodes_submit(&w.a, "{\"skill\":\"demo\",\"async\":true}", next);
    nodes_cancel(&w.b, busy_b);
    nodes_wait(&w.b, nodes_path_of(next), 200, "\"status\":\"success\"");
    expect(harness_get(&w.a, nodes_path_of(waiting)), 200, "\"status\":\"accepted\"");
    nodes_cancel(&w.a, busy_a);
    nodes_wait(&w.a, nodes_path_of(waiting), 200, ALPHA_IN);
    end(&w);
}

static void cut_off_a_node_takes_none(void **state)
{
    struct world w = {0};
    char id[38];

    (void)state;
    begin_with(&w, "", "");
    upload(&w.a, "", "a.txt", "alpha", id);
    nodes_wait(&w.b, path_of(id, ""), 200, "");
    nats_kill(&w.nats, 0);
    nats_wait_node(&w.a, "\"state\":\"cut_off\"");
    nats_wait_node(&w.b, "\"state\":\"cut_off\"");
    expect(send_file(&w.a, "", "b.txt", "beta", 4), 503, "cluster_unavailable");
    expect(ask(&w.b, "DELETE", path_of(id, ""), ""), 503, "cluster_unavailable");
    /* What is here is read. */
    expect(harness_get(&w.a, path_of(id, "/download")), 200, "alpha");
    expect(harness_get(&w.b, path_of(id, "")), 200, "a.txt");
    expect(harness_get(&w.b, path_of(id, "/download")), 503, "cluster_unavailable");
    assert_int_equal(harness_count_files(&w.a, "objects"), 1);
    nats_restart(&w.nats, 0);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    expect(harness_get(&w.b, path_of(id, "/download")), 200, "alpha");
    nodes_wait_same(&w.a, &w.b, FILES);
    expect(nodes_admin_sure(&w.b, "DELETE", path_of(id, ""), ""), 204, "");
    nodes_wait(&w.a, FILES, 200, "[]");
    end(&w);
}

/* One node whose time it is sees to it for all. */
static void what_expires_goes_everywhere(void **state)
{
    struct world w = {0};
    char id[38], gone[38], found[256], *last;

    (void)state;
    begin_with(&w, "retention:\n  files_age: 1s\n  interval: 100ms\n",
               "retention:\n  files_age: 1d\n  interval: 1h\n");
    /* In this order: a place that is free again is taken. */
    upload(&w.b, "", "b.txt", "beta", id);
    nodes_wait(&w.a, path_of(id, ""), 200, "b.txt");
    upload(&w.a, "", "a.txt", "alpha", gone);
    nodes_wait_objects(&w.a, 0);
    nodes_wait_objects(&w.b, 1);
    nodes_wait(&w.a, path_of(id, ""), 200, "b.txt");
    nodes_wait_same(&w.a, &w.b, FILES);
    last = nats_last(&w.nats, NATS_CHANGES,
                     "$KV.skillvm_registry.file.fil_00000000000000000000000000000001", found);
    assert_non_null(last);
    assert_string_equal(last, "");
    free(last);
    end(&w);
}

/* What a daemon had on its own is the cluster's where it makes it, and else keeps it out. */
static void files_of_before_are_the_clusters(void **state)
{
    struct world w = {0};
    char old[38], own[38];

    (void)state;
    nats_begin(&w.nats, 1);
    harness_init(&w.a, "boot", "restore");
    harness_start(&w.a, NULL);
    upload(&w.a, "", "a.txt", "alpha", old);
    nodes_stop(&w.a);
    harness_init(&w.b, "boot", "restore");
    harness_start(&w.b, NULL);
    upload(&w.b, "", "b.txt", "beta", own);
    nodes_stop(&w.b);
    nats_start_node(&w.a, &w.nats, "a", "");
    nats_make(&w.a);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    expect(harness_get(&w.c, path_of(old, "/download")), 200, "alpha");
    nodes_end(&w.c);
    nats_start_node(&w.b, &w.nats, "b", "");
    nats_wait_node(&w.b, NODE_CUT_OFF("own_rows"));
    expect(harness_get(&w.b, "/v1/admin/cluster"), 200, own);
    expect(ask(&w.b, "DELETE", path_of(own, ""), ""), 503, "cluster_unavailable");
    end(&w);
}

#define ID "0123456789abcdef0123456789abcdef"
/* SHA-256 of "alpha". */
#define ALPHA_DIGEST "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"
#define ENTRY                                                                                  \
    "{\"schema\":1,\"tenant\":\"default\",\"id\":\"%s\",\"name\":\"%s\",\"content_type\":"     \
    "\"a/b\",\"digest\":\"%s\",\"bytes\":%s,\"created_ns\":1,\"expires_ns\":%llu}"

static void nonsense_is_no_file(void **state)
{
    static const char subject[] = "$KV.skillvm_registry.file.fil_" ID;
    static const char *const cases[][3] = {
        {"file_" ID, "../x", "1"}, {"file_" ID, "..", "1"},           {"file_" ID, "a/b", "1"},
        {"file_" ID, "x", "-1"},   {"file_" ID, "x", "999999999999"}, {"exec_" ID, "x", "1"}};
    struct world w = {0};
    char text[1024], id[38];

    (void)state;
    begin_with(&w, "", "");
    push_demo(&w);
    upload(&w.a, "", "a.txt", "alpha", id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), ENTRY, cases[i][0], cases[i][1], ALPHA_DIGEST, cases[i][2],
                 (unsigned long long)INT64_MAX);
        nats_publish(&w.nats, subject, text, strlen(text));
        nats_wait_refused(&w.b, "malformed", "file.fil_" ID);
    }
    /* Another row cannot take the id of one that is there. */
    snprintf(text, sizeof(text), ENTRY, id, "x", ID ID, "1", (unsigned long long)INT64_MAX);
    nats_publish(&w.nats, subject, text, strlen(text));
    /* One whose object is of another size, and one whose object nobody has. */
    snprintf(text, sizeof(text), ENTRY, "file_" ID, "long", ALPHA_DIGEST, "9",
             (unsigned long long)INT64_MAX);
    nats_publish(&w.nats, subject, text, strlen(text));
    nodes_wait(&w.b, path_of("file_" ID, ""), 200, "\"name\":\"long\"");
    expect(harness_get(&w.b, path_of(id, "/download")), 200, "alpha");
    expect(harness_get(&w.b, path_of("file_" ID, "/download")), 503, "object_unavailable");
    expect(harness_run(&w.b, running_with("file_" ID, "")), 503, "object_unavailable");
    snprintf(text, sizeof(text), ENTRY, "file_" ID, "ghost", ID ID, "9",
             (unsigned long long)INT64_MAX);
    nats_publish(&w.nats, subject, text, strlen(text));
    nodes_wait(&w.b, path_of("file_" ID, ""), 200, "\"name\":\"ghost\"");
    expect(harness_get(&w.b, path_of("file_" ID, "/download")), 503, "object_unavailable");
    expect(harness_run(&w.b, running_with("file_" ID, "")), 503, "object_unavailable");
    expect(ask(&w.b, "DELETE", path_of("file_" ID, ""), ""), 204, "");
    nodes_wait(&w.a, path_of("file_" ID, ""), 404, "");
    end(&w);
}

#define ROUNDS 20u

static void *send_and_remove(void *ctx)
{
    const struct harness *h = ctx;

    for (unsigned i = 0; i < ROUNDS; i++) {
        char id[38];

        upload(h, "", "x", "alpha", id);
        expect(ask(h, "DELETE", path_of(id, ""), ""), 204, "");
    }
    return NULL;
}

/* Who removes the last file of some content does not take it from who uploads that. */
static void what_another_uploads_stays(void **state)
{
    struct world w = {0};
    char id[38], path[64], download[80];
    pthread_t thread;

    (void)state;
    begin_with(&w, "", "");
    /* Somebody who has to ask the servers. */
    nats_start_node(&w.c, &w.nats, "c", "");
    nats_wait_node(&w.c, NODE_JOINED);
    assert_int_equal(pthread_create(&thread, NULL, send_and_remove, &w.a), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        upload(&w.b, "", "y", "alpha", id);
        snprintf(path, sizeof(path), FILES "/%s", id);
        snprintf(download, sizeof(download), "%s/download", path);
        nodes_wait(&w.c, path, 200, "\"name\":\"y\"");
        expect(harness_get(&w.c, download), 200, "alpha");
        expect(ask(&w.b, "DELETE", path, ""), 204, "");
        nodes_wait(&w.c, path, 404, "");
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    nodes_end(&w.c);
    end(&w);
}

/* A file that was removed leaves its place to the next one. */
static void removed_files_leave_their_place(void **state)
{
    struct world w = {0};
    uint64_t before;
    char id[38];

    (void)state;
    begin_with(&w, "", "");
    before = nats_count(&w.nats, NATS_CHANGES);
    for (unsigned i = 0; i < 10; i++) {
        const struct harness *h = i % 2 ? &w.a : &w.b;

        upload(h, "", "x", "alpha", id);
        expect(nodes_admin_sure(h, "DELETE", path_of(id, ""), ""), 204, "");
    }
    assert_int_equal(nats_count(&w.nats, NATS_CHANGES), before + 1);
    end(&w);
}

/* A request that is sent, whose answer the caller reads. */
static int begin_asking(const struct harness *h, const char *json)
{
    return harness_send(h, "POST", "/v1/executions", "Content-Type: application/json\r\n", json,
                        strlen(json));
}

static bool has_answer(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

/* A request that comes again before it was answered has files of its own. */
static void who_asks_again_takes_no_files(void **state)
{
    struct world w = {0};
    unsigned met = 0;

    (void)state;
    begin_with(&w, "", "");
    push_demo(&w);
    for (unsigned i = 0; met == 0; i++) {
        char json[160];
        struct answer first, again;
        int fds[2];

        snprintf(json, sizeof(json),
                 "{\"skill\":\"demo\",\"idempotency_key\":\"k%u\",\"files\":"
                 "[{\"name\":\"a.txt\",\"text\":\"alpha\"}]}",
                 i);
        /* Until the servers have it the first one waits. */
        harness_freeze(w.nats.servers[0].pid);
        fds[0] = begin_asking(&w.a, json);
        harness_until(harness_count_files(&w.a, "tmp") == 1 || has_answer(fds[0]));
        fds[1] = begin_asking(&w.a, json);
        harness_until(harness_count_files(&w.a, "tmp") != 1 || has_answer(fds[1]));
        met = harness_count_files(&w.a, "tmp") == 2 || has_answer(fds[1]);
        assert_int_equal(kill(w.nats.servers[0].pid, SIGCONT), 0);
        first = harness_read_answer(fds[0]);
        again = harness_read_answer(fds[1]);
        /* Or it waited for so long that it was given up: then once more. */
        met = met && first.status != 503 && again.status != 503;
        if (met) {
            assert_string_equal(first.body, again.body);
            expect(first, 200, ALPHA_IN);
        } else {
            answer_finish(&first);
        }
        answer_finish(&again);
        close(fds[0]);
        close(fds[1]);
        nats_wait_node(&w.a, NODE_JOINED);
        harness_until(harness_count_files(&w.a, "tmp") == 0);
    }
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_that_of_all_nodes),
        cmocka_unit_test(nobody_sees_what_is_anothers),
        cmocka_unit_test(storage_counts_over_all_nodes),
        cmocka_unit_test(executions_have_them_where_they_run),
        cmocka_unit_test(what_was_removed_is_there_for_who_waits),
        cmocka_unit_test(cut_off_a_node_takes_none),
        cmocka_unit_test(what_expires_goes_everywhere),
        cmocka_unit_test(files_of_before_are_the_clusters),
        cmocka_unit_test(nonsense_is_no_file),
        cmocka_unit_test(what_another_uploads_stays),
        cmocka_unit_test(who_asks_again_takes_no_files),
        cmocka_unit_test(removed_files_leave_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
