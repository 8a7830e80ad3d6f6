/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images as they are now, and as they were for who still needs them so. An operator makes
 * and removes images while the daemon runs: each look at their folders makes a new table, which
 * takes the place of the one before. Tables are counted and never changed: an execution keeps
 * the one that its image was chosen from until it has ended, and with it that image's open
 * file, though the image was removed or made anew. So nobody who reads a table waits for a
 * look, which may digest a gigabyte. (A list that only grows would need no counts, but would
 * be full after so many builds.)
 *
 * The first image, and the kernel, are the installation's and stay what they were.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_IMAGE_TABLES_H
#define SKILLVM_API_DAEMON_MACHINE_IMAGE_TABLES_H

#include "api/daemon/machine/images.h"
#include "base/err.h"

/* There are no more at a time: each is some 100 KiB, and a descriptor for each image. */
#define IMAGE_TABLES_MAX 16u
/* Of one look. */
#define IMAGE_CHANGES_MAX (3u * IMAGES_MAX)

struct image_tables;

enum image_change_kind {
    IMAGE_ADDED,
    IMAGE_REPLACED, /* by another of its name */
    IMAGE_REMOVED,
    IMAGE_REFUSED, /* what was there before, if anything, stays */
};

struct image_change {
    enum image_change_kind kind;
    char name[IMAGE_NAME_SIZE];
    char why[ERR_MESSAGE_MAX]; /* of one that was refused */
};

struct image_changes {
    unsigned n;
    struct image_change list[IMAGE_CHANGES_MAX];
};

/*
 * Looks for the first time, at a folder as of images_read() and one as of images_read_added().
 * No image is digested: whoever needs one first does that.
 */
int image_tables_create(const char *share, const char *added, struct image_tables **ret,
                        struct err *err);
/* Once nobody has a table any more. NULL is fine. */
void image_tables_destroy(struct image_tables *tables);
/*
 * gone is called, without locks, whenever a table is no more: nobody needs the images that were
 * in it alone. Before the second table.
 */
void image_tables_on_gone(struct image_tables *tables, void (*gone)(void *ctx), void *ctx);

/* A reference to the table of now. */
struct images *image_tables_now(struct image_tables *tables);
/* NULL is fine. */
void images_unref(struct images *images);

static inline void images_unref_at(struct images **images)
{
    images_unref(*images);
}
#define _cleanup_images_ __attribute__((cleanup(images_unref_at)))

/*
 * A reference to the newest table with an image of this name ("" is the first) and digest
 * ("": whichever), and its place there; NULL: none has it.
 */
struct images *image_tables_find(struct image_tables *tables, const char *name,
                                 const char *digest, unsigned *ret_place);
/* Whether one has. */
bool image_tables_have(struct image_tables *tables, const char *name, const char *digest);

/*
 * Looks again, one caller after the other. An image that is new or was written since is read
 * whole: one that is not what was built is refused. The rest of what it finds is so from now
 * on, for who asks from now on. 0; -EBUSY: executions still need too many earlier tables; else
 * as of images_read(): then all stays as it was.
 */
int image_tables_reload(struct image_tables *tables, struct image_changes *ret,
                        struct err *err);
/* "added", "replaced", "removed" or "refused". */
const char *image_change_word(enum image_change_kind kind);

#endif
