/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/programs.h"

#include "tests/hostile/programs_parts.h"
#include "vmm/layout.h"

/* A program has so many steps. */
#define STEPS_MAX 12u
/* One program in so many breaks the rules of rings: of seeds few, as each ends a machine. */
#define WILD_ONE_IN_SEEDS 64u
#define WILD_ONE_IN_BYTES 2u

#define BLK_IN 0u

#define GUEST_CID   3u
#define HOST_CID    2u
#define GUEST_PORT  1024u
#define FIRST_PORT  0x10001u
#define HEADER_LEN  44u
#define PAYLOAD_MAX 0x1000u
#define FLOOD_MAX   0x8000u

enum { OP_REQUEST = 1, OP_RESPONSE, OP_RST, OP_SHUTDOWN, OP_RW, OP_UPDATE, OP_ASK };

static uint32_t any_len(struct program *p)
{
    return program_one_in(p, 2) ? 4 : 1u << program_below(p, 4);
}

/* A wild driver's descriptor: where and how long it likes. */
static void describe(struct program *p, unsigned device, unsigned queue, unsigned slot,
                     uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
    if (p->wild && program_one_in(p, 8)) {
        addr = program_one_in(p, 2) ? program_address(p) : addr;
        len = program_one_in(p, 2) ? program_length(p) : len;
        flags ^= (uint16_t)(program_one_in(p, 4) ? 1u << program_below(p, 16) : 0);
        flags ^= program_one_in(p, 4) ? DESC_WRITE : 0;
        next = program_one_in(p, 4) ? (uint16_t)program_any(p) : next;
    }
    program_describe(p, device, queue, slot, addr, len, flags, next);
}

static void set_up(struct program *p)
{
    program_set_up(p, program_below(p, PROGRAM_DEVICES));
}

static void reset(struct program *p)
{
    program_set(p, program_below(p, PROGRAM_DEVICES), REG_STATUS, 0);
}

/* What a gentle program must not write: it could start a device whose queues are not in order.
 */
static bool ends_machine(uint32_t offset, uint64_t value)
{
    return offset == REG_QUEUE_READY || (offset == REG_STATUS && (value & STATUS_DRIVER_OK));
}

static void registers(struct program *p)
{
    uint64_t base = LAYOUT_DEVICE_BASE(program_below(p, PROGRAM_DEVICES));

    for (uint32_t n = 1 + program_below(p, 8); n > 0; n--) {
        uint32_t offset = program_one_in(p, 8) ? program_below(p, LAYOUT_DEVICE_SIZE)
                                               : program_below(p, REG_END / 4) * 4;
        uint32_t len = any_len(p);
        uint64_t value;

        if (program_one_in(p, 2)) {
            (void)program_load(p, base + offset, len);
            continue;
        }
        value = program_one_in(p, 2) ? program_below(p, 256) : program_any(p);
        if (p->wild || !ends_machine(offset, value))
            program_store(p, base + offset, len, value);
    }
}

/* An active device's queue, elsewhere, of another size or gone. */
static void move_queue(struct program *p)
{
    static const uint32_t offsets[] = {REG_QUEUE_NUM, REG_DESC, REG_DESC + 4, REG_AVAIL,
                                       REG_AVAIL + 4, REG_USED, REG_USED + 4};
    unsigned device = program_below(p, PROGRAM_DEVICES);

    if (!program_is_up(p, device))
        return;
    program_set(p, device, REG_QUEUE_SEL, program_below(p, PROGRAM_QUEUES + 1));
    program_set(p, device, REG_QUEUE_READY, program_below(p, 3));
    for (uint32_t n = 1 + program_below(p, 4); n > 0; n--)
        program_set(p, device, offsets[program_below(p, COUNT_OF(offsets))],
                    (uint32_t)program_address(p));
    program_set(p, device, REG_QUEUE_READY, 1);
}

