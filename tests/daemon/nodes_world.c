/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nodes_world.h"

#include "base/clock.h"
#include "tests/unit/prometheus_text.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_US  10000u
#define LOG_BYTES (1u << 20)

static uint64_t deadline(void)
{
    return clock_monotonic_ns() + NATS_WAIT_S * NS_PER_SECOND;
}

void nodes_begin_two(struct nats_world *w, struct harness *a, const char *a_lines,
                     struct harness *b, const char *b_lines)
{
    nodes_begin_named(w, a, "a", a_lines, b, b_lines);
}

void nodes_begin_first(struct nats_world *w, struct harness *a, const char *a_name,
                       const char *a_lines)
{
    nats_begin(w, 1);
    nats_start_node(a, w, a_name, a_lines);
    nats_make(a);
}

void nodes_begin_second(struct nats_world *w, struct harness *a, struct harness *b,
                        const char *b_lines)
{
    nats_start_node(b, w, "b", b_lines);
    nats_wait_node(a, NODE_JOINED);
    nats_wait_node(b, NODE_JOINED);
    nats_wait_node(a, "\"node\":\"b\",\"alive\":true");
    harness_wait_ready(a);
    harness_wait_ready(b);
}

void nodes_begin_named(struct nats_world *w, struct harness *a, const char *a_name,
                       const char *a_lines, struct harness *b, const char *b_lines)
{
    nodes_begin_first(w, a, a_name, a_lines);
    nodes_begin_second(w, a, b, b_lines);
}

void nodes_start_logged(struct harness *h, const struct nats_world *w, const char *name,
                        const char *more, char ret_path[128])
{
    int own = dup(STDERR_FILENO), log;

    snprintf(ret_path, 128, "%s/log-%s", w->dir, name);
    log = open(ret_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(own >= 0 && log >= 0);
    assert_true(dup2(log, STDERR_FILENO) >= 0);
    nats_start_node(h, w, name, more);
    assert_true(dup2(own, STDERR_FILENO) >= 0);
    close(own);
    close(log);
}

unsigned nodes_count_log(const char *path, const char *text)
{
    char *content = calloc(1, LOG_BYTES);
    FILE *f = fopen(path, "r");
    unsigned n = 0;

    assert_non_null(f);
    assert_non_null(content);
    (void)!fread(content, 1, LOG_BYTES - 1, f);
    for (const char *at = content; (at = strstr(at, text)); at++)
        n++;
    fclose(f);
    free(content);
    return n;
}

void nodes_wait_log(const char *path, const char *text, unsigned times)
{
    uint64_t until = deadline();
    unsigned n, looks = 0;

    while ((n = nodes_count_log(path, text)) < times) {
        if (clock_monotonic_ns() > until)
            fail_msg("%s says \"%s\" %u times, never %u", path, text, n, times);
        harness_pause(looks++);
    }
}

void nodes_begin_stop(const struct harness *h)
{
    uint64_t until = deadline();

    assert_int_equal(kill(h->pid, SIGTERM), 0);
    /* A node that stops accepts no connection any more. */
    while (access(h->socket, F_OK) == 0) {
        if (clock_monotonic_ns() > until)
            fail_msg("it does not stop");
        usleep(PAUSE_US);
    }
}

void nodes_stop(struct harness *h)
{
    assert_int_equal(harness_stop(h, SIGTERM), 0);
}

void nodes_end(struct harness *h)
{
    nodes_stop(h);
    harness_finish(h);
}

struct answer nodes_admin(const struct harness *h, const char *method, const char *path,
                          const char *json)
{
    return harness_request(h, method, path, *json ? "Content-Type: application/json\r\n" : "",
                           json, strlen(json));
}

struct answer nodes_admin_sure(const struct harness *h, const char *method, const char *path,
                               const char *json)
{
    uint64_t until = deadline();

    for (;;) {
        struct answer a = nodes_admin(h, method, path, json);

        if (a.status != 503 || clock_monotonic_ns() > until)
            return a;
        answer_finish(&a);
        usleep(PAUSE_US);
    }
}

void nodes_push_sure(const struct harness *h, const char *name)
{
    uint64_t until = deadline();
    int status;

    while ((status = harness_push(h, name, "1.0", "print(1)")) == 503 &&
           clock_monotonic_ns() < until)
        usleep(PAUSE_US);
    assert_int_equal(status, 201);
}

void nodes_tenant(const struct harness *h, const char *name)
{
    struct answer a;
    char json[128];

    snprintf(json, sizeof(json), "{\"name\":\"%s\"}", name);
    a = nodes_admin(h, "POST", "/v1/admin/tenants", json);
    if (a.status != 503) {
        harness_expect(a, 201, name);
        return;
    }
    /* What was not confirmed may have been made all the same. */
    answer_finish(&a);
    a = nodes_admin_sure(h, "POST", "/v1/admin/tenants", json);
    if (a.status != 409)
        assert_int_equal(a.status, 201);
    harness_expect(a, a.status, name);
}

static void take(const cJSON *json, const char *member, char *ret, size_t size)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, member));

    assert_non_null(text);
    snprintf(ret, size, "%s", text);
}

void nodes_key(const struct harness *h, const char *tenant, char ret_key[80], char ret_id[64])
{
    char text[128];
    struct answer a;
    cJSON *json;

    snprintf(text, sizeof(text), "{\"tenant\":\"%s\"}", tenant);
    a = nodes_admin_sure(h, "POST", "/v1/admin/keys", text);
    assert_int_equal(a.status, 201);
    json = cJSON_Parse(a.body);
    take(json, "key", ret_key, 80);
    take(json, "id", ret_id, 64);
    cJSON_Delete(json);
    answer_finish(&a);
}

