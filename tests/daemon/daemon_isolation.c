/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every route of the daemon against strangers: another tenant's key with this tenant's ids, no
 * key, keys that were revoked, that nobody has, that are none. A new route needs a probe here.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/routes/daemon.h"
#include "tests/daemon/two_tenants.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a route must answer to another tenant that knows everything about this one. */
enum kind {
    OPEN,     /* the same to all; nothing of a tenant's */
    SECRET,   /* 404, as for what is not there */
    LIST,     /* 200 without anything of the first tenant's */
    OWN,      /* acts on what is the caller's, whatever the first tenant has */
    OPERATOR, /* 401 */
};

/* {…} in path and body stands for a member of struct things. */
struct probe {
    const char *route;
    enum kind kind;
    const char *path;
    const char *type; /* of the body; NULL: none */
    const char *body; /* NULL: the archive of a skill */
    int owner;        /* what the first tenant gets; 0: not asked, for it would change things */
};

static const struct probe probes[] = {
    {"GET /health", OPEN, "/health", NULL, "", 200},
    {"GET /ready", OPEN, "/ready", NULL, "", 200},
    {"GET /metrics", OPERATOR, "/metrics", NULL, "", 401},
    {"POST /v1/skills", OWN, "/v1/skills", RAW, NULL, 201},
    {"GET /v1/skills", LIST, "/v1/skills", NULL, "", 200},
    {"POST /v1/skills/validate", OWN, "/v1/skills/validate", RAW, NULL, 200},
    {"GET /v1/skills/:/:", SECRET, "/v1/skills/{skill}/1", NULL, "", 200},
    {"GET /v1/skills/:/:/inspect", SECRET, "/v1/skills/{skill}/1/inspect", NULL, "", 200},
    {"DELETE /v1/skills/:/:", SECRET, "/v1/skills/{skill}/latest", NULL, "", 0},
    {"POST /v1/files", OWN, "/v1/files?name=in.txt", RAW, "mine", 201},
    {"GET /v1/files", LIST, "/v1/files", NULL, "", 200},
    {"GET /v1/files/:", SECRET, "/v1/files/{file}", NULL, "", 200},
    {"DELETE /v1/files/:", SECRET, "/v1/files/{file}", NULL, "", 0},
    {"GET /v1/files/:/download", SECRET, "/v1/files/{file}/download", NULL, "", 200},
    {"GET /v1/sessions", LIST, "/v1/sessions", NULL, "", 200},
    {"GET /v1/sessions/:", SECRET, "/v1/sessions/{session}", NULL, "", 200},
    {"DELETE /v1/sessions/:", SECRET, "/v1/sessions/{session}", NULL, "", 0},
    {"GET /v1/sessions/:/files", LIST, "/v1/sessions/{session}/files", NULL, "", 200},
    {"GET /v1/sessions/:/files/*", SECRET, "/v1/sessions/{session}/files/touched", NULL, "",
     200},
    {"DELETE /v1/sessions/:/files/*", SECRET, "/v1/sessions/{session}/files/touched", NULL, "",
     0},
    {"POST /v1/executions", SECRET, "/v1/executions", JSON, "{\"skill\":\"{skill}\"}", 200},
    {"GET /v1/executions", LIST, "/v1/executions", NULL, "", 200},
    {"GET /v1/executions/:", SECRET, "/v1/executions/{ended}", NULL, "", 200},
    {"DELETE /v1/executions/:", SECRET, "/v1/executions/{live}", NULL, "", 0},
    {"GET /v1/executions/:/logs", SECRET, "/v1/executions/{live}/logs", NULL, "", 200},
    {"GET /v1/executions/:/events", SECRET, "/v1/executions/{ended}/events", NULL, "", 200},
    {"GET /v1/executions/:/files", SECRET, "/v1/executions/{ended}/files", NULL, "", 200},
    {"GET /v1/executions/:/files/*", SECRET, "/v1/executions/{ended}/files/a.txt", NULL, "",
     200},
    {"GET /v1/downloads/:", OPEN, "/v1/downloads/{ended}-0-first-0", NULL, "", 404},
    {"GET /v1/tools", LIST, "/v1/tools", NULL, "", 200},
    {"POST /v1/tools/call", SECRET, "/v1/tools/call", JSON,
     "{\"name\":\"{skill}\",\"arguments\":{}}", 200},
    {"POST /v1/admin/tenants", OPERATOR, "/v1/admin/tenants", JSON, "{\"name\":\"x\"}", 401},
    {"GET /v1/admin/tenants", OPERATOR, "/v1/admin/tenants", NULL, "", 401},
    {"GET /v1/admin/tenants/:", OPERATOR, "/v1/admin/tenants/first", NULL, "", 401},
    {"PATCH /v1/admin/tenants/:", OPERATOR, "/v1/admin/tenants/first", JSON,
     "{\"limits\":{\"weight\":100}}", 401},
    {"DELETE /v1/admin/tenants/:", OPERATOR, "/v1/admin/tenants/first", NULL, "", 401},
    {"POST /v1/admin/keys", OPERATOR, "/v1/admin/keys", JSON, "{\"tenant\":\"first\"}", 401},
    {"GET /v1/admin/keys", OPERATOR, "/v1/admin/keys?tenant=first", NULL, "", 401},
    {"DELETE /v1/admin/keys/:", OPERATOR, "/v1/admin/keys/{key}", NULL, "", 401},
    {"GET /v1/admin/cluster", OPERATOR, "/v1/admin/cluster", NULL, "", 401},
    {"POST /v1/admin/cluster", OPERATOR, "/v1/admin/cluster", NULL, "", 401},
    {"POST /v1/admin/cluster/nodes/:/drain", OPERATOR, "/v1/admin/cluster/nodes/a/drain", NULL,
     "", 401},
    {"GET /v1/admin/cluster/nodes/:/drain", OPERATOR, "/v1/admin/cluster/nodes/a/drain", NULL,
     "", 401},
    {"DELETE /v1/admin/cluster/nodes/:/drain", OPERATOR, "/v1/admin/cluster/nodes/a/drain",
     NULL, "", 401},
    {"DELETE /v1/admin/cluster/nodes/:", OPERATOR, "/v1/admin/cluster/nodes/a", NULL, "", 401},
    {"GET /v1/admin/audit", OPERATOR, "/v1/admin/audit", NULL, "", 401},
};

