/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_vsock.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <linux/virtio_vsock.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

#define RX_BUFFERS    FAKE_BUFFERS
#define EVENT_BUFFERS (FAKE_BUFFERS + FAKE_QUEUE_SIZE * FAKE_RX_BUFFER)
#define TX_HEADER     (EVENT_BUFFERS + 0x1000)
#define TX_PAYLOAD    (TX_HEADER + 0x1000)

static void make_device(struct fake_vsock *f)
{
    struct err err = {0};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
        vsock_init(&f->v, FAKE_CID, pair[1], &err) < 0) {
        abort();
    }
    f->host = pair[0];
    f->device_end = pair[1];
    f->buf_alloc = 256 * 1024;
    f->fwd_cnt = 0;
    fake_driver_attach(&f->d, &f->t, &f->v.device);
}

void fake_vsock_init(struct fake_vsock *f, uint16_t n_rx)
{
    memset(f, 0, sizeof(*f));
    fake_driver_init(&f->d);
    make_device(f);
    fake_driver_start(&f->d, 3, FAKE_QUEUE_SIZE);
    for (uint16_t i = 0; i < 8; i++) {
        fake_desc(&f->d, FAKE_EVENT, i, EVENT_BUFFERS + i * 16u, 4, VRING_DESC_F_WRITE, 0);
        fake_offer(&f->d, FAKE_EVENT, i);
    }
    fake_kick(&f->d, FAKE_EVENT);
    fake_vsock_post(f, n_rx);
}

static size_t save(const struct fake_vsock *f, uint8_t *state)
{
    struct bytes_writer w = bytes_writer_init(state, VIRTIO_MMIO_STATE_MAX);

    virtio_mmio_save(&f->t, &w);
    if (w.bad) {
        abort();
    }
    return w.len;
}

int fake_vsock_restore(struct fake_vsock *f, struct fake_vsock *other, struct err *err)
{
    uint8_t state[VIRTIO_MMIO_STATE_MAX];
    struct bytes_reader r = bytes_reader_init(state, save(other, state));

    memset(f, 0, sizeof(*f));
    fake_driver_clone(&f->d, &other->d);
    make_device(f);
    f->n_rx = other->n_rx;
    return virtio_mmio_load(&f->t, &r, err);
}

int fake_vsock_replace(struct fake_vsock *f, struct err *err)
{
    uint8_t state[VIRTIO_MMIO_STATE_MAX];
    struct bytes_reader r = bytes_reader_init(state, save(f, state));
    struct fake_driver d;
    uint16_t n_rx = f->n_rx;

    fake_driver_take_over(&d, &f->d);
    fake_vsock_finish(f);
    memset(f, 0, sizeof(*f));
    fake_driver_take_over(&f->d, &d);
    make_device(f);
    f->n_rx = n_rx;
    return virtio_mmio_load(&f->t, &r, err);
}

void fake_vsock_finish(struct fake_vsock *f)
{
    vsock_finish(&f->v);
    fd_close(&f->host);
    fd_close(&f->device_end);
    fake_driver_finish(&f->d);
}

void fake_vsock_post(struct fake_vsock *f, uint16_t n)
{
    for (uint16_t i = 0; i < n; i++) {
        uint16_t slot = f->n_rx++ % FAKE_QUEUE_SIZE;

        fake_desc(&f->d, FAKE_RX, slot, RX_BUFFERS + slot * FAKE_RX_BUFFER, FAKE_RX_BUFFER,
                  VRING_DESC_F_WRITE, 0);
        fake_offer(&f->d, FAKE_RX, slot);
    }
    fake_kick(&f->d, FAKE_RX);
}

bool fake_vsock_receive(struct fake_vsock *f, struct vsock_packet *ret_packet, void *payload)
{
    uint32_t head;
    uint32_t len;
    gpa_t buffer;

    if (!fake_take_used(&f->d, FAKE_RX, &head, &len)) {
        return false;
    }
    buffer = RX_BUFFERS + head * FAKE_RX_BUFFER;
    vsock_packet_decode(ret_packet, fake_at(&f->d, buffer, VSOCK_HEADER_SIZE));
    if (len != VSOCK_HEADER_SIZE + ret_packet->len || ret_packet->len > FAKE_PAYLOAD) {
        abort();
    }
    if (payload != NULL) {
        memcpy(payload, fake_at(&f->d, buffer + VSOCK_HEADER_SIZE, ret_packet->len),
               ret_packet->len);
    }
    return true;
}

void fake_vsock_send_raw(struct fake_vsock *f, const struct vsock_packet *p,
                         const void *payload, uint32_t payload_len)
{
    vsock_packet_encode(p, fake_at(&f->d, TX_HEADER, VSOCK_HEADER_SIZE));
    fake_desc(&f->d, FAKE_TX, 0, TX_HEADER, VSOCK_HEADER_SIZE,
              payload_len > 0 ? VRING_DESC_F_NEXT : 0, 1);
    if (payload_len > 0) {
        memcpy(fake_at(&f->d, TX_PAYLOAD, payload_len), payload, payload_len);
        fake_desc(&f->d, FAKE_TX, 1, TX_PAYLOAD, payload_len, 0, 0);
    }
    fake_offer(&f->d, FAKE_TX, 0);
    fake_kick(&f->d, FAKE_TX);
}

void fake_vsock_send(struct fake_vsock *f, uint16_t op, uint32_t flags, const void *payload,
                     uint32_t len)
{
    struct vsock_packet p = {
        .src_cid = FAKE_CID,
        .dst_cid = VSOCK_HOST_CID,
        .src_port = VSOCK_GUEST_PORT,
        .dst_port = f->host_port,
        .len = len,
        .type = VIRTIO_VSOCK_TYPE_STREAM,
        .op = op,
        .flags = flags,
        .buf_alloc = f->buf_alloc,
        .fwd_cnt = f->fwd_cnt,
    };

    fake_vsock_send_raw(f, &p, payload, len);
}

void fake_vsock_establish(struct fake_vsock *f)
{
    struct vsock_packet p;

    if (vsock_connect(&f->v) < 0 || !fake_vsock_receive(f, &p, NULL) ||
        p.op != VIRTIO_VSOCK_OP_REQUEST) {
        abort();
    }
    f->host_port = p.src_port;
    fake_vsock_send(f, VIRTIO_VSOCK_OP_RESPONSE, 0, NULL, 0);
    if (vsock_state(&f->v) != VSOCK_CONNECTED) {
        abort();
    }
}

void fake_vsock_loop(struct fake_vsock *f)
{
    for (;;) {
        bool more = virtio_mmio_serve_more(&f->t);
        int events = vsock_poll_events(&f->v);
        struct pollfd p = {.fd = events < 0 ? -1 : f->device_end, .events = (short)events};

        if (poll(&p, 1, 0) > 0) {
            vsock_host_ready(&f->v, p.revents);
        } else if (!more) {
            return;
        }
    }
}
