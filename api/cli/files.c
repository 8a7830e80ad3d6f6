/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/files.h"

#include "api/cli/remote.h"
#include "api/json/json_text.h"
#include "api/skill/file_names.h"
#include "base/fd.h"
#include "base/text.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, const char *name, struct buf *out, struct err *err)
{
    char chunk[65536];

    for (;;) {
        ssize_t n = fd_read_full(fd, chunk, sizeof(chunk));
        if (n < 0)
            return err_set_errno(err, (int)-n, "cannot read the input from %s", name);
        if (n == 0)
            return 0;
        int result = buf_append(out, chunk, (size_t)n);
        if (result == -E2BIG)
            return err_set(err, EFBIG, "the input is over %u MiB", FILES_INPUT_MAX >> 20);
        if (result < 0)
            return err_no_memory(err);
    }
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int files_read_input(const char *argument, struct buf *out, struct err *err)
{
    struct err why = {0};
    int result;

    if (strcmp(argument, "-") == 0) {
        result = read_all(STDIN_FILENO, "standard input", out, err);
    } else if (argument[0] == '@') {
        _cleanup_fd_ int fd = open(argument + 1, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return err_set_errno(err, errno, "cannot open the input file \"%s\"", argument + 1);
        result = read_all(fd, argument + 1, out, err);
    } else {
        result = buf_append(out, argument, strlen(argument));
        if (result < 0)
            result = err_set(err, EFBIG, "the input is over %u MiB", FILES_INPUT_MAX >> 20);
    }
    if (result < 0)
        return result;
    result = json_text_check((const char *)out->data, out->len, NULL, &why);
    if (result < 0 && argument[0] != '@' && is_file(argument))
        return err_set(
            err, EINVAL,
            "the input \"%s\" is no JSON, but a file has that name: give it as \"@%s\"",
            argument, argument);
    if (result < 0 && text_ends_with(argument, ".json") && argument[0] != '@')
        return err_set(
            err, EINVAL,
            "the input \"%.200s\" is no JSON, and no file has that name; one is given "
            "as \"@FILE\"",
            argument);
    return result < 0 ? err_set(err, -result, "the input: %s", why.message) : 0;
}

static int cannot_write(struct archive *out, const char *path, struct err *err)
{
    return err_set(err, EIO, "cannot write \"%s\": %s", path, archive_error_string(out));
}

static int damaged(struct archive *in, struct err *err)
{
    return err_set(err, EIO, "the artifacts are damaged: %s", archive_error_string(in));
}

static int copy_entry(struct archive *in, struct archive *out, struct archive_entry *entry,
                      const char *path, struct err *err)
{
    const int secure = ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                       ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS;
    const void *block;
    size_t len;
    la_int64_t offset;

    archive_write_disk_set_options(out, secure | ARCHIVE_EXTRACT_TIME);
    archive_entry_set_pathname(entry, path);
    if (archive_write_header(out, entry) < ARCHIVE_WARN)
        return cannot_write(out, path, err);
    for (;;) {
        int status = archive_read_data_block(in, &block, &len, &offset);
        if (status == ARCHIVE_EOF)
            break;
        if (status < ARCHIVE_WARN)
            return damaged(in, err);
        if (archive_write_data_block(out, block, len, offset) < ARCHIVE_WARN)
            return cannot_write(out, path, err);
    }
    if (archive_write_finish_entry(out) < ARCHIVE_WARN)
        return cannot_write(out, path, err);
    return 0;
}

static int extract_entries(struct archive *in, struct archive *out, const char *dir,
                           void (*on_file)(void *ctx, const char *path), void *ctx,
                           struct err *err)
{
    char path[NAMES_PATH_MAX + 1], full[PATH_MAX + NAMES_PATH_MAX + 2];

    for (;;) {
        struct archive_entry *entry;
        int status = archive_read_next_header(in, &entry);
        if (status == ARCHIVE_EOF)
            return 0;
        if (status < ARCHIVE_WARN)
            return damaged(in, err);
        const char *name = archive_entry_pathname(entry);
        int result = name ? names_clean(name, path, err)
                          : err_set(err, EINVAL, "an artifact has no name");
        if (result < 0)
            return result;
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) ||
            !*path)
            return err_set(err, EINVAL, "artifact \"%s\" is no regular file", path);
        result = copy_entry(in, out, entry, path, err);
        if (result < 0)
            return result;
        snprintf(full, sizeof(full), "%s/%s", dir, path);
        on_file(ctx, full);
    }
}

