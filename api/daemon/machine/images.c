/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/images.h"

#include "api/skill/profile.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL  "python"
#define SUFFIX ".erofs"

/* The length of the name in that of a file, 0: it is no image's. */
static size_t name_length(const char *file)
{
    size_t n = image_name_length(file);

    return n < IMAGE_NAME_SIZE && strcmp(file + n, SUFFIX) == 0 ? n : 0;
}

static int is_image(const struct dirent *entry)
{
    return name_length(entry->d_name) > 0 && strcmp(entry->d_name, USUAL SUFFIX) != 0;
}

/* What is worth warming; an image without a list has nothing. */
static int read_modules(const char *folder, struct image *image, struct err *err)
{
    char path[PATH_MAX];
    struct err why = {0};
    int r;

    (void)snprintf(path, sizeof(path), "%.4000s/%s.modules", folder, image->name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    r = fd < 0 ? 0 : profile_list_read(fd, &image->modules, &why);
    return r < 0 ? err_set(err, -r, "%s: %s", path, why.message) : 0;
}

static int add(struct images *images, const char *folder, const char *file, struct err *err)
{
    struct image *image = &images->list[images->n];
    int r;

    if (images->n == IMAGES_MAX)
        return err_set(err, E2BIG, "%s holds more than %u images", folder, IMAGES_MAX);
    images->n++;
    (void)snprintf(image->name, sizeof(image->name), "%.*s", (int)name_length(file), file);
    (void)snprintf(image->path, sizeof(image->path), "%.4000s/%.64s", folder, file);
    r = read_modules(folder, image, err);
    return r < 0 ? r : image_manifest_read(folder, image->name, &image->manifest, err);
}

int images_read(const char *folder, struct images *ret, struct err *err)
{
    struct dirent **found = NULL;
    int n, r;

    memset(ret, 0, sizeof(*ret));
    r = add(ret, folder, USUAL SUFFIX, err);
    if (r < 0)
        return r;
    /* Where there is no folder the one that is missing from it is told. */
    n = scandir(folder, &found, is_image, alphasort);
    for (int i = 0; i < n && r == 0; i++)
        r = add(ret, folder, found[i]->d_name, err);
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    return r;
}

void images_finish(struct images *images)
{
    for (unsigned i = 0; i < images->n; i++) {
        skill_strings_finish(&images->list[i].modules);
        image_manifest_finish(&images->list[i].manifest);
    }
    images->n = 0;
}

int images_find(const struct images *images, const char *name)
{
    for (unsigned i = 0; i < images->n; i++) {
        if (strcmp(images->list[i].name, name) == 0)
            return (int)i;
    }
    return *name || images->n == 0 ? -ENOENT : 0;
}

static bool runs(const struct image *image, const char *lang)
{
    const struct image_manifest *manifest = &image->manifest;

    return !manifest->known || (strcmp(lang, "python") == 0 && manifest->python_minor > 0) ||
           image_manifest_has(&manifest->programs, lang);
}

int images_for(const struct images *images, const char *name, const char *lang)
{
    int named = name ? images_find(images, name) : -ENOENT;

    if (named >= 0)
        return runs(&images->list[named], lang) ? named : -ENOENT;
    for (unsigned i = 0; i < images->n; i++) {
        if (runs(&images->list[i], lang))
            return (int)i;
    }
    return -ENOENT;
}

void images_write(const struct images *images, unsigned place, char ret_name[IMAGE_NAME_SIZE])
{
    (void)snprintf(ret_name, IMAGE_NAME_SIZE, "%s", place == 0 ? "" : images->list[place].name);
}

unsigned images_of(const struct images *images, const char *name)
{
    int place = images_find(images, name ? name : "");

    return place > 0 ? (unsigned)place : 0;
}
