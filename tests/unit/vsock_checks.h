/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of virtio-vsock share: a fresh or a connected device, and what is expected of
 * its next packet. Only for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_UNIT_VSOCK_CHECKS_H
#define SKILLVM_TESTS_UNIT_VSOCK_CHECKS_H

#include "tests/unit/cmocka_all.h"

#include <linux/virtio_vsock.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/fake_vsock.h"

static inline int setup(void **state)
{
    static struct fake_vsock f;

    fake_vsock_init(&f, 16);
    *state = &f;
    return virtio_mmio_is_active(&f.t) ? 0 : -1;
}

static inline int setup_connected(void **state)
{
    int result = setup(state);

    if (result == 0) {
        fake_vsock_establish(*state);
    }
    return result;
}

static inline int teardown(void **state)
{
    fake_vsock_finish(*state);
    return 0;
}

static inline void assert_quiet(struct fake_vsock *f)
{
    struct vsock_packet p;

    assert_false(fake_vsock_receive(f, &p, NULL));
    assert_null(virtio_mmio_failure(&f->t));
    assert_int_equal(f->v.dropped_count, 0);
}

/* The next packet is one of the connection with this operation. */
static inline struct vsock_packet expect(struct fake_vsock *f, uint16_t op)
{
    struct vsock_packet p;

    assert_true(fake_vsock_receive(f, &p, NULL));
    assert_int_equal(p.op, op);
    assert_int_equal(p.src_cid, VSOCK_HOST_CID);
    assert_int_equal(p.dst_cid, FAKE_CID);
    assert_int_equal(p.src_port, f->host_port);
    assert_int_equal(p.dst_port, VSOCK_GUEST_PORT);
    assert_int_equal(p.type, VIRTIO_VSOCK_TYPE_STREAM);
    return p;
}

static inline void assert_host_reads(struct fake_vsock *f, const char *text)
{
    char got[64] = {0};
    ssize_t n = recv(f->host, got, sizeof(got) - 1, 0);

    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

/* A right packet of the connection, to be spoiled. */
static inline struct vsock_packet right_packet(const struct fake_vsock *f, uint16_t op)
{
    return (struct vsock_packet){
        .src_cid = FAKE_CID,
        .dst_cid = VSOCK_HOST_CID,
        .src_port = VSOCK_GUEST_PORT,
        .dst_port = f->host_port,
        .type = VIRTIO_VSOCK_TYPE_STREAM,
        .op = op,
        .buf_alloc = f->buf_alloc,
    };
}

static inline void assert_reset_for(struct fake_vsock *f, const struct vsock_packet *p)
{
    struct vsock_packet reply;

    assert_true(fake_vsock_receive(f, &reply, NULL));
    assert_int_equal(reply.op, VIRTIO_VSOCK_OP_RST);
    assert_int_equal(reply.src_cid, VSOCK_HOST_CID);
    assert_int_equal(reply.dst_cid, FAKE_CID);
    assert_int_equal(reply.src_port, p->dst_port);
    assert_int_equal(reply.dst_port, p->src_port);
    assert_int_equal(reply.type, p->type);
    assert_false(fake_vsock_receive(f, &reply, NULL));
}

#endif
