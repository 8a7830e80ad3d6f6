/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtio-vsock (VIRTIO 1.2, section 5.10) in user space, with one stream connection that the
 * host starts to guest port 1024 and whose bytes come from and go to one stream socket.
 * It must never accept a connection that the guest starts, hold more than VSOCK_BUF_ALLOC bytes
 * for the guest, or block on the socket.
 *
 * Driving it from a poll loop, under the machine's mutex:
 *   - vsock_connect() once the guest runs; look at vsock_state() after every call that can
 *     change it (virtio_mmio_notify, virtio_mmio_write, vsock_connect, vsock_host_ready). On
 *     VSOCK_REFUSED or -EAGAIN connect again a little later.
 *   - before every wait ask vsock_poll_events() and wait for that on the socket; afterwards
 *     hand what came to vsock_host_ready().
 *
 * A connection never crosses a snapshot: none is saved, so that a resumed device has nothing to
 * tell the guest (no TRANSPORT_RESET) and the next attempt takes a port the guest never saw.
 */
#ifndef SKILLVM_VMM_VIRTIO_VSOCK_H
#define SKILLVM_VMM_VIRTIO_VSOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "vmm/virtio/device.h"

#define VSOCK_HOST_CID   2u
#define VSOCK_GUEST_CID  3u
#define VSOCK_GUEST_PORT 1024u
/* Bytes the guest may send ahead of the host's reading. */
#define VSOCK_BUF_ALLOC   (256u * 1024u)
#define VSOCK_REPLIES_MAX 16u /* resets waiting for receive buffers */
#define VSOCK_RX_BATCH    16u /* receive buffers filled by one read of the host */

enum vsock_state {
    VSOCK_IDLE,       /* no connection yet; vsock_connect() may be called */
    VSOCK_CONNECTING, /* asked the guest, no answer yet */
    VSOCK_REFUSED,    /* nobody listens there; vsock_connect() may be called again */
    VSOCK_CONNECTED,  /* bytes flow; either direction may already have ended */
    VSOCK_CLOSING, /* the guest knows it ends, or the last bytes to the host are on their way */
    VSOCK_CLOSED,  /* over, on both sides; never opens again */
};

extern const struct virtio_ops vsock_ops;

struct vsock {
    struct virtio_device device;
    struct virtqueue *queues; /* NULL unless active */
    uint64_t guest_cid;
    int host_fd; /* borrowed stream socket */
    enum vsock_state state;
    uint32_t host_port; /* of the current or last attempt; every attempt takes a new one */

    /* Host to guest. */
    uint32_t sent;           /* payload bytes sent, wraps */
    uint32_t peer_buf_alloc; /* as the guest last said */
    uint32_t peer_fwd_cnt;
    uint32_t pending;      /* control packets to send: one bit per operation */
    uint32_t shutdown_out; /* VIRTIO_VSOCK_SHUTDOWN_* told to the guest */
    bool host_ended;       /* the host will send nothing more */
    bool host_gone;        /* the host's end is closed both ways */
    bool host_drained;     /* the last read found nothing: wait for POLLIN */
    bool credit_asked;
    bool rx_starved; /* something waits for a receive buffer */

    /* Guest to host. */
    uint8_t *ring; /* owned, VSOCK_BUF_ALLOC bytes: what the host has not taken yet */
    uint32_t ring_at;
    uint32_t ring_len;
    uint32_t received;      /* payload bytes accepted from the guest, wraps */
    uint32_t fwd_cnt;       /* of these, bytes the host has taken */
    uint32_t told_fwd_cnt;  /* fwd_cnt in the last packet */
    uint32_t shutdown_in;   /* VIRTIO_VSOCK_SHUTDOWN_* the guest said */
    bool host_write_closed; /* shutdown(SHUT_WR) done, or the host does not read any more */
    bool guest_done;        /* the guest has forgotten the connection */
    bool tx_blocked;        /* too many resets wait: packets of the guest's are left alone */

    /* Resets for packets that belong to no connection, oldest first. */
    struct vsock_reply {
        uint16_t type;
        uint32_t src_port;
        uint32_t dst_port;
    } replies[VSOCK_REPLIES_MAX];
    uint32_t n_replies;

    uint64_t dropped_count; /* malformed or unexpected packets */
    uint64_t refused_count; /* connections the guest tried to start */
    uint64_t tx_bytes;      /* guest to host */
    uint64_t rx_bytes;      /* host to guest */
    struct virtqueue_chain chain;
    struct virtqueue_chain rx_chains[VSOCK_RX_BATCH];
};

/*
 * A device for a guest with guest_cid (3 … 0xfffffffe) whose connection is joined to host_fd, a
 * SOCK_STREAM unix socket, borrowed, which this module never closes. 0 or -errno with err set.
 */
int vsock_init(struct vsock *v, uint64_t guest_cid, int host_fd, struct err *err);
/*
 * As it was after vsock_init, joined to another host_fd. What was on its way to the old one is
 * gone. Allocates nothing.
 */
void vsock_renew(struct vsock *v, int host_fd);
/* Frees the buffers. Safe on a zeroed or finished device. */
void vsock_finish(struct vsock *v);
/* The vsock that dev is, or NULL when it is another device. */
struct vsock *vsock_of(struct virtio_device *dev);

/*
 * Starts a connection to VSOCK_GUEST_PORT. 0 when the request is on its way; -EAGAIN while the
 * driver is not there yet; -EISCONN when one is under way, open or over.
 */
int vsock_connect(struct vsock *v);
enum vsock_state vsock_state(const struct vsock *v);
/*
 * What to wait for on host_fd: POLLIN and POLLOUT bits, where 0 means to wait for POLLHUP only;
 * -1 means not to wait on it at all (a hangup already seen would wake the loop for ever).
 */
int vsock_poll_events(const struct vsock *v);
/* host_fd reported revents (poll bits). Moves as many bytes as both sides can take. */
void vsock_host_ready(struct vsock *v, short revents);

#endif
