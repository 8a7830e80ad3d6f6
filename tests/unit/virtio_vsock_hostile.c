/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio-vsock against guests that break rules.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <linux/virtio_vsock.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/vsock_checks.h"

#define WR VRING_DESC_F_WRITE

static void assert_dropped(struct fake_vsock *f, uint64_t count)
{
    struct vsock_packet p;
    char c;

    assert_int_equal(f->v.dropped_count, count);
    assert_false(fake_vsock_receive(f, &p, NULL));
    assert_int_equal(recv(f->host, &c, 1, 0), -1);
    assert_int_equal(vsock_state(&f->v), VSOCK_CONNECTED);
    assert_null(virtio_mmio_failure(&f->t));
}

static void test_guest_connections_are_refused(void **state)
{
    struct fake_vsock *f = *state;
    static const uint32_t ports[] = {0, 1, 22, 1024, 0x10001, UINT32_MAX};

    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_REQUEST);

        p.src_port = 5000 + (uint32_t)i;
        p.dst_port = ports[i];
        fake_vsock_send_raw(f, &p, NULL, 0);
        assert_reset_for(f, &p);
    }
    assert_int_equal(f->v.refused_count, 6);
    assert_dropped(f, 0);
}

static void test_unknown_connections(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_RW);

    p.dst_port++;
    p.len = 4;
    fake_vsock_send_raw(f, &p, "evil", 4);
    assert_reset_for(f, &p);
    p = right_packet(f, VIRTIO_VSOCK_OP_RW);
    p.src_port++;
    fake_vsock_send_raw(f, &p, NULL, 0);
    assert_reset_for(f, &p);
    /* SEQPACKET was not negotiated. */
    p = right_packet(f, VIRTIO_VSOCK_OP_REQUEST);
    p.type = VIRTIO_VSOCK_TYPE_SEQPACKET;
    fake_vsock_send_raw(f, &p, NULL, 0);
    assert_reset_for(f, &p);
    /* A reset is never answered with a reset. */
    p = right_packet(f, VIRTIO_VSOCK_OP_RST);
    p.dst_port++;
    fake_vsock_send_raw(f, &p, NULL, 0);
    assert_dropped(f, 2);
}

static void test_wrong_addresses(void **state)
{
    struct fake_vsock *f = *state;
    static const uint64_t cids[] = {0, 1, FAKE_CID, UINT64_MAX, VSOCK_HOST_CID + (1ull << 32)};
    uint64_t n = 0;

    for (size_t i = 0; i < sizeof(cids) / sizeof(cids[0]); i++) {
        struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_RST);

        p.dst_cid = cids[i];
        fake_vsock_send_raw(f, &p, NULL, 0);
        assert_dropped(f, ++n);
        p = right_packet(f, VIRTIO_VSOCK_OP_RST);
        p.src_cid = FAKE_CID + 1 + i;
        fake_vsock_send_raw(f, &p, NULL, 0);
        assert_dropped(f, ++n);
    }
}

static void test_unexpected_operations(void **state)
{
    struct fake_vsock *f = *state;
    static const uint16_t ops[] = {VIRTIO_VSOCK_OP_INVALID,
                                   VIRTIO_VSOCK_OP_REQUEST,
                                   VIRTIO_VSOCK_OP_RESPONSE,
                                   8,
                                   31,
                                   32,
                                   255,
                                   0xffff};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct vsock_packet p = right_packet(f, ops[i]);

        fake_vsock_send_raw(f, &p, NULL, 0);
        assert_dropped(f, i + 1);
    }
    /* Unknown flags mean nothing. */
    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, 0xfffffffc, NULL, 0);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, 0, NULL, 0);
    assert_dropped(f, 8);
    assert_int_equal(f->v.shutdown_in, 0);
}

