/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/artifacts_read.h"

#include "base/fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Walks from where it is. As of artifact_each. */
static int walk(struct archive *a, artifact_visit *visit, void *ctx, struct err *err)
{
    struct archive_entry *entry;
    int status = ARCHIVE_OK, r = 0;

    while (r == 0 && ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
                      status == ARCHIVE_WARN)) {
        const char *name = archive_entry_pathname_utf8(entry);

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
