/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints of the registry: list, show, delete, validate. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect
#define TYPE   "Content-Type: application/octet-stream\r\n"

/* One that knows no skill yet. */
static int start(void **state)
{
    struct harness *h = calloc(1, sizeof(*h));

    *state = h;
    harness_init(h, "boot", "restore");
    harness_start(h, NULL);
    harness_wait_ready(h);
    return 0;
}

static struct answer request(const struct harness *h, const char *method, const char *path)
{
    return harness_request(h, method, path, "", NULL, 0);
}

static void lists_skills(void **state)
{
    struct answer a = harness_get(*state, "/v1/skills");
    const char *first, *second;

    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "[]\n");
    assert_non_null(strstr(a.headers, "application/json"));
    answer_finish(&a);
    assert_int_equal(harness_push(*state, "list", "1.0", "print(1)"), 201);
    assert_int_equal(harness_push(*state, "list", "0.9", "print(2)"), 201);
    assert_int_equal(harness_push(*state, "after", "1", "print(2)"), 201);
    a = harness_get(*state, "/v1/skills");
    assert_int_equal(a.status, 200);
    assert_int_equal(strncmp(a.body, "[{\"name\":\"after\",\"version\":\"1\"", 30), 0);
    /* The one registered last comes first. */
    first = strstr(a.body, "{\"name\":\"list\",\"version\":\"0.9\",\"description\":"
                           "\"A skill of a test.\",\"digest\":\"");
    second = strstr(a.body, "{\"name\":\"list\",\"version\":\"1.0\"");
    assert_true(first && second && first < second);
    assert_true(answer_has(&a, "\"created_at\":\"20"));
    answer_finish(&a);
}

static void shows_a_skill(void **state)
{
    struct answer a;

    assert_int_equal(harness_push(*state, "show", "1.0", "print(1)"), 201);
    assert_int_equal(harness_push(*state, "show", "1.1", "print(11)"), 201);
    a = harness_get(*state, "/v1/skills/show/1.0");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"instructions\":\"Body.\",\"content\":\"Body.\"}"));
    assert_true(answer_has(&a, "\"files\":[{\"path\":\"SKILL.md\",\"size_bytes\":"));
    assert_true(answer_has(&a, "\"path\":\"main.py\",\"size_bytes\":8"));
    assert_true(answer_has(&a, "\"license\":null"));
    assert_true(answer_has(&a, "\"resources\":{},\"metadata\":{}"));
    answer_finish(&a);
    expect(harness_get(*state, "/v1/skills/show/latest"), 200, "\"version\":\"1.1\"");
    expect(harness_get(*state, "/v1/skills/show/9"), 404, "has no version 9");
    expect(harness_get(*state, "/v1/skills/nobody/latest"), 404, "no skill named nobody");
    expect(harness_get(*state, "/v1/skills/.hidden/1"), 400, "bad_request");
    expect(harness_get(*state, "/v1/skills/show"), 404, "not_found");
    expect(harness_get(*state, "/v1/skills/show/"), 404, "not_found");
    expect(request(*state, "PUT", "/v1/skills/show/1.0"), 405, "method_not_allowed");
}

static void shows_all_of_the_front_matter(void **state)
{
    static const char head[] =
        "full\nlicense: MIT\ntimeout: 90s\nlang: python\n"
        "allowed-tools: Read\nresources:\n  memory: 64Mi\n  cpu: \"0.5\"\n"
        "metadata:\n  author: me";
    size_t len;
    char *tar = harness_skill(head, "2", "print(1)", &len);
    struct answer a;

    expect(harness_request(*state, "POST", "/v1/skills", TYPE, tar, len), 201, "\"full\"");
    free(tar);
    a = harness_get(*state, "/v1/skills/full/2");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"license\":\"MIT\""));
    assert_true(answer_has(&a, "\"allowed_tools\":\"Read\",\"lang\":\"python\""));
    assert_true(answer_has(&a, "\"timeout\":\"90s\","
                               "\"resources\":{\"memory\":\"64Mi\",\"cpu\":\"0.5\"},"
                               "\"metadata\":{\"author\":\"me\"}"));
    answer_finish(&a);
}

