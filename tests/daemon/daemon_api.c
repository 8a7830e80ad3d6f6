/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP interface of a real skillvmd, with the fake VMM behind it. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define expect harness_expect

static void answers_health(void **state)
{
    expect(harness_get(*state, "/health"), 200, "{\"status\":\"ok\"}");
    expect(harness_get(*state, "/ready"), 200, "\"status\":\"ready\"");
    expect(harness_get(*state, "/ready"), 200, "\"snapshot\":\"ok\"");
}

static void refuses_unknown_paths_and_methods(void **state)
{
    struct answer a;

    expect(harness_get(*state, "/"), 404, "\"error\":\"not_found\"");
    expect(harness_get(*state, "/v1/executions/"), 404, "not_found");
    expect(harness_get(*state, "/v1/executions/a/b/c"), 404, "not_found");
    expect(harness_get(*state, "/v1/executions/x"), 404, "no execution x");
    expect(harness_get(*state, "/v1/executions/..%2f..%2fetc/files"), 404, "not_found");
    expect(harness_get(*state, "/v1/executions/exec_0123456789abcdef0123456789abcdef"), 404,
           "there is no execution");
    expect(harness_get(*state, "/v1/executions/exec_0123456789abcdef0123456789abcdef/files"),
           404, "there is no execution");
    a = harness_request(*state, "DELETE", "/v1/skills", "", NULL, 0);
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(a.headers, "Allow: POST"));
    answer_finish(&a);
}

/* A key that nobody knows is refused wherever it comes from, before the body is looked at. */
static void refuses_unknown_keys(void **state)
{
    static const char *const values[] = {"Bearer sk-unknown", "bearer x", "Basic eDp5",
                                         "Bearer", "Bearer a\r\nAuthorization: Bearer b"};
    char headers[128];
    struct answer a;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(headers, sizeof(headers), "Authorization: %s\r\n", values[i]);
        a = harness_request(*state, "POST", "/v1/skills", headers, "x", 1);
        assert_int_equal(a.status, 401);
        assert_non_null(strstr(a.headers, "WWW-Authenticate: Bearer"));
        assert_true(answer_has(&a, "\"error\":\"unauthorized\""));
        answer_finish(&a);
        expect(harness_request(*state, "GET", "/metrics", headers, NULL, 0), 401, "");
        expect(harness_request(*state, "GET", "/health", headers, NULL, 0), 200, "ok");
        expect(harness_request(*state, "GET", "/ready", headers, NULL, 0), 200, "ready");
    }
}

static void registers_skills_once(void **state)
{
    size_t len;
    char *tar = harness_skill("again", "2.0", "print(2)", &len);
    const char *type = "Content-Type: application/octet-stream\r\n";
    unsigned objects;

    expect(harness_request(*state, "POST", "/v1/skills", type, tar, len), 201,
           "\"name\":\"again\",\"version\":\"2.0\"");
    expect(harness_request(*state, "POST", "/v1/skills", type, tar, len), 201, "\"digest\":\"");
    free(tar);
    tar = harness_skill("again", "2.0", "print(3)", &len);
    objects = harness_count_files(*state, "objects");
    expect(harness_request(*state, "POST", "/v1/skills", type, tar, len), 409, "conflict");
    assert_int_equal(harness_count_files(*state, "objects"), objects);
    expect(
        harness_request(*state, "POST", "/v1/skills", "Content-Type: text/plain\r\n", tar, len),
        415, "unsupported_type");
    expect(harness_request(*state, "POST", "/v1/skills", "", tar, len), 415, "Content-Type");
    free(tar);
}