static struct answer probe_with(const struct place *p, const struct probe *probe,
                                const char *headers, const struct things *things)
{
    char path[256], body[256], method[16] = "";

    assert_int_equal(sscanf(probe->route, "%15s", method), 1);
    fill_in(probe->path, things, path, sizeof(path));
    if (!probe->body)
        return ask(p, headers, method, path, probe->type, p->skill, p->skill_len);
    fill_in(probe->body, things, body, sizeof(body));
    return ask(p, headers, method, path, probe->type, body, strlen(body));
}

static struct answer probe_as(const struct place *p, const struct probe *probe, const char *key,
                              const struct things *things)
{
    char headers[160];

    bearer(key, headers);
    return probe_with(p, probe, headers, things);
}

static const struct probe *find_probe(const struct http_route *route)
{
    char name[160];

    snprintf(name, sizeof(name), "%s %s", route->method, route->path);
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        if (strcmp(probes[i].route, name) == 0)
            return &probes[i];
    }
    fail_msg("%s has no probe: who else may use it?", name);
    return NULL;
}

static int start(void **state)
{
    static struct place p;

    two_tenants_start(&p);
    *state = &p;
    return 0;
}

static int stop(void **state)
{
    struct place *p = *state;
    struct answer a;
    char path[128];

    /* Whatever strangers tried, it is all still there and at work. */
    a = probe_as(p, &(struct probe){"GET ", SECRET, "/v1/executions/{live}", NULL, "", 0},
                 p->first, &p->things);
    harness_expect(a, 200, "\"status\":\"running\"");
    snprintf(path, sizeof(path), "/v1/executions/%s", p->things.live);
    a = harness_request(&p->h, "DELETE", path, "X-Tenant-ID: first\r\n", NULL, 0);
    harness_expect(a, 202, "cancelling");
    harness_assert_clean(&p->h);
    assert_int_equal(harness_stop(&p->h, SIGTERM), 0);
    two_tenants_finish(p);
    return 0;
}

