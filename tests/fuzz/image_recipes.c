/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's recipes, of which each NUL ends one, beside an image that is here and one that
 * is told of: each is told of once by what it brings, or left out with a reason, and those of
 * the installation stay as they are.
 */
#include "api/skill/image_recipes.h"

#include "tests/fuzz/manifest_checks.h"
#include "tests/fuzz/scratch.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By name as a folder has them; the last two are names that are taken. */
static const char *const names[] = {"a", "b", "c", "d", "e", "f", "data", "python"};

#define NAMES     (sizeof(names) / sizeof(names[0]))
#define INSTALLED 2u

static void leave(void *ctx, const char *file, const struct err *why)
{
    unsigned *left = ctx;

    ++*left;
    if (!why->code || !why->message[0] || !utf8_valid(why->message, strlen(why->message)) ||
        strncmp(file, "data", 4) == 0 || strncmp(file, "python", 6) == 0)
        abort();
}

static void put(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < NAMES; i++) {
        const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
        const size_t len = end ? (size_t)(end - data) : size, gone = end ? len + 1 : len;
        char file[64];

        (void)snprintf(file, sizeof(file), IMAGE_RECIPES_FOLDER "/%s.yaml", names[i]);
        scratch_put(file, data, len);
        data += gone;
        size -= gone;
    }
}

static void set_up(struct image_list *images)
{
    static const char python[] = "language python 3.11\nmodule yaml\nprogram bash\n";
    static const char data[] = "module numpy\nprogram dot\nnode pdfkit 1.0.0\n";
    char folder[128];
    struct err err = {0};

    (void)snprintf(folder, sizeof(folder), "%s/" IMAGE_RECIPES_FOLDER, scratch_folder());
    (void)mkdir(folder, 0700);
    scratch_put("python.erofs", "", 0);
    scratch_put("python.manifest", python, sizeof(python) - 1);
    scratch_put("data.manifest", data, sizeof(data) - 1);
    if (image_list_read(scratch_folder(), images, &err) < 0 || images->n != INSTALLED)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct image_list images;
    unsigned left = 0;

    set_up(&images);
    put(data, size);
    image_recipes_read(scratch_folder(), &images, leave, &left);
    if (images.n_here != 1 || images.n + left > NAMES)
        abort();
    for (unsigned i = 0; i < images.n; i++) {
        const struct image_listed *image = &images.list[i];

        manifest_check(&image->manifest);
        if (strcmp(image->name, image->manifest.name) != 0 ||
            image_list_any(&images, image->name) != image || (i >= INSTALLED && image->here))
            abort();
    }
    if (!image_manifest_has(&image_list_any(&images, "data")->manifest.modules, "numpy"))
        abort();
    image_list_finish(&images);
    images = (struct image_list){0};
    return 0;
}
