/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `skillvm image import` and `build`: runs the builder of the installation (images/build.sh)
 * into a folder of its own, and moves what it made to its place. Nothing is left of one that
 * fails.
 */
#include "api/cli/image_recipes.h"
#include "api/cli/verbs.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAGING  ".new-"
#define ARGS_MAX 24u

/* What the builder is told, with the places that it needs. */
#define N_FILES 6u /* what builds images, in a folder of the installation */

struct order {
    char folder[PATH_MAX];         /* of the builder and what it puts into images */
    char staging[PATH_MAX];        /* where it puts the files */
    char paths[N_FILES][PATH_MAX]; /* of builder, tool and inputs */
    char recipe[PATH_MAX];         /* "" where a container is imported */
    const char *args[ARGS_MAX];
    size_t n;
};

static void add(struct order *order, const char *option, const char *value)
{
    order->args[order->n++] = option;
    order->args[order->n++] = value;
}

/* Those that every image takes. 0, or -ENOENT: this installation cannot build. */
static int prepare(const struct cli *cli, struct order *order, struct err *err)
{
    static const char *const files[N_FILES] = {"build.sh", "image-tree",  "init",
                                               "zygote",   "zygote-node", "python"};
    static const char *const inputs[] = {"init=", "zygote=", "zygote-node=", "python="};

    (void)cli_join(cli->share_dir, "images", order->folder);
    for (size_t i = 0; i < N_FILES; i++) {
        char path[PATH_MAX];

        (void)cli_join(order->folder, files[i], path);
        if (access(path, R_OK) < 0)
            return err_set_errno(err, errno, "what builds images is not there: %s", path);
        (void)snprintf(order->paths[i], PATH_MAX, "%s%.4000s", i < 2 ? "" : inputs[i - 2],
                       path);
    }
    order->args[order->n++] = "sh";
    order->args[order->n++] = order->paths[0];
    add(order, "--tool", order->paths[1]);
    for (size_t i = 2; i < N_FILES; i++)
        add(order, "--input", order->paths[i]);
    return 0;
}

static pid_t start(const struct order *order)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    /* It prints where it put what is found there anyway. */
    if (!freopen("/dev/null", "w", stdout))
        _exit(127);
    (void)signal(SIGPIPE, SIG_DFL);
    execvp("sh", (char *const *)(uintptr_t)order->args);
    _exit(127);
}

/* Waits for its end, and passes on what asks this process to end. */
static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
        if (cli_interrupted())
            (void)kill(pid, SIGTERM);
    }
    return status;
}

static int run(const struct order *order, struct err *err)
{
    pid_t pid;
    int status;

    cli_catch_interrupts();
    pid = start(order);
    if (pid < 0)
        return err_set_errno(err, errno, "cannot start the builder");
    status = wait_for(pid);
    if (cli_interrupted())
        return err_set(err, EINTR, "interrupted; nothing was kept");
    return status == 0 ? 0 : err_set(err, EREMOTEIO, "no image was made");
}

/* Of builders that were killed: the folder of images is held, so nobody works in them. */
static void remove_staging(const struct cli *cli)
{
    _cleanup_fd_ int fd = open(cli->images_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fd_opendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, STAGING, strlen(STAGING)) == 0)
            fd_remove_folder(fd, entry->d_name);
    }
    if (dir)
        (void)closedir(dir);
}

static int move_parts(const struct cli *cli, const struct order *order, const char *name,
                      struct err *err)
{
    for (size_t i = 0; image_parts[i]; i++) {
        const char *part = image_parts[i];
        char from[PATH_MAX], to[PATH_MAX];

        if (rename(image_path(order->staging, name, part, from),
                   image_path(cli->images_dir, name, part, to)) < 0)
            return err_set_errno(err, errno, "cannot move %s%s to %s", name, part,
                                 cli->images_dir);
    }
    return 0;
}

/* Whether an image of this name may be made. */
static int check_free(const struct cli *cli, const char *name, struct err *err)
{
    _cleanup_image_store_ struct image_store store = {0};
    const struct image_stored *taken;
    int r = image_check_name(name, err);

    if (r < 0)
        return r;
    r = image_store_read(cli, &store, err);
    if (r < 0)
        return r;
    taken = image_store_find(&store, name);
    if (strcmp(name, "python") == 0 || (taken && taken->is_shipped))
        return err_set(err, EEXIST, "the installation has an image %s: choose another name",
                       name);
    if (taken)
        return err_set(err, EEXIST,
                       "there is an image %s already: choose another name, or remove it "
                       "(`skillvm image rm %s`)",
                       name, name);
    if (store.n == IMAGE_STORE_MAX)
        return err_set(err, E2BIG, "there are %u images, and a daemon takes no more",
                       IMAGE_STORE_MAX);
    return 0;
}

static int make_held(const struct cli *cli, struct order *order, const char *name,
                     struct err *err)
{
    int r = check_free(cli, name, err);

    if (r < 0)
        return r;
    remove_staging(cli);
    (void)cli_join(cli->images_dir, STAGING "XXXXXX", order->staging);
    if (!mkdtemp(order->staging))
        return err_set_errno(err, errno, "cannot make a folder in %s", cli->images_dir);
    add(order, "--output", order->staging);
    r = run(order, err);
    return r < 0 ? r : move_parts(cli, order, name, err);
}

