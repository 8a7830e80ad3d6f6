/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of a container image, in the shapes of the OCI image specification and of
 * `docker save`, and the names that layers give their entries. All of it is a stranger's: each
 * document is bounded, and what is taken of it is checked here, once. No files.
 */
#ifndef SKILLVM_IMAGES_OCI_JSON_H
#define SKILLVM_IMAGES_OCI_JSON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OCI_JSON_MAX    (1u << 20) /* bytes of a document */
#define OCI_LAYERS_MAX  128u
#define OCI_LISTED_MAX  256u /* images in an index, or in what `docker save` wrote */
#define OCI_NAME_MAX    512u /* of a blob in the archive */
#define OCI_TITLE_MAX   256u
#define OCI_HEX_SIZE    65u
#define OCI_PATH_MAX    2048u /* of an entry of a layer */
#define OCI_DEPTH_MAX   128u  /* its components */
#define OCI_SIZE_ABSENT UINT64_MAX

/* Something in the archive that another document names. */
struct oci_blob {
    char name[OCI_NAME_MAX];   /* in the archive */
    char digest[OCI_HEX_SIZE]; /* SHA-256 of its bytes; "": not told */
    uint64_t size;             /* or OCI_SIZE_ABSENT */
};

/* What an index leads to. */
struct oci_choice {
    struct oci_blob blob;
    bool is_index;             /* and not a manifest */
    char title[OCI_TITLE_MAX]; /* the name that it was saved by, or "" */
};

struct oci_layer {
    struct oci_blob blob;
    char diff_id[OCI_HEX_SIZE]; /* SHA-256 of the tar in it; "" until the configuration is read
                                 */
};

struct oci_image {
    struct oci_blob config;
    unsigned n_layers;
    struct oci_layer layers[OCI_LAYERS_MAX];
    char title[OCI_TITLE_MAX];
};

/*
 * Each reads a document of len bytes. 0; -EINVAL for one that is none of its kind, with what is
 * wrong; -EFBIG over OCI_JSON_MAX; -E2BIG over another limit; -ENOENT there is nothing for
 * linux/amd64, with the platforms there are; -ENOTUNIQ there are several images, with their
 * names; -ENOMEM.
 */

/* The file oci-layout. */
int oci_read_layout(const char *text, size_t len, struct err *err);
/* An index: which of its entries is the image for linux/amd64. */
int oci_read_index(const char *text, size_t len, struct oci_choice *ret, struct err *err);
/* A manifest: configuration and layers. *ret is zeroed first. */
int oci_read_manifest(const char *text, size_t len, struct oci_image *ret, struct err *err);
/* manifest.json of `docker save`. *ret is zeroed first. */
int oci_read_saved(const char *text, size_t len, struct oci_image *ret, struct err *err);
/* A configuration: the digests of the layers' content, for linux/amd64 alone. */
int oci_read_config(const char *text, size_t len, struct oci_image *image, struct err *err);

/*
 * The path of an entry from the root, without "./" before and "/" behind it; "" for the root.
 * -EINVAL for one that is absolute, has a component ".." or an empty name; -E2BIG for one that
 * is too long or too deep.
 */
int oci_path(const char *name, char ret[OCI_PATH_MAX], struct err *err);

enum oci_mark {
    OCI_MARK_NONE,
    OCI_MARK_GONE,    /* what lower layers have at this path is not there */
    OCI_MARK_OPAQUE,  /* nor what they have in this folder */
    OCI_MARK_IGNORED, /* a builder's own notes */
};

/*
 * What the last component of a path says of lower layers, and is taken off: what path then is
 * stands beside each. -EINVAL for a mark of nothing.
 */
int oci_take_mark(char path[OCI_PATH_MAX], enum oci_mark *ret, struct err *err);

#endif
