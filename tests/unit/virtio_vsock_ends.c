/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of a vsock connection: either side, one way or both, and a driver that goes away.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_vsock.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "tests/unit/vsock_checks.h"

#define RCV  VIRTIO_VSOCK_SHUTDOWN_RCV
#define SEND VIRTIO_VSOCK_SHUTDOWN_SEND

static void test_host_closes_one_way(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p;

    assert_int_equal(send(f->host, "last", 4, 0), 4);
    assert_int_equal(shutdown(f->host, SHUT_WR), 0);
    fake_vsock_loop(f);
    expect(f, VIRTIO_VSOCK_OP_RW);
    p = expect(f, VIRTIO_VSOCK_OP_SHUTDOWN);
    assert_int_equal(p.flags, SEND);
    assert_int_equal(vsock_state(&f->v), VSOCK_CONNECTED);
    assert_int_equal(vsock_poll_events(&f->v), 0);
    /* The other direction lives on. */
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "answer", 6);
    assert_host_reads(f, "answer");
    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, RCV | SEND, NULL, 0);
    expect(f, VIRTIO_VSOCK_OP_RST);
    fake_vsock_loop(f);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
    assert_host_reads(f, "");
    assert_quiet(f);
}

static void test_host_closes(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p;

    assert_int_equal(send(f->host, "last", 4, 0), 4);
    fd_close(&f->host);
    fake_vsock_loop(f);
    expect(f, VIRTIO_VSOCK_OP_RW);
    p = expect(f, VIRTIO_VSOCK_OP_SHUTDOWN);
    if (p.flags != (RCV | SEND)) {
        p = expect(f, VIRTIO_VSOCK_OP_SHUTDOWN);
    }
    assert_int_equal(p.flags, RCV | SEND);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSING);
    assert_int_equal(vsock_poll_events(&f->v), -1);
    /* What the guest had on its way is taken and forgotten. */
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "late", 4);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RST, 0, NULL, 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
    assert_int_equal(vsock_connect(&f->v), -EISCONN);
    assert_quiet(f);
}

static void test_host_closes_after_one_way(void **state)
{
    struct fake_vsock *f = *state;

    assert_int_equal(shutdown(f->host, SHUT_WR), 0);
    fake_vsock_loop(f);
    assert_int_equal(expect(f, VIRTIO_VSOCK_OP_SHUTDOWN).flags, SEND);
    fd_close(&f->host);
    fake_vsock_loop(f);
    assert_int_equal(expect(f, VIRTIO_VSOCK_OP_SHUTDOWN).flags, RCV | SEND);
    assert_int_equal(vsock_poll_events(&f->v), -1);
    assert_quiet(f);
}

/* The host goes while its bytes cannot be sent for lack of credit. */
static void test_host_closes_without_credit(void **state)
{
    struct fake_vsock *f = *state;
    struct vsock_packet p;

    f->buf_alloc = 2;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    assert_int_equal(send(f->host, "abcd", 4, 0), 4);
    fd_close(&f->host);
    fake_vsock_loop(f);
    p = expect(f, VIRTIO_VSOCK_OP_RW);
    assert_int_equal(p.len, 2);
    expect(f, VIRTIO_VSOCK_OP_CREDIT_REQUEST);
    assert_int_equal(vsock_poll_events(&f->v), -1);
    f->fwd_cnt = 2;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    p = expect(f, VIRTIO_VSOCK_OP_RW);
    assert_int_equal(p.len, 2);
    f->fwd_cnt = 4;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, NULL, 0);
    while (p.flags != (RCV | SEND)) {
        assert_true(fake_vsock_receive(f, &p, NULL));
    }
    assert_int_equal(p.op, VIRTIO_VSOCK_OP_SHUTDOWN);
}

