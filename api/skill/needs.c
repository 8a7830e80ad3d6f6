/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/needs.h"

#include "api/skill/content.h"
#include "api/skill/entry.h"
#include "api/skill/imports.h"
#include "api/skill/js_imports.h"
#include "api/skill/language.h"
#include "api/skill/needs_internal.h"
#include "api/skill/shell_scan.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash(const struct needs_item *item)
{
    uint32_t h = 2166136261u ^ (uint32_t)item->kind;

    for (const char *p = item->name; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    for (const char *p = item->file; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h;
}

static void item_finish(struct needs_item *item)
{
    free(item->name);
    free(item->detail);
    free(item->wanted);
    free(item->file);
    free(item->elsewhere);
}

static int copy(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return *ret || !text ? 0 : -ENOMEM;
}

static int append(struct needs *needs, const struct needs_item *item)
{
    struct needs_item *items = array_room(needs->items, needs->len, sizeof(*items));
    struct needs_item added = *item;

    if (!items)
        return -ENOMEM;
    needs->items = items;
    added.name = added.detail = added.wanted = added.file = added.elsewhere = NULL;
    if (copy(item->name, &added.name) < 0 || copy(item->detail, &added.detail) < 0 ||
        copy(item->wanted, &added.wanted) < 0 || copy(item->file, &added.file) < 0) {
        item_finish(&added);
        return -ENOMEM;
    }
    if (item->kind == NEEDS_LANGUAGE)
        added.python_minor = needs_python_minor(item->detail);
    items[needs->len++] = added;
    return 0;
}

/* One of Python's may be required twice, under other markers. */
static bool is_same(const struct needs_item *a, const struct needs_item *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file, b->file) == 0 &&
           strcmp(a->wanted ? a->wanted : "", b->wanted ? b->wanted : "") == 0;
}

int needs_add(struct needs_reader *r, const struct needs_item *item)
{
    uint32_t at = hash(item) % NEEDS_SEATS;
    unsigned passed = 0;
    int result;

    for (; r->seats[at] && passed < NEEDS_PASSED_MAX; at = (at + 1) % NEEDS_SEATS, passed++) {
        struct needs_item *known = &r->needs.items[r->seats[at] - 1];

        if (!is_same(known, item))
            continue;
        if (known->guarded && !item->guarded) {
            known->guarded = false;
            known->line = item->line;
        }
        if (item->connects && !known->connects) {
            known->connects = true;
            known->line = item->line;
        }
        return 0;
    }
    if (r->needs.len == NEEDS_ITEMS_MAX || passed == NEEDS_PASSED_MAX) {
        r->needs.truncated = true;
        return 0;
    }
    result = append(&r->needs, item);
    if (result == 0)
        r->seats[at] = (uint16_t)r->needs.len;
    return result;
}

static int on_header(void *user, const struct tar_header *header)
{
    struct needs_reader *r = user;
    const struct archive_entry_info *entry = skill_archive_find(r->archive, header->path);

    if (!entry || !r->wanted[entry - r->archive->entries] || r->n_files == NEEDS_FILES_MAX ||
        header->size != entry->size)
        return 0;
    r->files[r->n_files++] =
        (struct needs_file){.entry = entry, .at = r->texts.len, .len = (size_t)entry->size};
    return 1;
}

static int load(struct needs_reader *r, int tar_fd, struct err *err)
{
    struct content_walk walk = {.out = &r->texts, .each = on_header, .user = r};
    bool all;
    int result;

    r->wanted = calloc(r->archive->n_entries + 1, sizeof(*r->wanted));
    if (!r->wanted)
        return err_no_memory(err);
    (void)needs_choose(r->archive, r->wanted, &all);
    r->needs.truncated = !all;
    result = content_walk(tar_fd, &walk, err);
    return result < 0 ? err_set_errno(err, -result, "cannot read the stored skill") : 0;
}

static const char *text_of(const struct needs_reader *r, const struct needs_file *file)
{
    return file->len > 0 ? (const char *)r->texts.data + file->at : "";
}

static const char *on_text(void *user, const char *path, size_t *ret_len)
{
    const struct needs_reader *r = user;

    for (size_t i = 0; i < r->n_files; i++)
        if (strcmp(r->files[i].entry->path, path) == 0) {
            *ret_len = r->files[i].len;
            return text_of(r, &r->files[i]);
        }
    return NULL;
}

static int add_module(struct needs_reader *r, const struct imports_use *use)
{
    char module[IMPORTS_NAME_MAX + 1];
    struct needs_item item = {.kind = NEEDS_MODULE,
                              .name = module,
                              .file = (char *)(uintptr_t)use->file,
                              .line = use->found->line,
                              .guarded = use->found->guarded,
                              .own = use->own};

    if (!use->module || strlen(use->module) > NEEDS_TEXT_MAX)
        return 0;
    strcpy(module, use->module);
    if (use->own)
        return needs_add(r, &item);
    /* What a folder of others' code does later is for those who call it. */
    if (use->found->level > 0 || (!use->found->runs && needs_is_aside(use->file)))
        return 0;
    module[strcspn(module, ".")] = '\0';
    return needs_add(r, &item);
}

/* A text for a shell, or a file of one, from a line on. */
struct shell {
    struct needs_reader *r;
    const char *file;
    unsigned line; /* of all that is found in a text within a line; 0: as found */
    bool guarded;
};

static int add_program(struct needs_reader *r, const char *name, const char *file,
                       unsigned line, bool guarded)
{
    const struct needs_item item = {.kind = NEEDS_PROGRAM,
                                    .name = (char *)(uintptr_t)name,
                                    .file = (char *)(uintptr_t)file,
                                    .line = line,
                                    .guarded = guarded,
                                    .own = needs_has_file(r, name)};

    return needs_add(r, &item);
}

static int on_shell(void *user, const struct shell_found *found)
{
    const struct shell *shell = user;
    struct needs_reader *r = shell->r;

    if (++r->uses > NEEDS_USES_MAX)
        return -E2BIG;
    if (found->kind == SHELL_ASKED)
        return skill_strings_insert(&r->asked, found->name, NEEDS_ITEMS_MAX);
    if (found->kind == SHELL_DEFINED)
        return skill_strings_insert(&r->defined, found->name, NEEDS_ITEMS_MAX);
    if (found->kind == SHELL_HOST)
        return needs_add_connection(r, found->name, shell->file,
                                    shell->line ? shell->line : found->line);
    if (found->kind == SHELL_SOURCED)
        return needs_has_file(r, found->name)
                   ? 0
                   : skill_strings_insert(&r->opaque, shell->file, NEEDS_ITEMS_MAX);
    return add_program(r, found->name, shell->file, shell->line ? shell->line : found->line,
                       shell->guarded);
}

static int add_argument(struct needs_reader *r, const struct imports_use *use)
{
    const char *name = shell_program_name(use->found->module);

    return shell_is_program(name)
               ? add_program(r, name, use->file, use->found->line, use->found->guarded)
               : 0;
}

static int on_use(void *user, const struct imports_use *use)
{
    struct needs_reader *r = user;
    struct shell shell = {r, use->file, use->found->line, use->found->guarded};
    const char *text = use->found->module;
    int result;

    if (++r->uses > NEEDS_USES_MAX)
        return -E2BIG;
    switch (use->found->kind) {
    case IMPORTS_MODULE:
    case IMPORTS_NAMED:
        return add_module(r, use);
    case IMPORTS_PROGRAM:
        return add_argument(r, use);
    case IMPORTS_COMMAND:
        result = shell_scan(text, strlen(text), on_shell, &shell);
        return result == -EINVAL ? 0 : result;
    case IMPORTS_ASKED:
        return skill_strings_insert(&r->asked, text, NEEDS_ITEMS_MAX);
    case IMPORTS_HOST:
        return needs_add_connection(r, text, use->file, use->found->line);
    case IMPORTS_NODE:
        return needs_add_import(r, use);
    case IMPORTS_FOLDER:
        break;
    }
    return 0;
}

static bool has_word(const char *text, size_t len, const char *word)
{
    return len > 0 && memmem(text, len, word, strlen(word));
}

/* The program that a file's first line names, without its folder; "" for none. */
static void read_shebang(const char *text, size_t len, char ret_name[NEEDS_TEXT_MAX])
{
    size_t n = 0;
    const char *name = language_interpreter(text, len, &n);

    (void)snprintf(ret_name, NEEDS_TEXT_MAX, "%.*s", n < NEEDS_TEXT_MAX ? (int)n : 0,
                   name ? name : "");
}

static bool is_shell(const char *program)
{
    return strcmp(program, "sh") == 0 || strcmp(program, "bash") == 0 ||
           strcmp(program, "dash") == 0;
}

/* Beside a file that makes its folder a package, whose modules are imported and not run. */
static bool is_in_package(const struct needs_reader *r, const char *path)
{
    char init[TAR_PATH_MAX + sizeof("__init__.py")];

    (void)snprintf(init, sizeof(init), "%.*s__init__.py", (int)(basename(path) - path), path);
    return skill_archive_find(r->archive, init);
}

/* Whether somebody may run the file by itself. */
static bool is_script(const struct needs_reader *r, const struct needs_file *file)
{
    const char *path = file->entry->path, *text = text_of(r, file), *lang;

    if (needs_is_aside(path))
        return false;
    return skill_entry_is_script(file->entry, &lang) || file->entry->executable ||
           (file->len > 2 && memcmp(text, "#!", 2) == 0) ||
           (r->skill->entry_point && text_ends_with(path, r->skill->entry_point)) ||
           (has_word(text, file->len, "__main__") && !is_in_package(r, path));
}

/* That a script is in a language that images may lack. */
static int add_script(struct needs_reader *r, const char *path, const char *language,
                      const char *program)
{
    return needs_add(r, &(struct needs_item){.kind = NEEDS_LANGUAGE,
                                             .name = (char *)(uintptr_t)language,
                                             .detail = (char *)(uintptr_t)program,
                                             .file = (char *)(uintptr_t)path,
                                             .line = 1,
                                             .own = program && needs_has_file(r, program)});
}

/* A language whose scripts nothing here runs. */
static int add_language(struct needs_reader *r, const struct needs_file *file)
{
    static const struct {
        const char *end, *language, *program;
    } languages[] = {
        {".ts", "TypeScript", "ts-node"},
        {".mts", "TypeScript", "ts-node"},
        {".rb", "Ruby", "ruby"},
        {".go", "Go", "go"},
        {".php", "PHP", "php"},
        {".R", "R", "Rscript"},
        {".ps1", "PowerShell", "pwsh"},
        {".lua", "Lua", "lua"},
        {"package.json", "JavaScript", "node"},
    };
    const char *path = file->entry->path;
    const char *name = strncmp(path, "scripts/", 8) == 0 ? path + 8 : path;

    for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (text_ends_with(name, languages[i].end) && !strchr(name, '/'))
            return add_script(r, path, languages[i].language, languages[i].program);
    }
    return 0;
}

