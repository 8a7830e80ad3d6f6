/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: what it stands for, and what is none. */
#include "tests/unit/cmocka_all.h"

#include "base/base64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int decode(const char *text, struct buf *ret)
{
    *ret = buf_init(1024);
    assert_int_equal(buf_append(ret, text, strlen(text)), 0);
    return base64_decode(ret);
}

static void decodes(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},        {"Zg==", "f"},          {"Zm8=", "fo"},
        {"Zm9v", "foo"}, {"Zm9vYmFy", "foobar"}, {"+/+/", "\xfb\xff\xbf"}};
    struct buf got;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(decode(cases[i][0], &got), 0);
        assert_int_equal(got.len, strlen(cases[i][1]));
        assert_true(got.len == 0 || memcmp(got.data, cases[i][1], got.len) == 0);
        buf_finish(&got);
    }
}

static void refuses(void **state)
{
    static const char *const bad[] = {"Z",    "Zg",     "Zg=",  "Zh==", "Zm9=",     "====", "=",
                                      "Z===", "Zm9v\n", "Zm 9", "Zm_-", "Zg==Zg==", "Z=9v"};
    struct buf got;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (decode(bad[i], &got) != -EINVAL)
            fail_msg("%s was taken", bad[i]);
        buf_finish(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decodes), cmocka_unit_test(refuses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
