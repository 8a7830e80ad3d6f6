/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 65536u
/* 1 January 1980: the first day a zip knows, wherever it is read. */
#define FIRST_DAY 315619200

static int copy_content(struct archive *in, struct archive *out, struct err *err)
{
    char block[BLOCK];

    for (;;) {
        la_ssize_t n = archive_read_data(in, block, sizeof(block));

        if (n == 0)
            return 0;
        if (n < 0)
            return err_set(err, EIO, "cannot read the skill: %s", archive_error_string(in));
        if (archive_write_data(out, block, (size_t)n) != n)
            return err_set(err, EIO, "cannot write the zip: %s", archive_error_string(out));
    }
}

static int copy_entries(struct archive *in, const char *folder, struct archive *out,
                        struct err *err)
{
    struct archive_entry *entry;
    int status, r = 0;

    while (r == 0 && (status = archive_read_next_header(in, &entry)) != ARCHIVE_EOF) {
        char *path = NULL;

        if (status < ARCHIVE_WARN)
            return err_set(err, EIO, "cannot read the skill: %s", archive_error_string(in));
        if (asprintf(&path, "%s/%s", folder, archive_entry_pathname(entry)) < 0)
            return err_no_memory(err);
        archive_entry_set_pathname(entry, path);
        free(path);
        archive_entry_set_mtime(entry, FIRST_DAY, 0);
        if (archive_write_header(out, entry) < ARCHIVE_WARN)
            r = err_set(err, EIO, "cannot write the zip: %s", archive_error_string(out));
        else
            r = copy_content(in, out, err);
    }
    return r;
}

int zip_write(int tar_fd, const char *folder, int zip_fd, struct err *err)
{
    struct archive *in = archive_read_new(), *out = archive_write_new();
    int r;

    if (!in || !out || archive_read_support_format_tar(in) < ARCHIVE_WARN ||
        archive_write_set_format_zip(out) < ARCHIVE_WARN)
        r = err_no_memory(err);
    else if (archive_read_open_fd(in, tar_fd, BLOCK) != ARCHIVE_OK ||
             archive_write_open_fd(out, zip_fd) != ARCHIVE_OK)
        r = err_set(err, EIO, "cannot begin the zip");
    else
        r = copy_entries(in, folder, out, err);
    if (r == 0 && archive_write_close(out) != ARCHIVE_OK)
        r = err_set(err, EIO, "cannot write the zip: %s", archive_error_string(out));
    (void)archive_read_free(in);
    (void)archive_write_free(out);
    return r;
}
