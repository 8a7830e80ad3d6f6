/* SPDX-License-Identifier: Apache-2.0 */
/* Code without a skill: what language it is in, and the skill that is made of it. */
#include "tests/unit/cmocka_all.h"

#include "api/skill/code.h"
#include "api/skill/content.h"
#include "api/skill/entry.h"
#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void expect_shown(const struct language *language, const char *shown, const char *of)
{
    if (!language != !shown || (language && strcmp(language->shown, shown) != 0))
        fail_msg("%s: %s, expected %s", of, language ? language->shown : "none",
                 shown ? shown : "none");
}

static void a_path_tells_the_language(void **state)
{
    static const char *const cases[][2] = {
        {"a.py", "Python"},     {"/x/y.z/a.sh", "bash"},
        {"a.bash", "bash"},     {"a.mjs", "JavaScript"},
        {"a.ts", "TypeScript"}, {"a.b.rb", "Ruby"},
        {"a.r", "R"},           {"a.R", "R"},
        {"a.go", "Go"},         {"a.PY", NULL},
        {".py", NULL},          {"x/.py", NULL},
        {"py", NULL},           {"a.", NULL},
        {"a.py/b", NULL},       {"a.pyc", NULL},
        {"a.p", NULL},          {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_shown(language_of_path(cases[i][0]), cases[i][1], cases[i][0]);
}

static void a_name_tells_the_language(void **state)
{
    static const char *const cases[][2] = {
        {"python", "Python"}, {"Python3", "Python"}, {"SHELL", "bash"},
        {"c++", "C++"},       {"py thon", NULL},     {"pytho", NULL},
        {"", NULL},           {" ", NULL},           {"python sh", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_shown(language_of_name(cases[i][0]), cases[i][1], cases[i][0]);
}

static void a_first_line_tells_the_language(void **state)
{
    static const char *const cases[][2] = {
        {"#!/bin/bash\n", "bash"},
        {"#!/bin/sh -eu", "bash"},
        {"#! /usr/bin/python3.11 -u\n", "Python"},
        {"#!/usr/bin/env python3\r\nx", "Python"},
        {"#!/usr/bin/env -S A=/b/c node --x\n", "JavaScript"},
        {"#!/usr/bin/env -S deno run\n", "TypeScript"},
        {"#!ruby3.1", "Ruby"},
        {"#!/usr/bin/env\nbash", NULL},
        {"#!\nbash", NULL},
        {"#!/bin/odd", NULL},
        {"#!/bin/3.11\n", NULL},
        {"#!/bin/\n", NULL},
        {" #!/bin/bash", NULL},
        {"# !/bin/bash", NULL},
        {"#!", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i][0]);
        /* Not a byte more: no NUL ends it. */
        char *text = malloc(len ? len : 1);

        assert_non_null(text);
        memcpy(text, cases[i][0], len);
        expect_shown(language_of_text(text, len), cases[i][1], cases[i][0]);
        free(text);
    }
}

static void what_does_not_run_is_named(void **state)
{
    static const char *const cases[][3] = {
        {"typescript", "x",
         "the code is in TypeScript, which does not run here; write it in "
         "Python, bash or JavaScript"},
        {"lua", "x", "in Lua"},
        {NULL, "#!/usr/bin/perl", "in Perl"},
        {"brainfuck", "#!/bin/sh", "\"lang\": \"brainfuck\" is no language"},
        {"", "x", "no language"},
    };
    const char *lang = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};

        assert_int_equal(
            code_language(cases[i][0], cases[i][1], strlen(cases[i][1]), &lang, &err), -EINVAL);
        assert_non_null(strstr(err.message, cases[i][2]));
        assert_null(lang);
    }
}

static void make(const char *lang, const char *text, size_t len, struct skill_archive *archive,
                 struct skill *skill, int *ret_fd)
{
    *ret_fd = memfd_create("code", MFD_CLOEXEC);
    assert_true(*ret_fd >= 0);
    assert_int_equal(code_make_skill(lang, text, len, *ret_fd, archive, skill, NULL), 0);
}

/* What comes of it is what a push of the same two files would store, to the byte. */
static void code_is_a_canonical_skill(void **state)
{
    struct skill_archive archive = {0}, again = {0};
    struct skill skill = {0}, same = {0};
    struct skill_entry entry = {0};
    struct buf text = buf_init(1024);
    int fd, out = memfd_create("again", MFD_CLOEXEC);

    (void)state;
    make("bash", "echo \xc3\xa4\n", 8, &archive, &skill, &fd);
    assert_int_equal(archive.n_entries, 2);
    assert_string_equal(skill.name, "code");
    assert_int_equal(skill.instructions_len, 0);
    assert_int_equal(skill_entry_resolve(&skill, &archive, NULL, NULL, &entry, NULL), 0);
    assert_string_equal(entry.entry, "main.sh");
    assert_string_equal(entry.lang, "bash");
    assert_int_equal(skill_content_read(fd, "main.sh", &text, NULL), 0);
    assert_string_equal(buf_cstr(&text), "echo \xc3\xa4\n");
    assert_int_equal(
        skill_archive_load(fd, &archive_limits_default, NULL, out, &again, &same, NULL), 0);
    assert_string_equal(again.digest, archive.digest);
    assert_int_equal(same.warnings.len, 0);
    buf_finish(&text);
    skill_entry_finish(&entry);
    skill_finish(&skill);
    skill_finish(&same);
    skill_archive_finish(&archive);
    skill_archive_finish(&again);
    fd_close(&fd);
    fd_close(&out);
}

static void what_imports_is_an_es_module(void **state)
{
    static const char *const cases[][2] = {
        {"import fs from 'fs'", "main.mjs"},
        {"// x\nimport 'fs'\n", "main.mjs"},
        {"import{a} from 'b'", "main.mjs"},
        {"import* as a from 'b'", "main.mjs"},
        {"x\r\nexport default 1", "main.mjs"},
        {"export{}", "main.mjs"},
        {"import('fs').then(f)", "main.js"},
        {"import.meta", "main.js"},
        {"important\n  import a", "main.js"},
        {"exports.a = 1\nmodule.exports = 2", "main.js"},
        {"import", "main.js"},
        {"const a = require('a')\nx = 'import a'", "main.js"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skill_archive archive = {0};
        struct skill skill = {0};
        struct skill_entry entry = {0};
        int fd;

        make("node", cases[i][0], strlen(cases[i][0]), &archive, &skill, &fd);
        assert_int_equal(skill_entry_resolve(&skill, &archive, NULL, NULL, &entry, NULL), 0);
        assert_string_equal(entry.entry, cases[i][1]);
        assert_string_equal(entry.lang, "node");
        skill_entry_finish(&entry);
        skill_finish(&skill);
        skill_archive_finish(&archive);
        fd_close(&fd);
    }
}

static void the_same_code_has_the_same_digest(void **state)
{
    struct skill_archive archives[4] = {0};
    static const char *const code[4][2] = {
        {"python", "1"}, {"python", "1"}, {"python", "2"}, {"bash", "1"}};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct skill skill = {0};
        int fd;

        make(code[i][0], code[i][1], 1, &archives[i], &skill, &fd);
        skill_finish(&skill);
        fd_close(&fd);
    }
    assert_string_equal(archives[0].digest, archives[1].digest);
    assert_string_not_equal(archives[0].digest, archives[2].digest);
    assert_string_not_equal(archives[0].digest, archives[3].digest);
    for (size_t i = 0; i < 4; i++)
        skill_archive_finish(&archives[i]);
}

static void code_is_bounded(void **state)
{
    char *text = calloc(1, CODE_BYTES_MAX + 1);
    struct skill_archive archive = {0};
    struct skill skill = {0};
    struct err err = {0};
    int fd;

    (void)state;
    assert_non_null(text);
    memset(text, '#', CODE_BYTES_MAX + 1);
    make("python", text, CODE_BYTES_MAX, &archive, &skill, &fd);
    skill_finish(&skill);
    skill_archive_finish(&archive);
    assert_int_equal(
        code_make_skill("python", text, CODE_BYTES_MAX + 1, fd, &archive, &skill, &err),
        -EFBIG);
    assert_non_null(strstr(err.message, "256 KiB"));
    fd_close(&fd);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_tells_the_language),
        cmocka_unit_test(a_name_tells_the_language),
        cmocka_unit_test(a_first_line_tells_the_language),
        cmocka_unit_test(what_does_not_run_is_named),
        cmocka_unit_test(code_is_a_canonical_skill),
        cmocka_unit_test(what_imports_is_an_es_module),
        cmocka_unit_test(the_same_code_has_the_same_digest),
        cmocka_unit_test(code_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
