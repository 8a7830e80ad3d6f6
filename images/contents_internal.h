/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of contents.h share: the lines that are printed, and walks through folders. */
#ifndef SKILLVM_IMAGES_CONTENTS_INTERNAL_H
#define SKILLVM_IMAGES_CONTENTS_INTERNAL_H

#include "images/contents.h"

struct contents_lines {
    FILE *out;
    size_t n;
    FILE *packages; /* as of contents.h */
};

/* "KIND NAME[ MORE]"; nothing where a word has no room in a line. more may be NULL. */
void contents_put(struct contents_lines *lines, const char *kind, const char *name,
                  const char *more);

/* Calls take with each name in a folder of the image; one that is not there has none. */
void contents_each(int root_fd, const char *folder,
                   void (*take)(void *ctx, int folder_fd, const char *name), void *ctx);

/* A regular file of the image, to read, or NULL. */
FILE *contents_open_text(int root_fd, const char *path);
/* NULL is fine. */
void contents_close_text(FILE *file);

/* That an interpreter waits in the snapshot, where the image has its zygote's folder. */
void contents_put_warm(struct contents_lines *lines, int root_fd, const char *name,
                       const char *zygote);

/* The folder that a program's folder lies in, of its path from the root. */
void contents_prefix(const char *path, char ret[PATH_MAX]);
/* The version of a package in the list without its epoch, in size bytes; false: it has none. */
bool contents_package_version(FILE *packages, const char *package, char *ret, size_t size);

/* Version and modules of the image's Node. */
void contents_put_node(struct contents_lines *lines, int root_fd);

/* The modules and packages of the image's Python. */
void contents_put_python(struct contents_lines *lines, int root_fd,
                         const struct contents_python *python);

#endif
