/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as bytes of a stranger's: checking it and repairing it. Bytes that are not UTF-8 become
 * U+FFFD; nothing else is ever changed.
 */
#ifndef SKILLVM_BASE_UTF8_H
#define SKILLVM_BASE_UTF8_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum utf8_kind {
    UTF8_GOOD,  /* a whole sequence */
    UTF8_BAD,   /* bytes that begin no sequence */
    UTF8_SHORT, /* a sequence that goes on after the end of the data */
};

/*
 * Looks at the first sequence of data (len > 0). *ret_len gets the bytes it is made of: at
 * least 1, at most 4, never more than len.
 */
enum utf8_kind utf8_scan(const uint8_t *data, size_t len, size_t *ret_len);

/* True when all of data is UTF-8. */
bool utf8_valid(const void *data, size_t len);

/* Of text that is UTF-8: whether a byte is a sequence's second, third or fourth. */
static inline bool utf8_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* How many of the len bytes of text, which is UTF-8, are whole sequences and at most max. */
size_t utf8_fit(const char *text, size_t len, size_t max);
/* How many code points len bytes of UTF-8 are. */
size_t utf8_count(const char *text, size_t len);

/*
 * Decodes the code point at text (len > 0 bytes left). Returns the bytes it takes, or 0 for
 * what is not UTF-8 (overlong forms, surrogates and values over U+10FFFF are not).
 */
size_t utf8_decode(const char *text, size_t len, uint32_t *ret_code);
/* Appends a code point, which is no surrogate and at most U+10FFFF. 0, -E2BIG or -ENOMEM. */
int utf8_append(struct buf *out, uint32_t code);

/* The beginning of a sequence that a chunk ended in. Zero-initialise. */
struct utf8_tail {
    uint8_t bytes[4];
    size_t len;
};

/*
 * Appends a chunk of a stream to out as valid UTF-8. What may go on in the next chunk waits in
 * tail; with end set nothing waits. out grows to at most 3 bytes for each of data and tail.
 * 0, -E2BIG or -ENOMEM.
 */
int utf8_repair(struct utf8_tail *tail, const void *data, size_t len, bool end,
                struct buf *out);

#endif
