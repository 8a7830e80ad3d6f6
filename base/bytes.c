/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <string.h>

struct bytes_reader bytes_reader_init(const void *data, size_t len)
{
    return (struct bytes_reader){.data = data, .len = len};
}

const uint8_t *bytes_take(struct bytes_reader *r, size_t len)
{
    const uint8_t *p;

    if (r->bad || len > r->len - r->at) {
        r->bad = true;
        return NULL;
    }
    p = r->data + r->at;
    r->at += len;
    return p;
}

static uint64_t get(struct bytes_reader *r, size_t len)
{
    const uint8_t *p = bytes_take(r, len);
    uint64_t v = 0;

    if (!p)
        return 0;
    for (size_t i = 0; i < len; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t bytes_get_u8(struct bytes_reader *r)
{
    return (uint8_t)get(r, 1);
}

uint16_t bytes_get_u16(struct bytes_reader *r)
{
    return (uint16_t)get(r, 2);
}

uint32_t bytes_get_u32(struct bytes_reader *r)
{
    return (uint32_t)get(r, 4);
}

uint64_t bytes_get_u64(struct bytes_reader *r)
{
    return get(r, 8);
}

void bytes_get(struct bytes_reader *r, void *out, size_t len)
{
    const uint8_t *p = bytes_take(r, len);

    if (p)
        memcpy(out, p, len);
    else
        memset(out, 0, len);
}

size_t bytes_left(const struct bytes_reader *r)
{
    return r->bad ? 0 : r->len - r->at;
}

bool bytes_done(const struct bytes_reader *r)
{
    return !r->bad && r->at == r->len;
}

struct bytes_writer bytes_writer_init(void *data, size_t cap)
{
    return (struct bytes_writer){.data = data, .cap = cap};
}

void bytes_put(struct bytes_writer *w, const void *data, size_t len)
{
    if (w->bad || len > w->cap - w->len) {
        w->bad = true;
        return;
    }
    if (len > 0)
        memcpy(w->data + w->len, data, len);
    w->len += len;
}

static void put(struct bytes_writer *w, uint64_t v, size_t len)
{
    uint8_t raw[8];

    for (size_t i = 0; i < len; i++)
        raw[i] = (uint8_t)(v >> (8 * i));
    bytes_put(w, raw, len);
}

void bytes_put_u8(struct bytes_writer *w, uint8_t v)
{
    put(w, v, 1);
}

void bytes_put_u16(struct bytes_writer *w, uint16_t v)
{
    put(w, v, 2);
}

void bytes_put_u32(struct bytes_writer *w, uint32_t v)
{
    put(w, v, 4);
}

void bytes_put_u64(struct bytes_writer *w, uint64_t v)
{
    put(w, v, 8);
}
