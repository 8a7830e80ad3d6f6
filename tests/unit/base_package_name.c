/* SPDX-License-Identifier: Apache-2.0 */
/* Names of packages in the one form that they are compared in. */
#include "tests/unit/cmocka_all.h"

#include "base/package_name.h"

#include <errno.h>
#include <string.h>

static void names_get_one_form(void **state)
{
    static const char *const cases[][2] = {
        {"requests", "requests"},
        {"PyYAML", "pyyaml"},
        {"zope.interface", "zope-interface"},
        {"ruamel_.-_yaml", "ruamel-yaml"},
        {"a__B--c", "a-b-c"},
        {"7z", "7z"},
        {"", NULL},
        {"-a", NULL},
        {"a.", NULL},
        {"a b", NULL},
        {"a/b", NULL},
        {"caf\xc3\xa9", NULL},
        {"1234567890123456", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[16] = "";
        int r = package_name_clean(cases[i][0], strlen(cases[i][0]), name, sizeof(name));

        assert_int_equal(r, cases[i][1] ? 0 : -EINVAL);
        if (cases[i][1])
            assert_string_equal(name, cases[i][1]);
    }
}

static void a_nul_is_no_part_of_one(void **state)
{
    char name[16];

    (void)state;
    assert_int_equal(package_name_clean("a\0b", 3, name, sizeof(name)), -EINVAL);
    assert_int_equal(package_name_clean("a-b", 2, name, sizeof(name)), -EINVAL);
    assert_int_equal(package_name_clean("a-b", 1, name, sizeof(name)), 0);
    assert_string_equal(name, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_get_one_form),
        cmocka_unit_test(a_nul_is_no_part_of_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
