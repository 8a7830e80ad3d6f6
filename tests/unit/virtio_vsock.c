/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_vsock.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/vsock_checks.h"

static void test_config(void **state)
{
    struct fake_vsock *f = *state;
    uint64_t cid;

    assert_int_equal(fake_read32(&f->d, VIRTIO_MMIO_DEVICE_ID), VIRTIO_ID_VSOCK);
    virtio_mmio_read(&f->t, 0x100, &cid, 8);
    assert_int_equal(cid, FAKE_CID);
}

static void test_bad_ids(void **state)
{
    static const uint64_t bad[] = {0, 1, 2, UINT32_MAX, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct vsock v;
        struct err err = {0};

        assert_int_equal(vsock_init(&v, bad[i], -1, &err), -EINVAL);
        vsock_finish(&v);
    }
}

static void test_connect(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p;

    assert_int_equal(vsock_state(&f->v), VSOCK_IDLE);
    assert_int_equal(vsock_poll_events(&f->v), -1);
    assert_int_equal(vsock_connect(&f->v), 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_CONNECTING);
    assert_int_equal(vsock_connect(&f->v), -EISCONN);
    assert_true(fake_vsock_receive(f, &p, NULL));
    f->host_port = p.src_port;
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_REQUEST);
    assert_int_equal(p.dst_port, VSOCK_GUEST_PORT);
    assert_int_equal(p.buf_alloc, VSOCK_BUF_ALLOC);
    assert_int_equal(f->d.irqs, 1);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RESPONSE, 0, NULL, 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_CONNECTED);
    assert_int_equal(vsock_connect(&f->v), -EISCONN);
    assert_int_equal(vsock_poll_events(&f->v), POLLIN);
    assert_quiet(f);
}

static void test_connect_before_the_driver(void **state)
{
    struct fake_vsock *f = *state;

    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
    assert_int_equal(vsock_connect(&f->v), -EAGAIN);
    assert_int_equal(vsock_state(&f->v), VSOCK_IDLE);
    fake_driver_start(&f->d, 3, FAKE_QUEUE_SIZE);
    /* No receive buffer yet: the request waits for one. */
    assert_int_equal(vsock_connect(&f->v), 0);
    assert_quiet(f);
    fake_vsock_post(f, 1);
    f->host_port = f->v.host_port;
    expect(f, VIRTIO_VSOCK_OP_REQUEST);
}

static void test_refused_then_again(void **state)
{
    struct fake_vsock *f = *state;
    uint32_t ports[3];

    for (int i = 0; i < 3; i++) {
        struct vsock_packet p;

        assert_int_equal(vsock_connect(&f->v), 0);
        assert_true(fake_vsock_receive(f, &p, NULL));
        assert_int_equal(p.op, VIRTIO_VSOCK_OP_REQUEST);
        ports[i] = f->host_port = p.src_port;
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RST, 0, NULL, 0);
        assert_int_equal(vsock_state(&f->v), VSOCK_REFUSED);
        assert_int_equal(vsock_poll_events(&f->v), -1);
    }
    assert_int_not_equal(ports[0], ports[1]);
    assert_int_not_equal(ports[1], ports[2]);
    /* An answer to an attempt that is over opens nothing. */
    assert_int_equal(vsock_connect(&f->v), 0);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RESPONSE, 0, NULL, 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_CONNECTING);
}

static void test_data_to_the_guest(void **state)
{
    struct fake_vsock *f = *state;
    uint8_t payload[FAKE_PAYLOAD];
    struct vsock_packet p;

    assert_int_equal(send(f->host, "hello", 5, 0), 5);
    fake_vsock_loop(f);
    assert_true(fake_vsock_receive(f, &p, payload));
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_RW);
    assert_int_equal(p.len, 5);
    assert_memory_equal(payload, "hello", 5);
    assert_int_equal(f->v.sent, 5);
    assert_quiet(f);
}

static void test_data_to_the_host(void **state)
{
    struct fake_vsock *f = *state;

    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "ready", 5);
    assert_host_reads(f, "ready");
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, NULL, 0);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "!", 1);
    assert_host_reads(f, "!");
    assert_int_equal(f->v.fwd_cnt, 6);
    assert_int_equal(f->v.ring_len, 0);
    assert_quiet(f);
}

