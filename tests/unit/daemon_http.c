/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server's parts on their own: request targets, and the keys of headers. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/http_internal.h"
#include "api/daemon/http_match.h"

#include <errno.h>
#include <string.h>

static int match(const char *pattern, const char *target, const char *first, const char *second)
{
    char *params[HTTP_PARAMS_MAX] = {0};
    int r = http_match_path(pattern, target, params);

    if (r == 0) {
        assert_string_equal(params[0] ? params[0] : "", first);
        assert_string_equal(params[1] ? params[1] : "", second);
    }
    http_match_free(params, HTTP_PARAMS_MAX);
    assert_null(params[0]);
    return r;
}

static void paths_match_their_route(void **state)
{
    (void)state;
    assert_int_equal(match("/health", "/health", "", ""), 0);
    assert_int_equal(match("/health", "/health?x=/y", "", ""), 0);
    assert_int_equal(match("/v1/skills/:/:", "/v1/skills/a/1.0", "a", "1.0"), 0);
    assert_int_equal(match("/v1/skills/:/:", "/v1/skills/a%20b/%31?q", "a b", "1"), 0);
    assert_int_equal(match("/e/:/files/*", "/e/1/files/a/b%20c", "1", "a/b c"), 0);
    assert_int_equal(match("/e/:/files/*", "/e/1/files/a%2Fb", "1", "a/b"), 0);
    assert_int_equal(match("/v1/skills/:/:", "/v1/skills/a..b/...", "a..b", "..."), 0);
}

static void other_paths_match_nothing(void **state)
{
    static const char *const targets[] = {
        "",
        "*",
        "/",
        "http://x/v1/skills/a/1",
        "/v1/skills",
        "/v1/skills/a",
        "/v1/skills/a/",
        "/v1/skills//1",
        "/v1/skills/a/1/",
        "/v1/skills/a/1/2",
        "/v1/skills/%/1",
        "/v1/skills/%2/1",
        "/v1/skills/a/%2",
        "/v1/skills/a/%",
        "/v1/skills/%zz/1",
        "/v1/skills/a%00/1",
        "/v1/skills/%0aa/1",
        "/v1/skills/a/%7f",
        "/v1/skills/a%2f1/2",
        "/v1/skills/./1",
        "/v1/skills/../1",
        "/v1/skills/%2e%2e/1",
        "/v1/skills/%2e./1",
        "/v1/skills/a\x01/1",
        "/v1/skills/a?/1",
        "/v1/%73kills/a/1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        if (match("/v1/skills/:/:", targets[i], "", "") != -ENOENT)
            fail_msg("%s matches", targets[i]);
    }
    assert_int_equal(match("/f/*", "/f/", "", ""), -ENOENT);
    assert_int_equal(match("/f/*", "/f/a//b", "", ""), -ENOENT);
    assert_int_equal(match("/f/*", "/f/a/../b", "", ""), -ENOENT);
    assert_int_equal(match("/f/*", "/f/a%2f..%2fb", "", ""), -ENOENT);
    assert_int_equal(match("/f/*", "/f/%2fetc", "", ""), -ENOENT);
}

static void queries_give_their_parameters(void **state)
{
    static const char *const names[HTTP_QUERY_MAX] = {"limit", "skill"};
    char *values[HTTP_QUERY_MAX] = {0};

    (void)state;
    assert_int_equal(
        http_match_query("/x?a&skill=a+b%26&limit=5&limit=6&skilled=1", names, values), 0);
    assert_string_equal(values[0], "5");
    assert_string_equal(values[1], "a b&");
    assert_null(values[2]);
    http_match_free(values, HTTP_QUERY_MAX);
    assert_int_equal(http_match_query("/x?limit&&=&skill=", names, values), 0);
    assert_string_equal(values[0], "");
    assert_string_equal(values[1], "");
    http_match_free(values, HTTP_QUERY_MAX);
    assert_int_equal(http_match_query("/x", names, values), 0);
    assert_int_equal(http_match_query("/x?limit=1&skill=%0", names, values), -EINVAL);
    assert_int_equal(http_match_query("/x?limit=%00", names, values), -EINVAL);
    assert_null(values[0]);
    assert_int_equal(http_match_query("/x?other=%00", names, values), 0);
}

static void bearers_are_taken_as_they_are_written(void **state)
{
    static const struct {
        const char *value;
        const char *key;
    } cases[] = {
        {"Bearer sk-1", "sk-1"},
        {"bearer sk-1", "sk-1"},
        {"BEARER  \tsk-1 ", "sk-1"},
        {"Bearer", ""},
        {"Bearer ", ""},
        {"Bearersk-1", ""},
        {"Basic c2stMTo=", ""},
        {"sk-1", ""},
        {"Bearer sk-1 sk-2", ""},
        {"Bearer sk-1, sk-2", ""},
        {"", ""},
        {"Bearer sk-\xc3\xa4", ""},
        {"Bearer \"sk-1\"", ""},
        {"Bearer a=._~+/-", "a=._~+/-"},
    };
    char key[HTTP_BEARER_MAX + 1];
    char value[1024] = "Bearer ";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        http_auth_bearer(cases[i].value, key);
        assert_string_equal(key, cases[i].key);
    }
    memset(value + 7, 'x', HTTP_BEARER_MAX);
    http_auth_bearer(value, key);
    assert_int_equal(strlen(key), HTTP_BEARER_MAX);
    value[7 + HTTP_BEARER_MAX] = 'x';
    http_auth_bearer(value, key);
    assert_string_equal(key, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_match_their_route),
        cmocka_unit_test(other_paths_match_nothing),
        cmocka_unit_test(queries_give_their_parameters),
        cmocka_unit_test(bearers_are_taken_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