/* Sends a chunked body that never declared its size. */
static void refuses_large_chunked_bodies(void **state)
{
    static const char head[] =
        "POST /v1/executions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        "Transfer-Encoding: chunked\r\n\r\n";
    _cleanup_fd_ int fd = harness_connect(*state);
    char chunk[65536 + 8];
    struct answer a;

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, head, strlen(head)), 0);
    memcpy(chunk, "10000\r\n", 7);
    memset(chunk + 7, ' ', 65536);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(fd_write_full(fd, chunk, 65536 + 7), 0);
        assert_int_equal(fd_write_full(fd, "\r\n", 2), 0);
    }
    assert_int_equal(fd_write_full(fd, "0\r\n\r\n", 5), 0);
    a = harness_read_answer(fd);
    expect(a, 413, "too_large");
}

static void refuses_bad_requests(void **state)
{
    expect(harness_run(*state, "{\"skill\":\"demo\",\"input\":{x}}"), 400,
           "not JSON: line 1, column");
    expect(harness_run(*state, "{\"skill\":\"nobody\"}"), 404, "no skill named nobody");
    expect(harness_run(*state, "{\"skill\":\"../demo\"}"), 400, "no valid skill name");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"script\":\"gone.py\"}"), 400,
           "bad_request");
}

static void a_missing_version_is_a_failed_execution(void **state)
{
    struct answer a = harness_run(*state, "{\"skill\":\"demo\",\"version\":\"9\"}");
    char path[64];

    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"status\":\"failed\""));
    assert_true(answer_has(&a, "\"error\":\"skill demo has no version 9\""));
    answer_execution_path(&a, path, sizeof(path));
    expect(harness_get(*state, path), 200, "has no version 9");
    answer_finish(&a);
    expect(harness_run(*state, "{\"skill\":\"nobody\",\"version\":\"9\"}"), 200,
           "there is no skill named nobody");
}

/* What the guest is told, byte for byte. */
static void tells_the_guest_everything(void **state)
{
    struct answer a = harness_run(
        *state, "{\"skill\":\"demo\",\"input\":{\"n\":9007199254740993, \"x\":\"\xc3\xa4\"},"
                "\"env\":{\"A\":\"b c\"},\"args\":[\"-v\",\"\"],\"timeout\":\"2s\","
                "\"limits\":{\"memory\":\"2Gi\",\"pids\":5}}");

    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"status\":\"success\",\"output\":{\"run\":{"));
    assert_true(answer_has(&a, "\"input\":{\"n\":9007199254740993,\"x\":\"\xc3\xa4\"}"));
    /* A field's tag, and where it lies. */
    assert_true(answer_has(
        &a, "\"run\":{\"1.0\":\"python\",\"2.14\":0,\"3.23\":\"main.py\",\"4.40\":\"-v\","
            "\"4.52\":\"\",\"5.62\":\"A=b c\",\"6.77\":2000,\"7.89\":1073741824,\"8.107\":5,"
            "\"9.117\":1048576,\"10.133\":10000,\"11.148\":104857600,\"12.167\":4194304,"
            "\"13.184\":\"Body.\",\"14.201\":\"demo\"}"));
    /* SKILL.md, main.py and the end of the canonical tar. */
    assert_true(answer_number(&a, "skill_bytes") >= 3072);
    assert_true(answer_has(&a, "\"warnings\":[\"the memory limit was cut to 1024 MiB\"]"));
    assert_true(answer_has(&a, "\"error\":null,\"exit_code\":0,\"signal\":null"));
    assert_true(answer_has(&a, "\"peak_memory_bytes\":7340032,\"host_cpu_ms\":"));
    assert_true(answer_has(&a, "\"phases_ms\":{\"queue\":"));
    assert_true(answer_has(&a, "\"files_url\":null,\"files_list\":[]"));
    answer_finish(&a);
    expect(harness_run(*state, "{\"skill\":\"demo\"}"), 200, "\"input\":{}}");
}

