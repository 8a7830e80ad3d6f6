/* SPDX-License-Identifier: Apache-2.0 */
/* Skills as changes of a cluster, each made before the next one is worked out. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry_skill_plan.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct registry_skill skill(const char *version, const char *digest, bool is_floating)
{
    return (struct registry_skill){.name = "x",
                                   .version = version,
                                   .digest = digest,
                                   .description = "d",
                                   .bytes = 100,
                                   .is_floating = is_floating};
}

static int give(const void *ctx, size_t at, struct change *ret)
{
    ret[0] = ((const struct change *)ctx)[at];
    return 0;
}

/* As a node makes what came. */
static unsigned make(struct registry *registry, const struct change *changes, size_t n)
{
    const struct change_place place = {.bucket = "b", .revision = 1, .noted_ns = 7};
    unsigned conflicts = 99;

    assert_int_equal(
        registry_changes_make(registry, n, give, changes, &place, &conflicts, NULL), 0);
    return conflicts;
}

static int plan(struct registry *registry, const struct registry_skill *wanted, bool replace,
                char previous[CHANGE_DIGEST_SIZE])
{
    static struct change change;
    struct err err = {0};
    int r =
        registry_skill_plan(registry, TENANT_DEFAULT, wanted, replace, &change, previous, &err);

    if (r >= 0)
        assert_int_equal(make(registry, &change, 1), 0);
    else if (r != -EALREADY)
        assert_true(err.code != 0);
    return r;
}

static void expect_latest(struct registry *registry, const char *version, const char *digest)
{
    _cleanup_registry_skill_ struct registry_skill row = {0};
    bool known;

    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", NULL, &row, &known, NULL), 0);
    assert_string_equal(row.version, version);
    assert_string_equal(row.digest, digest);
}

static bool has_version(struct registry *registry, const char *version)
{
    struct registry_skill row = {0};
    bool known, there = registry_skill_get(registry, TENANT_DEFAULT, "x", version, &row, &known,
                                           NULL) == 0 &&
                        strcmp(row.version, version) == 0;

    registry_skill_finish(&row);
    return there;
}

static void a_version_is_one_change(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct registry_skill one = skill("1", DIGEST_A, false);
    const struct registry_skill other = skill("1", DIGEST_B, false);
    const struct registry_skill older = skill("0.9", DIGEST_B, false);
    char previous[CHANGE_DIGEST_SIZE];
    struct change change;

    assert_int_equal(plan(registry, &one, false, previous), 0);
    assert_string_equal(previous, "");
    assert_int_equal(plan(registry, &one, false, previous), -EALREADY);
    assert_int_equal(plan(registry, &other, false, previous), -EEXIST);
    assert_int_equal(plan(registry, &older, false, previous), 0);
    expect_latest(registry, "0.9", DIGEST_B);
    assert_int_equal(plan(registry, &other, true, previous), 0);
    assert_string_equal(previous, DIGEST_A);
    expect_latest(registry, "1", DIGEST_B);
    /* One that was replaced since it was looked up stays. */
    assert_int_equal(registry_skill_plan_delete(registry, TENANT_DEFAULT, &one, &change, NULL),
                     -ENOENT);
    assert_int_equal(
        registry_skill_plan_delete(registry, TENANT_DEFAULT, &other, &change, NULL), 0);
    assert_int_equal(make(registry, &change, 1), 0);
    expect_latest(registry, "0.9", DIGEST_B);
    registry_close(registry);
}

/* What it takes the place of is set aside first, and taken away where it is back. */
static void what_floats_is_several(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct registry_skill one = skill("1", DIGEST_A, true);
    const struct registry_skill other = skill("1", DIGEST_B, true);
    char previous[CHANGE_DIGEST_SIZE];

    assert_int_equal(plan(registry, &one, false, previous), 0);
    assert_int_equal(plan(registry, &other, false, previous), 1);
    /* After the first alone nothing is missing. */
    assert_true(has_version(registry, "1"));
    assert_true(has_version(registry, "sha256:" DIGEST_A));
    assert_int_equal(plan(registry, &other, false, previous), 0);
    assert_string_equal(previous, DIGEST_A);
    expect_latest(registry, "1", DIGEST_B);
    assert_int_equal(plan(registry, &other, false, previous), -EALREADY);
    assert_int_equal(plan(registry, &one, false, previous), 1);
    assert_int_equal(plan(registry, &one, false, previous), 0);
    assert_int_equal(plan(registry, &one, false, previous), 1);
    assert_false(has_version(registry, "sha256:" DIGEST_A));
    assert_int_equal(plan(registry, &one, false, previous), -EALREADY);
    expect_latest(registry, "1", DIGEST_A);
    registry_close(registry);
}

