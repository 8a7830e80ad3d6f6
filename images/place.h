/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in a root file system that lies in a folder, to put files there. Links of the file
 * system are followed inside it (inside.h), the last component of a path never: what is put
 * takes the place of what was there. Neither owners nor set-user-ID bits are kept.
 */
#ifndef SKILLVM_IMAGES_PLACE_H
#define SKILLVM_IMAGES_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct place {
    int parent; /* owned; -1: it is not there */
    char name[NAME_MAX + 1];
    const char *path; /* borrowed, for messages */
};

#define PLACE_NONE ((struct place){.parent = -1})
void place_finish(struct place *place);
#define _cleanup_place_ __attribute__((cleanup(place_finish)))

/*
 * Finds where a clean relative path (no "." or "..") is. make: the folders above it are made.
 * 0; -ENOENT without make where there is no such folder, without a message; -ENAMETOOLONG where
 * links lead deeper than PLACE_DEPTH_MAX; or -errno. The caller finishes *ret.
 */
int place_find(int root_fd, const char *path, bool make, struct place *ret, struct err *err);

#define PLACE_DEPTH_MAX 192u

/* Each puts something there. 0 or -errno; place_file gives a descriptor to write to. */
int place_file(const struct place *place, mode_t mode, struct err *err);
int place_folder(const struct place *place, mode_t mode, struct err *err);
int place_link(const struct place *place, const char *target, struct err *err);
/* The same file as the one at another place, which must be there and no folder. */
int place_same(const struct place *place, const struct place *other, struct err *err);
/* Removes what is there, a folder with all in it; nothing there is no error. */
int place_clear(const struct place *place, struct err *err);
/* Removes what is in the folder there. */
int place_empty(const struct place *place, struct err *err);
int place_empty_root(int root_fd, struct err *err);

#endif