static void kicks(struct program *p)
{
    unsigned device = program_below(p, PROGRAM_DEVICES);

    for (uint32_t n = 1 + program_below(p, 4); n > 0; n--)
        program_kick(p, device,
                     program_one_in(p, 8) ? (uint32_t)program_any(p) : program_below(p, 4));
    program_set(p, device, REG_ACK, program_below(p, 4));
}

/* Where nobody is, and over the edges of windows. */
static void nowhere(struct program *p)
{
    const uint64_t places[] = {p->world->ram_bytes,
                               LAYOUT_DEVICE_BASE(0) - LAYOUT_DEVICE_SIZE,
                               LAYOUT_DEVICE_BASE(PROGRAM_DEVICES),
                               LAYOUT_DEVICE_BASE(LAYOUT_DEVICES_MAX - 1),
                               LAYOUT_SERIAL_BASE + LAYOUT_DEVICE_SIZE,
                               0xc0000000,
                               0xfffff000};
    uint64_t at =
        places[program_below(p, COUNT_OF(places))] + program_below(p, LAYOUT_DEVICE_SIZE - 8);
    uint32_t len = any_len(p);

    if (program_one_in(p, 2))
        (void)program_load(p, at, len);
    else
        program_store(p, at, len, program_any(p));
}

/* Nothing that ends a line where a guest says something itself. */
static void serial(struct program *p)
{
    for (uint32_t n = 1 + program_below(p, 4); n > 0; n--) {
        uint64_t at = LAYOUT_SERIAL_BASE + program_below(p, 10);

        if (program_one_in(p, 2))
            (void)program_load(p, at, any_len(p));
        else
            program_store(p, at, any_len(p), program_any(p) | (p->world->has_cpu ? 0x80 : 0));
    }
}

static void host(struct program *p)
{
    struct program_op op = {.act = PROGRAM_HOST, .len = 1};

    op.at = program_below(p, 16);
    op.value = program_below(p, 1u << 16);
    (void)p->world->run(p->world->context, &op);
}

static void read_disk(struct program *p)
{
    unsigned device = program_one_in(p, 2) ? 0 : 2;
    uint32_t header = program_below(p, 64), pieces = 1 + program_below(p, 5);
    uint32_t type = program_one_in(p, 4) ? program_below(p, 16) : BLK_IN;
    uint64_t sector = program_one_in(p, 4) ? program_any(p) : program_below(p, 80);
    uint32_t size, slot = 0;

    if (!program_is_up(p, device))
        return;
    size = p->devices[device].queues[0].size;
    if (!p->wild && program_waiting(p, device, 0) != 0)
        return;
    program_store(p, program_header(p, device, header), 8, type);
    program_store(p, program_header(p, device, header) + 8, 8, sector);
    describe(p, device, 0, slot, program_header(p, device, header), 16, DESC_NEXT, 1);
    for (slot = 1; slot <= pieces; slot++) {
        uint32_t len =
            program_one_in(p, 4) ? 1 + program_below(p, 600) : 512 * (1 + program_below(p, 4));

        describe(p, device, 0, slot, program_memory(p, len, true), len, DESC_NEXT | DESC_WRITE,
                 (uint16_t)(slot + 1));
    }
    describe(p, device, 0, slot, program_header(p, device, header) + 16, 1, DESC_WRITE, 0);
    /* The same request as often as the queue holds it, now and then. */
    for (uint32_t n = program_one_in(p, 8) ? size : 1; n > 0; n--)
        program_offer(p, device, 0, 0);
    program_kick(p, device, 0);
}

