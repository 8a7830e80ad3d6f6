/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/entry.h"

#include "api/skill/names.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHOWN_SCRIPTS_MAX 10u

static const struct {
    const char *extension;
    const char *lang;
} extensions[] = {
    {".py", "python"}, {".js", "node"}, {".mjs", "node"},
    {".cjs", "node"},  {".sh", "bash"}, {".bash", "bash"},
};

static const struct {
    const char *name;
    const char *lang;
} languages[] = {
    {"python", "python"}, {"python3", "python"},  {"py", "python"}, {"node", "node"},
    {"nodejs", "node"},   {"javascript", "node"}, {"js", "node"},   {"bash", "bash"},
    {"sh", "bash"},       {"shell", "bash"},
};

/* NULL where the name has none of the known extensions. */
static const char *lang_of_path(const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        size_t n = strlen(extensions[i].extension);
        if (len > n && strcmp(path + len - n, extensions[i].extension) == 0)
            return extensions[i].lang;
    }
    return NULL;
}

static const char *lang_of_field(const char *lang)
{
    for (size_t i = 0; lang && i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (strcasecmp(lang, languages[i].name) == 0)
            return languages[i].lang;
    }
    return NULL;
}

/* A file, or a link, which the archive's checks keep inside the skill. */
static bool is_runnable(const struct skill_archive *archive, const char *path)
{
    const struct archive_entry_info *entry = skill_archive_find(archive, path);

    return entry && entry->type != ARCHIVE_ENTRY_DIR;
}

bool skill_entry_is_script(const struct archive_entry_info *entry, const char **ret_lang)
{
    const char *name = entry->path;

    *ret_lang = lang_of_path(entry->path);
    if (entry->type != ARCHIVE_ENTRY_FILE || !*ret_lang)
        return false;
    if (strncmp(name, "scripts/", 8) == 0)
        name += 8;
    return !strchr(name, '/') && strncmp(name, "__", 2) != 0;
}

static int ask(const struct skill_archive *archive, const char *problem, struct err *err)
{
    _cleanup_buf_ struct buf list = buf_init(ERR_MESSAGE_MAX);
    unsigned n = 0;

    for (size_t i = 0; i < archive->n_entries; i++) {
        const struct archive_entry_info *entry = &archive->entries[i];
        if (entry->type != ARCHIVE_ENTRY_FILE || !lang_of_path(entry->path))
            continue;
        if (++n > SHOWN_SCRIPTS_MAX) {
            buf_printf(&list, ", …");
            break;
        }
        buf_printf(&list, "%s%s", n > 1 ? ", " : "", names_shown(entry->path).text);
    }
    const char *text = buf_cstr(&list);
    if (n == 0)
        return err_set(err, EINVAL, "%s; the skill has no script at all", problem);
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

static int finish_file(const struct skill *skill, enum proto_mode mode, const char *path,
                       struct skill_entry *ret, struct err *err)
{
    const char *lang = lang_of_path(path);

    if (!lang)
        lang = lang_of_field(skill->lang);
    if (!lang)
        return err_set(
            err, EINVAL,
            "\"%s\": its language is unknown; use .py, .js or .sh, or set \"lang\" in "
            "SKILL.md to python, node or bash",
            names_shown(path).text);
    return finish(mode, path, lang, ret, err);
}

/* A file the caller or the skill names, also without its folder scripts/. */
static int resolve_named(const struct skill *skill, const struct skill_archive *archive,
                         enum proto_mode mode, const char *what, const char *given,
                         struct skill_entry *ret, struct err *err)
{
    char path[NAMES_PATH_MAX + 1], problem[NAMES_SHOWN_MAX + 64];
    char below[NAMES_PATH_MAX + sizeof("scripts/")];
    int result = names_clean(given, path, err);

    if (result < 0) {
        err_prefix(err, "%s", what);
        return result;
    }
    if (is_runnable(archive, path))
        return finish_file(skill, mode, path, ret, err);
    strcpy(below, "scripts/");
    strcat(below, path);
    if (is_runnable(archive, below))
        return finish_file(skill, mode, below, ret, err);
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

int skill_entry_resolve(const struct skill *skill, const struct skill_archive *archive,
                        const char *script, const char *module, struct skill_entry *ret,
                        struct err *err)
{
    static const char *const names[] = {"main.py",         "run.py",          "main.js",
                                        "main.sh",         "scripts/main.py", "scripts/run.py",
                                        "scripts/main.js", "scripts/main.sh"};
    const char *only = NULL;
    size_t n = 0;

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
        if (is_runnable(archive, names[i]))
            return finish_file(skill, PROTO_MODE_ENTRY, names[i], ret, err);
    }
    for (size_t i = 0; i < archive->n_entries; i++) {
        const char *lang;

        if (skill_entry_is_script(&archive->entries[i], &lang)) {
            only = archive->entries[i].path;
            n++;
        }
    }
    if (n == 1)
        return finish_file(skill, PROTO_MODE_ENTRY, only, ret, err);
    return ask(archive,
               n == 0 ? "nothing in the skill says what to run"
                      : "the skill has several scripts",
               err);
}

void skill_entry_finish(struct skill_entry *entry)
{
    free(entry->entry);
    *entry = (struct skill_entry){0};
}
