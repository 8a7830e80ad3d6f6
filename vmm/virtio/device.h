/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a virtio device gives the transport. The transport owns registers, features, status and
 * queues and does the bounds checks once; a device only sees checked queue indices and chains.
 * But for init and finish a device must never allocate, log or block in these calls, nor keep a
 * chain after returning.
 * A device that finds the driver breaking rules marks the queue with virtqueue_fail(); the
 * transport then sets DEVICE_NEEDS_RESET and resets the device.
 */
#ifndef SKILLVM_VMM_VIRTIO_DEVICE_H
#define SKILLVM_VMM_VIRTIO_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "vmm/virtio/virtqueue.h"

#define VIRTIO_QUEUES_MAX      3u
#define VIRTIO_CONFIG_SIZE_MAX 64u

struct virtio_device;

/* What the host lends the devices of a machine. Descriptors are borrowed. */
struct virtio_host {
    int image_fd; /* the root file system */
    int vsock_fd; /* the host's end of the stream */
};

struct virtio_ops {
    const char *name;     /* in messages */
    uint32_t tag;         /* STATE_TAG of the device's section in a snapshot */
    size_t size;          /* bytes of the struct that begins with the virtio_device */
    uint32_t id;          /* VIRTIO 1.2, section 5 */
    uint32_t config_size; /* bytes, at most VIRTIO_CONFIG_SIZE_MAX */
    uint16_t n_queues;    /* at most VIRTIO_QUEUES_MAX */
    uint16_t queue_size;  /* most entries of each queue, a power of two */
    uint64_t features;    /* of the device; the transport adds VERSION_1 */

    /* Makes the device in zeroed memory. 0 or -errno with err set; finish in both cases. */
    int (*init)(struct virtio_device *dev, const struct virtio_host *host, struct err *err);
    /* As it was after init, joined to what the host lends now. */
    void (*renew)(struct virtio_device *dev, const struct virtio_host *host);
    /* Frees what init allocated; NULL where that is nothing. */
    void (*finish)(struct virtio_device *dev);

    /* Fills out with the config_size bytes of the configuration space, which never changes. */
    void (*config)(const struct virtio_device *dev, uint8_t *out);
    /* The driver set DRIVER_OK: all n_queues queues are ready. They stay valid until reset. */
    void (*activate)(struct virtio_device *dev, struct virtqueue *queues);
    /* The driver kicked queue, an index below n_queues, of an active device. Serves a bounded
       number of chains: a driver that adds them as fast as they are served must not keep the
       machine's mutex. What is left is noted in the queue's more flag. */
    void (*notify)(struct virtio_device *dev, uint16_t queue);
    /* Forget the queues; also called for a device that is not active. */
    void (*reset)(struct virtio_device *dev);
    /* Appends the device's own state. Changes nothing. */
    void (*save)(const struct virtio_device *dev, struct bytes_writer *w);
    /* Takes the state that save wrote, treating it as hostile. 0 or -errno with err set. Must
       not touch guest memory. */
    int (*load)(struct virtio_device *dev, struct bytes_reader *r, struct err *err);
    /* After load, for a device that was active: goes on with the queues, looking again at
       everything the driver may have kicked before the state was saved. */
    void (*resume)(struct virtio_device *dev, struct virtqueue *queues);
};

/* Embedded in every device as its first member. */
struct virtio_device {
    const struct virtio_ops *ops;
    struct virtio_mmio *transport; /* borrowed; set by virtio_mmio_init() */
};

#endif
