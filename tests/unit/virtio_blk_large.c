/* SPDX-License-Identifier: Apache-2.0 */
/* A request of more bytes than one call serves, as only a hostile driver makes them. */
#include "tests/unit/cmocka_all.h"

#include <endian.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/fake_driver.h"
#include "vmm/virtio/blk.h"

#define SIZE   128u
#define PIECE  (1u << 20)
#define NEXT   VRING_DESC_F_NEXT
#define WR     VRING_DESC_F_WRITE
#define HEADER FAKE_BUFFERS
#define STATUS (FAKE_BUFFERS + 0x100)
#define DATA   (FAKE_BUFFERS + 0x1000)

/* Reads n pieces, all of them into the same one of the guest's memory. The status. */
static uint8_t read_pieces(struct fake_driver *d, struct virtio_mmio *t, uint16_t n)
{
    const struct virtio_blk_outhdr header = {.type = htole32(VIRTIO_BLK_T_IN)};
    uint32_t head, len;

    memcpy(fake_at(d, HEADER, sizeof(header)), &header, sizeof(header));
    fake_desc(d, 0, 0, HEADER, sizeof(header), NEXT, 1);
    for (uint16_t i = 1; i <= n; i++)
        fake_desc(d, 0, i, DATA, PIECE, NEXT | WR, (uint16_t)(i + 1));
    fake_desc(d, 0, (uint16_t)(n + 1), STATUS, 1, WR, 0);
    fake_offer(d, 0, 0);
    fake_kick(d, 0);
    while (virtio_mmio_serve_more(t))
        ;
    if (!fake_take_used(d, 0, &head, &len))
        fail_msg("%u: %s", n, virtio_mmio_failure(t));
    return *(uint8_t *)fake_at(d, STATUS, 1);
}

static void a_request_is_bounded(void **state)
{
    struct fake_driver d;
    struct virtio_mmio t;
    struct blk b;
    int fd = memfd_create("image", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(ftruncate(fd, 100 * PIECE), 0);
    assert_int_equal(blk_init(&b, fd, "skillvm-root", NULL), 0);
    fake_driver_init(&d);
    fake_driver_attach(&d, &t, &b.device);
    fake_driver_start(&d, 1, SIZE);
    assert_int_equal(read_pieces(&d, &t, 4), VIRTIO_BLK_S_OK);
    assert_int_equal(read_pieces(&d, &t, 5), VIRTIO_BLK_S_IOERR);
    assert_int_equal(read_pieces(&d, &t, 100), VIRTIO_BLK_S_IOERR);
    assert_int_equal(b.read_bytes, 4 * PIECE);
    fake_driver_finish(&d);
    fd_close(&fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_request_is_bounded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
