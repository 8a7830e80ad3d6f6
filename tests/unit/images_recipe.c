/* SPDX-License-Identifier: Apache-2.0 */
/* images/recipe: what a recipe may say, and that everything else is refused with its line. */
#include "images/recipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cmocka_all.h"

#define BROUGHT "line 4: not \"module NAME\", \"program NAME\" or \"node NAME\""
#define MEMORY  "line 4: memory is one size from 32Mi to 1024Mi, once"
#define HEAD    "name: x\nsuite: bookworm\npackages: [bash]\n"

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
                                    "warm: [sqlite3, xml.etree.ElementTree]\n"
                                    "brings: [module numpy, \"node @kit/core\"]\n"
                                    "memory: 32Mi\n",
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
    assert_int_equal(r.brings.len, 2);
    assert_string_equal(r.memory, "32Mi");
    assert_string_equal(r.brings.items[1].path, "node @kit/core");

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
        {"suite: y\n", "name is needed, and with packages suite or extends is too"},
        {"name: x\npackages: [y]\n",
         "name is needed, and with packages suite or extends is too"},
        {HEAD "pakages: [a]\n",
         "line 4: there is no key \"pakages\": a recipe has name, suite, extends, memory, "
         "packages, drop, keep, compile_python, warm, brings, directories, links, files, "
         "inputs"},
        {HEAD "[a]: b\n",
         "line 4: there is no key \"\": a recipe has name, suite, extends, memory, packages, "
         "drop, keep, compile_python, warm, brings, directories, links, files, inputs"},
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
        {HEAD "brings: [numpy]\n", BROUGHT},
        {HEAD "brings: [\"module \"]\n", BROUGHT},
        {HEAD "brings: [language python 3.11]\n", BROUGHT},
        {HEAD "brings: [\"program a\\nprogram b\"]\n", BROUGHT},
        {HEAD "memory: 31Mi\n", MEMORY},
        {HEAD "memory: 1025Mi\n", MEMORY},
        {HEAD "memory: 512\n", MEMORY},
        {HEAD "memory: -512Mi\n", MEMORY},
        {HEAD "memory: 0512Mi\n", MEMORY},
        {HEAD "memory: 18446744073709552128Mi\n", MEMORY},
        {HEAD "memory: 512MiB\n", MEMORY},
        {HEAD "memory: Mi\n", MEMORY},
        {HEAD "memory: [512Mi]\n", MEMORY},
        {HEAD "memory: 64Mi\nmemory: 512Mi\n",
         "line 5: memory is one size from 32Mi to 1024Mi, once"},
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
    assert_int_equal(recipe_load(path, NULL, &r, &err), 0);
    assert_string_equal(r.name, "python");
    assert_true(recipe_wants(&r, "usr/share/doc/python3/copyright"));
    assert_true(recipe_wants(&r, "usr/bin/python3.11"));
    assert_false(recipe_wants(&r, "usr/bin/dpkg-query"));
    recipe_finish(&r);
    assert_true(snprintf(path, sizeof(path), "%s/images/data.yaml", source) > 0);
    assert_int_equal(recipe_load(path, NULL, &r, &err), 0);
    assert_string_equal(r.name, "data");
    assert_string_equal(r.suite, "bookworm");
    assert_string_equal(r.packages.items[0].path, "python3");
    assert_int_equal(r.sources.len, 2);
    assert_string_equal(r.memory, "512Mi");
    assert_true(recipe_wants(&r, "usr/bin/dot"));
    recipe_finish(&r);
    assert_true(snprintf(path, sizeof(path), "%s/images/office.yaml", source) > 0);
    assert_int_equal(recipe_load(path, NULL, &r, &err), 0);
    assert_string_equal(r.name, "office");
    assert_int_equal(r.sources.len, 3);
    assert_string_equal(r.memory, "768Mi");
    /* In place of what is dropped there is a link. */
    assert_false(recipe_wants(&r, "etc/libreoffice/registry"));
    assert_true(recipe_wants(&r, "usr/lib/libreoffice/share/.registry/main.xcd"));
    assert_true(recipe_wants(&r, "usr/lib/libreoffice/program/soffice.bin"));
    recipe_finish(&r);
}

static void write_recipe(const char *dir, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* One that extends another has that one's items, and then its own. */
static void test_a_recipe_extends_another(void **state)
{
    char dir[] = "/tmp/skillvm-unit.XXXXXX", path[64], command[128];
    struct recipe r = {0};
    struct err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_recipe(dir, "a.yaml",
                 HEAD "drop: [usr/share/doc]\nlinks: {bin: usr/bin}\nmemory: 64Mi\n");
    write_recipe(dir, "b.yaml",
                 "name: b\nextends: a.yaml\npackages: [jq]\nkeep: [usr/share/doc/jq]\n");
    snprintf(path, sizeof(path), "%s/b.yaml", dir);
    assert_int_equal(recipe_load(path, NULL, &r, &err), 0);
    assert_string_equal(r.name, "b");
    assert_string_equal(r.suite, "bookworm");
    assert_int_equal(r.packages.len, 2);
    assert_string_equal(r.packages.items[0].path, "bash");
    assert_string_equal(r.packages.items[1].path, "jq");
    assert_int_equal(r.links.len, 1);
    assert_true(recipe_wants(&r, "usr/share/doc/jq/x"));
    assert_false(recipe_wants(&r, "usr/share/doc/bash/x"));
    assert_string_equal(r.sources.items[1].path, path);
    assert_string_equal(r.memory, "64Mi");
    recipe_finish(&r);
    write_recipe(dir, "b.yaml", "name: b\nextends: b.yaml\n");
    assert_int_equal(recipe_load(path, NULL, &r, &err), -EINVAL);
    assert_non_null(strstr(err.message, "/b.yaml: too many recipes extend one another"));
    assert_null(r.name);
    write_recipe(dir, "b.yaml", "name: b\nextends: ../a.yaml\n");
    err = (struct err){0};
    assert_int_equal(recipe_load(path, NULL, &r, &err), -EINVAL);
    assert_non_null(strstr(err.message, "/b.yaml: line 2: needs one plain word, once"));
    write_recipe(dir, "b.yaml", "name: b\nextends: c.yaml\n");
    err = (struct err){0};
    assert_int_equal(recipe_load(path, NULL, &r, &err), -ENOENT);
    assert_non_null(strstr(err.message, "/c.yaml: "));
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_a_recipe_may_say),
        cmocka_unit_test(test_refusals_say_where),
        cmocka_unit_test(test_the_recipes_in_the_tree),
        cmocka_unit_test(test_a_recipe_extends_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
