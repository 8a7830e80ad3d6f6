/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recipe of a guest root image: a YAML file read into plain lists. Every key is known and
 * every path checked here, so that a spelling mistake is an error and no path leaves the tree.
 * It must never touch the tree itself.
 */
#ifndef SKILLVM_IMAGES_RECIPE_H
#define SKILLVM_IMAGES_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

#define RECIPE_ITEMS_MAX 1024u
/* What a skill may have, as the daemon holds it (api/daemon/terms/limits.h). */
#define RECIPE_MEMORY_MIN_MIB 32u
#define RECIPE_MEMORY_MAX_MIB 1024u

struct recipe_item {
    char *path;  /* relative, without ".", ".." or a trailing slash */
    char *value; /* link target, file content or input name; NULL for a plain list */
    mode_t mode;
};

struct recipe_list {
    struct recipe_item *items;
    size_t len;
};

struct recipe {
    char *name;
    char *suite;
    char *extends;               /* the file of another recipe, or NULL */
    char *memory;                /* that a skill has in it by default, "512Mi", or NULL */
    struct recipe_list packages; /* in path */
    struct recipe_list drop;     /* patterns in path */
    struct recipe_list keep;
    struct recipe_list directories; /* mode */
    struct recipe_list links;       /* value: target */
    struct recipe_list files;       /* value: content, mode 0644 */
    struct recipe_list inputs;      /* value: name, mode */
    struct recipe_list compile_python;
    struct recipe_list warm;   /* names of Python modules in path */
    struct recipe_list brings; /* lines of the image's manifest in path */
    struct recipe_list
        sources; /* of recipe_load: the files it came from, the first one first */
};

/*
 * Reads one YAML document. 0, -EINVAL with the line in the message, or -ENOMEM. On success
 * *ret_recipe is the caller's, to be finished; untouched on failure.
 */
int recipe_read(FILE *file, struct recipe *ret_recipe, struct err *err);
/*
 * Reads the recipe of a file and those that it extends, which lie beside it or else in the
 * folder shipped (NULL: none): their items come before its own. As recipe_read, with the file
 * in the message; -errno where one cannot be read.
 */
int recipe_load(const char *path, const char *shipped, struct recipe *ret_recipe,
                struct err *err);

/* Frees what recipe_read gave; safe on a zeroed recipe. */
void recipe_finish(struct recipe *recipe);

/*
 * Whether a path of a package belongs in the image: no drop pattern covers it or a folder above
 * it, or a keep pattern does. "*" in a pattern stops at a slash.
 */
bool recipe_wants(const struct recipe *recipe, const char *path);

#endif
