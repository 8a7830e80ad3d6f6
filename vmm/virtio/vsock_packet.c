/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock_packet.h"

#include "base/bytes.h"

void vsock_packet_decode(struct vsock_packet *p, const uint8_t *bytes)
{
    struct bytes_reader r = bytes_reader_init(bytes, VSOCK_HEADER_SIZE);

    p->src_cid = bytes_get_u64(&r);
    p->dst_cid = bytes_get_u64(&r);
    p->src_port = bytes_get_u32(&r);
    p->dst_port = bytes_get_u32(&r);
    p->len = bytes_get_u32(&r);
    p->type = bytes_get_u16(&r);
    p->op = bytes_get_u16(&r);
    p->flags = bytes_get_u32(&r);
    p->buf_alloc = bytes_get_u32(&r);
    p->fwd_cnt = bytes_get_u32(&r);
}

void vsock_packet_encode(const struct vsock_packet *p, uint8_t *ret_bytes)
{
    struct bytes_writer w = bytes_writer_init(ret_bytes, VSOCK_HEADER_SIZE);

    bytes_put_u64(&w, p->src_cid);
    bytes_put_u64(&w, p->dst_cid);
    bytes_put_u32(&w, p->src_port);
    bytes_put_u32(&w, p->dst_port);
    bytes_put_u32(&w, p->len);
    bytes_put_u16(&w, p->type);
    bytes_put_u16(&w, p->op);
    bytes_put_u32(&w, p->flags);
    bytes_put_u32(&w, p->buf_alloc);
    bytes_put_u32(&w, p->fwd_cnt);
}