/* As clients of other runners have it, which send every field and think little of names. */
static void takes_what_others_send(void **state)
{
    struct answer a;

    expect(harness_run(*state, "{\"skill\":\"demo\",\"version\":\"\",\"entrypoint\":\"\","
                               "\"input\":null}"),
           200, "\"input\":{}}");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"entrypoint\":\"none.py\"}"), 400,
           "entry_point \\\"none.py\\\" is not in the skill");
    a = harness_run(*state, "{\"skill\":\"demo\",\"entrypoint\":\"main.py\",\"env\":{"
                            "\"PYTHONUNBUFFERED\":\"1\",\"PATH\":\"/evil\"}}");
    assert_int_equal(a.status, 200);
    assert_true(answer_has(
        &a, "\"warnings\":[\"the environment variable PATH is reserved: it was left out\"]"));
    assert_non_null(strstr(a.body, ":\"PYTHONUNBUFFERED=1\""));
    assert_null(strstr(a.body, "/evil"));
    answer_finish(&a);
}

static void passes_a_large_input(void **state)
{
    struct buf body = buf_init(20u << 20);
    struct answer a;

    assert_int_equal(buf_printf(&body, "{\"skill\":\"demo\",\"input\":\""), 0);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(buf_printf(&body, "%01000d", i), 0);
    assert_int_equal(buf_printf(&body, "\"}"), 0);
    a = harness_request(*state, "POST", "/v1/executions", "", body.data, body.len);
    assert_int_equal(a.status, 200);
    assert_true(a.len > 3000000);
    assert_non_null(strstr(a.body, "00002999\"}"));
    answer_finish(&a);
    buf_finish(&body);
}

#define FAKE(mode) "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"" mode "\"}}"
#define FAKE2(mode, data)                                                                      \
    "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"" mode "\",\"FAKE_DATA\":\"" data "\"}}"

static void reports_how_it_ended(void **state)
{
    expect(harness_run(*state, FAKE2("exit", "42")), 200,
           "\"error\":\"the skill exited with code 42\",\"exit_code\":42,\"signal\":null,"
           "\"stdout\":\"out\\n\",\"stderr\":\"err\\n\"");
    expect(harness_run(*state, FAKE2("exit", "0")), 200, "\"logs\":\"out\\nerr\\n\"");
    expect(harness_run(*state, FAKE2("signal", "9")), 200,
           "\"error\":\"killed by signal 9 (SIGKILL)\",\"exit_code\":null,\"signal\":9");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"timeout\":2.5,"
                               "\"env\":{\"FAKE\":\"timeout\"}}"),
           200, "\"error\":\"timed out after 2.5 s\"");
    expect(
        harness_run(*state, "{\"skill\":\"demo\",\"timeout\":2.5,"
                            "\"env\":{\"FAKE\":\"full\"}}"),
        200,
        "\"error\":\"timed out after 2.5 s, its memory full: the limit is 256 MiB, and what it "
        "runs gave way and was read again and again\"");
    expect(harness_run(*state, FAKE("timeout")), 200, "\"status\":\"timeout\"");
    expect(harness_run(*state, FAKE("oom")), 200, "out of memory: the limit is 256 MiB");
    expect(harness_run(*state, FAKE("oom")), 200, "\"warnings\":[]");
}

static void names_limits_that_it_outlived(void **state)
{
    expect(harness_run(*state, FAKE2("limits", "0")), 200,
           "\"warnings\":[\"a process of the skill was ended, out of memory: the limit is 256 "
           "MiB\"]");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"limits\":{\"pids\":9},"
                               "\"env\":{\"FAKE\":\"limits\",\"FAKE_DATA\":\"7\"}}"),
           200, "\"a process or thread could not be started (7 times): the limit is 9\"]");
    expect(harness_run(*state, FAKE2("limits", "1")), 200, "\"status\":\"success\"");
}