static void what_is_in_use_is_not_replaced(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct registry_skill one = skill("1", DIGEST_A, false);
    const struct registry_skill other = skill("1", DIGEST_B, false);
    const struct registry_execution running = {.id = "exec_0123456789abcdef0123456789abcdef",
                                               .status = "pending",
                                               .skill_name = "x",
                                               .skill_version = "1",
                                               .skill_digest = DIGEST_A,
                                               .accepted_ns = 1};
    char previous[CHANGE_DIGEST_SIZE];

    assert_int_equal(plan(registry, &one, false, previous), 0);
    assert_int_equal(registry_execution_accept(registry, TENANT_DEFAULT, &running, NULL), 0);
    assert_int_equal(plan(registry, &other, true, previous), -EEXIST);
    expect_latest(registry, "1", DIGEST_A);
    registry_close(registry);
}

static void packages_and_description_have_to_fit(void **state)
{
    struct registry *registry = open_registry(*state);
    char description[CHANGE_DESCRIPTION_SIZE + 1];
    struct err err = {0};
    char packages[CHANGE_PACKAGES_SIZE + 1], previous[CHANGE_DIGEST_SIZE];
    struct registry_skill one = skill("1", DIGEST_A, false);
    struct change change;

    memset(packages, ' ', sizeof(packages) - 1);
    packages[0] = '[';
    packages[sizeof(packages) - 2] = ']';
    packages[sizeof(packages) - 1] = '\0';
    one.packages = packages;
    assert_int_equal(plan(registry, &one, false, previous), -E2BIG);
    packages[sizeof(packages) - 2] = '\0';
    packages[sizeof(packages) - 3] = ']';
    assert_int_equal(plan(registry, &one, false, previous), 0);
    assert_int_equal(registry_change_after(registry, CHANGE_SKILL, "", &change, NULL), 0);
    assert_string_equal(change.skill.packages, packages);
    memset(description, 'd', sizeof(description) - 1);
    description[sizeof(description) - 1] = '\0';
    one = skill("2", DIGEST_A, false);
    one.description = description;
    assert_int_equal(
        registry_skill_plan(registry, TENANT_DEFAULT, &one, false, &change, previous, &err),
        -E2BIG);
    assert_non_null(strstr(err.message, "the description is too long"));
    registry_close(registry);
}

/* Versions that went round between two states are made together. */
static void versions_may_go_round(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct registry_skill one = skill("1", DIGEST_A, false);
    const struct registry_skill other = skill("2", DIGEST_B, false);
    struct change swapped[2], before;
    char previous[CHANGE_DIGEST_SIZE];
    struct registry_naming naming = {0};
    uint64_t bytes = 0;

    assert_int_equal(plan(registry, &one, false, previous), 0);
    assert_int_equal(plan(registry, &other, false, previous), 0);
    assert_int_equal(registry_change_after(registry, CHANGE_SKILL, "", &swapped[0], NULL), 0);
    assert_int_equal(
        registry_change_after(registry, CHANGE_SKILL, swapped[0].id, &swapped[1], NULL), 0);
    before = swapped[0];
    memcpy(swapped[0].skill.version, swapped[1].skill.version, CHANGE_VERSION_SIZE);
    memcpy(swapped[1].skill.version, before.skill.version, CHANGE_VERSION_SIZE);
    assert_int_equal(make(registry, swapped, 2), 0);
    assert_int_equal(registry_change_of(registry, CHANGE_SKILL, swapped[0].id, &before, NULL),
                     0);
    assert_memory_equal(&before.skill, &swapped[0].skill, sizeof(before.skill));
    /* Two of one version contradict each other; one of a tenant that is not there is none. */
    memcpy(swapped[1].skill.version, swapped[0].skill.version, CHANGE_VERSION_SIZE);
    assert_int_equal(make(registry, swapped, 2), 1);
    (void)strcpy(swapped[1].skill.tenant, "ten_0123456789abcdef0123456789abcdef");
    assert_int_equal(make(registry, swapped, 2), 0);
    assert_int_equal(registry_change_of(registry, CHANGE_SKILL, swapped[1].id, &before, NULL),
                     -ENOENT);
    assert_int_equal(registry_object_bytes(registry, swapped[0].skill.digest, &bytes, NULL), 0);
    assert_int_equal(bytes, 100);
    assert_int_equal(registry_object_naming(registry, swapped[0].skill.digest, &naming, NULL),
                     0);
    assert_true(naming.by_changes);
    assert_int_equal(registry_object_naming(registry, swapped[1].skill.digest, &naming, NULL),
                     0);
    assert_false(naming.by_changes || naming.by_executions);
    registry_close(registry);
}