static void test_credit_request_is_answered(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p;

    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "abc", 3);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_REQUEST, 0, NULL, 0);
    p = expect(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
    assert_int_equal(p.fwd_cnt, 3);
    assert_int_equal(p.buf_alloc, VSOCK_BUF_ALLOC);
    assert_quiet(f);
}

/* The guest takes 10000 bytes and no more, until it says so. */
static void test_guest_credit(void **state)
{
    struct fake_vsock *f = *state;
    static uint8_t data[30000];
    struct vsock_packet p;
    uint32_t got = 0;

    f->buf_alloc = 10000;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    assert_int_equal(send(f->host, data, sizeof(data), 0), sizeof(data));
    fake_vsock_loop(f);
    while (fake_vsock_receive(f, &p, NULL) && p.op == VIRTIO_VSOCK_OP_RW) {
        got += p.len;
    }
    assert_int_equal(got, 10000);
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_CREDIT_REQUEST);
    /* It asks once, and does not wait for the host's bytes meanwhile. */
    assert_int_equal(vsock_poll_events(&f->v), 0);
    fake_vsock_loop(f);
    assert_quiet(f);
    f->fwd_cnt = 6000;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    fake_vsock_loop(f);
    while (fake_vsock_receive(f, &p, NULL) && p.op == VIRTIO_VSOCK_OP_RW) {
        got += p.len;
    }
    assert_int_equal(got, 16000);
    /* A guest that takes its promise back gets nothing, and breaks nothing. */
    f->buf_alloc = 100;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    f->fwd_cnt = 999999;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    fake_vsock_loop(f);
    assert_quiet(f);
    f->buf_alloc = UINT32_MAX;
    f->fwd_cnt = 16000;
    fake_vsock_post(f, 32);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    fake_vsock_loop(f);
    while (fake_vsock_receive(f, &p, NULL)) {
        got += p.len;
    }
    assert_int_equal(got, 30000);
}

/* The host does not read: the ring fills, the guest stops at its credit, all arrives in order.
 */
static void test_host_that_is_slow(void **state)
{
    struct fake_vsock *f = *state;
    static uint8_t out[1000];
    static uint8_t in[65536];
    uint32_t sent = 0;
    uint32_t read_total = 0;
    uint32_t known_fwd = 0;
    uint8_t next = 0;
    const uint32_t total = 3000000;

    while (read_total < total) {
        struct vsock_packet p;
        ssize_t n;

        while (sent < total && sent - known_fwd + sizeof(out) <= VSOCK_BUF_ALLOC) {
            for (size_t i = 0; i < sizeof(out); i++) {
                out[i] = (uint8_t)((sent + i) * 31 / 7);
            }
            fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, out, sizeof(out));
            sent += (uint32_t)sizeof(out);
        }
        assert_true(f->v.ring_len <= VSOCK_BUF_ALLOC);
        n = recv(f->host, in, 4001, 0);
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
        }
        for (ssize_t i = 0; i < n; i++) {
            next = (uint8_t)(read_total * 31 / 7);
            assert_int_equal(in[i], next);
            read_total++;
        }
        fake_vsock_loop(f);
        while (fake_vsock_receive(f, &p, NULL)) {
            assert_int_equal(p.op, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
            known_fwd = p.fwd_cnt;
            fake_vsock_post(f, 1);
        }
    }
    assert_int_equal(f->v.fwd_cnt, total);
    assert_quiet(f);
}

static void test_counters_wrap(void **state)
{
    struct fake_vsock *f = *state;
    uint8_t payload[FAKE_PAYLOAD];
    static char data[3000];
    struct vsock_packet p;

    /* As after 4 GiB - 1000 bytes in both directions. */
    f->v.sent = f->v.received = f->v.fwd_cnt = f->v.told_fwd_cnt = (uint32_t)-1000;
    f->fwd_cnt = (uint32_t)-1000;
    for (int i = 0; i < 4; i++) {
        memset(data, 'a' + i, sizeof(data));
        assert_int_equal(send(f->host, data, sizeof(data), 0), sizeof(data));
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, data, sizeof(data));
        fake_vsock_loop(f);
        assert_true(fake_vsock_receive(f, &p, payload));
        assert_int_equal(p.len, sizeof(data));
        assert_memory_equal(payload, data, sizeof(data));
        f->fwd_cnt += p.len;
        assert_int_equal(recv(f->host, payload, sizeof(payload), 0), sizeof(data));
    }
    assert_int_equal(f->v.sent, 11000);
    assert_int_equal(f->v.fwd_cnt, 11000);
    assert_quiet(f);
}