int nodes_try_key(const struct harness *h, const char *key)
{
    char headers[160];
    struct answer a;
    int status;

    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", key);
    a = harness_request(h, "GET", "/v1/skills", headers, "", 0);
    status = a.status;
    answer_finish(&a);
    return status;
}

void nodes_wait_key(const struct harness *h, const char *key, int status)
{
    uint64_t until = deadline();
    unsigned looks = 0;
    int last;

    while ((last = nodes_try_key(h, key)) != status) {
        if (clock_monotonic_ns() > until)
            fail_msg("a key is answered %d, never %d", last, status);
        harness_pause(looks++);
    }
}

void nodes_wait(const struct harness *h, const char *path, int status, const char *part)
{
    harness_wait_answer(h, path, status, part);
}

void nodes_wait_same(const struct harness *one, const struct harness *other, const char *path)
{
    struct answer a = harness_get(one, path);

    assert_int_equal(a.status, 200);
    nodes_wait(other, path, 200, "");
    for (unsigned i = 0;; i++) {
        struct answer b = harness_get(other, path);
        bool same = strcmp(a.body, b.body) == 0;

        if (!same && i == NODES_LOOKS)
            fail_msg("%s is never %s", b.body, a.body);
        answer_finish(&b);
        if (same)
            break;
        harness_pause(i);
    }
    answer_finish(&a);
}

void nodes_wait_objects(const struct harness *h, unsigned n)
{
    uint64_t until = deadline();

    for (unsigned i = 0; harness_count_files(h, "objects") != n; i++) {
        if (clock_monotonic_ns() > until)
            fail_msg("there are %u objects, not %u", harness_count_files(h, "objects"), n);
        harness_pause(i);
    }
}

void nodes_set_limits(const struct harness *h, const struct harness *other, const char *limits)
{
    char json[256];

    snprintf(json, sizeof(json), "{\"limits\":{%s}}", limits);
    harness_expect(nodes_admin_sure(h, "PATCH", "/v1/admin/tenants/default", json), 200,
                   limits);
    nodes_wait(other, "/v1/admin/tenants/default", 200, limits);
}

void nodes_take_id(struct answer *a, char ret[38])
{
    answer_text(a, "execution_id", ret, 38);
    answer_finish(a);
}

const char *nodes_path_of(const char *id)
{
    static char path[2][64];
    static unsigned n;

    n = !n;
    snprintf(path[n], sizeof(path[n]), "/v1/executions/%.37s", id);
    return path[n];
}

char *nodes_record_of(const struct nats_world *w, const char *id)
{
    char subject[128], found[256];

    snprintf(subject, sizeof(subject), "$KV.skillvm_executions.%.37s", id);
    return nats_last(w, NATS_RECORDS, subject, found);
}

/* Servers that did not answer in time; of "may have accepted" there may be one already. */
static bool is_late(const struct answer *a)
{
    return a->status == 503 && answer_has(a, "\"error\":\"cluster_unavailable\"") &&
           !strstr(a->body, "may have accepted");
}

struct answer nodes_run_as(const struct harness *h, const char *headers, const char *json)
{
    uint64_t until = deadline();
    struct answer a = harness_request(h, "POST", "/v1/executions", headers, json, strlen(json));

    for (; is_late(&a) && clock_monotonic_ns() < until; usleep(PAUSE_US)) {
        answer_finish(&a);
        a = harness_request(h, "POST", "/v1/executions", headers, json, strlen(json));
    }
    return a;
}

struct answer nodes_run(const struct harness *h, const char *json)
{
    return nodes_run_as(h, "Content-Type: application/json\r\n", json);
}

void nodes_submit(const struct harness *h, const char *json, char ret[38])
{
    struct answer a = nodes_run(h, json);

    if (a.status != 202)
        fail_msg("%d %s", a.status, a.body);
    nodes_take_id(&a, ret);
}

void nodes_ask_end(const struct harness *h, const char *id)
{
    uint64_t until = deadline();
    struct answer a = harness_request(h, "DELETE", nodes_path_of(id), "", "", 0);
    bool was_late = false;

    for (; is_late(&a) && clock_monotonic_ns() < until; usleep(PAUSE_US)) {
        was_late = true;
        answer_finish(&a);
        a = harness_request(h, "DELETE", nodes_path_of(id), "", "", 0);
    }
    /* What was not confirmed may have been done all the same. */
    if (was_late && a.status == 409)
        harness_expect(a, 409, "has ended already");
    else
        harness_expect(a, 202, "cancel");
}

void nodes_cancel(const struct harness *h, const char *id)
{
    nodes_ask_end(h, id);
    nodes_wait(h, nodes_path_of(id), 200, "\"status\":\"cancelled\"");
}

static double running_at(const struct harness *h)
{
    struct answer a = harness_get(h, "/metrics");
    double n = 0;

    assert_true(prometheus_value(a.body, "skillvm_executions_running", &n));
    answer_finish(&a);
    return n;
}

void nodes_fill(const struct harness *h, const char *json, char ret[38])
{
    const uint64_t until_ns = deadline();

    while (clock_monotonic_ns() < until_ns) {
        const double before = running_at(h);

        nodes_submit(h, json, ret);
        nodes_wait(h, nodes_path_of(ret), 200, "\"status\":\"running\"");
        if (running_at(h) > before)
            return;
        /* Another node that had room has taken it from one that was late to begin it. */
        nodes_cancel(h, ret);
    }
    fail_msg("another node takes all that is sent to one");
}
