/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/images.h"

#include "api/skill/profile.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int add(struct images *images, const char *folder, const struct image_listed listed,
               struct err *err)
{
    struct image *image = &images->list[images->n++];

    memcpy(image->name, listed.name, sizeof(image->name));
    (void)snprintf(image->path, sizeof(image->path), "%.4000s/%s.erofs", folder, listed.name);
    return read_modules(folder, image, err);
}

int images_read(const char *folder, struct images *ret, struct err *err)
{
    int r;

    memset(ret, 0, sizeof(*ret));
    r = image_list_read(folder, &ret->known, err);
    for (unsigned i = 0; r == 0 && i < ret->known.n_here; i++)
        r = add(ret, folder, ret->known.list[i], err);
    return r;
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
    for (unsigned i = 0; i < images->n; i++) {
        if (strcmp(images->list[i].name, name) == 0)
            return (int)i;
    }
    return *name || images->n == 0 ? -ENOENT : 0;
}

void images_write(const struct images *images, unsigned place, char ret_name[IMAGE_NAME_SIZE])
{
    (void)snprintf(ret_name, IMAGE_NAME_SIZE, "%s", place == 0 ? "" : images->list[place].name);
}
