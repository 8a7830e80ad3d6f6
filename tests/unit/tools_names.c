/* SPDX-License-Identifier: Apache-2.0 */
/* What tools are called: valid everywhere, different from each other, always the same. */
#include "tests/unit/cmocka_all.h"

#include "api/tools/tool_names.h"

#include <stdio.h>
#include <string.h>

#define MANY 300u

static void expect_valid(const char *name)
{
    assert_in_range(strlen(name), 1, 64);
    for (const char *c = name; *c; c++)
        assert_non_null(
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *c));
}

static void plain_names(void **state)
{
    const struct tool_identity tools[] = {
        {"word-counter", NULL},      {"pdf", "scripts/merge.py"}, {"pdf", "split.sh"},
        {"pdf", "scripts/a/b c.py"}, {"Caf\xc3\xa9 1.0", NULL},   {"pdf", "noext"},
    };
    char names[6][TOOL_NAME_SIZE];

    (void)state;
    assert_int_equal(tool_names_assign(tools, 6, names), 0);
    assert_string_equal(names[0], "word-counter");
    assert_string_equal(names[1], "pdf__merge");
    assert_string_equal(names[2], "pdf__split");
    assert_string_equal(names[3], "pdf__a_b_c");
    assert_string_equal(names[4], "Caf__1_0");
    assert_string_equal(names[5], "pdf__noext");
}

static void alike_names_part(void **state)
{
    const struct tool_identity tools[] = {
        {"a b", NULL},   {"a_b", NULL},    {"a.b", NULL}, {"x", "scripts/run.py"},
        {"x", "run.sh"}, {"x__run", NULL}, {"y", "r.py"}, {"y", "scripts/r.py"},
    };
    char names[8][TOOL_NAME_SIZE];

    (void)state;
    assert_int_equal(tool_names_assign(tools, 8, names), 0);
    /* The skill whose very name it is keeps it. */
    assert_string_equal(names[1], "a_b");
    assert_string_equal(names[5], "x__run");
    assert_int_equal(strncmp(names[0], "a_b_", 4), 0);
    assert_int_equal(strlen(names[0]), 12);
    for (size_t i = 0; i < 8; i++) {
        expect_valid(names[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
}

/* The tool that runs code has it. */
static void nobody_is_called_run_code(void **state)
{
    const struct tool_identity tools[] = {
        {"run_code", NULL}, {"run code", NULL}, {"run", NULL}};
    char names[3][TOOL_NAME_SIZE];

    (void)state;
    assert_int_equal(tool_names_assign(tools, 3, names), 0);
    assert_int_equal(strncmp(names[0], "run_code_", 9), 0);
    assert_int_equal(strncmp(names[1], "run_code_", 9), 0);
    assert_string_not_equal(names[0], names[1]);
    assert_string_equal(names[2], "run");
}

static void some_names_are_taken(void **state)
{
    const struct tool_identity tools[] = {{"list_skills", NULL}, {"get_skill", "info.py"}};
    char names[2][TOOL_NAME_SIZE];

    (void)state;
    assert_int_equal(tool_names_assign(tools, 2, names), 0);
    assert_int_equal(strncmp(names[0], "list_skills_", 12), 0);
    assert_string_equal(names[1], "get_skill__info");
}

static void order_does_not_matter(void **state)
{
    const struct tool_identity one[] = {
        {"a b", NULL}, {"a.b", NULL}, {"c", "x.py"}, {"c", "x.sh"}};
    const struct tool_identity two[] = {
        {"c", "x.sh"}, {"a.b", NULL}, {"c", "x.py"}, {"a b", NULL}};
    char first[4][TOOL_NAME_SIZE], second[4][TOOL_NAME_SIZE];

    (void)state;
    assert_int_equal(tool_names_assign(one, 4, first), 0);
    assert_int_equal(tool_names_assign(two, 4, second), 0);
    assert_string_equal(first[0], second[3]);
    assert_string_equal(first[1], second[1]);
    assert_string_equal(first[2], second[2]);
    assert_string_equal(first[3], second[0]);
}

static void long_names_are_cut(void **state)
{
    char longs[3][300];
    struct tool_identity tools[3];
    char names[3][TOOL_NAME_SIZE];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        memset(longs[i], 'n', 255);
        longs[i][255] = '\0';
        longs[i][254] = (char)('a' + i);
        tools[i] = (struct tool_identity){longs[i], NULL};
    }
    longs[2][64] = '\0';
    assert_int_equal(tool_names_assign(tools, 3, names), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(strlen(names[i]), 64);
    assert_string_not_equal(names[0], names[1]);
    assert_string_equal(names[2], longs[2]);
}

static void a_name_that_takes_anothers_digest(void **state)
{
    struct tool_identity tools[] = {{"p q", NULL}, {"p.q", NULL}, {NULL, NULL}};
    char names[3][TOOL_NAME_SIZE], taken[TOOL_NAME_SIZE];

    (void)state;
    assert_int_equal(tool_names_assign(tools, 2, names), 0);
    memcpy(taken, names[0], sizeof(taken));
    tools[2].skill = taken;
    assert_int_equal(tool_names_assign(tools, 3, names), 0);
    assert_string_equal(names[2], taken);
    assert_string_not_equal(names[0], taken);
    assert_int_equal(strncmp(names[0], "p_q_", 4), 0);
}

static void nameless_and_many(void **state)
{
    static char skills[MANY][32], names[MANY][TOOL_NAME_SIZE];
    static struct tool_identity tools[MANY];

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(skills[i], sizeof(skills[i]), "s%c%u", i % 2 ? '.' : ' ', i / 2);
        tools[i].skill = skills[i];
    }
    assert_int_equal(tool_names_assign(tools, MANY, names), 0);
    for (unsigned i = 1; i < MANY; i++) {
        expect_valid(names[i]);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
    assert_int_equal(tool_names_assign(tools, 0, names), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names),
        cmocka_unit_test(alike_names_part),
        cmocka_unit_test(nobody_is_called_run_code),
        cmocka_unit_test(some_names_are_taken),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(a_name_that_takes_anothers_digest),
        cmocka_unit_test(nameless_and_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