/* The headers of an answer that do not change by themselves. */
static void lasting_headers(const struct answer *a, char *ret, size_t size)
{
    size_t used = 0;

    for (const char *line = a->headers; *line;) {
        size_t len = strcspn(line, "\n") + 1;

        if (strncasecmp(line, "Date:", 5) != 0 && used + len < size) {
            memcpy(ret + used, line, len);
            used += len;
        }
        line += len;
    }
    ret[used] = '\0';
}

/* The ids of nothing in a text, which are as long, become the first tenant's. */
static void rename_things(char *text, const struct things *to)
{
    const char *const from_to[][2] = {
        {nothing.skill, to->skill}, {nothing.file, to->file}, {nothing.ended, to->ended},
        {nothing.live, to->live},   {nothing.key, to->key},   {nothing.session, to->session}};

    for (size_t i = 0; i < sizeof(from_to) / sizeof(from_to[0]); i++) {
        size_t len = strlen(from_to[i][0]);

        assert_int_equal(strlen(from_to[i][1]), len);
        for (char *at; (at = strstr(text, from_to[i][0]));)
            memcpy(at, from_to[i][1], len);
    }
}

/* Another tenant learns of the first one's things what it learns of none. */
static void expect_secret(const struct place *p, const struct probe *probe)
{
    struct answer other = probe_as(p, probe, p->second, &p->things);
    struct answer none = probe_as(p, probe, p->second, &nothing);
    char other_headers[2048], none_headers[2048];

    if (other.status != 404)
        fail_msg("%s: another tenant gets %d %s", probe->route, other.status, other.body);
    rename_things(none.body, &p->things);
    assert_string_equal(other.body, none.body);
    lasting_headers(&other, other_headers, sizeof(other_headers));
    lasting_headers(&none, none_headers, sizeof(none_headers));
    assert_string_equal(other_headers, none_headers);
    answer_finish(&other);
    answer_finish(&none);
}

/* Nothing of the first tenant's is in what others get. */
static void expect_unmarked(const struct place *p, const struct probe *probe, struct answer a,
                            int status)
{
    if (status && a.status != status)
        fail_msg("%s: got %d %s", probe->route, a.status, a.body);
    if (strstr(a.body, p->things.file) || strstr(a.body, p->things.live) ||
        (status && strstr(a.body, p->things.ended)) ||
        (probe->kind == LIST && strstr(a.body, MARK)))
        fail_msg("%s tells a stranger: %s", probe->route, a.body);
    answer_finish(&a);
}

static void other_tenants_get_nothing(void **state)
{
    const struct place *p = *state;
    size_t n = 0;

    for (const struct http_route *r = daemon_routes; r->method; r++) {
        const struct probe *probe = find_probe(r);

        n++;
        if (probe->owner) {
            struct answer a = probe_as(p, probe, p->first, &p->things);

            if (a.status != probe->owner)
                fail_msg("%s: its owner gets %d %s", probe->route, a.status, a.body);
            answer_finish(&a);
        }
        switch (probe->kind) {
        case SECRET:
            expect_secret(p, probe);
            break;
        case LIST:
        case OWN:
            expect_unmarked(p, probe, probe_as(p, probe, p->second, &p->things), probe->owner);
            break;
        case OPEN:
            expect_unmarked(p, probe, probe_with(p, probe, "", &p->things), 0);
            break;
        case OPERATOR:
            harness_expect(probe_as(p, probe, p->second, &p->things), 401, "unauthorized");
            break;
        }
    }
    /* And no probe is of a route that is no more. */
    assert_int_equal(n, sizeof(probes) / sizeof(probes[0]));
}

/* Whatever is sent in place of a good key: 401, and the same whether a thing is there or not.
 */
