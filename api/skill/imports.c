/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/imports.h"

#include "api/skill/content.h"
#include "api/skill/imports_scan.h"
#include "api/skill/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE (NAMES_PATH_MAX + 1)

struct file {
    char *path;    /* owned */
    char *package; /* owned: what its relative imports start from; NULL: it may have none */
    bool is_main;
};

struct follow {
    const struct skill_archive *archive;
    char root[PATH_SIZE]; /* first on the path; "" or with a slash at its end */
    struct file files[IMPORTS_FILES_MAX];
    size_t n_files;
    const struct file *file; /* the one that is being read */
    struct skill_strings names;
};

/* Joins two parts into ret_path. False when it is too long to be a path of the skill. */
static bool join(char ret_path[PATH_SIZE], const char *a, const char *b)
{
    int n = snprintf(ret_path, PATH_SIZE, "%s%s", a, b);

    return n >= 0 && n < (int)PATH_SIZE;
}

static bool is_type(const struct follow *f, const char *path, enum archive_entry_type type)
{
    const struct archive_entry_info *entry = skill_archive_find(f->archive, path);

    return entry && entry->type == type;
}

/* Puts a file on the list, once. package is copied with its length; NULL for none. */
static int add_file(struct follow *f, const char *path, const char *package, size_t len,
                    bool is_main)
{
    struct file *file = &f->files[f->n_files];

    for (size_t i = 0; i < f->n_files; i++)
        if (strcmp(f->files[i].path, path) == 0)
            return 0;
    if (f->n_files == IMPORTS_FILES_MAX)
        return 0;
    *file = (struct file){.path = strdup(path), .is_main = is_main};
    if (package)
        file->package = strndup(package, len);
    f->n_files++;
    return file->path && (file->package || !package) ? 0 : -ENOMEM;
}

/*
 * Puts the file of a module, and those of the packages it is in, on the list. A folder is
 * looked into as the interpreter does: for a package, then for a module, then for a folder that
 * may hold some. 1 when a file was found, 0 when nothing of it is in the skill, -ENOMEM.
 */
static int follow_module(struct follow *f, const char *name, bool is_main)
{
    char at[PATH_SIZE], path[PATH_SIZE];
    const char *part = name;
    int found = 0, r = 0;

    strcpy(at, f->root);
    while (r == 0 && part) {
        size_t len = strcspn(part, "."), end = strlen(at) + len;
        const char *next = part[len] ? part + len + 1 : NULL;

        if (end + 2 > sizeof(at))
            break;
        memcpy(at + end - len, part, len);
        at[end] = '\0';
        if (join(path, at, "/__init__.py") && is_type(f, path, ARCHIVE_ENTRY_FILE)) {
            r = add_file(f, path, name, (size_t)(part - name) + len, false);
            found = 1;
        } else if (join(path, at, ".py") && is_type(f, path, ARCHIVE_ENTRY_FILE)) {
            const char *package = part > name ? name : NULL;
            size_t package_len = package ? (size_t)(part - name) - 1 : 0;

            r = add_file(f, path, package, package_len, is_main && !next);
            found = 1;
            next = NULL;
        } else if (!is_type(f, at, ARCHIVE_ENTRY_DIR)) {
            break;
        }
        strcpy(at + end, "/");
        part = next;
    }
    return r < 0 ? r : found;
}

/* The absolute name of a module that is named from a package, level dots up. */
static bool absolute_name(const char *package, const struct imports_found *found,
                          char ret_name[IMPORTS_NAME_MAX + 1])
{
    size_t len = package ? strlen(package) : 0;
    int n;

    if (found->level > 0 && !package)
        return false;
    for (unsigned up = 1; up < found->level; up++) {
        while (len > 0 && package[len - 1] != '.')
            len--;
        if (len == 0)
            return false;
        len--;
    }
    if (found->level == 0)
        len = 0;
    n = snprintf(ret_name, IMPORTS_NAME_MAX + 1, "%.*s%s%s", (int)len, package ? package : "",
                 len > 0 && found->module[0] ? "." : "", found->module);
    return n > 0 && n <= (int)IMPORTS_NAME_MAX;
}

