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

/* The length of the name in that of a file that ends so, 0: it is no image's. */
static size_t name_length(const char *file, const char *end)
{
    size_t n = image_name_length(file);

    return n < IMAGE_NAME_SIZE && strcmp(file + n, end) == 0 ? n : 0;
}

static int is_image(const struct dirent *entry)
{
    return name_length(entry->d_name, IMAGE) > 0;
}

static int is_other(const struct dirent *entry)
{
    return is_image(entry) && strcmp(entry->d_name, IMAGE_USUAL IMAGE) != 0;
}

static int is_manifest(const struct dirent *entry)
{
    return name_length(entry->d_name, MANIFEST) > 0;
}

static int add(struct image_list *images, const char *folder, const char *name, size_t len,
               struct err *err)
{
    struct image_listed *image = &images->list[images->n];
    struct stat st = {0};
    char path[PATH_MAX];

    images->n++;
    (void)snprintf(image->name, sizeof(image->name), "%.*s", (int)len, name);
    (void)snprintf(path, sizeof(path), "%.4000s/%s" IMAGE, folder, image->name);
    if (stat(path, &st) == 0)
        image->bytes = (uint64_t)st.st_size;
    return image_manifest_read(folder, image->name, &image->manifest, err);
}

static int add_here(struct image_list *images, const char *folder, const char *file,
                    struct err *err)
{
    if (images->n == IMAGE_LIST_HERE_MAX)
        return err_set(err, E2BIG, "%s holds more than %u images", folder, IMAGE_LIST_HERE_MAX);
    images->list[images->n].here = true;
    images->n_here++;
    return add(images, folder, file, name_length(file, IMAGE), err);
}

/* What there is no room for is only not told of. */
static int add_other(struct image_list *images, const char *folder, const char *file,
                     struct err *err)
{
    size_t len = name_length(file, MANIFEST);

    for (unsigned i = 0; i < images->n; i++)
        if (strlen(images->list[i].name) == len &&
            strncmp(images->list[i].name, file, len) == 0)
            return 0;
    return images->n == IMAGE_LIST_MAX ? 0 : add(images, folder, file, len, err);
}

static int
add_each(struct image_list *images, const char *folder, int (*is_one)(const struct dirent *),
         int (*add_one)(struct image_list *, const char *, const char *, struct err *),
         struct err *err)
{
    struct dirent **found = NULL;
    /* Where there is no folder the one that is missing from it is told. */
    int n = scandir(folder, &found, is_one, alphasort), r = 0;

    for (int i = 0; i < n && r == 0; i++)
        r = add_one(images, folder, found[i]->d_name, err);
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    return r;
}

int image_list_read(const char *folder, struct image_list *ret, struct err *err)
{
    int r;

    memset(ret, 0, sizeof(*ret));
    r = add_here(ret, folder, IMAGE_USUAL IMAGE, err);
    if (r < 0)
        return r;
    r = add_each(ret, folder, is_other, add_here, err);
    return r < 0 ? r : add_each(ret, folder, is_manifest, add_other, err);
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

static int insert(struct image_list *images, const char *folder, const char *file,
                  struct err *err)
{
    struct image_list one = {0};
    int r = add(&one, folder, file, name_length(file, IMAGE), err);

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
    struct dirent **found = NULL;
    int n = scandir(folder, &found, is_image, alphasort);

    for (int i = 0; i < n; i++) {
        struct err why = {0};

        if (insert(images, folder, found[i]->d_name, &why) < 0)
            left(ctx, found[i]->d_name, &why);
        free(found[i]);
    }
    free(found);
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