static void number(unsigned n, char ret[CHANGE_ID_SIZE])
{
    (void)snprintf(ret, CHANGE_ID_SIZE, "skl_%032u", n);
}

/* The id that the next row has, which is made. */
static void expect_number(struct registry *registry, const char *version, unsigned n)
{
    const struct registry_skill wanted = skill(version, DIGEST_A, false);
    char previous[CHANGE_DIGEST_SIZE], id[CHANGE_ID_SIZE];
    struct change change;

    number(n, id);
    assert_int_equal(
        registry_skill_plan(registry, TENANT_DEFAULT, &wanted, false, &change, previous, NULL),
        0);
    assert_string_equal(change.id, id);
    assert_int_equal(make(registry, &change, 1), 0);
}

static void forget(struct registry *registry, unsigned n)
{
    struct change gone = {.kind = CHANGE_SKILL, .is_removed = true};

    number(n, gone.id);
    assert_int_equal(make(registry, &gone, 1), 0);
}

/* The servers keep something of each id for ever: one that was used is used again. */
static void a_place_is_used_again(void **state)
{
    struct registry *registry = open_registry(*state);
    struct change odd = {.kind = CHANGE_SKILL, .id = "skl_0000000000000000000000000000000a"};

    expect_number(registry, "1", 0);
    expect_number(registry, "2", 1);
    expect_number(registry, "3", 2);
    /* As rows of before have them, or somebody else wrote. */
    (void)strcpy(odd.skill.tenant, TENANT_DEFAULT);
    (void)strcpy(odd.skill.name, "odd");
    (void)strcpy(odd.skill.version, "1");
    (void)strcpy(odd.skill.digest, DIGEST_B);
    assert_int_equal(make(registry, &odd, 1), 0);
    expect_number(registry, "4", 3);
    forget(registry, 1);
    forget(registry, 0);
    expect_number(registry, "5", 0);
    expect_number(registry, "6", 1);
    expect_number(registry, "7", 4);
    assert_true(has_version(registry, "3"));
    assert_false(has_version(registry, "1"));
    for (unsigned i = 5; i < 13; i++) {
        char version[16];

        (void)snprintf(version, sizeof(version), "%u.0", i);
        expect_number(registry, version, i);
    }
    forget(registry, 11);
    expect_number(registry, "20", 11);
    /* Beside what is no number a place may be missed, and none is taken that is another's. */
    forget(registry, 8);
    expect_number(registry, "21", 13);
    registry_close(registry);
}

/* About what entries take, never much less. */
static void rows_are_counted(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_skill wanted = skill("1", DIGEST_A, false);
    char previous[CHANGE_DIGEST_SIZE], text[201];
    uint64_t none = 9, one = 0, two = 0;

    assert_int_equal(registry_owned_rows_bytes(registry, TENANT_DEFAULT, &none, NULL), 0);
    assert_int_equal(none, 0);
    assert_int_equal(plan(registry, &wanted, false, previous), 0);
    assert_int_equal(registry_owned_rows_bytes(registry, TENANT_DEFAULT, &one, NULL), 0);
    /* Each of these takes two bytes in JSON. */
    memset(text, '"', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    wanted.version = "2";
    wanted.description = text;
    assert_int_equal(plan(registry, &wanted, false, previous), 0);
    assert_int_equal(registry_owned_rows_bytes(registry, TENANT_DEFAULT, &two, NULL), 0);
    assert_int_equal(two - one - one, 2 * strlen(text) - strlen("d"));
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_version_is_one_change),
        IN_DIR(what_floats_is_several),
        IN_DIR(what_is_in_use_is_not_replaced),
        IN_DIR(packages_and_description_have_to_fit),
        IN_DIR(versions_may_go_round),
        IN_DIR(a_place_is_used_again),
        IN_DIR(rows_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
