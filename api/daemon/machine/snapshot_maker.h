/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes snapshots, one at a time, by booting a guest once; or opens one that was made before
 * and checks it. Which ones there shall be is for snapshots.c to know, whose thread alone calls
 * this, but for snapshot_maker_stop.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SNAPSHOT_MAKER_H
#define SKILLVM_API_DAEMON_MACHINE_SNAPSHOT_MAKER_H

#include "api/daemon/machine/snapshot_files.h"
#include "api/daemon/machine/snapshots.h"
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>

struct vm;

/* An image that was opened and has the digest that it is to have. */
struct maker_image {
    int fd; /* -1: there is none here */
    char name[IMAGE_NAME_SIZE];
    char asked[SHA256_HEX_SIZE]; /* by which digest, as of struct snapshot_name */
    char digest[SHA256_HEX_SIZE];
    enum warmup_kind warmup;
};

struct snapshot_maker {
    const struct snapshots_config *config; /* borrowed */
    /* Told what is being done now; to be set before anything is. */
    void (*say)(void *ctx, const char *text);
    void *ctx;
    struct snapshot_inputs inputs; /* the same for all but their name and image */
    struct known_digests known;    /* of these, of images and of snapshots */
    int kernel_fd;
    struct maker_image images[IMAGES_MAX];
    unsigned next_image; /* which gives way to another */

    pthread_mutex_t lock; /* for these */
    bool stopping;
    struct vm *vm; /* at work, so that stopping can end it; else NULL */
};

void snapshot_maker_init(struct snapshot_maker *maker, const struct snapshots_config *config);
/* Ends what is being made, and all that is begun later. From any thread. */
void snapshot_maker_stop(struct snapshot_maker *maker);
void snapshot_maker_finish(struct snapshot_maker *maker);

/*
 * Opens and digests what shapes every snapshot; an image is when it is asked for. Before the
 * others. 0 or -errno.
 */
int snapshot_maker_read_inputs(struct snapshot_maker *maker, struct err *err);
/*
 * The key of a snapshot of this name: of its folder. 0; -ENOENT there is no such image;
 * -errno.
 */
int snapshot_maker_key(struct snapshot_maker *maker, const struct snapshot_name *name,
                       char ret_key[SNAPSHOT_KEY_SIZE]);
/*
 * Opens the snapshot of this name and checks it. 0 with a reference for the caller; -ENOENT
 * without a message when there is none; -EINVAL with what is wrong with it; -errno.
 */
int snapshot_maker_load(struct snapshot_maker *maker, const struct snapshot_name *name,
                        struct snapshot **ret, struct err *err);
/* Closes the images that nobody has any more. */
void snapshot_maker_forget(struct snapshot_maker *maker);
/* Makes it anew, in place of one that is there. 0 with a reference, or -errno. */
int snapshot_maker_make(struct snapshot_maker *maker, const struct snapshot_name *name,
                        struct snapshot **ret, struct err *err);

#endif
