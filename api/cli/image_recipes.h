/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are not there and can be built: what the recipes of this machine are called. */
#ifndef SKILLVM_API_CLI_IMAGE_RECIPES_H
#define SKILLVM_API_CLI_IMAGE_RECIPES_H

#include "api/cli/image_store.h"
#include "api/skill/skill.h"
#include "base/nearest.h"

#define IMAGE_HINT_SIZE (NEAREST_HINT_SIZE + 64)

/* Adds the names of those that the store does not have. 0 or -ENOMEM. */
int image_recipes_find(const struct cli *cli, const struct image_store *store,
                       struct skill_strings *ret);
/*
 * The end of a message on a name that no image has: how it is made, or a near one; "" where
 * there is neither. Returns out.
 */
const char *image_recipes_hint(const struct cli *cli, const struct image_store *store,
                               const char *name, char out[IMAGE_HINT_SIZE]);

#endif
