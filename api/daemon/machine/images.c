/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/images.h"

#include "api/skill/profile.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is worth warming; an image without a list has nothing. */
static int read_modules(const char *folder, const char *name, struct image *image,
                        struct err *err)
{
    char path[PATH_MAX];
    struct err why = {0};
    int r;

    (void)snprintf(path, sizeof(path), "%.4000s/%s.modules", folder, name);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    r = fd < 0 ? 0 : profile_list_read(fd, &image->modules, &why);
    return r < 0 ? err_set(err, -r, "%s: %s", path, why.message) : 0;
}

/* The next one of those that are known. */
static int add(struct images *images, const char *folder, struct err *err)
{
    const struct image_listed known = images->known.list[images->n];
    struct image *image = &images->list[images->n++];

    (void)snprintf(image->path, sizeof(image->path), "%.4000s/%s.erofs", folder, known.name);
    return read_modules(folder, known.name, image, err);
}

int images_read(const char *folder, struct images *ret, struct err *err)
{
    int r;

    memset(ret, 0, sizeof(*ret));
    r = image_list_read(folder, &ret->known, err);
    while (r == 0 && ret->n < ret->known.n_here)
        r = add(ret, folder, err);
    return r;
}

static void log_left_out(const char *file, const struct err *why)
{
    log_warn("images", "file=\"%s\" reason=\"%s\"", file, why->message);
}

void images_read_added(const char *folder, struct images *images)
{
    image_list_read_made(folder, &images->known, log_left_out);
    while (images->n < images->known.n_here) {
        struct image *image = &images->list[images->n];
        struct err err = {0};

        /* A list of modules that is none costs no more than that list. */
        if (add(images, folder, &err) < 0)
            log_left_out(strrchr(image->path, '/') + 1, &err);
        image->is_added = true;
    }
}

void images_finish(struct images *images)
{
    for (unsigned i = 0; i < images->n; i++)
        skill_strings_finish(&images->list[i].modules);
    image_list_finish(&images->known);
    images->n = 0;
}

int images_find(const struct images *images, const char *name)
{
    return image_list_find(&images->known, *name ? name : IMAGE_USUAL);
}

void images_write(const struct images *images, unsigned place, char ret_name[IMAGE_NAME_SIZE])
{
    if (place == 0)
        ret_name[0] = '\0';
    else
        memcpy(ret_name, images->known.list[place].name, IMAGE_NAME_SIZE);
}