static void chooses_the_output(void **state)
{
    expect(harness_run(*state, FAKE2("stdout", " [1, 2]\\n")), 200, "\"output\":[1,2],");
    expect(harness_run(*state, FAKE2("stdout", "{} {}")), 200, "\"output\":null,");
    expect(harness_run(*state, FAKE2("stdout", "hello")), 200, "\"output\":null,");
    expect(harness_run(*state, FAKE2("stdout", "\\\"\\\\udcff\\\"")), 200,
           "\"output\":\"\\ufffd\",");
    expect(harness_run(*state, FAKE("files")), 200, "\"output\":{\"ok\":true},");
}

static void repairs_utf8(void **state)
{
    expect(harness_run(*state, FAKE("utf8")), 200,
           "\"stdout\":\"\xe2\x82\xac\xef\xbf\xbd!\",\"stderr\":\"\xef\xbf\xbd\"");
}

static void cuts_long_logs(void **state)
{
    struct answer a = harness_run(*state, FAKE("flood"));

    assert_int_equal(a.status, 200);
    assert_true(answer_has(&a, "\"truncated\":true"));
    assert_true(answer_has(&a, "\"warnings\":[\"stdout and stderr were cut at 1 MiB\"]"));
    assert_true(a.len < (3u << 20));
    answer_finish(&a);
}

static struct buf form(const char *json, const char *part, const void *data, size_t len)
{
    struct buf b = buf_init(1u << 20);

    if (json)
        buf_printf(&b, "--XX\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n%s\r\n",
                   json);
    if (part) {
        buf_printf(&b,
                   "--XX\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"s.tar\"\r\n"
                   "Content-Type: application/octet-stream\r\n\r\n",
                   part);
        buf_append(&b, data, len);
        buf_append(&b, "\r\n", 2);
    }
    buf_append(&b, "--XX--\r\n", 8);
    return b;
}

static struct answer post_form(const struct harness *h, const char *path, const char *json,
                               const char *part, const void *data, size_t len)
{
    struct buf b = form(json, part, data, len);
    struct answer a = harness_request(
        h, "POST", path, "Content-Type: multipart/form-data; boundary=XX\r\n", b.data, b.len);

    buf_finish(&b);
    return a;
}

static void takes_forms(void **state)
{
    size_t len;
    char *tar = harness_skill("inline", "3.1", "print(3)", &len);
    struct buf named = form(NULL, "name", "inline", 6);

    expect(post_form(*state, "/v1/executions", "{\"input\":{\"k\":1},\"args\":[\"z\"]}",
                     "skill_archive", tar, len),
           200, "\"skill\":{\"name\":\"inline\",\"version\":\"3.1\",\"digest\":\"");
    expect(
        post_form(*state, "/v1/executions", "{\"input\":{\"k\":1}}", "skill_archive", tar, len),
        200, "\"input\":{\"k\":1}}");
    expect(post_form(*state, "/v1/executions", NULL, "skill_archive", tar, len), 200,
           "\"status\":\"success\"");
    /* It ran without being registered. */
    expect(harness_run(*state, "{\"skill\":\"inline\"}"), 404, "not_found");
    expect(post_form(*state, "/v1/executions", "{\"skill\":\"demo\"}", NULL, NULL, 0), 200,
           "\"name\":\"demo\"");
    expect(
        post_form(*state, "/v1/executions", "{\"skill\":\"demo\"}", "skill_archive", tar, len),
        400, "exclude each other");
    expect(post_form(*state, "/v1/executions", "{}", "skill_archive", "junk", 4), 400,
           "invalid_skill");
    expect(post_form(*state, "/v1/executions", "{}", "surprise", "x", 1), 400, "unknown part");
    /* With a key the archive belongs to what the request says. */
    for (int i = 0; i < 2; i++)
        expect(post_form(*state, "/v1/executions", "{\"idempotency_key\":\"form\"}",
                         "skill_archive", tar, len),
               200, "\"name\":\"inline\"");
    expect(post_form(*state, "/v1/executions", "{\"idempotency_key\":\"form\"}",
                     "skill_archive", "other", 5),
           409, "another request began");
    expect(post_form(*state, "/v1/skills", NULL, "file", tar, len), 201, "\"inline\"");
    expect(harness_request(*state, "POST", "/v1/skills",
                           "Content-Type: multipart/form-data; boundary=XX\r\n", named.data,
                           named.len),
           400, "is missing");
    expect(post_form(*state, "/v1/skills", NULL, NULL, NULL, 0), 400, "bad_request");
    expect(harness_request(*state, "POST", "/v1/skills",
                           "Content-Type: multipart/form-data; boundary=XX\r\n", "--XX\r\nbro",
                           9),
           400, "multipart");
    buf_finish(&named);
    free(tar);
}

