/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All devices of a machine, their transport and queues, as programs of tests/hostile/programs.h
 * drive them, with a host that sends, reads and closes, resets, and snapshots in between. Eight
 * bytes are the seed of so many programs; any other input is what their choices are made from.
 * After each access devices_oracle.h looks at what became of it.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "tests/fuzz/devices_oracle.h"
#include "tests/hostile/programs.h"

#define RAM_BYTES  0x50000u
#define LOW_BYTES  0x40000u
#define ARENA      0x8000u
#define PATTERN    (ARENA + 0x20000u)
#define GUARD      4096u
#define DISK_BYTES (64u * 512u)
#define INPUT_MAX  2048u
#define PROGRAMS   32u
#define TURNS_MAX  10000u
/* The host reads what is left. */
#define LAST_TURNS  8
#define DEVICES     PROGRAM_DEVICES
#define STATE_TOTAL (DEVICES * VIRTIO_MMIO_STATE_MAX)

#define REG_NOTIFY 0x50u
#define REG_STATUS 0x70u
#define REG_CONFIG 0x100u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct machine m;
static struct oracle oracle;
static struct program program;
static int host_end;
static int disk;
static uint8_t scratch[1 << 16];
static bool guest_was_done; /* with its connection */

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

/* A new connection to the host; the old one's near end is closed. */
static int make_stream(void)
{
    int pair[2];

    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    fd_close(&host_end);
    fd_close(&m.config.host.vsock_fd);
    host_end = pair[0];
    guest_was_done = false;
    oracle_forget_stream(&oracle);
    return pair[1];
}

static void forget_driver(void)
{
    for (size_t i = 0; i < DEVICES; i++) {
        program.devices[i].active = false;
    }
}

/* The state of all devices; the bytes of it. */
static size_t save(uint8_t out[STATE_TOTAL])
{
    struct bytes_writer w = bytes_writer_init(out, STATE_TOTAL);

    for (size_t i = 0; i < DEVICES; i++) {
        virtio_mmio_save(&m.devices[i].mmio, &w);
    }
    check(!w.bad);
    return w.len;
}

/* As after the restore of a snapshot that was taken before any device had a driver. */
static void renew(void)
{
    static uint8_t fresh[STATE_TOTAL], now[STATE_TOTAL];
    static size_t fresh_len;

    machine_renew_devices(&m, make_stream());
    if (fresh_len == 0) {
        fresh_len = save(fresh);
    }
    check(save(now) == fresh_len && memcmp(now, fresh, fresh_len) == 0);
    for (size_t i = 0; i < DEVICES; i++) {
        oracle_check_reset(&oracle, i);
    }
    check(m.vsock->state == VSOCK_IDLE && m.vsock->ring_len == 0);
    forget_driver();
}

/* Saves the devices and goes on as what was restored; one that failed is not taken back. */
static void snapshot(void)
{
    static uint8_t before[STATE_TOTAL], after[STATE_TOTAL];
    size_t len = save(before);
    struct bytes_reader r = bytes_reader_init(before, len);
    bool active[DEVICES];
    int result = 0;

    for (size_t i = 0; i < DEVICES; i++) {
        active[i] = program.devices[i].active;
        result |= virtio_mmio_failure(&m.devices[i].mmio) ? -1 : 0;
    }
    renew();
    for (size_t i = 0; i < DEVICES && result == 0; i++) {
        check(virtio_mmio_load(&m.devices[i].mmio, &r, NULL) == 0);
        program.devices[i].active = active[i];
    }
    if (result < 0) {
        return;
    }
    check(save(after) == len && memcmp(before, after, len) == 0);
    oracle_before(&oracle, 0, DEVICES - 1);
    for (size_t i = 0; i < DEVICES; i++) {
        virtio_mmio_resume(&m.devices[i].mmio);
    }
    oracle_after(&oracle, 0, DEVICES - 1);
}

