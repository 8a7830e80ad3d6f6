/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/tenants_world.h"

#include "tests/unit/cmocka_all.h"
#include "tests/unit/prometheus_text.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

/* Copies the string value of a member to ret. */
static void take_string(const struct answer *a, const char *name, char *ret, size_t size)
{
    char part[64];
    const char *at;

    snprintf(part, sizeof(part), "\"%s\":\"", name);
    at = a->body ? strstr(a->body, part) : NULL;
    if (!at) {
        fail_msg("no %s in %d %s", name, a->status, a->body ? a->body : "(nothing)");
        return;
    }
    at += strlen(part);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

struct answer admin(const struct harness *h, const char *method, const char *path,
                    const char *json)
{
    return harness_request(h, method, path, "Content-Type: application/json\r\n", json,
                           strlen(json));
}

struct answer as(const struct world *w, const struct tenant *t, const char *method,
                 const char *path, const char *json)
{
    return harness_request(&w->h, method, path, t->headers, json, strlen(json));
}

struct answer run_as(const struct world *w, const struct tenant *t, const char *json)
{
    return as(w, t, "POST", "/v1/executions", json);
}

static void make_tenant(struct world *w, struct tenant *t, const char *name)
{
    char json[128], key[128], headers[256];
    struct answer a;
    char *tar;
    size_t len;

    snprintf(json, sizeof(json), "{\"name\":\"%s\"}", name);
    a = admin(&w->h, "POST", "/v1/admin/tenants", json);
    take_string(&a, "id", t->id, sizeof(t->id));
    answer_finish(&a);
    snprintf(json, sizeof(json), "{\"tenant\":\"%s\"}", t->id);
    a = admin(&w->h, "POST", "/v1/admin/keys", json);
    take_string(&a, "key", key, sizeof(key));
    answer_finish(&a);
    snprintf(t->headers, sizeof(t->headers),
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n", key);
    snprintf(headers, sizeof(headers),
             "Authorization: Bearer %s\r\nContent-Type: application/octet-stream\r\n", key);
    tar = harness_skill("demo", "1.0", "print(1)", &len);
    expect(harness_request(&w->h, "POST", "/v1/skills", headers, tar, len), 201, "demo");
    free(tar);
}

void set_limits(const struct world *w, const struct tenant *t, const char *limits)
{
    char path[128], json[256];

    snprintf(path, sizeof(path), "/v1/admin/tenants/%s", t->id);
    snprintf(json, sizeof(json), "{\"limits\":{%s}}", limits);
    expect(admin(&w->h, "PATCH", path, json), 200, t->id);
}

void begin(struct world *w, const char *max_running, const char *stop_timeout)
{
    const char *const extra[] = {
        "--max-running", max_running, "--max-queued", "200", "--stop-timeout",
        stop_timeout,    NULL};

    harness_init(&w->h, "boot", "restore");
    harness_start(&w->h, extra);
    harness_wait_ready(&w->h);
    make_tenant(w, &w->a, "a");
    make_tenant(w, &w->b, "b");
}

void end(struct world *w)
{
    assert_int_equal(harness_stop(&w->h, SIGTERM), 0);
    harness_finish(&w->h);
}

void submit(const struct world *w, const struct tenant *t, const char *json, char id[ID_SIZE])
{
    struct answer a = run_as(w, t, json);

    assert_int_equal(a.status, 202);
    take_string(&a, "execution_id", id, ID_SIZE);
    answer_finish(&a);
}

struct answer show(const struct world *w, const struct tenant *t, const char *id)
{
    char path[64];

    snprintf(path, sizeof(path), "/v1/executions/%.37s", id);
    return as(w, t, "GET", path, "");
}

struct answer cancel(const struct world *w, const struct tenant *t, const char *id)
{
    char path[64];

    snprintf(path, sizeof(path), "/v1/executions/%.37s", id);
    return as(w, t, "DELETE", path, "");
}

void wait_status(const struct world *w, const struct tenant *t, const char *id,
                 const char *status)
{
    char part[64];

    snprintf(part, sizeof(part), "\"status\":\"%s\"", status);
    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        struct answer a = show(w, t, id);
        bool there = answer_has(&a, part);

        answer_finish(&a);
        if (there)
            return;
        harness_pause(i);
    }
    fail_msg("%s does not become %s", id, status);
}

double metric(const struct world *w, const char *series)
{
    struct answer a = harness_get(&w->h, "/metrics");
    double value = 0;
    char why[256];

    assert_int_equal(a.status, 200);
    if (!prometheus_check(a.body, why, sizeof(why)))
        fail_msg("%s in:\n%s", why, a.body);
    (void)prometheus_value(a.body, series, &value);
    answer_finish(&a);
    return value;
}

double metric_sum(const struct world *w, const char *one, const char *other)
{
    struct answer a = harness_get(&w->h, "/metrics");
    double first = 0, second = 0;

    (void)prometheus_value(a.body, one, &first);
    (void)prometheus_value(a.body, other, &second);
    answer_finish(&a);
    return first + second;
}

void wait_metric(const struct world *w, const char *series, double value)
{
    double is = -1;

    for (unsigned i = 0; i < HARNESS_LOOKS; i++) {
        is = metric(w, series);
        if (is == value)
            return;
        harness_pause(i);
    }
    fail_msg("%s is %g, not %g", series, is, value);
}

double metric_of(const struct world *w, const struct tenant *t, const char *name,
                 const char *label)
{
    char series[256];

    snprintf(series, sizeof(series), "%s{tenant=\"%s\"%s}", name, t->id, label);
    return metric(w, series);
}

double ended(const struct world *w, const struct tenant *t)
{
    return metric_of(w, t, "skillvm_tenant_executions_total", ",status=\"success\"");
}

unsigned expect_refused(struct answer a, const char *code, const char *part)
{
    const char *at = a.headers ? strcasestr(a.headers, "\r\nRetry-After: ") : NULL;
    unsigned seconds = at ? (unsigned)strtoul(at + 15, NULL, 10) : 0;
    char error[64];

    snprintf(error, sizeof(error), "\"error\":\"%s\"", code);
    if (!answer_has(&a, error))
        fail_msg("%d %s is not %s", a.status, a.body ? a.body : "(nothing)", code);
    expect(a, 429, part);
    assert_true(seconds >= 1);
    return seconds;
}
