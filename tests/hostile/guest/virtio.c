/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of a virtio driver as is needed to take the driver's commands over vsock, and what a
 * bad one does.
 */
#include "tests/hostile/guest/guest.h"

#define REG_DRIVER_FEATURES     0x20u
#define REG_DRIVER_FEATURES_SEL 0x24u
#define REG_QUEUE_SEL           0x30u
#define REG_QUEUE_NUM           0x38u
#define REG_QUEUE_READY         0x44u
#define REG_QUEUE_NOTIFY        0x50u
#define REG_STATUS              0x70u
#define REG_QUEUE_DESC          0x80u
#define REG_QUEUE_AVAIL         0x90u
#define REG_QUEUE_USED          0xa0u

#define STATUS_ALL 15u /* acknowledge, driver, driver ok, features ok */

#define QUEUE_SIZE 128u
#define N_BUFFERS  16u

#define DESC_NEXT  1u
#define DESC_WRITE 2u

struct queue {
    struct {
        uint64_t addr;
        uint32_t len;
        uint16_t flags, next;
    } desc[QUEUE_SIZE];
    volatile struct {
        uint16_t flags, index, ring[QUEUE_SIZE];
    } avail;
    uint8_t padding[1024];
    volatile struct {
        uint16_t flags, index;
        struct {
            uint32_t id, len;
        } ring[QUEUE_SIZE];
    } used __attribute__((aligned(8)));
    uint16_t seen;
} __attribute__((aligned(4096)));

enum { RX, TX, EVENT };

struct packet {
    uint64_t src_cid, dst_cid;
    uint32_t src_port, dst_port, len;
    uint16_t type, op;
    uint32_t flags, buf_alloc, fwd_cnt;
} __attribute__((packed));

enum { OP_REQUEST = 1, OP_RESPONSE, OP_RST, OP_SHUTDOWN, OP_RW, OP_CREDIT_UPDATE };

#define GUEST_CID  3u
#define HOST_CID   2u
#define GUEST_PORT 1024u
#define STREAM     1u
#define BUF_ALLOC  65536u

static struct queue vsock_queues[3], blk_queue;
static uint8_t rx_buffers[N_BUFFERS][4096] __attribute__((aligned(4096)));
static uint8_t tx_buffer[8192] __attribute__((aligned(4096)));
static uint8_t event_buffers[4][8];
static struct {
    uint32_t type, reserved;
    uint64_t sector;
    uint8_t status;
} blk_request;

static uint32_t peer_port, received;
static bool is_open, was_closed;
static struct vsock_command command;
static uint32_t command_bytes;

