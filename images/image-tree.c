/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the image builder that shell is bad at: reads a recipe and puts a root file
 * system together in a folder. build.sh beside it does the rest. It must never run another
 * program or fetch anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "images/contents.h"
#include "images/oci.h"
#include "images/recipe.h"
#include "images/tree.h"

static const char USAGE[] =
    "usage: image-tree show RECIPE "
    "name|suite|memory|packages|inputs|compile_python|warm|brings|sources\n"
    "       image-tree unpack RECIPE FOLDER DEB…       packages, then the recipe's own "
    "entries\n"
    "       image-tree add RECIPE FOLDER NAME=PATH…    every input of the recipe\n"
    "       image-tree import ARCHIVE|LAYOUT FOLDER FOLDER    of containers, by way of one to "
    "the other\n"
    "       image-tree contents FOLDER debian          the packages that it says it has\n"
    "       image-tree contents FOLDER manifest|fit PACKAGES    by that list; the last: "
    "whether the zygote does\n";

static int show(const struct recipe *recipe, const char *what)
{
    const struct {
        const char *name;
        const char *word;
        const struct recipe_list *list;
    } shown[] = {
        {"name", recipe->name, NULL},       {"suite", recipe->suite, NULL},
        {"memory", recipe->memory, NULL},   {"packages", NULL, &recipe->packages},
        {"inputs", NULL, &recipe->inputs},  {"compile_python", NULL, &recipe->compile_python},
        {"warm", NULL, &recipe->warm},      {"brings", NULL, &recipe->brings},
        {"sources", NULL, &recipe->sources}};
    size_t at = 0;

    while (at < sizeof(shown) / sizeof(shown[0]) && strcmp(shown[at].name, what) != 0)
        at++;
    if (at == sizeof(shown) / sizeof(shown[0]))
        return -EINVAL;
    if (shown[at].word)
        puts(shown[at].word);
    for (size_t i = 0; shown[at].list && i < shown[at].list->len; i++) {
        const struct recipe_item *item = &shown[at].list->items[i];

        puts(item->value ? item->value : item->path);
    }
    return 0;
}

/* Opens every file first: afterwards the current directory is the tree. They stay open. */
static int enter(const char *folder, char *const *paths, size_t n, int **ret_fds,
                 struct err *err)
{
    _cleanup_free_ int *fds = calloc(n + 1, sizeof(*fds));

    if (!fds)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        fds[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0)
            return err_set_errno(err, errno, "%s", paths[i]);
    }
    if (chdir(folder) < 0)
        return err_set_errno(err, errno, "%s", folder);
    *ret_fds = steal_ptr(&fds);
    return 0;
}

static int unpack(const struct recipe *recipe, const char *folder, char **debs, size_t n,
                  struct err *err)
{
    _cleanup_free_ int *fds = NULL;
    int r = enter(folder, debs, n, &fds, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        r = tree_unpack_deb(recipe, fds[i], debs[i], err);
        if (r < 0)
            return r;
    }
    return tree_add_recipe(recipe, err);
}

/* Parts each NAME=PATH in place. */
static int part(char **assignments, size_t n, char **ret_paths, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        char *equals = strchr(assignments[i], '=');

        if (!equals)
            return err_set(err, EINVAL, "%s: not NAME=PATH", assignments[i]);
        *equals = '\0';
        ret_paths[i] = equals + 1;
    }
    return 0;
}

