/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/image_store.h"

#include "api/skill/image_list.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORIGIN_MAX 4096

const char *const image_parts[] = {".modules", ".packages",  ".manifest", ".origin",
                                   ".sha256",  IMAGE_ITSELF, NULL};

int image_check_name(const char *name, struct err *err)
{
    size_t n = image_name_length(name);

    if (n == 0 || name[n] || n >= IMAGE_NAME_SIZE)
        return err_set(err, EINVAL,
                       "\"%.64s\" is no name of an image: lower-case letters, digits and "
                       "hyphens, at most %u",
                       name, IMAGE_NAME_SIZE - 1);
    return 0;
}

/* The value of a line "KEY VALUE", or "". */
static void take_line(const char *text, const char *key, char *ret, size_t size)
{
    const size_t n = strlen(key);

    ret[0] = '\0';
    while (text) {
        if (strncmp(text, key, n) == 0 && text[n] == ' ')
            (void)snprintf(ret, size, "%.*s", (int)strcspn(text + n + 1, "\n"), text + n + 1);
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
}

const char *image_path(const char *folder, const char *name, const char *part, char *out)
{
    char file[IMAGE_NAME_SIZE + 16];

    (void)snprintf(file, sizeof(file), "%s%s", name, part);
    return cli_join(folder, file, out);
}

static void read_origin(struct image_stored *image)
{
    char path[PATH_MAX], text[ORIGIN_MAX];

    if (fd_read_text(image_path(image->folder, image->name, ".origin", path), text,
                     sizeof(text)) < 0)
        return;
    take_line(text, "recipe", image->recipe, sizeof(image->recipe));
    take_line(text, "archive", image->archive, sizeof(image->archive));
    take_line(text, "title", image->title, sizeof(image->title));
    take_line(text, "digest", image->digest, sizeof(image->digest));
}

struct reading {
    struct image_store *store;
    bool is_shipped;
};

static int add(void *ctx, const struct image_file *file, struct err *err)
{
    const struct reading *reading = ctx;
    struct image_store *store = reading->store;
    struct image_stored *image = &store->list[store->n];
    char path[PATH_MAX];
    struct err ignored = {0};
    struct stat st;

    if (stat(image_path(file->folder, file->name, IMAGE_ITSELF, path), &st) < 0 ||
        image_store_find(store, file->name))
        return 0;
    if (store->n == IMAGE_STORE_MAX)
        return err_set(err, E2BIG, "there are more than %u images", IMAGE_STORE_MAX);
    store->n++;
    *image = (struct image_stored){.folder = file->folder,
                                   .is_shipped = reading->is_shipped,
                                   .bytes = (uint64_t)st.st_size};
    strcpy(image->name, file->name);
    read_origin(image);
    return image_manifest_read(file->folder, file->name, &image->manifest, &ignored) == -ENOMEM
               ? err_no_memory(err)
               : 0;
}

int image_store_read(const struct cli *cli, struct image_store *ret, struct err *err)
{
    const struct image_file usual = {.folder = cli->share_dir, .name = IMAGE_USUAL};
    struct reading shipped = {ret, true}, made = {ret, false};
    int r;

    ret->n = 0;
    r = add(&shipped, &usual, err);
    if (r < 0)
        return r;
    r = image_files_each(cli->share_dir, IMAGE_ITSELF, add, &shipped, err);
    return r < 0 ? r : image_files_each(cli->images_dir, IMAGE_ITSELF, add, &made, err);
}

void image_store_finish(struct image_store *store)
{
    for (unsigned i = 0; i < store->n; i++)
        image_manifest_finish(&store->list[i].manifest);
    store->n = 0;
}

const struct image_stored *image_store_find(const struct image_store *store, const char *name)
{
    for (unsigned i = 0; i < store->n; i++)
        if (strcmp(store->list[i].name, name) == 0)
            return &store->list[i];
    return NULL;
}

int image_store_hold(const struct cli *cli, struct err *err)
{
    char path[PATH_MAX];

    strcpy(path, cli->images_dir);
    int r = fd_make_folders(path, 0755, 0755);
    if (r < 0)
        return err_set_errno(err, -r, "cannot make the folder of images %s", path);
    _cleanup_fd_ int fd =
        open(cli_join(cli->images_dir, ".lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", path);
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR || cli_interrupted())
            return err_set_errno(err, errno, "cannot lock %s", path);
    }
    return fd_steal(&fd);
}

int image_store_remove(const struct cli *cli, const char *name, struct err *err)
{
    size_t n = 0;

    while (image_parts[n])
        n++;
    while (n-- > 0) {
        char path[PATH_MAX];

        if (unlink(image_path(cli->images_dir, name, image_parts[n], path)) < 0 &&
            errno != ENOENT)
            return err_set_errno(err, errno, "cannot remove %s", path);
    }
    return 0;
}