static void strangers_are_refused(void **state)
{
    const struct place *p = *state;
    char unknown[80] = "sk-", revoked[160], disabled[160], nobody[160], twice[400];
    const char *const bad[] = {"",
                               revoked,
                               disabled,
                               nobody,
                               twice,
                               "Authorization: Bearer sk-1234\r\n",
                               "Authorization: Bearer \r\n",
                               "Authorization: Basic c2s6c2s=\r\n",
                               "Authorization: Bearer sk-' OR 1=1 --\r\n",
                               "X-Tenant-ID: first\r\n"};

    memset(unknown + 3, 'a', 64);
    bearer(unknown, nobody);
    bearer(p->revoked, revoked);
    bearer(p->disabled, disabled);
    snprintf(twice, sizeof(twice), "Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n",
             p->first, p->first);
    for (const struct http_route *r = daemon_routes; r->method; r++) {
        const struct probe *probe = find_probe(r);

        assert_int_equal(r->access == HTTP_ACCESS_OPEN, probe->kind == OPEN);
        assert_int_equal(r->access == HTTP_ACCESS_OPERATOR, probe->kind == OPERATOR);
        for (size_t i = 0; probe->kind != OPEN && i < sizeof(bad) / sizeof(bad[0]); i++) {
            struct answer a = probe_with(p, probe, bad[i], &p->things);
            struct answer none = probe_with(p, probe, bad[i], &nothing);

            if (a.status != 401 || !strcasestr(a.headers, "WWW-Authenticate: Bearer"))
                fail_msg("%s with %s: %d %s", probe->route, bad[i], a.status, a.body);
            rename_things(none.body, &p->things);
            assert_string_equal(a.body, none.body);
            answer_finish(&a);
            answer_finish(&none);
        }
    }
}

/* Ids within bodies and queries, and keys of requests, belong to a tenant as well. */
static void bodies_name_only_their_own(void **state)
{
    const struct place *p = *state;
    const struct things *t = &p->things;
    char json[512], id[64], path[256], cursor[128], headers[160];
    size_t len;
    char *skill = harness_skill(t->skill, "1", "print(2)", &len);
    struct answer a, none;

    /* The same skill under the same name is two skills. */
    bearer(p->second, headers);
    harness_expect(ask(p, headers, "POST", "/v1/skills", RAW, skill, len), 201, t->skill);
    free(skill);
    snprintf(json, sizeof(json), "{\"skill\":\"%s\",\"files\":[\"%s\"]}", t->skill, t->file);
    a = ask_as(p, p->second, "", "POST", "/v1/executions", json);
    snprintf(json, sizeof(json), "{\"skill\":\"%s\",\"files\":[\"%s\"]}", t->skill,
             nothing.file);
    none = ask_as(p, p->second, "", "POST", "/v1/executions", json);
    assert_int_equal(a.status, none.status);
    assert_true(a.status >= 400);
    rename_things(none.body, t);
    assert_string_equal(a.body, none.body);
    answer_finish(&a);
    answer_finish(&none);
    /* The key of another tenant's request is free. */
    a = ask_as(p, p->second, "", "POST", "/v1/executions",
               "{\"skill\":\"skill-alpha\",\"idempotency_key\":\"k\"}");
    assert_int_equal(a.status, 200);
    take(&a, "execution_id", id, sizeof(id));
    assert_string_not_equal(id, t->ended);
    answer_finish(&a);
    /* A cursor is a place in time, in a list of one's own. */
    a = ask_as(p, p->first, "", "GET", "/v1/executions?limit=1", "");
    take(&a, "next_cursor", cursor, sizeof(cursor));
    answer_finish(&a);
    snprintf(path, sizeof(path), "/v1/executions?cursor=%s", cursor);
    a = ask_as(p, p->second, "", "GET", path, "");
    assert_int_equal(a.status, 200);
    assert_null(strstr(a.body, t->ended));
    assert_null(strstr(a.body, t->live));
    answer_finish(&a);
}

