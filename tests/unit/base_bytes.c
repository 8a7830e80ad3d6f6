/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/bytes: little-endian on the wire, and a cursor that turns bad stays bad.
 */
#include "base/bytes.h"

#include <string.h>

#include "tests/unit/cmocka_all.h"

static void test_layout_is_little_endian(void **state)
{
    static const uint8_t want[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f, 0x0e,
                                   0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 'h',  'i'};
    uint8_t raw[sizeof(want)];
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));

    (void)state;
    bytes_put_u8(&w, 0x01);
    bytes_put_u16(&w, 0x0203);
    bytes_put_u32(&w, 0x04050607);
    bytes_put_u64(&w, 0x08090a0b0c0d0e0f);
    bytes_put(&w, "hi", 2);
    assert_false(w.bad);
    assert_int_equal(w.len, sizeof(want));
    assert_memory_equal(raw, want, sizeof(want));
}

static void test_round_trip(void **state)
{
    uint8_t raw[64];
    char text[3] = {0};
    struct bytes_writer w = bytes_writer_init(raw, sizeof(raw));
    struct bytes_reader r;

    (void)state;
    bytes_put_u8(&w, UINT8_MAX);
    bytes_put_u16(&w, UINT16_MAX - 1);
    bytes_put_u32(&w, UINT32_MAX - 2);
    bytes_put_u64(&w, UINT64_MAX - 3);
    bytes_put(&w, "ok", 2);
    r = bytes_reader_init(raw, w.len);
    assert_int_equal(bytes_left(&r), w.len);
    assert_int_equal(bytes_get_u8(&r), UINT8_MAX);
    assert_int_equal(bytes_get_u16(&r), UINT16_MAX - 1);
    assert_int_equal(bytes_get_u32(&r), UINT32_MAX - 2);
    assert_true(bytes_get_u64(&r) == UINT64_MAX - 3);
    assert_false(bytes_done(&r));
    bytes_get(&r, text, 2);
    assert_string_equal(text, "ok");
    assert_true(bytes_done(&r));
    assert_int_equal(bytes_left(&r), 0);
}

static void test_short_input_turns_bad_and_stays_bad(void **state)
{
    static const uint8_t raw[3] = {1, 2, 3};
    uint8_t out[8];
    struct bytes_reader r = bytes_reader_init(raw, sizeof(raw));

    (void)state;
    assert_int_equal(bytes_get_u32(&r), 0);
    assert_true(r.bad);
    assert_int_equal(bytes_get_u8(&r), 0);
    assert_null(bytes_take(&r, 0));
    memset(out, 0xff, sizeof(out));
    bytes_get(&r, out, sizeof(out));
    for (size_t i = 0; i < sizeof(out); i++)
        assert_int_equal(out[i], 0);
    assert_int_equal(bytes_left(&r), 0);
    assert_false(bytes_done(&r));
}

static void test_huge_length_does_not_wrap(void **state)
{
    static const uint8_t raw[8] = {0};
    struct bytes_reader r = bytes_reader_init(raw, sizeof(raw));

    (void)state;
    assert_int_equal(bytes_get_u32(&r), 0);
    assert_null(bytes_take(&r, SIZE_MAX - 2));
    assert_true(r.bad);
}

static void test_take_borrows(void **state)
{
    static const uint8_t raw[4] = {9, 8, 7, 6};
    struct bytes_reader r = bytes_reader_init(raw, sizeof(raw));

    (void)state;
    assert_ptr_equal(bytes_take(&r, 2), raw);
    assert_ptr_equal(bytes_take(&r, 2), raw + 2);
    assert_true(bytes_done(&r));
    assert_non_null(bytes_take(&r, 0));
    assert_null(bytes_take(&r, 1));
}

static void test_full_writer_turns_bad_and_writes_nothing_more(void **state)
{
    uint8_t raw[6] = {0};
    struct bytes_writer w = bytes_writer_init(raw, 4);

    (void)state;
    bytes_put_u16(&w, 0x0101);
    bytes_put_u32(&w, 0xffffffff);
    assert_true(w.bad);
    assert_int_equal(w.len, 2);
    bytes_put_u8(&w, 0xff);
    bytes_put(&w, "x", SIZE_MAX);
    assert_int_equal(w.len, 2);
    for (size_t i = 2; i < sizeof(raw); i++)
        assert_int_equal(raw[i], 0);
}

static void test_empty(void **state)
{
    struct bytes_reader r = bytes_reader_init(NULL, 0);
    struct bytes_writer w = bytes_writer_init(NULL, 0);

    (void)state;
    assert_true(bytes_done(&r));
    bytes_put(&w, NULL, 0);
    assert_false(w.bad);
    bytes_put_u8(&w, 1);
    assert_true(w.bad);
    assert_int_equal(bytes_get_u8(&r), 0);
    assert_true(r.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_is_little_endian),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_short_input_turns_bad_and_stays_bad),
        cmocka_unit_test(test_huge_length_does_not_wrap),
        cmocka_unit_test(test_take_borrows),
        cmocka_unit_test(test_full_writer_turns_bad_and_writes_nothing_more),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
