/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json_text.h"

#include "api/json/json_scan.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

int json_text_check(const char *text, size_t len, struct json_slice *ret_value, struct err *err)
{
    struct json_scanner s = {.text = text, .len = len};
    struct json_slice value;
    int r = json_scan_value(&s, &value, err);

    if (r < 0)
        return r;
    r = json_scan_end(&s, err);
    if (r < 0)
        return r;
    if (ret_value)
        *ret_value = value;
    return 0;
}

/* Of one that is looked for among the others. */
#define KEY_BYTES_MAX 1024u

static bool has_key(const struct json_member *members, size_t n, struct json_slice key)
{
    for (size_t i = 0; i < n; i++) {
        if (members[i].key.len == key.len &&
            memcmp(members[i].key.data, key.data, key.len) == 0)
            return true;
    }
    return false;
}

static int add_member(struct json_scanner *s, struct json_member *members, size_t max,
                      size_t *n, struct err *err)
{
    struct json_member member;
    int r = json_scan_key(s, &member.key, err);

    if (r < 0)
        return r;
    r = json_scan_value(s, &member.value, err);
    if (r < 0)
        return r;
    if (member.key.len > KEY_BYTES_MAX)
        return err_set(err, EINVAL, "a key is longer than %u bytes", KEY_BYTES_MAX);
    if (has_key(members, *n, member.key))
        return err_set(err, EINVAL, "the key \"%.*s\" comes twice",
                       (int)(member.key.len < 64 ? member.key.len : 64), member.key.data);
    if (*n == max)
        return err_set(err, EINVAL, "more than %zu keys", max);
    members[(*n)++] = member;
    json_scan_space(s);
    return 0;
}

int json_text_members(const char *text, size_t len, struct json_member *members, size_t max,
                      size_t *ret_n, struct err *err)
{
    struct json_scanner s = {.text = text, .len = len};
    size_t n = 0;
    int r;

    json_scan_space(&s);
    if (!json_scan_take(&s, '{'))
        return json_scan_bad(&s, err, "an object");
    json_scan_space(&s);
    while (!json_scan_take(&s, '}')) {
        if (n > 0 && !json_scan_take(&s, ','))
            return json_scan_bad(&s, err, "a comma or }");
        r = add_member(&s, members, max, &n, err);
        if (r < 0)
            return r;
    }
    r = json_scan_end(&s, err);
    if (r < 0)
        return r;
    *ret_n = n;
    return 0;
}

bool json_slice_is(struct json_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

bool json_text_has_nul(const char *text, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++) {
        if (text[i] != '\\')
            continue;
        if (len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            return true;
        i++; /* the escaped character, which may be a backslash itself */
    }
    return false;
}

static int append_escaped(struct buf *out, uint8_t c)
{
    static const char from[] = "\"\\\n\r\t", to[] = "\"\\nrt", hex[] = "0123456789abcdef";
    const char *simple = c > 0 ? strchr(from, c) : NULL;

    return simple ? buf_append(out, (const char[]){'\\', to[simple - from]}, 2)
                  : buf_append(
                        out, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

int json_append_string(struct buf *out, const void *data, size_t len)
{
    const uint8_t *p = len > 0 ? data : (const uint8_t *)"";
    size_t at = 0, plain = 0;
    int r = buf_append(out, "\"", 1);

    while (r == 0 && at < len) {
        size_t n = 1;
        bool good = p[at] >= 0x20 && p[at] < 0x7f && p[at] != '"' && p[at] != '\\';

        if (!good && p[at] >= 0x80)
            good = utf8_scan(p + at, len - at, &n) == UTF8_GOOD;
        if (good) {
            at += n;
            continue;
        }
        r = buf_append(out, p + plain, at - plain);
        if (r < 0)
            return r;
        r = p[at] >= 0x80 ? buf_append(out, "\xef\xbf\xbd", 3) : append_escaped(out, p[at]);
        at += n;
        plain = at;
    }
    if (r < 0)
        return r;
    r = buf_append(out, p + plain, at - plain);
    return r < 0 ? r : buf_append(out, "\"", 1);
}

/* The code unit of a \uXXXX escape at p, or -1 when there is none. */
static int escape_unit(const char *p, size_t left)
{
    int unit = 0;

    if (left < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int c = (unsigned char)p[i];

        unit = unit * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
}

static bool is_surrogate(int unit, int first)
{
    return unit >= first && unit < first + 0x400;
}

/*
 * Bytes of the escape at p that stand for themselves; 0 for half a surrogate pair, which is
 * JSON by its grammar, but no character, and which strict readers refuse.
 */
static size_t good_escape(const char *p, size_t left)
{
    int unit = escape_unit(p, left);

    if (unit < 0)
        return 2;
    if (is_surrogate(unit, 0xd800))
        return is_surrogate(escape_unit(p + 6, left - 6), 0xdc00) ? 12 : 0;
    return is_surrogate(unit, 0xdc00) ? 0 : 6;
}

int json_append_compact(struct buf *out, struct json_slice value)
{
    bool in_string = false;
    size_t begin = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < value.len; i++) {
        char c = value.data[i];

        if (in_string && c == '\\') {
            size_t n = good_escape(value.data + i, value.len - i);

            if (n > 0) {
                i += n - 1;
                continue;
            }
            r = buf_append(out, value.data + begin, i - begin);
            if (r < 0)
                return r;
            r = buf_append(out, "\\ufffd", 6);
            begin = i + 6;
            i += 5;
        } else if (in_string) {
            if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            r = buf_append(out, value.data + begin, i - begin);
            begin = i + 1;
        }
    }
    return r < 0 ? r : buf_append(out, value.data + begin, value.len - begin);
}

int json_append_cstr(struct buf *out, const char *text)
{
    return text ? json_append_string(out, text, strlen(text)) : buf_append(out, "null", 4);
}

/* Appends one escape; *ret_len gets the characters it is made of, with its backslash. */
static int append_escape(struct buf *out, const char *at, size_t left, size_t *ret_len)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *simple = strchr(from, at[1]);
    size_t n = good_escape(at, left);
    int c = escape_unit(at, left);

    *ret_len = n > 0 ? n : 6;
    if (at[1] != 'u')
        return buf_append(out, simple ? &to[simple - from] : &at[1], 1);
    if (n == 12)
        c = 0x10000 + ((c - 0xd800) << 10) + (escape_unit(at + 6, left - 6) - 0xdc00);
    return utf8_append(out, n > 0 ? (uint32_t)c : 0xfffd);
}

int json_append_decoded(struct buf *out, struct json_slice value)
{
    const char *at = value.data + 1;
    const char *end = value.data + value.len - 1;
    int r = 0;

    if (value.len < 2 || value.data[0] != '"')
        return -EINVAL;
    while (r == 0 && at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t len = (size_t)((escape ? escape : end) - at);

        r = buf_append(out, at, len);
        at += len;
        if (r == 0 && escape) {
            r = append_escape(out, at, (size_t)(end - at), &len);
            at += len;
        }
    }
    return r;
}
