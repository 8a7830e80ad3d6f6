/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/virtqueue.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_ring.h>
#include <string.h>

/* Byte offsets in the rings (VIRTIO 1.2, sections 2.7.5, 2.7.6 and 2.7.8). */
#define DESC_SIZE      16u
#define AVAIL_FLAGS    0u
#define AVAIL_IDX      2u
#define AVAIL_RING     4u
#define USED_FLAGS     0u
#define USED_IDX       2u
#define USED_RING      4u
#define USED_ELEM_SIZE 8u
/* Both rings end in a 16-bit event field, used or not. */
#define RING_TAIL 2u

void virtqueue_init(struct virtqueue *q, const struct memory *mem)
{
    memset(q, 0, sizeof(*q));
    q->mem = mem;
}

void virtqueue_reset(struct virtqueue *q)
{
    virtqueue_init(q, q->mem);
}

const char *virtqueue_check_config(const struct virtqueue *q)
{
    uint64_t size = q->size;

    if (size == 0 || size > VIRTQUEUE_SIZE_MAX || (size & (size - 1)) != 0) {
        return "queue size";
    }
    if (q->desc % 16 != 0 || !memory_contains(q->mem, q->desc, DESC_SIZE * size)) {
        return "descriptor table address";
    }
    if (q->avail % 2 != 0 ||
        !memory_contains(q->mem, q->avail, AVAIL_RING + 2 * size + RING_TAIL)) {
        return "available ring address";
    }
    if (q->used % 4 != 0 ||
        !memory_contains(q->mem, q->used, USED_RING + USED_ELEM_SIZE * size + RING_TAIL)) {
        return "used ring address";
    }
    return NULL;
}

void virtqueue_fail(struct virtqueue *q, const char *reason)
{
    if (q->failure == NULL) {
        q->failure = reason;
    }
}

static int fail(struct virtqueue *q, const char *reason)
{
    virtqueue_fail(q, reason);
    return -EPROTO;
}

/* How many chains wait, or -EPROTO. */
static int count_waiting(struct virtqueue *q)
{
    uint16_t avail_idx;
    uint16_t waiting;

    if (q->failure != NULL) {
        return -EPROTO;
    }
    if (!q->ready) {
        return 0;
    }
    /* The acquire pairs with the driver's barrier before it raised the index: the ring entry
       and the descriptors are read after it. */
    if (memory_load_u16(q->mem, q->avail + AVAIL_IDX, &avail_idx) < 0) {
        return fail(q, "available ring outside memory");
    }
    waiting = (uint16_t)(avail_idx - q->next_avail);
    if (waiting > q->size) {
        return fail(q, "available index too far ahead");
    }
    return waiting;
}

/* Copies descriptor index once. 0 or -EPROTO. */
static int read_descriptor(struct virtqueue *q, uint16_t index, struct vring_desc *ret_desc)
{
    struct vring_desc raw;

    if (index >= q->size) {
        return fail(q, "descriptor index out of range");
    }
    if (memory_read(q->mem, q->desc + DESC_SIZE * (gpa_t)index, &raw, sizeof(raw)) < 0) {
        return fail(q, "descriptor table outside memory");
    }
    ret_desc->addr = le64toh(raw.addr);
    ret_desc->len = le32toh(raw.len);
    ret_desc->flags = le16toh(raw.flags);
    ret_desc->next = le16toh(raw.next);
    return 0;
}

