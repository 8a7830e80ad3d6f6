/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/virtio/vsock_internal.h"

/* The guest's side is over: what the host has not taken yet is all that remains to be done. */
static void end_guest_side(struct vsock *v)
{
    v->state = VSOCK_CLOSING;
    v->shutdown_in = VSOCK_SHUTDOWN_BOTH;
    v->shutdown_out = VSOCK_SHUTDOWN_BOTH;
    v->pending = 0;
    v->guest_done = true;
}

/* The host takes nothing more: bytes count as taken, and the guest is told. */
static void stop_host_writes(struct vsock *v)
{
    v->host_write_closed = true;
    v->fwd_cnt += v->ring_len;
    v->ring_len = 0;
    if (v->state == VSOCK_CONNECTED) {
        vsock_tell_shutdown(v, VIRTIO_VSOCK_SHUTDOWN_RCV);
    }
}

/* Sends to the host without blocking. Bytes the host took; 0 when it takes none just now. */
static uint32_t send_to_host(struct vsock *v, struct iovec *iov, size_t n)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t done;

    do {
        done = sendmsg(v->host_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (done < 0 && errno == EINTR);
    if (done >= 0) {
        v->fwd_cnt += (uint32_t)done;
        v->tx_bytes += (uint64_t)done;
        return (uint32_t)done;
    }
    if (errno != EAGAIN) {
        stop_host_writes(v);
    }
    return 0;
}

/* The used (or on request the unused) part of the ring as at most two pieces. */
static size_t ring_iov(struct vsock *v, bool unused, struct iovec iov[2])
{
    uint32_t at = (v->ring_at + (unused ? v->ring_len : 0)) % VSOCK_BUF_ALLOC;
    uint32_t len = unused ? VSOCK_BUF_ALLOC - v->ring_len : v->ring_len;
    uint32_t first = len < VSOCK_BUF_ALLOC - at ? len : VSOCK_BUF_ALLOC - at;

    iov[0] = (struct iovec){.iov_base = v->ring + at, .iov_len = first};
    iov[1] = (struct iovec){.iov_base = v->ring, .iov_len = len - first};
    return len > first ? 2 : 1;
}

void vsock_flush_ring(struct vsock *v)
{
    while (v->ring_len > 0) {
        struct iovec iov[2];
        uint32_t done = send_to_host(v, iov, ring_iov(v, false, iov));

        if (done == 0) {
            return;
        }
        v->ring_at = (v->ring_at + done) % VSOCK_BUF_ALLOC;
        v->ring_len -= done;
    }
}

/* Keeps len bytes from offset of the packet's payload; there is room, or it is cut. */
static void keep_in_ring(struct vsock *v, uint32_t offset, uint32_t len)
{
    struct iovec iov[2];
    size_t n = ring_iov(v, true, iov);

    for (size_t i = 0; i < n && len > 0; i++) {
        size_t piece = iov[i].iov_len < len ? iov[i].iov_len : len;
        size_t got = virtqueue_read(&v->queues[VSOCK_QUEUE_TX], &v->chain,
                                    VSOCK_HEADER_SIZE + offset, iov[i].iov_base, piece);

        v->ring_len += (uint32_t)got;
        offset += (uint32_t)got;
        len -= (uint32_t)got;
    }
}

/* Takes the payload of the packet in v->chain, whose length was checked. */
static void take_payload(struct vsock *v, uint32_t len)
{
    uint32_t done = 0;

    v->received += len;
    while (v->ring_len == 0 && !v->host_write_closed && done < len) {
        struct iovec iov[VSOCK_IOV_MAX];
        uint32_t want;
        size_t n = virtqueue_readable_iov(&v->queues[VSOCK_QUEUE_TX], &v->chain,
                                          VSOCK_HEADER_SIZE + done, len - done, iov,
                                          VSOCK_IOV_MAX, &want);
        uint32_t got = send_to_host(v, iov, n);

        done += got;
        if (got < want) {
            break;
        }
    }
    if (v->host_write_closed) {
        v->fwd_cnt += len - done;
    } else {
        keep_in_ring(v, done, len - done);
    }
}

/* Answers p with a reset that swaps its addresses. The caller saw that there is room. */
static void reply_reset(struct vsock *v, const struct vsock_packet *p)
{
    v->replies[v->n_replies++] =
        (struct vsock_reply){.type = p->type, .src_port = p->dst_port, .dst_port = p->src_port};
}

static void handle_data(struct vsock *v, const struct vsock_packet *p)
{
    if ((v->shutdown_in & VIRTIO_VSOCK_SHUTDOWN_SEND) != 0) {
        v->dropped_count++;
        return;
    }
    if (p->len > VSOCK_BUF_ALLOC - (v->received - v->fwd_cnt)) {
        /* More than was granted: no honest peer does that. */
        v->dropped_count++;
        reply_reset(v, p);
        end_guest_side(v);
        return;
    }
    take_payload(v, p->len);
}

static void handle_shutdown(struct vsock *v, const struct vsock_packet *p)
{
    uint32_t added = p->flags & VSOCK_SHUTDOWN_BOTH & ~v->shutdown_in;

    v->shutdown_in |= added;
    if (v->shutdown_in == VSOCK_SHUTDOWN_BOTH) {
        reply_reset(v, p);
        end_guest_side(v);
    } else if ((added & VIRTIO_VSOCK_SHUTDOWN_RCV) != 0) {
        (void)shutdown(v->host_fd, SHUT_RD);
    }
}

/* A packet of the open connection. */
static void handle_open(struct vsock *v, const struct vsock_packet *p)
{
    if (v->guest_done) {
        v->dropped_count++;
        return;
    }
    switch (p->op) {
    case VIRTIO_VSOCK_OP_RW:
        handle_data(v, p);
        return;
    case VIRTIO_VSOCK_OP_SHUTDOWN:
        handle_shutdown(v, p);
        return;
    case VIRTIO_VSOCK_OP_RST:
        end_guest_side(v);
        return;
    case VIRTIO_VSOCK_OP_CREDIT_REQUEST:
        v->pending |= vsock_op_bit(VIRTIO_VSOCK_OP_CREDIT_UPDATE);
        return;
    case VIRTIO_VSOCK_OP_CREDIT_UPDATE:
        return;
    default:
        v->dropped_count++;
        return;
    }
}

static void handle_connecting(struct vsock *v, const struct vsock_packet *p)
{
    switch (p->op) {
    case VIRTIO_VSOCK_OP_RESPONSE:
        v->state = VSOCK_CONNECTED;
        return;
    case VIRTIO_VSOCK_OP_RST:
        v->state = VSOCK_REFUSED;
        v->pending = 0;
        return;
    default:
        v->dropped_count++;
        v->state = VSOCK_REFUSED;
        v->pending = 0;
        reply_reset(v, p);
        return;
    }
}

/* A connection that the guest was never asked for is none, though it may guess its port. */
static bool is_known(const struct vsock *v)
{
    return vsock_is_open(v) || (v->state == VSOCK_CONNECTING &&
                                (v->pending & vsock_op_bit(VIRTIO_VSOCK_OP_REQUEST)) == 0);
}

static void handle_packet(struct vsock *v, const struct vsock_packet *p)
{
    bool ours = p->type == VIRTIO_VSOCK_TYPE_STREAM && p->src_port == VSOCK_GUEST_PORT &&
                p->dst_port == v->host_port;

    if (p->src_cid != v->guest_cid || p->dst_cid != VSOCK_HOST_CID) {
        v->dropped_count++;
        return;
    }
    if (ours && is_known(v)) {
        v->peer_buf_alloc = p->buf_alloc;
        v->peer_fwd_cnt = p->fwd_cnt;
        if (vsock_peer_credit(v) > 0) {
            v->credit_asked = false;
        }
        if (v->state == VSOCK_CONNECTING) {
            handle_connecting(v, p);
        } else {
            handle_open(v, p);
        }
        return;
    }
    if (p->op == VIRTIO_VSOCK_OP_RST) {
        return;
    }
    if (p->op == VIRTIO_VSOCK_OP_REQUEST) {
        v->refused_count++;
    } else {
        v->dropped_count++;
    }
    reply_reset(v, p);
}

/* The packet in v->chain. */
static void handle_chain(struct vsock *v)
{
    const struct virtqueue *q = &v->queues[VSOCK_QUEUE_TX];
    uint8_t bytes[VSOCK_HEADER_SIZE];
    struct vsock_packet p;

    if (v->chain.n_writable != 0 ||
        virtqueue_read(q, &v->chain, 0, bytes, sizeof(bytes)) < sizeof(bytes)) {
        v->dropped_count++;
        return;
    }
    vsock_packet_decode(&p, bytes);
    if (p.len > v->chain.readable_len - VSOCK_HEADER_SIZE) {
        v->dropped_count++;
        return;
    }
    handle_packet(v, &p);
}

void vsock_serve_tx(struct vsock *v)
{
    struct virtqueue *q = &v->queues[VSOCK_QUEUE_TX];

    virtqueue_want_kicks(q, false);
    for (unsigned int budget = VSOCK_QUEUE_SIZE; budget > 0; budget--) {
        int got;

        if (v->n_replies == VSOCK_REPLIES_MAX) {
            /* The guest gets no further before it has given buffers for the answers. */
            v->tx_blocked = true;
            virtqueue_publish(q);
            return;
        }
        got = virtqueue_pop(q, &v->chain);
        if (got < 0) {
            return;
        }
        if (got == 0) {
            virtqueue_publish(q);
            virtqueue_want_kicks(q, true);
            if (!virtqueue_has_work(q)) {
                return;
            }
            virtqueue_want_kicks(q, false);
            continue;
        }
        handle_chain(v);
        virtqueue_push(q, v->chain.head, 0);
    }
    virtqueue_publish(q);
    q->more = true;
}