/* The rest of both verbs. */
static int make(const struct cli *cli, struct order *order, const char *name, struct err *err)
{
    _cleanup_fd_ int held = image_store_hold(cli, err);
    int r = held < 0 ? held : make_held(cli, order, name, err);

    if (held >= 0)
        remove_staging(cli);
    if (r < 0)
        return r;
    image_tell(cli, name, true);
    return 0;
}

/* "My_Tools.tar.gz" is "my-tools", and a folder is named as it is however it is called. */
static void name_of_file(const char *path, char ret[IMAGE_NAME_SIZE])
{
    char real[PATH_MAX];
    struct stat st;
    const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode) && realpath(path, real);
    const char *file = basename(is_folder ? real : path);
    size_t n = 0, end = strlen(file);

    for (const char *dot = strstr(file, ".tar"); dot; dot = NULL)
        end = (size_t)(dot - file);
    for (size_t i = 0; i < end && n < IMAGE_NAME_SIZE - 1; i++) {
        const char c = (char)tolower((unsigned char)file[i]);
        const char one[2] = {c, '\0'};

        ret[n++] = (char)(image_name_length(one) == 1 ? c : '-');
    }
    ret[n] = '\0';
}

int image_import(const struct cli *cli, const struct options *options)
{
    struct order order = {0};
    struct err err = {0};
    char name[IMAGE_NAME_SIZE];

    name_of_file(options->args[0], name);
    if (options->name && image_check_name(options->name, &err) < 0)
        return verbs_failed(&err);
    if (options->name)
        strcpy(name, options->name);
    if (access(options->args[0], R_OK) < 0) {
        cli_say("%s: %s", options->args[0], strerror(errno));
        return CLI_FAILED;
    }
    if (prepare(cli, &order, &err) < 0)
        return verbs_failed(&err);
    add(&order, "--archive", options->args[0]);
    add(&order, "--name", name);
    return make(cli, &order, name, &err) < 0 ? verbs_failed(&err) : CLI_OK;
}

/* The file of a recipe that is named by itself or by its file. 0 or -ENOENT. */
static int find_recipe(const struct cli *cli, const struct order *order, const char *asked,
                       char ret[PATH_MAX], struct err *err)
{
    static const struct image_store none;
    char folder[PATH_MAX], file[PATH_MAX], hint[IMAGE_HINT_SIZE];

    if (strchr(asked, '/') || strchr(asked, '.')) {
        (void)snprintf(ret, PATH_MAX, "%.4000s", asked);
        return access(ret, R_OK) < 0 ? err_set_errno(err, errno, "%s", asked) : 0;
    }
    (void)snprintf(file, sizeof(file), "%.4000s.yaml", asked);
    (void)cli_join(cli->images_dir, "recipes", folder);
    if (access(cli_join(folder, file, ret), R_OK) == 0 ||
        access(cli_join(order->folder, file, ret), R_OK) == 0)
        return 0;
    /* Who only asks whether there is one hears of no other. */
    if (!err)
        return -ENOENT;
    return err_set(err, ENOENT, "there is no recipe %.64s, neither in %s nor in %s%s", file,
                   folder, order->folder, image_recipes_hint(cli, &none, asked, hint));
}

/* The name that a recipe gives its image, which the builder's tool reads. */
static int read_name(const struct order *order, const char *recipe, char ret[IMAGE_NAME_SIZE],
                     struct err *err)
{
    char text[256] = "";
    int pipes[2];
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "cannot make a pipe");
    pid = fork();
    if (pid == 0) {
        if (setenv("SKILLVM_RECIPES", order->folder, 1) < 0 ||
            dup2(pipes[1], STDOUT_FILENO) < 0)
            _exit(127);
        execl(order->paths[1], "image-tree", "show", recipe, "name", (char *)NULL);
        _exit(127);
    }
    fd_close(&pipes[1]);
    ssize_t n = pid < 0 ? -1 : fd_read_full(pipes[0], text, sizeof(text) - 1);
    fd_close(&pipes[0]);
    if (pid < 0 || process_reap(pid) != 0 || n <= 0)
        return err_set(err, EINVAL, "%s is no recipe", recipe);
    text[strcspn(text, "\n")] = '\0';
    int r = image_check_name(text, err);
    if (r < 0)
        return r;
    (void)snprintf(ret, IMAGE_NAME_SIZE, "%.32s", text);
    return 0;
}

/* What builds an image by the recipe that is asked for. 0 with the image's name, or -errno. */
static int order_build(const struct cli *cli, const char *asked, struct order *order,
                       char ret_name[IMAGE_NAME_SIZE], struct err *err)
{
    int r = prepare(cli, order, err);

    if (r < 0)
        return r;
    r = find_recipe(cli, order, asked, order->recipe, err);
    if (r < 0)
        return r;
    add(order, "--recipe", order->recipe);
    return read_name(order, order->recipe, ret_name, err);
}

bool image_can_build(const struct cli *cli, const char *name)
{
    struct order order = {0};
    char made[IMAGE_NAME_SIZE];

    return image_name_length(name) == strlen(name) && name[0] &&
           order_build(cli, name, &order, made, NULL) == 0 && strcmp(made, name) == 0;
}

int image_make(const struct cli *cli, const char *recipe, struct err *err)
{
    struct order order = {0};
    char name[IMAGE_NAME_SIZE];
    int r = order_build(cli, recipe, &order, name, err);

    return r < 0 ? r : make(cli, &order, name, err);
}

int image_build(const struct cli *cli, const struct options *options)
{
    struct err err = {0};

    return image_make(cli, options->args[0], &err) < 0 ? verbs_failed(&err) : CLI_OK;
}
