/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_vsock.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/virtio/mmio.h"
#include "vmm/virtio/vsock_packet.h"

#define QUEUE_SIZE 128u
enum { QUEUE_RX, QUEUE_TX, QUEUE_EVENT, N_QUEUES };

#define SHUTDOWN_BOTH ((uint32_t)(VIRTIO_VSOCK_SHUTDOWN_RCV | VIRTIO_VSOCK_SHUTDOWN_SEND))
/* Payload of one packet: what Linux uses, and well above its receive buffers. */
#define PACKET_MAX (64u * 1024u)
/* Pieces of guest memory in one system call. */
#define IOV_MAX_PIECES 64u
/* The first of the ports the host connects from; any would do. */
#define HOST_PORT_FIRST 0x10000u
/* The guest is told of freed space when this much has been freed since it last heard. */
#define CREDIT_STEP (VSOCK_BUF_ALLOC / 2u)

static struct vsock *to_vsock(struct virtio_device *dev)
{
    return (struct vsock *)(void *)dev;
}

static bool is_open(const struct vsock *v)
{
    return v->state == VSOCK_CONNECTED || v->state == VSOCK_CLOSING;
}

/* Nothing may be sent before the guest has handled the reset event. */
static bool is_held(const struct vsock *v)
{
    return v->reset_event_due || v->reset_event_out;
}

static uint32_t op_bit(uint16_t op)
{
    return UINT32_C(1) << op;
}

/* Payload bytes that the guest can take now. */
static uint32_t peer_credit(const struct vsock *v)
{
    uint32_t in_flight = v->sent - v->peer_fwd_cnt;

    return in_flight >= v->peer_buf_alloc ? 0 : v->peer_buf_alloc - in_flight;
}

/* True when bytes of the host can still go to the guest. */
static bool host_is_wanted(const struct vsock *v)
{
    return v->state == VSOCK_CONNECTED && !v->host_ended &&
           (v->shutdown_in & VIRTIO_VSOCK_SHUTDOWN_RCV) == 0;
}

static void tell_shutdown(struct vsock *v, uint32_t flags)
{
    if ((v->shutdown_out | flags) != v->shutdown_out) {
        v->shutdown_out |= flags;
        v->pending |= op_bit(VIRTIO_VSOCK_OP_SHUTDOWN);
    }
}

/* The guest's side is over: what the host has not taken yet is all that remains to be done. */
static void end_guest_side(struct vsock *v)
{
    v->state = VSOCK_CLOSING;
    v->shutdown_in = SHUTDOWN_BOTH;
    v->shutdown_out = SHUTDOWN_BOTH;
    v->pending = 0;
    v->guest_done = true;
}

static void close_connection(struct vsock *v)
{
    v->state = VSOCK_CLOSED;
    v->pending = 0;
    v->ring_len = 0;
    /* The host sees its end of file and gets EPIPE: nobody is there any more. */
    (void)shutdown(v->host_fd, SHUT_RDWR);
}

/* --- guest to host --- */

