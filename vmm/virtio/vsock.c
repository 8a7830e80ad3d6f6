/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/virtio_ids.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/state.h"
#include "vmm/virtio/mmio.h"
#include "vmm/virtio/vsock_internal.h"

/* The first of the ports the host connects from; any would do. */
#define HOST_PORT_FIRST 0x10000u
/*
 * Interrupts of the transmit queue alone wait until half of its descriptors were used. The
 * driver learns nothing from them but that it may free its packets, and each costs two exits
 * and a round of its workers; an interrupt for a packet to the guest tells it as well. The
 * other half holds the largest packet of Linux (18 descriptors) three times, so that it never
 * waits for one.
 *
 * Nor do many bytes wait. Linux wakes a writer that hears of credit only where the packets that
 * it could not free yet take less than half of the socket's buffer (sock_def_write_space: 104
 * KiB); else it does when it frees them, which without an interrupt is never. A packet may take
 * twice its bytes and 1 KiB.
 */
#define TX_INTERRUPT_AFTER(size) ((uint16_t)((size) / 2u))
#define TX_INTERRUPT_AFTER_BYTES (32u * 1024u)
/* The guest is told of freed space when this much has been freed since it last heard. */
#define CREDIT_STEP (VSOCK_BUF_ALLOC / 2u)

static struct vsock *to_vsock(struct virtio_device *dev)
{
    return (struct vsock *)(void *)dev;
}

static void close_connection(struct vsock *v)
{
    v->state = VSOCK_CLOSED;
    v->pending = 0;
    v->ring_len = 0;
    /* The host sees its end of file and gets EPIPE: nobody is there any more. */
    (void)shutdown(v->host_fd, SHUT_RDWR);
}

/* What follows from bytes taken, ends seen and answers received. */
static void advance(struct vsock *v)
{
    if (!vsock_is_open(v)) {
        return;
    }
    vsock_flush_ring(v);
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
    if (v->host_gone && (v->host_ended || !vsock_host_is_wanted(v))) {
        v->host_ended = true;
        vsock_tell_shutdown(v, VSOCK_SHUTDOWN_BOTH);
    }
    if (v->shutdown_out == VSOCK_SHUTDOWN_BOTH) {
        v->state = VSOCK_CLOSING;
    }
    if (v->fwd_cnt - v->told_fwd_cnt >= CREDIT_STEP) {
        v->pending |= vsock_op_bit(VIRTIO_VSOCK_OP_CREDIT_UPDATE);
    }
}

/* Does all that can be done now towards the host and the guest. */
static void serve(struct vsock *v)
{
    advance(v);
    vsock_serve_rx(v);
    /* Reading may have found the host's end. */
    advance(v);
    vsock_serve_rx(v);
    if (v->tx_blocked && v->n_replies < VSOCK_REPLIES_MAX) {
        v->tx_blocked = false;
        v->queues[VSOCK_QUEUE_TX].more = true;
    }
}

static void vsock_notify(struct virtio_device *dev, uint16_t queue)
{
    struct vsock *v = to_vsock(dev);

    if (queue == VSOCK_QUEUE_TX) {
        vsock_serve_tx(v);
    }
    serve(v);
}

static void take_queues(struct vsock *v, struct virtqueue *queues)
{
    v->queues = queues;
    queues[VSOCK_QUEUE_TX].interrupt_after = TX_INTERRUPT_AFTER(queues[VSOCK_QUEUE_TX].size);
    queues[VSOCK_QUEUE_TX].interrupt_after_bytes = TX_INTERRUPT_AFTER_BYTES;
}

static void vsock_activate(struct virtio_device *dev, struct virtqueue *queues)
{
    take_queues(to_vsock(dev), queues);
    virtqueue_want_kicks(&queues[VSOCK_QUEUE_RX], false);
    virtqueue_want_kicks(&queues[VSOCK_QUEUE_EVENT], false);
}

static void vsock_reset(struct virtio_device *dev)
{
    struct vsock *v = to_vsock(dev);

    v->queues = NULL;
    v->n_replies = 0;
    v->pending = 0;
    v->tx_blocked = false;
    if (v->state == VSOCK_CONNECTING) {
        v->state = VSOCK_REFUSED;
    } else if (vsock_is_open(v)) {
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

    take_queues(v, queues);
    vsock_serve_tx(v);
    serve(v);
}

static int vsock_init_device(struct virtio_device *dev, const struct virtio_host *host,
                             struct err *err)
{
    return vsock_init(to_vsock(dev), VSOCK_GUEST_CID, host->vsock_fd, err);
}

static void vsock_renew_device(struct virtio_device *dev, const struct virtio_host *host)
{
    vsock_renew(to_vsock(dev), host->vsock_fd);
}

static void vsock_finish_device(struct virtio_device *dev)
{
    vsock_finish(to_vsock(dev));
}

const struct virtio_ops vsock_ops = {
    .name = "vsock",
    .tag = STATE_TAG('V', 'S', 'C', 'K'),
    .size = sizeof(struct vsock),
    .id = VIRTIO_ID_VSOCK,
    .config_size = sizeof(struct virtio_vsock_config),
    .n_queues = VSOCK_N_QUEUES,
    .queue_size = VSOCK_QUEUE_SIZE,
    .features = 0,
    .init = vsock_init_device,
    .renew = vsock_renew_device,
    .finish = vsock_finish_device,
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
    v->guest_cid = guest_cid;
    vsock_renew(v, host_fd);
    return 0;
}

void vsock_renew(struct vsock *v, int host_fd)
{
    uint64_t guest_cid = v->guest_cid;
    uint8_t *ring = v->ring;

    memset(v, 0, sizeof(*v));
    v->device.ops = &vsock_ops;
    v->guest_cid = guest_cid;
    v->ring = ring;
    v->host_fd = host_fd;
    v->host_port = HOST_PORT_FIRST;
}

void vsock_finish(struct vsock *v)
{
    free(v->ring);
    v->ring = NULL;
}

struct vsock *vsock_of(struct virtio_device *dev)
{
    return dev->ops == &vsock_ops ? to_vsock(dev) : NULL;
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
    v->pending = vsock_op_bit(VIRTIO_VSOCK_OP_REQUEST);
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

    if (!vsock_is_open(v)) {
        return -1;
    }
    if (vsock_host_is_wanted(v) && vsock_peer_credit(v) > 0 && !v->rx_starved &&
        v->queues != NULL) {
        events |= POLLIN;
    }
    if (v->ring_len > 0) {
        events |= POLLOUT;
    }
    return events == 0 && v->host_gone ? -1 : events;
}

void vsock_host_ready(struct vsock *v, short revents)
{
    if (!vsock_is_open(v) || v->queues == NULL) {
        return;
    }
    v->host_drained = false;
    if ((revents & (POLLHUP | POLLERR)) != 0) {
        v->host_gone = true;
    }
    serve(v);
    virtio_mmio_flush(v->device.transport);
}
