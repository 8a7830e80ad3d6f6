/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest root file system as a folder: Debian packages unpacked into it, and what the recipe
 * adds. Works on the current directory only and as any user; owners are not kept (the image
 * makes everything root's), set-user-ID bits neither. libarchive stays inside tree.c.
 */
#ifndef SKILLVM_IMAGES_TREE_H
#define SKILLVM_IMAGES_TREE_H

#include "base/err.h"
#include "images/recipe.h"

/*
 * Unpacks the files of one .deb, open for reading at its start, that the recipe wants.
 * /bin, /sbin and /lib* go below usr/, as on every Debian of today. 0 or -errno.
 */
int tree_unpack_deb(const struct recipe *recipe, int deb_fd, const char *deb_name,
                    struct err *err);

/* Makes the recipe's directories, links and files, in that order. 0 or -errno. */
int tree_add_recipe(const struct recipe *recipe, struct err *err);

/*
 * Copies source_fd, a file or a folder of files (one level), to path with the given mode in
 * place of what was there. 0 or -errno.
 */
int tree_add_input(const char *path, int source_fd, mode_t mode, struct err *err);

#endif
