/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/json_check.h"

#include "api/skill/names.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct scan {
    const char *text;
    size_t len;
    size_t at;
    const char *expected; /* set once, where it went wrong */
};

static bool fail(struct scan *s, const char *expected)
{
    if (!s->expected)
        s->expected = expected;
    return false;
}

static int peek(const struct scan *s)
{
    return s->at < s->len ? (unsigned char)s->text[s->at] : -1;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(struct scan *s)
{
    for (int c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s))
        s->at++;
}

static bool take_digits(struct scan *s)
{
    if (!is_digit(peek(s)))
        return fail(s, "a digit");
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool take_number(struct scan *s)
{
    if (peek(s) == '-')
        s->at++;
    if (peek(s) == '0')
        s->at++;
    else if (!take_digits(s))
        return false;
    if (peek(s) == '.') {
        s->at++;
        if (!take_digits(s))
            return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-')
            s->at++;
        return take_digits(s);
    }
    return true;
}

static bool take_escape(struct scan *s)
{
    int kind = peek(s);

    if (kind <= 0 || !strchr("\"\\/bfnrtu", kind))
        return fail(s, "an escape such as \\n or \\u00e9");
    s->at++;
    for (int i = 0; kind == 'u' && i < 4; i++, s->at++) {
        int c = peek(s);
        if (!is_digit(c) && !((c | 32) >= 'a' && (c | 32) <= 'f'))
            return fail(s, "a hexadecimal digit");
    }
    return true;
}

static bool take_string(struct scan *s)
{
    if (peek(s) != '"')
        return fail(s, "a string in double quotes");
    for (s->at++;;) {
        int c = peek(s);
        if (c < 0)
            return fail(s, "the closing \" of a string");
        if (c < 0x20)
            return fail(s, "an escape instead of a control character in a string");
        if (c >= 0x80) {
            uint32_t code;
            size_t n = names_utf8_decode(s->text + s->at, s->len - s->at, &code);
            if (n == 0)
                return fail(s, "UTF-8");
            s->at += n;
            continue;
        }
        s->at++;
        if (c == '"')
            return true;
        if (c == '\\' && !take_escape(s))
            return false;
    }
}

static bool take_word(struct scan *s, const char *word)
{
    size_t len = strlen(word);

    if (s->len - s->at < len || memcmp(s->text + s->at, word, len) != 0)
        return fail(s, "a value");
    s->at += len;
    return true;
}

/* A value that is neither a list nor an object. */
static bool take_scalar(struct scan *s)
{
    int c = peek(s);

    if (c == '"')
        return take_string(s);
    if (c == '-' || is_digit(c))
        return take_number(s);
    return take_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

static bool take_key(struct scan *s)
{
    if (!take_string(s))
        return false;
    skip_space(s);
    if (peek(s) != ':')
        return fail(s, "a colon");
    s->at++;
    return true;
}

/* Without recursion: open holds '{' or '[' for every level. */
static bool take_value(struct scan *s)
{
    char open[JSON_CHECK_DEPTH_MAX];
    size_t depth = 0;

    for (;;) {
        skip_space(s);
        int c = peek(s);
        if (c == '{' || c == '[') {
            if (depth == JSON_CHECK_DEPTH_MAX)
                return fail(s, "fewer than 512 levels of nesting");
            open[depth++] = (char)c;
            s->at++;
            skip_space(s);
            if (peek(s) != (c == '{' ? '}' : ']')) {
                if (c == '{' && !take_key(s))
                    return false;
                continue;
            }
            s->at++;
            depth--;
        } else if (!take_scalar(s)) {
            return false;
        }
        for (;; depth--) {
            if (depth == 0)
                return true;
            bool is_map = open[depth - 1] == '{';
            skip_space(s);
            c = peek(s);
            if (c == ',') {
                s->at++;
                skip_space(s);
                if (is_map && !take_key(s))
                    return false;
                break;
            }
            if (c != (is_map ? '}' : ']'))
                return fail(s, is_map ? "a comma or }" : "a comma or ]");
            s->at++;
        }
    }
}

int json_check(const char *text, size_t len, struct err *err)
{
    struct scan s = {.text = text, .len = len};

    if (take_value(&s)) {
        skip_space(&s);
        if (s.at == len)
            return 0;
        fail(&s, "nothing more");
    }
    unsigned line = 1, column = 1;
    for (size_t i = 0; i < s.at; i++) {
        column++;
        if (text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return err_set(err, EINVAL, "the input is not JSON: line %u, column %u: %s was expected",
                   line, column, s.expected);
}
