/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio-blk (VIRTIO 1.2, section 5.2), read-only, as two devices: the guest's root file system
 * in a file that all machines share, and the disk of a skill, which is empty until an execution
 * brings one and again after it. Requests are served in the kick, with preadv straight into
 * guest memory. It must never write to a file, nor read outside those that it was given.
 */
#ifndef SKILLVM_VMM_VIRTIO_BLK_H
#define SKILLVM_VMM_VIRTIO_BLK_H

#include <stdint.h>

#include "base/err.h"
#include "vmm/virtio/device.h"

#define BLK_ID_SIZE   20u
#define BLK_PARTS_MAX 2u

extern const struct virtio_ops blk_ops;       /* the root file system */
extern const struct virtio_ops blk_skill_ops; /* the disk of a skill */

/* Files one after another; whatever is read past them is an I/O error. */
struct blk_part {
    int fd; /* read-only; of the root file system borrowed, of a skill owned */
    uint64_t n_sectors;
};

struct blk {
    struct virtio_device device;
    struct virtqueue *queue; /* NULL unless active */
    struct blk_part parts[BLK_PARTS_MAX];
    size_t n_parts;
    uint64_t n_sectors;   /* of 512 bytes, as the guest is told: never less than the parts' */
    char id[BLK_ID_SIZE]; /* what GET_ID answers, zero-padded */
    uint64_t read_bytes;  /* served so far */
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

/* The disk of a skill, without one. */
void blk_init_skill(struct blk *b);
/* The disk of a skill that this device is, or NULL. */
struct blk *blk_skill_of(struct virtio_device *dev);
/*
 * Puts two files into the disk of a skill that has none: bytes of each, a positive multiple of
 * 512, VMM_DISK_BYTES_MAX together at most. Takes fds over on success, and holds them until the
 * device is renewed. Asks nothing of the files: to read past the end of one is an I/O error.
 * 0 or -errno with err set.
 */
int blk_attach(struct blk *b, int fds[BLK_PARTS_MAX], const uint64_t bytes[BLK_PARTS_MAX],
               struct err *err);
#endif