static void give_buffers(struct program *p)
{
    unsigned queue = program_one_in(p, 8) ? EVENT : RX;
    struct program_queue *q = &p->devices[PROGRAM_VSOCK].queues[queue];

    if (!program_is_up(p, PROGRAM_VSOCK))
        return;
    for (uint32_t n = 1 + program_below(p, 16); n > 0; n--) {
        uint32_t len = HEADER_LEN + 1 + program_below(p, PAYLOAD_MAX - HEADER_LEN);

        if (!p->wild && program_waiting(p, PROGRAM_VSOCK, queue) >= q->size)
            break;
        describe(p, PROGRAM_VSOCK, queue, q->avail % q->size, program_memory(p, len, true), len,
                 DESC_WRITE, 0);
        program_offer(p, PROGRAM_VSOCK, queue, q->avail % q->size);
    }
    program_kick(p, PROGRAM_VSOCK, queue);
}

static void store_packet(struct program *p, uint64_t at, uint16_t op, uint32_t len)
{
    uint64_t ports =
        program_one_in(p, 8) ? program_any(p) : GUEST_PORT | (uint64_t)p->peer_port << 32;
    uint64_t type = program_one_in(p, 16) ? program_below(p, 1u << 16) : 1;
    uint64_t flags = program_one_in(p, 8) ? (uint32_t)program_any(p) : program_below(p, 4);
    uint64_t credit = 1u << 18;

    if (program_one_in(p, 4))
        credit = program_one_in(p, 2) ? program_below(p, 100) : program_any(p);
    if (program_one_in(p, 8))
        len = program_one_in(p, 2) ? len + 1 : (uint32_t)program_any(p);
    program_store(p, at, 8, program_one_in(p, 16) ? program_any(p) : GUEST_CID);
    program_store(p, at + 8, 8, program_one_in(p, 16) ? program_any(p) : HOST_CID);
    program_store(p, at + 16, 8, ports);
    program_store(p, at + 24, 8, len | type << 32 | (uint64_t)op << 48);
    program_store(p, at + 32, 8, flags | credit << 32);
    program_store(p, at + 40, 4, credit >> 32);
}

/* In one chain of up to two pieces, not kicked. False when there is no room. */
static bool send_packet(struct program *p, uint16_t op, uint32_t len)
{
    struct program_queue *q = &p->devices[PROGRAM_VSOCK].queues[TX];
    uint16_t slot = (uint16_t)(q->avail * 2 % q->size);
    uint64_t header = program_header(p, PROGRAM_VSOCK, slot);
    uint64_t data;

    if (program_waiting(p, PROGRAM_VSOCK, TX) >= q->size / 2 && !p->wild)
        return false;
    store_packet(p, header, op, len);
    describe(p, PROGRAM_VSOCK, TX, slot, header, HEADER_LEN, len > 0 ? DESC_NEXT : 0,
             (uint16_t)(slot + 1));
    data = len > PAYLOAD_MAX ? program_data(p, 0) : program_memory(p, len, false);
    describe(p, PROGRAM_VSOCK, TX, slot + 1u, data, len, 0, 0);
    program_offer(p, PROGRAM_VSOCK, TX, slot);
    return true;
}

static void send_packets(struct program *p)
{
    static const uint8_t ops[] = {OP_RW,  OP_RW,  OP_RW,       OP_RW,       OP_UPDATE,
                                  OP_ASK, OP_RST, OP_SHUTDOWN, OP_RESPONSE, OP_REQUEST};

    if (!program_is_up(p, PROGRAM_VSOCK))
        return;
    for (uint32_t n = 1 + program_below(p, 4); n > 0; n--) {
        uint32_t which = program_below(p, 16);
        uint16_t op = which < COUNT_OF(ops) ? ops[which] : which == 15 ? 9 : OP_RW;

        if (!send_packet(p, op, op == OP_RW ? program_below(p, 600) : 0))
            break;
    }
    program_kick(p, PROGRAM_VSOCK, TX);
}

