/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/js_tokens.h"

#include <errno.h>
#include <string.h>

/* What opened, by the character that it is kept as. */
#define OPEN_HEAD     'h' /* the parenthesis of an if or a loop */
#define OPEN_OBJECT   'o' /* a brace around properties, and not around statements */
#define OPEN_TEMPLATE '`'

void js_fail(struct js_tokens *t, int error)
{
    if (!t->error)
        t->error = error;
    t->at = t->end;
    t->kind = JS_END;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_with(const struct js_tokens *t, const char *text)
{
    size_t len = strlen(text);

    return (size_t)(t->end - t->at) >= len && memcmp(t->at, text, len) == 0;
}

/* How many bytes of white space are there: also a no-break space and a byte order mark. */
static size_t space(const struct js_tokens *t)
{
    if (t->at < t->end && *t->at && strchr(" \t\r\n\v\f", *t->at))
        return 1;
    return begins_with(t, "\xc2\xa0") ? 2 : begins_with(t, "\xef\xbb\xbf") ? 3 : 0;
}

/* Goes to behind the text that ends something, or fails. */
static void skip_past(struct js_tokens *t, const char *text)
{
    const char *found = memmem(t->at, (size_t)(t->end - t->at), text, strlen(text));

    if (!found)
        js_fail(t, -EINVAL);
    else
        t->at = found + strlen(text);
}

static void skip_line(struct js_tokens *t)
{
    while (t->at < t->end && *t->at != '\n' && *t->at != '\r')
        t->at++;
}

/* What separates tokens. */
static void skip_space(struct js_tokens *t)
{
    while (!t->error && t->at < t->end) {
        size_t n = space(t);

        if (n > 0) {
            t->at += n;
        } else if (begins_with(t, "//")) {
            skip_line(t);
        } else if (begins_with(t, "/*")) {
            t->at += 2;
            skip_past(t, "*/");
        } else {
            return;
        }
    }
}

static void take_string(struct js_tokens *t)
{
    char quote = *t->at++;

    t->kind = JS_STRING;
    t->next = JS_OPERATOR;
    for (; t->at < t->end && *t->at != '\n' && *t->at != '\r'; t->at++) {
        if (*t->at == quote) {
            t->at++;
            return;
        }
        if (*t->at == '\\' && t->end - t->at > 1)
            t->at += begins_with(t, "\\\r\n") ? 2 : 1;
    }
    js_fail(t, -EINVAL);
}

static void push(struct js_tokens *t, char what)
{
    if (t->depth == JS_DEPTH_MAX)
        js_fail(t, -EINVAL);
    else
        t->open[t->depth++] = what;
}

/* Of a template up to its end, or to its next field. */
static void take_template(struct js_tokens *t, bool begins)
{
    for (t->at++; t->at < t->end; t->at++) {
        if (*t->at == '`') {
            t->at++;
            t->kind = begins ? JS_STRING : JS_OTHER;
            t->next = JS_OPERATOR;
            return;
        }
        if (begins_with(t, "${")) {
            t->at += 2;
            t->kind = JS_OTHER;
            t->next = JS_EXPRESSION;
            push(t, OPEN_TEMPLATE);
            return;
        }
        t->at += *t->at == '\\' && t->end - t->at > 1;
    }
    js_fail(t, -EINVAL);
}

/*
 * A regular expression, which ends on its line; false where none does. What follows on such a
 * line is looked at no second time.
 */
static bool take_regex(struct js_tokens *t)
{
    const char *p = t->at + 1;
    bool in_class = false;

    if (t->undivided > t->at)
        return false;
    for (; p < t->end && *p != '\n' && *p != '\r'; p++) {
        if (*p == '/' && !in_class) {
            for (p++; p < t->end && is_name_byte(*p);)
                p++;
            t->at = p;
            t->kind = JS_OTHER;
            t->next = JS_OPERATOR;
            return true;
        }
        in_class = *p == '[' || (in_class && *p != ']');
        p += *p == '\\' && t->end - p > 1 && p[1] != '\n' && p[1] != '\r';
    }
    t->undivided = p;
    return false;
}

static bool is_one_of(const struct js_tokens *t, const char *words)
{
    for (; *words; words += strcspn(words, " "), words += *words == ' ')
        if (strcspn(words, " ") == t->token_len && memcmp(words, t->token, t->token_len) == 0)
            return true;
    return false;
}

static void take_name(struct js_tokens *t)
{
    for (t->at++; t->at < t->end && is_name_byte(*t->at) && space(t) == 0;)
        t->at++;
    t->kind = JS_NAME;
    t->token_len = (size_t)(t->at - t->token);
    t->next = JS_OPERATOR;
    if (t->member)
        return;
    t->head = is_one_of(t, "if while for with") || (t->head && js_at_word(t, "await"));
    if (is_one_of(t, "else do"))
        t->next = JS_STATEMENT;
    else if (is_one_of(t, "return typeof instanceof in of new delete void throw case await "
                          "yield default extends"))
        t->next = JS_EXPRESSION;
}

/* A number in one piece: no name begins within it. */
static void take_number(struct js_tokens *t)
{
    while (t->at < t->end && (is_name_byte(*t->at) || *t->at == '.'))
        t->at++;
    t->kind = JS_OTHER;
    t->next = JS_OPERATOR;
}

static void take_opening(struct js_tokens *t, char c)
{
    bool object = c == '{' && t->next == JS_EXPRESSION;

    t->at++;
    t->next = c == '{' && !object ? JS_STATEMENT : JS_EXPRESSION;
    push(t, c == '(' && t->head ? OPEN_HEAD : object ? OPEN_OBJECT : c);
}

static void take_closing(struct js_tokens *t, char c)
{
    char open = t->depth > 0 ? t->open[t->depth - 1] : '\0';
    bool head = c == ')' && open == OPEN_HEAD, object = c == '}' && open == OPEN_OBJECT;

    if (c == '}' && open == OPEN_TEMPLATE) {
        t->depth--;
        take_template(t, false);
        return;
    }
    if (!head && !object && open != (c == ')' ? '(' : c == ']' ? '[' : '{')) {
        js_fail(t, -EINVAL);
        return;
    }
    t->depth--;
    t->at++;
    t->next = head || (c == '}' && !object) ? JS_STATEMENT : JS_OPERATOR;
}

/* A colon is behind a label or a case in a block, and else before a value. */
static bool ends_label(const struct js_tokens *t, char c)
{
    return c == ':' && (t->depth == 0 || t->open[t->depth - 1] == '{');
}

static void take_sign(struct js_tokens *t)
{
    static const char *const signs[] = {"...", "=>", "++", "--", "?."};
    size_t len = 1;
    char c = *t->at;

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (len == 1 && begins_with(t, signs[i]))
            len = strlen(signs[i]);
    /* a?.5:b */
    if (c == '?' && len == 2 && t->end - t->at > 2 && is_digit(t->at[2]))
        len = 1;
    t->at += len;
    if (c == ';' || (c == '=' && len == 2) || ends_label(t, c))
        t->next = JS_STATEMENT;
    else if (len != 2 || c == '?')
        t->next = JS_EXPRESSION;
}

static void take_other(struct js_tokens *t)
{
    char c = *t->at;

    t->kind = JS_OTHER;
    if (c == '/' && t->next != JS_OPERATOR && take_regex(t))
        return;
    if (c == '(' || c == '[' || c == '{')
        take_opening(t, c);
    else if (c == ')' || c == ']' || c == '}')
        take_closing(t, c);
    else if (is_digit(c) || (c == '.' && t->end - t->at > 1 && is_digit(t->at[1])))
        take_number(t);
    else
        take_sign(t);
}

void js_advance(struct js_tokens *t)
{
    skip_space(t);
    t->member = t->kind == JS_OTHER && (js_at_sign(t, ".") || js_at_sign(t, "?."));
    t->token = t->at;
    if (t->at == t->end) {
        t->kind = JS_END;
        if (t->depth > 0)
            js_fail(t, -EINVAL);
    } else if (*t->at == '"' || *t->at == '\'') {
        take_string(t);
    } else if (*t->at == '`') {
        take_template(t, true);
    } else if ((is_name_byte(*t->at) && !is_digit(*t->at)) || *t->at == '#' || *t->at == '\\') {
        take_name(t);
        return;
    } else {
        take_other(t);
    }
    t->head = false;
    t->token_len = (size_t)(t->at - t->token);
}

bool js_at_word(const struct js_tokens *t, const char *word)
{
    return t->kind == JS_NAME && t->token_len == strlen(word) &&
           memcmp(t->token, word, t->token_len) == 0;
}

bool js_at_sign(const struct js_tokens *t, const char *sign)
{
    return t->kind == JS_OTHER && t->token_len == strlen(sign) &&
           memcmp(t->token, sign, t->token_len) == 0;
}

unsigned js_line(struct js_tokens *t)
{
    const char *p;

    while ((p = memchr(t->counted, '\n', (size_t)(t->token - t->counted)))) {
        t->counted = p + 1;
        t->lines++;
    }
    t->counted = t->token;
    return t->lines + 1;
}
