/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the three files of virtio-vsock share: vsock.c (the device and its connection's life),
 * vsock_tx.c (guest to host) and vsock_rx.c (host to guest). Nobody else includes it.
 */
#ifndef SKILLVM_VMM_VIRTIO_VSOCK_INTERNAL_H
#define SKILLVM_VMM_VIRTIO_VSOCK_INTERNAL_H

#include <linux/virtio_vsock.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/virtio/vsock.h"
#include "vmm/virtio/vsock_packet.h"

#define VSOCK_QUEUE_SIZE 128u
enum { VSOCK_QUEUE_RX, VSOCK_QUEUE_TX, VSOCK_QUEUE_EVENT, VSOCK_N_QUEUES };

#define VSOCK_SHUTDOWN_BOTH ((uint32_t)(VIRTIO_VSOCK_SHUTDOWN_RCV | VIRTIO_VSOCK_SHUTDOWN_SEND))
/* Pieces of guest memory in one system call. */
#define VSOCK_IOV_MAX 64u

static inline bool vsock_is_open(const struct vsock *v)
{
    return v->state == VSOCK_CONNECTED || v->state == VSOCK_CLOSING;
}

static inline uint32_t vsock_op_bit(uint16_t op)
{
    return UINT32_C(1) << op;
}

/* Payload bytes that the guest can take now. */
static inline uint32_t vsock_peer_credit(const struct vsock *v)
{
    uint32_t in_flight = v->sent - v->peer_fwd_cnt;

    return in_flight >= v->peer_buf_alloc ? 0 : v->peer_buf_alloc - in_flight;
}

/* True when bytes of the host can still go to the guest. */
static inline bool vsock_host_is_wanted(const struct vsock *v)
{
    return v->state == VSOCK_CONNECTED && !v->host_ended &&
           (v->shutdown_in & VIRTIO_VSOCK_SHUTDOWN_RCV) == 0;
}

static inline void vsock_tell_shutdown(struct vsock *v, uint32_t flags)
{
    if ((v->shutdown_out | flags) != v->shutdown_out) {
        v->shutdown_out |= flags;
        v->pending |= vsock_op_bit(VIRTIO_VSOCK_OP_SHUTDOWN);
    }
}

/* Serves packets of the guest's, a bounded number of them. */
void vsock_serve_tx(struct vsock *v);
/* Gives the host what waits in the ring, as far as it takes it. */
void vsock_flush_ring(struct vsock *v);
/* Sends what waits for the guest, control packets and bytes of the host's, as far as it can. */
void vsock_serve_rx(struct vsock *v);

#endif
