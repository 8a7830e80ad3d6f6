/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images of a folder, as choices see them: NAME.erofs is one that is here, NAME.manifest
 * says what it has. A manifest alone tells of one that is not here, so that a remedy can name
 * it.
 */
#ifndef SKILLVM_API_SKILL_IMAGE_LIST_H
#define SKILLVM_API_SKILL_IMAGE_LIST_H

#include "api/skill/image_manifest.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_LIST_HERE_MAX 16u
#define IMAGE_LIST_MAX      32u
/* The one for skills that need nothing special. */
#define IMAGE_USUAL "python"

/* Some of a list: a bit for the place of each. */
typedef uint32_t image_set_t;
#define IMAGE_SET_ALL UINT32_MAX

struct image_listed {
    char name[IMAGE_NAME_SIZE];
    uint64_t bytes; /* of its file; 0 where that is missing */
    bool here;
    struct image_manifest manifest;
};

/* IMAGE_USUAL first, even where its file is not; then others that are here, then the rest, each
 * by name.
 */
struct image_list {
    unsigned n;
    unsigned n_here;
    struct image_listed list[IMAGE_LIST_MAX];
};

/* One of the files of images in a folder. */
struct image_file {
    const char *folder, *file; /* borrowed; file is its name there */
    char name[IMAGE_NAME_SIZE];
};
/* 0 to go on, or -errno. */
typedef int image_file_fn(void *ctx, const struct image_file *file, struct err *err);
/*
 * Calls take for each file "NAME<end>" of a folder, by name. The first failure of it ends this
 * and is returned, else 0. Where there is no folder there are no files.
 */
int image_files_each(const char *folder, const char *end, image_file_fn *take, void *ctx,
                     struct err *err);
/* Told of an image or a recipe that is left out. */
typedef void image_list_left_fn(void *ctx, const char *file, const struct err *why);
/* The same with a list, where a failure of one ends nothing: left is told, if take says why. */
void image_files_try(const char *folder, const char *end, image_file_fn *take,
                     struct image_list *images, image_list_left_fn *left, void *ctx);

/*
 * Reads what there is in a folder. -EINVAL for a manifest that is none; -E2BIG for more than
 * IMAGE_LIST_HERE_MAX images; -errno. The caller finishes *ret in any case.
 */
int image_list_read(const char *folder, struct image_list *ret, struct err *err);
/*
 * Adds what was made here: the images "NAME.erofs" of another folder, which need not be there,
 * by name and behind those that are here; then, as images that are not here, what its recipes
 * would make (image_recipes.h). Left out is one whose name is taken, for which there is no
 * room, or whose manifest or recipe cannot be read.
 */
void image_list_read_made(const char *folder, struct image_list *images,
                          image_list_left_fn *left, void *ctx);
void image_list_finish(struct image_list *images);
#define _cleanup_image_list_ __attribute__((cleanup(image_list_finish)))

/* Takes one out of the list: those behind it come forward. */
void image_list_forget(struct image_list *images, unsigned place);
/*
 * Adds one that is here, behind the others that are; its manifest is taken from *image. What is
 * only told of under its name goes. Its place; -EEXIST: there is one of this name; -E2BIG.
 */
int image_list_admit(struct image_list *images, struct image_listed *image);

/* The one of this name, here or only told of, or NULL. */
const struct image_listed *image_list_any(const struct image_list *images, const char *name);
/*
 * Tells of an image that is not here, by its manifest, which is taken from *manifest. No effect
 * where there is no room.
 */
void image_list_tell(struct image_list *images, struct image_manifest *manifest);
/* The place of an image that is here; -ENOENT. */
int image_list_find(const struct image_list *images, const char *name);

static inline bool image_set_has(image_set_t set, unsigned place)
{
    return (set >> place) & 1u;
}

#endif
