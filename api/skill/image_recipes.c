/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/image_recipes.h"

#include "api/skill/yamltree.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX   (256u * 1024u)
#define EXTENDS_MAX 4u /* as of images/recipe.c */
#define SUFFIX      ".yaml"

CLEANUP_WITH(struct yamltree *, yamltree_destroy)

struct reader {
    const char *folder;
    const struct image_list *images;
};

/* -ENOENT, without a message: there is none. */
static int load(const char *folder, const char *name, struct yamltree **ret, struct err *err)
{
    static const struct yamltree_limits limits = {.depth = 4, .nodes = 8192};
    _cleanup_free_ char *text = malloc(BYTES_MAX + 1);
    char path[PATH_MAX];
    ssize_t n;
    int r;

    (void)snprintf(path, sizeof(path), "%.4010s/%s" SUFFIX, folder, name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return errno == ENOENT ? -ENOENT : err_set_errno(err, errno, "cannot read it");
    n = text ? fd_pread_full(fd, text, BYTES_MAX + 1, 0) : -ENOMEM;
    if (n < 0)
        return err_set_errno(err, (int)-n, "cannot read it");
    if (n > (ssize_t)BYTES_MAX)
        return err_set(err, EFBIG, "over %u bytes", BYTES_MAX);
    r = yamltree_parse(text, (size_t)n, 1, &limits, ret, err);
    if (r == 0 && (!*ret || (*ret)->kind != YAMLTREE_MAP)) {
        yamltree_destroy(*ret);
        *ret = NULL;
        r = err_set(err, EINVAL, "it is no recipe");
    }
    return r;
}

static const char *text_of(const struct yamltree *map, const char *key)
{
    const struct yamltree *value = yamltree_find(map, key);

    return value && value->kind == YAMLTREE_SCALAR ? value->text : NULL;
}

static int copy(const struct skill_strings *from, struct skill_strings *to)
{
    int r = 0;

    for (size_t i = 0; i < from->len && r == 0; i++)
        r = skill_strings_insert(to, from->items[i], IMAGE_MANIFEST_LINES_MAX);
    return r;
}

/* The usual one is everywhere, and nobody builds another for what it has. */
static int take_listed(const struct image_list *images, const char *name,
                       struct image_manifest *manifest, struct err *err)
{
    const struct image_listed *base =
        strcmp(name, IMAGE_USUAL) == 0 ? NULL : image_list_any(images, name);

    if (base && (copy(&base->manifest.modules, &manifest->modules) < 0 ||
                 copy(&base->manifest.programs, &manifest->programs) < 0 ||
                 copy(&base->manifest.node_modules, &manifest->node_modules) < 0))
        return err_no_memory(err);
    return 0;
}

static int take(const struct reader *reader, const struct yamltree *recipe, unsigned depth,
                struct image_manifest *manifest, struct err *err);

static int take_base(const struct reader *reader, const char *file, unsigned depth,
                     struct image_manifest *manifest, struct err *err)
{
    _cleanup_(yamltree_destroy) struct yamltree *base = NULL;
    char name[IMAGE_NAME_SIZE];
    int r;

    if (depth == EXTENDS_MAX)
        return err_set(err, EINVAL, "too many recipes extend one another");
    if (!image_name_in(file, SUFFIX, name))
        return err_set(err, EINVAL, "\"%.64s\", which it extends, is no recipe", file);
    r = load(reader->folder, name, &base, err);
    if (r == -ENOENT)
        return take_listed(reader->images, name, manifest, err);
    return r < 0 ? r : take(reader, base, depth + 1, manifest, err);
}

static int take(const struct reader *reader, const struct yamltree *recipe, unsigned depth,
                struct image_manifest *manifest, struct err *err)
{
    const struct yamltree *brings = yamltree_find(recipe, "brings");
    const char *extends = text_of(recipe, "extends");
    int r = extends ? take_base(reader, extends, depth, manifest, err) : 0;

    if (r < 0 || !brings)
        return r;
    for (size_t i = 0; brings->kind == YAMLTREE_LIST && i < brings->n; i++) {
        const struct yamltree *item = brings->children[i];

        r = item->kind == YAMLTREE_SCALAR ? image_manifest_bring(manifest, item->text)
                                          : -EINVAL;
        if (r == -ENOMEM)
            return err_no_memory(err);
        if (r < 0)
            return err_set(
                err, EINVAL,
                "line %u: brings has \"module NAME\", \"program NAME\" or \"node NAME\"",
                item->line);
    }
    return 0;
}

static int add(void *ctx, const struct image_file *file, struct err *err)
{
    _cleanup_(yamltree_destroy) struct yamltree *recipe = NULL;
    _cleanup_image_manifest_ struct image_manifest manifest = {.known = true};
    struct image_list *images = ctx;
    const struct reader reader = {file->folder, images};
    const char *said;
    int r;

    if (image_list_any(images, file->name))
        return 0;
    r = load(reader.folder, file->name, &recipe, err);
    if (r < 0)
        return r;
    said = text_of(recipe, "name");
    if (!said || strcmp(said, file->name) != 0)
        return 0;
    strcpy(manifest.name, file->name);
    r = take(&reader, recipe, 1, &manifest, err);
    if (r == 0)
        image_list_tell(images, &manifest);
    return r;
}

void image_recipes_read(const char *folder, struct image_list *images, image_list_left_fn *left,
                        void *ctx)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.4000s/" IMAGE_RECIPES_FOLDER, folder);
    image_files_try(path, SUFFIX, add, images, left, ctx);
}
