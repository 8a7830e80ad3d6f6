/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/programs_parts.h"

#include "vmm/layout.h"

/* One page for each queue: descriptors, available ring, used ring. */
#define RING_AVAIL 0x800u
#define RING_USED  0xa00u
#define RING_PAGE  0x1000u
#define HEADERS    0x10000u
#define HEADER     64u
#define DATA       0x20000u
#define DATA_PAGE  0x1000u
#define DATA_PAGES 16u

#define SIZE_MIN 8u
#define SIZES    5u /* to 128 */

/* splitmix64 */
static uint64_t draw(struct program *p)
{
    uint64_t z = p->state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* The next n bytes, little-endian; zeroes behind the last. */
static uint64_t take(struct program *p, unsigned n)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < n && p->left > 0; i++) {
        value |= (uint64_t)*p->bytes++ << 8 * i;
        p->left--;
    }
    return value;
}

uint32_t program_below(struct program *p, uint32_t n)
{
    if (p->bytes == NULL)
        return (uint32_t)(draw(p) % n);
    return (uint32_t)take(p, n <= 1u << 8 ? 1 : n <= 1u << 16 ? 2 : 4) % n;
}

uint64_t program_any(struct program *p)
{
    return p->bytes == NULL ? draw(p) : take(p, 8);
}

uint64_t program_load(struct program *p, uint64_t at, uint32_t len)
{
    struct program_op op = {.act = PROGRAM_LOAD, .len = len, .at = at};

    return p->world->run(p->world->context, &op);
}

void program_store(struct program *p, uint64_t at, uint32_t len, uint64_t value)
{
    struct program_op op = {.act = PROGRAM_STORE, .len = len, .at = at, .value = value};
    uint64_t device = (at - LAYOUT_DEVICE_BASE(0)) / LAYOUT_DEVICE_SIZE;

    if (device < PROGRAM_DEVICES && at % LAYOUT_DEVICE_SIZE == REG_STATUS && len == 4 &&
        (uint32_t)value == 0)
        p->devices[device].active = false;
    (void)p->world->run(p->world->context, &op);
}

uint32_t program_get(struct program *p, unsigned device, uint32_t offset)
{
    return (uint32_t)program_load(p, LAYOUT_DEVICE_BASE(device) + offset, 4);
}

void program_set(struct program *p, unsigned device, uint32_t offset, uint32_t value)
{
    program_store(p, LAYOUT_DEVICE_BASE(device) + offset, 4, value);
}

uint64_t program_desc(const struct program *p, unsigned device, unsigned queue)
{
    return p->world->arena + (uint64_t)(device * PROGRAM_QUEUES + queue) * RING_PAGE;
}

uint64_t program_avail(const struct program *p, unsigned device, unsigned queue)
{
    return program_desc(p, device, queue) + RING_AVAIL;
}

uint64_t program_used(const struct program *p, unsigned device, unsigned queue)
{
    return program_desc(p, device, queue) + RING_USED;
}

uint64_t program_header(const struct program *p, unsigned device, unsigned slot)
{
    return p->world->arena + HEADERS + (uint64_t)device * 0x4000 + (uint64_t)slot * HEADER;
}

uint64_t program_data(const struct program *p, unsigned slot)
{
    return p->world->arena + DATA + (uint64_t)(slot % DATA_PAGES) * DATA_PAGE;
}

uint64_t program_address(struct program *p)
{
    const struct program_world *world = p->world;

    switch (program_below(p, 8)) {
    case 0:
        return world->ram_bytes - program_below(p, 64);
    case 1:
        return world->ram_bytes + program_below(p, 1u << 16);
    case 2:
        return UINT64_MAX - program_below(p, 1u << 16);
    case 3:
        return program_any(p) | world->ram_bytes;
    case 4:
        return program_desc(p, program_below(p, PROGRAM_DEVICES),
                            program_below(p, PROGRAM_QUEUES)) +
               program_below(p, RING_PAGE);
    default:
        return program_below(p, (uint32_t)world->low_bytes);
    }
}

