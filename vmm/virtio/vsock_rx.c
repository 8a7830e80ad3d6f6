/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/virtio/vsock_internal.h"

/* Payload of one packet: what Linux uses, and well above its receive buffers. */
#define PACKET_MAX (64u * 1024u)

/* Takes a buffer of the guest's into chain: 1, 0 when there is none, -EPROTO. */
static int pop_rx(struct vsock *v, struct virtqueue_chain *chain)
{
    struct virtqueue *q = &v->queues[VSOCK_QUEUE_RX];
    int got = virtqueue_pop(q, chain);

    if (got > 0 && (chain->n_readable != 0 || chain->writable_len <= VSOCK_HEADER_SIZE)) {
        virtqueue_fail(q, "vsock receive buffer too small or not writable");
        return -EPROTO;
    }
    return got;
}

/* Writes p in front of chain's payload, from the host to the guest, and returns the chain. */
static void push_packet(struct vsock *v, const struct virtqueue_chain *chain,
                        struct vsock_packet *p)
{
    struct virtqueue *q = &v->queues[VSOCK_QUEUE_RX];
    uint8_t bytes[VSOCK_HEADER_SIZE];

    p->src_cid = VSOCK_HOST_CID;
    p->dst_cid = v->guest_cid;
    vsock_packet_encode(p, bytes);
    virtqueue_write(q, chain, 0, bytes, sizeof(bytes));
    virtqueue_push(q, chain->head, VSOCK_HEADER_SIZE + p->len);
}

/* A packet of the connection. */
static void push_own_packet(struct vsock *v, const struct virtqueue_chain *chain, uint16_t op,
                            uint32_t flags, uint32_t len)
{
    struct vsock_packet p = {
        .src_port = v->host_port,
        .dst_port = VSOCK_GUEST_PORT,
        .len = len,
        .type = VIRTIO_VSOCK_TYPE_STREAM,
        .op = op,
        .flags = flags,
        .buf_alloc = VSOCK_BUF_ALLOC,
        .fwd_cnt = v->fwd_cnt,
    };

    /* Every packet tells the credit. */
    v->told_fwd_cnt = v->fwd_cnt;
    v->pending &= ~(vsock_op_bit(op) | vsock_op_bit(VIRTIO_VSOCK_OP_CREDIT_UPDATE));
    push_packet(v, chain, &p);
}

/* Sends one control packet, of which at least one waits. 1, 0 without a buffer, -EPROTO. */
static int send_control(struct vsock *v)
{
    struct virtqueue_chain *chain = &v->rx_chains[0];
    int got = pop_rx(v, chain);
    uint16_t op;

    if (got <= 0) {
        return got;
    }
    if (v->n_replies > 0) {
        struct vsock_packet p = {
            .src_port = v->replies[0].src_port,
            .dst_port = v->replies[0].dst_port,
            .type = v->replies[0].type,
            .op = VIRTIO_VSOCK_OP_RST,
        };

        push_packet(v, chain, &p);
        v->n_replies--;
        memmove(v->replies, v->replies + 1, v->n_replies * sizeof(v->replies[0]));
        return 1;
    }
    /* In the order of their numbers: a request is the first of its connection. */
    op = (uint16_t)__builtin_ctz(v->pending);
    push_own_packet(v, chain, op, op == VIRTIO_VSOCK_OP_SHUTDOWN ? v->shutdown_out : 0, 0);
    return 1;
}

/* Reads from the host into n pieces without blocking: bytes, 0 when there are none just now. */
static uint32_t receive_from_host(struct vsock *v, struct iovec *iov, size_t n)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t done;

    do {
        done = recvmsg(v->host_fd, &message, MSG_DONTWAIT);
    } while (done < 0 && errno == EINTR);
    if (done > 0) {
        return (uint32_t)done;
    }
    v->host_drained = true;
    if (done == 0 || errno != EAGAIN) {
        v->host_ended = true;
        vsock_tell_shutdown(v, VIRTIO_VSOCK_SHUTDOWN_SEND);
    }
    return 0;
}

/*
 * Fills up to VSOCK_RX_BATCH of the guest's buffers with one read. Packets sent, 0 when there
 * was no buffer, no credit or nothing to read, or -EPROTO.
 */
static int send_data(struct vsock *v)
{
    struct virtqueue *q = &v->queues[VSOCK_QUEUE_RX];
    struct iovec iov[VSOCK_IOV_MAX];
    uint32_t capacity[VSOCK_RX_BATCH];
    uint32_t credit = vsock_peer_credit(v);
    uint32_t total = 0;
    uint32_t left;
    size_t n_iov = 0;
    uint16_t n = 0;
    uint16_t used = 0;

    while (n < VSOCK_RX_BATCH && n_iov < VSOCK_IOV_MAX && total < credit) {
        int got = pop_rx(v, &v->rx_chains[n]);
        uint32_t most = credit - total < PACKET_MAX ? credit - total : PACKET_MAX;

        if (got < 0) {
            return got;
        }
        if (got == 0) {
            break;
        }
        n_iov += virtqueue_writable_iov(q, &v->rx_chains[n], VSOCK_HEADER_SIZE, most,
                                        iov + n_iov, VSOCK_IOV_MAX - n_iov, &capacity[n]);
        total += capacity[n];
        n++;
    }
    if (n == 0) {
        v->rx_starved = true;
        return 0;
    }
    left = receive_from_host(v, iov, n_iov);
    v->host_drained = v->host_drained || left < total;
    v->sent += left;
    v->rx_bytes += left;
    while (left > 0) {
        uint32_t len = left < capacity[used] ? left : capacity[used];

        push_own_packet(v, &v->rx_chains[used], VIRTIO_VSOCK_OP_RW, 0, len);
        left -= len;
        used++;
    }
    virtqueue_unpop(q, (uint16_t)(n - used));
    return used;
}

/* One step towards the guest: packets sent, 0 when there is nothing to do or no buffer. */
static int send_next(struct vsock *v)
{
    if (v->n_replies > 0 || v->pending != 0) {
        int got = send_control(v);

        v->rx_starved = got == 0;
        return got;
    }
    if (!vsock_host_is_wanted(v) || v->host_drained) {
        return 0;
    }
    if (vsock_peer_credit(v) == 0) {
        if (!v->credit_asked) {
            v->credit_asked = true;
            v->pending |= vsock_op_bit(VIRTIO_VSOCK_OP_CREDIT_REQUEST);
            return 1;
        }
        return 0;
    }
    return send_data(v);
}

void vsock_serve_rx(struct vsock *v)
{
    struct virtqueue *q = &v->queues[VSOCK_QUEUE_RX];
    unsigned int budget = 2 * VSOCK_QUEUE_SIZE;

    v->rx_starved = false;
    for (;;) {
        int got = budget == 0 ? 0 : send_next(v);

        if (got < 0) {
            return;
        }
        if (got > 0) {
            budget -= (unsigned int)got < budget ? (unsigned int)got : budget;
            continue;
        }
        /* Kicks of this queue are worth an exit only while something waits for a buffer. */
        virtqueue_publish(q);
        virtqueue_want_kicks(q, v->rx_starved);
        if (budget == 0) {
            q->more = true;
            return;
        }
        if (!v->rx_starved || !virtqueue_has_work(q)) {
            return;
        }
        v->rx_starved = false;
        /* A driver may take back what was seen there, and offer it again. */
        budget--;
    }
}
