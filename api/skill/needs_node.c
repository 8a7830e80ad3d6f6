/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of needs.h for JavaScript: what scripts import, and package.json. */
#include "api/json/json_walk.h"
#include "api/skill/js_imports.h"
#include "api/skill/needs_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 256u /* of an object */

/* A package.json's folder, "" or with a slash at its end, and the name of what is in it. */
static int insert_package(struct skill_strings *list, const char *path, size_t folder,
                          const char *name)
{
    char key[TAR_PATH_MAX + NEEDS_TEXT_MAX + 2];
    int n = snprintf(key, sizeof(key), "%.*s %s", (int)folder, path, name);

    return n < (int)sizeof(key) ? skill_strings_insert(list, key, NEEDS_ITEMS_MAX) : 0;
}

/* Whether a package.json beside the file or above it is of that package itself. */
static bool is_itself(const struct needs_reader *r, const char *file, const char *package)
{
    char key[TAR_PATH_MAX + NEEDS_TEXT_MAX + 2];
    size_t end = strlen(file);

    do {
        while (end > 0 && file[end - 1] != '/')
            end--;
        (void)snprintf(key, sizeof(key), "%.*s %s", (int)end, file, package);
        if (image_manifest_has(&r->packages, key))
            return true;
    } while (end-- > 0);
    return false;
}

int needs_add_import(struct needs_reader *r, const struct imports_use *use)
{
    const struct needs_item item = {.kind = NEEDS_NODE_MODULE,
                                    .name = (char *)(uintptr_t)use->module,
                                    .file = (char *)(uintptr_t)use->file,
                                    .line = use->found->line,
                                    .guarded = use->found->guarded,
                                    .own = use->own || is_itself(r, use->file, use->module)};

    /* What a folder of others' code does later is for those who call it. */
    if (strlen(item.name) > NEEDS_TEXT_MAX || (!use->found->runs && needs_is_aside(item.file)))
        return 0;
    return needs_add(r, &item);
}

/* A file whose lines are counted as it is gone through. */
struct place {
    const char *file;
    const char *at;
    unsigned line;
};

static unsigned line_of(struct place *place, const char *text)
{
    const char *end;

    while (place->at < text && (end = memchr(place->at, '\n', (size_t)(text - place->at)))) {
        place->at = end + 1;
        place->line++;
    }
    return place->line;
}

/* Whether the skill has a package installed, where a package.json of its own is. */
static bool is_installed(const struct needs_reader *r, const char *name)
{
    static const char *const folders[] = {"node_modules/", "scripts/node_modules/"};
    const size_t len = strlen(name);

    for (size_t i = 0; i < r->archive->n_entries; i++)
        for (size_t j = 0; j < sizeof(folders) / sizeof(folders[0]); j++) {
            const char *path = r->archive->entries[i].path;
            const size_t n = strlen(folders[j]);

            if (strncmp(path, folders[j], n) == 0 && strncmp(path + n, name, len) == 0 &&
                (!path[n + len] || path[n + len] == '/'))
                return true;
        }
    return false;
}

static int add_dependency(struct needs_reader *r, struct place *place,
                          const struct json_member *member, bool optional)
{
    char name[NEEDS_TEXT_MAX + 1], package[IMPORTS_NAME_MAX + 1];
    _cleanup_free_ char *version = json_strdup(member->value, NEEDS_TEXT_MAX / 2);
    struct needs_item item = {.kind = NEEDS_NODE_PACKAGE,
                              .name = name,
                              .detail = version,
                              .file = (char *)(uintptr_t)place->file,
                              .line = line_of(place, member->key.data)};
    int n = snprintf(name, sizeof(name), "%.*s", (int)member->key.len, member->key.data);

    /* What it says of types only a compiler reads. */
    if (n >= (int)sizeof(name) || !js_package_name(name, package) ||
        strcmp(name, package) != 0 || strncmp(name, "@types/", 7) == 0)
        return 0;
    if (++r->uses > NEEDS_USES_MAX)
        return -E2BIG;
    if (optional && skill_strings_insert(&r->optional, name, NEEDS_ITEMS_MAX) < 0)
        return -ENOMEM;
    item.own = is_installed(r, name);
    return needs_add(r, &item);
}

int needs_add_node(struct needs_reader *r, const char *file, unsigned line, const char *range)
{
    return needs_add(r, &(struct needs_item){.kind = NEEDS_LANGUAGE,
                                             .name = (char *)(uintptr_t) "Node.js",
                                             .detail = (char *)(uintptr_t)range,
                                             .file = (char *)(uintptr_t)file,
                                             .line = line});
}

/* `engines`, of which a skill meets one. */
static int add_engine(struct needs_reader *r, struct place place, struct json_slice object)
{
    _cleanup_free_ char *range = json_strdup_member(object, "node", NEEDS_TEXT_MAX);
    struct json_slice value;

    return range && json_find(object, "node", &value)
               ? needs_add_node(r, place.file, line_of(&place, value.data), range)
               : 0;
}

static int add_dependencies(struct needs_reader *r, struct place place,
                            struct json_slice object, bool optional)
{
    struct json_member members[MEMBERS_MAX];
    int result = 0;
    size_t n;

    if (json_text_members(object.data, object.len, members, MEMBERS_MAX, &n, NULL) < 0)
        return 0;
    for (size_t i = 0; result == 0 && i < n; i++)
        result = add_dependency(r, &place, &members[i], optional);
    return result;
}

/* Of the skill itself, and not of something that it has a copy of. */
static bool is_in_place(const char *path)
{
    return !strchr(path, '/') || strcmp(path, "scripts/package.json") == 0;
}

int needs_read_package(struct needs_reader *r, const char *file, const char *text, size_t len)
{
    const struct place place = {file, text, 1};
    _cleanup_free_ char *name = NULL;
    struct json_slice all, object;
    int result = 0;

    if (json_text_check(text, len, &all, NULL) < 0)
        return 0;
    name = json_strdup_member(all, "name", NEEDS_TEXT_MAX);
    if (name)
        result = insert_package(&r->packages, file, (size_t)(basename(file) - file), name);
    if (result == 0 && is_in_place(file) && json_find(all, "engines", &object))
        result = add_engine(r, place, object);
    if (result == 0 && is_in_place(file) && json_find(all, "dependencies", &object))
        result = add_dependencies(r, place, object, false);
    if (result == 0 && is_in_place(file) && json_find(all, "optionalDependencies", &object))
        result = add_dependencies(r, place, object, true);
    return result;
}