static int add_inputs(const struct recipe *recipe, char *const *names, const int *fds, size_t n,
                      struct err *err)
{
    for (size_t i = 0; i < recipe->inputs.len; i++) {
        const struct recipe_item *item = &recipe->inputs.items[i];
        size_t at = 0;
        int r;

        while (at < n && strcmp(names[at], item->value) != 0)
            at++;
        if (at == n)
            return err_set(err, EINVAL, "the recipe needs the input %s", item->value);
        r = tree_add_input(item->path, fds[at], item->mode, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add(const struct recipe *recipe, const char *folder, char **assignments, size_t n,
               struct err *err)
{
    _cleanup_free_ char **paths = calloc(n + 1, sizeof(*paths));
    _cleanup_free_ int *fds = NULL;

    if (!paths)
        return err_set(err, ENOMEM, "out of memory");
    if (part(assignments, n, paths, err) < 0 || enter(folder, paths, n, &fds, err) < 0)
        return -err->code;
    return add_inputs(recipe, assignments, fds, n, err);
}

static int open_folder(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, errno, "%s", path) : fd;
}

/* Prints what it was, as lines of an origin. */
static int import(const char *archive, const char *spool, const char *root, struct err *err)
{
    _cleanup_fd_ int fd = open(archive, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct oci_origin origin;
    int r;

    if (fd < 0)
        return err_set_errno(err, errno, "%s", archive);
    _cleanup_fd_ int spool_fd = open_folder(spool, err);
    if (spool_fd < 0)
        return spool_fd;
    _cleanup_fd_ int root_fd = open_folder(root, err);
    if (root_fd < 0)
        return root_fd;
    /* What names of a tar are in, whatever the language of who imports. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return err_set(err, ENOENT, "the locale C.UTF-8 is missing");
    r = oci_import(fd, spool_fd, root_fd, &origin, err);
    if (r < 0)
        return r;
    printf("title %s\ndigest %s\n", origin.title, origin.digest);
    return 0;
}

static int contents_by(int root_fd, const char *what, FILE *packages, struct err *err)
{
    if (!strcmp(what, "fit")) {
        puts(contents_fits(root_fd, packages, ZYGOTE_PYTHON) ? "yes" : "no");
        return 0;
    }
    return strcmp(what, "manifest") == 0 ? contents_print(root_fd, packages, stdout, err)
                                         : -EINVAL;
}

/* packages: the path of their list, or NULL. */
static int contents(const char *folder, const char *what, const char *packages, struct err *err)
{
    _cleanup_fd_ int fd = open_folder(folder, err);
    FILE *list;
    int r;

    if (fd < 0)
        return fd;
    if (!packages)
        return strcmp(what, "debian") == 0 ? contents_print_debian(fd, stdout, err) : -EINVAL;
    list = fopen(packages, "re");
    if (!list)
        return err_set_errno(err, errno, "%s", packages);
    r = contents_by(fd, what, list, err);
    (void)fclose(list);
    return r;
}

/* As the usage says; -EINVAL without a message where it does not. */
static int obey_recipe(char **argv, size_t n_more, struct recipe *recipe, struct err *err)
{
    int r = recipe_load(argv[2], getenv("SKILLVM_RECIPES"), recipe, err);

    if (r < 0)
        return r;
    if (!strcmp(argv[1], "show"))
        return show(recipe, argv[3]);
    if (!strcmp(argv[1], "unpack"))
        return unpack(recipe, argv[3], argv + 4, n_more, err);
    return strcmp(argv[1], "add") == 0 ? add(recipe, argv[3], argv + 4, n_more, err) : -EINVAL;
}

static int obey(int argc, char **argv, struct err *err)
{
    struct recipe recipe = {0};
    int r;

    if (!strcmp(argv[1], "contents"))
        return argc <= 5 ? contents(argv[2], argv[3], argv[4], err) : -EINVAL;
    if (!strcmp(argv[1], "import"))
        return argc == 5 ? import(argv[2], argv[3], argv[4], err) : -EINVAL;
    r = obey_recipe(argv, (size_t)argc - 4, &recipe, err);
    recipe_finish(&recipe);
    return r;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    int r;

    if (argc < 4) {
        fputs(USAGE, stderr);
        return 2;
    }
    r = obey(argc, argv, &err);
    if (r < 0 && !err.code) {
        fputs(USAGE, stderr);
        return 2;
    }
    if (r < 0)
        log_error("image", "%s", err.message);
    return r < 0 ? 1 : 0;
}
