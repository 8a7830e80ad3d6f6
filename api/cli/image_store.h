/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of images: those of the installation in its share folder, those that were made here
 * in a folder of the operator's. What a daemon that starts or looks again now would find.
 */
#ifndef SKILLVM_API_CLI_IMAGE_STORE_H
#define SKILLVM_API_CLI_IMAGE_STORE_H

#include "api/cli/cli.h"
#include "api/skill/image_manifest.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_STORE_MAX 16u /* as of a daemon */
#define IMAGE_TEXT_SIZE 256u

struct image_stored {
    char name[IMAGE_NAME_SIZE];
    const char *folder; /* borrowed of struct cli */
    bool is_shipped;    /* it is the installation's */
    uint64_t bytes;
    char recipe[IMAGE_TEXT_SIZE];  /* the file it was built of, or "" */
    char archive[IMAGE_TEXT_SIZE]; /* the file it was imported from, or "" */
    char title[IMAGE_TEXT_SIZE];   /* the name that this was saved by, or "" */
    char digest[72];               /* SHA-256 of that file, or "" */
    struct image_manifest manifest;
};

struct image_store {
    unsigned n;
    struct image_stored list[IMAGE_STORE_MAX];
};

/*
 * Reads all, "python" first. One whose manifest cannot be read is there with an unknown one. 0,
 * -E2BIG for more than a daemon takes, or -ENOMEM. The caller finishes *ret in any case.
 */
int image_store_read(const struct cli *cli, struct image_store *ret, struct err *err);
void image_store_finish(struct image_store *store);
#define _cleanup_image_store_ __attribute__((cleanup(image_store_finish)))
/* The one of this name, or NULL. */
const struct image_stored *image_store_find(const struct image_store *store, const char *name);

/* Whether a name can be an image's. 0 or -EINVAL with err. */
int image_check_name(const char *name, struct err *err);

#define IMAGE_ITSELF ".erofs"
/* The endings of an image's files, the image's own last; ends with NULL. */
extern const char *const image_parts[];
/* The path of an image's file in a folder, "" where that is too long. Returns out (PATH_MAX
   bytes). */
const char *image_path(const char *folder, const char *name, const char *part, char *out);
/* Makes the folder and holds it: a descriptor of a lock, or -errno. Others wait. */
int image_store_hold(const struct cli *cli, struct err *err);
/* Removes the files of one that was made here, the image first. 0 or -errno. */
int image_store_remove(const struct cli *cli, const char *name, struct err *err);

/* Says that an image was made or removed, after the daemon that runs here, if one does, took
 * that up. */
void image_tell(const struct cli *cli, const char *name, bool is_made);

/* Whether there are a recipe of an image's name and what builds it. */
bool image_can_build(const struct cli *cli, const char *name);
/* Builds by a recipe, a file or a name, with progress on standard error. 0 or -errno. */
int image_make(const struct cli *cli, const char *recipe, struct err *err);
/*
 * Writes what an image was made of to standard output, as an SPDX 2.3 document; hex is its
 * digest. 0; -ENOENT where there is no list of it or nothing that writes it; -EIO; each with
 * err.
 */
int image_write_spdx(const struct cli *cli, const struct image_stored *image, const char *hex,
                     struct err *err);
/* The verbs that run the builder, as of struct verb. */
int image_import(const struct cli *cli, const struct options *options);
int image_build(const struct cli *cli, const struct options *options);

#endif
