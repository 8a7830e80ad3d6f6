/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/fd.h"

/* One read takes a whole chunk frame; only RUN may make the buffer grow past it. */
#define READ_SIZE  (PROTO_HEADER_SIZE + PROTO_CHUNK_MAX)
#define READ_MAX   (PROTO_HEADER_SIZE + PROTO_PAYLOAD_MAX + READ_SIZE)
#define WRITE_SIZE (2u * (PROTO_HEADER_SIZE + PROTO_CHUNK_MAX))

void frame_header_encode(uint8_t header[PROTO_HEADER_SIZE], uint8_t type, uint32_t len)
{
    struct bytes_writer w = bytes_writer_init(header, PROTO_HEADER_SIZE);

    bytes_put_u32(&w, len);
    bytes_put_u8(&w, type);
    bytes_put_u8(&w, 0);
    bytes_put_u16(&w, 0);
}

int frame_header_decode(const uint8_t header[PROTO_HEADER_SIZE], uint8_t *ret_type,
                        uint32_t *ret_len)
{
    struct bytes_reader r = bytes_reader_init(header, PROTO_HEADER_SIZE);
    uint32_t len = bytes_get_u32(&r);
    uint8_t type = bytes_get_u8(&r);

    if (bytes_get_u8(&r) != 0 || bytes_get_u16(&r) != 0 || len > PROTO_PAYLOAD_MAX)
        return -EPROTO;
    *ret_type = type;
    *ret_len = len;
    return 0;
}

void frame_reader_init(struct frame_reader *r)
{
    r->in = buf_init(READ_MAX);
    r->taken = 0;
}

void frame_reader_finish(struct frame_reader *r)
{
    buf_finish(&r->in);
    r->taken = 0;
}

static void reader_drop_taken(struct frame_reader *r)
{
    if (r->taken > 0)
        buf_consume(&r->in, r->taken);
    r->taken = 0;
}

int frame_reader_fill(struct frame_reader *r, int fd, int flags)
{
    size_t want = READ_SIZE;
    ssize_t n;
    int error;

    reader_drop_taken(r);
    if (want > r->in.max - r->in.len)
        want = r->in.max - r->in.len;
    if (want == 0)
        return -E2BIG;
    error = buf_reserve(&r->in, want);
    if (error < 0)
        return error;
    do
        n = recv(fd, r->in.data + r->in.len, want, flags);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    r->in.len += (size_t)n;
    return (int)n;
}

int frame_reader_feed(struct frame_reader *r, const void *data, size_t len)
{
    reader_drop_taken(r);
    return buf_append(&r->in, data, len);
}

int frame_reader_next(struct frame_reader *r, struct frame *ret_frame)
{
    size_t left = r->in.len - r->taken;
    const uint8_t *head;
    uint8_t type;
    uint32_t len;
    int error;

    if (left < PROTO_HEADER_SIZE)
        return 0;
    head = r->in.data + r->taken;
    error = frame_header_decode(head, &type, &len);
    if (error < 0)
        return error;
    if (left - PROTO_HEADER_SIZE < len)
        return 0;
    *ret_frame = (struct frame){.type = type, .len = len, .data = head + PROTO_HEADER_SIZE};
    r->taken += PROTO_HEADER_SIZE + len;
    return 1;
}

int frame_reader_wait(struct frame_reader *r, int fd, struct frame *ret_frame, struct err *err)
{
    for (;;) {
        int n = frame_reader_next(r, ret_frame);

        if (n < 0)
            return err_set(err, EPROTO, "frame with a bad header");
        if (n > 0)
            return 1;
        n = frame_reader_fill(r, fd, 0);
        if (n < 0)
            return err_set_errno(err, -n, "cannot read a frame");
        if (n == 0 && r->in.len == 0)
            return 0;
        if (n == 0)
            return err_set(err, ECONNRESET, "connection ended inside a frame");
    }
}

void frame_writer_init(struct frame_writer *w, int fd)
{
    w->fd = fd;
    w->out = buf_init(WRITE_SIZE);
    w->at = 0;
}

void frame_writer_finish(struct frame_writer *w)
{
    buf_finish(&w->out);
    w->at = 0;
}

size_t frame_writer_room(const struct frame_writer *w)
{
    size_t room = w->out.max - w->out.len;

    room = room > PROTO_HEADER_SIZE ? room - PROTO_HEADER_SIZE : 0;
    return room < PROTO_CHUNK_MAX ? room : PROTO_CHUNK_MAX;
}

bool frame_writer_pending(const struct frame_writer *w)
{
    return w->at < w->out.len;
}

int frame_writer_add(struct frame_writer *w, uint8_t type, const void *data, size_t len)
{
    uint8_t header[PROTO_HEADER_SIZE];
    int error;

    if (len > frame_writer_room(w))
        return -ENOBUFS;
    error = buf_reserve(&w->out, PROTO_HEADER_SIZE + len);
    if (error < 0)
        return error;
    frame_header_encode(header, type, (uint32_t)len);
    (void)buf_append(&w->out, header, sizeof(header));
    if (len > 0)
        (void)buf_append(&w->out, data, len);
    return 0;
}

static int writer_write(struct frame_writer *w, int flags)
{
    while (frame_writer_pending(w)) {
        ssize_t n = send(w->fd, w->out.data + w->at, w->out.len - w->at, flags | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        w->at += (size_t)n;
    }
    buf_clear(&w->out);
    w->at = 0;
    return 0;
}

int frame_writer_push(struct frame_writer *w)
{
    return writer_write(w, MSG_DONTWAIT);
}

int frame_writer_flush(struct frame_writer *w)
{
    return writer_write(w, 0);
}

int frame_writer_send(struct frame_writer *w, uint8_t type, const void *data, size_t len)
{
    if (len > frame_writer_room(w)) {
        int error = frame_writer_flush(w);

        if (error < 0)
            return error;
    }
    return frame_writer_add(w, type, data, len);
}
