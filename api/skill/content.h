/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a canonical tar that skill_archive_ingest() made and we kept: its headers, and the
 * content of one file.
 */
#ifndef SKILLVM_API_SKILL_CONTENT_H
#define SKILLVM_API_SKILL_CONTENT_H

#include "api/skill/archive.h"
#include "api/skill/tar.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

/*
 * Appends the content of a regular file to out, whose limit is the file's: a larger one gives
 * -E2BIG. 0; -ENOENT (also for a folder or a link); -EINVAL for what is no such tar; -errno.
 */
int skill_content_read(int tar_fd, const char *path, struct buf *out, struct err *err);
/* The same of an entry of the tar's list, where it is: no other is looked at. */
int skill_content_read_entry(int tar_fd, const struct archive_entry_info *entry,
                             struct buf *out, struct err *err);

struct content_walk {
    const char *path; /* of the regular file whose content is wanted; NULL: each says */
    struct buf *out;  /* gets it */
    /* Positive: this one's content is wanted too. NULL: the walk ends with the file. */
    int (*each)(void *user, const struct tar_header *header);
    void *user;
    bool inside; /* begin with false */
    bool found;  /* the whole content is there (of one at least) */
    uint64_t at; /* where the content begins of what each is told of */
};

/*
 * Calls each for all headers in turn; other content than the file's is passed over. 0, also
 * without the file; -EPROTO or -EINVAL for what is no such tar; what each returned; -errno.
 */
int content_walk(int tar_fd, struct content_walk *walk, struct err *err);

#endif