static uint64_t gpa_of(const volatile void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void set_queue(uint64_t base, uint32_t index, struct queue *q)
{
    store32(base + REG_QUEUE_SEL, index);
    store32(base + REG_QUEUE_NUM, QUEUE_SIZE);
    store32(base + REG_QUEUE_DESC, (uint32_t)gpa_of(q->desc));
    store32(base + REG_QUEUE_DESC + 4, 0);
    store32(base + REG_QUEUE_AVAIL, (uint32_t)gpa_of(&q->avail));
    store32(base + REG_QUEUE_AVAIL + 4, 0);
    store32(base + REG_QUEUE_USED, (uint32_t)gpa_of(&q->used));
    store32(base + REG_QUEUE_USED + 4, 0);
    store32(base + REG_QUEUE_READY, 1);
}

static void start_device(uint64_t base, struct queue *queues, uint32_t n)
{
    store32(base + REG_STATUS, 0);
    store32(base + REG_STATUS, 1);
    store32(base + REG_STATUS, 3);
    store32(base + REG_DRIVER_FEATURES_SEL, 1);
    store32(base + REG_DRIVER_FEATURES, 1); /* VERSION_1 */
    store32(base + REG_STATUS, 11);
    for (uint32_t i = 0; i < n; i++)
        set_queue(base, i, &queues[i]);
    store32(base + REG_STATUS, STATUS_ALL);
    if (load32(base + REG_STATUS) != STATUS_ALL)
        lost("virtio status", load32(base + REG_STATUS));
}

static void offer(struct queue *q, uint16_t id)
{
    q->avail.ring[q->avail.index % QUEUE_SIZE] = id;
    __asm__ volatile("" : : : "memory");
    q->avail.index++;
}

static void kick(uint64_t base, uint32_t queue)
{
    store32(base + REG_QUEUE_NOTIFY, queue);
}

void blk_start(void)
{
    start_device(LAYOUT_BLK_BASE, &blk_queue, 1);
}

static void describe(struct queue *q, uint16_t id, const volatile void *at, uint32_t len,
                     uint16_t flags)
{
    q->desc[id].addr = gpa_of(at);
    q->desc[id].len = len;
    q->desc[id].flags = flags;
    q->desc[id].next = (uint16_t)(id + 1);
}

void blk_read(uint64_t sector, void *to)
{
    struct queue *q = &blk_queue;

    blk_request.type = 0;
    blk_request.sector = sector;
    describe(q, 0, &blk_request, 16, DESC_NEXT);
    describe(q, 1, to, 512, DESC_NEXT | DESC_WRITE);
    describe(q, 2, &blk_request.status, 1, DESC_WRITE);
    offer(q, 0);
    kick(LAYOUT_BLK_BASE, 0);
    while (q->used.index != q->avail.index)
        __asm__ volatile("pause");
}

void vsock_start(void)
{
    struct queue *rx = &vsock_queues[RX], *event = &vsock_queues[EVENT];

    for (uint16_t i = 0; i < N_BUFFERS; i++) {
        rx->desc[i].addr = gpa_of(rx_buffers[i]);
        rx->desc[i].len = sizeof(rx_buffers[i]);
        rx->desc[i].flags = DESC_WRITE;
        offer(rx, i);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(event_buffers); i++) {
        event->desc[i].addr = gpa_of(event_buffers[i]);
        event->desc[i].len = sizeof(event_buffers[i]);
        event->desc[i].flags = DESC_WRITE;
        offer(event, (uint16_t)i);
    }
    start_device(LAYOUT_VSOCK_BASE, vsock_queues, 3);
    kick(LAYOUT_VSOCK_BASE, RX);
    kick(LAYOUT_VSOCK_BASE, EVENT);
}

/* One packet whose payload is in tx_buffer already, behind its header. */
void vsock_send_packet(uint16_t op, uint32_t len, uint32_t flags, uint32_t dst_port,
                       uint64_t dst_cid)
{
    struct queue *q = &vsock_queues[TX];
    struct packet p = {
        .src_cid = GUEST_CID,
        .dst_cid = dst_cid,
        .src_port = GUEST_PORT,
        .dst_port = dst_port,
        .len = len,
        .type = STREAM,
        .op = op,
        .flags = flags,
        .buf_alloc = BUF_ALLOC,
        .fwd_cnt = received,
    };
    uint16_t id = q->avail.index % QUEUE_SIZE;

    memcpy(tx_buffer, &p, sizeof(p));
    q->desc[id].addr = gpa_of(tx_buffer);
    q->desc[id].len = (uint32_t)sizeof(p) + len;
    q->desc[id].flags = 0;
    offer(q, id);
    kick(LAYOUT_VSOCK_BASE, TX);
}

void vsock_send(const void *data, uint32_t len)
{
    memcpy(tx_buffer + sizeof(struct packet), data, len);
    vsock_send_packet(OP_RW, len, 0, peer_port, HOST_CID);
}

static void handle_packet(const uint8_t *bytes)
{
    struct packet p;

    memcpy(&p, bytes, sizeof(p));
    switch (p.op) {
    case OP_REQUEST:
        peer_port = p.src_port;
        received = 0;
        command_bytes = 0;
        is_open = true;
        vsock_send_packet(OP_RESPONSE, 0, 0, peer_port, HOST_CID);
        return;
    case OP_RW:
        received += p.len;
        for (uint32_t i = 0; i < p.len && command_bytes < sizeof(command); i++)
            ((uint8_t *)&command)[command_bytes++] = bytes[sizeof(p) + i];
        return;
    case OP_SHUTDOWN:
        vsock_send_packet(OP_RST, 0, 0, peer_port, HOST_CID);
        __attribute__((fallthrough));
    case OP_RST:
        was_closed = was_closed || is_open;
        is_open = false;
        return;
    default:
        return;
    }
}

void vsock_poll(void)
{
    struct queue *rx = &vsock_queues[RX], *event = &vsock_queues[EVENT];

    if (event->used.index != event->seen) {
        offer(event, (uint16_t)event->used.ring[event->seen % QUEUE_SIZE].id);
        event->seen++;
        kick(LAYOUT_VSOCK_BASE, EVENT);
    }
    if (rx->used.index != rx->seen) {
        uint16_t id = (uint16_t)rx->used.ring[rx->seen % QUEUE_SIZE].id;

        handle_packet(rx_buffers[id % N_BUFFERS]);
        rx->seen++;
        offer(rx, id);
        kick(LAYOUT_VSOCK_BASE, RX);
    }
    __asm__ volatile("pause");
}

void vsock_echo(void)
{
    uint32_t before = received;

    vsock_poll();
    if (is_open && received != before)
        vsock_send_packet(OP_RW, received - before, 0, peer_port, HOST_CID);
}

bool vsock_was_closed(void)
{
    return was_closed;
}

bool vsock_take_command(struct vsock_command *ret_command)
{
    if (command_bytes < sizeof(command))
        return false;
    *ret_command = command;
    command_bytes = 0;
    return true;
}

/* Attacks. */

static uint64_t random_device(void)
{
    return random_below(2) ? LAYOUT_BLK_BASE : LAYOUT_VSOCK_BASE;
}

/* An initialisation that stops anywhere, with wrong turns. */
void virtio_attack_status(void)
{
    uint64_t base = random_device();
    bool is_blk = base == LAYOUT_BLK_BASE;
    uint64_t steps = random_below(12);

    store32(base + REG_STATUS, 0);
    for (uint64_t i = 0; i < steps; i++) {
        switch (i) {
        case 0:
            store32(base + REG_STATUS, 1);
            break;
        case 1:
            store32(base + REG_STATUS, 3);
            break;
        case 2:
            store32(base + REG_DRIVER_FEATURES_SEL, (uint32_t)random_below(3));
            store32(base + REG_DRIVER_FEATURES, (uint32_t)random_next());
            break;
        case 3:
            store32(base + REG_DRIVER_FEATURES_SEL, 0);
            store32(base + REG_DRIVER_FEATURES, 0);
            store32(base + REG_DRIVER_FEATURES_SEL, 1);
            store32(base + REG_DRIVER_FEATURES, 1);
            break;
        case 4:
            store32(base + REG_STATUS, 11);
            break;
        case 5:
            set_queue(base, 0, is_blk ? &blk_queue : &vsock_queues[0]);
            break;
        case 6:
            if (random_below(2))
                store32(base + REG_QUEUE_READY, 0);
            break;
        case 7:
            set_queue(base, 1, &vsock_queues[1]);
            break;
        case 8:
            set_queue(base, 2, &vsock_queues[2]);
            break;
        case 9:
            store32(base + REG_STATUS, random_below(2) ? STATUS_ALL : 128 | 11);
            break;
        default:
            kick(base, (uint32_t)random_below(4));
            break;
        }
    }
}

/* Rings full of noise, and kicks. */
void virtio_attack_rings(void)
{
    struct queue *q = random_below(2) ? &blk_queue : &vsock_queues[random_below(3)];
    bool whole = random_below(2);

    for (unsigned i = 0; i < QUEUE_SIZE; i++) {
        q->desc[i].addr = whole ? random_next() : random_address();
        q->desc[i].len = (uint32_t)random_below(whole ? 1ull << 32 : 8192);
        q->desc[i].flags = (uint16_t)random_below(8);
        q->desc[i].next = (uint16_t)random_below(QUEUE_SIZE + (whole ? 8 : 0));
        q->avail.ring[i] = (uint16_t)random_below(QUEUE_SIZE + (whole ? 8 : 0));
    }
    q->avail.index = (uint16_t)(q->avail.index + random_below(QUEUE_SIZE + (whole ? 9 : 1)));
    for (uint32_t i = 0; i < 3; i++) {
        kick(LAYOUT_BLK_BASE, i);
        kick(LAYOUT_VSOCK_BASE, i);
    }
}

static void touch_register(uint64_t at)
{
    switch (random_below(8)) {
    case 0:
        store8(at, (uint8_t)random_next());
        break;
    case 1:
        (void)*(volatile uint64_t *)(uintptr_t)at;
        break;
    case 2:
        *(volatile uint64_t *)(uintptr_t)at = random_next();
        break;
    case 3:
        (void)load32(at);
        break;
    default:
        store32(at, random_below(2) ? (uint32_t)random_below(16) : (uint32_t)random_next());
        break;
    }
}

void virtio_attack_registers(void)
{
    for (unsigned i = 0; i < 64; i++) {
        uint64_t base = random_below(8) ? random_device() : LAYOUT_SERIAL_BASE + PAGE;

        touch_register(
            base + (random_below(4) ? random_below(0x110) & ~3ull : random_below(PAGE - 8)));
    }
}

/* As many requests as the queue takes, each of many pieces all over memory. */
static void ask_blk(unsigned n)
{
    struct queue *q = &blk_queue;

    blk_request.type = 0;
    blk_request.sector = random_below(64);
    q->desc[0].addr = gpa_of(&blk_request);
    q->desc[0].len = 16;
    q->desc[0].flags = DESC_NEXT;
    q->desc[0].next = 1;
    for (unsigned i = 1; i < n; i++) {
        q->desc[i].addr = random_page();
        q->desc[i].len = PAGE;
        q->desc[i].flags = DESC_NEXT | DESC_WRITE;
        q->desc[i].next = (uint16_t)(i + 1);
    }
    q->desc[n].addr = gpa_of(&blk_request.status);
    q->desc[n].len = 1;
    q->desc[n].flags = DESC_WRITE;
    for (unsigned i = 0; i < QUEUE_SIZE; i++)
        q->avail.ring[i] = 0;
    __asm__ volatile("" : : : "memory");
    q->avail.index = (uint16_t)(q->used.index + QUEUE_SIZE);
    kick(LAYOUT_BLK_BASE, 0);
}

void virtio_attack_blk(void)
{
    ask_blk((unsigned)(2 + random_below(64)));
}

/* The reset comes while a device writes. */
void virtio_attack_kick(void)
{
    print("end\n");
    for (;;)
        ask_blk((unsigned)(2 + random_below(16)));
}

/* More than the host takes: it does not read. */
void vsock_attack_flood(void)
{
    for (unsigned i = 0; i < 80; i++)
        vsock_send_packet(OP_RW, 4096, 0, peer_port, HOST_CID);
}

void vsock_attack_packets(void)
{
    for (unsigned i = 0; i < 24; i++) {
        uint32_t len = (uint32_t)random_below(512);

        fill_random(tx_buffer + sizeof(struct packet), 512);
        vsock_send_packet((uint16_t)random_below(9), len, (uint32_t)random_below(4),
                          random_below(2) ? peer_port : (uint32_t)random_next(),
                          random_below(4) ? HOST_CID : random_next());
    }
}

/* One direction closed, bytes and a credit request behind it. */
void vsock_attack_half(void)
{
    vsock_send_packet(OP_RW, 100, 0, peer_port, HOST_CID);
    vsock_send_packet(OP_SHUTDOWN, 0, (uint32_t)(1 + random_below(3)), peer_port, HOST_CID);
    vsock_send_packet(OP_RW, 100, 0, peer_port, HOST_CID);
    vsock_send_packet(7, 0, 0, peer_port, HOST_CID);
}
