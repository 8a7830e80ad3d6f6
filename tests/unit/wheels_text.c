/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, tags, markers, requirements and METADATA, as the specifications' own examples and
 * packages of the index write them. */
#include "api/wheels/metadata.h"
#include "api/wheels/packages.h"
#include "api/wheels/tags.h"
#include "api/wheels/wanted.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pep440 version(const char *text)
{
    struct pep440 v;

    if (pep440_parse(text, strlen(text), &v) < 0)
        fail_msg("%s is no version", text);
    return v;
}

static void versions_have_an_order(void **state)
{
    static const char *const sorted[] = {
        "1.dev0",        "1.0.dev456",    "1.0a1",
        "1.0a2.dev456",  "1.0a12.dev456", "1.0a12",
        "1.0b1.dev456",  "1.0b2",         "1.0b2.post345.dev456",
        "1.0b2.post345", "1.0rc1.dev456", "1.0rc1",
        "1.0",           "1.0+abc.5",     "1.0+abc.7",
        "1.0+5",         "1.0+5.1",       "1.0.post456.dev34",
        "1.0.post456",   "1.1.dev1",      "1.1",
        "1.9",           "1.10",          "2024.1.1",
        "1!0.1"};

    (void)state;
    for (size_t i = 0; i < COUNT(sorted); i++)
        for (size_t j = 0; j < COUNT(sorted); j++) {
            struct pep440 a = version(sorted[i]), b = version(sorted[j]);
            int r = pep440_compare(&a, &b);

            if ((r > 0) != (i > j) || (r < 0) != (i < j))
                fail_msg("%s and %s: %d", sorted[i], sorted[j], r);
        }
}

static void spellings_are_one_version(void **state)
{
    static const char *const same[][2] = {{"1.0", "1.0.0"},
                                          {"1.1a1", "1.1.alpha1"},
                                          {"1.1b2", "1.1-beta_2"},
                                          {"1.1rc3", "1.1.c3"},
                                          {"1.1rc3", "1.1-pre3"},
                                          {"1.1RC3", "1.1preview3"},
                                          {"1.2.post2", "1.2-2"},
                                          {"1.2.post2", "1.2r2"},
                                          {"1.2.post0", "1.2.post"},
                                          {"1.2.dev0", "1.2-dev"},
                                          {"v1.0", "1.0"},
                                          {" 1.0\n", "1.0"},
                                          {"1.0+ubuntu-1", "1.0+ubuntu.1"},
                                          {"1.0a", "1.0a0"},
                                          {"01.02", "1.2"}};
    static const char *const bad[] = {"",
                                      "x",
                                      "1.",
                                      "1..2",
                                      "1.0+",
                                      "1.0+a..b",
                                      "1.0foo",
                                      "1.0 2",
                                      "!1",
                                      "1!",
                                      "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17",
                                      "99999999999999999999",
                                      "1.0-",
                                      "french toast"};
    struct pep440 v;

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++) {
        struct pep440 a = version(same[i][0]), b = version(same[i][1]);

        if (pep440_compare(&a, &b) != 0)
            fail_msg("%s is not %s", same[i][0], same[i][1]);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (pep440_parse(bad[i], strlen(bad[i]), &v) == 0)
            fail_msg("\"%s\" is a version", bad[i]);
}

