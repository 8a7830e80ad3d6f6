/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/image_store.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL      "python"
#define SUFFIX     ".erofs"
#define ORIGIN_MAX 4096

const char *const image_parts[] = {".modules", ".packages", ".manifest", ".origin",
                                   ".sha256",  SUFFIX,      NULL};

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

static void read_origin(struct image_stored *image)
{
    char path[PATH_MAX], name[IMAGE_NAME_SIZE + 16], text[ORIGIN_MAX];

    (void)snprintf(name, sizeof(name), "%s.origin", image->name);
    if (fd_read_text(cli_join(image->folder, name, path), text, sizeof(text)) < 0)
        return;
    take_line(text, "recipe", image->recipe, sizeof(image->recipe));
    take_line(text, "archive", image->archive, sizeof(image->archive));
    take_line(text, "title", image->title, sizeof(image->title));
    take_line(text, "digest", image->digest, sizeof(image->digest));
}

static int add(struct image_store *store, const char *folder, bool is_shipped, const char *file,
               struct err *err)
{
    struct image_stored *image = &store->list[store->n];
    const size_t n = strlen(file) - strlen(SUFFIX);
    char path[PATH_MAX], name[IMAGE_NAME_SIZE];
    struct err ignored = {0};
    struct stat st;

    (void)snprintf(name, sizeof(name), "%.*s", (int)n, file);
    if (stat(cli_join(folder, file, path), &st) < 0 || image_store_find(store, name))
        return 0;
    if (store->n == IMAGE_STORE_MAX)
        return err_set(err, E2BIG, "there are more than %u images", IMAGE_STORE_MAX);
    store->n++;
    *image = (struct image_stored){
        .folder = folder, .is_shipped = is_shipped, .bytes = (uint64_t)st.st_size};
    strcpy(image->name, name);
    read_origin(image);
    return image_manifest_read(folder, name, &image->manifest, &ignored) == -ENOMEM
               ? err_no_memory(err)
               : 0;
}

static int is_image(const struct dirent *entry)
{
    const size_t n = image_name_length(entry->d_name);

    return n > 0 && n < IMAGE_NAME_SIZE && strcmp(entry->d_name + n, SUFFIX) == 0;
}

static int read_folder(struct image_store *store, const char *folder, bool is_shipped,
                       struct err *err)
{
    struct dirent **found = NULL;
    int r = 0, n = scandir(folder, &found, is_image, alphasort);

    for (int i = 0; i < n && r == 0; i++)
        r = add(store, folder, is_shipped, found[i]->d_name, err);
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    return r;
}

int image_store_read(const struct cli *cli, struct image_store *ret, struct err *err)
{
    int r;

    ret->n = 0;
    r = add(ret, cli->share_dir, true, USUAL SUFFIX, err);
    if (r < 0)
        return r;
    r = read_folder(ret, cli->share_dir, true, err);
    return r < 0 ? r : read_folder(ret, cli->images_dir, false, err);
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
        char file[IMAGE_NAME_SIZE + 16], path[PATH_MAX];

        (void)snprintf(file, sizeof(file), "%s%s", name, image_parts[n]);
        if (unlink(cli_join(cli->images_dir, file, path)) < 0 && errno != ENOENT)
            return err_set_errno(err, errno, "cannot remove %s", path);
    }
    return 0;
}