static void test_lengths_that_lie(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_RW);
    static const uint32_t lens[] = {5, 65536, UINT32_MAX - 43, UINT32_MAX};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        p.len = lens[i];
        fake_vsock_send_raw(f, &p, "abcd", 4);
        assert_dropped(f, i + 1);
    }
    /* More bytes than announced: the announced ones count. */
    p.len = 2;
    fake_vsock_send_raw(f, &p, "abcd", 4);
    {
        char got[8];

        assert_int_equal(recv(f->host, got, sizeof(got), 0), 2);
        assert_memory_equal(got, "ab", 2);
    }
}

static void test_short_and_odd_chains(void **state)
{
    struct fake_vsock *f = *state;
    uint8_t bytes[VSOCK_HEADER_SIZE];
    struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_RW);

    /* No whole header. */
    fake_desc(&f->d, FAKE_TX, 0, FAKE_BUFFERS, VSOCK_HEADER_SIZE - 1, 0, 0);
    fake_offer(&f->d, FAKE_TX, 0);
    fake_kick(&f->d, FAKE_TX);
    assert_dropped(f, 1);
    /* Only writable, or partly. */
    fake_desc(&f->d, FAKE_TX, 0, FAKE_BUFFERS, 4096, WR, 0);
    fake_offer(&f->d, FAKE_TX, 0);
    fake_kick(&f->d, FAKE_TX);
    assert_dropped(f, 2);
    /* Byte by byte. */
    p.len = 3;
    vsock_packet_encode(&p, bytes);
    memcpy(fake_at(&f->d, 0x200000, 47), bytes, sizeof(bytes));
    memcpy(fake_at(&f->d, 0x200000 + 44, 3), "xyz", 3);
    for (uint16_t i = 0; i < 47; i++) {
        fake_desc(&f->d, FAKE_TX, i, 0x200000u + i, 1, i < 46 ? VRING_DESC_F_NEXT : 0,
                  (uint16_t)(i + 1));
    }
    fake_offer(&f->d, FAKE_TX, 0);
    fake_kick(&f->d, FAKE_TX);
    {
        char got[8];

        assert_int_equal(recv(f->host, got, sizeof(got), 0), 3);
        assert_memory_equal(got, "xyz", 3);
    }
}

static void test_more_than_credit(void **state)
{
    struct fake_vsock *f = *state;
    static uint8_t data[1 << 16];
    struct vsock_packet reply;
    uint32_t accepted = 0;
    uint32_t got = 0;
    ssize_t n;

    while (f->v.dropped_count == 0) {
        assert_true(f->v.ring_len <= VSOCK_BUF_ALLOC);
        accepted = f->v.received;
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, data, sizeof(data));
    }
    assert_int_equal(f->v.received, accepted);
    do {
        assert_true(fake_vsock_receive(f, &reply, NULL));
    } while (reply.op == VIRTIO_VSOCK_OP_CREDIT_UPDATE);
    assert_int_equal(reply.op, VIRTIO_VSOCK_OP_RST);
    assert_int_equal(reply.src_port, f->host_port);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSING);
    /* What was within the rules still arrives. */
    while ((n = recv(f->host, data, sizeof(data), 0)) > 0) {
        got += (uint32_t)n;
        fake_vsock_loop(f);
    }
    assert_int_equal(got, accepted);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
}

static void test_data_after_the_end(void **state)
{
    struct fake_vsock *f = *state;
    char c;

    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, VIRTIO_VSOCK_SHUTDOWN_SEND, NULL, 0);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "late", 4);
    assert_int_equal(f->v.dropped_count, 1);
    assert_int_equal(recv(f->host, &c, 1, 0), 0);
}