static void clauses_hold_or_not(void **state)
{
    static const struct {
        const char *set, *version;
        bool has;
    } cases[] = {{">=1.0,<2", "1.5", true},
                 {">=1.0,<2", "2.0", false},
                 {"", "0", true},
                 {"==1.2.*", "1.2.9", true},
                 {"==1.2.*", "1.3", false},
                 {"==1.2.*", "1.2a1", true},
                 {"!=1.2.*", "1.2.5", false},
                 {"!=1.5", "1.5.0", false},
                 {"~=2.2", "2.9", true},
                 {"~=2.2", "3.0", false},
                 {"~=1.4.5", "1.4.9", true},
                 {"~=1.4.5", "1.5", false},
                 {"~=1.4.5a4", "1.4.5b1", true},
                 {"~=2.2.post3", "2.2", false},
                 {"~=2.2.0", "2.3", false},
                 {"==1.1", "1.1.post1", false},
                 {"==1.1.post1", "1.1.post1", true},
                 {"==1.1.*", "1.1.post1", true},
                 {">1.7", "1.7.post1", false},
                 {">1.7.post1", "1.7.post2", true},
                 {">1.7", "1.7+local", false},
                 {"<=1.7", "1.7+local", true},
                 {"==1.7", "1.7+local", true},
                 {"==1.7+local", "1.7", false},
                 {"<2.0", "2.0rc1", false},
                 {"<2.0rc2", "2.0rc1", true},
                 {"<2.0", "1.9.dev1", true},
                 {"===1.0", "1.0", true},
                 {"===1.0", "1.0.0", false},
                 {">=1!1.0", "2.0", false},
                 {"==1!1.0", "1!1", true},
                 {" >= 1.0 , < 2 ", "1.1", true},
                 {">=1.0,", "1.1", true}};
    static const char *const bad[] = {"1.0",       "=1.0", "~=1", ">=1.*", ">=1.0+a",
                                      "==1.0+a.*", "==",   "=>1", ">=1;",  "== 1.0 2"};
    struct pep440_set set;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pep440 v = version(cases[i].version);

        if (pep440_parse_set(cases[i].set, strlen(cases[i].set), &set) < 0)
            fail_msg("%s is no set", cases[i].set);
        if (pep440_set_has(&set, &v, cases[i].version) != cases[i].has)
            fail_msg("%s and %s", cases[i].set, cases[i].version);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (pep440_parse_set(bad[i], strlen(bad[i]), &set) == 0)
            fail_msg("\"%s\" is a set", bad[i]);
}

static int rank(const char *file, char why[TAGS_WHY_SIZE])
{
    struct tags_wheel wheel;
    struct err err = {0};

    if (tags_parse(file, &wheel, &err) < 0)
        fail_msg("%s", err.message);
    return tags_rank(&wheel, 11, why);
}

/* As many tags as a name has room for: a skill may bring 512 such wheels, in a few KiB. */
static void names_of_many_tags_are_ranked_soon(void **state)
{
    char file[256] = "a-1-", why[TAGS_WHY_SIZE];
    const clock_t began = clock();

    (void)state;
    while (strlen(file) < 88)
        strcat(file, ".");
    strcat(file, "cp39-");
    while (strlen(file) < 170)
        strcat(file, ".");
    strcat(file, "cp39-");
    while (strlen(file) < 246)
        strcat(file, "any.");
    strcat(file, "any.whl");
    assert_int_equal(strlen(file), 254);
    for (int i = 0; i < 512; i++)
        assert_true(rank(file, why) < 0);
    /* Of the processor's: by all of each with all of the others it is ten seconds and more. */
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC);
}

static void wheels_fit_or_not(void **state)
{
    /* Best first. */
    static const char *const fit[] = {
        "numpy-1.26.4-cp311-cp311-manylinux_2_36_x86_64.whl",
        "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "numpy-1.26.4-cp311-cp311-manylinux2010_x86_64.whl",
        "numpy-1.26.4-cp311-cp311-manylinux1_x86_64.whl",
        "numpy-1.26.4-cp311-cp311-linux_x86_64.whl",
        "cryptography-42.0.5-cp311-abi3-manylinux_2_28_x86_64.whl",
        "x-1-cp311-none-manylinux1_x86_64.whl",
        "cryptography-42.0.5-cp39-abi3-manylinux_2_28_x86_64.whl",
        "cryptography-42.0.5-cp37-abi3-manylinux_2_28_x86_64.whl",
        "ruff-0.4.1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "x-1-cp311-none-any.whl",
        "x-1-py311-none-any.whl",
        "six-1.16.0-py2.py3-none-any.whl",
        "x-1-py310-none-any.whl",
        "x-1-py37-none-any.whl"};
    static const char *const unfit[][2] = {
        {"numpy-1.26.4-cp312-cp312-manylinux_2_17_x86_64.whl", "CPython 3.12"},
        {"numpy-1.26.4-cp311-cp311-musllinux_1_1_x86_64.whl", "musllinux"},
        {"numpy-1.26.4-cp311-cp311-macosx_11_0_arm64.whl", "macosx"},
        {"numpy-1.26.4-cp311-cp311-win_amd64.whl", "win_amd64"},
        {"numpy-1.26.4-cp311-cp311-manylinux2014_aarch64.whl", "aarch64"},
        {"torch-2-cp311-cp311-manylinux_2_39_x86_64.whl", "glibc 2.36"},
        {"x-1-py2-none-any.whl", "Python 2"},
        {"x-1-cp312-abi3-manylinux1_x86_64.whl", "CPython 3.12"},
        {"x-1-py312-none-any.whl", "Python 3.12"},
        {"x-1-pp310-pypy310_pp73-manylinux1_x86_64.whl", "PyPy 3.10"},
        {"x-1-cp310-cp310-manylinux1_x86_64.whl", "CPython 3.10"},
        {"x-1-cp310-cp310-any.whl", "CPython 3.10"}};
    char why[TAGS_WHY_SIZE];
    int before = -1;

    (void)state;
    for (size_t i = 0; i < COUNT(fit); i++) {
        int r = rank(fit[i], why);

        if (r <= before)
            fail_msg("%s has %d after %d", fit[i], r, before);
        before = r;
    }
    for (size_t i = 0; i < COUNT(unfit); i++) {
        if (rank(unfit[i][0], why) >= 0)
            fail_msg("%s fits", unfit[i][0]);
        if (!strstr(why, unfit[i][1]))
            fail_msg("%s: %s", unfit[i][0], why);
    }
}

