/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/err: the first cause is kept, messages are clipped and always terminated.
 */
#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

static void test_set_returns_minus_code(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set(&err, EINVAL, "no %s in %d", "name", 7), -EINVAL);
    assert_int_equal(err.code, EINVAL);
    assert_string_equal(err.message, "no name in 7");
}

static void test_set_without_object(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ENOENT, "lost"), -ENOENT);
    assert_int_equal(err_set_errno(NULL, EIO, "lost"), -EIO);
    err_prefix(NULL, "nothing");
}

static void test_first_cause_is_kept(void **state)
{
    struct err err = {0};

    (void)state;
    err_set(&err, ENOENT, "first");
    assert_int_equal(err_set(&err, EINVAL, "second"), -EINVAL);
    assert_int_equal(err_set_errno(&err, EPERM, "third"), -EPERM);
    assert_int_equal(err.code, ENOENT);
    assert_string_equal(err.message, "first");
}

static void test_errno_text_is_appended(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set_errno(&err, ENOENT, "open %s", "x"), -ENOENT);
    assert_string_equal(err.message, "open x: No such file or directory");
}

static void test_prefix(void **state)
{
    struct err err = {0};

    (void)state;
    err_prefix(&err, "unset");
    assert_int_equal(err.code, 0);
    assert_string_equal(err.message, "");
    err_set(&err, EINVAL, "bad digest");
    err_prefix(&err, "snapshot %s", "abc");
    assert_int_equal(err.code, EINVAL);
    assert_string_equal(err.message, "snapshot abc: bad digest");
}

static void test_long_text_is_clipped(void **state)
{
    struct err err = {0};
    char text[2 * ERR_MESSAGE_MAX];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    err_set_errno(&err, EINVAL, "%s", text);
    assert_int_equal(strlen(err.message), ERR_MESSAGE_MAX - 1);
    err_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), ERR_MESSAGE_MAX - 1);
    err_prefix(&err, "short");
    assert_int_equal(strlen(err.message), ERR_MESSAGE_MAX - 1);
    assert_memory_equal(err.message, "short: x", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_minus_code),
        cmocka_unit_test(test_set_without_object),
        cmocka_unit_test(test_first_cause_is_kept),
        cmocka_unit_test(test_errno_text_is_appended),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_text_is_clipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
