/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container image as `docker save`, `podman save` and `skopeo copy` write it, to an archive
 * or as an OCI layout to a folder, unpacked to the folder that its containers would see as
 * their root. It is a stranger's: everything is bounded and checked, nothing of it is run, and
 * nothing is written but in the two folders.
 */
#ifndef SKILLVM_IMAGES_OCI_H
#define SKILLVM_IMAGES_OCI_H

#include "base/err.h"
#include "images/oci_json.h"

#define OCI_BYTES_MAX                                                                          \
    (16ull << 30) /* of the files of an image, and of the archive unpacked or the folder */
#define OCI_ENTRIES_MAX 500000u /* of all its layers */
#define OCI_FILES_MAX   4096u   /* in the archive */

/* What was imported. */
struct oci_origin {
    char title[OCI_TITLE_MAX]; /* the name that it was saved by, or "" */
    /* Of the bytes that were read: the archive's, or those of a folder's index.json, which
     * names the digests of all else. */
    char digest[OCI_HEX_SIZE];
};

/*
 * Unpacks the archive fd, by way of spool_fd, into root_fd: both are empty folders. fd may also
 * be the folder of an OCI layout, which is read where it is. 0, or as oci_json.h, oci_spool.h
 * and oci_layer.h have it, with a message that names what was wrong.
 */
int oci_import(int fd, int spool_fd, int root_fd, struct oci_origin *ret, struct err *err);

#endif