static int on_found(void *user, const struct imports_found *found)
{
    struct follow *f = user;
    char module[IMPORTS_NAME_MAX + 1], member[2 * IMPORTS_NAME_MAX + 2] = "";
    int own, r;

    if (!absolute_name(f->file->package, found, module))
        return 0;
    own = follow_module(f, module, false);
    if (own >= 0 && found->name && strcmp(found->name, "*") != 0) {
        (void)snprintf(member, sizeof(member), "%s.%s", module, found->name);
        r = follow_module(f, member, false);
        own = r < 0 ? r : own | r;
    }
    if (own != 0 || found->level > 0)
        return own < 0 ? own : 0;
    r = skill_strings_insert(&f->names, module, IMPORTS_NAMES_MAX);
    if (r < 0 || !member[0] || strlen(member) > IMPORTS_NAME_MAX)
        return r;
    return skill_strings_insert(&f->names, member, IMPORTS_NAMES_MAX);
}

/* Reads one file of the list; *left is how many bytes may still be read. */
static int read_file(struct follow *f, int tar_fd, const struct file *file, uint64_t *left,
                     struct err *err)
{
    const struct archive_entry_info *entry = skill_archive_find(f->archive, file->path);
    _cleanup_buf_ struct buf text = buf_init(IMPORTS_FILE_BYTES_MAX + 1);
    const char *content;
    int r;

    if (entry->size > IMPORTS_FILE_BYTES_MAX || entry->size > *left)
        return 0;
    *left -= entry->size;
    r = skill_content_read(tar_fd, file->path, &text, err);
    if (r < 0)
        return r;
    f->file = file;
    content = buf_cstr(&text);
    r = content ? imports_scan(content, text.len, file->is_main, on_found, f) : -ENOMEM;
    /* What is no source imports nothing. */
    return r < 0 && r != -EINVAL ? err_set_errno(err, -r, "cannot read the imports") : 0;
}

/* Puts the entry's own file on the list and sets what is first on its path. */
static int begin(struct follow *f, const struct skill_entry *entry)
{
    char module[NAMES_PATH_MAX + sizeof(".__main__")];
    const char *slash;
    int r;

    if (entry->mode == PROTO_MODE_MODULE) {
        r = follow_module(f, entry->entry, true);
        if (r >= 0 &&
            snprintf(module, sizeof(module), "%s.__main__", entry->entry) < (int)sizeof(module))
            r = follow_module(f, module, true);
        return r < 0 ? r : 0;
    }
    slash = strrchr(entry->entry, '/');
    if (!is_type(f, entry->entry, ARCHIVE_ENTRY_FILE) ||
        snprintf(f->root, sizeof(f->root), "%.*s", slash ? (int)(slash + 1 - entry->entry) : 0,
                 entry->entry) >= (int)sizeof(f->root))
        return 0;
    return add_file(f, entry->entry, NULL, 0, true);
}

int imports_read(int tar_fd, const struct skill_archive *archive,
                 const struct skill_entry *entry, struct skill_strings *ret, struct err *err)
{
    struct follow f = {.archive = archive};
    uint64_t left = IMPORTS_BYTES_MAX;
    int r = 0;

    if (strcmp(entry->lang, "python") == 0)
        r = begin(&f, entry);
    if (r < 0)
        r = err_set_errno(err, -r, "cannot read the imports");
    /* The list grows while it is read. */
    for (size_t i = 0; r == 0 && i < f.n_files; i++)
        r = read_file(&f, tar_fd, &f.files[i], &left, err);
    for (size_t i = 0; i < f.n_files; i++) {
        free(f.files[i].path);
        free(f.files[i].package);
    }
    if (r < 0) {
        skill_strings_finish(&f.names);
        return r;
    }
    *ret = f.names;
    return 0;
}
