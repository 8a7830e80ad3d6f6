/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events (HTML Living Standard, 9.2) from a stream in pieces of any size. Only
 * `event` and `data` are kept. Bounded: an event over the limit ends the parsing.
 */
#ifndef SKILLVM_API_CLIENT_SSE_H
#define SKILLVM_API_CLIENT_SSE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define SSE_NAME_MAX 64u

/* One event; data is NUL-terminated besides its length. A negative result ends the parsing. */
typedef int sse_handler(void *ctx, const char *name, const char *data, size_t len);

struct sse {
    struct buf line;
    struct buf data;
    char name[SSE_NAME_MAX];
    bool has_data;
    bool after_cr; /* a line feed that follows belongs to the carriage return */
    bool first_line;
    sse_handler *handler;
    void *ctx;
};

/* max bounds one line and one event's data, in bytes. */
void sse_init(struct sse *s, size_t max, sse_handler *handler, void *ctx);
/* Takes the next bytes. 0, -E2BIG over the limit, -ENOMEM, or what the handler returned. */
int sse_push(struct sse *s, const void *data, size_t len);
void sse_finish(struct sse *s);

/*
 * Decodes the string member "data" of a small JSON object, which may hold U+0000, into out.
 * 0, -EINVAL for anything else, -E2BIG, -ENOMEM.
 */
int sse_decode_data(const char *json, size_t len, struct buf *out);

#endif
