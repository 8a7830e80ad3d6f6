/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of the guest images: NAME.erofs in the share folder, each with what its recipe
 * lists beside it, and in the folder where `skillvm image` puts those that were made here. The
 * first, "python", is the one for skills that name none, and goes by "" too.
 *
 * A table never changes once others have it (image_tables.h): so nobody who reads one takes a
 * lock, and a place in it means the same image as long as it is there.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_IMAGES_H
#define SKILLVM_API_DAEMON_MACHINE_IMAGES_H

#include "api/skill/image_list.h"
#include "api/skill/sha256.h"
#include "api/skill/skill.h"
#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define IMAGES_MAX IMAGE_LIST_HERE_MAX

struct image {
    char path[PATH_MAX];
    bool is_added;                /* it is not of the installation */
    struct skill_strings modules; /* worth having in a snapshot; sorted, may be empty */
    /* Its file, which is the same whatever becomes of the path; -1: it cannot be opened, or the
     * image is the first, which is opened by its path when it is needed. */
    int fd;
    /* That the file is to have, which tells one image from the next of its name; "": nothing
     * says which. */
    char digest[SHA256_HEX_SIZE];
    bool is_checked; /* it has that digest: fd was read */
};

struct image_tables;

struct images {
    unsigned n; /* the first is there even where its file is not */
    struct image list[IMAGES_MAX];
    struct image_list known; /* these at the same places, and others that are not here */

    /* Of image_tables.h, which is NULL for a table of its own. */
    struct image_tables *of;
    unsigned references;
    uint64_t number; /* no two tables of a process have the same */
    LIST_ENTRY(images) link;
};

/*
 * Reads what there is in a folder; others than the first by name. -EINVAL for a list of modules
 * or a manifest that is none; -E2BIG for more than IMAGES_MAX; -errno. The caller finishes *ret
 * in any case.
 */
int images_read(const char *folder, struct images *ret, struct err *err);
/*
 * Adds those of another folder, which need not be there. One that cannot be read, whose name is
 * taken or for which there is no room is left out, and left is told so. Behind them it is told
 * of those that recipes in that folder would make.
 */
void images_read_added(const char *folder, struct images *images, image_list_left_fn *left,
                       void *ctx);
void images_finish(struct images *images);

/* Whether the image of a place is read whole and is what was built. 0; -EBADMSG; -errno. */
int images_check(struct images *images, unsigned place, struct err *err);
/* Whether both have the same file, which was not written to between. */
bool images_same_file(const struct image *a, const struct image *b);
/* Takes the image of a place out: those behind it come forward. */
void images_drop(struct images *images, unsigned place);
/*
 * Has the image of a place in another table as well, in place of the one of its name or behind
 * the others. Its place; -E2BIG; -errno: then the table is good for nothing but to be finished.
 */
int images_keep(struct images *images, const struct images *from, unsigned place);

/* The place of an image in the list, by its name or ""; -ENOENT. */
int images_find(const struct images *images, const char *name);
/* The name of the image of a place as snapshots have it: "" for the first. */
void images_write(const struct images *images, unsigned place, char ret_name[IMAGE_NAME_SIZE]);

#endif
