/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half of reading a skill archive: libarchive's view of a stranger's bytes becomes a
 * list of cleaned entries and one spool file with their content, under limits that count what
 * was really read and not what a header claims. archive.c judges the list as a whole.
 */
#ifndef SKILLVM_API_SKILL_INGEST_H
#define SKILLVM_API_SKILL_INGEST_H

#include "api/skill/archive.h"

struct ingest {
    const struct archive_limits *limits; /* borrowed */
    const struct archive_spool *spool;   /* borrowed; NULL: spool_fd is its own */
    int spool_fd;
    int tar_fd;                   /* of who judges */
    uint64_t archive_bytes;       /* of all archives that were read */
    struct skill_archive archive; /* in the archive's order; hard links have a target */
};

/*
 * Reads the archive in in_fd. On success ret->archive is the caller's, who closes the spool.
 * Errors: see archive.h.
 */
int ingest_read(int in_fd, const struct archive_limits *limits,
                const struct archive_spool *spool, struct ingest *ret, struct err *err);
/*
 * Reads another archive to what is there: one list, one spool, the limits for all of them
 * together. Errors as above; the caller finishes in->archive.
 */
int ingest_read_more(struct ingest *in, int in_fd, struct err *err);
/*
 * Sorts the list, with the folders that entries imply; names that are there twice, lie below
 * what is no folder or lead out of it are refused, and hard links become files. 0, -EINVAL,
 * -EFBIG or -ENOMEM.
 */
int ingest_arrange(struct ingest *in, struct err *err);
/*
 * Writes the canonical tar of such a list to tar_fd (-1: none), and fills in its digest and
 * size. 0 or -errno.
 */
int ingest_write(struct ingest *in, struct err *err);
/* Closes the spool where it is its own. */
void ingest_close_spool(struct ingest *in);
/* Whether so many bytes more may be written, to the spool or the tar. 0, or who said no. */
int ingest_grow(const struct ingest *in, uint64_t bytes, struct err *err);
/* Reads len bytes of content that are in the spool. 0 or -errno. */
int ingest_read_content(const struct ingest *in, uint64_t offset, void *data, size_t len,
                        struct err *err);
/* Adds a file that is not out of an archive to list and spool. As of ingest_add, or -errno. */
int ingest_add_file(struct ingest *in, const struct archive_entry_info *entry, const void *data,
                    struct err *err);
/* Adds a copy of *entry. 0, -EFBIG over the limit of entries, or -ENOMEM. */
int ingest_add(struct ingest *in, const struct archive_entry_info *entry, struct err *err);

#endif