/* What of a script is read when all files were: its imports. */
enum language_read { READ_NOTHING, READ_PYTHON, READ_NODE };

static int read_shell(struct needs_reader *r, const struct needs_file *file)
{
    struct shell shell = {.r = r, .file = file->entry->path};
    int result = shell_scan(text_of(r, file), file->len, on_shell, &shell);

    return result == -EINVAL ? 0 : result;
}

/* All but the imports. */
static int read_file(struct needs_reader *r, const struct needs_file *file,
                     enum language_read *ret_language)
{
    const char *path = file->entry->path, *text = text_of(r, file);
    char program[NEEDS_TEXT_MAX];
    bool python = text_ends_with(path, ".py"), node = js_is_source(path),
         shell = text_ends_with(path, ".sh") || text_ends_with(path, ".bash");
    int result = needs_read_text(r, path, text, file->len);

    *ret_language = READ_NOTHING;
    if (result < 0 || needs_is_aside(path))
        return result;
    if (strcmp(basename(path), "requirements.txt") == 0)
        return needs_read_requirements(r, path, text, file->len);
    read_shebang(text, file->len, program);
    if (!python && !shell && !node && program[0]) {
        python = strncmp(program, "python", 6) == 0;
        node = strcmp(program, "node") == 0;
        shell = is_shell(program);
        if (shell_is_program(program))
            result = add_program(r, program, path, 1, false);
    } else if (!python && !shell && !node) {
        result = add_language(r, file);
    }
    if (result == 0 && strcmp(basename(path), "package.json") == 0)
        return needs_read_package(r, path, text, file->len);
    if (result == 0 && shell && is_script(r, file))
        result = add_script(r, path, "bash", "bash");
    if (result == 0 && shell)
        return read_shell(r, file);
    if (result < 0 || !is_script(r, file))
        return result;
    if (node) {
        *ret_language = READ_NODE;
        return add_script(r, path, "JavaScript", "node");
    }
    if (!python)
        return 0;
    *ret_language = READ_PYTHON;
    /* Which may ask for a version of it. */
    result = needs_read_script_block(r, path, text, file->len);
    return result < 0 ? result : add_script(r, path, "Python", NULL);
}

