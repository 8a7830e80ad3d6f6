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

#include "base/fd.h"

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
        int rc = archive_read_data_block(from, &data, &size, &offset);
        if (rc == ARCHIVE_EOF)
            return 0;
        if (rc < ARCHIVE_WARN)
            return archive_failed(err, from, "reading");
        if (archive_write_data_block(to, data, size, offset) < ARCHIVE_WARN)
            return archive_failed(err, to, "writing");
    }
}

static int unpack_entry(const struct recipe *recipe, struct archive *from,
                        struct archive_entry *entry, struct archive *disk, struct err *err)
{
    char *path = image_path(archive_entry_pathname(entry));
    if (!path)
        return err_set(err, ENOMEM, "out of memory");
    int rc = 0;
    if (*path && recipe_wants(recipe, path)) {
        archive_entry_set_pathname(entry, path);
        const char *target = archive_entry_hardlink(entry);
        if (target) {
            char *mapped = image_path(target);
            archive_entry_set_hardlink(entry, mapped);
            free(mapped);
        }
        archive_entry_set_perm(entry, archive_entry_perm(entry) & 01777);
        if (archive_write_header(disk, entry) < ARCHIVE_WARN)
            rc = archive_failed(err, disk, path);
        else if (archive_entry_size(entry) > 0)
            rc = copy_data(from, disk, err);
        if (rc == 0 && archive_write_finish_entry(disk) < ARCHIVE_WARN)
            rc = archive_failed(err, disk, path);
    }
    free(path);
    return rc;
}

