/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/devices_oracle.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/virtio/vsock_packet.h"

#define DESC_NEXT  1u
#define DESC_WRITE 2u
#define DESC_KNOWN 3u

#define BLK_HEADER 16u
/* In machine_devices. */
#define VSOCK_PLACE 1u
#define RX          0u
#define TX          1u
#define STREAM      1u
#define OP_RW       5u

/* What one access may do with a queue whose rings change under it: budgets of all callbacks. */
#define TANGLED_MAX 2048u

struct chain {
    size_t n_readable, n_writable;
    uint64_t readable_len, writable_len;
    struct oracle_range ranges[VIRTQUEUE_SIZE_MAX]; /* readable ones first */
};

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static uint64_t load(const struct oracle *o, uint64_t at, unsigned int len)
{
    uint64_t value = 0;

    if (memory_contains(&o->m->memory, at, len)) {
        memcpy(&value, o->shadow + at, len);
    }
    return le64toh(value);
}

/* A word at a time: a sanitizer's memcmp looks at bytes, and this is most of the work. */
static bool is_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    const uint64_t *x = (const void *)a;
    const uint64_t *y = (const void *)b;
    uint64_t differ = 0;

    for (size_t i = 0; i < len / sizeof(*x); i++) {
        differ |= x[i] ^ y[i];
    }
    return differ == 0;
}

static bool overlap(struct oracle_range a, struct oracle_range b)
{
    return a.len > 0 && b.len > 0 && a.at < b.at + b.len && b.at < a.at + a.len;
}

static bool in_memory(const struct oracle *o, struct oracle_range r)
{
    return r.at <= o->m->memory.size && r.len <= o->m->memory.size - r.at;
}

/* False when the chain that begins at head breaks a rule. */
static bool walk(const struct oracle *o, const struct virtqueue *q, uint16_t head,
                 struct chain *c)
{
    uint64_t index = head;

    memset(c, 0, offsetof(struct chain, ranges));
    for (unsigned int steps = 0; steps < q->size; steps++) {
        uint64_t at = q->desc + 16 * index;
        struct oracle_range r = {load(o, at, 8), load(o, at + 8, 4)};
        uint64_t flags = load(o, at + 12, 2);

        if (index >= q->size || (flags & ~(uint64_t)DESC_KNOWN) != 0 || r.len == 0 ||
            !in_memory(o, r) || ((flags & DESC_WRITE) == 0 && c->n_writable > 0) ||
            c->readable_len + c->writable_len + r.len > UINT32_MAX) {
            return false;
        }
        c->ranges[c->n_readable + c->n_writable] = r;
        if ((flags & DESC_WRITE) != 0) {
            c->n_writable++;
            c->writable_len += r.len;
        } else {
            c->n_readable++;
            c->readable_len += r.len;
        }
        if ((flags & DESC_NEXT) == 0) {
            return true;
        }
        index = load(o, at + 14, 2);
    }
    return false;
}

/* What the device itself asks of a chain. */
static bool is_taken(const struct virtio_device *device, unsigned int queue,
                     const struct chain *c)
{
    if (device->ops->id != vsock_ops.id) {
        return c->readable_len >= BLK_HEADER && c->writable_len >= 1;
    }
    return queue != RX || (c->n_readable == 0 && c->writable_len > VSOCK_HEADER_SIZE);
}

static void allow(struct oracle *o, uint64_t at, uint64_t len)
{
    if (o->n_writable == ORACLE_RANGES_MAX) {
        o->tangled = true;
        return;
    }
    o->writable[o->n_writable++] = (struct oracle_range){at, len};
}

/* Copies what the readable part of c holds from offset on; the bytes there were. */
static size_t gather(const struct oracle *o, const struct chain *c, uint64_t offset,
                     uint8_t *out, size_t len)
{
    size_t done = 0;

    for (size_t i = 0; i < c->n_readable && done < len; i++) {
        uint64_t piece = c->ranges[i].len;

        if (offset >= piece) {
            offset -= piece;
            continue;
        }
        piece = piece - offset < len - done ? piece - offset : len - done;
        memcpy(out + done, o->shadow + c->ranges[i].at + offset, piece);
        done += piece;
        offset = 0;
    }
    return done;
}

/* Notes the payload of a packet that the host may get. */
static void note_packet(struct oracle *o, const struct chain *c)
{
    const struct vsock *v = o->m->vsock;
    uint8_t header[VSOCK_HEADER_SIZE];
    struct vsock_packet p;

    if (c->n_writable != 0 || gather(o, c, 0, header, sizeof(header)) < sizeof(header)) {
        return;
    }
    vsock_packet_decode(&p, header);
    if (p.src_cid != v->guest_cid || p.dst_cid != VSOCK_HOST_CID || p.type != STREAM ||
        p.op != OP_RW || p.src_port != VSOCK_GUEST_PORT || p.dst_port != v->host_port ||
        p.len > c->readable_len - VSOCK_HEADER_SIZE || p.len > VSOCK_BUF_ALLOC) {
        return;
    }
    if (p.len > ORACLE_PAYLOADS_MAX - o->payloads_len) {
        o->payloads_unknown = true;
        return;
    }
    o->payloads_len += gather(o, c, VSOCK_HEADER_SIZE, o->payloads + o->payloads_len, p.len);
}

