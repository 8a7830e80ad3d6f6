/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/crc32: known answers, and pieces that add up to the whole.
 */
#include "base/crc32.h"

#include <string.h>

#include "tests/unit/cmocka_all.h"

static void test_known_answers(void **state)
{
    uint8_t zeros[32] = {0};

    (void)state;
    assert_int_equal(crc32_update(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32_update(0, "", 0), 0);
    assert_int_equal(crc32_update(0, "a", 1), 0xe8b7be43);
    assert_int_equal(crc32_update(0, "The quick brown fox jumps over the lazy dog", 43),
                     0x414fa339);
    assert_int_equal(crc32_update(0, zeros, sizeof(zeros)), 0x190a55ad);
}

static void test_pieces(void **state)
{
    uint8_t data[1000];
    uint32_t whole;

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 131 + (i >> 3));
    whole = crc32_update(0, data, sizeof(data));
    for (size_t cut = 0; cut <= sizeof(data); cut += 37) {
        uint32_t crc = crc32_update(0, data, cut);

        assert_int_equal(crc32_update(crc, data + cut, sizeof(data) - cut), whole);
    }
}

static void test_every_single_bit_is_noticed(void **state)
{
    uint8_t data[64];
    uint32_t good;

    (void)state;
    memset(data, 0x5a, sizeof(data));
    good = crc32_update(0, data, sizeof(data));
    for (size_t bit = 0; bit < 8 * sizeof(data); bit++) {
        data[bit / 8] = (uint8_t)(data[bit / 8] ^ (1u << (bit % 8)));
        assert_int_not_equal(crc32_update(0, data, sizeof(data)), good);
        data[bit / 8] = (uint8_t)(data[bit / 8] ^ (1u << (bit % 8)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_every_single_bit_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
