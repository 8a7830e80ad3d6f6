/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json_text.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>

struct scanner {
    const char *text;
    size_t len;
    size_t at;
};

static int bad(const struct scanner *s, struct err *err, const char *what)
{
    unsigned line = 1, column = 1;

    for (size_t i = 0; err && i < s->at; i++) {
        column++;
        if (s->text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return err_set(err, EINVAL, "not JSON: line %u, column %u: %s was expected", line, column,
                   what);
}

static int peek(const struct scanner *s)
{
    return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

static bool take(struct scanner *s, char c)
{
    if (peek(s) != (unsigned char)c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->len && strchr(" \t\r\n", s->text[s->at]) && s->text[s->at] != '\0')
        s->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int scan_escape(struct scanner *s, struct err *err)
{
    int c = peek(s);

    if (c < 0 || c == 0 || !strchr("\"\\/bfnrtu", c))
        return bad(s, err, "an escape such as \\n or \\u00e9");
    s->at++;
    if (c != 'u')
        return 0;
    for (int i = 0; i < 4; i++, s->at++) {
        if (!is_hex(peek(s)))
            return bad(s, err, "a hexadecimal digit");
    }
    return 0;
}

static int scan_string(struct scanner *s, struct err *err)
{
    if (!take(s, '"'))
        return bad(s, err, "a string in double quotes");
    for (;;) {
        int c = peek(s);
        size_t n;

        if (c < 0)
            return bad(s, err, "the closing \" of a string");
        if (c < 0x20)
            return bad(s, err, "an escape instead of a control character in a string");
        if (c < 0x80) {
            s->at++;
            if (c == '"')
                return 0;
            if (c == '\\') {
                int r = scan_escape(s, err);

                if (r < 0)
                    return r;
            }
            continue;
        }
        if (utf8_scan((const uint8_t *)s->text + s->at, s->len - s->at, &n) != UTF8_GOOD)
            return bad(s, err, "UTF-8");
        s->at += n;
    }
}

static int scan_digits(struct scanner *s, struct err *err)
{
    if (!is_digit(peek(s)))
        return bad(s, err, "a digit");
    while (is_digit(peek(s)))
        s->at++;
    return 0;
}

static int scan_number(struct scanner *s, struct err *err)
{
    int r = 0;

    (void)take(s, '-');
    if (!take(s, '0'))
        r = scan_digits(s, err);
    if (r < 0)
        return r;
    if (take(s, '.'))
        r = scan_digits(s, err);
    if (r < 0 || (peek(s) != 'e' && peek(s) != 'E'))
        return r;
    s->at++;
    if (!take(s, '+'))
        (void)take(s, '-');
    return scan_digits(s, err);
}

static int scan_scalar(struct scanner *s, struct err *err)
{
    static const char *const words[] = {"true", "false", "null"};
    int c = peek(s);

    if (c == '"')
        return scan_string(s, err);
    if (c == '-' || is_digit(c))
        return scan_number(s, err);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);

        if (s->len - s->at >= n && memcmp(s->text + s->at, words[i], n) == 0) {
            s->at += n;
            return 0;
        }
    }
    return bad(s, err, "a value");
}

/* Scans a key and its colon. */
static int scan_key(struct scanner *s, struct err *err)
{
    int r;

    skip_space(s);
    r = scan_string(s, err);
    if (r < 0)
        return r;
    skip_space(s);
    return take(s, ':') ? 0 : bad(s, err, "a colon");
}

/* Scans one value without recursion: a bit per open container says whether it is an object. */
static int scan_value(struct scanner *s, struct err *err)
{
    uint8_t objects[JSON_TEXT_DEPTH_MAX / 8] = {0};
    unsigned depth = 0;

    for (;;) {
        int c, r = 0;

        skip_space(s);
        c = peek(s);
        if (c == '{' || c == '[') {
            if (depth == JSON_TEXT_DEPTH_MAX)
                return err_set(err, EINVAL, "JSON nested deeper than %u", JSON_TEXT_DEPTH_MAX);
            s->at++;
            if (c == '{')
                objects[depth / 8] |= (uint8_t)(1u << depth % 8);
            else
                objects[depth / 8] &= (uint8_t) ~(1u << depth % 8);
            depth++;
            skip_space(s);
            if (peek(s) != (c == '{' ? '}' : ']')) {
                if (c == '{')
                    r = scan_key(s, err);
                if (r < 0)
                    return r;
                continue;
            }
        } else {
            r = scan_scalar(s, err);
            if (r < 0)
                return r;
        }
        /* A value ended, or an empty container is about to. */
        for (;;) {
            bool object;

            if (depth == 0)
                return 0;
            object = objects[(depth - 1) / 8] >> (depth - 1) % 8 & 1;
            skip_space(s);
            if (take(s, object ? '}' : ']')) {
                depth--;
                continue;
            }
            if (!take(s, ','))
                return bad(s, err, object ? "a comma or }" : "a comma or ]");
            if (object) {
                r = scan_key(s, err);
                if (r < 0)
                    return r;
            }
            break;
        }
    }
}

static int scan_end(struct scanner *s, struct err *err)
{
    skip_space(s);
    return s->at == s->len ? 0 : bad(s, err, "nothing more");
}

int json_text_check(const char *text, size_t len, struct json_slice *ret_value, struct err *err)
{
    struct scanner s = {.text = text, .len = len};
    struct json_slice value;
    int r;

    skip_space(&s);
    value.data = text + s.at;
    r = scan_value(&s, err);
    if (r < 0)
        return r;
    value.len = (size_t)(text + s.at - value.data);
    r = scan_end(&s, err);
    if (r < 0)
        return r;
    if (ret_value)
        *ret_value = value;
    return 0;
}

static bool has_key(const struct json_member *members, size_t n, struct json_slice key)
{
    for (size_t i = 0; i < n; i++) {
        if (members[i].key.len == key.len &&
            memcmp(members[i].key.data, key.data, key.len) == 0)
            return true;
    }
    return false;
}

int json_text_members(const char *text, size_t len, struct json_member *members, size_t max,
                      size_t *ret_n, struct err *err)
{
    struct scanner s = {.text = text, .len = len};
    size_t n = 0;
    int r;

    skip_space(&s);
    if (!take(&s, '{'))
        return bad(&s, err, "an object");
    skip_space(&s);
    if (!take(&s, '}')) {
        do {
            struct json_member member;

            skip_space(&s);
            member.key.data = text + s.at + 1;
            r = scan_string(&s, err);
            if (r < 0)
                return r;
            member.key.len = (size_t)(text + s.at - 1 - member.key.data);
            skip_space(&s);
            if (!take(&s, ':'))
                return bad(&s, err, "a colon");
            skip_space(&s);
            member.value.data = text + s.at;
            r = scan_value(&s, err);
            if (r < 0)
                return r;
            member.value.len = (size_t)(text + s.at - member.value.data);
            if (has_key(members, n, member.key))
                return err_set(err, EINVAL, "the key \"%.*s\" comes twice",
                               (int)(member.key.len < 64 ? member.key.len : 64),
                               member.key.data);
            if (n == max)
                return err_set(err, EINVAL, "more than %zu keys", max);
            members[n++] = member;
            skip_space(&s);
        } while (take(&s, ','));
        if (!take(&s, '}'))
            return bad(&s, err, "a comma or }");
    }
    r = scan_end(&s, err);
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
    switch (c) {
    case '"':
        return buf_append(out, "\\\"", 2);
    case '\\':
        return buf_append(out, "\\\\", 2);
    case '\n':
        return buf_append(out, "\\n", 2);
    case '\r':
        return buf_append(out, "\\r", 2);
    case '\t':
        return buf_append(out, "\\t", 2);
    default:
        return buf_printf(out, "\\u%04x", c);
    }
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

        unit = unit * 16 + (is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
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
