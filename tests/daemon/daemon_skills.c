/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints of the registry: list, show, delete, validate. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include <pthread.h>
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
    for (int i = 0; i < 1500 && (pid = harness_first_child(h)) < 0; i++)
        usleep(20000);
    assert_true(pid > 0);
    expect(request(h, "DELETE", "/v1/skills/busy/1"), 204, "");
    a = harness_read_answer(fd);
    close(fd);
    expect(a, 200, "tick");
}

/* Pushes a skill "moving" without a version that prints text. */
static struct answer push_moving(const struct harness *h, const char *text)
{
    const struct harness_file files[] = {
        {"SKILL.md", "---\nname: moving\ndescription: Moves on.\n---\n"},
        {"main.py", text},
        {NULL, NULL},
    };

    return harness_push_files(h, files);
}

/* The digest in an answer, in a buffer of 65 bytes. */
static void take_digest(struct answer a, char *digest)
{
    answer_text(&a, "digest", digest, 65);
    answer_finish(&a);
}

static void what_has_no_version_can_be_pushed_again(void **state)
{
    struct harness *h = *state;
    unsigned objects = harness_count_files(h, "objects");
    char first[65], second[65], text[256];

    take_digest(push_moving(h, "print(1)"), first);
    expect(push_moving(h, "print(1)"), 201, "\"previous\":null");
    snprintf(text, sizeof(text), "\"version\":\"1.0.0\",\"previous\":\"sha256:%s\"", first);
    expect(push_moving(h, "print(2)"), 201, text);
    take_digest(harness_get(h, "/v1/skills/moving/latest"), second);
    assert_string_not_equal(first, second);
    snprintf(text, sizeof(text), "/v1/skills/moving/sha256:%s", first);
    take_digest(harness_get(h, text), second);
    assert_string_equal(first, second);
    snprintf(text, sizeof(text), "{\"skill\":\"moving\",\"version\":\"sha256:%s\"}", first);
    expect(harness_run(h, text), 200, first);
    expect(harness_run(h, "{\"skill\":\"moving\",\"version\":\"1.0.0\"}"), 200, "success");
    assert_int_equal(harness_count_files(h, "objects"), objects + 2);
    /* Back to the first: there are still two contents. */
    expect(push_moving(h, "print(1)"), 201, "\"previous\":\"sha256:");
    assert_int_equal(harness_count_files(h, "objects"), objects + 2);
    expect(request(h, "DELETE", "/v1/skills/moving/latest"), 204, "");
    expect(harness_get(h, "/v1/skills/moving/latest"), 200, "\"version\":\"sha256:");
    expect(request(h, "DELETE", "/v1/skills/moving/latest"), 204, "");
    expect(harness_get(h, "/v1/skills/moving/latest"), 404, "no skill named moving");
    assert_int_equal(harness_count_files(h, "objects"), objects);
    assert_int_equal(harness_push(h, "moving", "sha256:1", "print(1)"), 400);
}

/* Instructions alone are a skill that an agent reads. */
static void what_has_no_script_is_a_skill(void **state)
{
    struct harness *h = *state;
    const struct harness_file files[] = {
        {"skill.md", "\n\n---\nname: told\ndescription: Tells.\n---\nDo it so.\n"},
        {"tips.txt", "first"},
        {NULL, NULL},
    };

    expect(harness_push_files(h, files), 201, "skill.md should be called SKILL.md");
    expect(harness_get(h, "/v1/skills"), 200, "\"name\":\"told\"");
    expect(harness_get(h, "/v1/skills/told/latest"), 200, "\"instructions\":\"Do it so.\"");
    expect(harness_run(h, "{\"skill\":\"told\"}"), 400,
           "the skill has nothing to run: there is no script in it");
    expect(request(h, "DELETE", "/v1/skills/told/latest"), 204, "");
}

