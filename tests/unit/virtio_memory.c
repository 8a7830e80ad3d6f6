/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "vmm/memory.h"

#define SIZE 4096u

static uint8_t bytes[SIZE];
static struct memory mem = {.host = bytes, .size = SIZE};

static void test_bounds(void **state)
{
    static const struct {
        gpa_t gpa;
        uint64_t len;
        bool inside;
    } cases[] = {
        {0, 0, true},
        {0, SIZE, true},
        {0, SIZE + 1, false},
        {SIZE, 0, true},
        {SIZE, 1, false},
        {SIZE - 1, 1, true},
        {SIZE - 1, 2, false},
        {SIZE + 1, 0, false},
        {UINT64_MAX, 1, false},
        {1, UINT64_MAX, false},
        {UINT64_MAX, UINT64_MAX, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const void *expected = cases[i].inside ? bytes + cases[i].gpa : NULL;

        assert_int_equal(memory_contains(&mem, cases[i].gpa, cases[i].len), cases[i].inside);
        assert_ptr_equal(memory_readable(&mem, cases[i].gpa, cases[i].len), expected);
        assert_ptr_equal(memory_writable(&mem, cases[i].gpa, cases[i].len), expected);
    }
}

static void test_copies(void **state)
{
    uint8_t out[4] = {9, 9, 9, 9};

    (void)state;
    assert_int_equal(memory_write(&mem, SIZE - 4, "abcd", 4), 0);
    assert_int_equal(memory_read(&mem, SIZE - 4, out, 4), 0);
    assert_memory_equal(out, "abcd", 4);
    assert_int_equal(memory_write(&mem, SIZE - 3, "wxyz", 4), -EFAULT);
    assert_memory_equal(bytes + SIZE - 4, "abcd", 4);
    assert_int_equal(memory_read(&mem, SIZE - 3, out, 4), -EFAULT);
    assert_memory_equal(out, "abcd", 4);
}

static void test_u16(void **state)
{
    uint16_t value = 7;

    (void)state;
    assert_int_equal(memory_store_u16(&mem, SIZE - 2, 0x1234), 0);
    assert_int_equal(bytes[SIZE - 2], 0x34);
    assert_int_equal(memory_load_u16(&mem, SIZE - 2, &value), 0);
    assert_int_equal(value, 0x1234);
    assert_int_equal(memory_load_u16(&mem, SIZE - 1, &value), -EFAULT);
    assert_int_equal(memory_load_u16(&mem, 1, &value), -EFAULT);
    assert_int_equal(memory_store_u16(&mem, SIZE, 1), -EFAULT);
    assert_int_equal(memory_store_u16(&mem, 3, 1), -EFAULT);
    assert_int_equal(value, 0x1234);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_u16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
