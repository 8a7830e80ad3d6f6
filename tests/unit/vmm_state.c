/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec of state files: what is written is read back, and every kind of damage is refused
 * with a message that names the section.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32.h"
#include "vmm/state.h"

#define TAG_ONE STATE_TAG('O', 'N', 'E', ' ')
#define TAG_TWO STATE_TAG('T', 'W', 'O', ' ')

static const struct state_kind kinds[] = {{TAG_ONE, 1, "one"}, {TAG_TWO, 7, "two"}};
static const struct state_schema schema = {kinds, 2};

static const uint8_t one[] = {1, 2, 3, 4, 5};

/* A whole file: "one" holds five bytes, "two" is empty. */
static struct state_writer write_file(void)
{
    struct state_writer w;
    struct err err = {0};

    assert_int_equal(state_writer_init(&w, &schema, &err), 0);
    assert_int_equal(state_add(&w, TAG_ONE, one, sizeof(one), &err), 0);
    assert_int_equal(state_add(&w, TAG_TWO, NULL, 0, &err), 0);
    assert_int_equal(state_writer_complete(&w, &err), 0);
    assert_int_equal(err.code, 0);
    return w;
}

static void put_u32(uint8_t *at, uint32_t v)
{
    struct bytes_writer w = bytes_writer_init(at, 4);

    bytes_put_u32(&w, v);
}

/* Makes the checksum of the section at head right again. */
static void fix_crc(uint8_t *head, size_t len)
{
    put_u32(head + 12, crc32_update(crc32_update(0, head, 12), head + 16, len));
}

static void expect_refused(const void *data, size_t len, const char *says)
{
    struct state state = {.schema = NULL};
    struct err err = {0};

    assert_int_equal(state_parse(data, len, &schema, &state, &err), -22);
    assert_non_null(strstr(err.message, says));
    assert_null(state.schema);
}

static void round_trip(void **unused)
{
    struct state_writer w = write_file();
    struct state state;
    struct bytes_reader r;
    uint8_t out[sizeof(one)];
    struct err err = {0};

    (void)unused;
    assert_int_equal(w.out.len, 16 + 16 + 5 + 16);
    assert_memory_equal(w.out.data, "SKVMSTAT\1\0\0\0\2\0\0\0ONE \1\0\0\0\5\0\0\0", 28);
    assert_int_equal(state_parse(w.out.data, w.out.len, &schema, &state, &err), 0);
    assert_int_equal(state_get_blob(&state, TAG_ONE, out, sizeof(out), &err), 0);
    assert_memory_equal(out, one, sizeof(one));
    r = state_section(&state, TAG_TWO);
    assert_true(bytes_done(&r));
    assert_int_equal(state_get_blob(&state, TAG_ONE, out, 4, &err), -22);
    assert_non_null(strstr(err.message, "one"));
    state_writer_finish(&w);
}

static void incomplete_file_is_not_written(void **unused)
{
    struct state_writer w;
    struct err err = {0};

    (void)unused;
    assert_int_equal(state_writer_init(&w, &schema, &err), 0);
    assert_int_equal(state_add(&w, TAG_ONE, one, sizeof(one), &err), 0);
    assert_int_equal(state_add(&w, 99, one, sizeof(one), NULL), -22);
    assert_int_equal(state_add(&w, TAG_TWO, one, STATE_SIZE_MAX, NULL), -7);
    assert_int_equal(state_writer_complete(&w, &err), -22);
    assert_non_null(strstr(err.message, "two: missing"));
    state_writer_finish(&w);
}

static void every_truncation_is_refused(void **unused)
{
    struct state_writer w = write_file();

    (void)unused;
    for (size_t len = 0; len < w.out.len; len++) {
        /* A copy of exactly that size, so that a sanitizer sees a read past the end. */
        uint8_t *copy = malloc(len + 1);
        struct state state;

        assert_non_null(copy);
        memcpy(copy, w.out.data, len);
        assert_int_equal(state_parse(copy, len, &schema, &state, NULL), -22);
        free(copy);
    }
    state_writer_finish(&w);
}

static void every_flipped_bit_is_refused(void **unused)
{
    struct state_writer w = write_file();

    (void)unused;
    for (size_t bit = 0; bit < 8 * w.out.len; bit++) {
        struct state state;

        w.out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(state_parse(w.out.data, w.out.len, &schema, &state, NULL), -22);
        w.out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    state_writer_finish(&w);
}

static void damage_is_named(void **unused)
{
    struct state_writer w = write_file();
    uint8_t file[128] = {0};
    uint8_t *first = file + 16;
    uint8_t *second = first + 16 + sizeof(one);
    size_t len = w.out.len;

    (void)unused;
    assert_true(len < sizeof(file));
#define FRESH(change, says)                                                                    \
    do {                                                                                       \
        memcpy(file, w.out.data, len);                                                         \
        change;                                                                                \
        expect_refused(file, len, says);                                                       \
    } while (0)
    FRESH(file[0] = 'X', "not a state file");
    FRESH(put_u32(file + 8, 2), "format 2");
    FRESH(put_u32(file + 12, 1000), "1000 sections");
    FRESH(put_u32(file + 12, 1), "after the last section");
    FRESH(put_u32(file + 12, 3), "ends inside a section header");
    FRESH(first[16] ^= 1, "section one: bad checksum");
    FRESH((put_u32(first, 99), fix_crc(first, 5)), "unknown section");
    FRESH((put_u32(first + 4, 2), fix_crc(first, 5)), "section one: version 2");
    FRESH(put_u32(first + 8, 4096), "section one: 4096 bytes do not fit");
    FRESH(put_u32(first + 8, UINT32_MAX), "section one: 4294967295 bytes do not fit");
    FRESH((put_u32(second, TAG_ONE), put_u32(second + 4, 1), fix_crc(second, 0)),
          "section one: appears twice");
    memcpy(file, w.out.data, len);
    put_u32(file + 12, 1);
    expect_refused(file, len - 16, "section two: missing");
#undef FRESH
    state_writer_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(incomplete_file_is_not_written),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(damage_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
