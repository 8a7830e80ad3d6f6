/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and a driver that takes back what it has just offered, again and again: they find
 * nothing, look again, and there is something.
 */
#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <linux/virtio_ring.h>
#include <linux/virtio_vsock.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/fake_driver.h"
#include "tests/unit/fake_vsock.h"
#include "vmm/virtio/blk.h"

#define SIZE 128u
/* More looks than any device may take in a kick, and when it gives up to be found out. */
#define LOOKS_MAX 4000u

/* The available index that changes at each look, which of them it is, and how often. */
static struct {
    gpa_t gpa; /* 0: none does */
    unsigned int looks;
} flips;

int __real_memory_load_u16(const struct memory *m, gpa_t gpa, uint16_t *ret_value);
int __wrap_memory_load_u16(const struct memory *m, gpa_t gpa, uint16_t *ret_value);
int __wrap_memory_load_u16(const struct memory *m, gpa_t gpa, uint16_t *ret_value)
{
    int r = __real_memory_load_u16(m, gpa, ret_value);

    if (flips.gpa != 0 && gpa == flips.gpa && flips.looks < LOOKS_MAX)
        *ret_value = (uint16_t)(*ret_value + flips.looks++ % 2);
    return r;
}

static void flip(const struct fake_driver *d, unsigned int queue)
{
    flips.gpa = d->queues[queue].avail + offsetof(struct vring_avail, idx);
    flips.looks = 0;
}

static void test_blk(void **state)
{
    static uint8_t image[512];
    struct fake_driver d;
    struct virtio_mmio t;
    struct blk b;
    struct err err = {0};
    int fd = memfd_create("image", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(write(fd, image, sizeof(image)), sizeof(image));
    assert_int_equal(blk_init(&b, fd, "skillvm-root", &err), 0);
    fake_driver_init(&d);
    fake_driver_attach(&d, &t, &b.device);
    fake_driver_start(&d, 1, SIZE);
    flip(&d, 0);
    fake_kick(&d, 0);
    assert_in_range(flips.looks, 2, LOOKS_MAX - 1);
    flips.gpa = 0;
    /* What is left is looked at in another turn, of which there is nothing. */
    assert_false(virtio_mmio_serve_more(&t));
    assert_int_equal(b.request_count, 0);
    fake_driver_finish(&d);
    close(fd);
}

/* There is something to tell the guest, and no buffer for it. */
static void test_vsock(void **state)
{
    struct fake_vsock f;
    struct vsock_packet p;

    (void)state;
    fake_vsock_init(&f, 0);
    flip(&f.d, FAKE_RX);
    assert_int_equal(vsock_connect(&f.v), 0);
    assert_in_range(flips.looks, 2, LOOKS_MAX - 1);
    flips.gpa = 0;
    assert_false(virtio_mmio_serve_more(&f.t));
    fake_vsock_post(&f, 1);
    assert_true(fake_vsock_receive(&f, &p, NULL));
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_REQUEST);
    fake_vsock_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blk),
        cmocka_unit_test(test_vsock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
