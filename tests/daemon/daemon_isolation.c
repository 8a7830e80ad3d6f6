/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of one daemon: no route gives one what is another's. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/isolation.h"

#include "base/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t begin_ns;

static int start(void **state)
{
    static struct place p;

    begin_ns = clock_monotonic_ns();
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
    snprintf(path, sizeof(path), "/v1/executions/%s", p->things.live);
    a = ask_as(p, p->first, "", "GET", path, "");
    harness_expect(a, 200, "\"status\":\"running\"");
    a = harness_request(&p->h, "DELETE", path, "X-Tenant-ID: first\r\n", NULL, 0);
    harness_expect(a, 202, "cancelling");
    harness_assert_clean(&p->h);
    assert_int_equal(harness_stop(&p->h, SIGTERM), 0);
    two_tenants_finish(p);
    return 0;
}

static void other_tenants_get_nothing(void **state)
{
    isolation_of_tenants(*state);
}

static void strangers_are_refused(void **state)
{
    isolation_of_strangers(*state);
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
        a = ask_admin(p, "GET", i == 0 ? "/v1/admin/tenants/first" : "/v1/admin/tenants/second",
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
    unsigned rows = 0;

    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"action\":\"tenant.create\""));
    assert_true(answer_has(&a, "\"action\":\"key.create\""));
    assert_true(answer_has(&a, "\"action\":\"key.revoke\""));
    assert_true(answer_has(&a, "\"action\":\"skill.push\""));
    /* Hundreds of refusals, and one row a minute. */
    for (const char *at = a.body; (at = strstr(at, "auth.refused")); at++)
        rows++;
    assert_in_range(rows, 1, 1 + (clock_monotonic_ns() - begin_ns) / (60 * NS_PER_SECOND));
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

    harness_expect(ask_admin(p, "POST", "/v1/admin/tenants", "{\"name\":\"gone\"}"), 201,
                   "gone");
    make_key(p, "{\"tenant\":\"gone\"}", key, NULL);
    a = ask_as(p, key, "", "POST", "/v1/executions", "{\"skill\":\"skill-alpha\"}");
    harness_expect(a, 404, "not_found");
    a = harness_request(&p->h, "POST", "/v1/files?name=a",
                        "X-Tenant-ID: gone\r\nContent-Type: " RAW "\r\n", "gone", 4);
    harness_expect(a, 201, "file_");
    assert_int_equal(harness_count_files(&p->h, "objects"), objects + 1);
    harness_expect(ask_admin(p, "DELETE", "/v1/admin/tenants/first", ""), 409, "wait or run");
    harness_expect(ask_admin(p, "DELETE", "/v1/admin/tenants/gone", ""), 204, "");
    assert_int_equal(harness_count_files(&p->h, "objects"), objects);
    harness_expect(ask_as(p, key, "", "GET", "/v1/skills", ""), 401, "unauthorized");
    harness_expect(ask_admin(p, "GET", "/v1/admin/tenants/gone", ""), 404, "not_found");
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

    harness_expect(ask_admin(p, "POST", "/v1/admin/tenants", "{\"name\":\"paused\"}"), 201,
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
    harness_expect(ask_admin(p, "PATCH", "/v1/admin/tenants/paused", "{\"disabled\":true}"),
                   200, "true");
    harness_expect(ask_as(p, key, "", "GET", path, ""), 401, "unauthorized");
    expect_status(p, headers, path, "\"status\":\"running\"");
    harness_expect(harness_request(&p->h, "DELETE", path, headers, NULL, 0), 202, "cancelling");
    expect_status(p, headers, path, "\"status\":\"cancelled\"");
    harness_expect(ask_admin(p, "PATCH", "/v1/admin/tenants/paused", "{\"disabled\":false}"),
                   200, "false");
    harness_expect(ask_as(p, key, "", "GET", path, ""), 200, "cancelled");
    harness_expect(ask_as(p, key, "", "GET", "/v1/skills", ""), 200, "another");
    harness_expect(ask_admin(p, "DELETE", "/v1/admin/tenants/paused", ""), 204, "");
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
