/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/image_recipes.h"

#include "api/skill/image_recipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_name(void *ctx, const struct image_file *file, struct err *err)
{
    (void)err;
    return skill_strings_add(ctx, "%s", file->name);
}

/* Those of the installation's recipes that have a manifest of what they bring, and all of the
   operator's. */
static int find_names(const struct cli *cli, struct skill_strings *ret)
{
    char folder[PATH_MAX];
    int r = image_files_each(cli->share_dir, ".manifest", add_name, ret, NULL);

    return r < 0 ? r
                 : image_files_each(cli_join(cli->images_dir, IMAGE_RECIPES_FOLDER, folder),
                                    ".yaml", add_name, ret, NULL);
}

int image_recipes_find(const struct cli *cli, const struct image_store *store,
                       struct skill_strings *ret)
{
    _cleanup_skill_strings_ struct skill_strings names = {0};
    int r = find_names(cli, &names);

    for (size_t i = 0; r == 0 && i < names.len; i++) {
        const char *name = names.items[i];

        if (!image_store_find(store, name) && !skill_strings_has(ret, name) &&
            image_can_build(cli, name))
            r = skill_strings_add(ret, "%s", name);
    }
    return r;
}

const char *image_recipes_hint(const struct cli *cli, const struct image_store *store,
                               const char *name, char out[IMAGE_HINT_SIZE])
{
    _cleanup_skill_strings_ struct skill_strings recipes = {0};
    struct nearest nearest = nearest_init(name);
    char near[NEAREST_HINT_SIZE];

    (void)image_recipes_find(cli, store, &recipes);
    for (unsigned i = 0; i < store->n; i++)
        nearest_offer(&nearest, store->list[i].name);
    for (size_t i = 0; i < recipes.len; i++)
        nearest_offer(&nearest, recipes.items[i]);
    if (skill_strings_has(&recipes, name))
        (void)snprintf(out, IMAGE_HINT_SIZE, "; it is made by `skillvm image build %s`", name);
    else
        (void)snprintf(out, IMAGE_HINT_SIZE, "%s", nearest_hint(&nearest, near));
    return out;
}
