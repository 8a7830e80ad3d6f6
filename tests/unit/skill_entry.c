/* SPDX-License-Identifier: Apache-2.0 */
/* Which script runs, in which language. */
#include "api/skill/entry.h"

#include "api/skill/language.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/make_archive.h"

struct wish {
    /* Sorted; a name ending in '/' is a folder, and what is behind a blank begins so. */
    const char *files[8];
    const char *entry_point;
    const char *lang;
    const char *script;
    const char *module;
    const char *entry; /* what must come out, or NULL */
    const char *out_lang;
    enum proto_mode mode;
    const char *problem; /* what the message must say otherwise */
    const char *warning; /* what is to be said of its lang, or NULL */
};

/* Of the language that the skill names. */
static void check_warning(const struct wish *wish, struct skill *skill,
                          const struct skill_archive *archive)
{
    const char *said;

    assert_int_equal(skill_entry_check_language(skill, archive), 0);
    assert_int_equal(skill->warnings.len, wish->warning != NULL);
    said = wish->warning ? skill->warnings.items[0] : "";
    if (wish->warning && !strstr(said, wish->warning))
        fail_msg("\"%s\" does not say \"%s\"", said, wish->warning);
    skill_strings_finish(&skill->warnings);
}

static void check(const struct wish *wish)
{
    struct archive_entry_info entries[8] = {0};
    char names[8][64], *blank;
    struct skill_archive archive = {.entries = entries};
    struct skill skill = {0};
    struct skill_entry entry;
    struct err err = {0};
    char entry_point[64], lang[16];

    for (; archive.n_entries < 8 && wish->files[archive.n_entries]; archive.n_entries++) {
        size_t i = archive.n_entries;
        strcpy(names[i], wish->files[i]);
        blank = strchr(names[i], ' ');
        if (blank) {
            entries[i].begins = language_of_text(blank + 1, strlen(blank + 1));
            *blank = '\0';
        }
        size_t len = strlen(names[i]);
        entries[i].type = ARCHIVE_ENTRY_FILE;
        if (names[i][len - 1] == '/') {
            names[i][len - 1] = '\0';
            entries[i].type = ARCHIVE_ENTRY_DIR;
        }
        entries[i].path = names[i];
    }
    if (wish->entry_point)
        skill.entry_point = strcpy(entry_point, wish->entry_point);
    if (wish->lang)
        skill.lang = strcpy(lang, wish->lang);

    check_warning(wish, &skill, &archive);
    int result =
        skill_entry_resolve(&skill, &archive, wish->script, wish->module, &entry, &err);
    if (!wish->entry) {
        assert_int_equal(result, -EINVAL);
        if (!strstr(err.message, wish->problem))
            fail_msg("\"%s\" does not say \"%s\"", err.message, wish->problem);
        return;
    }
    if (result)
        fail_msg("%s", err.message);
    assert_string_equal(entry.entry, wish->entry);
    assert_string_equal(entry.lang, wish->out_lang);
    assert_int_equal(entry.mode, wish->mode);
    skill_entry_finish(&entry);
}

