/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of a container image put over one another in a folder. What a layer says is gone is
 * taken out of those below it before anything of its own is put. Devices, pipes and sockets are
 * left out, owners and set-user-ID bits not kept.
 */
#ifndef SKILLVM_IMAGES_OCI_LAYER_H
#define SKILLVM_IMAGES_OCI_LAYER_H

#include "base/err.h"
#include "images/oci_json.h"
#include "images/oci_stream.h"

/*
 * Puts the layer in the file fd over what root_fd holds. Its content must have the digest of
 * layer->diff_id. 0; -EBADMSG it has another; -EINVAL, -E2BIG as of oci_stream.h and oci_path;
 * or -errno.
 */
int oci_layer_apply(int root_fd, int fd, const struct oci_layer *layer, struct oci_room *room,
                    struct err *err);

#endif
