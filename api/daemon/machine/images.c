/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/images.h"

#include "api/daemon/machine/checksum.h"
#include "api/skill/profile.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WHAT "guest image"

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

    image->fd = -1;
    (void)snprintf(image->path, sizeof(image->path), "%.4000s/%s.erofs", folder, known.name);
    if (images->n > 1)
        image->fd = open(image->path, O_RDONLY | O_CLOEXEC);
    /* Who wants a machine of it is told what is wrong. */
    (void)checksum_read(image->path, WHAT, image->digest, NULL);
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

void images_read_added(const char *folder, struct images *images, image_list_left_fn *left,
                       void *ctx)
{
    image_list_read_made(folder, &images->known, left, ctx);
    while (images->n < images->known.n_here) {
        struct image *image = &images->list[images->n];
        struct err err = {0};

        /* A list of modules that is none costs no more than that list. */
        if (add(images, folder, &err) < 0)
            log_warn("images", "file=\"%s\" reason=\"%s\"", strrchr(image->path, '/') + 1,
                     err.message);
        image->is_added = true;
    }
}

static void finish_one(struct image *image)
{
    skill_strings_finish(&image->modules);
    fd_close(&image->fd);
}

void images_finish(struct images *images)
{
    for (unsigned i = 0; i < images->n; i++)
        finish_one(&images->list[i]);
    image_list_finish(&images->known);
    images->n = 0;
}

int images_check(struct images *images, unsigned place, struct err *err)
{
    struct image *image = &images->list[place];
    char hex[SHA256_HEX_SIZE];
    int r;

    if (image->fd < 0)
        return err_set(err, ENOENT, "cannot open the " WHAT " %s", image->path);
    r = sha256_of_fd(image->fd, hex);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read the " WHAT " %s", image->path);
    r = checksum_check(image->path, WHAT, hex, err);
    if (r < 0)
        return r;
    memcpy(image->digest, hex, sizeof(image->digest));
    image->is_checked = true;
    return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool images_same_file(const struct image *a, const struct image *b)
{
    struct stat x, y;

    return a->fd >= 0 && b->fd >= 0 && fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino && x.st_size == y.st_size &&
           same_time(&x.st_mtim, &y.st_mtim) && same_time(&x.st_ctim, &y.st_ctim);
}

void images_drop(struct images *images, unsigned place)
{
    finish_one(&images->list[place]);
    images->n--;
    memmove(&images->list[place], &images->list[place + 1],
            (images->n - place) * sizeof(images->list[0]));
    image_list_forget(&images->known, place);
}

static int copy_one(const struct image *from, struct image *ret)
{
    *ret = *from;
    ret->modules = (struct skill_strings){0};
    ret->fd = from->fd < 0 ? -1 : fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    if ((from->fd < 0 || ret->fd >= 0) &&
        skill_strings_append(&ret->modules, &from->modules) == 0)
        return 0;
    finish_one(ret);
    *ret = (struct image){.fd = -1};
    return -ENOMEM;
}

/* The one of its name is somebody else's now. */
static int keep_there(struct images *images, unsigned there, struct image_listed *listed,
                      const struct image *image)
{
    image_manifest_finish(&images->known.list[there].manifest);
    images->known.list[there] = *listed;
    finish_one(&images->list[there]);
    return copy_one(image, &images->list[there]);
}

static int keep_behind(struct images *images, struct image_listed *listed,
                       const struct image *image)
{
    int r = image_list_admit(&images->known, listed);

    image_manifest_finish(&listed->manifest);
    if (r < 0)
        return r;
    images->n++;
    return copy_one(image, &images->list[r]);
}

int images_keep(struct images *images, const struct images *from, unsigned place)
{
    struct image_listed listed = from->known.list[place];
    int there = image_list_find(&images->known, listed.name);

    if (image_manifest_copy(&from->known.list[place].manifest, &listed.manifest) < 0)
        return -ENOMEM;
    return there >= 0 ? keep_there(images, (unsigned)there, &listed, &from->list[place])
                      : keep_behind(images, &listed, &from->list[place]);
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
