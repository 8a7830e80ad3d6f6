/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the regular files below a directory, empty folders where they are wanted, and streams
 * them as a tar (ustar, pax records for what does not fit). The tree was made by the skill: it
 * must never follow a symbolic link, open anything but a regular file, leave the directory or
 * let the tree decide how much memory
 * is used.
 */
#ifndef SKILLVM_GUEST_TAR_WRITE_H
#define SKILLVM_GUEST_TAR_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tar_limits {
    uint64_t files_max;
    uint64_t bytes_max;      /* of file content */
    const char *const *skip; /* names in the top directory to leave out, NULL-terminated */
    bool folders;            /* one without a listed file in it is listed as such a file is */
};

struct tar_file {
    char *path; /* owned, relative to dir and the name in the stream */
    int dir;    /* borrowed */
    uint64_t size;
    int64_t mtime; /* seconds since the epoch */
    bool executable;
    bool is_folder; /* and nothing in it is listed */
};

struct tar_list {
    struct tar_file *files; /* owned, sorted by path bytes */
    size_t count;
    size_t cap;
    uint64_t bytes;
    bool truncated; /* a limit was reached, or a part could not be read */
};

/* Takes the next bytes of the stream. 0, or -errno to stop. */
typedef int tar_sink(void *context, const void *data, size_t len);

/*
 * Adds to the list what is below dir (borrowed, used again by tar_list_stream). A path that the
 * list already has is left out. Files over a limit, directories nested too deep and directories
 * that cannot be read are left out and set truncated. 0 or -ENOMEM; the caller owns *list,
 * zeroed before the first call, either way.
 */
int tar_list_scan(int dir, const struct tar_limits *limits, struct tar_list *list);
void tar_list_finish(struct tar_list *list);
/*
 * Streams the listed files and the end mark. A file that shrank, vanished or changed its kind
 * since the scan is padded with zeros to its listed size. 0, or -errno of the sink.
 */
int tar_list_stream(const struct tar_list *list, tar_sink *sink, void *context);

#endif
