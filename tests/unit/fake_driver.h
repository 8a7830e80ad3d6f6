/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtio driver without a guest: it owns the memory, lays out the queues and goes through a
 * transport's registers as a kernel would, and lets a test break any rule on the way.
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_DRIVER_H
#define SKILLVM_TESTS_UNIT_FAKE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/memory.h"
#include "vmm/virtio/mmio.h"

#define FAKE_MEMORY_SIZE (4u << 20)
/* Queue n has its rings from FAKE_RINGS + n * FAKE_RINGS_STEP; buffers go above FAKE_BUFFERS.
 */
#define FAKE_RINGS      0x1000u
#define FAKE_RINGS_STEP 0x4000u
#define FAKE_BUFFERS    0x100000u

struct fake_queue {
    gpa_t desc;
    gpa_t avail;
    gpa_t used;
    uint16_t size;
    uint16_t avail_idx; /* what the driver last stored */
    uint16_t used_seen; /* used elements taken */
};

struct fake_driver {
    struct memory mem;
    struct virtio_mmio *t;
    struct fake_queue queues[VIRTIO_QUEUES_MAX];
    unsigned int irqs;       /* raised so far */
    unsigned int kicks;      /* sent so far */
    unsigned int kicks_kept; /* not sent because the device did not want them */
};

/* Zeroed memory and nothing else. Aborts without memory. */
void fake_driver_init(struct fake_driver *d);
void fake_driver_finish(struct fake_driver *d);
/* Puts device behind t, with the driver's memory and interrupt. */
void fake_driver_attach(struct fake_driver *d, struct virtio_mmio *t,
                        struct virtio_device *device);

uint32_t fake_read32(struct fake_driver *d, uint64_t offset);
void fake_write32(struct fake_driver *d, uint64_t offset, uint32_t value);

/* Reset up to FEATURES_OK, taking all features offered. True when the device agreed. */
bool fake_driver_negotiate(struct fake_driver *d);
/* Lays out queue n with size entries and tells the device. */
void fake_driver_setup_queue(struct fake_driver *d, unsigned int n, uint16_t size);
/* All of it: negotiation, n_queues queues of size entries, DRIVER_OK. */
void fake_driver_start(struct fake_driver *d, unsigned int n_queues, uint16_t size);
/* A driver whose queues were set up by other, for a restored device behind t: same layout and
   indices, a copy of its memory. */
void fake_driver_clone(struct fake_driver *d, const struct fake_driver *other);

/* The same with other's memory itself: other is left without any. */
void fake_driver_take_over(struct fake_driver *d, struct fake_driver *other);

/* Writes descriptor index of queue n. flags and next as in linux/virtio_ring.h. */
void fake_desc(struct fake_driver *d, unsigned int n, uint16_t index, gpa_t addr, uint32_t len,
               uint16_t flags, uint16_t next);
/* Makes the chain at head available, without a kick. */
void fake_offer(struct fake_driver *d, unsigned int n, uint16_t head);
/* Stores any available index. */
void fake_set_avail_idx(struct fake_driver *d, unsigned int n, uint16_t idx);
/* Kicks queue n unless the device asked not to. */
void fake_kick(struct fake_driver *d, unsigned int n);
/* Takes a used element: true with the head and the length written. */
bool fake_take_used(struct fake_driver *d, unsigned int n, uint32_t *ret_head,
                    uint32_t *ret_len);
/* Reads and acknowledges the interrupt as the kernel's handler does. The status it read. */
uint32_t fake_ack(struct fake_driver *d);

/* Host pointer to guest memory; aborts outside it. */
void *fake_at(struct fake_driver *d, gpa_t gpa, uint64_t len);

#endif
