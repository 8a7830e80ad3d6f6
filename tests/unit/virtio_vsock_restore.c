/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio-vsock across snapshots.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <linux/virtio_vsock.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/vsock_checks.h"

static size_t save(struct fake_vsock *f, uint8_t *out)
{
    struct bytes_writer w = bytes_writer_init(out, VIRTIO_MMIO_STATE_MAX);

    virtio_mmio_save(&f->t, &w);
    assert_false(w.bad);
    return w.len;
}

static void test_restore(void **state)
{
    struct fake_vsock *f = *state;
    struct fake_vsock g;
    uint8_t before[VIRTIO_MMIO_STATE_MAX];
    uint8_t after[VIRTIO_MMIO_STATE_MAX];
    struct vsock_packet p;
    struct err err = {0};
    size_t len = save(f, before);
    uint32_t head, event_len;

    assert_int_equal(fake_vsock_restore(&g, f, &err), 0);
    assert_int_equal(save(&g, after), len);
    assert_memory_equal(before, after, len);
    /* Loading touched nothing. */
    assert_memory_equal(f->d.mem.host, g.d.mem.host, FAKE_MEMORY_SIZE);
    assert_int_equal(g.d.irqs, 0);
    assert_int_equal(vsock_state(&g.v), VSOCK_IDLE);

    /* No connection is saved: there is nothing to tell the guest. */
    virtio_mmio_resume(&g.t);
    assert_false(fake_take_used(&g.d, FAKE_EVENT, &head, &event_len));
    assert_int_equal(vsock_connect(&g.v), 0);
    assert_true(fake_vsock_receive(&g, &p, NULL));
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_REQUEST);
    assert_int_not_equal(p.src_port, f->host_port);
    g.host_port = p.src_port;
    fake_vsock_send(&g, VIRTIO_VSOCK_OP_RESPONSE, 0, NULL, 0);
    assert_int_equal(vsock_state(&g.v), VSOCK_CONNECTED);
    assert_int_equal(send(g.host, "hello", 5, 0), 5);
    fake_vsock_loop(&g);
    assert_true(fake_vsock_receive(&g, &p, NULL));
    assert_int_equal(p.len, 5);
    fake_vsock_finish(&g);
}

/* A renewed device is a fresh one with another host, whatever the last guest left in it. */
static void test_renew(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock fresh;
    struct err err = {0};
    uint8_t *ring = f->v.ring;

    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "left behind", 11);
    assert_int_equal(vsock_init(&fresh, FAKE_CID, f->device_end, &err), 0);
    vsock_renew(&f->v, f->device_end);
    assert_ptr_equal(f->v.ring, ring);
    f->v.ring = fresh.ring;
    assert_memory_equal(&f->v, &fresh, sizeof(fresh));
    f->v.ring = ring;
    vsock_finish(&fresh);
}

/* Packets whose kick was lost with the old device are answered by the new one. */
static void test_restore_replays_the_kick(void **state)
{
    struct fake_vsock *f = *state;
    struct fake_vsock g;
    struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_RW);
    struct err err = {0};
    uint32_t head;
    uint32_t len;

    vsock_packet_encode(&p, fake_at(&f->d, 0x200000, VSOCK_HEADER_SIZE));
    fake_desc(&f->d, FAKE_TX, 4, 0x200000, VSOCK_HEADER_SIZE, 0, 0);
    while (fake_take_used(&f->d, FAKE_TX, &head, &len)) {
    }
    fake_offer(&f->d, FAKE_TX, 4);
    assert_int_equal(fake_vsock_restore(&g, f, &err), 0);
    virtio_mmio_resume(&g.t);
    assert_true(fake_take_used(&g.d, FAKE_TX, &head, &len));
    assert_int_equal(head, 4);
    assert_reset_for(&g, &p);
    fake_vsock_finish(&g);
}

static void test_restore_repeatedly(void **state)
{
    struct fake_vsock *f = *state;
    struct fake_vsock chain[4];
    struct fake_vsock *from = f;
    struct err err = {0};

    for (unsigned int i = 0; i < 4; i++) {
        assert_int_equal(fake_vsock_restore(&chain[i], from, &err), 0);
        virtio_mmio_resume(&chain[i].t);
        fake_vsock_establish(&chain[i]);
        from = &chain[i];
    }
    for (unsigned int i = 0; i < 4; i++) {
        fake_vsock_finish(&chain[i]);
    }
}

static void test_state_of_another_guest(void **state)
{
    struct fake_vsock *f = *state;
    uint8_t saved[VIRTIO_MMIO_STATE_MAX];
    size_t len = save(f, saved);
    struct fake_driver d;
    struct virtio_mmio t;
    struct vsock v;
    struct bytes_reader r;
    struct err err = {0};

    fake_driver_clone(&d, &f->d);
    assert_int_equal(vsock_init(&v, FAKE_CID + 1, f->device_end, &err), 0);
    fake_driver_attach(&d, &t, &v.device);
    r = bytes_reader_init(saved, len);
    assert_int_equal(virtio_mmio_load(&t, &r, &err), -EINVAL);
    assert_non_null(strstr(err.message, "guest 3"));
    /* A port below the ones the host uses. */
    v.guest_cid = FAKE_CID;
    fake_driver_attach(&d, &t, &v.device);
    memset(saved + len - 4, 0, 4);
    r = bytes_reader_init(saved, len);
    err = (struct err){0};
    assert_int_equal(virtio_mmio_load(&t, &r, &err), -EINVAL);
    assert_non_null(strstr(err.message, "port"));
    vsock_finish(&v);
    fake_driver_finish(&d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_connected, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_restore),
        TEST(test_renew),
        TEST(test_restore_replays_the_kick),
        TEST(test_restore_repeatedly),
        TEST(test_state_of_another_guest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