/* One packet as often as the queue holds it, at once. */
static void flood(struct program *p)
{
    struct program_queue *q = &p->devices[PROGRAM_VSOCK].queues[TX];
    uint16_t op = program_one_in(p, 4) ? (uint16_t)program_below(p, 9) : OP_RW;
    uint32_t len = program_one_in(p, 2) ? FLOOD_MAX : program_below(p, FLOOD_MAX);
    uint16_t head;

    if (!program_is_up(p, PROGRAM_VSOCK) || program_waiting(p, PROGRAM_VSOCK, TX) != 0)
        return;
    head = (uint16_t)(q->avail * 2 % q->size);
    (void)send_packet(p, op, op == OP_RW ? len : 0);
    for (uint32_t n = 1; n < q->size; n++)
        program_offer(p, PROGRAM_VSOCK, TX, head);
    program_kick(p, PROGRAM_VSOCK, TX);
}

/* Looks at what the device sent; true when it asks for a connection. */
static bool find_request(struct program *p)
{
    struct program_queue *q = &p->devices[PROGRAM_VSOCK].queues[RX];
    uint64_t used = program_used(p, PROGRAM_VSOCK, RX);
    uint16_t now = (uint16_t)program_load(p, used + 2, 2);

    while (p->rx_seen != now) {
        uint64_t at = used + 4 + 8 * (uint64_t)(p->rx_seen++ % q->size);
        uint64_t id = program_load(p, at, 4) % q->size;
        uint64_t packet = program_load(p, program_desc(p, PROGRAM_VSOCK, RX) + 16 * id, 8);

        if (packet > p->world->ram_bytes - HEADER_LEN ||
            program_load(p, packet + 30, 2) != OP_REQUEST)
            continue;
        p->peer_port = (uint32_t)program_load(p, packet + 16, 4);
        return true;
    }
    return false;
}

/* Takes the host's connection, most of the time. */
static void answer(struct program *p)
{
    uint16_t op = program_one_in(p, 4) ? OP_RST : OP_RESPONSE;

    if (!program_is_up(p, PROGRAM_VSOCK) || (!find_request(p) && !program_one_in(p, 4)))
        return;
    if (send_packet(p, op, 0))
        program_kick(p, PROGRAM_VSOCK, TX);
}

/* A chain of descriptors that are whatever comes: loops, indirect ones, none of memory. */
static void bad_chain(struct program *p)
{
    unsigned device = program_below(p, PROGRAM_DEVICES);
    unsigned queue = device == PROGRAM_VSOCK ? program_below(p, PROGRAM_QUEUES) : 0;
    uint32_t size;

    if (!p->wild || !program_is_up(p, device))
        return;
    size = p->devices[device].queues[queue].size;
    for (uint32_t n = 1 + program_below(p, 4); n > 0; n--)
        program_describe(p, device, queue, n - 1, program_address(p), program_length(p),
                         (uint16_t)program_below(p, 9), (uint16_t)program_below(p, size + 2));
    program_offer(p, device, queue, (uint16_t)program_below(p, size + 2));
    if (program_one_in(p, 4))
        program_store(p, program_avail(p, device, queue) + 2, 2, program_any(p));
    program_kick(p, device, queue);
}

/* Pieces that are right by themselves, in a chain that loops or leads out of the table. */
static void long_chain(struct program *p)
{
    unsigned device = program_below(p, PROGRAM_DEVICES);
    unsigned queue = device == PROGRAM_VSOCK ? program_below(p, PROGRAM_QUEUES) : 0;
    uint16_t flags = DESC_NEXT | (device == PROGRAM_VSOCK && queue != TX ? DESC_WRITE : 0);
    uint16_t size, at;

    if (!p->wild || !program_is_up(p, device))
        return;
    size = p->devices[device].queues[queue].size;
    at = (uint16_t)program_below(p, size);
    for (uint16_t i = 0; i < size; i++)
        program_describe(p, device, queue, i, program_data(p, i), 64, flags,
                         i != at                ? (uint16_t)(i + 1)
                         : program_one_in(p, 2) ? 0
                                                : size);
    /* Behind the table, of requests the status. */
    program_describe(p, device, queue, size, program_data(p, 15), 64,
                     queue == TX && device == PROGRAM_VSOCK ? 0 : DESC_WRITE, 0);
    program_offer(p, device, queue, 0);
    program_kick(p, device, queue);
}

