/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of files that need no key: who gets one of any node fetches at any other. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/fd.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect harness_expect

#define FILES_RUN "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"files\"}}"
#define LINK      "/v1/downloads/"
#define LINK_SIZE 256u

struct world {
    struct nats_world nats;
    struct harness a, b;
    char a_lines[96], b_lines[96];
    char headers[160]; /* a key of the tenant default */
};

static uint16_t choose_port(char lines[96])
{
    uint16_t port = harness_find_port();

    snprintf(lines, 96, "listen:\n  address: 127.0.0.1:%u\n", port);
    return port;
}

static void begin(struct world *w)
{
    uint16_t of_a = choose_port(w->a_lines), of_b = choose_port(w->b_lines);
    char key[80], id[64];

    nodes_begin_two(&w->nats, &w->a, w->a_lines, &w->b, w->b_lines);
    w->a.port = of_a;
    w->b.port = of_b;
    assert_int_equal(harness_push(&w->a, "demo", "1.0", "print(1)"), 201);
    nodes_wait(&w->b, "/v1/skills", 200, "\"name\":\"demo\"");
    nodes_key(&w->a, "default", key, id);
    nodes_wait_key(&w->b, key, 200);
    snprintf(w->headers, sizeof(w->headers),
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n", key);
}

static void end(struct world *w)
{
    nodes_end(&w->b);
    nodes_end(&w->a);
    nats_end(&w->nats);
}

static struct answer request(const struct harness *h, const char *method, const char *path,
                             const char *headers, const char *body)
{
    _cleanup_fd_ int fd = harness_connect_by(h, true);
    char text[1024];
    int n = snprintf(text, sizeof(text),
                     "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, path, headers, strlen(body), body);

    assert_true(n > 0 && (size_t)n < sizeof(text));
    assert_int_equal(fd_write_full(fd, text, (size_t)n), 0);
    return harness_read_answer(fd);
}

/* Runs something that leaves files, and takes the path of the address that the answer has. */
static void run(const struct world *w, const struct harness *h, char ret_id[38],
                char ret_link[LINK_SIZE])
{
    struct answer a = request(h, "POST", "/v1/executions", w->headers, FILES_RUN);
    cJSON *json = cJSON_Parse(a.body);
    const char *url = cJSON_GetStringValue(cJSON_GetObjectItem(json, "files_url"));
    const char *path = url ? strstr(url, LINK) : NULL;

    if (a.status != 200 || !path)
        fail_msg("got %d %s", a.status, a.body);
    snprintf(ret_link, LINK_SIZE, "%s", path);
    cJSON_Delete(json);
    nodes_take_id(&a, ret_id);
}

static struct answer fetch(const struct harness *h, const char *link)
{
    return request(h, "GET", link, "", "");
}

/* What an address gives at a node is what the node with the files gives to its tenant. */
static void expect_files(const struct harness *h, const char *link, const struct harness *ran,
                         const char *id)
{
    char path[96];
    struct answer got = fetch(h, link), wanted;

    snprintf(path, sizeof(path), "/v1/executions/%s/files", id);
    wanted = harness_get(ran, path);
    assert_int_equal(wanted.status, 200);
    if (got.status != 200)
        fail_msg("got %d %s", got.status, got.body);
    assert_true(wanted.len > 0);
    assert_int_equal(got.len, wanted.len);
    assert_memory_equal(got.body, wanted.body, got.len);
    answer_finish(&got);
    answer_finish(&wanted);
}

/* Writes another text in place of one in an address. */
static void alter(const char *link, const char *from, const char *to, char ret[LINK_SIZE])
{
    const char *at = strstr(link, from);

    assert_non_null(at);
    snprintf(ret, LINK_SIZE, "%.*s%s%s", (int)(at - link), link, to, at + strlen(from));
}

static void tenant_id(const struct harness *h, const char *name, char ret[64])
{
    char path[96];
    struct answer a;
    cJSON *json;

    snprintf(path, sizeof(path), "/v1/admin/tenants/%s", name);
    a = harness_get(h, path);
    assert_int_equal(a.status, 200);
    json = cJSON_Parse(a.body);
    snprintf(ret, 64, "%s", cJSON_GetStringValue(cJSON_GetObjectItem(json, "id")));
    cJSON_Delete(json);
    answer_finish(&a);
}

/* Also one that was started anew, and where somebody asks the node that did not make it. */
static void an_address_is_good_at_every_node(void **state)
{
    struct world w = {0};
    char id[38], link[LINK_SIZE], of_b[38], link_of_b[LINK_SIZE];

    (void)state;
    begin(&w);
    run(&w, &w.a, id, link);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_files(&w.b, link, &w.a, id);
    expect_files(&w.a, link, &w.a, id);
    run(&w, &w.b, of_b, link_of_b);
    nodes_wait(&w.a, nodes_path_of(of_b), 200, "\"status\":\"success\"");
    expect_files(&w.a, link_of_b, &w.b, of_b);
    nodes_stop(&w.a);
    nats_start_node(&w.a, &w.nats, "a", w.a_lines);
    expect_files(&w.a, link, &w.a, id);
    expect_files(&w.a, link_of_b, &w.b, of_b);
    end(&w);
}

/* What the secret is made of no answer has, not even to the operator. */
static void expect_untold(const struct world *w, const struct harness *h)
{
    static const char *const paths[] = {"/v1/admin/cluster", "/v1/admin/audit?limit=200",
                                        "/metrics", "/ready"};
    char subject[256] = "", mark[64] = "";
    char *begin = nats_last(&w->nats, NATS_CHANGES, "$KV.skillvm_registry.begin", subject);
    cJSON *json = cJSON_Parse(begin);

    assert_non_null(json);
    snprintf(mark, sizeof(mark), "%s",
             cJSON_GetStringValue(cJSON_GetObjectItem(json, "bucket")));
    assert_int_equal(strlen(mark), 32);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct answer a = harness_get(h, paths[i]);

        assert_int_equal(a.status, 200);
        assert_null(strstr(a.body, mark));
        answer_finish(&a);
    }
    cJSON_Delete(json);
    free(begin);
}

/* Nobody makes another one of it, at no node. */
static void none_is_made_of_another(void **state)
{
    struct world w = {0};
    char id[38], other[38], link[LINK_SIZE], unused[LINK_SIZE], forged[LINK_SIZE];
    char own[64], foreign[64];
    char *last;

    (void)state;
    begin(&w);
    nodes_tenant(&w.a, "acme");
    tenant_id(&w.a, "default", own);
    tenant_id(&w.a, "acme", foreign);
    run(&w, &w.a, id, link);
    run(&w, &w.a, other, unused);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    nodes_wait(&w.b, nodes_path_of(other), 200, "\"status\":\"success\"");
    expect_files(&w.b, link, &w.a, id);
    alter(link, id + strlen("exec_"), other + strlen("exec_"), forged);
    expect(fetch(&w.b, forged), 404, "never good");
    expect(fetch(&w.a, forged), 404, "never good");
    alter(link, own, foreign, forged);
    expect(fetch(&w.b, forged), 404, "never good");
    snprintf(forged, sizeof(forged), "%s", link);
    last = &forged[strlen(forged) - 1];
    *last = *last == '0' ? '1' : '0';
    expect(fetch(&w.b, forged), 404, "never good");
    expect_untold(&w, &w.a);
    expect_untold(&w, &w.b);
    end(&w);
}

/* With the bucket of changes made anew the secret is another one, at all nodes. */
static void a_new_bucket_is_another_secret(void **state)
{
    struct world w = {0};
    char id[38], link[LINK_SIZE], later[38], new_link[LINK_SIZE];

    (void)state;
    begin(&w);
    run(&w, &w.a, id, link);
    nodes_wait(&w.b, nodes_path_of(id), 200, "\"status\":\"success\"");
    expect_files(&w.b, link, &w.a, id);
    nats_delete_bucket(&w.nats, NATS_CHANGES);
    nats_wait_node(&w.a, NODE_CUT_OFF("bucket_gone"));
    nats_wait_node(&w.b, NODE_CUT_OFF("bucket_gone"));
    /* Until there is one the nodes go on with what they know. */
    expect_files(&w.b, link, &w.a, id);
    nats_make(&w.a);
    nats_wait_node(&w.a, NODE_JOINED);
    nats_wait_node(&w.b, NODE_JOINED);
    expect(fetch(&w.a, link), 404, "never good");
    expect(fetch(&w.b, link), 404, "never good");
    run(&w, &w.b, later, new_link);
    nodes_wait(&w.a, nodes_path_of(later), 200, "\"status\":\"success\"");
    expect_files(&w.a, new_link, &w.b, later);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_good_at_every_node),
        cmocka_unit_test(none_is_made_of_another),
        cmocka_unit_test(a_new_bucket_is_another_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