/* Without receive buffers for the answers the guest cannot go on asking. */
static void test_flood_of_requests(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_REQUEST);
    struct vsock_packet reply;
    uint32_t head;
    uint32_t len;
    unsigned int answered = 0;
    unsigned int taken = 0;

    p.dst_port = 99;
    /* 15 buffers are there, then VSOCK_REPLIES_MAX wait. */
    for (unsigned int i = 0; i < 100; i++) {
        fake_vsock_send_raw(f, &p, NULL, 0);
    }
    fake_vsock_loop(f);
    assert_int_equal(f->v.n_replies, VSOCK_REPLIES_MAX);
    while (fake_vsock_receive(f, &reply, NULL)) {
        answered++;
    }
    assert_int_equal(answered, 15);
    while (fake_take_used(&f->d, FAKE_TX, &head, &len)) {
        taken++;
    }
    assert_int_equal(taken, 1 + 15 + VSOCK_REPLIES_MAX);
    /* Buffers set it going again, to the last one. */
    fake_vsock_post(f, 100);
    fake_vsock_loop(f);
    while (fake_vsock_receive(f, &reply, NULL)) {
        assert_int_equal(reply.op, VIRTIO_VSOCK_OP_RST);
        answered++;
    }
    assert_int_equal(answered, 100);
    while (fake_take_used(&f->d, FAKE_TX, &head, &len)) {
        taken++;
    }
    assert_int_equal(taken, 101);
    assert_null(virtio_mmio_failure(&f->t));
}

/* Packets offered all at once, by one descriptor again and again, are served in turns. */
static void test_work_is_bounded(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p = right_packet(f, VIRTIO_VSOCK_OP_INVALID);
    uint32_t head;
    uint32_t len;
    unsigned int taken = 0;

    while (fake_take_used(&f->d, FAKE_TX, &head, &len)) {
    }
    vsock_packet_encode(&p, fake_at(&f->d, 0x200000, VSOCK_HEADER_SIZE));
    fake_desc(&f->d, FAKE_TX, 0, 0x200000, VSOCK_HEADER_SIZE, 0, 0);
    for (unsigned int i = 0; i < FAKE_QUEUE_SIZE; i++) {
        fake_offer(&f->d, FAKE_TX, 0);
    }
    fake_kick(&f->d, FAKE_TX);
    assert_int_equal(f->v.dropped_count, FAKE_QUEUE_SIZE);
    fake_offer(&f->d, FAKE_TX, 0);
    assert_false(virtio_mmio_serve_more(&f->t));
    assert_int_equal(f->v.dropped_count, FAKE_QUEUE_SIZE + 1);
    while (fake_take_used(&f->d, FAKE_TX, &head, &len)) {
        taken++;
    }
    assert_int_equal(taken, FAKE_QUEUE_SIZE + 1);
}

static void test_nonsense_while_connecting(void **state)
{
    struct fake_vsock *f = *state;
    struct fake_vsock g;
    struct vsock_packet p;

    (void)f;
    fake_vsock_init(&g, 4);
    assert_int_equal(vsock_connect(&g.v), 0);
    assert_true(fake_vsock_receive(&g, &p, NULL));
    g.host_port = p.src_port;
    p = right_packet(&g, VIRTIO_VSOCK_OP_RW);
    fake_vsock_send(&g, VIRTIO_VSOCK_OP_RW, 0, "early", 5);
    assert_reset_for(&g, &p);
    assert_int_equal(vsock_state(&g.v), VSOCK_REFUSED);
    assert_int_equal(g.v.dropped_count, 1);
    fake_vsock_finish(&g);
}

/* The port of the next attempt can be guessed; an answer to it is none before it was made. */
static void test_answers_before_the_request(void **state)
{
    static const uint16_t ops[] = {VIRTIO_VSOCK_OP_RESPONSE, VIRTIO_VSOCK_OP_RW,
                                   VIRTIO_VSOCK_OP_RST};
    struct fake_vsock g;
    struct vsock_packet p;

    (void)state;
    fake_vsock_init(&g, 0);
    assert_int_equal(vsock_connect(&g.v), 0);
    g.host_port = g.v.host_port;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        fake_vsock_send(&g, ops[i], 0, NULL, 0);
        assert_int_equal(vsock_state(&g.v), VSOCK_CONNECTING);
    }
    fake_vsock_post(&g, 4);
    for (size_t i = 0; i < 2; i++) {
        assert_true(fake_vsock_receive(&g, &p, NULL));
        assert_int_equal(p.op, VIRTIO_VSOCK_OP_RST);
    }
    assert_true(fake_vsock_receive(&g, &p, NULL));
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_REQUEST);
    fake_vsock_send(&g, VIRTIO_VSOCK_OP_RESPONSE, 0, NULL, 0);
    assert_int_equal(vsock_state(&g.v), VSOCK_CONNECTED);
    fake_vsock_finish(&g);
}

