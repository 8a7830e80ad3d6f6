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

static int find(struct archive *a, const char *path, uint64_t *ret_bytes, struct err *err)
{
    struct archive_entry *entry;
    int status;

    while ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
           status == ARCHIVE_WARN) {
        const char *name = archive_entry_pathname_utf8(entry);

        if (!name || strcmp(name, path) != 0 || archive_entry_filetype(entry) != AE_IFREG)
            continue;
        *ret_bytes = (uint64_t)archive_entry_size(entry);
        return 0;
    }
    return status == ARCHIVE_EOF ? -ENOENT : damaged(a, err);
}

static int start(struct artifact_reader *reader, const char *path, uint64_t *ret_bytes,
                 struct err *err)
{
    struct archive *a = reader->archive = archive_read_new();

    if (!a || archive_read_support_format_tar(a) < ARCHIVE_WARN ||
        archive_read_support_filter_gzip(a) < ARCHIVE_WARN)
        return err_no_memory(err);
    if (archive_read_open_fd(a, reader->fd, BLOCK) != ARCHIVE_OK)
        return damaged(a, err);
    return find(a, path, ret_bytes, err);
}

int artifact_reader_open(int fd, const char *path, struct artifact_reader **ret,
                         uint64_t *ret_bytes, struct err *err)
{
    struct artifact_reader *reader = calloc(1, sizeof(*reader));
    int r;

    if (!reader) {
        fd_close(&fd);
        return err_no_memory(err);
    }
    reader->fd = fd;
    r = start(reader, path, ret_bytes, err);
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
