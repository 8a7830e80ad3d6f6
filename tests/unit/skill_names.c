/* SPDX-License-Identifier: Apache-2.0 */
/* Names that strangers choose. */
#include "api/skill/file_names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void clean_names(void **state)
{
    static const char *const pairs[][2] = {
        {"a", "a"},
        {"./a", "a"},
        {"a/", "a"},
        {"a//b", "a/b"},
        {"./", ""},
        {".", ""},
        {"a/./b", "a/b"},
        {"...", "..."},
        {"..a/b..", "..a/b.."},
        {"\xc3\xa9/x", "\xc3\xa9/x"},
        {"a b/c'd", "a b/c'd"},
        {"-rf", "-rf"},
    };
    char out[NAMES_PATH_MAX + 1];
    (void)state;

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct err err = {0};
        assert_int_equal(names_clean(pairs[i][0], out, &err), 0);
        assert_string_equal(out, pairs[i][1]);
        assert_int_equal(err.code, 0);
    }
}

static void refused_names(void **state)
{
    static const struct {
        const char *name;
        const char *rule;
    } bad[] = {
        {"", "empty"},
        {"/etc/passwd", "absolute"},
        {"../x", "\"..\""},
        {"a/../b", "\"..\""},
        {"a/..", "\"..\""},
        {"a\\b", "backslash"},
        {"a\nb", "control"},
        {"a\x1b[31m", "control"},
        {"a\x7f", "control"},
        {"a\xe2\x80\xae"
         "b",
         "control"},
        {"a\xc2\x9b"
         "b",
         "control"},
        {"a\xff", "UTF-8"},
        {"a\xc0\xaf", "UTF-8"},
        {"a\xed\xa0\x80", "UTF-8"},
    };
    char out[NAMES_PATH_MAX + 1], longest[NAMES_PATH_MAX + 2], deep[128] = "";
    struct err err = {0};
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err = (struct err){0};
        assert_int_equal(names_clean(bad[i].name, out, &err), -EINVAL);
        assert_non_null(strstr(err.message, bad[i].rule));
        for (const char *c = err.message; *c; c++)
            assert_true((unsigned char)*c >= 0x20);
    }

    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    err = (struct err){0};
    assert_int_equal(names_clean(longest, out, &err), -EINVAL);
    longest[NAMES_COMPONENT_MAX + 1] = '\0';
    err = (struct err){0};
    assert_int_equal(names_clean(longest, out, &err), -EINVAL);
    longest[NAMES_COMPONENT_MAX] = '\0';
    assert_int_equal(names_clean(longest, out, NULL), 0);

    for (unsigned i = 0; i < NAMES_DEPTH_MAX; i++)
        strcat(deep, "a/");
    assert_int_equal(names_clean(deep, out, NULL), 0);
    strcat(deep, "a");
    assert_int_equal(names_clean(deep, out, NULL), -EINVAL);
}

static void shown_names(void **state)
{
    struct names_shown shown;
    char big[600];
    (void)state;

    assert_string_equal(names_shown("plain \xc3\xa9").text, "plain \xc3\xa9");
    assert_string_equal(names_shown("a\x1b[2J\n\xff").text, "a\\x1b[2J\\x0a\\xff");
    memset(big, '\x01', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    shown = names_shown(big);
    assert_true(strlen(shown.text) < NAMES_SHOWN_MAX);
    assert_non_null(strstr(shown.text, "..."));
}

static void case_compare(void **state)
{
    (void)state;

    assert_int_equal(names_case_compare("README.md", "readme.MD"), 0);
    assert_true(names_case_compare("a", "b") < 0);
    assert_true(names_case_compare("b", "a") > 0);
    assert_true(names_case_compare("a", "ab") < 0);
    assert_int_equal(names_case_compare("\xc3\x89t\xc3\xa9", "\xc3\xa9T\xc3\x89"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_names),
        cmocka_unit_test(refused_names),
        cmocka_unit_test(shown_names),
        cmocka_unit_test(case_compare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
