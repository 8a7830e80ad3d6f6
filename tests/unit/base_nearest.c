/* SPDX-License-Identifier: Apache-2.0 */
/* base/nearest: which name a misspelt word stands for. */
#include "base/nearest.h"

#include <string.h>

#include "tests/unit/cmocka_all.h"

static void expect(const char *word, const char *const *names, const char *want)
{
    struct nearest nearest = nearest_init(word);

    while (*names)
        nearest_offer(&nearest, *names++);
    if (!want)
        assert_null(nearest.name);
    else if (!nearest.name || strcmp(nearest.name, want) != 0)
        fail_msg("%s: got %s, expected %s", word, nearest.name ? nearest.name : "none", want);
}

static void test_words(void **state)
{
    static const char *const verbs[] = {"push", "list", "show",    "rm",   "lint",
                                        "init", "test", "package", "tost", NULL};
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"lst", "list"},         {"pus", "push"},       {"puhs", "push"}, {"shwo", "show"},
        {"pakcages", "package"}, {"lint", "lint"},      {"tset", "test"}, {"lynt", "lint"},
        {"linst", "list"},       {"remove", NULL},      {"x", NULL},      {"", NULL},
        {"PUSH", NULL},          {"packa", "package"},  {"ab", NULL},     {"initialise", NULL},
        {"tast", "test"},        {"packag", "package"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(cases[i].word, verbs, cases[i].want);
}

static void test_long(void **state)
{
    char word[NEAREST_NAME_MAX + 2], name[NEAREST_NAME_MAX + 2], hint[NEAREST_HINT_SIZE];
    const char *const names[] = {name, NULL};
    struct nearest nearest;

    (void)state;
    memset(word, 'a', sizeof(word));
    memset(name, 'a', sizeof(name));
    word[NEAREST_NAME_MAX] = name[NEAREST_NAME_MAX] = '\0';
    word[3] = 'b';
    expect(word, names, name);
    nearest = nearest_init(word);
    nearest_offer(&nearest, name);
    assert_int_equal(strlen(nearest_hint(&nearest, hint)),
                     NEAREST_NAME_MAX + strlen("; did you mean \"\"?"));
    word[NEAREST_NAME_MAX] = 'a';
    word[NEAREST_NAME_MAX + 1] = '\0';
    expect(word, names, NULL);
    nearest = nearest_init(word);
    assert_string_equal(nearest_hint(&nearest, hint), "");
    word[NEAREST_NAME_MAX] = '\0';
    name[NEAREST_NAME_MAX] = 'a';
    name[NEAREST_NAME_MAX + 1] = '\0';
    expect(word, names, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_long)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