/* What the host sent, to a guest that gets no more than it takes. */
static void hand_over(short revents)
{
    const struct vsock *v = m.vsock;
    uint32_t in_flight = v->sent - v->peer_fwd_cnt;
    uint32_t credit = in_flight < v->peer_buf_alloc ? v->peer_buf_alloc - in_flight : 0;
    uint32_t sent = v->sent;

    machine_vsock_ready(&m, revents);
    check(v->sent - sent <= credit);
}

/* Turns of the machine's loop until there is nothing left to do. */
static void come_to_rest(void)
{
    for (unsigned int turns = 0;; turns++) {
        enum vsock_state state;
        bool more;
        int events;
        struct pollfd p;

        check(turns < TURNS_MAX);
        oracle_before(&oracle, 0, DEVICES - 1);
        events = machine_vsock_wait(&m, &state, &more);
        p = (struct pollfd){.fd = events < 0 ? -1 : m.config.host.vsock_fd,
                            .events = (short)events};
        if (poll(&p, 1, 0) > 0) {
            oracle_after(&oracle, 0, DEVICES - 1);
            oracle_before(&oracle, 0, DEVICES - 1);
            hand_over(p.revents);
        } else if (!more) {
            oracle_after(&oracle, 0, DEVICES - 1);
            return;
        }
        oracle_after(&oracle, 0, DEVICES - 1);
    }
}

static void receive(size_t len)
{
    ssize_t got = recv(host_end, scratch, len < sizeof(scratch) ? len : sizeof(scratch), 0);

    if (got > 0) {
        oracle_received(&oracle, scratch, (size_t)got);
    }
}

static void attach_disk(void)
{
    static const uint64_t bytes[] = {8 * 512, DISK_BYTES};
    int fds[] = {fcntl(disk, F_DUPFD_CLOEXEC, 3), fcntl(disk, F_DUPFD_CLOEXEC, 3)};
    bool has_one = m.disk->n_parts > 0;

    check((machine_attach_disk(&m, fds, bytes, NULL) == 0) == !has_one);
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

/* What the host does when it is its turn. */
static void host_turn(uint64_t what, uint64_t value)
{
    switch (what) {
    case 0:
    case 1:
    case 2:
        oracle_before(&oracle, 0, DEVICES - 1);
        (void)machine_vsock_connect(&m);
        oracle_after(&oracle, 0, DEVICES - 1);
        return;
    case 3:
    case 4:
        memset(scratch, (int)value, sizeof(scratch));
        (void)send(host_end, scratch, value, MSG_NOSIGNAL);
        return;
    case 5:
    case 6:
        receive(value);
        return;
    case 7:
        (void)shutdown(host_end, (int)(value % 3));
        return;
    case 8:
        fd_close(&host_end);
        return;
    case 9:
        snapshot();
        return;
    case 10:
        renew();
        return;
    case 11:
        attach_disk();
        return;
    default:
        come_to_rest();
        return;
    }
}

/* Here the guest goes on after a rule that it broke. */
static void go_on(void)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (virtio_mmio_failure(&m.devices[i].mmio)) {
            program.devices[i].active = false;
        }
    }
    m.end = MACHINE_RUNS;
    m.end_err = (struct err){0};
}

/* The rule that was broken is the machine's end, in words. */
static void check_end(size_t index)
{
    const char *failure = virtio_mmio_failure(&m.devices[index].mmio);

    check((failure != NULL) == (m.end == MACHINE_RULES));
    check(!failure || strstr(m.end_err.message, failure));
}

static void check_vsock(void)
{
    const struct vsock *v = m.vsock;
    static uint32_t last_received;

    /* A guest that ended the connection says nothing more. */
    check(!v->guest_done || !guest_was_done || v->received == last_received);
    guest_was_done = v->guest_done;
    last_received = v->received;
    check(v->ring_len <= VSOCK_BUF_ALLOC && v->n_replies <= VSOCK_REPLIES_MAX);
    check(v->received - v->fwd_cnt == v->ring_len || v->state == VSOCK_CLOSED);
    check(vsock_poll_events(v) == -1 || v->state == VSOCK_CONNECTED ||
          v->state == VSOCK_CLOSING);
}

