/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/entry.h"

#include "api/skill/file_names.h"
#include "api/skill/language.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_SCRIPTS_MAX 10u

/* NULL where the name has none of the known extensions. */
static const char *lang_of_path(const char *path)
{
    const struct language *language = language_of_path(path);

    return language ? language->lang : NULL;
}

/* By the extension, else by the first line. */
static const struct language *language_of(const struct archive_entry_info *entry)
{
    const struct language *language = language_of_path(entry->path);

    return language ? language : entry->begins;
}

/* Where its language is one that is not run here: what it is and what to do, with err. */
static bool refuse_foreign(const char *problem, const struct archive_entry_info *entry,
                           struct err *err)
{
    const struct language *language = language_of(entry);

    if (!language || language->lang)
        return false;
    (void)err_set(err, EINVAL, "%s\"%s\" is %s, which skillvm does not run: %s", problem,
                  names_shown(entry->path).text, language->shown, language->remedy);
    return true;
}

static const char *lang_of_field(const char *lang)
{
    const struct language *language = lang ? language_of_name(lang) : NULL;

    return language ? language->lang : NULL;
}

static const char *lang_of_name(const struct archive_entry_info *entry)
{
    return lang_of_path(entry->path);
}

static const char *lang_of(const struct archive_entry_info *entry)
{
    const struct language *language = language_of(entry);

    return language ? language->lang : NULL;
}

/* A file, or a link, which the archive's checks keep inside the skill. */
static const struct archive_entry_info *find_runnable(const struct skill_archive *archive,
                                                      const char *path)
{
    const struct archive_entry_info *entry = skill_archive_find(archive, path);

    return entry && entry->type != ARCHIVE_ENTRY_DIR ? entry : NULL;
}

/* A file in the root or in scripts/, and not one of a package's own. */
static bool is_in_place(const struct archive_entry_info *entry)
{
    const char *name = entry->path;

    if (strncmp(name, "scripts/", 8) == 0)
        name += 8;
    return entry->type == ARCHIVE_ENTRY_FILE && !strchr(name, '/') &&
           strncmp(name, "__", 2) != 0;
}

bool skill_entry_is_script(const struct archive_entry_info *entry, const char **ret_lang)
{
    *ret_lang = lang_of_path(entry->path);
    return *ret_lang && is_in_place(entry);
}

/* A skill without a script that could be run. */
static int refuse_scriptless(const struct skill_archive *archive, const char *problem,
                             struct err *err)
{
    char text[ERR_MESSAGE_MAX];

    (void)snprintf(text, sizeof(text), "%s; ", problem);
    for (size_t i = 0; i < archive->n_entries; i++) {
        if (is_in_place(&archive->entries[i]) &&
            refuse_foreign(text, &archive->entries[i], err))
            return -EINVAL;
    }
    return err_set(err, EINVAL, "%s: there is no script in it, only instructions for an agent",
                   problem);
}

static int ask(const struct skill_archive *archive, const char *problem, struct err *err)
{
    _cleanup_buf_ struct buf list = buf_init(ERR_MESSAGE_MAX);
    unsigned n = 0;

    for (size_t i = 0; i < archive->n_entries; i++) {
        const struct archive_entry_info *entry = &archive->entries[i];
        if (entry->type != ARCHIVE_ENTRY_FILE || !lang_of(entry))
            continue;
        if (++n > SHOWN_SCRIPTS_MAX) {
            buf_printf(&list, ", …");
            break;
        }
        buf_printf(&list, "%s%s", n > 1 ? ", " : "", names_shown(entry->path).text);
    }
    const char *text = buf_cstr(&list);
    if (n == 0)
        return refuse_scriptless(archive, problem, err);
    return err_set(err, EINVAL, "%s; name one with --script (or --module). Its scripts: %s",
                   problem, text ? text : "");
}

static int finish(enum proto_mode mode, const char *path, const char *lang,
                  struct skill_entry *ret, struct err *err)
{
    char *copy = strdup(path);

    if (!copy)
        return err_no_memory(err);
    *ret = (struct skill_entry){.mode = mode, .entry = copy, .lang = lang};
    return 0;
}

static int finish_file(const struct skill *skill, enum proto_mode mode,
                       const struct archive_entry_info *file, struct skill_entry *ret,
                       struct err *err)
{
    const struct language *named = language_of_path(file->path);
    const char *lang = named ? named->lang : lang_of_field(skill->lang);

    if (!lang)
        lang = lang_of(file);
    if (!lang && refuse_foreign("", file, err))
        return -EINVAL;
    if (!lang)
        return err_set(
            err, EINVAL,
            "\"%s\": its language is unknown; use .py, .js or .sh, a first line such as "
            "#!/usr/bin/env python3, or set \"lang\" in SKILL.md to python, node or bash",
            names_shown(file->path).text);
    return finish(mode, file->path, lang, ret, err);
}

/* A file the caller or the skill names, also without its folder scripts/. */
static int resolve_named(const struct skill *skill, const struct skill_archive *archive,
                         enum proto_mode mode, const char *what, const char *given,
                         struct skill_entry *ret, struct err *err)
{
    char path[NAMES_PATH_MAX + 1], problem[NAMES_SHOWN_MAX + 64];
    char below[NAMES_PATH_MAX + sizeof("scripts/")];
    const struct archive_entry_info *file;
    int result = names_clean(given, path, err);