/* Writes to over from's place in a text; both are as long. */
static void forge(const char *text, const char *from, const char *to, char ret[256])
{
    char *at;

    snprintf(ret, 256, "%s", text);
    at = strstr(ret, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
}

/* An address without a key opens the files of one execution, and no name made from it
 * another's.
 */
static void links_open_one_execution(void **state)
{
    const struct place *p = *state;
    const char *digits = p->things.ended + strlen("exec_");
    char path[256], url[256], forged[256], ids[2][64];
    struct answer a;
    const char *link;

    for (int i = 0; i < 2; i++) {
        a = admin(p, "GET", i == 0 ? "/v1/admin/tenants/first" : "/v1/admin/tenants/second",
                  "");
        take(&a, "id", ids[i], sizeof(ids[i]));
        answer_finish(&a);
    }
    snprintf(path, sizeof(path), "/v1/executions/%s", p->things.ended);
    a = ask_as(p, p->first, "", "GET", path, "");
    take(&a, "files_url", url, sizeof(url));
    answer_finish(&a);
    link = strstr(url, "/v1/downloads/");
    assert_non_null(link);
    a = ask(p, "", "GET", link, NULL, "", 0);
    assert_int_equal(a.status, 200);
    answer_finish(&a);
    forge(link, digits, nothing.ended + strlen("exec_"), forged);
    harness_expect(ask(p, "", "GET", forged, NULL, "", 0), 404, "never good");
    forge(link, ids[0], ids[1], forged);
    harness_expect(ask_as(p, p->second, "", "GET", forged, ""), 404, "never good");
    snprintf(forged, sizeof(forged), "%.*s", (int)strlen(link) - 1, link);
    harness_expect(ask(p, "", "GET", forged, NULL, "", 0), 404, "never good");
}

static void the_operator_names_a_tenant(void **state)
{
    const struct place *p = *state;
    char path[128];

    snprintf(path, sizeof(path), "/v1/executions/%s", p->things.ended);
    harness_expect(ask_as(p, p->operator, "", "GET", path, ""), 404, "not_found");
    harness_expect(ask_as(p, p->operator, "X-Tenant-ID: first\r\n", "GET", path, ""), 200,
                   p->things.ended);
    harness_expect(harness_request(&p->h, "GET", path, "X-Tenant-ID: first\r\n", NULL, 0), 200,
                   p->things.ended);
    harness_expect(ask_as(p, p->operator, "X-Tenant-ID: none\r\n", "GET", path, ""), 404,
                   "X-Tenant-ID names no tenant");
    harness_expect(ask_as(p, p->operator, "", "GET", "/v1/admin/tenants/first", ""), 200,
                   "\"stored_bytes\":");
    harness_expect(ask_as(p, p->first, "X-Tenant-ID: first\r\n", "GET", path, ""), 200,
                   p->things.ended);
    /* To a tenant, others that are there and others that are not are the same. */
    harness_expect(ask_as(p, p->second, "X-Tenant-ID: first\r\n", "GET", path, ""), 403,
                   "X-Tenant-ID names another tenant");
    harness_expect(ask_as(p, p->second, "X-Tenant-ID: none\r\n", "GET", path, ""), 403,
                   "X-Tenant-ID names another tenant");
    /* A key of the unix socket's operator still makes its tenant the caller. */
    snprintf(path, sizeof(path), "Authorization: Bearer %s\r\n", p->second);
    harness_expect(harness_request(&p->h, "GET", "/v1/admin/keys", path, NULL, 0), 401,
                   "unauthorized");
}

static void the_audit_tells_it(void **state)
{
    const struct place *p = *state;
    struct answer a = harness_get(&p->h, "/v1/admin/audit?limit=200");

    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"action\":\"tenant.create\""));
    assert_true(answer_has(&a, "\"action\":\"key.create\""));
    assert_true(answer_has(&a, "\"action\":\"key.revoke\""));
    assert_true(answer_has(&a, "\"action\":\"skill.push\""));
    /* Hundreds of refusals, and one row a minute. */
    assert_true(answer_has(&a, "\"action\":\"auth.refused\""));
    assert_null(strstr(strstr(a.body, "auth.refused") + 1, "auth.refused"));
    assert_null(strstr(a.body, p->first));
    answer_finish(&a);
}

