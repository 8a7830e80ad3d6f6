/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file, or all names, out of an archive that artifacts.h made, unpacked as it is read: it
 * is never kept whole, in memory or on disk, and no name in it becomes a path.
 */
#ifndef SKILLVM_API_SKILL_ARTIFACTS_READ_H
#define SKILLVM_API_SKILL_ARTIFACTS_READ_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct artifact_reader;

/*
 * Looks for the regular file with this path in the archive in fd, from its current offset. 0
 * with the reader and the file's size; -ENOENT; -EIO for a damaged archive; -ENOMEM. fd is the
 * reader's in any case.
 */
int artifact_reader_open(int fd, const char *path, struct artifact_reader **ret,
                         uint64_t *ret_bytes, struct err *err);
/* The next bytes, at least one; 0 at the end; -EIO for a damaged archive. */
ssize_t artifact_reader_read(struct artifact_reader *reader, void *data, size_t size);
/*
 * Calls visit for every file, and every folder, whose name then ends with a slash, of the
 * archive in fd, from its current offset. A result of visit other than 0 ends the walk. 0, that
 * result, -EIO for a damaged archive or -ENOMEM. fd is taken over in any case.
 */
typedef int artifact_visit(void *ctx, const char *path, uint64_t bytes);
int artifact_each(int fd, artifact_visit *visit, void *ctx, struct err *err);
/*
 * Copies a tree that artifacts.h made (is_tree) from the beginning of in_fd to out_fd, both
 * borrowed, without the regular file with this path; a folder that had nothing else is then not
 * in it either. *ret_bytes: of the file's content. 0; -ENOENT; -EIO for a damaged archive;
 * -ENOMEM; -errno where it cannot be read or written.
 */
int artifact_cut(int in_fd, const char *path, int out_fd, uint64_t *ret_bytes, struct err *err);
/* NULL is fine. */
void artifact_reader_close(struct artifact_reader *reader);

#endif
