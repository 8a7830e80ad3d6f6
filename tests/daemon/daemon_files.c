/* SPDX-License-Identifier: Apache-2.0 */
/* Input files: uploaded, listed, read, given to an execution, removed; artifacts as objects. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/fd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect  harness_expect
#define UNKNOWN "file_00000000000000000000000000000000"
#define RAW     "Content-Type: text/csv; charset=utf-8\r\n"
/* SHA-256 of "alpha". */
#define ALPHA_DIGEST "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"

struct uploaded {
    char id[38];
    char digest[65];
};

static struct uploaded upload(const struct harness *h, const char *name, const void *content,
                              size_t len)
{
    char path[600];
    struct uploaded file = {0};
    struct answer a;

    snprintf(path, sizeof(path), "/v1/files%s%s", name ? "?name=" : "", name ? name : "");
    a = harness_request(h, "POST", path, RAW, content, len);
    if (a.status != 201)
        fail_msg("got %d %s", a.status, a.body);
    answer_text(&a, "id", file.id, sizeof(file.id));
    answer_text(&a, "digest", file.digest, sizeof(file.digest));
    answer_finish(&a);
    return file;
}

static struct answer get(const struct harness *h, const char *id, const char *rest)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/files/%s%s", id, rest);
    return harness_get(h, path);
}

static void remove_file(const struct harness *h, const char *id, int status)
{
    char path[128];
    struct answer a;

    snprintf(path, sizeof(path), "/v1/files/%s", id);
    a = harness_request(h, "DELETE", path, "", NULL, 0);
    assert_int_equal(a.status, status);
    answer_finish(&a);
}

static void uploads_are_kept(void **state)
{
    unsigned objects = harness_count_files(*state, "objects");
    struct answer a =
        harness_request(*state, "POST", "/v1/files?name=%C3%A4%20b.csv", RAW, "alpha", 5);
    struct uploaded same;

    assert_int_equal(a.status, 201);
    assert_non_null(strstr(a.headers, "Location: /v1/files/file_"));
    assert_true(answer_has(&a, "\"name\":\"\xc3\xa4 b.csv\",\"size_bytes\":5,"
                               "\"digest\":\"" ALPHA_DIGEST
                               "\",\"content_type\":\"text/csv\",\"tenant_id\":\"default\","
                               "\"version\":1"));
    assert_true(answer_has(&a, "\"created_at\":\"20"));
    assert_true(answer_has(&a, "\"expires_at\":\"20"));
    answer_finish(&a);
    same = upload(*state, NULL, "alpha", 5);
    assert_string_equal(same.digest, ALPHA_DIGEST);
    /* One object, two files. */
    assert_int_equal(harness_count_files(*state, "objects"), objects + 1);
    expect(get(*state, same.id, ""), 200, "\"name\":\"file\"");
    a = get(*state, same.id, "/download");
    assert_int_equal(a.status, 200);
    assert_int_equal(a.len, 5);
    assert_string_equal(a.body, "alpha");
    assert_non_null(strstr(a.headers, "Content-Type: application/octet-stream"));
    assert_non_null(strstr(a.headers, "Content-Disposition: attachment"));
    answer_finish(&a);
    expect(harness_get(*state, "/v1/files"), 200, "[{\"id\":\"file_");
    expect(harness_get(*state, "/v1/files?limit=1&offset=1"), 200, "\xc3\xa4 b.csv");
    expect(harness_get(*state, "/v1/files?limit=1&offset=99"), 200, "[]\n");
    expect(harness_get(*state, "/v1/files?session_id=s1"), 200, "[]\n");
    expect(harness_get(*state, "/v1/files?execution_id=e1&limit=5"), 200, "[]\n");
    expect(harness_get(*state, "/v1/files?session_id=&limit=1&offset=1"), 200,
           "\xc3\xa4 b.csv");
    remove_file(*state, same.id, 204);
    remove_file(*state, same.id, 404);
    expect(get(*state, same.id, ""), 404, "not_found");
    expect(get(*state, same.id, "/download"), 404, "not_found");
    assert_int_equal(harness_count_files(*state, "objects"), objects + 1);
    a = harness_get(*state, "/v1/files");
    answer_text(&a, "id", same.id, sizeof(same.id));
    answer_finish(&a);
    remove_file(*state, same.id, 204);
    assert_int_equal(harness_count_files(*state, "objects"), objects);
    expect(harness_get(*state, "/v1/files"), 200, "[]\n");
}

