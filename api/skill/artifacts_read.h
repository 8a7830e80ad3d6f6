/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file out of a files.tar.gz that artifacts.h made. It is read as a stream and only ever
 * copied to a descriptor: no name in it becomes a path.
 */
#ifndef SKILLVM_API_SKILL_ARTIFACTS_READ_H
#define SKILLVM_API_SKILL_ARTIFACTS_READ_H

#include "base/err.h"

#include <stdint.h>

/*
 * Looks for the regular file with this path in the archive in in_fd (from its current offset,
 * which moves) and writes its content to out_fd. 0 with its size; -ENOENT; -EFBIG over
 * max_bytes; -EIO for a damaged archive; -errno.
 */
int artifacts_read_file(int in_fd, const char *path, uint64_t max_bytes, int out_fd,
                        uint64_t *ret_bytes, struct err *err);

#endif
