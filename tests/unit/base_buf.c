/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/buf: the limit holds exactly, and a refused append changes nothing.
 */
#include "base/buf.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

static void test_append_up_to_the_limit(void **state)
{
    struct buf b = buf_init(10);

    (void)state;
    assert_null(b.data);
    assert_int_equal(buf_append(&b, "12345", 5), 0);
    assert_int_equal(buf_append(&b, "678901", 6), -E2BIG);
    assert_int_equal(b.len, 5);
    assert_int_equal(buf_append(&b, "67890", 5), 0);
    assert_int_equal(buf_append(&b, "", 0), 0);
    assert_int_equal(buf_append(&b, "x", 1), -E2BIG);
    assert_string_equal(buf_cstr(&b), "1234567890");
    buf_finish(&b);
}

static void test_huge_extra_does_not_wrap(void **state)
{
    struct buf b = buf_init(1000);

    (void)state;
    assert_int_equal(buf_append(&b, "a", 1), 0);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -E2BIG);
    assert_int_equal(buf_append(&b, "a", SIZE_MAX - 1), -E2BIG);
    assert_int_equal(b.len, 1);
    buf_finish(&b);
}

static void test_growth_keeps_content(void **state)
{
    struct buf b = buf_init(1u << 20);

    (void)state;
    for (uint32_t i = 0; i < (1u << 18); i++)
        assert_int_equal(buf_append(&b, &i, sizeof(i)), 0);
    assert_int_equal(b.len, 1u << 20);
    for (uint32_t i = 0; i < (1u << 18); i++)
        assert_memory_equal(b.data + 4 * (size_t)i, &i, sizeof(i));
    buf_finish(&b);
}

static void test_clipped(void **state)
{
    struct buf b = buf_init(6);

    (void)state;
    assert_int_equal(buf_append_clipped(&b, "abcd", 4), 4);
    assert_int_equal(buf_append_clipped(&b, "efgh", 4), 2);
    assert_int_equal(buf_append_clipped(&b, "ijkl", 4), 0);
    assert_string_equal(buf_cstr(&b), "abcdef");
    buf_finish(&b);
}

static void test_printf(void **state)
{
    struct buf b = buf_init(8);

    (void)state;
    assert_int_equal(buf_printf(&b, "%s=%d", "a", 12), 0);
    assert_int_equal(buf_printf(&b, "%s", "12345"), -E2BIG);
    assert_string_equal(buf_cstr(&b), "a=12");
    assert_int_equal(buf_printf(&b, "%s", "1234"), 0);
    assert_string_equal(buf_cstr(&b), "a=121234");
    buf_finish(&b);
}

static void test_consume_and_clear(void **state)
{
    struct buf b = buf_init(16);

    (void)state;
    buf_consume(&b, 0);
    assert_int_equal(buf_append(&b, "0123456789", 10), 0);
    buf_consume(&b, 4);
    assert_string_equal(buf_cstr(&b), "456789");
    buf_consume(&b, 6);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_cstr(&b), "");
    assert_int_equal(buf_append(&b, "x", 1), 0);
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    buf_finish(&b);
}

static void test_first_error_stays(void **state)
{
    struct buf b = buf_init(4);

    (void)state;
    assert_int_equal(buf_append(&b, "12345", 5), -E2BIG);
    assert_int_equal(buf_append(&b, "1", 1), 0);
    assert_int_equal(b.error, -E2BIG);
    buf_clear(&b);
    assert_int_equal(b.error, 0);
    assert_int_equal(buf_printf(&b, "%d", 12345), -E2BIG);
    assert_int_equal(b.error, -E2BIG);
    buf_finish(&b);
    assert_int_equal(b.error, 0);
}

static void test_finish_twice(void **state)
{
    struct buf b = buf_init(4);
    struct buf zero = {0};

    (void)state;
    assert_string_equal(buf_cstr(&b), "");
    buf_finish(&b);
    assert_null(b.data);
    buf_finish(&b);
    buf_finish(&zero);
    assert_int_equal(buf_append(&zero, "x", 1), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_up_to_the_limit),
        cmocka_unit_test(test_huge_extra_does_not_wrap),
        cmocka_unit_test(test_growth_keeps_content),
        cmocka_unit_test(test_clipped),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_consume_and_clear),
        cmocka_unit_test(test_first_error_stays),
        cmocka_unit_test(test_finish_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
