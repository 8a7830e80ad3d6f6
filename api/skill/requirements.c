/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/requirements.h"

#include "base/buf.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define BLANK     " \t\r\f\v"
#define BLOCK_END "# ///"

static bool is(struct text_span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

static bool is_place(const char *text)
{
    return text[0] == '.' || text[0] == '/' || strstr(text, "://") ||
           text_ends_with(text, ".whl");
}

/* Hands over a requirement of a line of its own, or an option. */
static int take_one(char *text, unsigned line, requirements_take *take, void *ctx)
{
    struct requirements_line one = {.text = text, .line = line};

    if (text[0] == '-') {
        one.kind = REQUIREMENTS_OPTION;
        return take(ctx, &one);
    }
    one.options = strstr(text, " --");
    if (one.options)
        *one.options++ = '\0';
    one.kind = is_place(text) ? REQUIREMENTS_PLACE : REQUIREMENTS_NAMED;
    return take(ctx, &one);
}

/* Cuts off a comment, and the space around the rest. Returns that. */
static char *clean(char *line)
{
    size_t n;

    for (char *p = strchr(line, '#'); p; p = strchr(p + 1, '#')) {
        if (p == line || isspace((unsigned char)p[-1])) {
            *p = '\0';
            break;
        }
    }
    line += strspn(line, BLANK);
    for (n = strlen(line); n > 0 && strchr(BLANK, line[n - 1]); n--)
        line[n - 1] = '\0';
    return line;
}

/* One with those that it goes on in, which a comment does not. *lines counts them. */
static bool take_whole_line(struct text_span *rest, struct buf *out, unsigned *lines)
{
    struct text_span line;
    bool goes_on = true, is_there = false;

    buf_clear(out);
    while (goes_on && text_take_line(rest, &line)) {
        struct text_span bare = text_trim(line, BLANK);

        is_there = true;
        ++*lines;
        goes_on = line.len > 0 && line.text[line.len - 1] == '\\' && bare.text[0] != '#';
        (void)buf_append(out, line.text, line.len - goes_on);
        (void)buf_append(out, " ", 1);
    }
    return is_there;
}

int requirements_read_file(const char *text, size_t len, requirements_take *take, void *ctx)
{
    /* Each line may be followed by a space. */
    _cleanup_buf_ struct buf line = buf_init(2 * len + 2);
    struct text_span rest = {text, len};
    unsigned begin = 1;

    for (unsigned n = 0; take_whole_line(&rest, &line, &n); begin = n + 1) {
        char *bare;
        int r;

        (void)buf_append(&line, "", 1);
        if (line.error)
            return line.error;
        bare = clean((char *)line.data);
        r = *bare ? take_one(bare, begin, take, ctx) : 0;
        if (r != 0)
            return r;
    }
    return 0;
}

/* What is left of a block, and where. */
struct cursor {
    struct text_span rest;
    unsigned line;
};

static void advance(struct cursor *c, size_t n)
{
    for (; n > 0; n--, c->rest.len--)
        c->line += *c->rest.text++ == '\n';
}

static char peek(const struct cursor *c)
{
    return c->rest.len > 0 ? *c->rest.text : '\0';
}

static size_t to_line_end(const struct cursor *c)
{
    const char *end = memchr(c->rest.text, '\n', c->rest.len);

    return end ? (size_t)(end - c->rest.text) : c->rest.len;
}

/* Past white space and comments, to other lines too. */
static void skip_blank(struct cursor *c)
{
    while (c->rest.len > 0 && (*c->rest.text == '#' || isspace((unsigned char)*c->rest.text)))
        advance(c, *c->rest.text == '#' ? to_line_end(c) : 1);
}

/* Where the text in quotes ends that begins here, or NULL: it ends in its line. */
static const char *find_quote(const struct cursor *c)
{
    const char quote = peek(c);

    if (quote != '"' && quote != '\'')
        return NULL;
    for (size_t i = 1; i < c->rest.len; i++) {
        if (c->rest.text[i] == quote || c->rest.text[i] == '\n')
            return c->rest.text[i] == quote ? c->rest.text + i : NULL;
    }
    return NULL;
}

/* A text in quotes of this kind. */
static int take_quoted(struct cursor *c, enum requirements_kind kind, struct buf *out,
                       requirements_take *take, void *ctx, struct err *err)
{
    struct requirements_line one = {.kind = kind, .line = c->line};
    const char *end = find_quote(c);
    struct text_span bare;

    if (!end)
        return err_set(err, EINVAL,
                       kind == REQUIREMENTS_PYTHON ? "\"requires-python\" is a text"
                                                   : "\"dependencies\" is a list of texts");
    bare = text_trim((struct text_span){c->rest.text + 1, (size_t)(end - c->rest.text) - 1},
                     BLANK);
    buf_clear(out);
    (void)buf_append(out, bare.text, bare.len);
    (void)buf_append(out, "", 1);
    if (out->error)
        return out->error;
    advance(c, (size_t)(end - c->rest.text) + 1);
    one.text = (char *)out->data;
    if (kind == REQUIREMENTS_NAMED && is_place(one.text))
        one.kind = REQUIREMENTS_PLACE;
    return *one.text ? take(ctx, &one) : 0;
}

/* The texts of an array of TOML. */
static int take_array(struct cursor *c, struct buf *out, requirements_take *take, void *ctx,
                      struct err *err)
{
    int r = 0;

    if (peek(c) != '[')
        return err_set(err, EINVAL, "\"dependencies\" is a list of texts");
    advance(c, 1);
    for (skip_blank(c); peek(c) != ']'; skip_blank(c)) {
        r = take_quoted(c, REQUIREMENTS_NAMED, out, take, ctx, err);
        if (r != 0)
            return r;
        skip_blank(c);
        if (peek(c) == ',')
            advance(c, 1);
    }
    return 0;
}

/* Past "KEY =" at the start of a line. */
static bool take_key(struct cursor *c, const char *key)
{
    size_t n = strlen(key);

    if (!text_begins_with(c->rest, key))
        return false;
    while (n < c->rest.len && (c->rest.text[n] == ' ' || c->rest.text[n] == '\t'))
        n++;
    if (n == c->rest.len || c->rest.text[n] != '=')
        return false;
    advance(c, n + 1);
    while (peek(c) == ' ' || peek(c) == '\t')
        advance(c, 1);
    return true;
}

/* Up to the first table, which is a tool's. */
static int read_block(struct cursor *c, requirements_take *take, void *ctx, struct err *err)
{
    _cleanup_buf_ struct buf out = buf_init(c->rest.len + 1);
    int r = 0;

    for (skip_blank(c); r == 0 && c->rest.len > 0 && peek(c) != '['; skip_blank(c)) {
        if (take_key(c, "dependencies"))
            r = take_array(c, &out, take, ctx, err);
        else if (take_key(c, "requires-python"))
            r = take_quoted(c, REQUIREMENTS_PYTHON, &out, take, ctx, err);
        else
            advance(c, to_line_end(c));
    }
    return r;
}

/* What the block holds, without the "# " of its lines. False: there is no whole block. */
static bool take_block(struct text_span text, struct buf *out, unsigned *ret_line)
{
    struct text_span line;
    bool is_found = false;

    for (*ret_line = 1; !is_found && text_take_line(&text, &line); ++*ret_line)
        is_found = is(text_trim(line, BLANK), REQUIREMENTS_BLOCK_BEGIN);
    while (text_take_line(&text, &line)) {
        if (is(text_trim(line, BLANK), BLOCK_END))
            return true;
        if (line.len == 0 || line.text[0] != '#')
            return false;
        line.text++;
        line.len--;
        (void)buf_append(out, line.text, line.len);
        (void)buf_append(out, "\n", 1);
    }
    return false;
}

int requirements_read_script(const char *text, size_t len, requirements_take *take, void *ctx,
                             struct err *err)
{
    _cleanup_buf_ struct buf block = buf_init(len + 1);
    struct cursor cursor;

    if (!take_block((struct text_span){text, len}, &block, &cursor.line) || block.len == 0)
        return block.error;
    if (block.error)
        return block.error;
    cursor.rest = (struct text_span){(char *)block.data, block.len};
    return read_block(&cursor, take, ctx, err);
}
