/* SPDX-License-Identifier: Apache-2.0 */
/* Code points to UTF-8 and back; what is none. The repair of streams: daemon_json.c. */
#include "tests/unit/cmocka_all.h"

#include "base/utf8.h"

#include <string.h>

static void code_points_come_back(void **state)
{
    static const struct {
        uint32_t code;
        const char *text;
    } cases[] = {
        {0x01, "\x01"},
        {0x7f, "\x7f"},
        {0x80, "\xc2\x80"},
        {0x7ff, "\xdf\xbf"},
        {0x800, "\xe0\xa0\x80"},
        {0xd7ff, "\xed\x9f\xbf"},
        {0xe000, "\xee\x80\x80"},
        {0xffff, "\xef\xbf\xbf"},
        {0x10000, "\xf0\x90\x80\x80"},
        {0x10ffff, "\xf4\x8f\xbf\xbf"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);
        struct buf out = buf_init(4);
        uint32_t code = 0;

        assert_int_equal(utf8_append(&out, cases[i].code), 0);
        assert_string_equal(buf_cstr(&out), cases[i].text);
        assert_int_equal(utf8_decode(cases[i].text, len, &code), len);
        assert_int_equal(code, cases[i].code);
        if (len > 1)
            assert_int_equal(utf8_decode(cases[i].text, len - 1, &code), 0);
        buf_finish(&out);
    }
}

static void what_is_none_is_not_decoded(void **state)
{
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5",
                                      "\xc3x",
                                      "\xff"};
    uint32_t code;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &code), 0);
}

static void no_sequence_is_cut(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t fit[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    const size_t len = strlen(text);

    (void)state;
    for (size_t max = 0; max < sizeof(fit) / sizeof(fit[0]); max++) {
        size_t n = utf8_fit(text, len, max);

        assert_int_equal(n, fit[max]);
        assert_true(utf8_valid(text, n));
    }
    assert_int_equal(utf8_count(text, len), 4);
    assert_int_equal(utf8_count(text, 0), 0);
    assert_false(utf8_continues('a'));
    assert_true(utf8_continues('\xa4'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_points_come_back),
        cmocka_unit_test(what_is_none_is_not_decoded),
        cmocka_unit_test(no_sequence_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
