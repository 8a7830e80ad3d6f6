/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/fake_driver.h"
#include "vmm/control.h"
#include "vmm/virtio/blk.h"

#define SECTORS  64u
#define SIZE     128u
#define LARGE    (1u << 20)
#define KICK_MAX (4u << 20) /* bytes read in one */
#define NEXT     VRING_DESC_F_NEXT
#define WR       VRING_DESC_F_WRITE
#define HEADER   FAKE_BUFFERS
#define STATUS   (FAKE_BUFFERS + 0x100)
#define DATA     (FAKE_BUFFERS + 0x1000)

struct fixture {
    struct fake_driver d;
    struct virtio_mmio t;
    struct blk b;
    int fd;
    uint8_t image[SECTORS * 512];
};

static int setup(void **state)
{
    static struct fixture f;
    struct err err = {0};

    fake_driver_init(&f.d);
    f.fd = memfd_create("image", MFD_CLOEXEC);
    for (size_t i = 0; i < sizeof(f.image); i++) {
        f.image[i] = (uint8_t)(i * 7 + i / 512);
    }
    if (f.fd < 0 || fd_write_full(f.fd, f.image, sizeof(f.image)) < 0 ||
        blk_init(&f.b, f.fd, "skillvm-root", &err) < 0) {
        return -1;
    }
    fake_driver_attach(&f.d, &f.t, &f.b.device);
    fake_driver_start(&f.d, 1, SIZE);
    *state = &f;
    return virtio_mmio_is_active(&f.t) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    fake_driver_finish(&f->d);
    fd_close(&f->fd);
    return 0;
}

static void put_header(struct fixture *f, uint32_t type, uint64_t sector)
{
    struct virtio_blk_outhdr header = {.type = htole32(type), .sector = htole64(sector)};

    memcpy(fake_at(&f->d, HEADER, sizeof(header)), &header, sizeof(header));
    *(uint8_t *)fake_at(&f->d, STATUS, 1) = 0xee;
}

/* Header, len bytes of data (none when 0) and status. The status; *ret_len the used length. */
static uint8_t request(struct fixture *f, uint32_t type, uint64_t sector, uint32_t len,
                       uint32_t *ret_len)
{
    uint32_t head;

    put_header(f, type, sector);
    fake_desc(&f->d, 0, 0, HEADER, 16, NEXT, len == 0 ? 2 : 1);
    fake_desc(&f->d, 0, 1, DATA, len, type == VIRTIO_BLK_T_OUT ? NEXT : NEXT | WR, 2);
    fake_desc(&f->d, 0, 2, STATUS, 1, WR, 0);
    fake_offer(&f->d, 0, 0);
    fake_kick(&f->d, 0);
    assert_true(fake_take_used(&f->d, 0, &head, ret_len));
    assert_int_equal(head, 0);
    return *(uint8_t *)fake_at(&f->d, STATUS, 1);
}

static void test_config(void **state)
{
    struct fixture *f = *state;
    uint64_t capacity;

    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_ID), VIRTIO_ID_BLOCK);
    virtio_mmio_read(&f->t, 0x100, &capacity, 8);
    assert_int_equal(le64toh(capacity), SECTORS);
    assert_int_equal(fake_read32(&f->d, 0x10c), SIZE - 2);
    fake_write32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 0);
    assert_true(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_FEATURES) & 1u << VIRTIO_BLK_F_RO);
}

static void test_reads(void **state)
{
    struct fixture *f = *state;
    uint32_t len;

    for (uint32_t n = 1; n <= SECTORS; n *= 2) {
        for (uint64_t sector = 0; sector + n <= SECTORS; sector += n) {
            memset(fake_at(&f->d, DATA, n * 512), 0, n * 512);
            assert_int_equal(request(f, VIRTIO_BLK_T_IN, sector, n * 512, &len),
                             VIRTIO_BLK_S_OK);
            assert_int_equal(len, n * 512 + 1);
            assert_memory_equal(fake_at(&f->d, DATA, n * 512), f->image + sector * 512,
                                n * 512);
        }
    }
    assert_int_equal(f->b.refused_count, 0);
}

