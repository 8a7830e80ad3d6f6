/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the image builder that shell is bad at: reads a recipe and puts a root file
 * system together in a folder. build.sh beside it does the rest. It must never run another
 * program or fetch anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "images/recipe.h"
#include "images/tree.h"

static const char USAGE[] =
    "usage: image-tree show RECIPE "
    "name|suite|packages|inputs|compile_python|warm\n"
    "       image-tree unpack RECIPE FOLDER DEB…       packages, then the recipe's own "
    "entries\n"
    "       image-tree add RECIPE FOLDER NAME=PATH…    every input of the recipe\n";

static int show(const struct recipe *recipe, const char *what)
{
    const struct recipe_list *list = NULL;
    if (!strcmp(what, "name"))
        puts(recipe->name);
    else if (!strcmp(what, "suite"))
        puts(recipe->suite);
    else if (!strcmp(what, "packages"))
        list = &recipe->packages;
    else if (!strcmp(what, "compile_python"))
        list = &recipe->compile_python;
    else if (!strcmp(what, "warm"))
        list = &recipe->warm;
    else if (!strcmp(what, "inputs"))
        list = &recipe->inputs;
    else
        return -EINVAL;
    for (size_t i = 0; list && i < list->len; i++)
        puts(list->items[i].value ? list->items[i].value : list->items[i].path);
    return 0;
}

/* Opens every file first: afterwards the current directory is the tree. */
static int enter(const char *folder, char *const *paths, size_t n, int **ret_fds,
                 struct err *err)
{
    int *fds = calloc(n + 1, sizeof(*fds));
    if (!fds)
        return err_set(err, ENOMEM, "out of memory");
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        fds[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0)
            rc = err_set_errno(err, errno, "%s", paths[i]);
    }
    if (rc == 0 && chdir(folder) < 0)
        rc = err_set_errno(err, errno, "%s", folder);
    if (rc < 0) {
        free(fds);
        return rc;
    }
    *ret_fds = fds;
    return 0;
}

static int unpack(const struct recipe *recipe, const char *folder, char *const *debs, size_t n,
                  struct err *err)
{
    int *fds;
    int rc = enter(folder, debs, n, &fds, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = tree_unpack_deb(recipe, fds[i], debs[i], err);
    free(fds);
    return rc < 0 ? rc : tree_add_recipe(recipe, err);
}

static int add(const struct recipe *recipe, const char *folder, char **assignments, size_t n,
               struct err *err)
{
    char **paths = calloc(n + 1, sizeof(*paths));
    if (!paths)
        return err_set(err, ENOMEM, "out of memory");
    int *fds = NULL;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *equals = strchr(assignments[i], '=');
        if (!equals) {
            rc = err_set(err, EINVAL, "%s: not NAME=PATH", assignments[i]);
            break;
        }
        *equals = '\0';
        paths[i] = equals + 1;
    }
    if (rc == 0)
        rc = enter(folder, paths, n, &fds, err);
    for (size_t i = 0; i < recipe->inputs.len && rc == 0; i++) {
        const struct recipe_item *item = &recipe->inputs.items[i];
        size_t at = 0;
        while (at < n && strcmp(assignments[at], item->value) != 0)
            at++;
        if (at == n)
            rc = err_set(err, EINVAL, "the recipe needs the input %s", item->value);
        else
            rc = tree_add_input(item->path, fds[at], item->mode, err);
    }
    free(fds);
    free(paths);
    return rc;
}

int main(int argc, char **argv)
{
    struct recipe recipe = {0};
    struct err err = {0};

    if (argc < 4) {
        fputs(USAGE, stderr);
        return 2;
    }
    FILE *file = fopen(argv[2], "re");
    if (!file) {
        log_error("image", "recipe=%s error=%s", argv[2], strerror(errno));
        return 1;
    }
    int rc = recipe_read(file, &recipe, &err);
    fclose(file);
    if (rc < 0)
        err_prefix(&err, "%s", argv[2]);
    else if (!strcmp(argv[1], "show"))
        rc = show(&recipe, argv[3]);
    else if (!strcmp(argv[1], "unpack"))
        rc = unpack(&recipe, argv[3], argv + 4, (size_t)argc - 4, &err);
    else if (!strcmp(argv[1], "add"))
        rc = add(&recipe, argv[3], argv + 4, (size_t)argc - 4, &err);
    else
        rc = -EINVAL;
    recipe_finish(&recipe);
    if (rc < 0 && !err.code) {
        fputs(USAGE, stderr);
        return 2;
    }
    if (rc < 0)
        log_error("image", "%s", err.message);
    return rc < 0 ? 1 : 0;
}
