/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/artifacts_read.h"

#include "base/fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A reader may wait for a slow client: with what unpacks it, it takes some 130 KiB. */
#define BLOCK 16384u

struct artifact_reader {
    struct archive *archive;
    int fd;
};

static int damaged(struct archive *a, struct err *err)
{
    return err_set(err, EIO, "the stored files are damaged: %s", archive_error_string(a));
}

/* As artifacts.h wrote it, in UTF-8: without a locale of that libarchive has it as it came. */
static const char *name_of(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname_utf8(entry);

    return name ? name : archive_entry_pathname(entry);
}

/* Walks from where it is. As of artifact_each. */
static int walk(struct archive *a, artifact_visit *visit, void *ctx, struct err *err)
{
    struct archive_entry *entry;
    int status = ARCHIVE_OK, r = 0;

    while (r == 0 && ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
                      status == ARCHIVE_WARN)) {
        const char *name = name_of(entry);

        r = name ? visit(ctx, name, (uint64_t)archive_entry_size(entry)) : 0;
    }
    return r != 0 || status == ARCHIVE_EOF ? r : damaged(a, err);
}

struct wanted {
    const char *path;
    uint64_t bytes;
};

static int is_wanted(void *ctx, const char *path, uint64_t bytes)
{
    struct wanted *wanted = ctx;

    wanted->bytes = bytes;
    return strcmp(path, wanted->path) == 0;
}

static int find(struct archive *a, const char *path, uint64_t *ret_bytes, struct err *err)
{
    struct wanted wanted = {.path = path};
    int r = walk(a, is_wanted, &wanted, err);

    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    *ret_bytes = wanted.bytes;
    return 0;
}

static int start(struct artifact_reader *reader, struct err *err)
{
    struct archive *a = reader->archive = archive_read_new();

    if (!a || archive_read_support_format_tar(a) < ARCHIVE_WARN ||
        archive_read_support_filter_gzip(a) < ARCHIVE_WARN)
        return err_no_memory(err);
    return archive_read_open_fd(a, reader->fd, BLOCK) == ARCHIVE_OK ? 0 : damaged(a, err);
}

/* fd is taken over. */
static int open_reader(int fd, struct artifact_reader **ret, struct err *err)
{
    struct artifact_reader *reader = calloc(1, sizeof(*reader));
    int r;

    if (!reader) {
        fd_close(&fd);
        return err_no_memory(err);
    }
    reader->fd = fd;
    r = start(reader, err);
    if (r < 0)
        artifact_reader_close(reader);
    else
        *ret = reader;
    return r;
}

int artifact_each(int fd, artifact_visit *visit, void *ctx, struct err *err)
{
    struct artifact_reader *reader = NULL;
    int r = open_reader(fd, &reader, err);

    if (r < 0)
        return r;
    r = walk(reader->archive, visit, ctx, err);
    artifact_reader_close(reader);
    return r;
}

int artifact_reader_open(int fd, const char *path, struct artifact_reader **ret,
                         uint64_t *ret_bytes, struct err *err)
{
    struct artifact_reader *reader = NULL;
    int r = open_reader(fd, &reader, err);

    if (r < 0)
        return r;
    r = find(reader->archive, path, ret_bytes, err);
    if (r < 0)
        artifact_reader_close(reader);
    else
        *ret = reader;
    return r;
}

/* Where an entry lies in a tree: its headers, its content and what fills the last block. */
struct span {
    uint64_t begin, end, content;
};

static int find_span(int fd, const char *path, struct span *ret, struct err *err)
{
    struct artifact_reader *reader = NULL;
    struct archive_entry *next;
    int r = artifact_reader_open(fd, path, &reader, &ret->content, err), status;

    if (r < 0)
        return r;
    ret->begin = (uint64_t)archive_read_header_position(reader->archive);
    status = archive_read_next_header(reader->archive, &next);
    ret->end = (uint64_t)archive_read_header_position(reader->archive);
    if (status < ARCHIVE_WARN || ret->end <= ret->begin)
        r = damaged(reader->archive, err);
    artifact_reader_close(reader);
    return r;
}

static int copy(int in_fd, uint64_t from, uint64_t to, int out_fd, struct err *err)
{
    char block[BLOCK];

    while (from < to) {
        size_t want = to - from < BLOCK ? (size_t)(to - from) : BLOCK;
        ssize_t n = fd_pread_full(in_fd, block, want, from);
        int r = n < 0 ? (int)n : (size_t)n < want ? -EIO : fd_write_full(out_fd, block, want);

        if (r < 0)
            return err_set_errno(err, -r, "cannot copy the stored files");
        from += want;
    }
    return 0;
}

int artifact_cut(int in_fd, const char *path, int out_fd, uint64_t *ret_bytes, struct err *err)
{
    _cleanup_fd_ int fd = fcntl(in_fd, F_DUPFD_CLOEXEC, 0);
    struct span span;
    struct stat st;
    int r;

    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read the stored files");
    r = find_span(fd_steal(&fd), path, &span, err);
    if (r < 0)
        return r;
    r = copy(in_fd, 0, span.begin, out_fd, err);
    if (r < 0)
        return r;
    *ret_bytes = span.content;
    return copy(in_fd, span.end, (uint64_t)st.st_size, out_fd, err);
}

ssize_t artifact_reader_read(struct artifact_reader *reader, void *data, size_t size)
{
    la_ssize_t n = archive_read_data(reader->archive, data, size);

    return n < 0 ? -EIO : (ssize_t)n;
}

void artifact_reader_close(struct artifact_reader *reader)
{
    if (!reader)
        return;
    (void)archive_read_free(reader->archive);
    fd_close(&reader->fd);
    free(reader);
}
