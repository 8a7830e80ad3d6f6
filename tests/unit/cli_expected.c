/* SPDX-License-Identifier: Apache-2.0 */
/* Where a result is not what a test of a skill expects. */
#include "tests/unit/cmocka_all.h"

#include "api/cli/expected.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char result_text[] =
    "{\"status\":\"success\",\"exit_code\":0,\"error\":null,"
    "\"output\":{\"n\":3,\"x\":0.1,\"s\":\"abc\",\"b\":true,\"z\":null,"
    "\"list\":[1,{\"a\":2,\"b\":3}],\"o\":{\"p\":{\"q\":1}}},"
    "\"files_list\":[\"a.txt\",\"sub/b.txt\"]}";

/* The differences as lines, which the caller frees. */
static char *compare(const char *expect_text, const char *result_json)
{
    cJSON *expect = cJSON_Parse(expect_text), *result = cJSON_Parse(result_json);
    struct err err = {0};
    cJSON *differences;
    const cJSON *item;
    char *lines = calloc(1, 65536);

    assert_non_null(lines);
    assert_non_null(expect);
    assert_non_null(result);
    if (expected_check(expect, &err))
        fail_msg("%s: %s", expect_text, err.message);
    differences = expected_compare(expect, result);
    assert_non_null(differences);
    cJSON_ArrayForEach(item, differences) {
        strcat(lines, item->valuestring);
        strcat(lines, "\n");
    }
    cJSON_Delete(differences);
    cJSON_Delete(expect);
    cJSON_Delete(result);
    return lines;
}

static void expect(const char *expect_text, const char *want)
{
    char *got = compare(expect_text, result_text);

    if (strcmp(got, want) != 0)
        fail_msg("%s: got %s, expected %s", expect_text, got, want);
    free(got);
}

static void what_is_there_passes(void **state)
{
    (void)state;
    expect("{}", "");
    expect("{\"status\":\"success\",\"exit_code\":0}", "");
    expect("{\"output\":{}}", "");
    expect("{\"output\":{\"n\":3.0,\"x\":0.1,\"s\":\"abc\",\"b\":true,\"z\":null}}", "");
    expect("{\"output\":{\"list\":[1,{\"a\":2}],\"o\":{\"p\":{}}}}", "");
    expect("{\"files\":[\"sub/b.txt\"]}", "");
}

static void what_differs_is_named(void **state)
{
    (void)state;
    expect("{\"output\":{\"n\":4}}", "output.n: expected 4, got 3\n");
    expect("{\"output\":{\"n\":\"3\"}}", "output.n: expected \"3\", got 3\n");
    expect("{\"output\":{\"b\":false,\"z\":0}}",
           "output.b: expected false, got true\noutput.z: expected 0, got null\n");
    expect("{\"output\":{\"m\":[]}}", "output.m: expected [], but it is not there\n");
    expect("{\"output\":{\"s\":\"ab\"}}", "output.s: expected \"ab\", got \"abc\"\n");
    expect("{\"output\":{\"list\":[1]}}",
           "output.list: expected 1 items, got 2: [1,{\"a\":2,\"b\":3}]\n");
    expect("{\"output\":{\"list\":[2,{\"a\":3,\"c\":1}]}}",
           "output.list[0]: expected 2, got 1\n"
           "output.list[1].a: expected 3, got 2\n"
           "output.list[1].c: expected 1, but it is not there\n");
    expect("{\"output\":{\"o\":{\"p\":{\"q\":2}}}}", "output.o.p.q: expected 2, got 1\n");
    expect(
        "{\"output\":null}",
        "output: expected null, got "
        "{\"n\":3,\"x\":0.1,\"s\":\"abc\",\"b\":true,\"z\":null,\"list\":[1,{\"a\":2,\"b\":3}],"
        "\"o\":{\"p\":{\"q\":1}}}\n");
    expect("{\"files\":[\"a.txt\",\"c.txt\"]}",
           "files: expected \"c.txt\", there [\"a.txt\",\"sub/b.txt\"]\n");
    expect("{\"exit_code\":1}", "exit_code: expected 1, got 0\n");
}

