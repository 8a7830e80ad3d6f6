/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half of reading a skill archive: libarchive's view of a stranger's bytes becomes a
 * list of cleaned entries and one spool file with their content, under limits that count what
 * was really read and not what a header claims. archive.c judges the list as a whole.
 */
#ifndef SKILLVM_API_SKILL_INGEST_H
#define SKILLVM_API_SKILL_INGEST_H

#include "api/skill/archive.h"

struct ingest_entry {
    char *path; /* owned */
    enum archive_entry_type type;
    bool executable;
    bool hard_link; /* a file whose content is that of the file called target */
    char *target;   /* owned; links, and hard links until they are resolved */
    uint64_t size;
    uint64_t offset; /* in the spool */
};

struct ingest {
    const struct archive_limits *limits; /* borrowed */
    int spool_fd;
    uint64_t expanded; /* content bytes read so far */
    uint64_t archive_bytes;
    struct ingest_entry *entries; /* in the archive's order */
    size_t n;
};

/* Reads the archive in in_fd. On success the caller finishes *ret. Errors: see archive.h. */
int ingest_read(int in_fd, const struct archive_limits *limits, struct ingest *ret,
                struct err *err);
/* Adds a copy of *entry. 0, -EFBIG over the limit of entries, or -ENOMEM. */
int ingest_add(struct ingest *in, const struct ingest_entry *entry, struct err *err);
/* Removes the entry at index i; the order of the others stays. */
void ingest_remove(struct ingest *in, size_t i);
void ingest_finish(struct ingest *in);

#endif
