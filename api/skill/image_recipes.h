/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator's recipes say of images that are not built: so that who misses something is
 * told which to build. Of a recipe only that is read; the builder (images/recipe.h) checks all
 * of it.
 */
#ifndef SKILLVM_API_SKILL_IMAGE_RECIPES_H
#define SKILLVM_API_SKILL_IMAGE_RECIPES_H

#include "api/skill/image_list.h"
#include "base/err.h"

#define IMAGE_RECIPES_FOLDER "recipes" /* in that of images which were made here */

/*
 * Adds to a list, as images that are not here, what the recipes of a folder bring, with what
 * those bring that they extend: of the folder's, or of the list. folder is the one of images,
 * and need not be there. NAME.yaml is told of where its image is NAME, and the list has none of
 * that name yet, and room.
 */
void image_recipes_read(const char *folder, struct image_list *images, image_list_left_fn *left,
                        void *ctx);

#endif