int files_make_dirs(const char *path, struct err *err)
{
    char part[PATH_MAX];
    int result = -ENAMETOOLONG;

    snprintf(part, sizeof(part), "%s", path);
    if (*path && strlen(path) < sizeof(part))
        result = fd_make_folders(part, 0777, 0777);
    return result < 0 ? err_set_errno(err, -result, "cannot make the folder \"%s\"", part) : 0;
}

/* Takes the folders of a path away again, down to its first len bytes. */
static void unmake(char *path, size_t len)
{
    char *slash;

    do {
        (void)rmdir(path);
        slash = strrchr(path + len, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
}

/*
 * Makes the rest of a path in a folder that is there, and takes it away again. All of it in one
 * of a name that nobody else has: another run may be making or using the same folders.
 */
static int try_folders(const char *there, const char *rest)
{
    char path[2 * PATH_MAX];
    size_t len;
    int r = 0;

    (void)snprintf(path, sizeof(path), "%s/.skillvm-XXXXXX", *there ? there : ".");
    if (!mkdtemp(path))
        return -errno;
    len = strlen(path);
    /* What leads out of there again is left to when it is made. */
    if (!strstr(rest, "..")) {
        (void)snprintf(path + len, sizeof(path) - len, "/%s", rest);
        r = fd_make_folders(path, 0777, 0777);
    }
    unmake(path, len);
    return r;
}

int files_check_dir(const char *path, struct err *err)
{
    char part[PATH_MAX];
    struct stat st;
    size_t len = strlen(path), end;
    int r;

    if (!*path || len >= sizeof(part))
        return err_set(err, EINVAL, "\"%.64s\" cannot be the name of a folder", path);
    strcpy(part, path);
    /* What is there already of the way. */
    while (stat(*part ? part : ".", &st) < 0) {
        if (errno != ENOENT)
            return err_set_errno(err, errno, "cannot make the folder \"%s\"", path);
        while (len > 0 && part[len - 1] != '/')
            len--;
        while (len > 1 && part[len - 1] == '/')
            len--;
        part[len] = '\0';
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ENOTDIR, "cannot put files in \"%s\": \"%s\" is no folder", path,
                       part);
    if (access(*part ? part : ".", W_OK | X_OK) < 0)
        return err_set_errno(err, errno, "cannot put files in \"%s\"", path);
    if (!path[len])
        return 0;
    /* What a file system refuses shows only when a folder is made. */
    r = try_folders(part, path + len);
    if (r < 0)
        return err_set_errno(err, -r, "cannot make the folder \"%s\"", path);
    end = len + strspn(path + len, "/");
    end += strcspn(path + end, "/");
    (void)snprintf(part, sizeof(part), "%.*s", (int)end, path);
    if (lstat(part, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(err, ENOENT, "cannot put files in \"%s\": \"%s\" is a link to nothing",
                       path, part);
    return 0;
}

int files_extract(int fd, const char *dir, void (*on_file)(void *ctx, const char *path),
                  void *ctx, struct err *err)
{
    int result = files_make_dirs(dir, err);
    _cleanup_fd_ int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (result < 0)
        return result;
    if (before < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_set_errno(err, errno, "cannot extract the artifacts");
    /* Relative names, so that libarchive's checks for links cover the whole way. */
    if (chdir(dir) < 0)
        return err_set_errno(err, errno, "cannot open the folder \"%s\"", dir);

    struct archive *in = archive_read_new(), *out = archive_write_disk_new();
    if (!in || !out || archive_read_support_format_tar(in) < ARCHIVE_WARN ||
        archive_read_support_filter_gzip(in) < ARCHIVE_WARN) {
        result = err_no_memory(err);
    } else if (archive_read_open_fd(in, fd, 65536) != ARCHIVE_OK) {
        result = damaged(in, err);
    } else {
        result = extract_entries(in, out, dir, on_file, ctx, err);
    }
    archive_read_free(in);
    archive_write_free(out);
    if (fchdir(before) < 0 && !result)
        result = err_set_errno(err, errno, "cannot go back to the working directory");
    return result;
}

int files_fetch(const struct cli *cli, const char *execution_id, const char *dir,
                void (*on_file)(void *ctx, const char *path), void *ctx, struct err *err)
{
    _cleanup_fd_ int fd = memfd_create("artifacts", MFD_CLOEXEC);
    struct skillvm_error error;

    if (fd < 0)
        return err_set_errno(err, errno, "cannot make an anonymous file");
    if (skillvm_download(cli->client, execution_id, NULL, fd, FILES_DOWNLOAD_MAX, &error) < 0)
        return remote_explain(cli, &error, err);
    return files_extract(fd, dir, on_file, ctx, err);
}
