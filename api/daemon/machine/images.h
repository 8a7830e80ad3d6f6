/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest images: NAME.erofs in the share folder, each with what its recipe lists beside it,
 * and in the folder where `skillvm image` puts those that were made here. They are found once,
 * when the daemon starts. The first, "python", is the one for skills that name none, and goes
 * by "" too.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_IMAGES_H
#define SKILLVM_API_DAEMON_MACHINE_IMAGES_H

#include "api/skill/image_list.h"
#include "api/skill/skill.h"
#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define IMAGES_MAX IMAGE_LIST_HERE_MAX

struct image {
    char path[PATH_MAX];
    bool is_added;                /* it is not of the installation */
    struct skill_strings modules; /* worth having in a snapshot; sorted, may be empty */
};

struct images {
    unsigned n; /* the first is there even where its file is not */
    struct image list[IMAGES_MAX];
    struct image_list known; /* these at the same places, and others that are not here */
};

/*
 * Reads what there is in a folder; others than the first by name. -EINVAL for a list of modules
 * or a manifest that is none; -E2BIG for more than IMAGES_MAX; -errno. The caller finishes *ret
 * in any case.
 */
int images_read(const char *folder, struct images *ret, struct err *err);
/*
 * Adds those of another folder, which need not be there. One that cannot be read, whose name is
 * taken or for which there is no room is left out, and the log says so. Behind them it is told
 * of those that recipes in that folder would make.
 */
void images_read_added(const char *folder, struct images *images);
void images_finish(struct images *images);

/* The place of an image in the list, by its name or ""; -ENOENT. */
int images_find(const struct images *images, const char *name);
/* The name of the image of a place as snapshots have it: "" for the first. */
void images_write(const struct images *images, unsigned place, char ret_name[IMAGE_NAME_SIZE]);

#endif
