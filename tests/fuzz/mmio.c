/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of register accesses, with writes to guest memory, kicks and snapshots in between,
 * against a disk, that of a skill, or a vsock. The queues of an active device must not move,
 * and what was saved must load.
 */
#include <linux/virtio_mmio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "tests/unit/fake_driver.h"
#include "vmm/virtio/blk.h"
#include "vmm/virtio/vsock.h"

#define STEPS_MAX   300u
#define IMAGE_SIZE  (64u * 512u)
#define STATUS_BITS 0xcfu

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct target {
    struct fake_driver d;
    struct virtio_mmio t;
    struct blk blk;
    struct vsock vsock;
    int image;
    int pair[2];
    bool is_vsock;
    bool is_skill; /* a skill's disk */
};

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void make(struct target *f, bool is_vsock, bool is_skill)
{
    struct err err = {0};

    memset(f, 0, sizeof(*f));
    f->is_vsock = is_vsock;
    f->is_skill = is_skill && !is_vsock;
    f->image = f->pair[0] = f->pair[1] = -1;
    if (is_vsock) {
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f->pair) == 0);
        check(vsock_init(&f->vsock, 3, f->pair[1], &err) == 0);
    } else {
        f->image = memfd_create("image", MFD_CLOEXEC);
        check(ftruncate(f->image, IMAGE_SIZE) == 0);
        if (f->is_skill) {
            blk_init_skill(&f->blk);
        } else {
            check(blk_init(&f->blk, f->image, "disk", &err) == 0);
        }
    }
}

static void finish(struct target *f)
{
    vsock_finish(&f->vsock);
    if (f->is_skill) {
        blk_skill_ops.finish(&f->blk.device);
    }
    fd_close(&f->image);
    fd_close(&f->pair[0]);
    fd_close(&f->pair[1]);
    fake_driver_finish(&f->d);
}

static struct virtio_device *device_of(struct target *f)
{
    return f->is_vsock ? &f->vsock.device : &f->blk.device;
}

/* A disk of two files for a skill that has none, more than they hold in the second. */
static void attach(struct target *f)
{
    static const uint64_t bytes[] = {8 * 512, IMAGE_SIZE};
    int fds[] = {dup(f->image), dup(f->image)};
    bool has_one = f->blk.n_parts > 0;

    check((blk_attach(&f->blk, fds, bytes, NULL) == 0) == !has_one);
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

/* Saves f and goes on as what was restored, unless the device had failed. */
static void snapshot(struct target *f)
{
    uint8_t before[VIRTIO_MMIO_STATE_MAX];
    uint8_t after[VIRTIO_MMIO_STATE_MAX];
    struct bytes_writer w = bytes_writer_init(before, sizeof(before));
    struct bytes_writer w2 = bytes_writer_init(after, sizeof(after));
    bool failed = virtio_mmio_failure(&f->t) != NULL;
    struct bytes_reader r;
    struct fake_driver d;
    struct err err = {0};
    int result;

    virtio_mmio_save(&f->t, &w);
    check(!w.bad);
    fake_driver_take_over(&d, &f->d);
    finish(f);
    make(f, f->is_vsock, f->is_skill);
    fake_driver_take_over(&f->d, &d);
    fake_driver_attach(&f->d, &f->t, device_of(f));
    r = bytes_reader_init(before, w.len);
    result = virtio_mmio_load(&f->t, &r, &err);
    if (failed) {
        check(result < 0 && err.code != 0);
        /* What was half loaded is thrown away. */
        fake_driver_attach(&f->d, &f->t, device_of(f));
        return;
    }
    check(result == 0 && bytes_done(&r));
    virtio_mmio_save(&f->t, &w2);
    check(w2.len == w.len && memcmp(before, after, w.len) == 0);
    virtio_mmio_resume(&f->t);
}

static void step(struct target *f, struct bytes_reader *r)
{
    static const uint32_t lens[] = {4, 4, 4, 1, 2, 8};
    uint8_t op = bytes_get_u8(r);
    uint8_t value[8] = {0};
    uint16_t offset;
    uint32_t len = lens[op / 8 % 6];

    switch (op % 8) {
    case 0:
    case 1:
        offset = bytes_get_u16(r);
        bytes_get(r, value, len < 4 ? len : 4);
        virtio_mmio_write(&f->t, offset % 0x200, value, len);
        return;
    case 2:
        offset = bytes_get_u8(r);
        virtio_mmio_read(&f->t, offset * 2u, value, len);
        return;
    case 3:
    case 4:
        /* Guest memory: rings and descriptors live below 64 KiB. */
        offset = bytes_get_u16(r);
        bytes_get(r, value, sizeof(value));
        (void)memory_write(&f->d.mem, offset, value, sizeof(value));
        return;
    case 5:
        virtio_mmio_notify(&f->t, bytes_get_u8(r) % 4u);
        return;
    case 6:
        if (f->is_vsock) {
            (void)vsock_connect(&f->vsock);
            (void)send(f->pair[0], value, sizeof(value), MSG_NOSIGNAL);
            vsock_host_ready(&f->vsock, bytes_get_u8(r));
        }
        if (f->is_skill) {
            attach(f);
        }
        (void)virtio_mmio_serve_more(&f->t);
        return;
    default:
        snapshot(f);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct target f;
    struct bytes_reader r = bytes_reader_init(data, size);
    uint8_t kind = bytes_get_u8(&r);

    make(&f, kind & 1, kind & 4);
    fake_driver_init(&f.d);
    fake_driver_attach(&f.d, &f.t, device_of(&f));
    if ((kind & 2) != 0) {
        fake_driver_start(&f.d, f.is_vsock ? 3 : 1, 16);
    }
    for (unsigned int i = 0; i < STEPS_MAX && bytes_left(&r) > 0; i++) {
        bool was_active = virtio_mmio_is_active(&f.t);
        struct virtqueue before = f.t.queues[0];

        step(&f, &r);
        check((f.t.status & ~STATUS_BITS) == 0);
        check((virtio_mmio_failure(&f.t) != NULL) ==
              ((fake_read32(&f.d, VIRTIO_MMIO_STATUS) & 0x40) != 0));
        if (was_active && virtio_mmio_is_active(&f.t)) {
            /* It may have been reset and started again in one step only by a loop of ours. */
            check(f.t.queues[0].desc == before.desc && f.t.queues[0].avail == before.avail &&
                  f.t.queues[0].used == before.used && f.t.queues[0].size == before.size &&
                  f.t.queues[0].ready);
        }
        if (virtio_mmio_is_active(&f.t)) {
            check(f.t.queues[0].next_avail == f.t.queues[0].next_used);
        }
        check(!f.is_vsock || f.vsock.ring_len <= VSOCK_BUF_ALLOC);
    }
    finish(&f);
    return 0;
}