static void test_scattered_read(void **state)
{
    struct fixture *f = *state;
    uint32_t head, len;
    /* Two sectors in pieces that end nowhere near a sector, the status glued to the last. */
    static const uint32_t pieces[] = {1, 700, 300, 23};
    uint8_t got[1024];
    uint32_t at = 0;

    put_header(f, VIRTIO_BLK_T_IN, 3);
    fake_desc(&f->d, 0, 10, HEADER, 5, NEXT, 11);
    fake_desc(&f->d, 0, 11, HEADER + 5, 11, NEXT, 20);
    for (uint16_t i = 0; i < 4; i++) {
        bool last = i == 3;

        fake_desc(&f->d, 0, (uint16_t)(20 + i), DATA + 0x1000u * i, pieces[i] + (last ? 1 : 0),
                  last ? WR : NEXT | WR, (uint16_t)(21 + i));
    }
    fake_offer(&f->d, 0, 10);
    fake_kick(&f->d, 0);
    assert_true(fake_take_used(&f->d, 0, &head, &len));
    assert_int_equal(head, 10);
    assert_int_equal(len, 1025);
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(got + at, fake_at(&f->d, DATA + 0x1000u * i, pieces[i]), pieces[i]);
        at += pieces[i];
    }
    assert_int_equal(at, 1024);
    assert_memory_equal(got, f->image + 3 * 512, 1024);
    assert_int_equal(*(uint8_t *)fake_at(&f->d, DATA + 0x3000 + 23, 1), VIRTIO_BLK_S_OK);
}

static void test_past_the_end(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint64_t sector;
        uint32_t len;
    } cases[] = {
        {SECTORS, 512},
        {SECTORS - 1, 1024},
        {0, (SECTORS + 1) * 512},
        {UINT64_MAX, 512},
        {UINT64_MAX, 513},
        {UINT64_MAX / 512, 512},
        {1, 511},
        {0, 513},
    };
    uint32_t len;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(fake_at(&f->d, DATA, 1024), 0x55, 1024);
        assert_int_equal(request(f, VIRTIO_BLK_T_IN, cases[i].sector, cases[i].len, &len),
                         VIRTIO_BLK_S_IOERR);
        assert_int_equal(len, 1);
        assert_int_equal(*(uint8_t *)fake_at(&f->d, DATA, 1), 0x55);
    }
    assert_int_equal(f->b.refused_count, sizeof(cases) / sizeof(cases[0]));
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, SECTORS, 0, &len), VIRTIO_BLK_S_OK);
    assert_null(virtio_mmio_failure(&f->t));
}

static void test_other_requests(void **state)
{
    struct fixture *f = *state;
    uint32_t len;
    uint8_t now[sizeof(f->image)];

    memset(fake_at(&f->d, DATA, 64), 0x55, 64);
    assert_int_equal(request(f, VIRTIO_BLK_T_GET_ID, 0, 20, &len), VIRTIO_BLK_S_OK);
    assert_int_equal(len, 21);
    assert_memory_equal(fake_at(&f->d, DATA, 21), "skillvm-root\0\0\0\0\0\0\0\0\x55", 21);
    memset(fake_at(&f->d, DATA, 64), 0x55, 64);
    assert_int_equal(request(f, VIRTIO_BLK_T_GET_ID, 0, 4, &len), VIRTIO_BLK_S_OK);
    assert_memory_equal(fake_at(&f->d, DATA, 5), "skil\x55", 5);
    assert_int_equal(request(f, VIRTIO_BLK_T_FLUSH, 0, 0, &len), VIRTIO_BLK_S_OK);
    assert_int_equal(request(f, VIRTIO_BLK_T_OUT, 0, 512, &len), VIRTIO_BLK_S_IOERR);
    assert_int_equal(request(f, VIRTIO_BLK_T_DISCARD, 0, 512, &len), VIRTIO_BLK_S_UNSUPP);
    assert_int_equal(request(f, 0xffffffff, 0, 512, &len), VIRTIO_BLK_S_UNSUPP);
    assert_int_equal(fd_pread_full(f->fd, now, sizeof(now), 0), sizeof(now));
    assert_memory_equal(now, f->image, sizeof(now));
}