static void forms_are_taken(void **state)
{
    static const char type[] = "Content-Type: multipart/form-data; boundary=XX\r\n";
    static const char form[] = "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
                               "filename=\"in.json\"\r\nContent-Type: application/json\r\n\r\n"
                               "{}\r\n--XX--\r\n";
    static const char empty[] = "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
                                "filename=\"e\"\r\n\r\n\r\n--XX--\r\n";
    static const char path[] = "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
                               "filename=\"../in.json\"\r\n\r\n{}\r\n--XX--\r\n";
    static const char other[] = "--XX\r\nContent-Disposition: form-data; name=\"fill\"\r\n\r\n"
                                "{}\r\n--XX--\r\n";

    expect(harness_request(*state, "POST", "/v1/files", type, form, strlen(form)), 201,
           "\"name\":\"in.json\",\"size_bytes\":2,");
    expect(harness_request(*state, "POST", "/v1/files", type, form, strlen(form)), 201,
           "\"content_type\":\"application/json\"");
    expect(harness_request(*state, "POST", "/v1/files?name=x", type, form, strlen(form)), 201,
           "\"name\":\"x\"");
    expect(harness_request(*state, "POST", "/v1/files", type, empty, strlen(empty)), 201,
           "\"size_bytes\":0,");
    expect(harness_request(*state, "POST", "/v1/files", type, path, strlen(path)), 400,
           "bad_request");
    expect(harness_request(*state, "POST", "/v1/files", type, other, strlen(other)), 400,
           "bad_request");
    expect(harness_request(*state, "POST", "/v1/files", type, "--XX--\r\n", 8), 400,
           "bad_request");
}

static void names_are_checked(void **state)
{
    static const char *const bad[] = {"..",    ".",   "a%2Fb",       "%2Fetc%2Fpasswd",
                                      "a%0Ab", "%FF", "..%2F..%2Fx", "a%5Cb"};
    char path[700] = "/v1/files?name=";
    struct answer a;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[64];

        snprintf(text, sizeof(text), "/v1/files?name=%s", bad[i]);
        expect(harness_request(*state, "POST", text, RAW, "x", 1), 400, "bad_request");
    }
    memset(path + 15, 'x', 256);
    expect(harness_request(*state, "POST", path, RAW, "x", 1), 400, "of up to 255 bytes");
    path[15 + 255] = '\0';
    a = harness_request(*state, "POST", path, RAW, "x", 1);
    assert_int_equal(a.status, 201);
    answer_finish(&a);
    expect(harness_get(*state, "/v1/files?limit=0"), 400, "limit must be");
    expect(harness_get(*state, "/v1/files?offset=-1"), 400, "offset must be");
    expect(get(*state, UNKNOWN, ""), 404, "there is no file " UNKNOWN);
    expect(get(*state, "file_1", ""), 404, "not_found");
    expect(get(*state, "exec_00000000000000000000000000000000", "/download"), 404, "not_found");
    remove_file(*state, UNKNOWN, 404);
}

/* What is sent is read back, and is never in the daemon's memory as a whole. */
static void large_files_are_streamed(void **state)
{
    struct harness *h = *state;
    size_t len = 40u << 20;
    char *content = malloc(len), command[128];
    struct uploaded file;
    struct answer a;
    long before, after;
    FILE *f;

    assert_non_null(content);
    for (size_t i = 0; i < len; i++)
        content[i] = (char)(i * 2654435761u >> 24);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof(command), "awk '/VmHWM/ {print $2}' /proc/%d/status", h->pid);
        f = popen(command, "re");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%ld", i ? &after : &before), 1);
        pclose(f);
        if (i == 0)
            file = upload(h, "large", content, len);
    }
    assert_true(after - before < 8192);
    a = get(h, file.id, "/download");
    assert_int_equal(a.status, 200);
    assert_int_equal(a.len, len);
    assert_memory_equal(a.body, content, len);
    answer_finish(&a);
    free(content);
    remove_file(h, file.id, 204);
}

static void too_large_is_413(void **state)
{
    _cleanup_fd_ int fd = harness_connect(*state);
    static const char head[] = "POST /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                               "Expect: 100-continue\r\nContent-Length: 104857601\r\n\r\n";

    assert_int_equal(fd_write_full(fd, head, strlen(head)), 0);
    expect(harness_read_answer(fd), 413, "larger than 100 MiB");
}