static void test_no_receive_buffers(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p;
    static uint8_t data[FAKE_PAYLOAD * 20];
    uint32_t got = 0;
    unsigned int kicks;

    assert_int_equal(send(f->host, data, sizeof(data), 0), sizeof(data));
    fake_vsock_loop(f);
    while (fake_vsock_receive(f, &p, NULL)) {
        got += p.len;
    }
    /* One of 16 buffers went to the request. */
    assert_int_equal(got, 15 * FAKE_PAYLOAD);
    assert_int_equal(vsock_poll_events(&f->v), 0);
    kicks = f->d.kicks;
    fake_vsock_post(f, 16);
    assert_int_equal(f->d.kicks, kicks + 1);
    while (fake_vsock_receive(f, &p, NULL)) {
        got += p.len;
    }
    assert_int_equal(got, sizeof(data));
    /* With buffers to spare there is no exit for a new one. */
    fake_vsock_post(f, 1);
    assert_int_equal(f->d.kicks, kicks + 1);
}

static void test_few_interrupts_and_kicks(void **state)
{
    struct fake_vsock *f = *state;
    static uint8_t data[64 * FAKE_PAYLOAD];
    struct vsock_packet p;
    unsigned int n = 0;

    fake_vsock_post(f, 100);
    fake_ack(&f->d);
    f->d.irqs = f->d.kicks = f->d.kicks_kept = 0;
    /* As much as the socket holds, to be read in one go. */
    assert_in_range(send(f->host, data, sizeof(data), 0), 40 * FAKE_PAYLOAD, sizeof(data));
    fake_vsock_loop(f);
    while (fake_vsock_receive(f, &p, NULL)) {
        n++;
    }
    assert_in_range(n, 40, 64);
    assert_int_equal(f->d.irqs, 1);
    fake_vsock_post(f, 16);
    assert_int_equal(f->d.kicks, 0);
}

/* A packet of the guest's is worth one exit, its kick; the interrupt waits for company. */
static void test_transmit_interrupts_wait(void **state)
{
    struct fake_vsock *f = *state;
    unsigned int kicks;

    fake_ack(&f->d);
    f->d.irqs = 0;
    kicks = f->d.kicks;
    for (unsigned int i = 0; i < 10; i++) {
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "x", 1);
    }
    assert_int_equal(f->d.irqs, 0);
    assert_int_equal(f->d.kicks, kicks + 10);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_REQUEST, 0, NULL, 0);
    assert_int_equal(f->d.irqs, 1);
    fake_ack(&f->d);
    /* Half of the queue: 32 packets of two descriptors. */
    for (unsigned int i = 0; i < 31; i++) {
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "x", 1);
    }
    assert_int_equal(f->d.irqs, 1);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "x", 1);
    assert_int_equal(f->d.irqs, 2);
}

/*
 * Linux wakes no writer that has credit again while its packets, which it can free only after
 * an interrupt, take half of its send buffer: 104 KiB, where a byte may take two.
 */
static void test_transmit_interrupts_wait_for_few_bytes(void **state)
{
    struct fake_vsock *f = *state;
    static uint8_t data[8192];
    uint32_t held = 0;

    for (unsigned int i = 0; i < 20; i++) {
        fake_ack(&f->d);
        f->d.irqs = 0;
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, data, sizeof(data));
        held = f->d.irqs > 0 ? 0 : held + (uint32_t)sizeof(data);
        assert_true(held < 48u * 1024u);
    }
}

#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CONNECTED(name) cmocka_unit_test_setup_teardown(name, setup_connected, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_config),
        cmocka_unit_test(test_bad_ids),
        TEST(test_connect),
        TEST(test_connect_before_the_driver),
        TEST(test_refused_then_again),
        CONNECTED(test_data_to_the_guest),
        CONNECTED(test_data_to_the_host),
        CONNECTED(test_credit_request_is_answered),
        CONNECTED(test_guest_credit),
        CONNECTED(test_host_that_is_slow),
        CONNECTED(test_counters_wrap),
        CONNECTED(test_no_receive_buffers),
        CONNECTED(test_few_interrupts_and_kicks),
        CONNECTED(test_transmit_interrupts_wait),
        CONNECTED(test_transmit_interrupts_wait_for_few_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