/* Everything that waits in a queue, up to the first chain that breaks a rule. */
static void look_at_queue(struct oracle *o, size_t index, unsigned int n)
{
    struct machine_device *d = &o->m->devices[index];
    const struct virtqueue *q = &d->mmio.queues[n];
    struct oracle_queue *seen = &o->queues[index][n];
    uint16_t waiting = (uint16_t)(load(o, q->avail + 2, 2) - q->next_avail);
    bool is_tx = d->device == &o->m->vsock->device && n == TX;
    struct chain c;

    *seen = (struct oracle_queue){
        .in_order = true, .next_avail = q->next_avail, .next_used = q->next_used};
    if (!q->ready) {
        return;
    }
    allow(o, q->used, 4);
    if (waiting > q->size) {
        seen->in_order = false;
        return;
    }
    for (uint16_t i = 0; i < waiting; i++) {
        uint64_t slot = (uint16_t)(q->next_avail + i) % q->size;
        uint64_t used_slot = (uint16_t)(q->next_used + i) % q->size;

        if (!walk(o, q, (uint16_t)load(o, q->avail + 4 + 2 * slot, 2), &c) ||
            !is_taken(d->device, n, &c)) {
            seen->in_order = false;
            return;
        }
        seen->waiting++;
        allow(o, q->used + 4 + 8 * used_slot, 8);
        for (size_t k = 0; k < c.n_writable; k++) {
            allow(o, c.ranges[c.n_readable + k].at, c.ranges[c.n_readable + k].len);
        }
        if (is_tx && o->n_packets < VIRTQUEUE_SIZE_MAX) {
            note_packet(o, &c);
            o->payload_ends[o->n_packets++] = o->payloads_len;
        }
    }
}

/* Whether devices write over what they still have to read of index's rings. */
static void look_for_tangles(struct oracle *o, size_t index)
{
    const struct machine_device *d = &o->m->devices[index];

    for (unsigned int n = 0; n < d->device->ops->n_queues; n++) {
        const struct virtqueue *q = &d->mmio.queues[n];
        const struct oracle_range descriptors = {q->desc, 16u * q->size};
        const struct oracle_range available = {q->avail, 6u + 2u * q->size};

        for (size_t i = 0; i < o->n_writable && q->ready; i++) {
            o->tangled |= overlap(o->writable[i], descriptors);
            o->tangled |= overlap(o->writable[i], available);
        }
    }
}

/* Whether what the guest sends lies where a device writes. */
static void look_for_changed_packets(struct oracle *o)
{
    const struct virtqueue *q = &o->m->devices[VSOCK_PLACE].mmio.queues[TX];
    uint16_t waiting = o->queues[VSOCK_PLACE][TX].waiting;
    struct chain c;

    for (uint16_t i = 0; i < waiting; i++) {
        uint64_t slot = (uint16_t)(q->next_avail + i) % q->size;

        (void)walk(o, q, (uint16_t)load(o, q->avail + 4 + 2 * slot, 2), &c);
        for (size_t k = 0; k < c.n_readable; k++) {
            for (size_t w = 0; w < o->n_writable; w++) {
                o->payloads_unknown |= overlap(c.ranges[k], o->writable[w]);
            }
        }
    }
}

void oracle_init(struct oracle *o, struct machine *m)
{
    o->m = m;
    memcpy(o->shadow, m->memory.host, m->memory.size);
    oracle_forget_stream(o);
}

void oracle_store(struct oracle *o, uint64_t gpa, const void *data, uint32_t len)
{
    memcpy(o->shadow + gpa, data, len);
}

void oracle_forget_stream(struct oracle *o)
{
    o->payloads_at = o->payloads_len = 0;
    o->payloads_unknown = false;
}

void oracle_before(struct oracle *o, size_t first, size_t last)
{
    o->n_writable = 0;
    o->n_packets = 0;
    o->payloads_start = o->payloads_len;
    o->tangled = false;
    for (size_t i = first; i <= last; i++) {
        const struct machine_device *d = &o->m->devices[i];

        o->was_active[i] = virtio_mmio_is_active(&d->mmio);
        for (unsigned int n = 0; n < d->device->ops->n_queues; n++) {
            look_at_queue(o, i, n);
        }
    }
    for (size_t i = first; i <= last; i++) {
        look_for_tangles(o, i);
    }
    if (o->n_packets > 0) {
        look_for_changed_packets(o);
    }
    o->payloads_unknown |= o->tangled;
}

