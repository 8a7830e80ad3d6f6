/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>
#include <sys/types.h>

/* Bytes of the sequence that first begins, and the range of its second byte; 0: begins none. */
static size_t sequence(uint8_t first, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef) {
        /* No overlong forms, no surrogates. */
        if (first == 0xe0)
            *ret_low = 0xa0;
        if (first == 0xed)
            *ret_high = 0x9f;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (first == 0xf0)
            *ret_low = 0x90;
        if (first == 0xf4)
            *ret_high = 0x8f;
        return 4;
    }
    return 0;
}

enum utf8_kind utf8_scan(const uint8_t *data, size_t len, size_t *ret_len)
{
    uint8_t low, high;
    size_t want = sequence(data[0], &low, &high);

    if (want == 0) {
        *ret_len = 1;
        return UTF8_BAD;
    }
    for (size_t i = 1; i < want; i++) {
        if (i == len) {
            *ret_len = len;
            return UTF8_SHORT;
        }
        if (data[i] < low || data[i] > high) {
            *ret_len = i;
            return UTF8_BAD;
        }
        low = 0x80;
        high = 0xbf;
    }
    *ret_len = want;
    return UTF8_GOOD;
}

bool utf8_valid(const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        size_t n;

        if (utf8_scan(p, len, &n) != UTF8_GOOD)
            return false;
        p += n;
        len -= n;
    }
    return true;
}

size_t utf8_fit(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && utf8_continues(text[max]))
        max--;
    return max;
}

size_t utf8_count(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += !utf8_continues(text[i]);
    return n;
}

size_t utf8_decode(const char *text, size_t len, uint32_t *ret_code)
{
    const uint8_t *s = (const uint8_t *)text;
    uint32_t code;
    size_t n;

    if (utf8_scan(s, len, &n) != UTF8_GOOD)
        return 0;
    /* The first byte has a bit set for each byte of a sequence, and a bit that is not. */
    code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (s[i] & 0x3f);
    *ret_code = code;
    return n;
}

int utf8_append(struct buf *out, uint32_t code)
{
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    uint8_t bytes[4];

    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
    bytes[0] = (uint8_t)(first[n] | code);
    return buf_append(out, bytes, n);
}

static int append_replacement(struct buf *out)
{
    return buf_append(out, "\xef\xbf\xbd", 3);
}

/* Ends the sequence that waits in tail with the first bytes of data. Bytes used, or -errno. */
static ssize_t finish_tail(struct utf8_tail *tail, const uint8_t *data, size_t len,
                           struct buf *out)
{
    size_t used = 0;

    while (tail->len > 0 && used < len) {
        size_t n;
        enum utf8_kind kind;
        int r;

        tail->bytes[tail->len] = data[used];
        kind = utf8_scan(tail->bytes, tail->len + 1, &n);
        if (kind == UTF8_SHORT) {
            tail->len++;
            used++;
            continue;
        }
        if (kind == UTF8_GOOD) {
            r = buf_append(out, tail->bytes, n);
            used++;
        } else {
            /* The waiting bytes are bad; the new byte is looked at again, on its own. */
            r = append_replacement(out);
        }
        if (r < 0)
            return r;
        tail->len = 0;
    }
    return (ssize_t)used;
}

int utf8_repair(struct utf8_tail *tail, const void *data, size_t len, bool end, struct buf *out)
{
    const uint8_t *p = len > 0 ? data : (const uint8_t *)"";
    ssize_t used = finish_tail(tail, p, len, out);
    size_t at, good;

    if (used < 0)
        return (int)used;
    at = good = (size_t)used;
    while (at < len) {
        size_t n;
        enum utf8_kind kind = utf8_scan(p + at, len - at, &n);
        int r;

        if (kind == UTF8_GOOD) {
            at += n;
            continue;
        }
        r = buf_append(out, p + good, at - good);
        if (r < 0)
            return r;
        if (kind == UTF8_SHORT) {
            memcpy(tail->bytes, p + at, n);
            tail->len = n;
        } else {
            r = append_replacement(out);
            if (r < 0)
                return r;
        }
        at += n;
        good = at;
    }
    if (at > good) {
        int r = buf_append(out, p + good, at - good);

        if (r < 0)
            return r;
    }
    if (end && tail->len > 0) {
        tail->len = 0;
        return append_replacement(out);
    }
    return 0;
}