/* The host still sends, but takes nothing any more. */
static void test_host_stops_reading(void **state)
{
    struct fake_vsock *f = *state;

    assert_int_equal(shutdown(f->host, SHUT_RD), 0);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "to nobody", 9);
    fake_vsock_loop(f);
    assert_int_equal(expect(f, VIRTIO_VSOCK_OP_SHUTDOWN).flags, RCV);
    assert_int_equal(f->v.fwd_cnt, 9);
    assert_int_equal(send(f->host, "go on", 5, 0), 5);
    fake_vsock_loop(f);
    expect(f, VIRTIO_VSOCK_OP_RW);
    assert_int_equal(shutdown(f->host, SHUT_WR), 0);
    fake_vsock_loop(f);
    assert_int_equal(expect(f, VIRTIO_VSOCK_OP_SHUTDOWN).flags, RCV | SEND);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSING);
    assert_quiet(f);
}

static void test_guest_closes_one_way(void **state)
{
    struct fake_vsock *f = *state;

    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "bye", 3);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, SEND, NULL, 0);
    assert_host_reads(f, "bye");
    assert_host_reads(f, "");
    assert_int_equal(send(f->host, "still here", 10, 0), 10);
    fake_vsock_loop(f);
    expect(f, VIRTIO_VSOCK_OP_RW);
    assert_int_equal(vsock_state(&f->v), VSOCK_CONNECTED);
    /* And now the host too: both ways are over. */
    assert_int_equal(shutdown(f->host, SHUT_WR), 0);
    fake_vsock_loop(f);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSING);
}

static void test_guest_stops_reading(void **state)
{
    struct fake_vsock *f = *state;

    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, RCV, NULL, 0);
    assert_int_equal(send(f->host, "x", 1, MSG_NOSIGNAL), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(vsock_poll_events(&f->v), 0);
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, "more", 4);
    assert_host_reads(f, "more");
    /* The second half arrives in a packet of its own. */
    fake_vsock_send(f, VIRTIO_VSOCK_OP_SHUTDOWN, SEND, NULL, 0);
    expect(f, VIRTIO_VSOCK_OP_RST);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
    assert_quiet(f);
}

static void test_guest_closes_with_bytes_waiting(void **state)
{
    struct fake_vsock *f = *state;
    static uint8_t data[1 << 16];
    uint32_t sent = 0;
    uint32_t got = 0;
    ssize_t n;

    /* The socket fills; what does not fit waits in the ring. */
    while (f->v.ring_len == 0) {
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RW, 0, data, sizeof(data));
        sent += (uint32_t)sizeof(data);
    }
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RST, 0, NULL, 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSING);
    assert_int_equal(vsock_poll_events(&f->v), POLLOUT);
    while ((n = recv(f->host, data, sizeof(data), 0)) > 0) {
        got += (uint32_t)n;
        fake_vsock_loop(f);
    }
    assert_int_equal(n, 0);
    assert_int_equal(got, sent);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
    assert_int_equal(vsock_poll_events(&f->v), -1);
}

static void test_driver_reset(void **state)
{
    struct fake_vsock *f = *state;

    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_CLOSED);
    assert_int_equal(vsock_poll_events(&f->v), -1);
    vsock_host_ready(&f->v, POLLIN | POLLHUP);
    assert_host_reads(f, "");
}

static void test_driver_reset_while_connecting(void **state)
{
    struct fake_vsock *f = *state;

    assert_int_equal(vsock_connect(&f->v), 0);
    fake_write32(&f->d, VIRTIO_MMIO_STATUS, 0);
    assert_int_equal(vsock_state(&f->v), VSOCK_REFUSED);
    assert_int_equal(vsock_connect(&f->v), -EAGAIN);
}

#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CONNECTED(name) cmocka_unit_test_setup_teardown(name, setup_connected, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONNECTED(test_host_closes_one_way),
        CONNECTED(test_host_closes),
        CONNECTED(test_host_closes_after_one_way),
        CONNECTED(test_host_closes_without_credit),
        CONNECTED(test_host_stops_reading),
        CONNECTED(test_guest_closes_one_way),
        CONNECTED(test_guest_stops_reading),
        CONNECTED(test_guest_closes_with_bytes_waiting),
        CONNECTED(test_driver_reset),
        TEST(test_driver_reset_while_connecting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