/* Adds a checked copy of desc to chain. 0 or -EPROTO. */
static int add_buffer(struct virtqueue *q, struct virtqueue_chain *chain,
                      const struct vring_desc *desc)
{
    unsigned int n = chain->n_readable + chain->n_writable;

    if ((desc->flags & ~(VRING_DESC_F_NEXT | VRING_DESC_F_WRITE)) != 0) {
        /* Indirect descriptors were not offered. */
        return fail(q, "descriptor flags");
    }
    if (desc->len == 0) {
        return fail(q, "descriptor of length zero");
    }
    if (!memory_contains(q->mem, desc->addr, desc->len)) {
        return fail(q, "descriptor outside memory");
    }
    if ((uint64_t)chain->readable_len + chain->writable_len + desc->len > UINT32_MAX) {
        return fail(q, "chain of 4 GiB");
    }
    chain->buffers[n] = (struct virtqueue_buffer){.addr = desc->addr, .len = desc->len};
    if ((desc->flags & VRING_DESC_F_WRITE) != 0) {
        chain->n_writable++;
        chain->writable_len += desc->len;
        return 0;
    }
    if (chain->n_writable > 0) {
        return fail(q, "readable descriptor after a writable one");
    }
    chain->n_readable++;
    chain->readable_len += desc->len;
    return 0;
}

static void count_taken(struct virtqueue *q, unsigned int descriptors, uint32_t bytes)
{
    q->taken = (uint16_t)(q->taken + descriptors);
    q->taken_bytes = bytes < UINT32_MAX - q->taken_bytes ? q->taken_bytes + bytes : UINT32_MAX;
}

int virtqueue_pop(struct virtqueue *q, struct virtqueue_chain *ret_chain)
{
    int waiting = count_waiting(q);
    uint16_t slot;
    uint16_t head;
    uint16_t index;

    if (waiting <= 0) {
        return waiting;
    }
    slot = q->next_avail & (uint16_t)(q->size - 1);
    if (memory_load_u16(q->mem, q->avail + AVAIL_RING + 2 * (gpa_t)slot, &head) < 0) {
        return fail(q, "available ring outside memory");
    }
    ret_chain->head = head;
    ret_chain->n_readable = 0;
    ret_chain->n_writable = 0;
    ret_chain->readable_len = 0;
    ret_chain->writable_len = 0;
    index = head;
    /* A chain that is longer than the table visits a descriptor twice: a loop. */
    for (unsigned int steps = 0; steps < q->size; steps++) {
        struct vring_desc desc;

        if (read_descriptor(q, index, &desc) < 0 || add_buffer(q, ret_chain, &desc) < 0) {
            return -EPROTO;
        }
        if ((desc.flags & VRING_DESC_F_NEXT) == 0) {
            q->next_avail++;
            count_taken(q, steps + 1, ret_chain->readable_len);
            return 1;
        }
        index = desc.next;
    }
    return fail(q, "descriptor chain loops");
}

void virtqueue_unpop(struct virtqueue *q, uint16_t n)
{
    q->next_avail = (uint16_t)(q->next_avail - n);
}

void virtqueue_push(struct virtqueue *q, uint16_t head, uint32_t len)
{
    uint16_t slot = q->next_used & (uint16_t)(q->size - 1);
    struct vring_used_elem elem = {.id = htole32(head), .len = htole32(len)};

    if (memory_write(q->mem, q->used + USED_RING + USED_ELEM_SIZE * (gpa_t)slot, &elem,
                     sizeof(elem)) < 0) {
        virtqueue_fail(q, "used ring outside memory");
        return;
    }
    q->next_used++;
}

void virtqueue_publish(struct virtqueue *q)
{
    if (q->failure != NULL || q->published_used == q->next_used) {
        return;
    }
    /* The release orders the used elements, and the data they speak of, before the index. */
    if (memory_store_u16(q->mem, q->used + USED_IDX, q->next_used) < 0) {
        virtqueue_fail(q, "used ring outside memory");
        return;
    }
    q->published_used = q->next_used;
    q->interrupt_due = true;
}

