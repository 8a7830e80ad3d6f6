/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtio-mmio transport, version 2 (VIRTIO 1.2, section 4.2): one window of registers, the
 * negotiation, the queues and the interrupt of one device. It must never trust an offset, a
 * length, an index or an order of accesses: what the specification does not allow is ignored
 * and counted, and a driver that breaks queue rules gets DEVICE_NEEDS_RESET.
 *
 * Nothing here locks: the machine calls every function, and those of the devices, under one
 * mutex. Nothing allocates or logs.
 */
#ifndef SKILLVM_VMM_VIRTIO_MMIO_H
#define SKILLVM_VMM_VIRTIO_MMIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "vmm/memory.h"
#include "vmm/virtio/device.h"
#include "vmm/virtio/virtqueue.h"

/* Where in the window an ioeventfd listens: a 4-byte write of the queue's index. */
#define VIRTIO_MMIO_NOTIFY_OFFSET 0x50u
/* virtio_mmio_save() writes at most this many bytes. */
#define VIRTIO_MMIO_STATE_MAX 512u

/* How the device's interrupt line is raised: one edge for each call. */
struct virtio_irq {
    void (*raise)(void *context);
    void *context; /* borrowed */
};

struct virtio_mmio {
    struct virtio_device *device; /* borrowed */
    struct virtio_irq irq;
    uint32_t status;
    uint32_t interrupt_status;
    uint32_t device_features_sel;
    uint32_t driver_features_sel;
    uint64_t driver_features;
    uint32_t queue_sel;
    const char *failure;   /* NULL, or the rule that was broken (a constant) */
    uint64_t misuse_count; /* accesses that were ignored */
    uint64_t irq_count;    /* interrupts sent */
    struct virtqueue queues[VIRTIO_QUEUES_MAX];
};

/*
 * A transport in its reset state for device, with its queues in mem; both are borrowed and must
 * outlive t. irq.raise is called from within the functions below, whichever thread calls them,
 * and must not call back into the transport. Sets device->transport.
 */
void virtio_mmio_init(struct virtio_mmio *t, struct virtio_device *device,
                      const struct memory *mem, struct virtio_irq irq);

/* A guest's access to the window, len 1, 2, 4 or 8 bytes, little-endian. A read that is not
   allowed gives zeroes. A write to QueueNotify serves the queue before it returns. */
void virtio_mmio_read(struct virtio_mmio *t, uint64_t offset, void *data, uint32_t len);
void virtio_mmio_write(struct virtio_mmio *t, uint64_t offset, const void *data, uint32_t len);

/* The ioeventfd of queue fired: serves the queue. The index is checked. */
void virtio_mmio_notify(struct virtio_mmio *t, uint32_t queue);

/*
 * Serves what the calls above left behind, as each does a bounded amount of work. True when
 * there is still more: the machine's loop calls this before every wait, and does not wait while
 * it says true.
 */
bool virtio_mmio_serve_more(struct virtio_mmio *t);

/*
 * Sends the interrupt that the queues are due (one for all of them) and acts on failed queues.
 * The functions above do it by themselves; devices call it after work that the host started.
 */
void virtio_mmio_flush(struct virtio_mmio *t);

/* True between DRIVER_OK and reset or failure. */
bool virtio_mmio_is_active(const struct virtio_mmio *t);
/* NULL, or the rule that the guest broke: a constant text. Cleared by a reset of the driver. */
const char *virtio_mmio_failure(const struct virtio_mmio *t);

/*
 * Save appends the state of the transport, its queues and its device to w and changes nothing;
 * the vCPU must be stopped. Load takes it into a transport fresh from init with the same kind
 * of device; every value is checked as if the guest had written it, and on failure (-errno with
 * err naming the value) t must be thrown away. Resume, after all of the machine is loaded and
 * interrupts can be raised, sends an interrupt that may have been lost and lets the device go
 * on.
 */
void virtio_mmio_save(const struct virtio_mmio *t, struct bytes_writer *w);
int virtio_mmio_load(struct virtio_mmio *t, struct bytes_reader *r, struct err *err);
void virtio_mmio_resume(struct virtio_mmio *t);

#endif
