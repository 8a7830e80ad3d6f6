/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vsock packets of a hostile guest, mixed with a host that sends, reads, closes, and with
 * snapshots. Credit must hold in both directions and the loop must come to rest.
 */
#include <linux/virtio_vsock.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "tests/unit/fake_vsock.h"

#define STEPS_MAX 200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t scratch[1 << 16];

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

/* As fake_vsock_loop(), but a device that never comes to rest is found. */
static void loop(struct fake_vsock *f)
{
    for (unsigned int turns = 0;; turns++) {
        bool more = virtio_mmio_serve_more(&f->t);
        int events = vsock_poll_events(&f->v);
        struct pollfd p = {.fd = events < 0 ? -1 : f->device_end, .events = (short)events};

        check(turns < 10000);
        if (poll(&p, 1, 0) > 0) {
            vsock_host_ready(&f->v, p.revents);
        } else if (!more) {
            return;
        }
    }
}

static void check_packet(const struct fake_vsock *f, const struct vsock_packet *p)
{
    check(p->src_cid == VSOCK_HOST_CID && p->dst_cid == FAKE_CID);
    check(p->op >= VIRTIO_VSOCK_OP_REQUEST && p->op <= VIRTIO_VSOCK_OP_CREDIT_REQUEST);
    check(p->op != VIRTIO_VSOCK_OP_RESPONSE);
    check((p->len > 0) == (p->op == VIRTIO_VSOCK_OP_RW));
    check(p->op != VIRTIO_VSOCK_OP_REQUEST || p->dst_port == VSOCK_GUEST_PORT);
    check(p->op == VIRTIO_VSOCK_OP_RST || p->buf_alloc == VSOCK_BUF_ALLOC);
    (void)f;
}

/* A guest knows the port of the last attempt from its snapshot, and so the next one's. */
static void guess_port(struct fake_vsock *f)
{
    f->host_port = f->v.host_port + 1;
}

static void receive_all(struct fake_vsock *f)
{
    struct vsock_packet p;

    while (fake_vsock_receive(f, &p, scratch)) {
        check_packet(f, &p);
        if (p.op == VIRTIO_VSOCK_OP_REQUEST) {
            f->host_port = p.src_port;
        }
    }
}

static void send_packet(struct fake_vsock *f, struct bytes_reader *r)
{
    uint8_t odd = bytes_get_u8(r);
    uint16_t op = bytes_get_u8(r) % 10;
    uint32_t len = bytes_get_u16(r);
    struct vsock_packet p = {
        .src_cid = (odd & 1) ? bytes_get_u64(r) : FAKE_CID,
        .dst_cid = (odd & 2) ? bytes_get_u64(r) : VSOCK_HOST_CID,
        .src_port = (odd & 4) ? bytes_get_u32(r) : VSOCK_GUEST_PORT,
        .dst_port = (odd & 8) ? bytes_get_u32(r) : f->host_port,
        .len = (odd & 16) ? bytes_get_u32(r) : len,
        .type = (odd & 32) ? bytes_get_u16(r) : VIRTIO_VSOCK_TYPE_STREAM,
        .op = op,
        .flags = bytes_get_u8(r),
        .buf_alloc = (odd & 64) ? bytes_get_u32(r) : 1u << 18,
        .fwd_cnt = (odd & 128) ? bytes_get_u32(r) : f->v.sent,
    };

    if (op != VIRTIO_VSOCK_OP_RW && (odd & 16) == 0) {
        p.len = len = 0;
    }
    fake_vsock_send_raw(f, &p, scratch, len);
}

static void restore(struct fake_vsock *f)
{
    struct err err = {0};

    /* One that failed cannot be restored; it is not saved either. */
    if (virtio_mmio_failure(&f->t) != NULL) {
        return;
    }
    check(fake_vsock_replace(f, &err) == 0);
    virtio_mmio_resume(&f->t);
    check(vsock_state(&f->v) == VSOCK_IDLE);
    guess_port(f);
}

static void answer_event(struct fake_vsock *f)
{
    uint32_t head;
    uint32_t len;

    while (fake_take_used(&f->d, FAKE_EVENT, &head, &len)) {
        check(len == 4);
        fake_offer(&f->d, FAKE_EVENT, (uint16_t)head);
    }
    fake_kick(&f->d, FAKE_EVENT);
}

static void step(struct fake_vsock *f, struct bytes_reader *r)
{
    switch (bytes_get_u8(r) % 12) {
    case 0:
        (void)vsock_connect(&f->v);
        receive_all(f);
        return;
    case 1:
        fake_vsock_send(f, VIRTIO_VSOCK_OP_RESPONSE, 0, NULL, 0);
        return;
    case 2:
    case 3:
    case 4:
        send_packet(f, r);
        return;
    case 5:
        (void)send(f->host, scratch, bytes_get_u16(r), MSG_NOSIGNAL);
        return;
    case 6:
        (void)recv(f->host, scratch, bytes_get_u16(r), 0);
        return;
    case 7:
        (void)shutdown(f->host, (int)(bytes_get_u8(r) % 3));
        return;
    case 8:
        receive_all(f);
        fake_vsock_post(f, bytes_get_u8(r) % 32);
        return;
    case 9:
        answer_event(f);
        return;
    case 10:
        restore(f);
        return;
    default:
        fd_close(&f->host);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake_vsock f;
    struct bytes_reader r = bytes_reader_init(data, size);

    fake_vsock_init(&f, bytes_get_u8(&r) % 64);
    guess_port(&f);
    for (unsigned int i = 0; i < STEPS_MAX && bytes_left(&r) > 0; i++) {
        uint8_t flags = r.data[r.at] >> 4;

        step(&f, &r);
        if ((flags & 1) != 0) {
            loop(&f);
        }
        check(f.v.ring_len <= VSOCK_BUF_ALLOC);
        check(f.v.received - f.v.fwd_cnt == f.v.ring_len || vsock_state(&f.v) == VSOCK_CLOSED);
        check(f.v.n_replies <= VSOCK_REPLIES_MAX);
        check(vsock_state(&f.v) != VSOCK_CONNECTED ||
              (f.v.pending & (1u << VIRTIO_VSOCK_OP_REQUEST)) == 0);
        check(vsock_poll_events(&f.v) == -1 || vsock_state(&f.v) == VSOCK_CONNECTED ||
              vsock_state(&f.v) == VSOCK_CLOSING);
    }
    loop(&f);
    fake_vsock_finish(&f);
    return 0;
}