static void test_no_status_byte(void **state)
{
    struct fixture *f = *state;

    put_header(f, VIRTIO_BLK_T_IN, 0);
    fake_desc(&f->d, 0, 0, HEADER, 16, 0, 0);
    fake_offer(&f->d, 0, 0);
    fake_kick(&f->d, 0);
    assert_non_null(virtio_mmio_failure(&f->t));
    /* And again from the start. */
    fake_driver_start(&f->d, 1, SIZE);
    fake_desc(&f->d, 0, 0, HEADER, 15, NEXT, 1);
    fake_desc(&f->d, 0, 1, STATUS, 1, WR, 0);
    fake_offer(&f->d, 0, 0);
    fake_kick(&f->d, 0);
    assert_non_null(virtio_mmio_failure(&f->t));
}

static void test_batch_is_one_interrupt(void **state)
{
    struct fixture *f = *state;
    uint32_t head, len;

    put_header(f, VIRTIO_BLK_T_IN, 1);
    for (uint16_t i = 0; i < 40; i++) {
        uint16_t first = (uint16_t)(3 * i);

        fake_desc(&f->d, 0, first, HEADER, 16, NEXT, (uint16_t)(first + 1));
        fake_desc(&f->d, 0, (uint16_t)(first + 1), DATA + 512u * i, 512, NEXT | WR,
                  (uint16_t)(first + 2));
        fake_desc(&f->d, 0, (uint16_t)(first + 2), STATUS, 1, WR, 0);
        fake_offer(&f->d, 0, first);
    }
    fake_kick(&f->d, 0);
    for (uint16_t i = 0; i < 40; i++) {
        assert_true(fake_take_used(&f->d, 0, &head, &len));
        assert_int_equal(head, 3 * i);
    }
    assert_int_equal(f->d.irqs, 1);
    assert_int_equal(f->d.kicks, 1);
}

/* The chain at the table's begin as often as the queue holds it. */
static void offer_all(struct fixture *f)
{
    for (unsigned int i = 0; i < SIZE; i++) {
        fake_offer(&f->d, 0, 0);
    }
    fake_kick(&f->d, 0);
}

/* A driver that offers one chain over and over is served in turns. */
static void test_work_is_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t head, len;

    put_header(f, VIRTIO_BLK_T_FLUSH, 0);
    fake_desc(&f->d, 0, 0, HEADER, 16, NEXT, 1);
    fake_desc(&f->d, 0, 1, STATUS, 1, WR, 0);
    offer_all(f);
    assert_int_equal(f->b.request_count, SIZE);
    while (fake_take_used(&f->d, 0, &head, &len)) {
        fake_offer(&f->d, 0, 0);
    }
    fake_kick(&f->d, 0);
    assert_int_equal(f->d.kicks, 1); /* for none was wanted */
    assert_true(virtio_mmio_serve_more(&f->t));
    assert_int_equal(f->b.request_count, 2 * SIZE);
    assert_false(virtio_mmio_serve_more(&f->t));
    fake_offer(&f->d, 0, 0);
    fake_kick(&f->d, 0);
    assert_int_equal(f->d.kicks, 2);
    assert_int_equal(f->b.request_count, 2 * SIZE + 1);
}

