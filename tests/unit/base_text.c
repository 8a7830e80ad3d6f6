/* SPDX-License-Identifier: Apache-2.0 */
/* Ends and words of texts. */
#include "tests/unit/cmocka_all.h"

#include "base/text.h"

#include <string.h>

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

static void begins_with(void **state)
{
    (void)state;
    assert_true(text_begins_with((struct text_span){"--- a", 3}, "---"));
    assert_true(text_begins_with((struct text_span){"a", 0}, ""));
    assert_false(text_begins_with((struct text_span){"---", 2}, "---"));
    assert_false(text_begins_with((struct text_span){"-- -", 4}, "---"));
}

static void copies(void **state)
{
    char out[4];

    (void)state;
    assert_true(text_copy(out, sizeof(out), "abc"));
    assert_string_equal(out, "abc");
    assert_false(text_copy(out, sizeof(out), "defg"));
    assert_string_equal(out, "def");
    assert_true(text_copy(out, sizeof(out), NULL));
    assert_string_equal(out, "");
}

static void plain(void **state)
{
    (void)state;
    assert_true(text_is_plain(""));
    assert_true(text_is_plain("a ~\xc3\xa4"));
    assert_false(text_is_plain("a\tb"));
    assert_false(text_is_plain("a\x1b[2J"));
    assert_false(text_is_plain("a\x7f"));
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

static void lines(void **state)
{
    static const char text[] = "one\r\n\ntwo\r three\n  last";
    static const char *const want[] = {"one", "", "two\r three", "  last"};
    struct text_span rest = {text, sizeof(text) - 1}, line;

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_true(text_take_line(&rest, &line));
        assert_int_equal(line.len, strlen(want[i]));
        assert_memory_equal(line.text, want[i], line.len);
    }
    assert_false(text_take_line(&rest, &line));
    assert_int_equal(line.len, 0);
    /* The end of a line is none of another. */
    rest = (struct text_span){"a\r\n", 3};
    assert_true(text_take_line(&rest, &line));
    assert_int_equal(line.len, 1);
    assert_false(text_take_line(&rest, &line));
    rest = (struct text_span){NULL, 0};
    assert_false(text_take_line(&rest, &line));
}

static void ends_are_trimmed(void **state)
{
    struct text_span span = text_trim((struct text_span){" \t a b\0 \t", 9}, " \t");

    (void)state;
    assert_int_equal(span.len, 4);
    assert_memory_equal(span.text, "a b\0", 4);
    assert_int_equal(text_trim((struct text_span){"  ", 2}, " ").len, 0);
}

static void numbers(void **state)
{
    static const char text[] = "oom_kills 7\nlow 0\noom_kill 12\nmax\nend 3";
    uint64_t n = 99;

    (void)state;
    assert_true(text_find_number(text, "oom_kill", &n));
    assert_int_equal(n, 12);
    assert_true(text_find_number(text, "low", &n));
    assert_int_equal(n, 0);
    assert_true(text_find_number(text, "end", &n));
    assert_int_equal(n, 3);
    assert_false(text_find_number(text, "max", &n));
    assert_false(text_find_number(text, "kill", &n));
    assert_false(text_find_number("", "low", &n));
    assert_int_equal(n, 3);
}

/* Nodes of other versions know groups and snapshots by it: the values are FNV-1a's own. */
static void hashes(void **state)
{
    (void)state;
    assert_true(text_hash(TEXT_HASH, "", 0) == 0xcbf29ce484222325u);
    assert_true(text_hash(TEXT_HASH, "a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(text_hash(TEXT_HASH, "foobar", 6) == 0x85944171f73967e8u);
    assert_true(text_hash(text_hash(TEXT_HASH, "foo", 3), "bar", 3) == 0x85944171f73967e8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),    cmocka_unit_test(begins_with),
        cmocka_unit_test(copies),  cmocka_unit_test(plain),
        cmocka_unit_test(words),   cmocka_unit_test(lines),
        cmocka_unit_test(numbers), cmocka_unit_test(ends_are_trimmed),
        cmocka_unit_test(hashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
