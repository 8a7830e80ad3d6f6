/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/artifacts_read.h"

#include "base/fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#define BLOCK 65536u

static int damaged(struct archive *a, struct err *err)
{
    return err_set(err, EIO, "the stored files are damaged: %s", archive_error_string(a));
}

static int copy(struct archive *a, uint64_t max_bytes, int out_fd, uint64_t *ret_bytes,
                struct err *err)
{
    char block[BLOCK];
    uint64_t bytes = 0;

    for (;;) {
        la_ssize_t n = archive_read_data(a, block, sizeof(block));
        int r;

        if (n < 0)
            return damaged(a, err);
        if (n == 0)
            break;
        bytes += (uint64_t)n;
        if (bytes > max_bytes)
            return err_set(err, EFBIG, "the file is over %llu bytes",
                           (unsigned long long)max_bytes);
        r = fd_write_full(out_fd, block, (size_t)n);
        if (r < 0)
            return err_set_errno(err, -r, "cannot keep the file");
    }
    *ret_bytes = bytes;
    return 0;
}

static int find(struct archive *a, const char *path, struct err *err)
{
    struct archive_entry *entry;
    int status;

    while ((status = archive_read_next_header(a, &entry)) == ARCHIVE_OK ||
           status == ARCHIVE_WARN) {
        const char *name = archive_entry_pathname_utf8(entry);

        if (name && strcmp(name, path) == 0 && archive_entry_filetype(entry) == AE_IFREG)
            return 0;
    }
    return status == ARCHIVE_EOF ? -ENOENT : damaged(a, err);
}

int artifacts_read_file(int in_fd, const char *path, uint64_t max_bytes, int out_fd,
                        uint64_t *ret_bytes, struct err *err)
{
    struct archive *a = archive_read_new();
    int r;

    if (!a || archive_read_support_format_tar(a) < ARCHIVE_WARN ||
        archive_read_support_filter_gzip(a) < ARCHIVE_WARN)
        r = err_set(err, ENOMEM, "out of memory");
    else if (archive_read_open_fd(a, in_fd, BLOCK) != ARCHIVE_OK)
        r = damaged(a, err);
    else
        r = find(a, path, err);
    if (r == 0)
        r = copy(a, max_bytes, out_fd, ret_bytes, err);
    (void)archive_read_free(a);
    return r;
}