static int read_files(struct needs_reader *r)
{
    const char *python[NEEDS_FILES_MAX], *node[NEEDS_FILES_MAX];
    struct imports_walk in_python = {
        .archive = r->archive, .scripts = python, .text = on_text, .use = on_use, .user = r};
    struct imports_walk in_node = in_python;
    int result = needs_read_fields(r);

    in_node.scripts = node;
    if (result < 0)
        return result;
    for (size_t i = 0; i < r->n_files; i++) {
        enum language_read language;

        result = read_file(r, &r->files[i], &language);
        if (result < 0)
            return result;
        if (language == READ_PYTHON)
            python[in_python.n_scripts++] = r->files[i].entry->path;
        else if (language == READ_NODE)
            node[in_node.n_scripts++] = r->files[i].entry->path;
    }
    result = imports_walk(&in_python);
    return result < 0 ? result : js_imports_walk(&in_node);
}

static int find_elsewhere(struct needs_reader *r, struct needs_item *item)
{
    const char *path;
    int result = needs_find_module(r, item->name, &path);

    return result < 0 ? result : copy(path, &item->elsewhere);
}

/* What is known only when all was read. 0 or -ENOMEM. */
static int settle(struct needs_reader *r)
{
    size_t kept = 0;
    int result = 0;

    for (size_t i = 0; i < r->needs.len; i++) {
        struct needs_item *item = &r->needs.items[i];

        if (item->kind == NEEDS_PROGRAM && image_manifest_has(&r->defined, item->name)) {
            item_finish(item);
            continue;
        }
        /* It may be a function that is defined where nobody can look. */
        if (item->kind == NEEDS_PROGRAM && (image_manifest_has(&r->asked, item->name) ||
                                            image_manifest_has(&r->opaque, item->file)))
            item->guarded = true;
        if ((item->kind == NEEDS_NODE_MODULE || item->kind == NEEDS_NODE_PACKAGE) &&
            image_manifest_has(&r->optional, item->name))
            item->guarded = true;
        if (item->kind == NEEDS_MODULE && !item->own && result == 0)
            result = find_elsewhere(r, item);
        r->needs.items[kept++] = *item;
    }
    r->needs.len = kept;
    return result;
}

