/* SPDX-License-Identifier: Apache-2.0 */
/* base/dotted: what is a module's name. */
#include "base/dotted.h"

#include <string.h>

#include "tests/unit/cmocka_all.h"

static void test_names(void **state)
{
    static const char *const good[] = {"a",      "_", "json", "xml.etree.ElementTree",
                                       "a1.b_2", "A"};
    static const char *const bad[] = {
        "",    ".",   "a.",  ".a",          "a..b", "1a",   "a.1", "a b",   "a\n",
        "a-b", "a/b", "a+b", "caf\xc3\xa9", "a;b",  "a.b.", "*",   "a\x7f", " a"};
    char text[DOTTED_NAME_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(dotted_is_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(dotted_is_name(bad[i], strlen(bad[i])));
    assert_false(dotted_is_name("a\0b", 3));
    assert_true(dotted_is_name("ab+", 2));
    memset(text, 'a', sizeof(text));
    assert_true(dotted_is_name(text, DOTTED_NAME_MAX));
    assert_false(dotted_is_name(text, DOTTED_NAME_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
