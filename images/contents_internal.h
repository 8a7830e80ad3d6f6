/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of contents.h share: the lines that are printed, and walks through folders. */
#ifndef SKILLVM_IMAGES_CONTENTS_INTERNAL_H
#define SKILLVM_IMAGES_CONTENTS_INTERNAL_H

#include "images/contents.h"

struct contents_lines {
    FILE *out;
    size_t n;
};

/* "KIND NAME[ MORE]"; nothing where a word has no room in a line. more may be NULL. */
void contents_put(struct contents_lines *lines, const char *kind, const char *name,
                  const char *more);

/* Calls take with each name in a folder of the image; one that is not there has none. */
void contents_each(int root_fd, const char *folder,
                   void (*take)(void *ctx, int folder_fd, const char *name), void *ctx);

/* The modules and packages of the image's Python. */
void contents_put_python(struct contents_lines *lines, int root_fd,
                         const struct contents_python *python);

#endif
