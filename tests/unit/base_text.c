/* SPDX-License-Identifier: Apache-2.0 */
/* Ends and words of texts. */
#include "tests/unit/cmocka_all.h"

#include "base/text.h"

static void ends(void **state)
{
    (void)state;
    assert_true(text_ends_with("a.py", ".py"));
    assert_true(text_ends_with(".py", ".py"));
    assert_true(text_ends_with("a", ""));
    assert_false(text_ends_with("py", ".py"));
    assert_false(text_ends_with("a.py~", ".py"));
    assert_false(text_ends_with("", "a"));
}

static void words(void **state)
{
    (void)state;
    assert_true(text_has_word("a bc d", " ", "bc"));
    assert_true(text_has_word("a bc d", " ", "d"));
    assert_true(text_has_word("a,bc\td", ", \t", "d"));
    assert_true(text_has_word("  a  ", " ", "a"));
    assert_false(text_has_word("a bc d", " ", "b"));
    assert_false(text_has_word("a bc d", " ", "a bc"));
    assert_false(text_has_word("a|b", " ", "a"));
    assert_false(text_has_word("", " ", "a"));
    assert_false(text_has_word("a b", " ", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),
        cmocka_unit_test(words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