/* Few chains of many bytes as well: they all wait for the same lock. */
static void test_bytes_are_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t len;

    assert_int_equal(ftruncate(f->fd, LARGE), 0);
    f->b.n_sectors = f->b.parts[0].n_sectors = LARGE / 512;
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 0, LARGE, &len), VIRTIO_BLK_S_OK);
    offer_all(f);
    assert_in_range(f->b.read_bytes, 2 * LARGE, 2 * LARGE + KICK_MAX);
    while (virtio_mmio_serve_more(&f->t))
        ;
    assert_int_equal(f->b.read_bytes, (SIZE + 1) * LARGE);
}

static void test_file_that_shrank(void **state)
{
    struct fixture *f = *state;
    uint32_t len;

    assert_int_equal(ftruncate(f->fd, 1024), 0);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 1, 1024, &len), VIRTIO_BLK_S_IOERR);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 1, 512, &len), VIRTIO_BLK_S_OK);
}

static void test_bad_images(void **state)
{
    static const off_t sizes[] = {0, 1, 511, 513};
    int fds[2];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        _cleanup_fd_ int fd = memfd_create("image", MFD_CLOEXEC);
        struct err err = {0};
        struct blk b;

        assert_int_equal(ftruncate(fd, sizes[i]), 0);
        assert_int_equal(blk_init(&b, fd, "x", &err), -EINVAL);
        assert_int_equal(err.code, EINVAL);
    }
    {
        struct err err = {0};
        struct blk b;

        assert_int_equal(blk_init(&b, -1, "x", &err), -EBADF);
    }
    assert_int_equal(pipe(fds), 0);
    {
        struct err err = {0};
        struct blk b;

        assert_int_equal(blk_init(&b, fds[0], "x", &err), -EINVAL);
    }
    close(fds[0]);
    close(fds[1]);
}

static void test_state(void **state)
{
    struct fixture *f = *state;
    uint8_t saved[VIRTIO_MMIO_STATE_MAX];
    uint8_t again[VIRTIO_MMIO_STATE_MAX];
    struct bytes_writer w = bytes_writer_init(saved, sizeof(saved));
    struct bytes_writer w2 = bytes_writer_init(again, sizeof(again));
    struct bytes_reader r;
    struct fake_driver d;
    struct virtio_mmio t;
    struct blk b;
    struct err err = {0};
    uint32_t head, len;

    /* A request that was offered, but whose kick the old device never saw. */
    put_header(f, VIRTIO_BLK_T_IN, 2);
    fake_desc(&f->d, 0, 0, HEADER, 16, NEXT, 1);
    fake_desc(&f->d, 0, 1, DATA, 512, NEXT | WR, 2);
    fake_desc(&f->d, 0, 2, STATUS, 1, WR, 0);
    fake_offer(&f->d, 0, 0);
    virtio_mmio_save(&f->t, &w);
    assert_false(w.bad);

    fake_driver_clone(&d, &f->d);
    assert_int_equal(blk_init(&b, f->fd, "skillvm-root", &err), 0);
    fake_driver_attach(&d, &t, &b.device);
    r = bytes_reader_init(saved, w.len);
    assert_int_equal(virtio_mmio_load(&t, &r, &err), 0);
    virtio_mmio_save(&t, &w2);
    assert_int_equal(w2.len, w.len);
    assert_memory_equal(saved, again, w.len);
    virtio_mmio_resume(&t);
    assert_true(fake_take_used(&d, 0, &head, &len));
    assert_int_equal(len, 513);
    assert_memory_equal(fake_at(&d, DATA, 512), f->image + 1024, 512);
    assert_int_equal(d.irqs, 1);
    fake_driver_finish(&d);

    /* Another disk refuses it. */
    assert_int_equal(blk_init(&b, f->fd, "other", &err), 0);
    fake_driver_clone(&d, &f->d);
    fake_driver_attach(&d, &t, &b.device);
    r = bytes_reader_init(saved, w.len);
    assert_int_equal(virtio_mmio_load(&t, &r, &err), -EINVAL);
    fake_driver_finish(&d);
}

