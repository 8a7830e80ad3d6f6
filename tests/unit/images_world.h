/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small skills with known needs, and five images: every skill gets the image that is right, or
 * the warning that is. None is run to find out. Only for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_UNIT_IMAGES_WORLD_H
#define SKILLVM_TESTS_UNIT_IMAGES_WORLD_H

#include "api/skill/needs.h"

#include <sys/types.h>

#define MD(fields)  "---\nname: x\ndescription: y\n" fields "---\n"
#define FILES_MAX   5
#define WANTED_MAX  3
#define NEVER(what) "smallest of 5 that has " what

struct world_file {
    const char *path;
    const char *content;
    unsigned mode; /* 0: a usual one */
};

struct sample {
    const char *about;
    struct world_file files[FILES_MAX];
    const char *image;            /* NULL: the skill's own is not here or not allowed */
    const char *why;              /* NULL: whatever it is */
    const char *want[WANTED_MAX]; /* each a part of a warning, in order */
    const char *allowed;          /* names between spaces; NULL: all */
};

extern char world_folder[];
/* python, data, node and office as ours are, web of somebody else, and of ruby the manifest
 * alone. */
extern struct image_list images;

/* For cmocka. */
int world_set_up(void **state);
int world_tear_down(void **state);
/* A file of world_folder, of so many bytes if that is not 0. */
void world_put(const char *name, const char *text, off_t size);
/* Of names between spaces; NULL: all. */
image_set_t world_set_of(const char *names);
/* What its entry is in is "" where it has none. */
void world_read_skill(const struct world_file *files, struct skill *ret_skill,
                      struct needs *ret, char ret_lang[16]);
/* Fails for those that are wrong, of which it says what is. */
void world_check(const struct sample *samples, size_t n);

#endif