static void streams_events(void **state)
{
    static const char json[] = FAKE2("exit", "0");
    struct answer a = harness_request(*state, "POST", "/v1/executions",
                                      "Accept: text/event-stream\r\n", json, strlen(json));
    const char *at = a.body;
    static const char *const order[] = {"event: status\ndata: {\"execution_id\":\"exec_",
                                        "\"status\":\"running\"}",
                                        "event: stdout\ndata: {\"data\":\"out\\n\"}\n\n",
                                        "event: stderr\ndata: {\"data\":\"err\\n\"}\n\n",
                                        "event: result\ndata: {\"execution_id\":",
                                        "\"warnings\":[]}\n\n"};

    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.headers, "text/event-stream"));
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        at = strstr(at, order[i]);
        if (!at) {
            fail_msg("%s is missing in %s", order[i], a.body);
            break;
        }
    }
    answer_finish(&a);
}

/* Events arrive while the skill still runs; a reader that goes away stops nothing else. */
static void streams_live(void **state)
{
    static const char body[] =
        "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"ticks\"},\"timeout\":600}";
    _cleanup_fd_ int fd = harness_connect(*state);
    char head[256], path[64];
    char seen[8192] = "";
    size_t len = 0;
    struct answer a;

    assert_true(fd >= 0);
    snprintf(head, sizeof(head),
             "POST /v1/executions HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
             "Content-Length: %zu\r\n\r\n",
             strlen(body));
    assert_int_equal(fd_write_full(fd, head, strlen(head)), 0);
    assert_int_equal(fd_write_full(fd, body, strlen(body)), 0);
    while (!strstr(seen, "tick 2")) {
        ssize_t n = read(fd, seen + len, sizeof(seen) - 1 - len);

        assert_true(n > 0);
        len += (size_t)n;
        seen[len] = '\0';
    }
    assert_null(strstr(seen, "event: result"));
    fd_close(&fd);
    expect(harness_get(*state, "/health"), 200, "ok");
    a = harness_get(*state, "/v1/executions?status=running");
    answer_execution_path(&a, path, sizeof(path));
    answer_finish(&a);
    /* The fake ticks on until somebody ends it. */
    expect(harness_request(*state, "DELETE", path, "", NULL, 0), 202, "cancelling");
    harness_assert_clean(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_health),
        cmocka_unit_test(refuses_unknown_paths_and_methods),
        cmocka_unit_test(refuses_unknown_keys),
        cmocka_unit_test(registers_skills_once),
        cmocka_unit_test(refuses_large_chunked_bodies),
        cmocka_unit_test(refuses_bad_requests),
        cmocka_unit_test(a_missing_version_is_a_failed_execution),
        cmocka_unit_test(tells_the_guest_everything),
        cmocka_unit_test(takes_what_others_send),
        cmocka_unit_test(passes_a_large_input),
        cmocka_unit_test(reports_how_it_ended),
        cmocka_unit_test(names_limits_that_it_outlived),
        cmocka_unit_test(chooses_the_output),
        cmocka_unit_test(repairs_utf8),
        cmocka_unit_test(cuts_long_logs),
        cmocka_unit_test(takes_forms),
        cmocka_unit_test(streams_events),
        cmocka_unit_test(streams_live),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