/* The disk of a skill, which the driver has found before there was one. */
static int setup_skill(void **state)
{
    static struct fixture f;

    fake_driver_init(&f.d);
    for (size_t i = 0; i < sizeof(f.image); i++) {
        f.image[i] = (uint8_t)(i * 11 + i / 512);
    }
    blk_init_skill(&f.b);
    fake_driver_attach(&f.d, &f.t, &f.b.device);
    fake_driver_start(&f.d, 1, SIZE);
    f.fd = -1;
    *state = &f;
    return virtio_mmio_is_active(&f.t) ? 0 : -1;
}

static int teardown_skill(void **state)
{
    struct fixture *f = *state;

    blk_skill_ops.finish(&f->b.device);
    return teardown(state);
}

/* Two files of the image, the first of n sectors. */
static void make_parts(const struct fixture *f, uint32_t n, int fds[2], uint64_t bytes[2])
{
    bytes[0] = n * 512u;
    bytes[1] = sizeof(f->image) - bytes[0];
    for (size_t i = 0; i < 2; i++) {
        fds[i] = memfd_create("part", MFD_CLOEXEC);
        assert_int_equal(fd_write_full(fds[i], f->image + (i == 0 ? 0 : bytes[0]), bytes[i]),
                         0);
    }
}

static void attach(struct fixture *f, uint32_t n)
{
    struct err err = {0};
    uint64_t bytes[2];
    int fds[2];

    make_parts(f, n, fds, bytes);
    assert_int_equal(blk_attach(&f->b, fds, bytes, &err), 0);
    assert_true(fds[0] == -1 && fds[1] == -1);
}

static void test_skill_reads_both_parts(void **state)
{
    struct fixture *f = *state;
    uint32_t len;

    attach(f, 5);
    for (uint32_t n = 1; n <= SECTORS; n++) {
        for (uint64_t sector = 0; sector + n <= SECTORS; sector++) {
            memset(fake_at(&f->d, DATA, n * 512), 0, n * 512);
            assert_int_equal(request(f, VIRTIO_BLK_T_IN, sector, n * 512, &len),
                             VIRTIO_BLK_S_OK);
            assert_memory_equal(fake_at(&f->d, DATA, n * 512), f->image + sector * 512,
                                n * 512);
        }
    }
    assert_int_equal(request(f, VIRTIO_BLK_T_GET_ID, 0, 20, &len), VIRTIO_BLK_S_OK);
    assert_memory_equal(fake_at(&f->d, DATA, 20), "skillvm-skill\0\0\0\0\0\0\0", 20);
}

static void test_skill_past_its_parts(void **state)
{
    static const struct {
        uint64_t sector;
        uint32_t len;
    } cases[] = {{SECTORS, 512},
                 {SECTORS - 1, 1024},
                 {SECTORS + 1, 512},
                 {(VMM_DISK_BYTES_MAX >> 9) - 1, 512},
                 {VMM_DISK_BYTES_MAX >> 9, 512},
                 {UINT64_MAX, 512},
                 {UINT64_MAX / 512, 512}};
    struct fixture *f = *state;
    uint32_t len;

    for (unsigned turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            assert_int_equal(request(f, VIRTIO_BLK_T_IN, cases[i].sector, cases[i].len, &len),
                             VIRTIO_BLK_S_IOERR);
            assert_int_equal(len, 1);
        }
        /* Nothing is there before. */
        assert_int_equal(request(f, VIRTIO_BLK_T_IN, 0, 512, &len),
                         turn == 0 ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK);
        if (turn == 0) {
            attach(f, 1);
        }
    }
    assert_int_equal(request(f, VIRTIO_BLK_T_OUT, 0, 512, &len), VIRTIO_BLK_S_IOERR);
    assert_null(virtio_mmio_failure(&f->t));
}

