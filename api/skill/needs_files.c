/* SPDX-License-Identifier: Apache-2.0 */
/* A skill's files: which are read for what it needs, and what they are called. */
#include "api/skill/js_imports.h"
#include "api/skill/needs_internal.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool needs_is_aside(const char *path)
{
    static const char *const folders[] = {
        "vendor", "_vendor",      "vendored", "third_party", "site-packages", "test",
        "tests",  "node_modules", "venv",     ".venv",       ".git"};

    for (const char *end; (end = strchr(path, '/')); path = end + 1)
        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
            if (strlen(folders[i]) == (size_t)(end - path) &&
                strncmp(path, folders[i], (size_t)(end - path)) == 0)
                return true;
    return false;
}

static bool is_code(const struct archive_entry_info *entry)
{
    const char *name = basename(entry->path);

    return text_ends_with(name, ".py") || text_ends_with(name, ".sh") ||
           text_ends_with(name, ".bash") || strcmp(name, "requirements.txt") == 0 ||
           (!strchr(name, '.') && entry->executable) ||
           /* Of those that are others' there may be many. */
           ((js_is_source(name) || strcmp(name, "package.json") == 0) &&
            !needs_is_aside(entry->path));
}

static bool is_text(const struct archive_entry_info *entry)
{
    static const char *const ends[] = {".md",  ".txt", ".js",   ".mjs", ".cjs",  ".ts",
                                       ".rb",  ".go",  ".json", ".mts", ".php",  ".lua",
                                       ".R",   ".ps1", ".yaml", ".yml", ".toml", ".cfg",
                                       ".ini", ".env", ".html"};
    const char *name = basename(entry->path);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (text_ends_with(name, ends[i]))
            return true;
    return !strchr(name, '.');
}

uint64_t needs_choose(const struct skill_archive *archive, bool *ret_wanted, bool *ret_all)
{
    uint64_t bytes = 0;
    size_t files = 0;

    *ret_all = true;
    for (int code = 1; code >= 0; code--)
        for (size_t i = 0; i < archive->n_entries; i++) {
            const struct archive_entry_info *entry = &archive->entries[i];

            if (entry->type != ARCHIVE_ENTRY_FILE || is_code(entry) != (code == 1) ||
                (!code && !is_text(entry)))
                continue;
            if (entry->size > NEEDS_FILE_BYTES_MAX || bytes + entry->size > NEEDS_BYTES_MAX ||
                files == NEEDS_FILES_MAX) {
                *ret_all = false;
                continue;
            }
            files++;
            bytes += entry->size;
            if (ret_wanted)
                ret_wanted[i] = true;
        }
    return bytes;
}

uint64_t needs_bytes(const struct skill_archive *archive)
{
    bool all;

    return needs_choose(archive, NULL, &all);
}

/* Those that differ in nothing but capitals stand together, and folders behind files. */
static int compare_names(const void *a, const void *b)
{
    const struct needs_name *x = a, *y = b;
    int r = strcasecmp(x->text, y->text);

    r = r ? r : strcmp(x->text, y->text);
    return r ? r : (int)x->is_dir - (int)y->is_dir;
}

static int compare_letters(const void *a, const void *b)
{
    const struct needs_name *x = a, *y = b;

    return strcasecmp(x->text, y->text);
}

int needs_sort_names(struct needs_reader *r)
{
    size_t n = r->archive->n_entries;

    r->names = calloc(n + 1, sizeof(*r->names));
    if (!r->names)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct archive_entry_info *entry = &r->archive->entries[i];

        r->names[i] =
            (struct needs_name){basename(entry->path), entry->type == ARCHIVE_ENTRY_DIR};
    }
    qsort(r->names, n, sizeof(*r->names), compare_names);
    return 0;
}

bool needs_has_file(const struct needs_reader *r, const char *name)
{
    return bsearch(&(struct needs_name){name, false}, r->names, r->archive->n_entries,
                   sizeof(*r->names), compare_names);
}

bool needs_has_name(const struct needs_reader *r, const char *name)
{
    return bsearch(&(struct needs_name){name, false}, r->names, r->archive->n_entries,
                   sizeof(*r->names), compare_letters);
}

static int compare_modules(const void *a, const void *b)
{
    const struct needs_module *x = a, *y = b;
    int r = strcmp(x->name, y->name);

    return r ? r : strcmp(x->path, y->path);
}

/* NULL for what is none: one in the root needs no folder. */
static const char *module_of(const char *path)
{
    const char *name = basename(path), *folder;

    if (name == path || !text_ends_with(name, ".py"))
        return NULL;
    if (strcmp(name, "__init__.py") != 0)
        return name;
    folder = memrchr(path, '/', (size_t)(name - 1 - path));
    return folder ? folder + 1 : NULL;
}

static int sort_modules(struct needs_reader *r)
{
    r->modules = calloc(r->archive->n_entries + 1, sizeof(*r->modules));
    if (!r->modules)
        return -ENOMEM;
    for (size_t i = 0; i < r->archive->n_entries; i++) {
        const char *path = r->archive->entries[i].path, *name = module_of(path);

        if (name)
            r->modules[r->n_modules++] = (struct needs_module){name, path};
    }
    qsort(r->modules, r->n_modules, sizeof(*r->modules), compare_modules);
    return 0;
}

/* The first path of that name, or NULL. */
static const char *find_path(const struct needs_reader *r, const char *name)
{
    size_t low = 0, high = r->n_modules;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (strcmp(r->modules[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n_modules && strcmp(r->modules[low].name, name) == 0 ? r->modules[low].path
                                                                         : NULL;
}

int needs_find_module(struct needs_reader *r, const char *module, const char **ret)
{
    char name[NEEDS_TEXT_MAX + 32];
    const char *package;

    if (!r->modules && sort_modules(r) < 0)
        return -ENOMEM;
    (void)snprintf(name, sizeof(name), "%s.py", module);
    *ret = find_path(r, name);
    (void)snprintf(name, sizeof(name), "%s/__init__.py", module);
    package = find_path(r, name);
    if (package && (!*ret || strcmp(package, *ret) < 0))
        *ret = package;
    return 0;
}