/* What it began keeps a tenant from being deleted; then all of it goes. */
static void a_deleted_tenant_leaves_nothing(void **state)
{
    const struct place *p = *state;
    char key[80];
    struct answer a;
    unsigned objects = harness_count_files(&p->h, "objects");

    harness_expect(admin(p, "POST", "/v1/admin/tenants", "{\"name\":\"gone\"}"), 201, "gone");
    make_key(p, "{\"tenant\":\"gone\"}", key, NULL);
    a = ask_as(p, key, "", "POST", "/v1/executions", "{\"skill\":\"skill-alpha\"}");
    harness_expect(a, 404, "not_found");
    a = harness_request(&p->h, "POST", "/v1/files?name=a",
                        "X-Tenant-ID: gone\r\nContent-Type: " RAW "\r\n", "gone", 4);
    harness_expect(a, 201, "file_");
    assert_int_equal(harness_count_files(&p->h, "objects"), objects + 1);
    harness_expect(admin(p, "DELETE", "/v1/admin/tenants/first", ""), 409, "wait or run");
    harness_expect(admin(p, "DELETE", "/v1/admin/tenants/gone", ""), 204, "");
    assert_int_equal(harness_count_files(&p->h, "objects"), objects);
    harness_expect(ask_as(p, key, "", "GET", "/v1/skills", ""), 401, "unauthorized");
    harness_expect(admin(p, "GET", "/v1/admin/tenants/gone", ""), 404, "not_found");
}

static void expect_status(const struct place *p, const char *headers, const char *path,
                          const char *part)
{
    for (int i = 0; i < 1500; i++) {
        struct answer a = harness_request(&p->h, "GET", path, headers, NULL, 0);
        bool there = strstr(a.body, part);

        assert_int_equal(a.status, 200);
        answer_finish(&a);
        if (there)
            return;
        usleep(20000);
    }
    fail_msg("%s never has %s", path, part);
}

/* It is let in no more; what it began goes on, and is there when it is enabled again. */
static void a_disabled_tenant_ends_what_it_began(void **state)
{
    const struct place *p = *state;
    const char *headers = "X-Tenant-ID: paused\r\n";
    char key[80], id[64], path[128], auth[160];
    struct answer a;

    harness_expect(admin(p, "POST", "/v1/admin/tenants", "{\"name\":\"paused\"}"), 201,
                   "paused");
    make_key(p, "{\"tenant\":\"paused\"}", key, NULL);
    bearer(key, auth);
    harness_expect(ask(p, auth, "POST", "/v1/skills", RAW, p->skill, p->skill_len), 201,
                   "another");
    a = ask_as(p, key, "", "POST", "/v1/executions",
               "{\"skill\":\"another\",\"env\":{\"FAKE\":\"ticks\"},\"async\":true}");
    take(&a, "execution_id", id, sizeof(id));
    answer_finish(&a);
    snprintf(path, sizeof(path), "/v1/executions/%s", id);
    harness_expect(admin(p, "PATCH", "/v1/admin/tenants/paused", "{\"disabled\":true}"), 200,
                   "true");
    harness_expect(ask_as(p, key, "", "GET", path, ""), 401, "unauthorized");
    expect_status(p, headers, path, "\"status\":\"running\"");
    harness_expect(harness_request(&p->h, "DELETE", path, headers, NULL, 0), 202, "cancelling");
    expect_status(p, headers, path, "\"status\":\"cancelled\"");
    harness_expect(admin(p, "PATCH", "/v1/admin/tenants/paused", "{\"disabled\":false}"), 200,
                   "false");
    harness_expect(ask_as(p, key, "", "GET", path, ""), 200, "cancelled");
    harness_expect(ask_as(p, key, "", "GET", "/v1/skills", ""), 200, "another");
    harness_expect(admin(p, "DELETE", "/v1/admin/tenants/paused", ""), 204, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_tenants_get_nothing),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(bodies_name_only_their_own),
        cmocka_unit_test(links_open_one_execution),
        cmocka_unit_test(the_operator_names_a_tenant),
        cmocka_unit_test(a_disabled_tenant_ends_what_it_began),
        cmocka_unit_test(a_deleted_tenant_leaves_nothing),
        cmocka_unit_test(the_audit_tells_it),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