static void deletes_skills(void **state)
{
    struct harness *h = *state;
    unsigned objects = harness_count_files(h, "objects");
    struct answer a;

    assert_int_equal(harness_push(h, "gone", "1", "print('gone')"), 201);
    assert_int_equal(harness_push(h, "gone", "2", "print('gone too')"), 201);
    assert_int_equal(harness_count_files(h, "objects"), objects + 2);
    a = request(h, "DELETE", "/v1/skills/gone/latest");
    assert_int_equal(a.status, 204);
    assert_int_equal(a.len, 0);
    answer_finish(&a);
    assert_int_equal(harness_count_files(h, "objects"), objects + 1);
    expect(harness_get(h, "/v1/skills/gone/2"), 404, "has no version 2");
    expect(request(h, "DELETE", "/v1/skills/gone/2"), 404, "has no version 2");
    expect(request(h, "DELETE", "/v1/skills/gone/1"), 204, "");
    expect(request(h, "DELETE", "/v1/skills/gone/1"), 404, "no skill named gone");
    assert_int_equal(harness_count_files(h, "objects"), objects);
    expect(harness_run(h, "{\"skill\":\"gone\"}"), 404, "not_found");
    /* The name is free again, with other content. */
    assert_int_equal(harness_push(h, "gone", "1", "print('new')"), 201);
    expect(request(h, "DELETE", "/v1/skills/gone/1"), 204, "");
}

static void validates_without_storing(void **state)
{
    struct harness *h = *state;
    unsigned objects = harness_count_files(h, "objects");
    size_t len;
    char *tar = harness_skill("valid", "1.2", "print(1)", &len);

    expect(harness_request(h, "POST", "/v1/skills/validate", TYPE, tar, len), 200,
           "{\"valid\":true,\"name\":\"valid\",\"version\":\"1.2\",\"skill_name\":\"valid\","
           "\"skill_version\":\"1.2\",\"description\":\"A skill of a test.\",\"digest\":\"");
    expect(harness_request(h, "POST", "/v1/skills/validate", TYPE, tar, len), 200,
           "\"warnings\":[],\"errors\":[]}");
    expect(harness_get(h, "/v1/skills/valid/latest"), 404, "not_found");
    assert_int_equal(harness_count_files(h, "objects"), objects);
    expect(harness_request(h, "POST", "/v1/skills/validate", TYPE, "junk", 4), 400,
           "invalid_skill");
    expect(harness_request(h, "POST", "/v1/skills/validate", "Content-Type: text/plain\r\n",
                           tar, len),
           415, "unsupported_type");
    free(tar);
    tar = harness_skill("bad/name", "1", "print(1)", &len);
    expect(harness_request(h, "POST", "/v1/skills/validate", TYPE, tar, len), 400,
           "invalid_skill");
    free(tar);
    expect(harness_get(h, "/v1/skills/validate"), 405, "method_not_allowed");
}

/* Deleting a skill takes nothing away from who runs it. */
static void a_running_skill_survives_its_deletion(void **state)
{
    struct harness *h = *state;
    pid_t pid;
    struct answer a;
    const char *const json = "{\"skill\":\"busy\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":1}";
    char head[256];
    int fd;

    assert_int_equal(harness_push(h, "busy", "1", "print('busy')"), 201);
    fd = harness_connect(h);
    snprintf(head, sizeof(head),
             "POST /v1/executions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(json), json);
    assert_int_equal(write(fd, head, strlen(head)), (ssize_t)strlen(head));
    for (int i = 0; i < 250 && (pid = harness_first_child(h)) < 0; i++)
        usleep(20000);
    assert_true(pid > 0);
    expect(request(h, "DELETE", "/v1/skills/busy/1"), 204, "");
    a = harness_read_answer(fd);
    close(fd);
    expect(a, 200, "tick");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_skills),
        cmocka_unit_test(shows_a_skill),
        cmocka_unit_test(shows_all_of_the_front_matter),
        cmocka_unit_test(deletes_skills),
        cmocka_unit_test(validates_without_storing),
        cmocka_unit_test(a_running_skill_survives_its_deletion),
    };

    return cmocka_run_group_tests(tests, start, harness_teardown);
}
