/* SPDX-License-Identifier: Apache-2.0 */
/* Links in the archives of strangers: which are taken, and which are refused by which rule. */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/take_archive.h"

#include <errno.h>
#include <stdio.h>

static void hard_links_are_copies(void **state)
{
    static const struct member members[] = {
        {.path = "d/SKILL.md", .content = SKILL_MD},
        {.path = "d/a", .content = "text", .mode = 0755},
        {.path = "d/b", .hard = "d/a"},
        {0},
    };
    static const struct member dangling[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "b", .hard = "../../etc/passwd"},
        {0},
    };
    static const struct member elsewhere[] = {
        {.path = "d/SKILL.md", .content = SKILL_MD},
        {.path = "d/b", .hard = "x"},
        {0},
    };
    struct skill_archive archive = take(TAR, members, -1);
    (void)state;

    assert_int_equal(skill_archive_find(&archive, "b")->size, 4);
    assert_int_equal(skill_archive_find(&archive, "b")->type, ARCHIVE_ENTRY_FILE);
    assert_true(skill_archive_find(&archive, "b")->executable);
    skill_archive_finish(&archive);
    refuse(TAR, dangling, -EINVAL, "\"..\"");
    refuse(TAR, elsewhere, -EINVAL, "hard link");
}

static void refused_links(void **state)
{
    static const struct {
        const char *path;
        const char *target;
    } bad[] = {
        {"l", "/etc/passwd"},  {"l", "../x"},    {"d/l", "../../x"},
        {"d/l", "up/../../x"}, {"l", "d/up/.."}, {"l", "d/up/../.."},
    };
    static const struct member loop[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "a", .link = "b"},
        {.path = "b", .link = "a"},
        {0},
    };
    static const struct member through[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "d", .link = "."},
        {.path = "d/x", .content = "x"},
        {0},
    };
    static const struct member fine[] = {
        {.path = "SKILL.md", .content = SKILL_MD},
        {.path = "d/up", .link = ".."},
        {.path = "l", .link = "d/up/SKILL.md"},
        {.path = "gone", .link = "nothing/here"},
        {0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct member members[] = {
            {.path = "SKILL.md", .content = SKILL_MD},
            {.path = "d/up", .link = ".."},
            {.path = bad[i].path, .link = bad[i].target},
            {0},
        };
        refuse(ZIP, members, -EINVAL, "leaves the skill");
        refuse(TAR, members, -EINVAL, "leaves the skill");
    }
    refuse(TAR, loop, -EINVAL, "circle");
    refuse(TAR, through, -EINVAL, "not a folder");
    struct skill_archive archive = take(ZIP, fine, -1);
    skill_archive_finish(&archive);
}

/* Each leads through all of the chain, by names that are not there: only together too much. */
static void links_that_lead_far_are_refused_together(void **state)
{
    enum { CHAIN = 40, LINKS = 300, DETOURS = 150 };
    static char paths[CHAIN + LINKS][8], targets[CHAIN + LINKS][5 * DETOURS + 16];
    struct member members[1 + CHAIN + LINKS + 1] = {
        {.path = "SKILL.md", .content = SKILL_MD},
    };
    (void)state;

    for (size_t i = 0; i < CHAIN + LINKS; i++) {
        for (size_t k = 0; k < DETOURS; k++)
            strcpy(&targets[i][5 * k], "a/../");
        (void)snprintf(paths[i], sizeof(paths[i]), "L%zu", i);
        (void)snprintf(&targets[i][5 * DETOURS], 16, i + 1 < CHAIN ? "L%zu" : "SKILL.md",
                       i + 1);
        if (i >= CHAIN)
            strcpy(&targets[i][5 * DETOURS], "L0");
        members[1 + i] = (struct member){.path = paths[i], .link = targets[i]};
    }
    refuse(TAR, members, -EFBIG, "links");
    members[1 + CHAIN + LINKS / 3] = (struct member){0};
    struct skill_archive archive = take(TAR, members, -1);
    skill_archive_finish(&archive);
}

/* The same by names that are none, of which each costs little. */
static void links_of_dots_are_refused_together(void **state)
{
    enum { CHAIN = 40, LINKS = 1200, DOTS = 500 };
    static char paths[CHAIN + LINKS][8], targets[CHAIN + LINKS][2 * DOTS + 16];
    static struct member members[1 + CHAIN + LINKS + 1];
    (void)state;

    members[0] = (struct member){.path = "SKILL.md", .content = SKILL_MD};
    for (size_t i = 0; i < CHAIN + LINKS; i++) {
        for (size_t k = 0; k < DOTS; k++)
            strcpy(&targets[i][2 * k], "./");
        (void)snprintf(paths[i], sizeof(paths[i]), "L%zu", i);
        (void)snprintf(&targets[i][2 * DOTS], 16, i + 1 < CHAIN ? "L%zu" : "SKILL.md", i + 1);
        if (i >= CHAIN)
            strcpy(&targets[i][2 * DOTS], "L1");
        members[1 + i] = (struct member){.path = paths[i], .link = targets[i]};
    }
    refuse(TAR, members, -EFBIG, "links");
    members[1 + CHAIN + LINKS / 3] = (struct member){0};
    struct skill_archive archive = take(TAR, members, -1);
    skill_archive_finish(&archive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_links_are_copies),
        cmocka_unit_test(refused_links),
        cmocka_unit_test(links_that_lead_far_are_refused_together),
        cmocka_unit_test(links_of_dots_are_refused_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