static void wishes(void **state)
{
    static const struct wish all[] = {
        {.files = {"SKILL.md", "main.py"}, .entry = "main.py", .out_lang = "python"},
        {.files = {"SKILL.md", "main.sh", "run.py"}, .entry = "run.py", .out_lang = "python"},
        {.files = {"SKILL.md", "main.js", "main.sh"}, .entry = "main.js", .out_lang = "node"},
        {.files = {"SKILL.md", "scripts/", "scripts/main.sh"},
         .entry = "scripts/main.sh",
         .out_lang = "bash"},
        {.files = {"SKILL.md", "main.sh", "scripts/", "scripts/main.py"},
         .entry = "main.sh",
         .out_lang = "bash"},
        {.files = {"SKILL.md", "convert.py", "data.csv"},
         .entry = "convert.py",
         .out_lang = "python"},
        {.files = {"SKILL.md", "lib/", "lib/a.py", "lib/b.py", "scripts/",
                   "scripts/__init__.py", "scripts/x.sh"},
         .entry = "scripts/x.sh",
         .out_lang = "bash"},
        {.files = {"SKILL.md", "a.py", "b.py"},
         .problem = "several scripts; name one with "
                    "--script"},
        {.files = {"SKILL.md", "a.py", "b.py"}, .problem = "a.py, b.py"},
        {.files = {"SKILL.md"}, .problem = "nothing to run: there is no script"},
        {.files = {"SKILL.md", "main.py/"}, .problem = "only instructions"},

        {.files = {"SKILL.md", "main.ts"},
         .problem =
             "\"main.ts\" is TypeScript, which skillvm does not run: make JavaScript of it"},
        {.files = {"SKILL.md", "scripts/", "scripts/tool.go", "src/", "src/x.rb"},
         .problem = "the skill has nothing to run; \"scripts/tool.go\" is Go, which "
                    "skillvm does not run: build a static program"},
        {.files = {"SKILL.md", "src/", "src/x.rb"}, .problem = "there is no script in it"},
        {.files = {"SKILL.md", "helper.py", "main.ts"},
         .entry = "helper.py",
         .out_lang = "python"},
        {.files = {"SKILL.md", "main.py", "main.rb"},
         .entry_point = "main.rb",
         .problem = "\"main.rb\" is Ruby, which skillvm does not run: write it in Python"},
        {.files = {"SKILL.md", "a.py", "main.pl"},
         .script = "main.pl",
         .problem = "\"main.pl\" is Perl, which skillvm does not run: start it from a main.sh"},
        {.files = {"SKILL.md", "main.ts"},
         .entry_point = "main.ts",
         .lang = "node",
         .problem = "\"main.ts\" is TypeScript"},
        {.files = {"SKILL.md", "main.py", "scripts/", "scripts/x.py"},
         .entry_point = "scripts/x.py",
         .entry = "scripts/x.py",
         .out_lang = "python"},
        {.files = {"SKILL.md", "scripts/", "scripts/x.py"},
         .entry_point = "./x.py",
         .entry = "scripts/x.py",
         .out_lang = "python"},
        {.files = {"SKILL.md", "main.py"}, .entry_point = "gone.py", .problem = "gone.py"},
        {.files = {"SKILL.md", "main.py"}, .entry_point = "../main.py", .problem = "\"..\""},
        {.files = {"SKILL.md", "main.py"}, .entry_point = "/main.py", .problem = "absolute"},
        {.files = {"SKILL.md", "tool"},
         .entry_point = "tool",
         .lang = "Python3",
         .entry = "tool",
         .out_lang = "python"},
        {.files = {"SKILL.md", "tool"},
         .entry_point = "tool",
         .lang = "ruby",
         .problem = "language is unknown",
         .warning = "lang is Ruby, which skillvm does not run: write it in Python"},
        {.files = {"SKILL.md", "main.py"},
         .lang = "ruby",
         .entry = "main.py",
         .out_lang = "python",
         .warning = "lang is Ruby, but \"main.py\", which runs, is Python and runs as that"},
        {.files = {"SKILL.md", "tool"},
         .entry_point = "tool",
         .lang = "fortran",
         .problem = "language is unknown"},
        {.files = {"SKILL.md", "main.py", "main.sh"},
         .lang = "shell",
         .entry = "main.py",
         .out_lang = "python",
         .warning = "lang is bash, but \"main.py\", which runs, is Python and runs as that"},
        {.files = {"SKILL.md", "main.py", "main.sh"},
         .entry_point = "main.sh",
         .lang = "python",
         .entry = "main.sh",
         .out_lang = "bash",
         .warning = "lang is Python, but \"main.sh\""},
        {.files = {"SKILL.md", "main.py", "main.sh"},
         .lang = "Python",
         .entry = "main.py",
         .out_lang = "python"},
        {.files = {"SKILL.md", "tool"},
         .entry_point = "tool",
         .problem = "language is unknown"},
        {.files = {"LICENSE", "SKILL.md", "tool #!/usr/bin/env python3"},
         .entry = "tool",
         .out_lang = "python"},
        {.files = {"SKILL.md", "a.sh", "tool #!/usr/bin/env python3"},
         .entry = "a.sh",
         .out_lang = "bash"},
        {.files = {"SKILL.md", "a #!/bin/sh", "tool #!/usr/bin/env node"},
         .problem =
             "several scripts; name one with --script (or --module). Its scripts: a, tool"},
        {.files = {"SKILL.md", "a.sh", "b.sh", "scripts/", "scripts/tool #!/usr/bin/node"},
         .script = "tool",
         .entry = "scripts/tool",
         .out_lang = "node",
         .mode = PROTO_MODE_SCRIPT},
        {.files = {"SKILL.md", "tool #!/usr/bin/ruby"},
         .problem = "\"tool\" is Ruby, which skillvm does not run: write it in"},
        {.files = {"SKILL.md", "tool #!/usr/bin/ruby"},
         .script = "tool",
         .problem = "\"tool\" is Ruby, which skillvm does not run: write it in"},

        {.files = {"SKILL.md", "main.py", "scripts/", "scripts/x.sh"},
         .script = "scripts/x.sh",
         .entry = "scripts/x.sh",
         .out_lang = "bash",
         .mode = PROTO_MODE_SCRIPT},
        {.files = {"SKILL.md", "main.py"}, .script = "y.py", .problem = "\"y.py\" is not in"},
        {.files = {"SKILL.md", "main.py"}, .script = "a", .module = "b", .problem = "not both"},
        {.files = {"SKILL.md"},
         .module = "scripts.package_skill",
         .entry = "scripts.package_skill",
         .out_lang = "python",
         .mode = PROTO_MODE_MODULE},
        {.files = {"SKILL.md"}, .module = "a..b", .problem = "no module name"},
        {.files = {"SKILL.md"}, .module = "a.", .problem = "no module name"},
        {.files = {"SKILL.md"}, .module = "-m", .problem = "no module name"},
        {.files = {"SKILL.md"}, .module = "", .problem = "no module name"},
        {.files = {"SKILL.md"}, .module = "a/b", .problem = "no module name"},
        {.files = {"SKILL.md"}, .module = "1a", .problem = "no module name"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        check(&all[i]);
}

/* A program without an extension runs where lang says in what, when a caller names it. */
static void what_can_run_is_known(void **state)
{
    static const struct {
        const char *path, *lang;
        bool executable, can_run;
    } all[] = {
        {"lib/deep.py", NULL, false, true}, {"a.ts", NULL, false, false},
        {"a.ts", "node", true, false},      {"tool", "python", true, true},
        {"tool", "python", false, false},   {"tool", "ruby", true, false},
        {"tool", NULL, true, false},        {"README.md", "python", false, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char path[16], lang[16];
        struct archive_entry_info entry = {
            .path = path, .type = ARCHIVE_ENTRY_FILE, .executable = all[i].executable};
        const struct skill_archive archive = {.entries = &entry, .n_entries = 1};
        const struct skill skill = {.lang = all[i].lang ? lang : NULL};
        struct err why = {0};

        strcpy(path, all[i].path);
        strcpy(lang, all[i].lang ? all[i].lang : "");
        if (skill_entry_can_run(&skill, &archive, &why) != all[i].can_run)
            fail_msg("\"%s\" in %s", path, lang);
        assert_int_equal(why.code, all[i].can_run ? 0 : EINVAL);
    }
}

/* What a skill whose SKILL.md has this line is warned of, "" for nothing. */
static void expect_language(const char *line, const char *path, const char *content,
                            const char *want)
{
    char text[256];
    const struct member members[] = {
        {.path = "SKILL.md", .content = text}, {.path = path, .content = content}, {0}};
    int fd, tar_fd = memfd_create("tar", MFD_CLOEXEC);
    struct skill_archive archive, again;
    struct skill skill, skill_again;

    (void)snprintf(text, sizeof(text), "---\nname: trial\ndescription: of a test\n%s---\n",
                   line);
    fd = make_archive(TAR, members);
    assert_int_equal(
        skill_archive_load(fd, &archive_limits_default, NULL, tar_fd, &archive, &skill, NULL),
        0);
    assert_int_equal(skill.warnings.len, *want ? 1 : 0);
    if (*want)
        assert_string_equal(skill.warnings.items[0], want);
    assert_int_equal(skill_archive_reload(tar_fd, archive.digest, &again, &skill_again, NULL),
                     0);
    for (size_t i = 0; i < archive.n_entries; i++)
        assert_ptr_equal(again.entries[i].begins, archive.entries[i].begins);
    skill_finish(&skill_again);
    skill_archive_finish(&again);
    skill_finish(&skill);
    skill_archive_finish(&archive);
    close(fd);
    close(tar_fd);
}

static void two_languages_are_told(void **state)
{
    (void)state;
    expect_language("", "main.py", "#!/usr/bin/env python3\nprint(1)\n", "");
    expect_language("", "main.py", "#!/usr/bin/env -S uv run --script\nprint(1)\n", "");
    expect_language("", "main.sh", "#!/bin/sh", "");
    expect_language("", "main.js", "#!/usr/bin/env bun\n", "");
    expect_language("", "main.py", "# bash\n", "");
    expect_language("", "main.py", "", "");
    expect_language("", "main.py", "#!/bin/bash\necho 1\n",
                    "\"main.py\" begins as bash, but runs as Python, as its name "
                    "says: correct its first line, or its name");
    expect_language("lang: python\nentry_point: run\n", "run", "#!/usr/bin/env node\r\n1\n",
                    "\"run\" begins as JavaScript, but runs as Python, as "
                    "lang says: correct its first line, or lang");
    expect_language("entry_point: run\n", "run", "#!/usr/bin/env python3\n1\n", "");
    expect_language(
        "lang: ruby\nentry_point: run\n", "run", "#!/usr/bin/env python3\n1\n",
        "lang is Ruby, but \"run\", which runs, is Python and runs as that: correct "
        "or remove lang, or set entry_point");
    expect_language("lang: node\n", "main.py", "print(1)\n",
                    "lang is JavaScript, but \"main.py\", which runs, is Python and runs as "
                    "that: correct or remove lang, or set entry_point");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wishes),
                                       cmocka_unit_test(what_can_run_is_known),
                                       cmocka_unit_test(two_languages_are_told)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
