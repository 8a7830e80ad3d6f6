/* SPDX-License-Identifier: Apache-2.0 */
#include "base/percent.h"

#include <errno.h>
#include <string.h>

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c));
}

int percent_append(struct buf *out, const char *text, size_t len, bool keep_slashes)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < len; i++) {
        if (is_unreserved(text[i]) || (keep_slashes && text[i] == '/'))
            r = buf_append(out, text + i, 1);
        else
            r = buf_printf(out, "%%%02X", (unsigned char)text[i]);
    }
    return r;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int percent_decode(const char *text, size_t len, size_t *ret_len)
{
    int high, low;

    *ret_len = 1;
    if (text[0] != '%')
        return (unsigned char)text[0];
    high = len > 2 ? hex_digit(text[1]) : -1;
    low = high >= 0 ? hex_digit(text[2]) : -1;
    if (low < 0)
        return -EINVAL;
    *ret_len = 3;
    return high << 4 | low;
}

int percent_vprintf(struct buf *out, const char *format, va_list args)
{
    for (const char *at = format; !out->error && *at; at++) {
        if (*at != '%') {
            (void)buf_append(out, at, 1);
        } else {
            const char *text = va_arg(args, const char *);

            at++;
            (void)percent_append(out, text, strlen(text), *at == 'S');
        }
    }
    return out->error;
}

int percent_printf(struct buf *out, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = percent_vprintf(out, format, args);
    va_end(args);
    return r;
}
