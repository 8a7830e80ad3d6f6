/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a root file system that lies in a folder, found as a program in it would find them:
 * links are followed, also absolute ones and "..", and none leads out of the folder.
 */
#ifndef SKILLVM_IMAGES_INSIDE_H
#define SKILLVM_IMAGES_INSIDE_H

#include <limits.h>
#include <stddef.h>

/* Opens a path below the folder root_fd. flags as of open, O_CLOEXEC is added. A descriptor, or
 * -errno; -ENOSYS where the kernel is older than 5.6. */
int inside_open(int root_fd, const char *path, int flags);
/* The same, and no link is followed: -ELOOP, and -EXDEV for a path that leads out. */
int inside_open_plain(int root_fd, const char *path, int flags);
/* Where a file that inside_open opened lies in the folder, without a leading slash; "" for the
 * folder itself. 0, or -errno. */
int inside_where(int root_fd, int fd, char ret_path[PATH_MAX]);

/* What a skill's PATH has (guest-init/skill.c), as folders of an image in their order. */
#define INSIDE_N_FOLDERS 3
extern const char *const inside_folders[INSIDE_N_FOLDERS];
/*
 * The program that is run by this name: a descriptor (O_PATH) of the file that its links lead
 * to, or -ENOENT.
 */
int inside_program(int root_fd, const char *name);

#endif
