/* SPDX-License-Identifier: Apache-2.0 */
/* images/recipe: what a recipe may say, and that everything else is refused with its line. */
#include "images/recipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

#define HEAD "name: x\nsuite: bookworm\npackages: [bash]\n"

static int read_text(const char *text, struct recipe *recipe, struct err *err)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    rewind(file);
    int rc = recipe_read(file, recipe, err);
    fclose(file);
    return rc;
}

static void test_everything_a_recipe_may_say(void **state)
{
    struct recipe r;
    struct err err = {0};

    (void)state;
    assert_int_equal(read_text(HEAD "drop:\n  - usr/share/doc\n  - usr/bin/dpkg*\n"
                                    "keep: [usr/share/doc/*/copyright]\n"
                                    "directories: {proc: \"0555\", tmp: \"1777\"}\n"
                                    "links: {bin: usr/bin}\n"
                                    "files:\n  etc/a: |\n    one\n    two\n  etc/b: \"\"\n"
                                    "inputs:\n  sbin/i: {from: init, mode: \"0755\"}\n"
                                    "compile_python: [usr/lib/python3.11]\n"
                                    "warm: [sqlite3, xml.etree.ElementTree]\n",
                               &r, &err),
                     0);
    assert_string_equal(r.name, "x");
    assert_string_equal(r.suite, "bookworm");
    assert_int_equal(r.packages.len, 1);
    assert_string_equal(r.packages.items[0].path, "bash");
    assert_int_equal(r.directories.len, 2);
    assert_int_equal(r.directories.items[1].mode, 01777);
    assert_string_equal(r.links.items[0].value, "usr/bin");
    assert_string_equal(r.files.items[0].value, "one\ntwo\n");
    assert_int_equal(r.files.items[0].mode, 0644);
    assert_string_equal(r.files.items[1].value, "");
    assert_string_equal(r.inputs.items[0].value, "init");
    assert_int_equal(r.inputs.items[0].mode, 0755);
    assert_int_equal(r.warm.len, 2);
    assert_string_equal(r.warm.items[1].path, "xml.etree.ElementTree");

    assert_false(recipe_wants(&r, "usr/share/doc"));
    assert_false(recipe_wants(&r, "usr/share/doc/bash/README"));
    assert_true(recipe_wants(&r, "usr/share/doc/bash/copyright"));
    assert_true(recipe_wants(&r, "usr/share/docs"));
    assert_false(recipe_wants(&r, "usr/bin/dpkg-deb"));
    assert_true(recipe_wants(&r, "usr/bin/bash"));
    recipe_finish(&r);
    recipe_finish(&r);
}

static void test_refusals_say_where(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "not a mapping"},
        {"- a\n", "not a mapping"},
        {"name: x\nsuite: y\n", "name, suite and packages are needed"},
        {HEAD "pakages: [a]\n", "line 4: unknown key"},
        {HEAD "name: again\n", "line 4: needs one plain word, once"},
        {HEAD "packages: [a]\n", "line 4: the same key twice"},
        {HEAD "drop: {a: b}\n", "line 4: needs a list"},
        {HEAD "links: [a]\n", "line 4: needs a mapping"},
        {HEAD "drop: [/etc]\n", "line 4: not a relative path or name"},
        {HEAD "drop: [a/../b]\n", "line 4: not a relative path or name"},
        {HEAD "drop: [a//b]\n", "line 4: not a relative path or name"},
        {HEAD "drop: [a/]\n", "line 4: not a relative path or name"},
        {HEAD "drop: [[a]]\n", "line 4: not a relative path or name"},
        {HEAD "drop: [\"a\\0b\"]\n", "line 4: not a relative path or name"},
        {HEAD "directories:\n  a: \"755\"\n", "line 5: a mode is four octal digits in quotes"},
        {HEAD "directories:\n  a: \"0798\"\n", "line 5: a mode is four octal digits in quotes"},
        {HEAD "files:\n  a: [b]\n", "line 5: needs a text"},
        {HEAD "warm: {a: b}\n", "line 4: needs a list"},
        {HEAD "warm:\n  - a\n  - a-b\n", "line 6: not a module's name"},
        {HEAD "inputs:\n  a: b\n", "line 5: an input is { from: NAME, mode: \"0755\" }"},
        {HEAD "inputs:\n  a: {mode: \"0755\"}\n", "line 5: an input needs from"},
        {HEAD "inputs:\n  a: {from: b, more: c}\n", "line 5: an input has only from and mode"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct recipe r = {0};
        struct err err = {0};
        assert_int_equal(read_text(cases[i].text, &r, &err), -EINVAL);
        assert_string_equal(err.message, cases[i].message);
        assert_null(r.name);
    }
    struct recipe r = {0};
    struct err err = {0};
    assert_int_equal(read_text(HEAD "drop: [a\n", &r, &err), -EINVAL);
    assert_non_null(strstr(err.message, "line "));
}

static void test_the_recipes_in_the_tree(void **state)
{
    const char *source = getenv("SKILLVM_TEST_SOURCE");
    char path[4096];
    struct recipe r;
    struct err err = {0};

    (void)state;
    if (!source)
        skip();
    assert_true(snprintf(path, sizeof(path), "%s/images/python.yaml", source) > 0);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(recipe_read(file, &r, &err), 0);
    fclose(file);
    assert_string_equal(r.name, "python");
    assert_true(recipe_wants(&r, "usr/share/doc/python3/copyright"));
    assert_true(recipe_wants(&r, "usr/bin/python3.11"));
    assert_false(recipe_wants(&r, "usr/bin/dpkg-query"));
    recipe_finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_a_recipe_may_say),
        cmocka_unit_test(test_refusals_say_where),
        cmocka_unit_test(test_the_recipes_in_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