/* An access outside of memory. */
static uint64_t access_device(const struct program_op *op)
{
    bool is_store = op->act == PROGRAM_STORE;
    uint64_t index = (op->at - LAYOUT_DEVICE_BASE(0)) / LAYOUT_DEVICE_SIZE;
    uint64_t offset = op->at % LAYOUT_DEVICE_SIZE;
    uint64_t value = op->value;
    /* A store of any register goes on with what was left behind. */
    bool looks = index < DEVICES && is_store;

    if (looks) {
        oracle_before(&oracle, index, index);
    }
    machine_mmio(&m, op->at, &value, op->len, is_store);
    if (looks) {
        oracle_after(&oracle, index, index);
    }
    /* Behind the configuration there is nothing to be read. */
    check(is_store || index >= DEVICES || offset < REG_CONFIG + VIRTIO_CONFIG_SIZE_MAX ||
          value == 0);
    if (!looks) {
        return value;
    }
    check_end(index);
    if (op->len != 4 || (uint32_t)op->value != 0) {
        return value;
    }
    if (offset == REG_STATUS) {
        oracle_check_reset(&oracle, index);
    }
    if (offset == REG_NOTIFY && index != PROGRAM_VSOCK) {
        oracle_check_served(&oracle, index);
    }
    return value;
}

static uint64_t run(void *context, const struct program_op *op)
{
    uint64_t value = 0;

    (void)context;
    check(op->len >= 1 && op->len <= 8);
    switch (op->act) {
    case PROGRAM_LOAD:
        if (memory_read(&m.memory, op->at, &value, op->len) < 0) {
            value = access_device(op);
        }
        break;
    case PROGRAM_STORE:
        if (memory_write(&m.memory, op->at, &op->value, op->len) == 0) {
            oracle_store(&oracle, op->at, &op->value, op->len);
        } else {
            (void)access_device(op);
        }
        break;
    case PROGRAM_HOST:
        host_turn(op->at, op->value);
        break;
    default:
        /* Without a CPU. */
        abort();
    }
    go_on();
    check_vsock();
    return value;
}

/* Once: memory with a page on either side that nobody may touch, a disk, and the devices. */
static void make_machine(void)
{
    uint8_t *host =
        mmap(NULL, RAM_BYTES + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    check(host != MAP_FAILED && mprotect(host + GUARD, RAM_BYTES, PROT_READ | PROT_WRITE) == 0);
    memory_init(&m.memory, host + GUARD, RAM_BYTES);
    m.kvm = kvm_init();
    m.wake_fd = -1;
    m.config.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    disk = memfd_create("disk", MFD_CLOEXEC);
    memset(scratch, 0xd5, DISK_BYTES);
    check(write(disk, scratch, DISK_BYTES) == DISK_BYTES);
    host_end = m.config.host.vsock_fd = -1;
    m.config.host.image_fd = disk;
    m.config.host.vsock_fd = make_stream();
    check(machine_make_devices(&m, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct program_world world = {
        .ram_bytes = RAM_BYTES, .low_bytes = LOW_BYTES, .arena = ARENA, .run = run};
    uint64_t seed;

    if (m.memory.host == NULL) {
        make_machine();
    }
    /* No two packets carry the same. */
    for (uint32_t i = 0; i < RAM_BYTES; i++) {
        m.memory.host[i] = i < PATTERN ? 0 : (uint8_t)(i * 0x9e3779b1u >> 24);
    }
    oracle_init(&oracle, &m);
    program_init(&program, &world);
    renew();
    go_on();
    if (size == sizeof(seed)) {
        memcpy(&seed, data, sizeof(seed));
        for (uint64_t i = 0; i < PROGRAMS; i++) {
            program_run_seed(&program, seed + i);
        }
    } else {
        program_run_bytes(&program, data, size < INPUT_MAX ? size : INPUT_MAX);
    }
    for (int i = 0; i < LAST_TURNS; i++) {
        come_to_rest();
        receive(sizeof(scratch));
    }
    check_vsock();
    return 0;
}
