/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive that an image was saved in, unpacked to a folder of numbered files: no name of
 * the archive's ever becomes one of the file system. Or the folder that it was saved to, as it
 * is, where whoever may write it can still change what was read. What is found by name is
 * checked against size and digest, where these are told; a document is read once, and its
 * digest is that of what was read.
 */
#ifndef SKILLVM_IMAGES_OCI_SPOOL_H
#define SKILLVM_IMAGES_OCI_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "images/oci_json.h"
#include "images/oci_stream.h"

struct oci_spool {
    int dir_fd;            /* borrowed: an empty folder, or that of the image */
    struct oci_room *room; /* borrowed: of what is opened in the latter; else NULL */
    size_t n;
    struct oci_spooled *list;  /* owned, by name when all are there */
    char digest[OCI_HEX_SIZE]; /* of the archive; "" of a folder */
};

struct oci_document {
    char *text; /* owned, and ends with a NUL */
    size_t len;
    char digest[OCI_HEX_SIZE];
};

/* The image is in a folder, of which nothing is read yet. There is nothing to finish. */
struct oci_spool oci_spool_folder(int dir_fd, struct oci_room *room);

/*
 * Unpacks the archive fd, once, and digests it. 0; -EINVAL for what is no archive, or whose
 * names are none; -E2BIG over the room; -EEXIST for a name that comes twice. The caller
 * finishes *ret in any case.
 */
int oci_spool_read(int fd, int dir_fd, struct oci_room *room, struct oci_spool *ret,
                   struct err *err);
void oci_spool_finish(struct oci_spool *spool);

/*
 * Opens what a blob names: a descriptor; -ENOENT it is not there; -EBADMSG it is another than
 * told. In a folder also -ELOOP, it is a link or behind one; -EINVAL, it is no file; -E2BIG
 * over the room.
 */
int oci_spool_open(const struct oci_spool *spool, const struct oci_blob *blob, struct err *err);
/*
 * Reads a document, which the caller finishes in any case. 0, or as oci_spool_open; -EFBIG over
 * OCI_JSON_MAX.
 */
int oci_spool_text(const struct oci_spool *spool, const struct oci_blob *blob,
                   struct oci_document *ret, struct err *err);
void oci_document_finish(struct oci_document *document);
#define _cleanup_oci_document_ __attribute__((cleanup(oci_document_finish)))

#endif
