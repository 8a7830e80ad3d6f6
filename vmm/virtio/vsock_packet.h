/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a virtio-vsock packet (VIRTIO 1.2, section 5.10.6) as a value, and its bytes.
 * It must never judge: vsock.c decides what a decoded header is worth.
 */
#ifndef SKILLVM_VMM_VIRTIO_VSOCK_PACKET_H
#define SKILLVM_VMM_VIRTIO_VSOCK_PACKET_H

#include <stdint.h>

#define VSOCK_HEADER_SIZE 44u

struct vsock_packet {
    uint64_t src_cid;
    uint64_t dst_cid;
    uint32_t src_port;
    uint32_t dst_port;
    uint32_t len; /* payload bytes after the header */
    uint16_t type;
    uint16_t op;
    uint32_t flags;
    uint32_t buf_alloc;
    uint32_t fwd_cnt;
};

/* Decodes VSOCK_HEADER_SIZE bytes. */
void vsock_packet_decode(struct vsock_packet *p, const uint8_t *bytes);
/* Encodes into VSOCK_HEADER_SIZE bytes. */
void vsock_packet_encode(const struct vsock_packet *p, uint8_t *ret_bytes);

#endif