static int read_all(struct needs_reader *r, int tar_fd, struct err *err)
{
    int result = load(r, tar_fd, err);

    if (result < 0)
        return result;
    if (needs_sort_names(r) < 0)
        return err_no_memory(err);
    result = read_files(r);
    if (result < 0 && result != -E2BIG)
        return err_no_memory(err);
    r->needs.truncated = r->needs.truncated || result == -E2BIG;
    return settle(r) < 0 ? err_no_memory(err) : 0;
}

int needs_read(int tar_fd, const struct skill_archive *archive, const struct skill *skill,
               struct needs *ret, struct err *err)
{
    _cleanup_free_ struct needs_reader *r = calloc(1, sizeof(*r));
    int result;

    if (!r)
        return err_no_memory(err);
    r->archive = archive;
    r->skill = skill;
    r->texts = buf_init(NEEDS_BYTES_MAX);
    r->needs.says_hosts = skill->network && !skill->network[0];
    for (size_t i = 0; i < archive->n_entries && !r->needs.has_packages; i++)
        r->needs.has_packages = skill_archive_is_wheel(&archive->entries[i]);
    result = read_all(r, tar_fd, err);
    free(r->wanted);
    free(r->names);
    free(r->modules);
    buf_finish(&r->texts);
    skill_strings_finish(&r->asked);
    skill_strings_finish(&r->defined);
    skill_strings_finish(&r->opaque);
    skill_strings_finish(&r->packages);
    skill_strings_finish(&r->optional);
    if (result < 0)
        needs_finish(&r->needs);
    else
        *ret = r->needs;
    return result;
}

static bool is_brought(const struct needs_item *item, const struct image_manifest *brought)
{
    if (item->kind == NEEDS_MODULE)
        return image_manifest_has(&brought->modules, item->name);
    if (item->kind == NEEDS_PROGRAM)
        return image_manifest_has(&brought->programs, item->name);
    return item->kind == NEEDS_PACKAGE && image_manifest_package(brought, item->name);
}

void needs_bring(struct needs *needs, const struct image_manifest *brought, image_set_t go)
{
    needs->has_packages = true;
    needs->go = go;
    for (size_t i = 0; i < needs->len; i++)
        needs->items[i].brought = is_brought(&needs->items[i], brought);
}

void needs_finish(struct needs *needs)
{
    for (size_t i = 0; i < needs->len; i++)
        item_finish(&needs->items[i]);
    free(needs->items);
    *needs = (struct needs){0};
}
