/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/imports.h"

#include "api/skill/content.h"
#include "api/skill/file_names.h"
#include "api/skill/imports_scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE (NAMES_PATH_MAX + 1)

struct file {
    char *path;       /* owned */
    char *package;    /* owned: what its relative imports start from; NULL: it may have none */
    const char *root; /* first on its path, "" or with a slash at its end: borrowed */
    bool is_main;
};

/* Some half a second, where paths are long. */
#define LOOK_UPS_MAX (1u << 18)

struct follow {
    const struct skill_archive *archive;
    struct skill_strings roots; /* of scripts */
    struct skill_strings added; /* to the path of all, by what was read so far */
    struct file *files;         /* files_max */
    size_t n_files, files_max;
    const struct file *file;         /* the one that is being read */
    const struct imports_walk *walk; /* NULL: the names of what runs at its start are wanted */
    size_t n_names;                  /* that were looked up */
    size_t n_look_ups;               /* for these, below each folder */
    struct skill_strings names;
};

/* Joins two parts into ret_path. False when it is too long to be a path of the skill. */
static bool join(char ret_path[PATH_SIZE], const char *a, const char *b)
{
    int n = snprintf(ret_path, PATH_SIZE, "%s%s", a, b);

    return n >= 0 && n < (int)PATH_SIZE;
}

static bool is_type(struct follow *f, const char *path, enum archive_entry_type type)
{
    const struct archive_entry_info *entry;

    if (f->n_look_ups++ >= LOOK_UPS_MAX)
        return false;
    entry = skill_archive_find(f->archive, path);

    return entry && entry->type == type;
}

/* Puts a file on the list, once. package is copied with its length; NULL for none. */
static int add_file(struct follow *f, const char *root, const char *path, const char *package,
                    size_t len, bool is_main)
{
    struct file *file;

    for (size_t i = 0; i < f->n_files; i++)
        if (strcmp(f->files[i].path, path) == 0)
            return 0;
    if (f->n_files == f->files_max)
        return 0;
    file = &f->files[f->n_files];
    *file = (struct file){.path = strdup(path), .root = root, .is_main = is_main};
    if (package)
        file->package = strndup(package, len);
    f->n_files++;
    return file->path && (file->package || !package) ? 0 : -ENOMEM;
}

/*
 * Puts the file of a module, and those of the packages it is in, on the list. A folder is
 * looked into as the interpreter does: for a package, then for a module, then for a folder that
 * may hold some. 1 when a file was found, 0 when nothing of it is below the root, -ENOMEM.
 */
