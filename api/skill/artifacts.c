/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/artifacts.h"

#include "api/skill/file_names.h"
#include "api/skill/name_tree.h"
#include "api/skill/tar.h"
#include "base/fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WARNINGS_MAX 20u
#define MTIME_MAX    (1ull << 33) /* what a ustar time can hold */
/* Of a file that was written out; the next one writes over it. */
#define SPOOL_KEPT_MAX (1u << 20)

struct artifacts {
    struct artifacts_limits limits;
    struct tar_reader *reader;
    struct archive *out;
    int spool_fd; /* begins with the current file: written out only once it is whole */
    bool keeping; /* the current entry is a file that is kept */
    bool executable;
    bool is_folder;
    uint64_t current_size;
    uint64_t current_mtime;
    char current[NAMES_PATH_MAX + 1];
    struct err *err; /* of the call in progress */
    struct artifacts_kept kept;
    uint64_t list_bytes; /* that the names of all would take */
    uint64_t bytes;
    struct name_tree names;
    size_t unsaid; /* warnings over WARNINGS_MAX */
};

static int leave_out(struct artifacts *a, const char *name, const char *reason)
{
    if (a->kept.warnings.len >= WARNINGS_MAX - 1) {
        a->unsaid++;
        return 0;
    }
    return skill_strings_add(&a->kept.warnings, "\"%s\" was left out: %s",
                             names_shown(name).text, reason);
}

static int leave_out_over(struct artifacts *a, const char *name, const char *reason)
{
    a->kept.truncated = true;
    return leave_out(a, name, reason);
}

static int begin_file(struct artifacts *a, const struct tar_header *header)
{
    int result;

    if (a->kept.files >= a->limits.files)
        return leave_out_over(a, header->path, "there are too many files");
    if (header->size > a->limits.file_bytes || header->size > a->limits.bytes - a->bytes)
        return leave_out_over(a, header->path, "the files are too large");
    result = name_tree_add_file(&a->names, a->current);
    if (result == -EEXIST)
        return leave_out(a, header->path, "its name is taken");
    if (result == -ENOSPC)
        return leave_out_over(a, header->path, "the names are too many or too long");
    if (result < 0)
        return result;
    a->keeping = true;
    a->current_size = 0;
    a->current_mtime = header->mtime_s < MTIME_MAX ? header->mtime_s : 0;
    a->executable = (header->mode & 0111) != 0;
    a->is_folder = header->type == TAR_DIR;
    a->bytes += header->size;
    return 0;
}

static int on_begin(void *user, const struct tar_header *header)
{
    struct artifacts *a = user;
    struct err rule = {0};

    a->keeping = false;
    if (header->type == TAR_DIR && !a->limits.is_tree)
        return 0;
    if (names_clean(header->path, a->current, &rule) || !a->current[0])
        return leave_out(a, header->path, "its name is refused");
    if (header->type != TAR_FILE && header->type != TAR_DIR)
        return leave_out(a, header->path, "it is no regular file");
    return begin_file(a, header);
}

static int on_data(void *user, const uint8_t *data, size_t len)
{
    struct artifacts *a = user;

    if (!a->keeping)
        return 0;
    int result = fd_pwrite_full(a->spool_fd, data, len, a->current_size);
    if (result < 0)
        return err_set_errno(a->err, -result, "cannot spool an artifact");
    a->current_size += len;
    return 0;
}

static int write_failed(struct artifacts *a, struct err *err)
{
    int code = archive_errno(a->out);

    return err_set_errno(err, code > 0 ? code : EIO, "cannot write the artifacts");
}

static int write_out(struct artifacts *a)
{
    struct archive_entry *entry = archive_entry_new();
    char chunk[16384];
    int result = 0;

    if (!entry)
        return -ENOMEM;
    archive_entry_set_pathname(entry, a->current);
    archive_entry_set_filetype(entry, a->is_folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, a->executable || a->is_folder ? 0755 : 0644);
    archive_entry_set_size(entry, (la_int64_t)a->current_size);
    if (!a->limits.is_tree)
        archive_entry_set_mtime(entry, (time_t)a->current_mtime, 0);
    if (archive_write_header(a->out, entry) < ARCHIVE_WARN)
        result = write_failed(a, a->err);
    for (uint64_t at = 0; at < a->current_size && !result;) {
        uint64_t left = a->current_size - at;
        size_t want = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);
        ssize_t n = fd_pread_full(a->spool_fd, chunk, want, at);
        if (n <= 0)
            result = err_set_errno(a->err, n < 0 ? (int)-n : EIO, "cannot read an artifact");
        else if (archive_write_data(a->out, chunk, (size_t)n) != n)
            result = write_failed(a, a->err);
        at += n > 0 ? (uint64_t)n : 0;
    }
    archive_entry_free(entry);
    return result;
}