void virtqueue_want_kicks(struct virtqueue *q, bool wanted)
{
    if (q->failure != NULL || !q->ready || q->kicks_off == !wanted) {
        return;
    }
    if (memory_store_u16(q->mem, q->used + USED_FLAGS, wanted ? 0 : VRING_USED_F_NO_NOTIFY) <
        0) {
        virtqueue_fail(q, "used ring outside memory");
        return;
    }
    q->kicks_off = !wanted;
    /* Pairs with the driver's full barrier between its index and its look at the flag: either
       it sees the flag and kicks, or the look at the index that follows here sees its chain. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool virtqueue_has_work(struct virtqueue *q)
{
    return count_waiting(q) > 0;
}

static bool is_held_back(const struct virtqueue *q)
{
    return q->taken < q->interrupt_after && q->taken_bytes < q->interrupt_after_bytes;
}

bool virtqueue_take_interrupt(struct virtqueue *q)
{
    uint16_t flags;

    if (q->failure != NULL || !q->interrupt_due || is_held_back(q)) {
        return false;
    }
    virtqueue_clear_interrupt(q);
    /* Pairs with the driver's full barrier between clearing the flag and its last look at the
       used index: either it sees the new index, or this sees that it wants the interrupt. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (memory_load_u16(q->mem, q->avail + AVAIL_FLAGS, &flags) < 0) {
        virtqueue_fail(q, "available ring outside memory");
        return false;
    }
    return (flags & VRING_AVAIL_F_NO_INTERRUPT) == 0;
}

void virtqueue_clear_interrupt(struct virtqueue *q)
{
    q->interrupt_due = false;
    q->taken = 0;
    q->taken_bytes = 0;
}

static size_t make_iov(const struct virtqueue *q, const struct virtqueue_buffer *buffers,
                       size_t n_buffers, uint32_t offset, uint32_t len, struct iovec *iov,
                       size_t max, uint32_t *ret_len)
{
    size_t n = 0;
    uint32_t done = 0;

    for (size_t i = 0; i < n_buffers && n < max && done < len; i++) {
        uint32_t piece;
        void *host;

        if (offset >= buffers[i].len) {
            offset -= buffers[i].len;
            continue;
        }
        piece = buffers[i].len - offset;
        if (piece > len - done) {
            piece = len - done;
        }
        /* An iovec has no const: readers of readable buffers get a pointer they only read. */
        host = memory_writable(q->mem, buffers[i].addr + offset, piece);
        if (host == NULL) {
            break;
        }
        iov[n++] = (struct iovec){.iov_base = host, .iov_len = piece};
        done += piece;
        offset = 0;
    }
    *ret_len = done;
    return n;
}

size_t virtqueue_readable_iov(const struct virtqueue *q, const struct virtqueue_chain *chain,
                              uint32_t offset, uint32_t len, struct iovec *iov, size_t max,
                              uint32_t *ret_len)
{
    return make_iov(q, chain->buffers, chain->n_readable, offset, len, iov, max, ret_len);
}

size_t virtqueue_writable_iov(const struct virtqueue *q, const struct virtqueue_chain *chain,
                              uint32_t offset, uint32_t len, struct iovec *iov, size_t max,
                              uint32_t *ret_len)
{
    return make_iov(q, chain->buffers + chain->n_readable, chain->n_writable, offset, len, iov,
                    max, ret_len);
}

size_t virtqueue_read(const struct virtqueue *q, const struct virtqueue_chain *chain,
                      uint32_t offset, void *out, size_t len)
{
    uint8_t *to = out;
    size_t done = 0;

    while (done < len) {
        struct iovec piece;
        uint32_t want = len - done > UINT32_MAX ? UINT32_MAX : (uint32_t)(len - done);
        uint32_t got;

        if (virtqueue_readable_iov(q, chain, offset, want, &piece, 1, &got) == 0) {
            break;
        }
        memcpy(to + done, piece.iov_base, got);
        done += got;
        offset += got;
    }
    return done;
}

size_t virtqueue_write(const struct virtqueue *q, const struct virtqueue_chain *chain,
                       uint32_t offset, const void *data, size_t len)
{
    const uint8_t *from = data;
    size_t done = 0;

    while (done < len) {
        struct iovec piece;
        uint32_t want = len - done > UINT32_MAX ? UINT32_MAX : (uint32_t)(len - done);
        uint32_t got;

        if (virtqueue_writable_iov(q, chain, offset, want, &piece, 1, &got) == 0) {
            break;
        }
        memcpy(piece.iov_base, from + done, got);
        done += got;
        offset += got;
    }
    return done;
}
