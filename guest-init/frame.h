/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of guest-init/proto.h on a stream socket: header codec, reader and coalescing writer.
 * It checks the frame's form only (length, reserved bytes); order and content are the caller's.
 * It must never block unless its caller asks for it, and never trust a length it has not
 * checked.
 */
#ifndef SKILLVM_GUEST_FRAME_H
#define SKILLVM_GUEST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "guest-init/proto.h"

struct frame {
    uint8_t type;
    uint32_t len;
    const uint8_t *data; /* borrowed from the reader until its next call */
};

/* Reads frames from a stream; zero-initialise, then frame_reader_init. */
struct frame_reader {
    struct buf in;
    size_t taken; /* bytes of `in` that belong to the frame handed out last */
};

/* Gathers frames so that several leave in one write. Zero-initialise, then frame_writer_init.
 */
struct frame_writer {
    int fd; /* borrowed */
    struct buf out;
    size_t at; /* bytes of `out` already written */
};

/* Writes a header for a payload of len bytes. len must not pass PROTO_PAYLOAD_MAX. */
void frame_header_encode(uint8_t header[PROTO_HEADER_SIZE], uint8_t type, uint32_t len);
/* Reads a header. 0, or -EPROTO when reserved bytes are set or the length is over the limit. */
int frame_header_decode(const uint8_t header[PROTO_HEADER_SIZE], uint8_t *ret_type,
                        uint32_t *ret_len);

void frame_reader_init(struct frame_reader *r);
void frame_reader_finish(struct frame_reader *r);
/*
 * Receives once from the socket fd with the flags of recv(2). Bytes received, 0 at the end of
 * the stream, -EAGAIN when MSG_DONTWAIT found nothing, or another -errno.
 */
int frame_reader_fill(struct frame_reader *r, int fd, int flags);
/* Adds bytes received elsewhere. 0, -E2BIG or -ENOMEM. */
int frame_reader_feed(struct frame_reader *r, const void *data, size_t len);
/* The next whole frame. 1 with *ret_frame, 0 when bytes are missing, -EPROTO on a bad header.
 */
int frame_reader_next(struct frame_reader *r, struct frame *ret_frame);
/* The next frame, waiting for it on fd. 1, 0 at an end between frames, or -errno with err set.
 */
int frame_reader_wait(struct frame_reader *r, int fd, struct frame *ret_frame, struct err *err);

void frame_writer_init(struct frame_writer *w, int fd);
void frame_writer_finish(struct frame_writer *w);
/* Payload bytes that one more frame may hold before the writer has to be flushed. */
size_t frame_writer_room(const struct frame_writer *w);
/* True while added frames wait for a flush. */
bool frame_writer_pending(const struct frame_writer *w);
/* Adds a frame without writing it. 0, -ENOBUFS when it does not fit, or -ENOMEM. */
int frame_writer_add(struct frame_writer *w, uint8_t type, const void *data, size_t len);
/* Writes what fits without blocking. 0 when nothing is left, -EAGAIN when some is, or -errno.
 */
int frame_writer_push(struct frame_writer *w);
/* Writes everything, blocking. 0 or -errno. */
int frame_writer_flush(struct frame_writer *w);
/* Adds a frame, flushing first when it does not fit. len at most PROTO_CHUNK_MAX. 0 or -errno.
 */
int frame_writer_send(struct frame_writer *w, uint8_t type, const void *data, size_t len);

#endif
