/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a skill's files are read for what it needs. */
#include "api/skill/js_imports.h"
#include "api/skill/needs_internal.h"
#include "base/text.h"

#include <string.h>

const char *needs_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

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
    const char *name = needs_base_name(entry->path);

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
    const char *name = needs_base_name(entry->path);

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
