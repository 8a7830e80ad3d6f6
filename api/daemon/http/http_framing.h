/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the body of a request ends: after so many bytes, or in chunks. As strict as its head:
 * lines of chunks end in CR LF, sizes are hexadecimal digits. No I/O and no clock.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_FRAMING_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http_framing {
    uint64_t left; /* bytes of the body that come next */
    bool done;     /* the body is whole */
    bool is_chunked;
    unsigned state;
    uint64_t size; /* of the next chunk */
    size_t line;   /* bytes of framing since the last of the body */
};

struct http_framing http_framing_init(bool is_chunked, uint64_t length);
/*
 * Takes what is around a body's bytes out of data, up to the next of these. How much that was,
 * or -EBADMSG.
 */
ssize_t http_framing_skip(struct http_framing *f, const char *data, size_t len);
/* So many of the bytes that come next were taken. */
void http_framing_take(struct http_framing *f, size_t len);

#endif
