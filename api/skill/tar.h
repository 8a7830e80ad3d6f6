/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar, byte for byte: a writer whose output depends on its arguments alone (so that digests
 * last longer than any library version), and a push reader for streams of a hostile guest. Only
 * what proto.h promises: ustar headers with pax path, linkpath and size records.
 */
#ifndef SKILLVM_API_SKILL_TAR_H
#define SKILLVM_API_SKILL_TAR_H

#include "base/buf.h"
#include "base/err.h"
#include "base/tar_block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_PATH_MAX 4096u

enum tar_type {
    TAR_FILE = '0',
    TAR_HARD_LINK = '1',
    TAR_LINK = '2',
    TAR_DIR = '5',
    TAR_OTHER = '?', /* anything else: devices, pipes */
};

struct tar_header {
    const char *path;   /* no trailing slash */
    const char *target; /* TAR_LINK; else NULL */
    enum tar_type type;
    uint32_t mode;
    uint64_t size;    /* TAR_FILE */
    uint64_t mtime_s; /* since the epoch */
};

/*
 * Appends the header blocks of one entry, a pax record in front where ustar has no room for a
 * name (over 99 bytes or not ASCII). Owner 0. The caller appends the content and tar_padding().
 * 0, -EINVAL (a name over TAR_PATH_MAX or a size over 8 GiB) or the buffer's -E2BIG, -ENOMEM.
 */
int tar_put_header(struct buf *out, const struct tar_header *header);
/* Appends a whole file of mode 0644. As above. */
int tar_put_file(struct buf *out, const char *path, const void *data, size_t len);

/* What the reader calls. Each returns 0 to go on or -errno, which tar_reader_push() returns. */
struct tar_ops {
    /* An entry begins. header and its strings are borrowed for the call. */
    int (*begin)(void *user, const struct tar_header *header);
    /* Some of its content (never for size 0). */
    int (*data)(void *user, const uint8_t *data, size_t len);
    /* Its content is complete. */
    int (*end)(void *user);
};

struct tar_reader;

/* NULL without memory. user is handed to ops, which must outlive the reader. */
struct tar_reader *tar_reader_create(const struct tar_ops *ops, void *user);
/*
 * Takes the next bytes. 0; -EPROTO (no tar, with err); what an op returned. After a failure
 * every later push returns the same. Bytes after the end marker are ignored.
 */
int tar_reader_push(struct tar_reader *r, const void *data, size_t len, struct err *err);
/* True between entries or after the end marker: nothing is half read. */
bool tar_reader_complete(const struct tar_reader *r);
/*
 * Where the next bytes are content (or its padding): gives up on them, as if they had been
 * pushed but for the data calls, and returns how many bytes of the stream the caller leaves
 * out. 0 elsewhere.
 */
uint64_t tar_reader_skip(struct tar_reader *r);
/* NULL is fine. */
void tar_reader_destroy(struct tar_reader *r);

#endif
