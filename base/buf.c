/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buf buf_init(size_t max)
{
    return (struct buf){.max = max};
}

static int fail(struct buf *b, int error)
{
    if (!b->error)
        b->error = error;
    return error;
}

/* Ensures room for len + extra bytes and a terminating NUL. */
int buf_reserve(struct buf *b, size_t extra)
{
    size_t want, cap;
    uint8_t *data;

    if (extra > b->max - b->len)
        return fail(b, -E2BIG);
    want = b->len + extra + 1;
    if (want <= b->cap)
        return 0;
    cap = b->cap ? b->cap : 256;
    while (cap < want)
        cap *= 2;
    data = realloc(b->data, cap);
    if (!data)
        return fail(b, -ENOMEM);
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
    int r = buf_reserve(b, len);

    if (r < 0)
        return r;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

size_t buf_append_clipped(struct buf *b, const void *data, size_t len)
{
    size_t room = b->max - b->len;

    if (len > room)
        len = room;
    return buf_append(b, data, len) < 0 ? 0 : len;
}

static __attribute__((format(printf, 2, 0))) int print(struct buf *b, const char *format,
                                                       va_list args)
{
    va_list again;
    int n, r;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0)
        return fail(b, -EINVAL);
    r = buf_reserve(b, (size_t)n);
    if (r < 0)
        return r;
    (void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, format, args);
    b->len += (size_t)n;
    return 0;
}

int buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = print(b, format, args);
    va_end(args);
    return r;
}

const char *buf_cstr(struct buf *b)
{
    if (buf_reserve(b, 0) < 0)
        return NULL;
    b->data[b->len] = 0;
    return (const char *)b->data;
}

void buf_consume(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->error = 0;
}

void buf_finish(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}
