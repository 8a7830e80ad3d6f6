/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/image_list.h"

#include "api/skill/image_recipes.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define IMAGE    ".erofs"
#define MANIFEST ".manifest"

int image_files_each(const char *folder, const char *end, image_file_fn *take, void *ctx,
                     struct err *err)
{
    struct dirent **found = NULL;
    int n = scandir(folder, &found, NULL, alphasort), r = 0;

    for (int i = 0; i < n; i++) {
        struct image_file file = {.folder = folder, .file = found[i]->d_name};

        if (r == 0 && image_name_in(file.file, end, file.name))
            r = take(ctx, &file, err);
        free(found[i]);
    }
    free(found);
    return r;
}

struct trial {
    image_file_fn *take;
    struct image_list *images;
    image_list_left_fn *left;
    void *ctx;
};

static int take_or_leave(void *ctx, const struct image_file *file, struct err *err)
{
    const struct trial *trial = ctx;
    struct err why = {0};

    (void)err;
    if (trial->take(trial->images, file, &why) < 0 && why.code)
        trial->left(trial->ctx, file->file, &why);
    return 0;
}

void image_files_try(const char *folder, const char *end, image_file_fn *take,
                     struct image_list *images, image_list_left_fn *left, void *ctx)
{
    struct trial trial = {take, images, left, ctx};

    (void)image_files_each(folder, end, take_or_leave, &trial, NULL);
}

static int add(struct image_list *images, const struct image_file *file, struct err *err)
{
    struct image_listed *image = &images->list[images->n];
    struct stat st = {0};
    char path[PATH_MAX];

    images->n++;
    strcpy(image->name, file->name);
    (void)snprintf(path, sizeof(path), "%.4000s/%s" IMAGE, file->folder, file->name);
    if (stat(path, &st) == 0)
        image->bytes = (uint64_t)st.st_size;
    return image_manifest_read(file->folder, file->name, &image->manifest, err);
}

static int add_here(void *ctx, const struct image_file *file, struct err *err)
{
    struct image_list *images = ctx;

    /* The usual one comes again with the others. */
    if (image_list_any(images, file->name))
        return 0;
    if (images->n == IMAGE_LIST_HERE_MAX)
        return err_set(err, E2BIG, "%s holds more than %u images", file->folder,
                       IMAGE_LIST_HERE_MAX);
    images->list[images->n].here = true;
    images->n_here++;
    return add(images, file, err);
}

/* What there is no room for is only not told of. */
static int add_other(void *ctx, const struct image_file *file, struct err *err)
{
    struct image_list *images = ctx;

    return images->n == IMAGE_LIST_MAX || image_list_any(images, file->name)
               ? 0
               : add(images, file, err);
}

int image_list_read(const char *folder, struct image_list *ret, struct err *err)
{
    const struct image_file usual = {.folder = folder, .name = IMAGE_USUAL};
    int r;

    memset(ret, 0, sizeof(*ret));
    r = add_here(ret, &usual, err);
    if (r < 0)
        return r;
    /* Where there is no folder the one that is missing from it is told. */
    r = image_files_each(folder, IMAGE, add_here, ret, err);
    return r < 0 ? r : image_files_each(folder, MANIFEST, add_other, ret, err);
}

void image_list_forget(struct image_list *images, unsigned place)
{
    image_manifest_finish(&images->list[place].manifest);
    images->n_here -= images->list[place].here;
    images->n--;
    memmove(&images->list[place], &images->list[place + 1],
            (images->n - place) * sizeof(images->list[0]));
}

const struct image_listed *image_list_any(const struct image_list *images, const char *name)
{
    for (unsigned i = 0; i < images->n; i++)
        if (strcmp(images->list[i].name, name) == 0)
            return &images->list[i];
    return NULL;
}

void image_list_tell(struct image_list *images, struct image_manifest *manifest)
{
    struct image_listed *image = &images->list[images->n];

    if (images->n == IMAGE_LIST_MAX)
        return;
    images->n++;
    *image = (struct image_listed){.manifest = *manifest};
    strcpy(image->name, manifest->name);
    *manifest = (struct image_manifest){0};
}

int image_list_admit(struct image_list *images, struct image_listed *image)
{
    const struct image_listed *there = image_list_any(images, image->name);
    unsigned place = images->n_here;

    if (there && there->here)
        return -EEXIST;
    if (place == IMAGE_LIST_HERE_MAX)
        return -E2BIG;
    if (there)
        image_list_forget(images, (unsigned)(there - images->list));
    else if (images->n == IMAGE_LIST_MAX)
        image_list_forget(images, images->n - 1);
    memmove(&images->list[place + 1], &images->list[place],
            (images->n - place) * sizeof(images->list[0]));
    images->list[place] = *image;
    images->list[place].here = true;
    image->manifest = (struct image_manifest){0};
    images->n_here++;
    images->n++;
    return (int)place;
}

static int insert(void *ctx, const struct image_file *file, struct err *err)
{
    struct image_list *images = ctx;
    struct image_list one = {0};
    int r = add(&one, file, err);

    if (r < 0)
        return r;
    r = image_list_admit(images, &one.list[0]);
    image_list_finish(&one);
    if (r == -EEXIST)
        return err_set(err, EEXIST, "the installation has one of this name");
    return r < 0 ? err_set(err, E2BIG, "there are %u images already", images->n_here) : 0;
}

void image_list_read_made(const char *folder, struct image_list *images,
                          image_list_left_fn *left, void *ctx)
{
    image_files_try(folder, IMAGE, insert, images, left, ctx);
    image_recipes_read(folder, images, left, ctx);
}

void image_list_finish(struct image_list *images)
{
    for (unsigned i = 0; i < images->n; i++)
        image_manifest_finish(&images->list[i].manifest);
    images->n = images->n_here = 0;
}

int image_list_find(const struct image_list *images, const char *name)
{
    for (unsigned i = 0; i < images->n_here; i++)
        if (strcmp(images->list[i].name, name) == 0)
            return (int)i;
    return -ENOENT;
}
