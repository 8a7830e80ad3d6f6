/* SPDX-License-Identifier: Apache-2.0 */
/* A guest root file system as a folder. */
#include "images/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "images/place.h"

CLEANUP_WITH(struct archive *, archive_free)

static void cleanup_closedir(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

#define COPY_SIZE (64u * 1024u)

/* A data.tar inside the ar container: the inner reader pulls from the outer one. */
struct member {
    struct archive *outer;
    char data[COPY_SIZE];
};

static la_ssize_t member_read(struct archive *inner, void *context, const void **ret_data)
{
    struct member *member = context;
    la_ssize_t n = archive_read_data(member->outer, member->data, sizeof(member->data));
    if (n < 0)
        archive_set_error(inner, EIO, "%s", archive_error_string(member->outer));
    *ret_data = member->data;
    return n;
}

static int archive_failed(struct err *err, struct archive *a, const char *what)
{
    const char *text = archive_error_string(a);
    return err_set(err, EIO, "%s: %s", what, text ? text : "unknown error");
}

/*
 * Where a packaged path ("./bin/ls") lies in the image ("usr/bin/ls"), malloc'd, or NULL
 * without memory. "" is the root itself.
 */
static char *image_path(const char *packaged)
{
    static const char *const MERGED[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
    while (packaged[0] == '.' && packaged[1] == '/')
        packaged += 2;
    while (packaged[0] == '/')
        packaged++;
    size_t first = strcspn(packaged, "/");
    bool merged = false;
    for (size_t i = 0; i < sizeof(MERGED) / sizeof(MERGED[0]); i++)
        if (strlen(MERGED[i]) == first && !strncmp(packaged, MERGED[i], first))
            merged = true;

    size_t len = strlen(packaged);
    char *path = malloc(len + sizeof("usr/"));
    if (!path)
        return NULL;
    strcpy(path, merged ? "usr/" : "");
    strcat(path, packaged);
    for (len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    return path;
}

static int copy_data(struct archive *from, struct archive *to, struct err *err)
{
    const void *data;
    size_t size;
    la_int64_t offset;
    for (;;) {
        const int status = archive_read_data_block(from, &data, &size, &offset);

        if (status == ARCHIVE_EOF)
            return 0;
        if (status < ARCHIVE_WARN)
            return archive_failed(err, from, "reading");
        if (archive_write_data_block(to, data, size, offset) < ARCHIVE_WARN)
            return archive_failed(err, to, "writing");
    }
}

/* An entry that is wanted, under the path that it has in the image. */
static int unpack_wanted(struct archive *from, struct archive_entry *entry,
                         struct archive *disk, const char *path, struct err *err)
{
    const char *target = archive_entry_hardlink(entry);
    int r;

    archive_entry_set_pathname(entry, path);
    if (target) {
        _cleanup_free_ char *mapped = image_path(target);

        archive_entry_set_hardlink(entry, mapped);
    }
    archive_entry_set_perm(entry, archive_entry_perm(entry) & 01777);
    if (archive_write_header(disk, entry) < ARCHIVE_WARN)
        return archive_failed(err, disk, path);
    r = archive_entry_size(entry) > 0 ? copy_data(from, disk, err) : 0;
    if (r < 0)
        return r;
    return archive_write_finish_entry(disk) < ARCHIVE_WARN ? archive_failed(err, disk, path)
                                                           : 0;
}

static int unpack_entry(const struct recipe *recipe, struct archive *from,
                        struct archive_entry *entry, struct archive *disk, struct err *err)
{
    _cleanup_free_ char *path = image_path(archive_entry_pathname(entry));

    if (!path)
        return err_set(err, ENOMEM, "out of memory");
    return *path && recipe_wants(recipe, path) ? unpack_wanted(from, entry, disk, path, err)
                                               : 0;
}

static int unpack_entries(const struct recipe *recipe, struct archive *from,
                          struct archive *disk, struct err *err)
{
    for (;;) {
        struct archive_entry *entry;
        const int next = archive_read_next_header(from, &entry);
        int r;

        if (next == ARCHIVE_EOF)
            return 0;
        if (next < ARCHIVE_WARN)
            return archive_failed(err, from, "data.tar");
        r = unpack_entry(recipe, from, entry, disk, err);
        if (r < 0)
            return r;
    }
}

static int unpack_data(const struct recipe *recipe, struct archive *outer, struct err *err)
{
    _cleanup_free_ struct member *member = malloc(sizeof(*member));
    _cleanup_(archive_free) struct archive *inner = archive_read_new();
    _cleanup_(archive_free) struct archive *disk = archive_write_disk_new();
    int r;

    if (!member || !inner || !disk)
        return err_set(err, ENOMEM, "out of memory");
    member->outer = outer;
    archive_read_support_filter_all(inner);
    archive_read_support_format_tar(inner);
    archive_write_disk_set_options(
        disk, ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_UNLINK | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                  ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
    if (archive_read_open(inner, member, NULL, member_read, NULL) != ARCHIVE_OK)
        return archive_failed(err, inner, "data.tar");
    r = unpack_entries(recipe, inner, disk, err);
    if (r < 0)
        return r;
    return archive_write_close(disk) < ARCHIVE_WARN ? archive_failed(err, disk, "closing") : 0;
}

static int unpack_outer(const struct recipe *recipe, struct archive *outer, struct err *err)
{
    for (;;) {
        struct archive_entry *entry;
        const int next = archive_read_next_header(outer, &entry);

        if (next == ARCHIVE_EOF)
            return err_set(err, EINVAL, "no data.tar in it");
        if (next < ARCHIVE_WARN)
            return archive_failed(err, outer, "not a package");
        if (!strncmp(archive_entry_pathname(entry), "data.tar", 8))
            return unpack_data(recipe, outer, err);
    }
}

int tree_unpack_deb(const struct recipe *recipe, int deb_fd, const char *deb_name,
                    struct err *err)
{
    _cleanup_(archive_free) struct archive *outer = archive_read_new();
    int r;

    if (!outer)
        return err_set(err, ENOMEM, "out of memory");
    archive_read_support_format_ar(outer);
    r = archive_read_open_fd(outer, deb_fd, COPY_SIZE) == ARCHIVE_OK
            ? unpack_outer(recipe, outer, err)
            : archive_failed(err, outer, "not a package");
    if (r < 0)
        err_prefix(err, "%s", deb_name);
    return r;
}

static int find(const char *path, struct place *ret, struct err *err)
{
    _cleanup_fd_ int root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return root < 0 ? err_set_errno(err, errno, "%s", path)
                    : place_find(root, path, true, ret, err);
}

static int open_new(const char *path, mode_t mode, struct err *err)
{
    _cleanup_place_ struct place place = PLACE_NONE;
    int r = find(path, &place, err);

    return r < 0 ? r : place_file(&place, mode, err);
}

static int add_text(const struct recipe_item *item, struct err *err)
{
    _cleanup_fd_ int fd = open_new(item->path, item->mode, err);
    int r;

    if (fd < 0)
        return fd;
    r = fd_write_full(fd, item->value, strlen(item->value));
    return r < 0 ? err_set_errno(err, -r, "%s", item->path) : 0;
}

static int add_directory(const struct recipe_item *item, struct err *err)
{
    _cleanup_place_ struct place place = PLACE_NONE;
    int r = find(item->path, &place, err);

    return r < 0 ? r : place_folder(&place, item->mode, err);
}

static int add_link(const struct recipe_item *item, struct err *err)
{
    _cleanup_place_ struct place place = PLACE_NONE;
    int r = find(item->path, &place, err);

    return r < 0 ? r : place_link(&place, item->value, err);
}

int tree_add_recipe(const struct recipe *recipe, struct err *err)
{
    const struct {
        const struct recipe_list *list;
        int (*add)(const struct recipe_item *item, struct err *err);
    } kinds[] = {{&recipe->directories, add_directory},
                 {&recipe->links, add_link},
                 {&recipe->files, add_text}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (size_t j = 0; j < kinds[i].list->len; j++) {
            int r = kinds[i].add(&kinds[i].list->items[j], err);

            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* What is left of source_fd, at the end of fd. */
static int copy_file(const char *path, int fd, int source_fd, struct err *err)
{
    char data[COPY_SIZE];

    for (;;) {
        ssize_t n = fd_read_full(source_fd, data, sizeof(data));
        int r;

        if (n < 0)
            return err_set_errno(err, (int)-n, "reading the source of %s", path);
        if (n == 0)
            return 0;
        r = fd_write_full(fd, data, (size_t)n);
        if (r < 0)
            return err_set_errno(err, -r, "%s", path);
    }
}

static int add_file(const char *path, int source_fd, mode_t mode, struct err *err)
{
    _cleanup_fd_ int fd = open_new(path, mode, err);

    return fd < 0 ? fd : copy_file(path, fd, source_fd, err);
}

static int add_folder_entry(const char *folder, int folder_fd, const char *name, mode_t mode,
                            struct err *err)
{
    _cleanup_fd_ int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_free_ char *path = NULL;
    struct stat st;

    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
        return err_set(err, ENOMEM, "out of memory");
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "the source of %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "the source of %s is not a regular file", path);
    return add_file(path, fd, mode, err);
}

static int add_folder(const char *path, int source_fd, mode_t mode, struct err *err)
{
    _cleanup_(closedir) DIR *dir = fd_opendir(source_fd);
    const struct dirent *entry;

    if (!dir)
        return err_set_errno(err, errno, "the source of %s", path);
    while ((entry = readdir(dir))) {
        int r = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                        strcmp(entry->d_name, "__pycache__") == 0
                    ? 0
                    : add_folder_entry(path, source_fd, entry->d_name, mode, err);

        if (r < 0)
            return r;
    }
    return 0;
}

int tree_add_input(const char *path, int source_fd, mode_t mode, struct err *err)
{
    struct stat st;

    if (fstat(source_fd, &st) < 0)
        return err_set_errno(err, errno, "the source of %s", path);
    return S_ISDIR(st.st_mode) ? add_folder(path, source_fd, mode, err)
                               : add_file(path, source_fd, mode, err);
}
