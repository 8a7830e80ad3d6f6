/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/python_tokens.h"

#include <errno.h>
#include <string.h>

#define BRACKETS_MAX 200u /* open at once: Python's own limit */
#define TAB_WIDTH    8u

void python_fail(struct python_tokens *s, int error)
{
    s->error = s->error ? s->error : error;
    s->at = s->end;
    s->kind = PYTHON_END;
}

void python_require(struct python_tokens *s, bool good)
{
    if (!good)
        python_fail(s, -EINVAL);
}

/* How many bytes of a line's end are at p: 0 where there is none. */
size_t python_newline(const struct python_tokens *s, const char *p)
{
    if (p < s->end && *p == '\n')
        return 1;
    if (p < s->end && *p == '\r')
        return p + 1 < s->end && p[1] == '\n' ? 2 : 1;
    return 0;
}

bool python_is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || (unsigned char)c >= 0x80;
}

static void skip_comment(struct python_tokens *s)
{
    while (s->at < s->end && !python_newline(s, s->at))
        s->at++;
}

/* A backslash and the end of its line. */
static void take_continuation(struct python_tokens *s)
{
    size_t n = python_newline(s, s->at + 1);

    s->at += 1 + n;
    python_require(s, n > 0 && s->at < s->end);
}

/* Goes to the first token of the next logical line, past blank lines, and tells its column. */
static void begin_line(struct python_tokens *s)
{
    size_t column = 0, first = 0;

    for (; s->at < s->end; s->at++) {
        size_t n = python_newline(s, s->at);

        if (n > 0) {
            s->at += n - 1;
            column = first = 0;
        } else if (*s->at == ' ') {
            column++;
        } else if (*s->at == '\t') {
            column = (column / TAB_WIDTH + 1) * TAB_WIDTH;
        } else if (*s->at == '\f') {
            column = first = 0;
        } else if (*s->at == '#') {
            skip_comment(s);
            s->at--;
        } else if (*s->at == '\\') {
            /* An indentation goes no further than the first of its physical lines. */
            first = first ? first : column;
            take_continuation(s);
            s->at--;
        } else {
            break;
        }
    }
    s->column = first ? first : column;
    s->line_begins = false;
}

static void take_string(struct python_tokens *s)
{
    char quote = *s->at;
    bool triple = s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote;
    const char *p = s->at + (triple ? 3 : 1);

    while (p < s->end) {
        size_t n = python_newline(s, p);

        if (*p == quote && (!triple || (s->end - p >= 3 && p[1] == quote && p[2] == quote))) {
            s->at = p + (triple ? 3 : 1);
            s->kind = PYTHON_STRING;
            return;
        }
        if (n > 0 && !triple)
            break;
        if (*p == '\\') {
            if (++p == s->end)
                break;
            n = python_newline(s, p);
        }
        p += n > 0 ? n : 1;
    }
    python_fail(s, -EINVAL);
}

/* What separates tokens on one logical line. */
static void skip_space(struct python_tokens *s)
{
    while (s->at < s->end) {
        size_t n = s->brackets > 0 ? python_newline(s, s->at) : 0;

        if (n > 0)
            s->at += n;
        else if (*s->at == ' ' || *s->at == '\t' || *s->at == '\f')
            s->at++;
        else if (*s->at == '#')
            skip_comment(s);
        else if (*s->at == '\\')
            take_continuation(s);
        else
            break;
    }
}

static void take_other(struct python_tokens *s)
{
    char c = *s->at++;

    s->kind = PYTHON_OTHER;
    if (c == '(' || c == '[' || c == '{')
        python_require(s, ++s->brackets <= BRACKETS_MAX);
    else if (c == ')' || c == ']' || c == '}')
        python_require(s, s->brackets-- > 0);
    /* A number in one piece: no name begins within it. */
    else if (c >= '0' && c <= '9')
        while (s->at < s->end && (python_is_name_byte(*s->at) || *s->at == '.'))
            s->at++;
}

/* Makes the next token the current one. */
void python_advance(struct python_tokens *s)
{
    size_t n;

    if (s->line_begins)
        begin_line(s);
    else
        skip_space(s);
    n = python_newline(s, s->at);
    s->token = s->at;
    if (s->at == s->end) {
        s->kind = PYTHON_END;
        python_require(s, s->brackets == 0);
    } else if (n > 0) {
        s->kind = PYTHON_LINE_END;
        s->line_begins = true;
        s->at += n;
    } else if (*s->at == '"' || *s->at == '\'') {
        take_string(s);
    } else if (python_is_name_byte(*s->at) && !(*s->at >= '0' && *s->at <= '9')) {
        s->kind = PYTHON_NAME;
        while (s->at < s->end && python_is_name_byte(*s->at))
            s->at++;
    } else {
        take_other(s);
    }
    s->token_len = (size_t)(s->at - s->token);
}

bool python_at_word(const struct python_tokens *s, const char *word)
{
    return s->kind == PYTHON_NAME && s->token_len == strlen(word) &&
           memcmp(s->token, word, s->token_len) == 0;
}

bool python_at_sign(const struct python_tokens *s, char sign)
{
    return s->kind == PYTHON_OTHER && s->token_len == 1 && *s->token == sign;
}

bool python_at_line_end(const struct python_tokens *s)
{
    return s->kind == PYTHON_LINE_END || s->kind == PYTHON_END;
}

bool python_at_statement_end(const struct python_tokens *s)
{
    return python_at_line_end(s) || python_at_sign(s, ';');
}

unsigned python_line(struct python_tokens *s)
{
    for (; s->counted < s->token; s->lines++) {
        while (s->counted < s->token && !python_newline(s, s->counted))
            s->counted++;
        if (s->counted >= s->token)
            break;
        s->counted += python_newline(s, s->counted);
    }
    return s->lines + 1;
}
