/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_driver.h"

#include <endian.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_SIZE 4096u

void fake_driver_init(struct fake_driver *d)
{
    /* With a page after it that nobody may touch. */
    uint8_t *host = mmap(NULL, FAKE_MEMORY_SIZE + GUARD_SIZE, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (host == MAP_FAILED || mprotect(host, FAKE_MEMORY_SIZE, PROT_READ | PROT_WRITE) < 0) {
        abort();
    }
    memset(d, 0, sizeof(*d));
    memory_init(&d->mem, host, FAKE_MEMORY_SIZE);
}

void fake_driver_finish(struct fake_driver *d)
{
    if (d->mem.host != NULL) {
        (void)munmap(d->mem.host, FAKE_MEMORY_SIZE + GUARD_SIZE);
    }
    d->mem.host = NULL;
}

static void count_irq(void *context)
{
    struct fake_driver *d = context;

    d->irqs++;
}

void fake_driver_attach(struct fake_driver *d, struct virtio_mmio *t,
                        struct virtio_device *device)
{
    d->t = t;
    virtio_mmio_init(t, device, &d->mem, (struct virtio_irq){.raise = count_irq, .context = d});
}

uint32_t fake_read32(struct fake_driver *d, uint64_t offset)
{
    uint32_t value = 0;

    virtio_mmio_read(d->t, offset, &value, sizeof(value));
    return le32toh(value);
}

void fake_write32(struct fake_driver *d, uint64_t offset, uint32_t value)
{
    value = htole32(value);
    virtio_mmio_write(d->t, offset, &value, sizeof(value));
}

static void add_status(struct fake_driver *d, uint32_t bit)
{
    fake_write32(d, VIRTIO_MMIO_STATUS, fake_read32(d, VIRTIO_MMIO_STATUS) | bit);
}

bool fake_driver_negotiate(struct fake_driver *d)
{
    fake_write32(d, VIRTIO_MMIO_STATUS, 0);
    add_status(d, VIRTIO_CONFIG_S_ACKNOWLEDGE);
    add_status(d, VIRTIO_CONFIG_S_DRIVER);
    for (uint32_t half = 0; half < 2; half++) {
        fake_write32(d, VIRTIO_MMIO_DEVICE_FEATURES_SEL, half);
        fake_write32(d, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
        fake_write32(d, VIRTIO_MMIO_DRIVER_FEATURES,
                     fake_read32(d, VIRTIO_MMIO_DEVICE_FEATURES));
    }
    add_status(d, VIRTIO_CONFIG_S_FEATURES_OK);
    return (fake_read32(d, VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_FEATURES_OK) != 0;
}

static void write_address(struct fake_driver *d, uint64_t offset, gpa_t gpa)
{
    fake_write32(d, offset, (uint32_t)gpa);
    fake_write32(d, offset + 4, (uint32_t)(gpa >> 32));
}

void fake_driver_setup_queue(struct fake_driver *d, unsigned int n, uint16_t size)
{
    struct fake_queue *q = &d->queues[n];
    gpa_t rings = FAKE_RINGS + (gpa_t)n * FAKE_RINGS_STEP;

    *q = (struct fake_queue){
        .desc = rings, .avail = rings + 0x1000, .used = rings + 0x2000, .size = size};
    memset(fake_at(d, rings, FAKE_RINGS_STEP), 0, FAKE_RINGS_STEP);
    fake_write32(d, VIRTIO_MMIO_QUEUE_SEL, n);
    fake_write32(d, VIRTIO_MMIO_QUEUE_NUM, size);
    write_address(d, VIRTIO_MMIO_QUEUE_DESC_LOW, q->desc);
    write_address(d, VIRTIO_MMIO_QUEUE_AVAIL_LOW, q->avail);
    write_address(d, VIRTIO_MMIO_QUEUE_USED_LOW, q->used);
    fake_write32(d, VIRTIO_MMIO_QUEUE_READY, 1);
}

void fake_driver_start(struct fake_driver *d, unsigned int n_queues, uint16_t size)
{
    if (!fake_driver_negotiate(d)) {
        abort();
    }
    for (unsigned int n = 0; n < n_queues; n++) {
        fake_driver_setup_queue(d, n, size);
    }
    add_status(d, VIRTIO_CONFIG_S_DRIVER_OK);
}

void fake_driver_clone(struct fake_driver *d, const struct fake_driver *other)
{
    fake_driver_init(d);
    memcpy(d->mem.host, other->mem.host, FAKE_MEMORY_SIZE);
    memcpy(d->queues, other->queues, sizeof(d->queues));
}

void fake_driver_take_over(struct fake_driver *d, struct fake_driver *other)
{
    memset(d, 0, sizeof(*d));
    memory_init(&d->mem, other->mem.host, other->mem.size);
    memcpy(d->queues, other->queues, sizeof(d->queues));
    other->mem.host = NULL;
    other->mem.size = 0;
}

void *fake_at(struct fake_driver *d, gpa_t gpa, uint64_t len)
{
    void *host = memory_writable(&d->mem, gpa, len);

    if (host == NULL) {
        abort();
    }
    return host;
}

void fake_desc(struct fake_driver *d, unsigned int n, uint16_t index, gpa_t addr, uint32_t len,
               uint16_t flags, uint16_t next)
{
    struct vring_desc desc = {.addr = htole64(addr),
                              .len = htole32(len),
                              .flags = htole16(flags),
                              .next = htole16(next)};

    memcpy(fake_at(d, d->queues[n].desc + sizeof(desc) * (gpa_t)index, sizeof(desc)), &desc,
           sizeof(desc));
}

void fake_set_avail_idx(struct fake_driver *d, unsigned int n, uint16_t idx)
{
    d->queues[n].avail_idx = idx;
    memory_store_u16(&d->mem, d->queues[n].avail + 2, idx);
}

void fake_offer(struct fake_driver *d, unsigned int n, uint16_t head)
{
    struct fake_queue *q = &d->queues[n];

    memory_store_u16(&d->mem, q->avail + 4 + 2 * (gpa_t)(q->avail_idx % q->size), head);
    fake_set_avail_idx(d, n, (uint16_t)(q->avail_idx + 1));
}

void fake_kick(struct fake_driver *d, unsigned int n)
{
    uint16_t flags = 0;

    memory_load_u16(&d->mem, d->queues[n].used, &flags);
    if ((flags & VRING_USED_F_NO_NOTIFY) != 0) {
        d->kicks_kept++;
        return;
    }
    d->kicks++;
    fake_write32(d, VIRTIO_MMIO_QUEUE_NOTIFY, n);
}

bool fake_take_used(struct fake_driver *d, unsigned int n, uint32_t *ret_head,
                    uint32_t *ret_len)
{
    struct fake_queue *q = &d->queues[n];
    struct vring_used_elem elem;
    uint16_t idx = 0;

    memory_load_u16(&d->mem, q->used + 2, &idx);
    if (idx == q->used_seen) {
        return false;
    }
    memcpy(
        &elem,
        fake_at(d, q->used + 4 + sizeof(elem) * (gpa_t)(q->used_seen % q->size), sizeof(elem)),
        sizeof(elem));
    q->used_seen++;
    *ret_head = le32toh(elem.id);
    *ret_len = le32toh(elem.len);
    return true;
}

uint32_t fake_ack(struct fake_driver *d)
{
    uint32_t status = fake_read32(d, VIRTIO_MMIO_INTERRUPT_STATUS);

    fake_write32(d, VIRTIO_MMIO_INTERRUPT_ACK, status);
    return status;
}
