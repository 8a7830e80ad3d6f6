/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json_scan.h"

#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

int json_scan_bad(const struct json_scanner *s, struct err *err, const char *what)
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

static int peek(const struct json_scanner *s)
{
    return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

bool json_scan_take(struct json_scanner *s, char c)
{
    if (peek(s) != (unsigned char)c)
        return false;
    s->at++;
    return true;
}

void json_scan_space(struct json_scanner *s)
{
    for (; s->at < s->len; s->at++) {
        char c = s->text[s->at];

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return;
    }
}

static int scan_escape(struct json_scanner *s, struct err *err)
{
    int c = peek(s);

    if (c < 0 || c == 0 || !strchr("\"\\/bfnrtu", c))
        return json_scan_bad(s, err, "an escape such as \\n or \\u00e9");
    s->at++;
    if (c != 'u')
        return 0;
    for (int i = 0; i < 4; i++, s->at++) {
        if (!isxdigit(peek(s)))
            return json_scan_bad(s, err, "a hexadecimal digit");
    }
    return 0;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Whether eight characters are plain: none has its highest bit set, as none has it that is less
   than 0x20, or that is one of the two, once that was taken from it. */
static bool are_plain(const char *text)
{
    const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
    uint64_t word, quote, backslash;

    memcpy(&word, text, sizeof(word));
    quote = word ^ ones * '"';
    backslash = word ^ ones * '\\';
    return ((word | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) & high) == 0;
}

/* Most of a text is this. */
static void skip_plain(struct json_scanner *s)
{
    size_t at = s->at;

    while (s->len - at >= sizeof(uint64_t) && are_plain(s->text + at))
        at += sizeof(uint64_t);
    while (at < s->len && is_plain((unsigned char)s->text[at]))
        at++;
    s->at = at;
}

static int scan_string(struct json_scanner *s, struct err *err)
{
    if (!json_scan_take(s, '"'))
        return json_scan_bad(s, err, "a string in double quotes");
    for (;;) {
        size_t n;
        int c;

        skip_plain(s);
        c = peek(s);
        if (c < 0)
            return json_scan_bad(s, err, "the closing \" of a string");
        if (c < 0x20)
            return json_scan_bad(s, err,
                                 "an escape instead of a control character in a string");
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
            return json_scan_bad(s, err, "UTF-8");
        s->at += n;
    }
}

static int scan_digits(struct json_scanner *s, struct err *err)
{
    if (!isdigit(peek(s)))
        return json_scan_bad(s, err, "a digit");
    while (isdigit(peek(s)))
        s->at++;
    return 0;
}

static int scan_number(struct json_scanner *s, struct err *err)
{
    int r = 0;

    (void)json_scan_take(s, '-');
    if (!json_scan_take(s, '0'))
        r = scan_digits(s, err);
    if (r < 0)
        return r;
    if (json_scan_take(s, '.'))
        r = scan_digits(s, err);
    if (r < 0 || (peek(s) != 'e' && peek(s) != 'E'))
        return r;
    s->at++;
    if (!json_scan_take(s, '+'))
        (void)json_scan_take(s, '-');
    return scan_digits(s, err);
}

static int scan_scalar(struct json_scanner *s, struct err *err)
{
    static const char *const words[] = {"true", "false", "null"};
    int c = peek(s);

    if (c == '"')
        return scan_string(s, err);
    if (c == '-' || isdigit(c))
        return scan_number(s, err);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);

        if (s->len - s->at >= n && memcmp(s->text + s->at, words[i], n) == 0) {
            s->at += n;
            return 0;
        }
    }
    return json_scan_bad(s, err, "a value");
}

int json_scan_key(struct json_scanner *s, struct json_slice *ret, struct err *err)
{
    struct json_slice key;
    int r;

    json_scan_space(s);
    key.data = s->text + s->at + 1;
    r = scan_string(s, err);
    if (r < 0)
        return r;
    key.len = (size_t)(s->text + s->at - 1 - key.data);
    json_scan_space(s);
    if (!json_scan_take(s, ':'))
        return json_scan_bad(s, err, "a colon");
    *ret = key;
    return 0;
}

/* Without recursion: closing is how the open containers end. */
static int scan_nested(struct json_scanner *s, struct err *err)
{
    char closing[JSON_TEXT_DEPTH_MAX];
    unsigned depth = 0;

    for (;;) {
        struct json_slice key;
        int c, r;

        json_scan_space(s);
        c = peek(s);
        if (c != '{' && c != '[') {
            r = scan_scalar(s, err);
            if (r < 0)
                return r;
        } else {
            if (depth == JSON_TEXT_DEPTH_MAX)
                return err_set(err, EINVAL, "JSON nested deeper than %u", JSON_TEXT_DEPTH_MAX);
            s->at++;
            closing[depth++] = c == '{' ? '}' : ']';
            json_scan_space(s);
            if (peek(s) != closing[depth - 1]) {
                r = c == '{' ? json_scan_key(s, &key, err) : 0;
                if (r < 0)
                    return r;
                continue;
            }
        }
        /* A value ended, or an empty container is about to. */
        while (depth > 0) {
            json_scan_space(s);
            if (!json_scan_take(s, closing[depth - 1]))
                break;
            depth--;
        }
        if (depth == 0)
            return 0;
        c = closing[depth - 1];
        if (!json_scan_take(s, ','))
            return json_scan_bad(s, err, c == '}' ? "a comma or }" : "a comma or ]");
        r = c == '}' ? json_scan_key(s, &key, err) : 0;
        if (r < 0)
            return r;
    }
}

int json_scan_value(struct json_scanner *s, struct json_slice *ret, struct err *err)
{
    const char *begin;
    int r;

    json_scan_space(s);
    begin = s->text + s->at;
    r = scan_nested(s, err);
    if (r < 0)
        return r;
    *ret = (struct json_slice){begin, (size_t)(s->text + s->at - begin)};
    return 0;
}

int json_scan_end(struct json_scanner *s, struct err *err)
{
    json_scan_space(s);
    return s->at == s->len ? 0 : json_scan_bad(s, err, "nothing more");
}