/* The host takes nothing more: bytes count as taken, and the guest is told. */
static void stop_host_writes(struct vsock *v)
{
    v->host_write_closed = true;
    v->fwd_cnt += v->ring_len;
    v->ring_len = 0;
    if (v->state == VSOCK_CONNECTED) {
        tell_shutdown(v, VIRTIO_VSOCK_SHUTDOWN_RCV);
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

/* The used (or with free set the unused) part of the ring as at most two pieces. */
static size_t ring_iov(struct vsock *v, bool unused, struct iovec iov[2])
{
    uint32_t at = (v->ring_at + (unused ? v->ring_len : 0)) % VSOCK_BUF_ALLOC;
    uint32_t len = unused ? VSOCK_BUF_ALLOC - v->ring_len : v->ring_len;
    uint32_t first = len < VSOCK_BUF_ALLOC - at ? len : VSOCK_BUF_ALLOC - at;

    iov[0] = (struct iovec){.iov_base = v->ring + at, .iov_len = first};
    iov[1] = (struct iovec){.iov_base = v->ring, .iov_len = len - first};
    return len > first ? 2 : 1;
}

static void flush_ring(struct vsock *v)
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
        size_t got = virtqueue_read(&v->queues[QUEUE_TX], &v->chain, VSOCK_HEADER_SIZE + offset,
                                    iov[i].iov_base, piece);

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
        struct iovec iov[IOV_MAX_PIECES];
        uint32_t want;
        size_t n =
            virtqueue_readable_iov(&v->queues[QUEUE_TX], &v->chain, VSOCK_HEADER_SIZE + done,
                                   len - done, iov, IOV_MAX_PIECES, &want);
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
    uint32_t added = p->flags & SHUTDOWN_BOTH & ~v->shutdown_in;

    v->shutdown_in |= added;
    if (v->shutdown_in == SHUTDOWN_BOTH) {
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
        v->pending |= op_bit(VIRTIO_VSOCK_OP_CREDIT_UPDATE);
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

static void handle_packet(struct vsock *v, const struct vsock_packet *p)
{
    bool ours = p->type == VIRTIO_VSOCK_TYPE_STREAM && p->src_port == VSOCK_GUEST_PORT &&
                p->dst_port == v->host_port;

    if (p->src_cid != v->guest_cid || p->dst_cid != VSOCK_HOST_CID) {
        v->dropped_count++;
        return;
    }
    if (ours && (v->state == VSOCK_CONNECTING || is_open(v))) {
        v->peer_buf_alloc = p->buf_alloc;
        v->peer_fwd_cnt = p->fwd_cnt;
        if (peer_credit(v) > 0) {
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
    const struct virtqueue *q = &v->queues[QUEUE_TX];
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

static void serve_tx(struct vsock *v)
{
    struct virtqueue *q = &v->queues[QUEUE_TX];

    virtqueue_want_kicks(q, false);
    for (unsigned int budget = QUEUE_SIZE; budget > 0; budget--) {
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

/* --- host to guest --- */

/* Takes a buffer of the guest's into chain: 1, 0 when there is none, -EPROTO. */
static int pop_rx(struct vsock *v, struct virtqueue_chain *chain)
{
    struct virtqueue *q = &v->queues[QUEUE_RX];
    int got = virtqueue_pop(q, chain);

    if (got > 0 && (chain->n_readable != 0 || chain->writable_len <= VSOCK_HEADER_SIZE)) {
        virtqueue_fail(q, "vsock receive buffer too small or not writable");
        return -EPROTO;
    }
    return got;
}

/* Writes p, with the credit fields filled in, in front of chain's payload and returns it. */
static void push_packet(struct vsock *v, const struct virtqueue_chain *chain,
                        struct vsock_packet *p)
{
    struct virtqueue *q = &v->queues[QUEUE_RX];
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
    v->pending &= ~(op_bit(op) | op_bit(VIRTIO_VSOCK_OP_CREDIT_UPDATE));
    push_packet(v, chain, &p);
}

/* Sends one control packet that waits. 1, 0 without a buffer, -EPROTO. */
static int send_control(struct vsock *v)
{
    static const uint16_t order[] = {VIRTIO_VSOCK_OP_REQUEST, VIRTIO_VSOCK_OP_CREDIT_REQUEST,
                                     VIRTIO_VSOCK_OP_SHUTDOWN, VIRTIO_VSOCK_OP_CREDIT_UPDATE};
    int got = pop_rx(v, &v->rx_chains[0]);

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

        push_packet(v, &v->rx_chains[0], &p);
        v->n_replies--;
        memmove(v->replies, v->replies + 1, v->n_replies * sizeof(v->replies[0]));
        return 1;
    }
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if ((v->pending & op_bit(order[i])) != 0) {
            bool is_shutdown = order[i] == VIRTIO_VSOCK_OP_SHUTDOWN;

            push_own_packet(v, &v->rx_chains[0], order[i], is_shutdown ? v->shutdown_out : 0,
                            0);
            return 1;
        }
    }
    virtqueue_unpop(&v->queues[QUEUE_RX], 1);
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
        tell_shutdown(v, VIRTIO_VSOCK_SHUTDOWN_SEND);
    }
    return 0;
}

/*
 * Fills up to VSOCK_RX_BATCH of the guest's buffers with one read. Packets sent, 0 when there
 * was no buffer, no credit or nothing to read, or -EPROTO.
 */
static int send_data(struct vsock *v)
{
    struct virtqueue *q = &v->queues[QUEUE_RX];
    struct iovec iov[IOV_MAX_PIECES];
    uint32_t capacity[VSOCK_RX_BATCH];
    uint32_t credit = peer_credit(v);
    uint32_t total = 0;
    uint32_t left;
    size_t n_iov = 0;
    uint16_t n = 0;
    uint16_t used = 0;

    while (n < VSOCK_RX_BATCH && n_iov < IOV_MAX_PIECES && total < credit) {
        int got = pop_rx(v, &v->rx_chains[n]);
        uint32_t most = credit - total < PACKET_MAX ? credit - total : PACKET_MAX;

        if (got < 0) {
            return got;
        }
        if (got == 0) {
            break;
        }
        n_iov += virtqueue_writable_iov(q, &v->rx_chains[n], VSOCK_HEADER_SIZE, most,
                                        iov + n_iov, IOV_MAX_PIECES - n_iov, &capacity[n]);
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
    if (!host_is_wanted(v) || v->host_drained) {
        return 0;
    }
    if (peer_credit(v) == 0) {
        if (!v->credit_asked) {
            v->credit_asked = true;
            v->pending |= op_bit(VIRTIO_VSOCK_OP_CREDIT_REQUEST);
            return 1;
        }
        return 0;
    }
    return send_data(v);
}

static void serve_rx(struct vsock *v)
{
    struct virtqueue *q = &v->queues[QUEUE_RX];
    unsigned int budget = 2 * QUEUE_SIZE;

    if (is_held(v)) {
        return;
    }
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
    }
}

/* --- both --- */

static void serve_events(struct vsock *v)
{
    struct virtqueue *q = &v->queues[QUEUE_EVENT];
    struct virtio_vsock_event event = {.id = htole32(VIRTIO_VSOCK_EVENT_TRANSPORT_RESET)};
    int got;

    if (!v->reset_event_due) {
        return;
    }
    /* The kick that answers the event is what is waited for. */
    virtqueue_want_kicks(q, true);
    got = virtqueue_pop(q, &v->chain);
    if (got <= 0) {
        return;
    }
    if (virtqueue_write(q, &v->chain, 0, &event, sizeof(event)) < sizeof(event)) {
        virtqueue_fail(q, "vsock event buffer too small");
        return;
    }
    virtqueue_push(q, v->chain.head, sizeof(event));
    virtqueue_publish(q);
    v->reset_event_due = false;
    v->reset_event_out = true;
}

/* What follows from bytes taken, ends seen and answers received. */
static void advance(struct vsock *v)
{
    if (!is_open(v)) {
        return;
    }
    flush_ring(v);
    if ((v->shutdown_in & VIRTIO_VSOCK_SHUTDOWN_SEND) != 0 && v->ring_len == 0 &&
        !v->host_write_closed) {
        v->host_write_closed = true;
        (void)shutdown(v->host_fd, SHUT_WR);
    }
    if (v->guest_done) {
        if (v->ring_len == 0) {
            close_connection(v);
        }
        return;
    }
    if (v->host_gone && (v->host_ended || !host_is_wanted(v))) {
        v->host_ended = true;
        tell_shutdown(v, SHUTDOWN_BOTH);
    }
    if (v->shutdown_out == SHUTDOWN_BOTH) {
        v->state = VSOCK_CLOSING;
    }
    if (v->fwd_cnt - v->told_fwd_cnt >= CREDIT_STEP) {
        v->pending |= op_bit(VIRTIO_VSOCK_OP_CREDIT_UPDATE);
    }
}

/* Does all that can be done now towards the host and the guest. */
static void serve(struct vsock *v)
{
    advance(v);
    serve_rx(v);
    /* Reading may have found the host's end. */
    advance(v);
    serve_rx(v);
    if (v->tx_blocked && v->n_replies < VSOCK_REPLIES_MAX) {
        v->tx_blocked = false;
        v->queues[QUEUE_TX].more = true;
    }
}

static void vsock_notify(struct virtio_device *dev, uint16_t queue)
{
    struct vsock *v = to_vsock(dev);

    if (queue == QUEUE_TX) {
        serve_tx(v);
    } else if (queue == QUEUE_EVENT) {
        if (v->reset_event_out) {
            v->reset_event_out = false;
            virtqueue_want_kicks(&v->queues[QUEUE_EVENT], false);
        }
        serve_events(v);
    }
    serve(v);
}

static void vsock_activate(struct virtio_device *dev, struct virtqueue *queues)
{
    struct vsock *v = to_vsock(dev);

    v->queues = queues;
    virtqueue_want_kicks(&queues[QUEUE_RX], false);
    virtqueue_want_kicks(&queues[QUEUE_EVENT], false);
}

static void vsock_reset(struct virtio_device *dev)
{
    struct vsock *v = to_vsock(dev);

    v->queues = NULL;
    v->n_replies = 0;
    v->pending = 0;
    v->reset_event_due = false;
    v->reset_event_out = false;
    v->tx_blocked = false;
    if (v->state == VSOCK_CONNECTING) {
        v->state = VSOCK_REFUSED;
    } else if (is_open(v)) {
        close_connection(v);
    }
}

static void vsock_config(const struct virtio_device *dev, uint8_t *out)
{
    const struct vsock *v = (const struct vsock *)(const void *)dev;
    struct virtio_vsock_config config = {.guest_cid = htole64(v->guest_cid)};

    memcpy(out, &config, sizeof(config));
}

static void vsock_save(const struct virtio_device *dev, struct bytes_writer *w)
{
    const struct vsock *v = (const struct vsock *)(const void *)dev;

    bytes_put_u64(w, v->guest_cid);
    /* The next attempt takes a port that the guest does not know from before. */
    bytes_put_u32(w, v->host_port);
}

static int vsock_load(struct virtio_device *dev, struct bytes_reader *r, struct err *err)
{
    struct vsock *v = to_vsock(dev);
    uint64_t guest_cid = bytes_get_u64(r);
    uint32_t host_port = bytes_get_u32(r);

    if (r->bad || guest_cid != v->guest_cid) {
        return err_set(err, EINVAL, "vsock state: of guest %" PRIu64 ", not %" PRIu64,
                       guest_cid, v->guest_cid);
    }
    if (host_port < HOST_PORT_FIRST) {
        return err_set(err, EINVAL, "vsock state: impossible port %" PRIu32, host_port);
    }
    v->host_port = host_port;
    return 0;
}

static void vsock_resume(struct virtio_device *dev, struct virtqueue *queues)
{
    struct vsock *v = to_vsock(dev);

    v->queues = queues;
    v->reset_event_due = true;
    serve_events(v);
    serve_tx(v);
}

static const struct virtio_ops vsock_ops = {
    .id = VIRTIO_ID_VSOCK,
    .config_size = sizeof(struct virtio_vsock_config),
    .n_queues = N_QUEUES,
    .queue_size = QUEUE_SIZE,
    .features = 0,
    .config = vsock_config,
    .activate = vsock_activate,
    .notify = vsock_notify,
    .reset = vsock_reset,
    .save = vsock_save,
    .load = vsock_load,
    .resume = vsock_resume,
};

int vsock_init(struct vsock *v, uint64_t guest_cid, int host_fd, struct err *err)
{
    memset(v, 0, sizeof(*v));
    if (guest_cid <= VSOCK_HOST_CID || guest_cid >= UINT32_MAX) {
        return err_set(err, EINVAL, "vsock: %" PRIu64 " cannot be a guest's id", guest_cid);
    }
    v->ring = malloc(VSOCK_BUF_ALLOC);
    if (v->ring == NULL) {
        return err_set(err, ENOMEM, "vsock: no memory for the buffer");
    }
    v->device.ops = &vsock_ops;
    v->guest_cid = guest_cid;
    v->host_fd = host_fd;
    v->host_port = HOST_PORT_FIRST;
    return 0;
}

void vsock_finish(struct vsock *v)
{
    free(v->ring);
    v->ring = NULL;
}

int vsock_connect(struct vsock *v)
{
    if (v->state != VSOCK_IDLE && v->state != VSOCK_REFUSED) {
        return -EISCONN;
    }
    if (v->queues == NULL) {
        return -EAGAIN;
    }
    v->host_port = v->host_port == UINT32_MAX ? HOST_PORT_FIRST : v->host_port + 1;
    v->state = VSOCK_CONNECTING;
    v->pending = op_bit(VIRTIO_VSOCK_OP_REQUEST);
    v->peer_buf_alloc = 0;
    v->peer_fwd_cnt = 0;
    serve(v);
    virtio_mmio_flush(v->device.transport);
    return 0;
}

enum vsock_state vsock_state(const struct vsock *v)
{
    return v->state;
}

int vsock_poll_events(const struct vsock *v)
{
    int events = 0;

    if (!is_open(v)) {
        return -1;
    }
    if (host_is_wanted(v) && peer_credit(v) > 0 && !v->rx_starved && v->queues != NULL) {
        events |= POLLIN;
    }
    if (v->ring_len > 0) {
        events |= POLLOUT;
    }
    return events == 0 && v->host_gone ? -1 : events;
}

void vsock_host_ready(struct vsock *v, short revents)
{
    if (!is_open(v) || v->queues == NULL) {
        return;
    }
    v->host_drained = false;
    if ((revents & (POLLHUP | POLLERR)) != 0) {
        v->host_gone = true;
    }
    serve(v);
    virtio_mmio_flush(v->device.transport);
}
