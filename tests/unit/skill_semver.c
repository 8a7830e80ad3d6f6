/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of versions as npm reads them, and what is none. */
#include "api/skill/semver.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

static void test_ranges(void **state)
{
    static const struct {
        const char *range, *version;
        int has;
    } cases[] = {
        {"1.2.3", "1.2.3", 1},
        {"1.2.3", "1.2.4", 0},
        {"=v1.2.3", "1.2.3", 1},
        {"1.2", "1.2.9", 1},
        {"1.2", "1.3.0", 0},
        {"1", "1.9.9", 1},
        {"1.x", "2.0.0", 0},
        {"1.*.*", "1.4.0", 1},
        {"*", "0.0.1", 1},
        {"", "3.2.1", 1},
        {"  ", "3.2.1", 1},
        {"^12.0.0", "4.2.3", 0},
        {"^1.2.3", "1.2.2", 0},
        {"^1.2.3", "1.9.0", 1},
        {"^1.2.3", "2.0.0", 0},
        {"^0.2.3", "0.2.9", 1},
        {"^0.2.3", "0.3.0", 0},
        {"^0.0.3", "0.0.4", 0},
        {"^0.0", "0.0.9", 1},
        {"^0", "0.9.0", 1},
        {"^0", "1.0.0", 0},
        {"~1.2.3", "1.2.9", 1},
        {"~1.2.3", "1.3.0", 0},
        {"~> 1.2", "1.2.0", 1},
        {"~1", "1.9.0", 1},
        {">=20", "18.20.4", 0},
        {">=20", "20.0.0", 1},
        {">= 18.12.1", "18.20.4", 1},
        {">18", "18.20.4", 0},
        {">17", "18.0.0", 1},
        {">18.20", "18.20.4", 0},
        {"<19", "18.20.4", 1},
        {"<18", "18.0.0", 0},
        {"<=18", "18.20.4", 1},
        {"<=18.20.3", "18.20.4", 0},
        {">*", "1.0.0", 0},
        {"<*", "1.0.0", 0},
        {">=1.2 <2", "1.9.9", 1},
        {">=1.2 <2", "2.0.0", 0},
        {"^16 || ^18 || >=20", "18.1.0", 1},
        {"^16 || ^18 || >=20", "19.1.0", 0},
        {"^16||>=20", "20.1.0", 1},
        {"1.2 - 1.4", "1.4.9", 1},
        {"1.2.3 - 1.4.0", "1.4.1", 0},
        {"1.2.3 - 1.4.0", "1.2.2", 0},
        /* A pre-release is for those who name one of that version. */
        {"^1.2.3", "1.3.0-rc.1", 0},
        {"^1.3.0-beta", "1.3.0-rc.1", 1},
        {">=1.3.0-rc.2", "1.3.0-rc.10", 1},
        {">=1.3.0-rc.10", "1.3.0-rc.2", 0},
        {">=1.3.0-1", "1.3.0-a", 1},
        {"1.3.0-a", "1.3.0-a.1", 0},
        {"^1.3.0-beta", "1.3.0", 1},
        {"*", "1.0.0-rc", 0},
        {"1.2.3+build.5", "1.2.3+other", 1},
        /* None. */
        {"latest", "1.0.0", -EINVAL},
        {"npm:other@^1.0.0", "1.0.0", -EINVAL},
        {"workspace:*", "1.0.0", -EINVAL},
        {"file:../x", "1.0.0", -EINVAL},
        {"git+https://example.com/x.git", "1.0.0", -EINVAL},
        {"someone/x#v1", "1.0.0", -EINVAL},
        {"1.2.3.4", "1.2.3", -EINVAL},
        {"1.2.3-", "1.2.3", -EINVAL},
        {">=", "1.2.3", -EINVAL},
        {"^", "1.2.3", -EINVAL},
        {"1 | 2", "1.2.3", -EINVAL},
        {"||x||y", "1.2.3", -EINVAL},
        {"1.99999999999999999999", "1.2.3", -EINVAL},
        {"1.x", "1.2", -EINVAL},
        {"1.x", "v", -EINVAL},
        {"1.x", "", -EINVAL},
        {"1.x", "1.2.3 ", -EINVAL},
    };
    char many[SEMVER_TEXT_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (semver_has(cases[i].range, cases[i].version) != cases[i].has)
            fail_msg("\"%s\" of %s: %d", cases[i].range, cases[i].version,
                     semver_has(cases[i].range, cases[i].version));
    memset(many, ' ', sizeof(many));
    many[SEMVER_TEXT_MAX] = '\0';
    assert_int_equal(semver_has(many, "1.0.0"), 1);
    many[SEMVER_TEXT_MAX] = ' ';
    many[SEMVER_TEXT_MAX + 1] = '\0';
    assert_int_equal(semver_has(many, "1.0.0"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