uint64_t program_memory(struct program *p, uint32_t len, bool writable)
{
    switch (program_below(p, 16)) {
    case 0:
        return p->world->ram_bytes - len;
    case 1:
        return p->world->low_bytes - len;
    default:
        return program_data(p,
                            program_below(p, DATA_PAGES / 2) + (writable ? DATA_PAGES / 2 : 0));
    }
}

uint32_t program_length(struct program *p)
{
    switch (program_below(p, 8)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX - program_below(p, 1u << 16);
    case 2:
        return (1u << 31) + program_below(p, 2);
    case 3:
        return 1 + program_below(p, 64);
    case 4:
        return 512 * (1 + program_below(p, 16));
    default:
        return program_below(p, 1u << 16);
    }
}

/* One step of a driver. */
static void drive(struct program *p, unsigned device, uint32_t offset, uint32_t value)
{
    if (p->wild && program_one_in(p, 16)) {
        if (program_one_in(p, 2))
            return;
        value = program_one_in(p, 2) ? (uint32_t)program_any(p) : program_below(p, 256);
    }
    program_set(p, device, offset, value);
}

static void set_queue(struct program *p, unsigned device, unsigned queue)
{
    struct program_queue *q = &p->devices[device].queues[queue];

    *q = (struct program_queue){.size = (uint16_t)(SIZE_MIN << program_below(p, SIZES))};
    program_store(p, program_avail(p, device, queue), 4, 0);
    program_store(p, program_used(p, device, queue), 4, 0);
    drive(p, device, REG_QUEUE_SEL, queue);
    drive(p, device, REG_QUEUE_NUM, q->size);
    drive(p, device, REG_DESC, (uint32_t)program_desc(p, device, queue));
    drive(p, device, REG_DESC + 4, 0);
    drive(p, device, REG_AVAIL, (uint32_t)program_avail(p, device, queue));
    drive(p, device, REG_AVAIL + 4, 0);
    drive(p, device, REG_USED, (uint32_t)program_used(p, device, queue));
    drive(p, device, REG_USED + 4, 0);
    drive(p, device, REG_QUEUE_READY, 1);
}

void program_set_up(struct program *p, unsigned device)
{
    unsigned n = device == PROGRAM_VSOCK ? PROGRAM_QUEUES : 1;
    uint32_t status;

    program_set(p, device, REG_STATUS, 0);
    drive(p, device, REG_STATUS, 1);
    drive(p, device, REG_STATUS, 3);
    drive(p, device, REG_FEATURES_SEL, 1);
    drive(p, device, REG_FEATURES, 1); /* VERSION_1 */
    drive(p, device, REG_STATUS, 11);
    for (unsigned queue = 0; queue < n; queue++)
        set_queue(p, device, queue);
    drive(p, device, REG_STATUS, 15);
    status = program_get(p, device, REG_STATUS);
    p->devices[device].active = (status & (STATUS_DRIVER_OK | STATUS_NEEDS_RESET)) == 4;
    if (device == PROGRAM_VSOCK)
        p->rx_seen = 0;
}

bool program_is_up(struct program *p, unsigned device)
{
    if (!p->devices[device].active)
        program_set_up(p, device);
    return p->devices[device].active;
}

uint16_t program_waiting(struct program *p, unsigned device, unsigned queue)
{
    uint64_t used = program_load(p, program_used(p, device, queue) + 2, 2);

    return (uint16_t)(p->devices[device].queues[queue].avail - used);
}

void program_describe(struct program *p, unsigned device, unsigned queue, unsigned slot,
                      uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
    uint64_t at = program_desc(p, device, queue) + 16 * (uint64_t)slot;

    program_store(p, at, 8, addr);
    program_store(p, at + 8, 8, len | (uint64_t)flags << 32 | (uint64_t)next << 48);
}

void program_offer(struct program *p, unsigned device, unsigned queue, uint16_t head)
{
    struct program_queue *q = &p->devices[device].queues[queue];
    uint64_t at = program_avail(p, device, queue);

    program_store(p, at + 4 + 2 * (uint64_t)(q->avail % q->size), 2, head);
    q->avail++;
    program_store(p, at + 2, 2, q->avail);
}

void program_kick(struct program *p, unsigned device, unsigned queue)
{
    program_set(p, device, REG_NOTIFY, queue);
}