static void check_queue(const struct oracle *o, size_t index, unsigned int n)
{
    const struct virtio_mmio *t = &o->m->devices[index].mmio;
    const struct virtqueue *q = &t->queues[n];
    const struct oracle_queue *seen = &o->queues[index][n];
    uint16_t taken = (uint16_t)(q->next_avail - seen->next_avail);
    uint16_t returned = (uint16_t)(q->next_used - seen->next_used);

    check(taken <= (o->tangled ? TANGLED_MAX : seen->waiting + 1u));
    check(returned <= (o->tangled ? TANGLED_MAX : seen->waiting));
    /* What was taken was returned. */
    check(t->failure != NULL || q->next_avail == q->next_used);
}

/* A device that was active and may have worked. */
static void check_device(const struct oracle *o, size_t index)
{
    const struct machine_device *d = &o->m->devices[index];
    bool in_order = true;

    if (!o->was_active[index] || d->mmio.status == 0) {
        return;
    }
    for (unsigned int n = 0; n < d->device->ops->n_queues; n++) {
        check_queue(o, index, n);
        in_order = in_order && o->queues[index][n].in_order;
    }
    check(!in_order || o->tangled || virtio_mmio_failure(&d->mmio) == NULL);
}

/* Packets that were not taken are looked at again the next time. */
static void drop_waiting_packets(struct oracle *o)
{
    const struct virtio_mmio *t = o->m->vsock->device.transport;
    uint16_t taken =
        (uint16_t)(t->queues[TX].next_avail - o->queues[VSOCK_PLACE][TX].next_avail);

    if (t->status == 0) {
        taken = 0;
    }
    if (taken < o->n_packets) {
        o->payloads_len = taken == 0 ? o->payloads_start : o->payload_ends[taken - 1];
    }
}

void oracle_after(struct oracle *o, size_t first, size_t last)
{
    const struct memory *mem = &o->m->memory;

    for (size_t i = 0; i < o->n_writable; i++) {
        if (in_memory(o, o->writable[i])) {
            memcpy(o->shadow + o->writable[i].at, mem->host + o->writable[i].at,
                   o->writable[i].len);
        }
    }
    if (o->tangled) {
        memcpy(o->shadow, mem->host, mem->size);
    }
    check(is_equal(o->shadow, mem->host, mem->size));
    for (size_t i = first; i <= last; i++) {
        check_device(o, i);
    }
    drop_waiting_packets(o);
}

void oracle_check_served(const struct oracle *o, size_t index)
{
    const struct machine_device *d = &o->m->devices[index];
    const struct oracle_queue *q = &o->queues[index][0];

    if (!o->was_active[index] || o->tangled) {
        return;
    }
    check((virtio_mmio_failure(&d->mmio) != NULL) == !q->in_order);
    check(!q->in_order || (uint16_t)(d->mmio.queues[0].next_used - q->next_used) == q->waiting);
}

void oracle_received(struct oracle *o, const uint8_t *data, size_t len)
{
    if (o->payloads_unknown) {
        return;
    }
    /* In their order; packets that the device had to drop are passed over. */
    for (size_t i = 0; i < len; i++) {
        while (o->payloads_at < o->payloads_len && o->payloads[o->payloads_at] != data[i]) {
            o->payloads_at++;
        }
        check(o->payloads_at < o->payloads_len);
        o->payloads_at++;
    }
}

static bool is_fresh(const struct virtqueue *q)
{
    return q->desc == 0 && q->avail == 0 && q->used == 0 && q->size == 0 && !q->ready &&
           q->next_avail == 0 && q->next_used == 0 && q->published_used == 0 &&
           !q->interrupt_due && q->interrupt_after == 0 && q->interrupt_after_bytes == 0 &&
           q->taken == 0 && q->taken_bytes == 0 && !q->kicks_off && !q->more &&
           q->failure == NULL;
}

void oracle_check_reset(struct oracle *o, size_t index)
{
    const struct virtio_mmio *t = &o->m->devices[index].mmio;
    const struct vsock *v = o->m->vsock;

    for (unsigned int n = 0; n < VIRTIO_QUEUES_MAX; n++) {
        check(is_fresh(&t->queues[n]) && t->queues[n].mem == &o->m->memory);
    }
    check(t->status == 0 && t->interrupt_status == 0 && t->device_features_sel == 0 &&
          t->driver_features_sel == 0 && t->driver_features == 0 && t->queue_sel == 0 &&
          t->failure == NULL);
    if (t->device == &v->device) {
        check(v->queues == NULL && v->n_replies == 0 && v->pending == 0 && !v->tx_blocked);
        check(v->state != VSOCK_CONNECTING && v->state != VSOCK_CONNECTED &&
              v->state != VSOCK_CLOSING);
    } else {
        check(((const struct blk *)(const void *)t->device)->queue == NULL);
    }
}