static int follow_below(struct follow *f, const char *root, const char *name, bool is_main)
{
    char at[PATH_SIZE], path[PATH_SIZE];
    const char *part = name;
    int found = 0, r = 0;

    strcpy(at, root);
    while (r == 0 && part) {
        size_t len = strcspn(part, "."), end = strlen(at) + len;
        const char *next = part[len] ? part + len + 1 : NULL;

        if (end + 2 > sizeof(at))
            break;
        memcpy(at + end - len, part, len);
        at[end] = '\0';
        if (join(path, at, "/__init__.py") && is_type(f, path, ARCHIVE_ENTRY_FILE)) {
            r = add_file(f, root, path, name, (size_t)(part - name) + len, false);
            found = 1;
        } else if (join(path, at, ".py") && is_type(f, path, ARCHIVE_ENTRY_FILE)) {
            const char *package = part > name ? name : NULL;
            size_t package_len = package ? (size_t)(part - name) - 1 : 0;

            r = add_file(f, root, path, package, package_len, is_main && !next);
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

/* The same on the path of the file that is being read. */
static int follow_module(struct follow *f, const char *name)
{
    int r = follow_below(f, f->file->root, name, false);

    if (r == 0 && f->walk && f->file->root[0])
        r = follow_below(f, "", name, false);
    for (size_t i = 0; r == 0 && i < f->added.len; i++)
        r = follow_below(f, f->added.items[i], name, false);
    return r;
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

/* Whether a module, or the member that is imported from it, is the skill's. As follow_module.
 */
static int follow_import(struct follow *f, const struct imports_found *found,
                         const char *module, const char *member)
{
    int own = follow_module(f, module), r;

    if (own < 0 || !found->name || strcmp(found->name, "*") == 0)
        return own;
    r = follow_module(f, member);
    return r < 0 ? r : own | r;
}

static int on_import(struct follow *f, const struct imports_found *found,
                     char ret_module[IMPORTS_NAME_MAX + 1], bool *ret_own)
{
    char member[2 * IMPORTS_NAME_MAX + 2] = "";
    int own, r;

    if (f->n_names++ >= IMPORTS_LOOKED_UP_MAX || f->n_look_ups >= LOOK_UPS_MAX ||
        !absolute_name(f->file->package, found, ret_module)) {
        ret_module[0] = '\0';
        return 0;
    }
    if (found->name && strcmp(found->name, "*") != 0)
        (void)snprintf(member, sizeof(member), "%s.%s", ret_module, found->name);
    own = follow_import(f, found, ret_module, member);
    /* Nobody knows whose it is. */
    if (f->n_look_ups >= LOOK_UPS_MAX) {
        ret_module[0] = '\0';
        return own < 0 ? own : 0;
    }
    *ret_own = own > 0;
    if (own != 0 || found->level > 0 || f->walk)
        return own < 0 ? own : 0;
    r = skill_strings_insert(&f->names, ret_module, IMPORTS_NAMES_MAX);
    if (r < 0 || !member[0] || strlen(member) > IMPORTS_NAME_MAX)
        return r;
    return skill_strings_insert(&f->names, member, IMPORTS_NAMES_MAX);
}

static int add_folder(struct follow *f, const char *path)
{
    size_t len = strlen(path);

    if (len > 0 && !is_type(f, path, ARCHIVE_ENTRY_DIR))
        return 0;
    for (size_t i = 0; i < f->added.len; i++)
        if (strncmp(f->added.items[i], path, len) == 0 &&
            strcmp(f->added.items[i] + len, len > 0 ? "/" : "") == 0)
            return 0;
    return f->added.len == IMPORTS_FOLDERS_MAX
               ? 0
               : skill_strings_add(&f->added, "%s%s", path, len > 0 ? "/" : "");
}

/*
 * What a source adds to the path it computes, of its own place and of literals. So each folder
 * around it may be meant, and from each the literals' path.
 */
static int on_folder(struct follow *f, const char *literal)
{
    static const char *const mounts[] = {"/sandbox/skill/", "/sandbox/scripts/"};
    char path[PATH_SIZE];
    int r = 0;

    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
        if (strncmp(literal, mounts[i], strlen(mounts[i])) == 0)
            return names_resolve("", 0, literal + strlen(mounts[i]), path) ? add_folder(f, path)
                                                                           : 0;
    for (size_t end = strlen(f->file->path); r == 0; end--) {
        while (end > 0 && f->file->path[end - 1] != '/')
            end--;
        if (names_resolve(f->file->path, end, literal, path))
            r = add_folder(f, path);
        if (r == 0 && names_resolve(f->file->path, end, "", path))
            r = add_folder(f, path);
        if (end == 0)
            break;
    }
    return r;
}

static int on_found(void *user, const struct imports_found *found)
{
    struct follow *f = user;
    char module[IMPORTS_NAME_MAX + 1] = "";
    struct imports_use use = {.file = f->file->path, .found = found};
    int r = 0;

    if (!f->walk)
        return found->kind == IMPORTS_MODULE && found->runs
                   ? on_import(f, found, module, &use.own)
                   : 0;
    if (found->kind == IMPORTS_MODULE || found->kind == IMPORTS_NAMED)
        r = on_import(f, found, module, &use.own);
    else if (found->kind == IMPORTS_FOLDER)
        r = on_folder(f, found->module);
    use.module = module[0] ? module : NULL;
    return r < 0 ? r : f->walk->use(f->walk->user, &use);
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
    r = skill_content_read_entry(tar_fd, entry, &text, err);
    if (r < 0)
        return r;
    f->file = file;
    content = buf_cstr(&text);
    r = content ? imports_scan(content, text.len, file->is_main, on_found, f) : -ENOMEM;
    /* What is no source imports nothing. */
    return r < 0 && r != -EINVAL ? err_set_errno(err, -r, "cannot read the imports") : 0;
}

/* The folder of a file as a root, borrowed from f, or NULL without memory. */
static const char *root_of(struct follow *f, const char *path)
{
    if (skill_strings_add(&f->roots, "%.*s", (int)(basename(path) - path), path) < 0)
        return NULL;
    return f->roots.items[f->roots.len - 1];
}

static int add_script(struct follow *f, const char *path)
{
    const char *root;

    if (!is_type(f, path, ARCHIVE_ENTRY_FILE) || strlen(path) >= PATH_SIZE)
        return 0;
    root = root_of(f, path);
    return root ? add_file(f, root, path, NULL, 0, true) : -ENOMEM;
}

/* Puts the entry's own file on the list and sets what is first on its path. */
static int begin(struct follow *f, const struct skill_entry *entry)
{
    char module[NAMES_PATH_MAX + sizeof(".__main__")];
    int r;

    if (entry->mode != PROTO_MODE_MODULE)
        return add_script(f, entry->entry);
    r = follow_below(f, "", entry->entry, true);
    if (r >= 0 &&
        snprintf(module, sizeof(module), "%s.__main__", entry->entry) < (int)sizeof(module))
        r = follow_below(f, "", module, true);
    return r < 0 ? r : 0;
}

static void follow_finish(struct follow *f)
{
    for (size_t i = 0; i < f->n_files; i++) {
        free(f->files[i].path);
        free(f->files[i].package);
    }
    skill_strings_finish(&f->roots);
    skill_strings_finish(&f->added);
}

int imports_read(int tar_fd, const struct skill_archive *archive,
                 const struct skill_entry *entry, struct skill_strings *ret, struct err *err)
{
    struct file files[IMPORTS_FILES_MAX];
    struct follow f = {.archive = archive, .files = files, .files_max = IMPORTS_FILES_MAX};
    uint64_t left = IMPORTS_BYTES_MAX;
    int r = 0;

    if (strcmp(entry->lang, "python") == 0)
        r = begin(&f, entry);
    if (r < 0)
        r = err_set_errno(err, -r, "cannot read the imports");
    /* The list grows while it is read. */
    for (size_t i = 0; r == 0 && i < f.n_files; i++)
        r = read_file(&f, tar_fd, &f.files[i], &left, err);
    follow_finish(&f);
    if (r < 0) {
        skill_strings_finish(&f.names);
        return r;
    }
    *ret = f.names;
    return 0;
}

int imports_walk(const struct imports_walk *walk)
{
    struct file files[IMPORTS_WALK_FILES_MAX];
    struct follow f = {.archive = walk->archive,
                       .files = files,
                       .files_max = IMPORTS_WALK_FILES_MAX,
                       .walk = walk};
    int r = 0;

    for (size_t i = 0; r == 0 && i < walk->n_scripts; i++)
        r = add_script(&f, walk->scripts[i]);
    for (size_t i = 0; r == 0 && i < f.n_files; i++) {
        size_t len;
        const char *text = walk->text(walk->user, files[i].path, &len);

        f.file = &files[i];
        r = text ? imports_scan(text, len, files[i].is_main, on_found, &f) : 0;
        r = r == -EINVAL ? 0 : r;
    }
    follow_finish(&f);
    return r;
}
