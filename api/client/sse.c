/* SPDX-License-Identifier: Apache-2.0 */
#include "api/client/sse.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void sse_init(struct sse *s, size_t max, sse_handler *handler, void *ctx)
{
    *s = (struct sse){
        .line = buf_init(max),
        .data = buf_init(max),
        .first_line = true,
        .handler = handler,
        .ctx = ctx,
    };
}

void sse_finish(struct sse *s)
{
    buf_finish(&s->line);
    buf_finish(&s->data);
}

static int dispatch(struct sse *s)
{
    int result = 0;

    if (s->has_data) {
        const char *data = buf_cstr(&s->data);
        if (!data)
            return -ENOMEM;
        result = s->handler(s->ctx, s->name[0] ? s->name : "message", data, s->data.len);
    }
    buf_clear(&s->data);
    s->has_data = false;
    s->name[0] = '\0';
    return result;
}

static bool is_field(const char *field, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(field, name, len) == 0;
}

static int take_line(struct sse *s)
{
    const char *line = (const char *)s->line.data;
    size_t len = s->line.len;

    if (s->first_line && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    s->first_line = false;
    if (len == 0)
        return dispatch(s);

    const char *colon = memchr(line, ':', len);
    size_t field_len = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    size_t value_len = (size_t)(line + len - value);
    if (value_len && value[0] == ' ') {
        value++;
        value_len--;
    }
    if (is_field(line, field_len, "data")) {
        int result = s->has_data ? buf_append(&s->data, "\n", 1) : 0;
        s->has_data = true;
        return result ? result : buf_append(&s->data, value, value_len);
    }
    if (is_field(line, field_len, "event"))
        snprintf(s->name, sizeof(s->name), "%.*s",
                 (int)(value_len < SSE_NAME_MAX ? value_len : SSE_NAME_MAX), value);
    return 0;
}

int sse_push(struct sse *s, const void *data, size_t len)
{
    const char *at = data, *end = at + len;
    int result = 0;

    while (at < end && !result) {
        if (s->after_cr && *at == '\n') {
            s->after_cr = false;
            at++;
            continue;
        }
        s->after_cr = false;
        size_t n = 0;
        while (at + n < end && at[n] != '\n' && at[n] != '\r')
            n++;
        result = buf_append(&s->line, at, n);
        at += n;
        if (!result && at < end) {
            s->after_cr = *at == '\r';
            at++;
            result = take_line(s);
            buf_clear(&s->line);
        }
    }
    return result;
}

struct cursor {
    const char *at;
    const char *end;
};

static bool take(struct cursor *c, char expected)
{
    while (c->at < c->end &&
           (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
    if (c->at == c->end || *c->at != expected)
        return false;
    c->at++;
    return true;
}

static bool take_hex4(struct cursor *c, uint32_t *ret)
{
    uint32_t value = 0;

    if (c->end - c->at < 4)
        return false;
    for (int i = 0; i < 4; i++, c->at++) {
        char d = *c->at;
        value <<= 4;
        if (d >= '0' && d <= '9')
            value |= (uint32_t)(d - '0');
        else if ((d | 32) >= 'a' && (d | 32) <= 'f')
            value |= (uint32_t)((d | 32) - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return true;
}

static int put_code(struct buf *out, uint32_t code)
{
    char utf8[4];
    size_t n;

    if (code < 0x80) {
        utf8[0] = (char)code;
        n = 1;
    } else if (code < 0x800) {
        utf8[0] = (char)(0xc0 | code >> 6);
        utf8[1] = (char)(0x80 | (code & 0x3f));
        n = 2;
    } else if (code < 0x10000) {
        utf8[0] = (char)(0xe0 | code >> 12);
        utf8[1] = (char)(0x80 | (code >> 6 & 0x3f));
        utf8[2] = (char)(0x80 | (code & 0x3f));
        n = 3;
    } else {
        utf8[0] = (char)(0xf0 | code >> 18);
        utf8[1] = (char)(0x80 | (code >> 12 & 0x3f));
        utf8[2] = (char)(0x80 | (code >> 6 & 0x3f));
        utf8[3] = (char)(0x80 | (code & 0x3f));
        n = 4;
    }
    return buf_append(out, utf8, n);
}

static int take_escape(struct cursor *c, struct buf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;

    if (c->at == c->end)
        return -EINVAL;
    char kind = *c->at++;
    const char *simple = kind ? strchr(from, kind) : NULL;
    if (simple)
        return buf_append(out, &to[simple - from], 1);
    if (kind != 'u' || !take_hex4(c, &code))
        return -EINVAL;
    if (code >= 0xd800 && code < 0xdc00) {
        struct cursor ahead = *c;
        if (ahead.end - ahead.at >= 6 && ahead.at[0] == '\\' && ahead.at[1] == 'u') {
            ahead.at += 2;
            if (take_hex4(&ahead, &low) && low >= 0xdc00 && low < 0xe000) {
                *c = ahead;
                return put_code(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
            }
        }
        code = 0xfffd;
    } else if (code >= 0xdc00 && code < 0xe000) {
        code = 0xfffd;
    }
    return put_code(out, code);
}

int sse_decode_data(const char *json, size_t len, struct buf *out)
{
    struct cursor c = {json, json + len};

    if (!take(&c, '{') || !take(&c, '"') || c.end - c.at < 5 || memcmp(c.at, "data\"", 5) != 0)
        return -EINVAL;
    c.at += 5;
    if (!take(&c, ':') || !take(&c, '"'))
        return -EINVAL;
    for (;;) {
        const char *plain = c.at;
        while (c.at < c.end && *c.at != '"' && *c.at != '\\')
            c.at++;
        int result = buf_append(out, plain, (size_t)(c.at - plain));
        if (result)
            return result;
        if (c.at == c.end)
            return -EINVAL;
        if (*c.at++ == '"')
            return take(&c, '}') ? 0 : -EINVAL;
        result = take_escape(&c, out);
        if (result)
            return result;
    }
}