static void files_reach_the_guest(void **state)
{
    struct uploaded a = upload(*state, "a.txt", "alpha", 5);
    struct uploaded b = upload(*state, "b.csv", "1,2\n3,4\n", 8);
    struct uploaded c = upload(*state, "empty", "", 0);
    char json[512];

    snprintf(json, sizeof(json),
             "{\"skill\":\"demo\",\"files\":[\"%s\",{\"id\":\"%s\",\"path\":\"data/in.csv\"},"
             "{\"id\":\"%s\",\"path\":\"again.csv\"},\"%s\"]}",
             a.id, b.id, b.id, c.id);
    expect(harness_run(*state, json), 200,
           "\"files_in\":{\"a.txt\":[5,3504355690,\"alpha\"],"
           "\"data/in.csv\":[8,2943128391,\"1,2.3,4.\"],"
           "\"again.csv\":[8,2943128391,\"1,2.3,4.\"],\"empty\":[0,0,\"\"]}");
    snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"input_files\":[\"%s\"]}", a.id);
    expect(harness_run(*state, json), 200, "\"files_in\":{\"a.txt\":[5,3504355690,\"alpha\"]}");
    expect(harness_run(*state, "{\"skill\":\"demo\",\"files\":[]}"), 200, "\"files_in\":{},");
}

/* As many as there may be: no descriptor of the daemon's for each, and no link left behind. */
static void many_files_reach_the_guest(void **state)
{
    struct harness *h = *state;
    struct uploaded a = upload(h, "a.txt", "alpha", 5);
    struct buf body = buf_init(4u << 20);
    unsigned fds = harness_count_fds(h);

    for (unsigned n = 10000; n <= 10001; n++) {
        buf_clear(&body);
        (void)buf_printf(&body, "{\"skill\":\"demo\",\"files\":[");
        for (unsigned i = 0; i < n; i++)
            (void)buf_printf(&body, "%s{\"id\":\"%s\",\"path\":\"%u/%u\"}", i ? "," : "", a.id,
                             i / 100, i % 100);
        (void)buf_printf(&body, "]}");
        assert_int_equal(body.error, 0);
        expect(harness_request(h, "POST", "/v1/executions", "", body.data, body.len),
               n > 10000 ? 413 : 200, n > 10000 ? "more than 10000" : "\"99/99\":[5,");
    }
    assert_true(harness_count_fds(h) <= fds + 8);
    harness_assert_clean(h);
    buf_finish(&body);
}

static void wrong_files_are_refused(void **state)
{
    struct uploaded a = upload(*state, "a.txt", "alpha", 5);
    char json[512];

    expect(harness_run(*state, "{\"skill\":\"demo\",\"files\":[\"" UNKNOWN "\"]}"), 400,
           "there is no file " UNKNOWN);
    expect(harness_run(*state, "{\"skill\":\"demo\",\"files\":[\"a.txt\"]}"), 400,
           "there is no file a.txt");
    snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"files\":[\"%s\",\"%s\"]}", a.id, a.id);
    expect(harness_run(*state, json), 400, "two files would have the path");
    snprintf(json, sizeof(json),
             "{\"skill\":\"demo\",\"files\":[\"%s\",{\"id\":\"%s\",\"path\":\"a.txt/b\"}]}",
             a.id, a.id);
    expect(harness_run(*state, json), 400, "cannot both be files");
    remove_file(*state, a.id, 204);
    snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"files\":[\"%s\"]}", a.id);
    expect(harness_run(*state, json), 400, a.id);
}

/* Two of 60 MiB are more than an execution may have; one is not. */
static void files_are_bounded_together(void **state)
{
    size_t len = 60u << 20;
    char *content = calloc(1, len), json[512];
    struct uploaded a;

    assert_non_null(content);
    a = upload(*state, "a", content, len);
    free(content);
    snprintf(json, sizeof(json),
             "{\"skill\":\"demo\",\"files\":[\"%s\",{\"id\":\"%s\",\"path\":\"b\"}]}", a.id,
             a.id);
    expect(harness_run(*state, json), 413, "larger than 100 MiB together");
    snprintf(json, sizeof(json), "{\"skill\":\"demo\",\"files\":[\"%s\"]}", a.id);
    expect(harness_run(*state, json), 200, "\"files_in\":{\"a\":[62914560,");
    remove_file(*state, a.id, 204);
}

