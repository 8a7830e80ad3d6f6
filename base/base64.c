/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

/* The six bits of a character, or -1. */
static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(struct buf *text)
{
    size_t len = text->len, out = 0;
    uint32_t bits = 0;
    unsigned n = 0;

    if (len % 4 != 0)
        return -EINVAL;
    for (int i = 0; i < 2 && len > 0 && text->data[len - 1] == '='; i++)
        len--;
    for (size_t i = 0; i < len; i++) {
        int value = value_of(text->data[i]);

        if (value < 0)
            return -EINVAL;
        bits = bits << 6 | (uint32_t)value;
        n += 6;
        if (n >= 8) {
            n -= 8;
            text->data[out++] = (uint8_t)(bits >> n);
            bits &= (1u << n) - 1;
        }
    }
    text->len = out;
    return bits == 0 ? 0 : -EINVAL;
}
