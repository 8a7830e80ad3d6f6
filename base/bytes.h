/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Little-endian cursors over fixed memory: the one way to encode and decode state, frames and
 * packets. A cursor that runs past its end turns bad and stays bad; reads then give zero and
 * writes do nothing, so a decoder may read a whole record and check once.
 */
#ifndef SKILLVM_BASE_BYTES_H
#define SKILLVM_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes_reader {
    const uint8_t *data; /* borrowed */
    size_t len;
    size_t at;
    bool bad;
};

struct bytes_writer {
    uint8_t *data; /* borrowed */
    size_t cap;
    size_t len;
    bool bad;
};

struct bytes_reader bytes_reader_init(const void *data, size_t len);
uint8_t bytes_get_u8(struct bytes_reader *r);
uint16_t bytes_get_u16(struct bytes_reader *r);
uint32_t bytes_get_u32(struct bytes_reader *r);
uint64_t bytes_get_u64(struct bytes_reader *r);
/* Copies len bytes to out; on a short input out is zeroed and the reader turns bad. */
void bytes_get(struct bytes_reader *r, void *out, size_t len);
/* Borrows len bytes of the input, or NULL (and bad) when they are not there. */
const uint8_t *bytes_take(struct bytes_reader *r, size_t len);
/* Bytes not read yet; 0 for a bad reader. */
size_t bytes_left(const struct bytes_reader *r);
/* True when everything was read and nothing was missing. */
bool bytes_done(const struct bytes_reader *r);

struct bytes_writer bytes_writer_init(void *data, size_t cap);
void bytes_put_u8(struct bytes_writer *w, uint8_t v);
void bytes_put_u16(struct bytes_writer *w, uint16_t v);
void bytes_put_u32(struct bytes_writer *w, uint32_t v);
void bytes_put_u64(struct bytes_writer *w, uint64_t v);
void bytes_put(struct bytes_writer *w, const void *data, size_t len);

#endif