static void names_of_wheels(void **state)
{
    static const char *const bad[] = {"numpy.whl",
                                      "a-1-py3-none.whl",
                                      "a-1-py3-none-any.zip",
                                      "-1-py3-none-any.whl",
                                      "a-x-py3-none-any.whl",
                                      "a-1-b-py3-none-any.whl",
                                      "a-1-2-3-py3-none-any.whl",
                                      ".whl"};
    struct tags_wheel wheel;
    struct err err = {0};
    char name[TAGS_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (tags_parse(bad[i], &wheel, NULL) == 0)
            fail_msg("%s is a wheel", bad[i]);
    assert_int_equal(tags_parse("Foo_Bar.baz-1.0_1-7x-py3-none-any.whl", &wheel, &err), 0);
    assert_string_equal(wheel.name, "foo-bar-baz");
    assert_string_equal(wheel.version_text, "1.0-1");
    assert_int_equal(wheel.build, 7);
    assert_int_equal(tags_normalize("A__B--c", 7, name), 0);
    assert_string_equal(name, "a-b-c");
    assert_int_equal(tags_normalize("-a", 2, name), -EINVAL);
    assert_int_equal(tags_normalize("a b", 3, name), -EINVAL);
}

static void markers_are_of_the_guest(void **state)
{
    static const struct marker_python python = {11, 2};
    static const struct {
        const char *marker, *extra;
        int holds;
    } cases[] = {{"python_version >= \"3.8\"", "", 1},
                 {"python_version<'3.10'", "", 0},
                 {"python_version >= '3.9' and python_version < '3.12'", "", 1},
                 {"python_full_version == '3.11.2'", "", 1},
                 {"python_full_version < '3.11.0a1'", "", 0},
                 {"sys_platform == 'win32'", "", 0},
                 {"sys_platform != \"win32\" and platform_machine == \"x86_64\"", "", 1},
                 {"os_name == 'nt' or os_name == 'posix'", "", 1},
                 {"platform_python_implementation == 'CPython'", "", 1},
                 {"implementation_name != 'pypy'", "", 1},
                 {"platform_system in 'Linux Darwin'", "", 1},
                 {"platform_system not in 'Windows'", "", 1},
                 {"(os_name == 'nt' or python_version > '3') and extra == 'socks'", "socks", 1},
                 {"extra == 'socks'", "", 0},
                 {"extra == \"Some.Extra\"", "some-extra", 1},
                 {"python_version in '3.10 3.11'", "", 1},
                 {"'linux' in sys_platform", "", 1},
                 {"platform_release >= '20'", "", 0},
                 {"python_version ~= '3.9'", "", 1},
                 {"python_version == '3.*'", "", 1},
                 {"os.name == 'posix'", "", 1},
                 {"python_version", "", -EINVAL},
                 {"", "", -EINVAL},
                 {"python_version >= 3.8", "", -EINVAL},
                 {"python_version >= '3.8", "", -EINVAL},
                 {"nothing == '1'", "", -EINVAL},
                 {"python_version >= '3.8' and", "", -EINVAL},
                 {"(python_version >= '3.8'", "", -EINVAL},
                 {"python_version >= '3.8') ", "", -EINVAL},
                 {"((((((((((((((((((os_name == 'posix'))))))))))))))))))", "", -EINVAL}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int r = marker_holds(cases[i].marker, strlen(cases[i].marker), &python, cases[i].extra);

        if (r != cases[i].holds)
            fail_msg("%s: %d", cases[i].marker, r);
    }
}

static void requirements_are_read(void **state)
{
    static const char *const good[][3] = {
        {"requests", "requests", ""},
        {"requests >= 2.8.1, == 2.8.*", "requests", ">= 2.8.1, == 2.8.*"},
        {"Requests[security,tests]>=2.8.1", "requests", ">=2.8.1"},
        {"zope.interface (>3.1.0)", "zope-interface", ">3.1.0"},
        {"ruamel.yaml.clib>=0.2.7 ; platform_python_implementation==\"CPython\"",
         "ruamel-yaml-clib", ">=0.2.7"},
        {"typing_extensions; python_version<'3.8'", "typing-extensions", ""},
        {"name[]", "name", ""},
        {"PySocks!=1.5.7,>=1.5.6; extra == 'socks'", "pysocks", "!=1.5.7,>=1.5.6"}};
    static const char *const bad[][2] = {
        {"", "begins with the name"},
        {"name @ https://example.org/x.whl", "nothing is fetched"},
        {"name[a", "extras"},
        {"name[a b]", "extras"},
        {"name 1.0", "versions"},
        {"name; nonsense", "marker"},
        {"name;", "marker"},
        {"-e .", "begins with the name"},
        {"a==1.0 b", "versions"}};

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        _cleanup_requirement_ struct requirement q = {.marker = NULL};
        struct err err = {0};

        if (requirement_parse(good[i][0], strlen(good[i][0]), &q, &err) < 0)
            fail_msg("%s", err.message);
        assert_string_equal(q.name, good[i][1]);
        assert_string_equal(q.versions, good[i][2]);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct requirement q;
        struct err err = {0};

        assert_int_equal(requirement_parse(bad[i][0], strlen(bad[i][0]), &q, &err), -EINVAL);
        if (!strstr(err.message, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.message);
    }
}

static void metadata_is_read(void **state)
{
    static const char text[] = "Metadata-Version: 2.1\nName: Foo.Bar\nVersion: 1.2rc1\r\n"
                               "License: lines\n        of it\n  Name: not-this\n"
                               "Requires-Python: >=3.8\n"
                               "Requires-Dist: a (>=1)\nRequires-Dist: b>=2,\n   <3\n"
                               "Provides-Extra: x\nRequires-Dist: c; extra == 'x'\n"
                               "\nName: of the description\nRequires-Dist: d\n";
    static const char *const bad[][2] = {
        {"Name: a\n", "no Version"},
        {"Version: 1\n", "no Name"},
        {"Name: -\nVersion: 1\n", "name"},
        {"Name: a\nVersion: x\n", "version"},
        {"Name: a\nVersion: 1\nRequires-Python: 3\n", "Python"},
        {"Name: a\nVersion: 1\nRequires-Dist: !\n", "requirement"}};
    _cleanup_metadata_ struct metadata m = {.n_requires = 0};
    struct marker_python python = {11, 2};
    struct err err = {0};

    (void)state;
    if (metadata_parse(text, strlen(text), &m, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(m.name, "foo-bar");
    assert_string_equal(m.version_text, "1.2rc1");
    assert_string_equal(m.python, ">=3.8");
    assert_int_equal(m.n_requires, 3);
    assert_string_equal(m.requires_dist[1].name, "b");
    assert_true(requirement_applies(&m.requires_dist[1], &python, NULL));
    assert_false(requirement_applies(&m.requires_dist[2], &python, NULL));
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct metadata none;

        assert_int_equal(metadata_parse(bad[i][0], strlen(bad[i][0]), &none, &err), -EINVAL);
        if (!strstr(err.message, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.message);
        err = (struct err){0};
    }
}

struct file {
    const char *path, *text;
};

static int text_of(void *ctx, const char *path, const char **ret_text, size_t *ret_len)
{
    for (const struct file *file = ctx; file->path; file++)
        if (strcmp(file->path, path) == 0) {
            *ret_text = file->text;
            *ret_len = strlen(file->text);
            return 0;
        }
    return -ENOENT;
}

static void requirements_files_are_read(void **state)
{
    static struct file files[] = {
        {"scripts/requirements.txt",
         "# what it needs\n"
         "--index-url https://example.org/simple\n"
         "requests>=2,\\\n  <3   # the web\r\n"
         "\n"
         "-r more/others.txt\n"
         "--requirement=more/others.txt\n"
         "pyyaml==6.0 --hash=sha256:"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA \\\n"
         "  --hash=sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
         "colorama; sys_platform == 'win32'"},
        {"scripts/more/others.txt", "six\n-r ../x\n"},
        {"circle.txt", "-r circle.txt\nsix"},
        {"editable.txt", "six\n-e .\n"},
        {"path.txt", "./wheels/six-1-py3-none-any.whl\n"},
        {"url.txt", "https://example.org/six-1-py3-none-any.whl\n"},
        {"gone.txt", "-r nowhere.txt"},
        {"hash.txt", "six --hash=md5:1"},
        {NULL, NULL}};
    static const char *const bad[][2] = {
        {"scripts/requirements.txt", "others.txt line 2: -r names a file"},
        {"editable.txt", "editable.txt line 2: nothing is built here"},
        {"path.txt", "path.txt line 1: it names a file"},
        {"url.txt", "url.txt line 1: it names a file or an address"},
        {"gone.txt", "nowhere.txt is named by -r and is not there"},
        {"hash.txt", "--hash=sha256"}};
    const struct wanted_source source = {text_of, files};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        _cleanup_wanted_ struct wanted_list list = {.n = 0};
        struct err err = {0};

        assert_int_equal(wanted_read_file(&list, bad[i][0], &source, &err), -EINVAL);
        if (!strstr(err.message, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.message);
    }
    files[1].text = "six\n";
    for (size_t i = 0; i < 2; i++) {
        _cleanup_wanted_ struct wanted_list list = {.n = 0};
        struct err err = {0};

        if (wanted_read_file(&list, i ? "circle.txt" : "scripts/requirements.txt", &source,
                             &err))
            fail_msg("%s", err.message);
        assert_int_equal(list.n, i ? 1 : 4);
        if (i)
            continue;
        assert_int_equal(list.warnings.len, 1);
        assert_non_null(strstr(list.warnings.items[0], "--index-url"));
        assert_string_equal(list.items[0].requirement.name, "requests");
        assert_string_equal(list.items[0].by, "scripts/requirements.txt line 3");
        assert_int_equal(list.items[1].requirement.sha256.len, 2);
        assert_string_equal(list.items[2].by, "scripts/requirements.txt line 10");
        assert_string_equal(list.items[3].requirement.name, "six");
    }
}

/* A path is made of each, or a warning. */
static void options_are_not_without_number(void **state)
{
    static char text[3 * (WANTED_OPTIONS + 1) + 1];
    static const struct file files[] = {{"requirements.txt", text}, {NULL, NULL}};
    const struct wanted_source source = {text_of, (void *)(uintptr_t)files};

    (void)state;
    for (unsigned n = WANTED_OPTIONS; n <= WANTED_OPTIONS + 1; n++) {
        _cleanup_wanted_ struct wanted_list list = {.n = 0};
        struct err err = {0};

        for (unsigned i = 0; i < n; i++)
            strcpy(text + (size_t)3 * i, "-q\n");
        assert_int_equal(wanted_read_file(&list, "requirements.txt", &source, &err),
                         n > WANTED_OPTIONS ? -EINVAL : 0);
        assert_true(n == WANTED_OPTIONS || strstr(err.message, "too many lines of options"));
    }
}

static void blocks_of_scripts_are_read(void **state)
{
    static const struct {
        const char *text;
        int n; /* or -EINVAL */
    } cases[] = {{"#!/usr/bin/env python3\n# /// script\n# requires-python = \">=3.11\"\n"
                  "# dependencies = [\n#   \"requests<3\",  # a comment ]\n#   'rich',\n# ]\n# "
                  "///\nimport rich\n",
                  2},
                 {"# /// script\n# dependencies = [\"six\"]\n# [tool.uv]\n# dependencies = "
                  "[\"x\"]\n# ///\n",
                  1},
                 {"# /// script\n# dependencies = []\n# ///\n", 0},
                 {"# /// script\n# dependencies = [\"six\"]\n", 0},
                 {"# /// script\nprint()\n# dependencies = [\"six\"]\n# ///\n", 0},
                 {"import six\n", 0},
                 {"# /// script\n# dependencies = \"six\"\n# ///\n", -EINVAL},
                 {"# /// script\n# dependencies = [six]\n# ///\n", -EINVAL},
                 {"# /// script\n# dependencies = [\"six\n# ///\n", -EINVAL},
                 {"# /// script\n# dependencies = [\"six @ file:///x\"]\n# ///\n", -EINVAL}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        _cleanup_wanted_ struct wanted_list list = {.n = 0};
        struct err err = {0};
        int r =
            wanted_read_script(&list, "main.py", cases[i].text, strlen(cases[i].text), &err);

        if (r != (cases[i].n < 0 ? cases[i].n : 0) || (r == 0 && (int)list.n != cases[i].n))
            fail_msg("%s: %d, %zu: %s", cases[i].text, r, list.n, err.message);
    }
}

static void add_image(struct image_list *images, unsigned minor, const char *package)
{
    struct image_listed *image = &images->list[images->n++];

    images->n_here++;
    image->manifest.known = minor != 99;
    image->manifest.python_minor = image->manifest.known ? minor : 0;
    assert_int_equal(skill_strings_insert(&image->manifest.packages, package, 9), 0);
}

/* Each bit is an image's: just as they were chosen, else by the names of packages alone. */
static void packages_go_with_images(void **state)
{
    static const struct {
        const char *packages;
        unsigned minor;
        image_set_t go;
    } cases[] = {
        {"[{\"name\":\"a\",\"version\":\"1\",\"from\":\"image\"}]", 11, 0x21},
        {"[{\"name\":\"a\",\"version\":\"2\",\"from\":\"image\"}]", 11, 0x22},
        {"[{\"name\":\"a\",\"version\":\"3\",\"from\":\"image\"}]", 11, 0x23},
        {"[{\"name\":\"a\",\"version\":\"1\",\"from\":\"image\"}]", 12, 0x28},
        {"[{\"name\":\"a\",\"version\":\"1\",\"from\":\"image\"}]", 13, 0x20},
        {"[{\"name\":\"a\",\"version\":\"1\",\"from\":\"skill\"}]", 11, 0x27},
        {"[{\"name\":\"c\",\"version\":\"1\",\"from\":\"image\"}]", 11, 0x20},
        {"[]", 11, 0x27},
        {"[]", 0, 0x2f},
    };
    struct image_list images = {.n = 0};

    (void)state;
    add_image(&images, 11, "a 1");
    add_image(&images, 11, "a 2");
    add_image(&images, 11, "b 1");
    add_image(&images, 12, "a 1");
    add_image(&images, 0, "a 1");  /* without Python */
    add_image(&images, 99, "a 1"); /* of which nothing is known */
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(packages_go(cases[i].packages, cases[i].minor, &images), cases[i].go);
    image_list_finish(&images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_have_an_order),
        cmocka_unit_test(spellings_are_one_version),
        cmocka_unit_test(clauses_hold_or_not),
        cmocka_unit_test(wheels_fit_or_not),
        cmocka_unit_test(names_of_wheels),
        cmocka_unit_test(markers_are_of_the_guest),
        cmocka_unit_test(requirements_are_read),
        cmocka_unit_test(metadata_is_read),
        cmocka_unit_test(names_of_many_tags_are_ranked_soon),
        cmocka_unit_test(requirements_files_are_read),
        cmocka_unit_test(options_are_not_without_number),
        cmocka_unit_test(blocks_of_scripts_are_read),
        cmocka_unit_test(packages_go_with_images),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