/* An execution that waits has its files, whatever happens to their names. */
static void what_waits_has_its_files(void **state)
{
    struct uploaded a = upload(*state, "a.txt", "alpha", 5);
    char json[256], path[128];
    struct answer accepted;

    for (int i = 0; i < 3; i++) {
        snprintf(json, sizeof(json),
                 "{\"skill\":\"demo\",\"async\":true,\"files\":[\"%s\"],"
                 "\"env\":{\"FAKE\":\"%s\"}}",
                 a.id, i < 2 ? "ticks" : "");
        accepted = harness_run(*state, json);
        assert_int_equal(accepted.status, 202);
        answer_execution_path(&accepted, path, sizeof(path));
        answer_finish(&accepted);
        if (i < 2)
            harness_wait_executions(*state, "running", (unsigned)i + 1);
    }
    remove_file(*state, a.id, 204);
    accepted = harness_get(*state, "/v1/executions?status=running");
    for (const char *at = accepted.body; (at = strstr(at, "exec_")); at += 37) {
        char cancel[128];

        snprintf(cancel, sizeof(cancel), "/v1/executions/%.37s", at);
        expect(harness_request(*state, "DELETE", cancel, "", NULL, 0), 202, "cancelling");
    }
    answer_finish(&accepted);
    for (int i = 0; i < 1500; i++) {
        struct answer ended = harness_get(*state, path);
        bool done = answer_has(&ended, "\"status\":\"success\"");

        if (done)
            assert_true(answer_has(&ended, "\"a.txt\":[5,3504355690,\"alpha\"]"));
        answer_finish(&ended);
        if (done)
            return;
        usleep(20000);
    }
    fail_msg("it did not end");
}

static void equal_artifacts_share_an_object(void **state)
{
    unsigned objects = harness_count_files(*state, "objects");
    char path[3][96];

    for (int i = 0; i < 3; i++) {
        struct answer a =
            harness_run(*state, "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"files\"}}");

        assert_int_equal(a.status, 200);
        snprintf(path[i], sizeof(path[i]), "/v1/executions/%.37s/files",
                 strstr(a.body, "exec_"));
        answer_finish(&a);
        assert_int_equal(harness_count_files(*state, "objects"), objects + 1);
    }
    for (int i = 0; i < 3; i++) {
        char one[160];
        struct answer a = harness_get(*state, path[i]);

        assert_int_equal(a.status, 200);
        assert_true(a.len > 50);
        answer_finish(&a);
        snprintf(one, sizeof(one), "%.90s/sub/b.txt", path[i]);
        expect(harness_get(*state, one), 200, "beta");
    }
    assert_int_equal(harness_count_files(*state, "objects"), objects + 1);
}

static void limit_storage(const struct harness *h, unsigned long long bytes)
{
    char json[128];
    struct answer a;

    snprintf(json, sizeof(json), "{\"limits\":{\"storage_bytes\":%llu}}", bytes);
    a = harness_request(h, "PATCH", "/v1/admin/tenants/default",
                        "Content-Type: application/json\r\n", json, strlen(json));
    assert_int_equal(a.status, 200);
    answer_finish(&a);
}

/* Over its storage a tenant can neither upload nor push anything new. */
static void storage_is_limited(void **state)
{
    char content[1000] = "";

    limit_storage(*state, 1);
    expect(harness_request(*state, "POST", "/v1/files", RAW, content, sizeof(content)), 413,
           "{\"error\":\"quota_exceeded\",\"message\":\"storage_bytes: ");
    assert_int_equal(harness_push(*state, "other", "1", "print(1)"), 413);
    /* What is there already takes nothing more. */
    assert_int_equal(harness_push(*state, "demo", "1.0", "print(1)"), 201);
    expect(harness_run(*state, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    harness_assert_clean(*state);
    limit_storage(*state, 0);
    assert_int_equal(harness_push(*state, "other", "1", "print(1)"), 201);
    expect(harness_request(*state, "POST", "/v1/files", RAW, content, sizeof(content)), 201,
           "\"size_bytes\":1000,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uploads_are_kept),
        cmocka_unit_test(forms_are_taken),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(large_files_are_streamed),
        cmocka_unit_test(too_large_is_413),
        cmocka_unit_test(files_reach_the_guest),
        cmocka_unit_test(many_files_reach_the_guest),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(files_are_bounded_together),
        cmocka_unit_test(what_waits_has_its_files),
        cmocka_unit_test(equal_artifacts_share_an_object),
        cmocka_unit_test(storage_is_limited),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