/* A reset takes the disk away; what is saved of the device never tells of one. */
static void test_skill_is_renewed(void **state)
{
    struct fixture *f = *state;
    uint8_t before[VIRTIO_MMIO_STATE_MAX];
    uint8_t after[VIRTIO_MMIO_STATE_MAX];
    struct bytes_writer w = bytes_writer_init(before, sizeof(before));
    struct bytes_writer w2 = bytes_writer_init(after, sizeof(after));
    struct bytes_reader r;
    struct err err = {0};
    uint32_t len;
    int first, second;

    virtio_mmio_save(&f->t, &w);
    attach(f, 7);
    first = f->b.parts[0].fd;
    second = f->b.parts[1].fd;
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 3, 512, &len), VIRTIO_BLK_S_OK);

    blk_skill_ops.renew(&f->b.device, NULL);
    assert_true(fcntl(first, F_GETFD) < 0 && fcntl(second, F_GETFD) < 0);
    assert_int_equal(f->b.request_count, 0);
    fake_driver_init(&f->d);
    fake_driver_attach(&f->d, &f->t, &f->b.device);
    r = bytes_reader_init(before, w.len);
    assert_int_equal(virtio_mmio_load(&f->t, &r, &err), 0);
    virtio_mmio_save(&f->t, &w2);
    assert_int_equal(w.len, w2.len);
    assert_memory_equal(before, after, w.len);

    fake_driver_start(&f->d, 1, SIZE);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 3, 512, &len), VIRTIO_BLK_S_IOERR);
    attach(f, 9);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 3, 512, &len), VIRTIO_BLK_S_OK);
    assert_memory_equal(fake_at(&f->d, DATA, 512), f->image + 3 * 512, 512);
}

static void test_skill_refusals(void **state)
{
    static const uint64_t sizes[][2] = {{0, 512},
                                        {512, 0},
                                        {511, 512},
                                        {512, 1025},
                                        {512, VMM_DISK_BYTES_MAX},
                                        {VMM_DISK_BYTES_MAX, 512},
                                        {UINT64_MAX - 511, 1024},
                                        {512, UINT64_MAX - 511}};
    struct fixture *f = *state;
    uint64_t bytes[2];
    int fds[2];

    make_parts(f, 2, fds, bytes);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct err err = {0};

        assert_int_equal(blk_attach(&f->b, fds, sizes[i], &err), -EINVAL);
        assert_int_equal(err.code, EINVAL);
        assert_true(fds[0] >= 0 && fds[1] >= 0);
    }
    attach(f, 4);
    {
        struct err err = {0};

        assert_int_equal(blk_attach(&f->b, fds, bytes, &err), -EBUSY);
    }
    fd_close(&fds[0]);
    fd_close(&fds[1]);
}

/* A file that is shorter than was said. */
static void test_skill_cut_short(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes[2];
    struct err err = {0};
    uint32_t len;
    int fds[2];

    make_parts(f, 2, fds, bytes);
    assert_int_equal(ftruncate(fds[1], 512), 0);
    assert_int_equal(blk_attach(&f->b, fds, bytes, &err), 0);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 0, 1536, &len), VIRTIO_BLK_S_OK);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 0, 2048, &len), VIRTIO_BLK_S_IOERR);
    assert_int_equal(request(f, VIRTIO_BLK_T_IN, 3, 512, &len), VIRTIO_BLK_S_IOERR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#define SKILL_TEST(name) cmocka_unit_test_setup_teardown(name, setup_skill, teardown_skill)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_config),
        TEST(test_reads),
        TEST(test_scattered_read),
        TEST(test_past_the_end),
        TEST(test_other_requests),
        TEST(test_no_status_byte),
        TEST(test_batch_is_one_interrupt),
        TEST(test_work_is_bounded),
        TEST(test_bytes_are_bounded),
        TEST(test_file_that_shrank),
        cmocka_unit_test(test_bad_images),
        TEST(test_state),
        SKILL_TEST(test_skill_reads_both_parts),
        SKILL_TEST(test_skill_past_its_parts),
        SKILL_TEST(test_skill_is_renewed),
        SKILL_TEST(test_skill_refusals),
        SKILL_TEST(test_skill_cut_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
