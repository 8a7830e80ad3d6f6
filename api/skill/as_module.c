/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/as_module.h"

#include "api/skill/content.h"
#include "api/skill/file_names.h"
#include "api/skill/imports.h"
#include "api/skill/imports_scan.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE (NAMES_PATH_MAX + 1)

struct look {
    const struct skill_archive *archive;
    int folder;        /* bytes of the script's path up to its name */
    const char *path;  /* of the script */
    bool needs_root;   /* it imports what only a module finds */
    bool needs_folder; /* it imports what lies beside it */
    unsigned n_names;  /* that were looked up */
};

/* True when the skill has such a file, or a folder where that will do. */
static bool has(const struct look *look, const char *path, const char *end, bool or_folder)
{
    char full[PATH_SIZE];
    const struct archive_entry_info *entry;

    if (snprintf(full, sizeof(full), "%s%s", path, end) >= (int)sizeof(full))
        return false;
    entry = skill_archive_find(look->archive, full);
    return entry && (or_folder || entry->type != ARCHIVE_ENTRY_DIR);
}

/* What is first on the path of a script: its folder. */
static bool is_beside(const struct look *look, const char *module)
{
    char path[PATH_SIZE];

    return snprintf(path, sizeof(path), "%.*s%.*s", look->folder, look->path,
                    (int)strcspn(module, "."), module) < (int)sizeof(path) &&
           (has(look, path, "", true) || has(look, path, ".py", false));
}

/*
 * A package in the skill's root, which is first on the path of a module. A single file there
 * does not count: a module of the standard library may have its name.
 */
static bool is_in_root(const struct look *look, const struct imports_found *found)
{
    char path[2 * IMPORTS_NAME_MAX + 2];

    (void)snprintf(path, sizeof(path), "%s", found->module);
    for (char *at = path; (at = strchr(at, '.'));)
        *at = '/';
    if (has(look, path, "/__init__.py", false) ||
        (strchr(path, '/') && has(look, path, ".py", false)))
        return true;
    if (!found->name)
        return false;
    (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", found->name);
    return has(look, path, ".py", false) || has(look, path, "/__init__.py", false);
}

static int on_found(void *user, const struct imports_found *found)
{
    struct look *look = user;

    if (found->kind != IMPORTS_MODULE || look->n_names++ >= IMPORTS_LOOKED_UP_MAX)
        return 0;
    if (found->level == 0 && is_beside(look, found->module))
        look->needs_folder = true;
    else if (found->runs && !found->guarded && (found->level > 0 || is_in_root(look, found)))
        look->needs_root = true;
    return 0;
}

/* Writes the script's path as a dotted name. False where it has none. */
static bool name_module(const char *path, char ret[PATH_SIZE])
{
    size_t len = strlen(path);
    bool start = true;

    if (len < 4 || len >= PATH_SIZE || strcmp(path + len - 3, ".py") != 0)
        return false;
    for (size_t i = 0; i < len - 3; i++) {
        unsigned char c = (unsigned char)path[i];

        if (c == '/' ? start : !(isalpha(c) || c == '_' || (!start && isdigit(c))))
            return false;
        start = c == '/';
        ret[i] = c == '/' ? '.' : path[i];
    }
    ret[len - 3] = '\0';
    return !start;
}

static int read_script(int tar_fd, struct look *look, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(IMPORTS_FILE_BYTES_MAX + 1);
    const struct archive_entry_info *entry = skill_archive_find(look->archive, look->path);
    int r;

    /* A link, or a large one. */
    if (!entry || entry->type != ARCHIVE_ENTRY_FILE || entry->size > IMPORTS_FILE_BYTES_MAX)
        return 0;
    r = skill_content_read_entry(tar_fd, entry, &text, err);
    if (r < 0)
        return r;
    /* One that arranges its path itself knows how it is run. */
    if (text.len == 0 || memmem(text.data, text.len, "sys.path", 8))
        return 0;
    if (!buf_cstr(&text))
        return err_no_memory(err);
    r = imports_scan(buf_cstr(&text), text.len, true, on_found, look);
    return r < 0 && r != -EINVAL ? err_set_errno(err, -r, "cannot read the imports") : 0;
}

int as_module_known(struct skill_entry *entry, struct err *err)
{
    char module[PATH_SIZE];
    char *name;

    if (!name_module(entry->entry, module))
        return err_set(err, EINVAL, "the script has no name as a module");
    name = strdup(module);
    if (!name)
        return err_no_memory(err);
    free(entry->entry);
    entry->entry = name;
    entry->mode = PROTO_MODE_MODULE;
    return 0;
}

int as_module(int tar_fd, const struct skill_archive *archive, struct skill_entry *entry,
              struct err *err)
{
    const char *slash = strrchr(entry->entry, '/');
    struct look look = {.archive = archive, .path = entry->entry};
    char module[PATH_SIZE];
    int r;

    if (entry->mode == PROTO_MODE_MODULE || strcmp(entry->lang, "python") != 0 || !slash ||
        !name_module(entry->entry, module))
        return 0;
    look.folder = (int)(slash + 1 - entry->entry);
    r = read_script(tar_fd, &look, err);
    return r < 0 || !look.needs_root || look.needs_folder ? r : as_module_known(entry, err);
}