static struct answer replace(const struct harness *h, const char *query, const char *script)
{
    size_t len;
    char *tar = harness_skill("kept", "1", script, &len);
    struct answer a;
    char path[64];

    snprintf(path, sizeof(path), "/v1/skills%s", query);
    a = harness_request(h, "POST", path, TYPE, tar, len);
    free(tar);
    return a;
}

static void a_version_can_be_replaced(void **state)
{
    struct harness *h = *state;
    unsigned objects = harness_count_files(h, "objects");
    char id[64];
    struct answer a;

    expect(replace(h, "", "print(1)"), 201, "\"replaced\":null");
    expect(replace(h, "", "print(2)"), 409, "--replace");
    expect(replace(h, "?replace=false", "print(2)"), 409, "conflict");
    expect(replace(h, "?replace=yes", "print(2)"), 400, "true or false");
    expect(replace(h, "?replace=true", "print(2)"), 201, "\"replaced\":\"sha256:");
    assert_int_equal(harness_count_files(h, "objects"), objects + 1);
    expect(replace(h, "?replace=true", "print(2)"), 201, "\"replaced\":null");
    /* Not while somebody has asked for just this. */
    a = harness_run(h, "{\"skill\":\"kept\",\"async\":true,\"env\":{\"FAKE\":\"ticks\"}}");
    assert_int_equal(a.status, 202);
    answer_execution_path(&a, id, sizeof(id));
    answer_finish(&a);
    expect(replace(h, "?replace=true", "print(3)"), 409, "waits or runs");
    assert_int_equal(harness_count_files(h, "objects"), objects + 1);
    expect(request(h, "DELETE", id), 202, "cancel");
    harness_wait_executions(h, "cancelled", 1);
    expect(replace(h, "?replace=true", "print(3)"), 201, "\"replaced\":\"sha256:");
    expect(request(h, "DELETE", "/v1/skills/kept/1"), 204, "");
    assert_int_equal(harness_count_files(h, "objects"), objects);
}

struct looker {
    const struct harness *h;
    const char *path;
    bool stop;    /* atomic */
    unsigned bad; /* answers */
};

static void *look_often(void *arg)
{
    struct looker *l = arg;

    while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
        struct answer a = harness_get(l->h, l->path);

        l->bad += a.status != 200;
        answer_finish(&a);
    }
    return NULL;
}

/* Whoever looks at a skill sees the one or the other, and who deletes it leaves nothing. */
static void a_look_beside_a_replacement(void **state)
{
    enum { LOOKERS = 4, REPLACEMENTS = 100 };
    struct harness *h = *state;
    unsigned objects = harness_count_files(h, "objects");
    struct looker lookers[LOOKERS];
    pthread_t threads[LOOKERS];

    expect(replace(h, "", "print(1)"), 201, "kept");
    for (unsigned i = 0; i < LOOKERS; i++) {
        lookers[i] = (struct looker){
            .h = h, .path = i ? "/v1/skills/kept/1" : "/v1/skills/kept/1/inspect"};
        assert_int_equal(pthread_create(&threads[i], NULL, look_often, &lookers[i]), 0);
    }
    for (unsigned i = 0; i < REPLACEMENTS; i++)
        expect(replace(h, "?replace=true", i % 2 ? "print(1)" : "print(2)"), 201, "kept");
    for (unsigned i = 0; i < LOOKERS; i++) {
        __atomic_store_n(&lookers[i].stop, true, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(lookers[i].bad, 0);
    }
    expect(request(h, "DELETE", "/v1/skills/kept/1"), 204, "");
    assert_int_equal(harness_count_files(h, "objects"), objects);
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
        cmocka_unit_test(what_has_no_version_can_be_pushed_again),
        cmocka_unit_test(a_version_can_be_replaced),
        cmocka_unit_test(a_look_beside_a_replacement),
        cmocka_unit_test(what_has_no_script_is_a_skill),
    };

    return cmocka_run_group_tests(tests, start, harness_teardown);
}
