/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to the letter, and where it ends being JSON. */
#include "api/cli/json_check.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void good(void **state)
{
    static const char *const texts[] = {
        "{}",
        " [1, 2] \n",
        "null",
        "true",
        "false",
        "\"x\"",
        "1e400",
        "-0.5E+3",
        "0",
        "[]",
        "{\"a\":{\"b\":[{},[],{\"c\":\"\\u00e9\\n\\\"\"}]}}",
        "\"\xc3\xa9\"",
        "\t[\r\n[\n]]",
        "12345678901234567890",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = {0};
        if (json_check(texts[i], strlen(texts[i]), &err))
            fail_msg("%s: %s", texts[i], err.message);
    }
}

static void bad(void **state)
{
    static const struct {
        const char *text;
        const char *where;
    } texts[] = {
        {"", "line 1, column 1: a value"},
        {"  ", "column 3: a value"},
        {"{\"a\": }", "line 1, column 7: a value"},
        {"{\n  \"a\": 1,\n  b: 2\n}", "line 3, column 3: a string"},
        {"{\"a\" 1}", "column 6: a colon"},
        {"{\"a\": 1 \"b\"}", "column 9: a comma or }"},
        {"{\"a\": 1,}", "column 9: a string"},
        {"[1, 2", "line 1, column 6: a comma or ]"},
        {"[1,]", "column 4: a value"},
        {"[1}", "column 3: a comma or ]"},
        {"{} {}", "line 1, column 4: nothing more"},
        {"'a'", "column 1: a value"},
        {"nul", "column 1: a value"},
        {"01", "column 2: nothing more"},
        {"1.", "column 3: a digit"},
        {"-", "column 2: a digit"},
        {"1e", "column 3: a digit"},
        {"\"a", "column 3: the closing"},
        {"\"a\nb\"", "column 3: an escape"},
        {"\"\\x\"", "column 3: an escape"},
        {"\"\\u12g4\"", "column 6: a hexadecimal"},
        {"\"\xff\"", "column 2: UTF-8"},
        {"NaN", "column 1: a value"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = {0};
        assert_int_equal(json_check(texts[i].text, strlen(texts[i].text), &err), -EINVAL);
        if (!strstr(err.message, texts[i].where))
            fail_msg("%s: \"%s\" does not say \"%s\"", texts[i].text, err.message,
                     texts[i].where);
    }
    assert_int_equal(json_check("\"a\0b\"", 5, NULL), -EINVAL);
    assert_int_equal(json_check("1 ", 1, NULL), 0);
}

static void deep(void **state)
{
    char text[2 * (JSON_CHECK_DEPTH_MAX + 1)];
    (void)state;

    memset(text, '[', JSON_CHECK_DEPTH_MAX);
    memset(text + JSON_CHECK_DEPTH_MAX, ']', JSON_CHECK_DEPTH_MAX);
    assert_int_equal(json_check(text, 2 * JSON_CHECK_DEPTH_MAX, NULL), 0);
    memset(text, '[', sizeof(text));
    assert_int_equal(json_check(text, sizeof(text), NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(bad),
        cmocka_unit_test(deep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
