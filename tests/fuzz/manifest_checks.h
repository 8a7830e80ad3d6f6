/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every manifest that was taken, whoever wrote it. */
#ifndef SKILLVM_TESTS_FUZZ_MANIFEST_CHECKS_H
#define SKILLVM_TESTS_FUZZ_MANIFEST_CHECKS_H

#include "api/skill/image_manifest.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static inline void manifest_check_list(const struct skill_strings *list)
{
    if (list->len > IMAGE_MANIFEST_LINES_MAX || list->error)
        abort();
    for (size_t i = 0; i < list->len; i++) {
        const char *item = list->items[i];

        if (!*item || !utf8_valid(item, strlen(item)) || !image_manifest_has(list, item) ||
            (i > 0 && strcmp(list->items[i - 1], item) >= 0))
            abort();
        for (const char *c = item; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                abort();
    }
}

/* Each is found by its name, whatever version stands behind it. */
static inline void
manifest_check_named(const struct image_manifest *manifest, const struct skill_strings *list,
                     const char *find(const struct image_manifest *manifest, const char *name))
{
    for (size_t i = 0; i < list->len; i++) {
        char *name = strdup(list->items[i]);

        if (!name)
            abort();
        name[strcspn(name, " ")] = '\0';
        if (!find(manifest, name))
            abort();
        free(name);
    }
}

static inline void manifest_check(const struct image_manifest *manifest)
{
    const char *obstacle = image_manifest_obstacle(manifest);

    if (!manifest->known || strlen(manifest->name) >= IMAGE_NAME_SIZE ||
        manifest->name[image_name_length(manifest->name)] || (obstacle && !*obstacle))
        abort();
    if (manifest->python_minor > 999 || manifest->python_micro > 999 ||
        !utf8_valid(manifest->node, strlen(manifest->node)))
        abort();
    if (manifest->memory_bytes && (manifest->memory_bytes < IMAGE_MEMORY_MIN ||
                                   manifest->memory_bytes > IMAGE_MEMORY_MAX))
        abort();
    manifest_check_list(&manifest->standard);
    manifest_check_list(&manifest->modules);
    manifest_check_list(&manifest->packages);
    manifest_check_list(&manifest->programs);
    manifest_check_list(&manifest->node_modules);
    manifest_check_named(manifest, &manifest->packages, image_manifest_package);
    manifest_check_named(manifest, &manifest->node_modules, image_manifest_node_module);
}

#endif
