/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/isolation.h"

#include "tests/unit/cmocka_all.h"

#include "api/daemon/routes/daemon.h"

#include <stdlib.h>
#include <string.h>

/* How far a node of a cluster is, which others move on. */
#define SEEN "Skillvm-Seen:"

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
    {"POST /v1/admin/images/reload", OPERATOR, "/v1/admin/images/reload", NULL, "", 401},
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

/* The headers of an answer that do not change by themselves. */
static void lasting_headers(const struct answer *a, char *ret, size_t size)
{
    size_t used = 0;

    for (const char *line = a->headers; *line;) {
        size_t len = strcspn(line, "\n") + 1;

        if (strncasecmp(line, "Date:", 5) != 0 && strncasecmp(line, SEEN, strlen(SEEN)) != 0 &&
            used + len < size) {
            memcpy(ret + used, line, len);
            used += len;
        }
        line += len;
    }
    ret[used] = '\0';
}

void rename_things(char *text, const struct things *to)
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

void isolation_of_tenants(const struct place *p)
{
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

void isolation_of_strangers(const struct place *p)
{
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
