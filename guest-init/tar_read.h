/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks a tar stream (ustar with pax path, linkpath and size records) below a directory, as
 * the stream arrives. Directories, regular files and symbolic links; anything else is refused.
 * It must never create, open or follow anything outside that directory, whatever the stream
 * says.
 */
#ifndef SKILLVM_GUEST_TAR_READ_H
#define SKILLVM_GUEST_TAR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/tar_block.h"

#define TAR_PATH_MAX 4095u
/* Largest pax header accepted: room for one path, one link and small records. */
#define TAR_PAX_MAX 16384u

struct tar_read {
    int dir; /* borrowed: everything is made below it */
    uint64_t bytes_max;
    uint64_t entries_max;
    uint64_t bytes;
    uint64_t entries;

    struct tar_block block;
    size_t block_len;
    unsigned zero_blocks;

    char kind;     /* what the current entry's data is: 0 none, '0' a file, 'x' a pax header */
    uint64_t at;   /* where the file's next bytes go */
    uint64_t left; /* data bytes of the current entry still to come */
    uint32_t pad;  /* bytes after them up to the next block */
    int file;      /* owned: the file being written, or -1 */
    char *pax;     /* owned: the pax header being gathered */
    size_t pax_len;

    char *pax_path; /* owned: overrides for the next entry */
    char *pax_link;
    bool has_pax_size;
    uint64_t pax_size;

    char *parent_path; /* owned: the directory opened last, to spare a walk per entry */
    int parent;        /* owned */
};

/* dir stays the caller's and must outlive t. Limits count data bytes and entries. */
void tar_read_init(struct tar_read *t, int dir, uint64_t bytes_max, uint64_t entries_max);
/* Takes the next len bytes of the stream. 0, or -errno with err set: the stream is then over.
 */
int tar_read_feed(struct tar_read *t, const void *data, size_t len, struct err *err);
/*
 * Ends the stream. 0 when it was whole: an end mark, or nothing at all. -errno with err set
 * when it stops inside an entry. tar_read_finish is still to be called.
 */
int tar_read_end(const struct tar_read *t, struct err *err);
/* Frees and closes what t owns; safe after tar_read_init alone. */
void tar_read_finish(struct tar_read *t);

#endif
