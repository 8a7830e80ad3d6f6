/* SPDX-License-Identifier: Apache-2.0 */
/* Import profiles: the image's list, and the name that a skill's imports come to. */
#include "api/skill/profile.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/cmocka_all.h"

static int read_list(const char *text, size_t len, struct skill_strings *list, struct err *err)
{
    _cleanup_fd_ int fd = memfd_create("list", MFD_CLOEXEC);

    assert_int_equal(fd_write_full(fd, text, len), 0);
    return profile_list_read(fd, list, err);
}

static void test_list(void **state)
{
    struct skill_strings list;

    (void)state;
    assert_int_equal(read_list("", 0, &list, NULL), 0);
    assert_int_equal(list.len, 0);
    skill_strings_finish(&list);
    assert_int_equal(read_list("ssl\na.b\nssl\na\n", 14, &list, NULL), 0);
    assert_int_equal(list.len, 3);
    assert_string_equal(list.items[0], "a");
    assert_string_equal(list.items[1], "a.b");
    assert_string_equal(list.items[2], "ssl");
    skill_strings_finish(&list);
}

static void test_bad_lists(void **state)
{
    static const struct {
        const char *text;
        const char *problem;
    } cases[] = {
        {"a\n\nb\n", "line 2"}, {"a\nb", "line 2"},  {"a b\n", "line 1"},
        {"a+b\n", "line 1"},    {"a\r\n", "line 1"}, {"a\n../b\n", "line 2"},
    };
    char many[2 * (PROFILE_LIST_MAX + 1)], large[PROFILE_LIST_BYTES_MAX + 1];
    struct skill_strings list;
    struct err err = {0};
    int gone = -1;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        err = (struct err){0};
        assert_int_equal(read_list(cases[i].text, strlen(cases[i].text), &list, &err), -EINVAL);
        assert_non_null(strstr(err.message, cases[i].problem));
    }
    assert_int_equal(read_list("a\0b\n", 4, &list, NULL), -EINVAL);
    for (size_t i = 0; i < sizeof(many); i += 2)
        memcpy(many + i, "a\n", 2);
    assert_int_equal(read_list(many, sizeof(many), &list, NULL), -EFBIG);
    assert_int_equal(read_list(many, sizeof(many) - 2, &list, NULL), 0);
    assert_int_equal(list.len, 1);
    skill_strings_finish(&list);
    memset(large, 'a', sizeof(large));
    assert_int_equal(read_list(large, sizeof(large), &list, NULL), -EFBIG);
    assert_int_equal(profile_list_read(gone, &list, NULL), -EBADF);
}

/* The name for imports and an offer, both "a b c". */
static const char *name_of(const char *offered, const char *imported)
{
    static char name[PROFILE_NAME_SIZE];
    struct skill_strings lists[2] = {{0}};
    const char *texts[2] = {offered, imported};

    for (size_t i = 0; i < 2; i++) {
        for (const char *at = texts[i]; *at; at += strspn(at, " ")) {
            size_t len = strcspn(at, " ");

            assert_int_equal(skill_strings_add(&lists[i], "%.*s", (int)len, at), 0);
            at += len;
        }
    }
    profile_make(&lists[0], &lists[1], name);
    skill_strings_finish(&lists[0]);
    skill_strings_finish(&lists[1]);
    return name;
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(name_of("", "a"), "");
    assert_string_equal(name_of("a", ""), "");
    assert_string_equal(name_of("asyncio decimal sqlite3", "argparse decimal json sqlite3"),
                        "decimal+sqlite3");
    /* A package around an imported module is imported too, one that only begins alike is not.
     */
    assert_string_equal(name_of("async asyncio xml.etree.ElementTree", "asyncio.subprocess"),
                        "asyncio");
    assert_string_equal(name_of("xml.etree.ElementTree", "xml xml.etree"), "");
    assert_string_equal(name_of("xml.etree.ElementTree", "xml.etree xml.etree.ElementTree"),
                        "xml.etree.ElementTree");
}

/* What is too long is left out whole, and what comes after it may still fit. */
static void test_long_names(void **state)
{
    char offered[1024] = "", want[1024] = "";

    (void)state;
    for (int i = 0; i < 4; i++) {
        size_t len = strlen(offered);

        snprintf(offered + len, sizeof(offered) - len, "%s%c%059d", i ? " " : "", 'a' + i, 0);
    }
    strcat(offered, " z");
    memcpy(want, offered, 3 * 61 - 1);
    want[60] = want[121] = '+';
    strcat(want, "+z");
    assert_string_equal(name_of(offered, offered), want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_long_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
