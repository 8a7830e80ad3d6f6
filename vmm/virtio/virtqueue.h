/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of a split virtqueue (VIRTIO 1.2, section 2.7), without indirect descriptors
 * and without EVENT_IDX. Everything read from the rings is hostile: a descriptor is copied
 * once, the copy is checked, and a chain has at most as many steps as the queue has entries.
 * It must never follow guest data to memory outside the guest or loop as long as the guest
 * likes; a guest that breaks the rules makes the queue fail for good, until reset.
 */
#ifndef SKILLVM_VMM_VIRTIO_VIRTQUEUE_H
#define SKILLVM_VMM_VIRTIO_VIRTQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vmm/memory.h"

#define VIRTQUEUE_SIZE_MAX 128u

struct virtqueue {
    const struct memory *mem; /* borrowed */
    /* Configuration by the driver; frozen once ready. */
    gpa_t desc;
    gpa_t avail;
    gpa_t used;
    uint16_t size;
    bool ready;
    /* Free-running indices. Outside a device's callback next_used equals next_avail: devices
       complete what they take before they return. */
    uint16_t next_avail;
    uint16_t next_used;
    uint16_t published_used; /* what the guest was last told in used.idx */
    bool interrupt_due;      /* published something since the last interrupt decision */
    /* Interrupt moderation: for this queue alone there is none before that many descriptors, or
       bytes for the device to read, were taken. 0 for none; reset clears it. */
    uint16_t interrupt_after;
    uint32_t interrupt_after_bytes;
    uint16_t taken;       /* descriptors since the last interrupt */
    uint32_t taken_bytes; /* which they hold for the device to read; it stops at the highest */
    bool kicks_off;       /* VIRTQ_USED_F_NO_NOTIFY is set */
    bool more;            /* the device left work behind to keep its callback short */
    const char *failure;  /* NULL, or what rule was broken: a constant */
};

struct virtqueue_buffer {
    gpa_t addr;
    uint32_t len; /* bytes, never 0 */
};

/* One chain, copied out of the descriptor table and checked: every buffer lies in guest memory,
   readable buffers come before writable ones. */
struct virtqueue_chain {
    uint16_t head;
    uint16_t n_readable;   /* buffers[0 … n_readable - 1] are for the device to read */
    uint16_t n_writable;   /* the following ones are for the device to write */
    uint32_t readable_len; /* bytes */
    uint32_t writable_len; /* bytes; both sums together stay below 4 GiB */
    struct virtqueue_buffer buffers[VIRTQUEUE_SIZE_MAX];
};

/* An unconfigured queue over mem, which must outlive it. */
void virtqueue_init(struct virtqueue *q, const struct memory *mem);
/* Back to the unconfigured state. */
void virtqueue_reset(struct virtqueue *q);
/*
 * Checks size (a power of two up to VIRTQUEUE_SIZE_MAX), alignment and bounds of the three ring
 * addresses. NULL when they are right, else what is wrong (a constant).
 */
const char *virtqueue_check_config(const struct virtqueue *q);
/* Marks the queue as failed for reason, a constant. The first reason stays. */
void virtqueue_fail(struct virtqueue *q, const char *reason);

/*
 * Takes the next available chain. 1 with *ret_chain filled, 0 when there is none, -EPROTO when
 * the queue has failed, now or before.
 */
int virtqueue_pop(struct virtqueue *q, struct virtqueue_chain *ret_chain);
/* Gives back the last n chains that virtqueue_pop() took and nothing has pushed. */
void virtqueue_unpop(struct virtqueue *q, uint16_t n);
/*
 * Returns a chain to the driver with len bytes written to its writable part. The driver learns
 * of it at the next virtqueue_publish(), so that a batch costs one update of the index.
 */
void virtqueue_push(struct virtqueue *q, uint16_t head, uint32_t len);
/* Shows the pushed chains to the driver and notes that an interrupt is due. */
void virtqueue_publish(struct virtqueue *q);

/*
 * Asks the driver to kick (wanted) or not to. The driver may have missed the change: after
 * asking for kicks look at the queue again before waiting for one.
 */
void virtqueue_want_kicks(struct virtqueue *q, bool wanted);
/* True when at least one chain waits to be popped. */
bool virtqueue_has_work(struct virtqueue *q);
/*
 * Decides on the interrupt that is due, honouring VIRTQ_AVAIL_F_NO_INTERRUPT, and clears it.
 * One that is held back by interrupt_after and interrupt_after_bytes stays due.
 */
bool virtqueue_take_interrupt(struct virtqueue *q);
/* The driver gets an interrupt for another queue and will look at this one too: none is due. */
void virtqueue_clear_interrupt(struct virtqueue *q);

/*
 * Copies up to len bytes from offset of the chain's readable part. Bytes copied: less than len
 * when the part ends before.
 */
size_t virtqueue_read(const struct virtqueue *q, const struct virtqueue_chain *chain,
                      uint32_t offset, void *out, size_t len);
/* Copies up to len bytes to offset of the chain's writable part. Bytes copied. */
size_t virtqueue_write(const struct virtqueue *q, const struct virtqueue_chain *chain,
                       uint32_t offset, const void *data, size_t len);
/*
 * Describes [offset, offset + len) of the readable or writable part as at most max pieces of
 * host memory. Returns the number of pieces; *ret_len (bytes) is less than len when the part or
 * the pieces ran out.
 */
size_t virtqueue_readable_iov(const struct virtqueue *q, const struct virtqueue_chain *chain,
                              uint32_t offset, uint32_t len, struct iovec *iov, size_t max,
                              uint32_t *ret_len);
size_t virtqueue_writable_iov(const struct virtqueue *q, const struct virtqueue_chain *chain,
                              uint32_t offset, uint32_t len, struct iovec *iov, size_t max,
                              uint32_t *ret_len);

#endif
