/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio-blk (VIRTIO 1.2, section 5.2), read-only: the guest's root file system in a file that
 * all machines share. Requests are served in the kick, with preadv straight into guest memory.
 * It must never write to the file, nor read outside it.
 */
#ifndef SKILLVM_VMM_VIRTIO_BLK_H
#define SKILLVM_VMM_VIRTIO_BLK_H

#include <stdint.h>

#include "base/err.h"
#include "vmm/virtio/device.h"

#define BLK_ID_SIZE 20u

extern const struct virtio_ops blk_ops;

struct blk {
    struct virtio_device device;
    struct virtqueue *queue; /* NULL unless active */
    int fd;                  /* borrowed, read-only */
    uint64_t n_sectors;      /* of 512 bytes */
    char id[BLK_ID_SIZE];    /* what GET_ID answers, zero-padded */
    uint64_t read_bytes;     /* served so far */
    uint64_t request_count;
    uint64_t refused_count; /* requests answered with an error */
    struct virtqueue_chain chain;
};

/*
 * A disk of the content of fd, a regular file whose size is a positive multiple of 512 bytes
 * and does not change. fd is borrowed and only read at offsets. id (a constant or outliving
 * string) is cut to 20 bytes. 0 or -errno with err set.
 */
int blk_init(struct blk *b, int fd, const char *id, struct err *err);
#endif
