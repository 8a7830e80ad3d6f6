/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's side of a virtio-vsock device on top of the fake driver, and the host's end of
 * its socket.
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_VSOCK_H
#define SKILLVM_TESTS_UNIT_FAKE_VSOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/fake_driver.h"
#include "vmm/virtio/vsock.h"
#include "vmm/virtio/vsock_packet.h"

#define FAKE_CID        3u
#define FAKE_QUEUE_SIZE 128u
#define FAKE_RX         0u
#define FAKE_TX         1u
#define FAKE_EVENT      2u
/* Size of a receive buffer, header included. */
#define FAKE_RX_BUFFER 4096u
#define FAKE_PAYLOAD   (FAKE_RX_BUFFER - VSOCK_HEADER_SIZE)

struct fake_vsock {
    struct fake_driver d;
    struct virtio_mmio t;
    struct vsock v;
    int host;       /* owned: where a daemon would be */
    int device_end; /* owned: what the device has */
    uint16_t n_rx;  /* receive buffers posted so far */
    /* What outgoing packets of the connection carry. */
    uint32_t host_port;
    uint32_t buf_alloc;
    uint32_t fwd_cnt;
};

/* A device that is active, with n_rx receive buffers and 8 event buffers. Aborts on failure. */
void fake_vsock_init(struct fake_vsock *f, uint16_t n_rx);
/* A new device with what other saved, in a copy of its memory; not resumed. 0 or -errno. */
int fake_vsock_restore(struct fake_vsock *f, struct fake_vsock *other, struct err *err);
/* The same in place, as if the machine had been saved and restored; not resumed. */
int fake_vsock_replace(struct fake_vsock *f, struct err *err);
void fake_vsock_finish(struct fake_vsock *f);

/* Gives the device n more receive buffers (at most 128 unused ones at a time) and kicks. */
void fake_vsock_post(struct fake_vsock *f, uint16_t n);
/* The next packet from the device; payload (may be NULL) has FAKE_PAYLOAD bytes. */
bool fake_vsock_receive(struct fake_vsock *f, struct vsock_packet *ret_packet, void *payload);
/* Sends exactly p with payload_len bytes of payload, in one chain, and kicks. */
void fake_vsock_send_raw(struct fake_vsock *f, const struct vsock_packet *p,
                         const void *payload, uint32_t payload_len);
/* A packet of the connection. */
void fake_vsock_send(struct fake_vsock *f, uint16_t op, uint32_t flags, const void *payload,
                     uint32_t len);
/* Connects and answers. Aborts when it does not work. */
void fake_vsock_establish(struct fake_vsock *f);
/* One turn of the machine's loop without waiting. */
void fake_vsock_loop(struct fake_vsock *f);

#endif