    if (result < 0) {
        err_prefix(err, "%s", what);
        return result;
    }
    file = find_runnable(archive, path);
    if (file)
        return finish_file(skill, mode, file, ret, err);
    strcpy(below, "scripts/");
    strcat(below, path);
    file = find_runnable(archive, below);
    if (file)
        return finish_file(skill, mode, file, ret, err);
    snprintf(problem, sizeof(problem), "%s \"%s\" is not in the skill", what,
             names_shown(given).text);
    return ask(archive, problem, err);
}

static bool is_module(const char *name)
{
    bool start = true;

    if (strlen(name) > NAMES_COMPONENT_MAX)
        return false;
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '.') {
            if (start)
                return false;
            start = true;
            continue;
        }
        if (!(isalpha(c) || c == '_' || c >= 0x80 || (!start && isdigit(c))))
            return false;
        start = false;
    }
    return !start;
}

/* Those in their place whose language is known by this; the last one of them. */
static size_t count_scripts(const struct skill_archive *archive,
                            const char *(*lang)(const struct archive_entry_info *entry),
                            const struct archive_entry_info **ret_last)
{
    size_t n = 0;

    for (size_t i = 0; i < archive->n_entries; i++) {
        if (!lang(&archive->entries[i]) || !is_in_place(&archive->entries[i]))
            continue;
        *ret_last = &archive->entries[i];
        n++;
    }
    return n;
}

int skill_entry_resolve(const struct skill *skill, const struct skill_archive *archive,
                        const char *script, const char *module, struct skill_entry *ret,
                        struct err *err)
{
    static const char *const names[] = {"main.py",         "run.py",          "main.js",
                                        "main.sh",         "scripts/main.py", "scripts/run.py",
                                        "scripts/main.js", "scripts/main.sh"};
    const struct archive_entry_info *only = NULL;
    size_t n;

    if (script && module)
        return err_set(err, EINVAL, "give a script or a module, not both");
    if (module) {
        if (!is_module(module) || !utf8_valid(module, strlen(module)))
            return err_set(err, EINVAL,
                           "\"%s\" is no module name such as scripts.package_skill",
                           names_shown(module).text);
        return finish(PROTO_MODE_MODULE, module, "python", ret, err);
    }
    if (script)
        return resolve_named(skill, archive, PROTO_MODE_SCRIPT, "script", script, ret, err);
    if (skill->entry_point)
        return resolve_named(skill, archive, PROTO_MODE_ENTRY, "entry_point",
                             skill->entry_point, ret, err);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        only = find_runnable(archive, names[i]);
        if (only)
            return finish_file(skill, PROTO_MODE_ENTRY, only, ret, err);
    }
    n = count_scripts(archive, lang_of_name, &only);
    if (n == 0)
        n = count_scripts(archive, lang_of, &only);
    if (n == 1)
        return finish_file(skill, PROTO_MODE_ENTRY, only, ret, err);
    return ask(archive,
               n == 0 ? "the skill has nothing to run" : "the skill has several scripts", err);
}

bool skill_entry_can_run(const struct skill *skill, const struct skill_archive *archive,
                         struct err *why)
{
    const bool has_lang = lang_of_field(skill->lang) != NULL;
    _cleanup_skill_entry_ struct skill_entry by_itself = {0};
    struct err none = {0};

    if (skill_entry_resolve(skill, archive, NULL, NULL, &by_itself, &none) == 0)
        return true;
    for (size_t i = 0; i < archive->n_entries; i++) {
        const struct archive_entry_info *entry = &archive->entries[i];
        /* lang is that of a file without the extension of a language. */
        const bool is_of_field =
            has_lang && entry->executable && !language_of_path(entry->path);

        if (entry->type == ARCHIVE_ENTRY_FILE && (lang_of(entry) || is_of_field))
            return true;
    }
    (void)err_set(why, none.code, "%s", none.message);
    return false;
}

/* Of what runs, where its skill or its first line calls it another. What begins as TypeScript
 * runs JavaScript, too. */
static int warn_of_language(struct skill *skill, const struct skill_archive *archive,
                            const struct skill_entry *entry)
{
    const struct language *named = skill->lang ? language_of_name(skill->lang) : NULL;
    const struct language *begins = skill_archive_find(archive, entry->entry)->begins;
    const struct language *runs = language_of_name(entry->lang);
    const struct names_shown path = names_shown(entry->entry);
    const char *by = language_of_path(entry->entry) ? "its name" : "lang";
    int r = 0;

    if (named && named != runs)
        r = skill_warn(&skill->warnings,
                       "lang is %s, but \"%s\", which runs, is %s and runs as that: correct or "
                       "remove lang, or set entry_point",
                       named->shown, path.text, runs->shown);
    if (r < 0 || !begins || begins == runs || strcmp(begins->shown, "TypeScript") == 0)
        return r;
    return skill_warn(
        &skill->warnings,
        "\"%s\" begins as %s, but runs as %s, as %s says: correct its first line, "
        "or %s",
        path.text, begins->shown, runs->shown, by, by);
}

int skill_entry_check_language(struct skill *skill, const struct skill_archive *archive)
{
    const struct language *named = skill->lang ? language_of_name(skill->lang) : NULL;
    struct skill_entry entry = {0};
    struct err ignored = {0};
    int r;

    if (skill_entry_resolve(skill, archive, NULL, NULL, &entry, &ignored) < 0) {
        if (ignored.code == ENOMEM)
            return -ENOMEM;
        return !named || named->lang
                   ? 0
                   : skill_warn(&skill->warnings, "lang is %s, which skillvm does not run: %s",
                                named->shown, named->remedy);
    }
    r = warn_of_language(skill, archive, &entry);
    skill_entry_finish(&entry);
    return r;
}

void skill_entry_finish(struct skill_entry *entry)
{
    free(entry->entry);
    *entry = (struct skill_entry){0};
}