static void a_failure_says_why(void **state)
{
    static const char failed[] =
        "{\"status\":\"failed\",\"exit_code\":2,\"error\":\"no such name\",\"output\":null,"
        "\"stdout\":\"\",\"stderr\":\"names: no such name\\n\"}";
    char *got;

    (void)state;
    got = compare("{\"output\":{\"n\":1},\"files\":[\"a\"]}", failed);
    assert_string_equal(got, "status: expected success, got failed: no such name\n"
                             "output: expected {\"n\":1}, got null\n"
                             "files: expected \"a\", there is none\n");
    free(got);
    got =
        compare("{\"status\":\"failed\",\"exit_code\":2,\"stderr\":\"no such name\"}", failed);
    assert_string_equal(got, "");
    free(got);
    got = compare("{\"status\":\"failed\",\"stdout\":\"names\",\"stderr\":\"no such file\"}",
                  failed);
    assert_string_equal(got, "stdout: expected \"names\" in it, which is not there\n"
                             "stderr: expected \"no such file\" in it, which is not there\n");
    free(got);
    got = compare("{\"status\":\"failed\",\"stderr\":\"a\"}", "{\"status\":\"failed\"}");
    assert_string_equal(got, "stderr: expected \"a\" in it, which is not there\n");
    free(got);
    got = compare("{}", "{}");
    assert_string_equal(got, "status: expected success, got none\n");
    free(got);
}

/* Long texts are shown where they differ, and none is cut within a character. */
static void much_is_cut(void **state)
{
    char want[8192], got[8192], *lines, *line;

    (void)state;
    (void)snprintf(want, sizeof(want), "{\"output\":\"%0*d\xc3\xa4 new\"}", 3000, 0);
    (void)snprintf(got, sizeof(got), "{\"status\":\"success\",\"output\":\"%0*d\xc3\xb6 old\"}",
                   3000, 0);
    lines = compare(want, got);
    assert_string_equal(lines, "output: expected \"…0000000000000000000\xc3\xa4 new\", got "
                               "\"…0000000000000000000\xc3\xb6 old\"\n");
    free(lines);

    (void)snprintf(want, sizeof(want), "{\"output\":[");
    for (int i = 0; i < 30; i++)
        (void)snprintf(want + strlen(want), 16, "%s%d", i ? "," : "", i + 1);
    strcat(want, "]}");
    (void)snprintf(got, sizeof(got), "{\"status\":\"success\",\"output\":[");
    for (int i = 0; i < 30; i++)
        strcat(got, i ? ",\"\xe2\x82\xac\"" : "\"\"");
    strcat(got, "]}");
    lines = compare(want, got);
    line = strstr(lines, "and 10 more\n");
    assert_non_null(line);
    assert_string_equal(line, "and 10 more\n");
    free(lines);
}

static void a_deep_one_is_compared(void **state)
{
    enum { DEPTH = 400 };
    char want[8192] = "{\"output\":", got[8192] = "{\"status\":\"success\",\"output\":", *lines;

    (void)state;
    for (int i = 0; i < DEPTH; i++) {
        strcat(want, "{\"k\":");
        strcat(got, "{\"k\":");
    }
    strcat(want, "1");
    strcat(got, "2");
    for (int i = 0; i <= DEPTH; i++) {
        strcat(want, "}");
        strcat(got, "}");
    }
    lines = compare(want, got);
    assert_non_null(strstr(lines, "output.k.k.k."));
    assert_non_null(strstr(lines, ": expected 1, got 2\n"));
    free(lines);
}

static void what_cannot_be_expected_is_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"[]", "no object"},
        {"{\"ouput\":1}", "has \"ouput\", but takes output"},
        {"{\"files\":\"a\"}", "has \"files\""},
        {"{\"files\":[1]}", "no name"},
        {"{\"status\":1}", "has \"status\""},
        {"{\"stderr\":[\"a\"]}", "has \"stderr\""},
        {"{\"exit_code\":\"1\"}", "has \"exit_code\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cJSON *json = cJSON_Parse(cases[i].text);
        struct err err = {0};

        assert_int_equal(expected_check(json, &err), -EINVAL);
        assert_non_null(strstr(err.message, cases[i].part));
        cJSON_Delete(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_passes),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(a_failure_says_why),
        cmocka_unit_test(much_is_cut),
        cmocka_unit_test(a_deep_one_is_compared),
        cmocka_unit_test(what_cannot_be_expected_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
