/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer with a hard limit, for data whose size somebody else chooses. It
 * remembers the first failure, so that a sequence of appends may be checked once at its end.
 */
#ifndef SKILLVM_BASE_BUF_H
#define SKILLVM_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data; /* owned; NULL while empty */
    size_t len;
    size_t cap;
    size_t max; /* bytes; appending past it fails with -E2BIG */
    int error;  /* -errno of the first append that failed, or 0 */
};
#define _cleanup_buf_ __attribute__((cleanup(buf_finish)))

/* An empty buffer that may grow to max bytes. Nothing is allocated yet. */
struct buf buf_init(size_t max);
/* Appends len bytes. 0, -E2BIG past the limit or -ENOMEM; nothing is appended on failure. */
int buf_append(struct buf *b, const void *data, size_t len);
/* Appends as many of len bytes as fit. Returns how many were appended (0 with no memory). */
size_t buf_append_clipped(struct buf *b, const void *data, size_t len);
/* Appends formatted text without its NUL. 0, -E2BIG or -ENOMEM. */
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for extra more bytes without changing len. 0, -E2BIG or -ENOMEM. */
int buf_reserve(struct buf *b, size_t extra);
/* A NUL-terminated view of the content, borrowed until the next change; NULL without memory. */
const char *buf_cstr(struct buf *b);
/* Removes the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);
/* Empties it, forgets its error and keeps its memory. */
void buf_clear(struct buf *b);
/* Frees its memory; safe on a zeroed or finished buffer. */
void buf_finish(struct buf *b);

#endif