/* Lists the current file, unless the names before it fill the list. */
static int list_current(struct artifacts *a)
{
    struct artifact *list;

    a->list_bytes += strlen(a->current);
    if (a->list_bytes > a->limits.list_bytes)
        return 0;
    list = reallocarray(a->kept.list, a->kept.n + 1, sizeof(*list));
    if (!list)
        return -ENOMEM;
    a->kept.list = list;
    list[a->kept.n] = (struct artifact){strdup(a->current), a->current_size};
    return list[a->kept.n++].path ? 0 : -ENOMEM;
}

static int on_end(void *user)
{
    struct artifacts *a = user;

    if (!a->keeping)
        return 0;
    a->keeping = false;
    int result = write_out(a);
    if (result < 0)
        return result;
    /* It is in the archive now, and the disk may have both of a large one no longer. */
    if (a->current_size > SPOOL_KEPT_MAX && ftruncate(a->spool_fd, 0) < 0)
        return err_set_errno(a->err, errno, "cannot spool an artifact");
    a->kept.files++;
    a->kept.bytes += a->current_size;
    return list_current(a);
}

static const struct tar_ops tar_ops = {on_begin, on_data, on_end};

static int pack(struct archive *out)
{
    return archive_write_add_filter_gzip(out) == ARCHIVE_OK &&
                   archive_write_set_options(out, "gzip:compression-level=1,gzip:!timestamp") ==
                       ARCHIVE_OK
               ? 0
               : -ENOMEM;
}

struct artifacts *artifacts_create(int out_fd, int spool_fd,
                                   const struct artifacts_limits *limits, struct err *err)
{
    struct artifacts *a = calloc(1, sizeof(*a));

    if (!a) {
        fd_close(&spool_fd);
        goto no_memory;
    }
    a->limits = *limits;
    a->spool_fd = spool_fd;
    a->names = name_tree_init(limits->folders, limits->names_bytes);
    a->reader = tar_reader_create(&tar_ops, a);
    a->out = archive_write_new();
    if (!a->reader || !a->out)
        goto no_memory;
    if (archive_write_set_format_pax_restricted(a->out) != ARCHIVE_OK ||
        (!limits->is_tree && pack(a->out) < 0) ||
        archive_write_open_fd(a->out, out_fd) != ARCHIVE_OK)
        goto no_memory;
    return a;
no_memory:
    artifacts_destroy(a);
    err_set(err, ENOMEM, "out of memory for the artifacts");
    return NULL;
}

int artifacts_push(struct artifacts *a, const void *data, size_t len, struct err *err)
{
    locale_t before = uselocale(names_locale());

    a->err = err;
    int result = tar_reader_push(a->reader, data, len, err);
    a->err = NULL;
    uselocale(before);
    if (result == -ENOMEM)
        return err_set(err, ENOMEM, "out of memory for the artifacts");
    return result;
}

int artifacts_end(struct artifacts *a, struct err *err)
{
    int result = 0;

    if (!tar_reader_complete(a->reader)) {
        a->kept.truncated = true;
        result = a->keeping ? leave_out(a, a->current, "it was cut short")
                            : skill_strings_add(&a->kept.warnings, "the files were cut short");
    }
    if (!result && a->unsaid)
        result =
            skill_strings_add(&a->kept.warnings, "%zu more files were left out", a->unsaid);
    fd_close(&a->spool_fd);
    if (archive_write_close(a->out) != ARCHIVE_OK && !result)
        result = write_failed(a, err);
    return result;
}

const struct artifacts_kept *artifacts_kept(const struct artifacts *a)
{
    return &a->kept;
}

void artifacts_destroy(struct artifacts *a)
{
    if (!a)
        return;
    archive_write_free(a->out);
    tar_reader_destroy(a->reader);
    fd_close(&a->spool_fd);
    for (size_t i = 0; i < a->kept.n; i++)
        free(a->kept.list[i].path);
    free(a->kept.list);
    name_tree_finish(&a->names);
    skill_strings_finish(&a->kept.warnings);
    free(a);
}
