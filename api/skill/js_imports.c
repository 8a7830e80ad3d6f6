/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/js_imports.h"

#include "api/skill/file_names.h"
#include "api/skill/js_scan.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH_SIZE (NAMES_PATH_MAX + 1)

struct follow {
    const struct imports_walk *walk;
    struct skill_strings files; /* paths, each once */
    const char *file;           /* the one that is being read */
    size_t n_names;             /* that were looked up */
};

bool js_is_source(const char *path)
{
    return text_ends_with(path, ".js") || text_ends_with(path, ".mjs") ||
           text_ends_with(path, ".cjs");
}

static bool is_of_node(const char *name)
{
    static const char names[] =
        "assert async_hooks buffer child_process cluster console constants crypto dgram "
        "diagnostics_channel dns domain events fs http http2 https inspector module net os "
        "path perf_hooks process punycode querystring readline repl stream string_decoder sys "
        "timers tls trace_events tty url util v8 vm wasi worker_threads zlib";

    return text_has_word(names, " ", name);
}

/* How long the part of a package's name at text is: 0 for what is none. */
static size_t part_length(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "-._~");

    return text[0] == '.' || text[0] == '~' || (text[n] && text[n] != '/') ? 0 : n;
}

bool js_package_name(const char *module, char ret_name[IMPORTS_NAME_MAX + 1])
{
    size_t scope = module[0] == '@' ? 1 + part_length(module + 1) : 0, n;

    if (scope > 0 && (scope == 1 || module[scope++] != '/'))
        return false;
    n = part_length(module + scope);
    if (n == 0 || scope + n > IMPORTS_NAME_MAX)
        return false;
    memcpy(ret_name, module, scope + n);
    ret_name[scope + n] = '\0';
    return scope > 0 || !is_of_node(ret_name);
}

static bool is_there(const struct follow *f, const char *path)
{
    return skill_archive_find(f->walk->archive, path) != NULL;
}

/* In a node_modules beside the file or above it. */
static bool is_own(const struct follow *f, const char *package)
{
    char path[PATH_SIZE + sizeof(".js")];
    size_t end = strlen(f->file);

    do {
        int n;

        while (end > 0 && f->file[end - 1] != '/')
            end--;
        n = snprintf(path, PATH_SIZE, "%.*snode_modules/%s", (int)end, f->file, package);
        if (n > 0 && n < (int)PATH_SIZE &&
            (is_there(f, path) || is_there(f, strcat(path, ".js"))))
            return true;
    } while (end-- > 0);
    return false;
}

/* Puts a file of the skill's on the list, once. 1; 0: it is none that is read; -ENOMEM. */
static int add_file(struct follow *f, const char *path)
{
    const struct archive_entry_info *entry = skill_archive_find(f->walk->archive, path);

    if (!entry || entry->type != ARCHIVE_ENTRY_FILE)
        return 0;
    if (skill_strings_has(&f->files, path))
        return 1;
    if (f->files.len == IMPORTS_WALK_FILES_MAX)
        return 0;
    return skill_strings_add(&f->files, "%s", path) < 0 ? -ENOMEM : 1;
}

/* A file by its path from the one that names it, which may leave out how it ends. */
static int follow_path(struct follow *f, const char *module)
{
    static const char *const ends[] = {"",          ".js",        ".mjs",      ".cjs",
                                       "/index.js", "/index.mjs", "/index.cjs"};
    char path[PATH_SIZE], file[PATH_SIZE + sizeof("/index.mjs")];
    int r = 0;

    if (!names_resolve(f->file, (size_t)(basename(f->file) - f->file), module, path))
        return 0;
    for (size_t i = 0; r == 0 && i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)snprintf(file, sizeof(file), "%s%s", path,
                       ends[i] + (!path[0] && ends[i][0] == '/'));
        if (js_is_source(file))
            r = add_file(f, file);
    }
    return r < 0 ? r : 0;
}

static int on_found(void *user, const struct imports_found *found)
{
    struct follow *f = user;
    char package[IMPORTS_NAME_MAX + 1];
    struct imports_use use = {.file = f->file, .found = found, .module = package};

    if (found->kind != IMPORTS_NODE) {
        use.module = NULL;
        return f->walk->use(f->walk->user, &use);
    }
    if (f->n_names++ >= IMPORTS_LOOKED_UP_MAX)
        return 0;
    if (found->module[0] == '.')
        return follow_path(f, found->module);
    if (!js_package_name(found->module, package))
        return 0;
    use.own = is_own(f, package);
    return f->walk->use(f->walk->user, &use);
}

static int walk_files(struct follow *f)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < f->walk->n_scripts; i++)
        r = add_file(f, f->walk->scripts[i]);
    /* The list grows while it is read. */
    for (size_t i = 0; r >= 0 && i < f->files.len; i++) {
        size_t len;
        const char *text = f->walk->text(f->walk->user, f->files.items[i], &len);

        f->file = f->files.items[i];
        r = text ? js_scan(text, len, on_found, f) : 0;
        /* What is no source imports nothing. */
        r = r == -EINVAL ? 0 : r;
    }
    return r < 0 ? r : 0;
}

int js_imports_walk(const struct imports_walk *walk)
{
    struct follow f = {.walk = walk};
    int r = walk_files(&f);

    skill_strings_finish(&f.files);
    return r;
}
