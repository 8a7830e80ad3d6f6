/* SPDX-License-Identifier: Apache-2.0 */
/* The content of one file of a canonical tar that skill_archive_ingest() made and we kept. */
#ifndef SKILLVM_API_SKILL_CONTENT_H
#define SKILLVM_API_SKILL_CONTENT_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends the content of a regular file to out, whose limit is the file's: a larger one gives
 * -E2BIG. 0; -ENOENT (also for a folder or a link); -EINVAL for what is no such tar; -errno.
 */
int skill_content_read(int tar_fd, const char *path, struct buf *out, struct err *err);

#endif
