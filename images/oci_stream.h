/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tar, plain or compressed by gzip or zstd, of a stranger's: what it may unpack to is bounded
 * and charged as it comes, and the digest of what it unpacks to is taken. libarchive's types
 * are the reader's own, which is for the images folder's .c files.
 */
#ifndef SKILLVM_IMAGES_OCI_STREAM_H
#define SKILLVM_IMAGES_OCI_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "images/oci_json.h"

/* What all layers of an image may have together, less what they had so far. */
struct oci_room {
    uint64_t bytes;   /* of the tars */
    uint64_t content; /* of the files in them, with their holes */
    uint64_t entries;
};

#define OCI_RATIO_MAX   200u          /* of unpacked bytes to packed ones */
#define OCI_RATIO_SPARE (64ull << 20) /* that any may unpack to */

struct archive;
struct archive_entry;
struct oci_stream;

/*
 * Begins to read the file fd, which is borrowed, from its start. what names it in messages and
 * is borrowed, and so is room. 0, -EINVAL for what is no tar, or -ENOMEM.
 */
int oci_stream_open(int fd, const char *what, struct oci_room *room, struct oci_stream **ret,
                    struct err *err);
/* The next entry, borrowed until the next call: 1; 0 at the end; -E2BIG over the room or the
 * ratio; -EINVAL for what is no tar. */
int oci_stream_next(struct oci_stream *stream, struct archive_entry **ret, struct err *err);
/* Charges the content of a file of this size. 0 or -E2BIG. */
int oci_stream_charge(struct oci_stream *stream, uint64_t size, struct err *err);
/* Writes the content of the entry to a file of its size, holes as holes. 0 or -errno. */
int oci_stream_copy(struct oci_stream *stream, uint64_t size, int fd, struct err *err);
/* Reads what is left; the digest of all that was unpacked. 0 or as oci_stream_next. */
int oci_stream_digest(struct oci_stream *stream, char ret_hex[OCI_HEX_SIZE], struct err *err);
/* The same of the file as it is, of the very bytes that were unpacked. 0 or -errno. */
int oci_stream_digest_packed(struct oci_stream *stream, char ret_hex[OCI_HEX_SIZE],
                             struct err *err);
void oci_stream_close(struct oci_stream *stream);

/* The digest of a file from its start, and of bytes that were read. 0 or -errno. */
int oci_digest_file(int fd, char ret_hex[OCI_HEX_SIZE]);
int oci_digest(const void *data, size_t len, char ret_hex[OCI_HEX_SIZE]);

#endif