/* Rings written to while the device may look at them. */
static void scribble(struct program *p)
{
    unsigned device = program_below(p, PROGRAM_DEVICES);
    uint64_t base = program_desc(p, device, program_below(p, PROGRAM_QUEUES));

    if (!p->wild)
        return;
    /* Without an exit of a CPU's they cost little. */
    for (uint32_t n = (1 + program_below(p, 16)) * (p->world->has_cpu ? 64 : 1); n > 0; n--)
        program_store(p, base + program_below(p, 0x1000 / 8) * 8, 8, program_any(p));
}

static void do_on_cpu(struct program *p, enum program_act act, uint32_t len, uint64_t at)
{
    struct program_op op = {.act = act, .len = len, .at = at, .value = program_any(p)};

    (void)p->world->run(p->world->context, &op);
}

static void port(struct program *p)
{
    do_on_cpu(p, program_one_in(p, 2) ? PROGRAM_PORT_IN : PROGRAM_PORT_OUT,
              1u << program_below(p, 3),
              program_below(p, program_one_in(p, 2) ? 1u << 16 : 0x500));
}

static void msr(struct program *p)
{
    static const struct {
        uint32_t first, n;
    } ranges[] = {
        {0, 0x2000},         {0x10, 0x20},       {0x174, 3},        {0x200, 0x70},
        {0x6e0, 1},          {0x800, 0x100},     {0x40000000, 256}, {0x4b564d00, 8},
        {0xc0000000, 0x120}, {0xc0010000, 0x20}, {0xc0010100, 64},  {0xc0011000, 64},
    };
    uint32_t which = program_below(p, COUNT_OF(ranges) + 1);
    uint64_t at = which == COUNT_OF(ranges)
                      ? (uint32_t)program_any(p)
                      : ranges[which].first + program_below(p, ranges[which].n);

    do_on_cpu(p, program_one_in(p, 2) ? PROGRAM_MSR_READ : PROGRAM_MSR_WRITE, 8, at);
}

static void hyper_call(struct program *p)
{
    do_on_cpu(p, PROGRAM_HYPER_CALL, 8, program_below(p, 16));
}

static void (*const steps[])(struct program *p) = {
    set_up,
    reset,
    registers,
    move_queue,
    kicks,
    nowhere,
    serial,
    host,
    host,
    read_disk,
    read_disk,
    answer,
    answer,
    give_buffers,
    flood,
    bad_chain,
    long_chain,
    send_packets,
    scribble,
    send_packets,
    give_buffers,
    /* With a CPU. */
    port,
    msr,
    hyper_call,
};
#define STEPS_WITHOUT_CPU (COUNT_OF(steps) - 3u)

static void run(struct program *p)
{
    uint32_t n_steps = p->world->has_cpu ? COUNT_OF(steps) : STEPS_WITHOUT_CPU;

    p->wild = program_one_in(p, p->bytes == NULL ? WILD_ONE_IN_SEEDS : WILD_ONE_IN_BYTES);
    for (uint32_t n = 1 + program_below(p, STEPS_MAX); n > 0; n--)
        steps[program_below(p, n_steps)](p);
}

void program_init(struct program *p, const struct program_world *world)
{
    *p = (struct program){.world = world, .peer_port = FIRST_PORT};
}

void program_run_seed(struct program *p, uint64_t seed)
{
    p->bytes = NULL;
    p->state = seed;
    run(p);
}

void program_run_bytes(struct program *p, const uint8_t *bytes, size_t size)
{
    p->bytes = bytes;
    p->left = size;
    while (p->left > 0)
        run(p);
}
