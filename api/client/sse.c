/* SPDX-License-Identifier: Apache-2.0 */
#include "api/client/sse.h"

#include "api/json/json_text.h"

#include <errno.h>
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
    struct json_slice field = {line, colon ? (size_t)(colon - line) : len};
    const char *value = colon ? colon + 1 : line + len;
    size_t value_len = (size_t)(line + len - value);
    if (value_len && value[0] == ' ') {
        value++;
        value_len--;
    }
    if (json_slice_is(field, "data")) {
        int result = s->has_data ? buf_append(&s->data, "\n", 1) : 0;
        s->has_data = true;
        return result ? result : buf_append(&s->data, value, value_len);
    }
    if (json_slice_is(field, "event"))
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

int sse_decode_data(const char *json, size_t len, struct buf *out)
{
    struct json_member member;
    size_t n = 0;

    if (json_text_members(json, len, &member, 1, &n, NULL) < 0 || n == 0 ||
        !json_slice_is(member.key, "data"))
        return -EINVAL;
    return json_append_decoded(out, member.value);
}