static void test_bad_receive_buffers(void **state)
{
    struct fake_vsock *f = *state;
    static const struct {
        uint32_t len;
        uint16_t flags;
    } cases[] = {{VSOCK_HEADER_SIZE, WR}, {1, WR}, {4096, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_vsock g;

        fake_vsock_init(&g, 1);
        fake_vsock_establish(&g);
        fake_desc(&g.d, FAKE_RX, 5, FAKE_BUFFERS, cases[i].len, cases[i].flags, 0);
        fake_offer(&g.d, FAKE_RX, 5);
        assert_int_equal(send(g.host, "x", 1, 0), 1);
        fake_kick(&g.d, FAKE_RX);
        fake_vsock_loop(&g);
        assert_non_null(virtio_mmio_failure(&g.t));
        assert_int_equal(vsock_state(&g.v), VSOCK_CLOSED);
        assert_int_equal(vsock_poll_events(&g.v), -1);
        fake_vsock_finish(&g);
    }
    assert_null(virtio_mmio_failure(&f->t));
}

/* Buffers cut into pieces: header and payload land where they belong. */
static void test_scattered_receive_buffer(void **state)
{
    struct fake_vsock g;
    uint32_t head;
    uint32_t len;
    struct vsock_packet p;

    (void)state;
    fake_vsock_init(&g, 1);
    fake_vsock_establish(&g);
    fake_desc(&g.d, FAKE_RX, 10, 0x200000, 43, WR | VRING_DESC_F_NEXT, 11);
    fake_desc(&g.d, FAKE_RX, 11, 0x210000, 3, WR | VRING_DESC_F_NEXT, 12);
    fake_desc(&g.d, FAKE_RX, 12, 0x220000, 100, WR, 0);
    fake_offer(&g.d, FAKE_RX, 10);
    fake_kick(&g.d, FAKE_RX);
    assert_int_equal(send(g.host, "abcdef", 6, 0), 6);
    fake_vsock_loop(&g);
    assert_true(fake_take_used(&g.d, FAKE_RX, &head, &len));
    assert_int_equal(head, 10);
    assert_int_equal(len, VSOCK_HEADER_SIZE + 6);
    memcpy(fake_at(&g.d, 0x200000 + 43, 1), fake_at(&g.d, 0x210000, 1), 1);
    vsock_packet_decode(&p, fake_at(&g.d, 0x200000, VSOCK_HEADER_SIZE));
    assert_int_equal(p.len, 6);
    assert_memory_equal(fake_at(&g.d, 0x210001, 2), "ab", 2);
    assert_memory_equal(fake_at(&g.d, 0x220000, 5), "cdef\0", 5);
    fake_vsock_finish(&g);
}

static void test_failure_closes(void **state)
{
    struct fake_vsock *f = *state;
    char c;

    fake_set_avail_idx(&f->d, FAKE_TX, 30000);
    fake_kick(&f->d, FAKE_TX);
    assert_non_null(virtio_mmio_failure(&f->t));
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
    vsock_host_ready(&f->v, POLLIN | POLLOUT | POLLHUP);
    assert_int_equal(recv(f->host, &c, 1, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_connected, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_guest_connections_are_refused),
        TEST(test_unknown_connections),
        TEST(test_wrong_addresses),
        TEST(test_unexpected_operations),
        TEST(test_lengths_that_lie),
        TEST(test_short_and_odd_chains),
        TEST(test_more_than_credit),
        TEST(test_data_after_the_end),
        TEST(test_flood_of_requests),
        TEST(test_work_is_bounded),
        TEST(test_nonsense_while_connecting),
        TEST(test_answers_before_the_request),
        TEST(test_bad_receive_buffers),
        TEST(test_scattered_receive_buffer),
        TEST(test_failure_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