static int unpack_data(const struct recipe *recipe, struct archive *outer, struct err *err)
{
    struct member *member = malloc(sizeof(*member));
    struct archive *inner = archive_read_new();
    struct archive *disk = archive_write_disk_new();
    int rc = 0;
    if (!member || !inner || !disk) {
        rc = err_set(err, ENOMEM, "out of memory");
        goto out;
    }
    member->outer = outer;
    archive_read_support_filter_all(inner);
    archive_read_support_format_tar(inner);
    archive_write_disk_set_options(
        disk, ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_UNLINK | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                  ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
    if (archive_read_open(inner, member, NULL, member_read, NULL) != ARCHIVE_OK) {
        rc = archive_failed(err, inner, "data.tar");
        goto out;
    }
    while (rc == 0) {
        struct archive_entry *entry;
        int next = archive_read_next_header(inner, &entry);
        if (next == ARCHIVE_EOF)
            break;
        if (next < ARCHIVE_WARN)
            rc = archive_failed(err, inner, "data.tar");
        else
            rc = unpack_entry(recipe, inner, entry, disk, err);
    }
    if (rc == 0 && archive_write_close(disk) < ARCHIVE_WARN)
        rc = archive_failed(err, disk, "closing");
out:
    archive_write_free(disk);
    archive_read_free(inner);
    free(member);
    return rc;
}

int tree_unpack_deb(const struct recipe *recipe, int deb_fd, const char *deb_name,
                    struct err *err)
{
    struct archive *outer = archive_read_new();
    if (!outer)
        return err_set(err, ENOMEM, "out of memory");
    archive_read_support_format_ar(outer);
    int rc = -ENOENT;
    if (archive_read_open_fd(outer, deb_fd, COPY_SIZE) != ARCHIVE_OK)
        rc = archive_failed(err, outer, deb_name);
    while (rc == -ENOENT) {
        struct archive_entry *entry;
        int next = archive_read_next_header(outer, &entry);
        if (next == ARCHIVE_EOF)
            rc = err_set(err, EINVAL, "%s: no data.tar in it", deb_name);
        else if (next < ARCHIVE_WARN)
            rc = archive_failed(err, outer, deb_name);
        else if (!strncmp(archive_entry_pathname(entry), "data.tar", 8))
            rc = unpack_data(recipe, outer, err);
    }
    if (rc < 0)
        err_prefix(err, "%s", deb_name);
    archive_read_free(outer);
    return rc;
}

/* Makes the folders above path. */
static int make_parents(const char *path, struct err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return err_set(err, ENOMEM, "out of memory");
    int rc = 0;
    for (char *slash = strchr(copy, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            rc = err_set_errno(err, errno, "%s", copy);
        *slash = '/';
    }
    free(copy);
    return rc;
}

/* Makes the folders above path and removes what is at path, unless it is a folder. */
static int make_room(const char *path, struct err *err)
{
    int rc = make_parents(path, err);
    if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
        rc = err_set_errno(err, errno, "%s", path);
    return rc;
}

static int open_new(const char *path, mode_t mode, struct err *err)
{
    int rc = make_room(path, err);
    if (rc < 0)
        return rc;
    _cleanup_fd_ int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    /* fchmod: the mode must not depend on the umask of whoever builds. */
    if (fd < 0 || fchmod(fd, mode) < 0)
        return err_set_errno(err, errno, "%s", path);
    return fd_steal(&fd);
}

static int add_text(const struct recipe_item *item, struct err *err)
{
    _cleanup_fd_ int fd = open_new(item->path, item->mode, err);
    if (fd < 0)
        return fd;
    int rc = fd_write_full(fd, item->value, strlen(item->value));
    return rc < 0 ? err_set_errno(err, -rc, "%s", item->path) : 0;
}

static int add_directory(const struct recipe_item *item, struct err *err)
{
    int rc = make_parents(item->path, err);
    if (rc < 0)
        return rc;
    if ((mkdir(item->path, 0755) < 0 && errno != EEXIST) || chmod(item->path, item->mode) < 0)
        return err_set_errno(err, errno, "%s", item->path);
    return 0;
}

static int add_link(const struct recipe_item *item, struct err *err)
{
    int rc = make_room(item->path, err);
    if (rc == 0 && symlink(item->value, item->path) < 0)
        rc = err_set_errno(err, errno, "%s", item->path);
    return rc;
}

int tree_add_recipe(const struct recipe *recipe, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < recipe->directories.len && rc == 0; i++)
        rc = add_directory(&recipe->directories.items[i], err);
    for (size_t i = 0; i < recipe->links.len && rc == 0; i++)
        rc = add_link(&recipe->links.items[i], err);
    for (size_t i = 0; i < recipe->files.len && rc == 0; i++)
        rc = add_text(&recipe->files.items[i], err);
    return rc;
}

static int add_file(const char *path, int source_fd, mode_t mode, struct err *err)
{
    char data[COPY_SIZE];
    _cleanup_fd_ int fd = open_new(path, mode, err);
    if (fd < 0)
        return fd;
    for (;;) {
        ssize_t n = fd_read_full(source_fd, data, sizeof(data));
        if (n < 0)
            return err_set_errno(err, (int)-n, "reading the source of %s", path);
        if (n == 0)
            return 0;
        int rc = fd_write_full(fd, data, (size_t)n);
        if (rc < 0)
            return err_set_errno(err, -rc, "%s", path);
    }
}

static int add_folder_entry(const char *folder, int folder_fd, const char *name, mode_t mode,
                            struct err *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return err_set(err, ENOMEM, "out of memory");
    _cleanup_fd_ int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    int rc;
    if (fd < 0 || fstat(fd, &st) < 0)
        rc = err_set_errno(err, errno, "the source of %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, EINVAL, "the source of %s is not a regular file", path);
    else
        rc = add_file(path, fd, mode, err);
    free(path);
    return rc;
}

int tree_add_input(const char *path, int source_fd, mode_t mode, struct err *err)
{
    struct stat st;
    if (fstat(source_fd, &st) < 0)
        return err_set_errno(err, errno, "the source of %s", path);
    if (!S_ISDIR(st.st_mode))
        return add_file(path, source_fd, mode, err);

    int own_fd = fcntl(source_fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);
    if (!dir) {
        int rc = err_set_errno(err, errno, "the source of %s", path);
        fd_close(&own_fd);
        return rc;
    }
    const struct dirent *entry;
    int rc = 0;
    rewinddir(dir);
    while (rc == 0 && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "__pycache__") != 0)
            rc = add_folder_entry(path, source_fd, entry->d_name, mode, err);
    closedir(dir);
    return rc;
}
