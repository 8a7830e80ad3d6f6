/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes encoded and back; escapes that are none. */
#include "tests/unit/cmocka_all.h"

#include "base/percent.h"

#include <errno.h>
#include <string.h>

static void every_byte_comes_back(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {(char)byte};
        struct buf out = buf_init(3);
        size_t len = 0;

        assert_int_equal(percent_append(&out, text, 1, false), 0);
        assert_int_equal(percent_decode((const char *)out.data, out.len, &len), byte);
        assert_int_equal(len, out.len);
        buf_finish(&out);
    }
}

static void what_is_unreserved_stays(void **state)
{
    static const char text[] = "aZ09-._~/ %\xff+";
    struct buf out = buf_init(100);

    (void)state;
    assert_int_equal(percent_append(&out, text, strlen(text), true), 0);
    assert_string_equal(buf_cstr(&out), "aZ09-._~/%20%25%FF%2B");
    buf_clear(&out);
    assert_int_equal(percent_append(&out, "/", 1, false), 0);
    assert_string_equal(buf_cstr(&out), "%2F");
    buf_finish(&out);
}

static void bad_escapes_are_refused(void **state)
{
    static const char *const bad[] = {"%", "%4", "%4g", "%g4", "%%41", "% 4"};
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(percent_decode(bad[i], strlen(bad[i]), &len), -EINVAL);
    assert_int_equal(percent_decode("%41", 2, &len), -EINVAL);
    assert_int_equal(percent_decode("%aF", 3, &len), 0xaf);
    assert_int_equal(len, 3);
    assert_int_equal(percent_decode("+", 1, &len), '+');
    assert_int_equal(len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(what_is_unreserved_stays),
        cmocka_unit_test(bad_escapes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
