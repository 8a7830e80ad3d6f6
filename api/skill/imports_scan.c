/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/imports_scan.h"

#include "api/skill/names.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define BRACKETS_MAX 200u /* open at once: Python's own limit */
#define TAB_WIDTH    8u

enum token_kind { TOKEN_NAME, TOKEN_STRING, TOKEN_OTHER, TOKEN_LINE_END, TOKEN_END };

struct scan {
    const char *at;
    const char *end;
    bool line_begins;  /* the next token is the first of its logical line */
    unsigned brackets; /* open */
    size_t column;     /* of the logical line */

    enum token_kind kind; /* of the current token */
    const char *token;
    size_t token_len;

    bool skipping; /* lines that are indented deeper than skip_column */
    size_t skip_column;
    bool is_main;
    imports_found_fn found; /* NULL: only check */
    void *user;
};

/* How many bytes of a line's end are at p: 0 where there is none. */
static size_t newline(const struct scan *s, const char *p)
{
    if (p < s->end && *p == '\n')
        return 1;
    if (p < s->end && *p == '\r')
        return p + 1 < s->end && p[1] == '\n' ? 2 : 1;
    return 0;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || (unsigned char)c >= 0x80;
}

static void skip_comment(struct scan *s)
{
    while (s->at < s->end && !newline(s, s->at))
        s->at++;
}

/* A backslash and the end of its line. 0 or -EINVAL. */
static int take_continuation(struct scan *s)
{
    size_t n = newline(s, s->at + 1);

    if (n == 0 || s->at + 1 + n == s->end)
        return -EINVAL;
    s->at += 1 + n;
    return 0;
}

/* Goes to the first token of the next logical line, past blank lines, and tells its column. */
static int begin_line(struct scan *s)
{
    size_t column = 0, first = 0;

    for (; s->at < s->end; s->at++) {
        size_t n = newline(s, s->at);

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
            if (take_continuation(s) < 0)
                return -EINVAL;
            s->at--;
        } else {
            break;
        }
    }
    s->column = first ? first : column;
    s->line_begins = false;
    return 0;
}

static int take_string(struct scan *s)
{
    char quote = *s->at;
    bool triple = s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote;
    const char *p = s->at + (triple ? 3 : 1);

    while (p < s->end) {
        size_t n = newline(s, p);

        if (*p == quote && (!triple || (s->end - p >= 3 && p[1] == quote && p[2] == quote))) {
            s->at = p + (triple ? 3 : 1);
            s->kind = TOKEN_STRING;
            return 0;
        }
        if (n > 0 && !triple)
            return -EINVAL;
        if (*p == '\\') {
            if (++p == s->end)
                break;
            n = newline(s, p);
        }
        p += n > 0 ? n : 1;
    }
    return -EINVAL;
}

/* What separates tokens on one logical line. 0 or -EINVAL. */
static int skip_space(struct scan *s)
{
    while (s->at < s->end) {
        size_t n = s->brackets > 0 ? newline(s, s->at) : 0;

        if (n > 0)
            s->at += n;
        else if (*s->at == ' ' || *s->at == '\t' || *s->at == '\f')
            s->at++;
        else if (*s->at == '#')
            skip_comment(s);
        else if (*s->at == '\\') {
            if (take_continuation(s) < 0)
                return -EINVAL;
        } else
            break;
    }
    return 0;
}

static int take_other(struct scan *s)
{
    char c = *s->at++;

    s->kind = TOKEN_OTHER;
    if (c == '(' || c == '[' || c == '{')
        return ++s->brackets > BRACKETS_MAX ? -EINVAL : 0;
    if (c == ')' || c == ']' || c == '}')
        return s->brackets-- == 0 ? -EINVAL : 0;
    /* A number in one piece: no name begins within it. */
    if (c >= '0' && c <= '9')
        while (s->at < s->end && (is_name_byte(*s->at) || *s->at == '.'))
            s->at++;
    return 0;
}

/* Makes the next token the current one. 0 or -EINVAL. */
static int advance(struct scan *s)
{
    int r = s->line_begins ? begin_line(s) : skip_space(s);
    size_t n = newline(s, s->at);

    if (r < 0)
        return r;
    s->token = s->at;
    if (s->at == s->end) {
        s->kind = TOKEN_END;
        r = s->brackets > 0 ? -EINVAL : 0;
    } else if (n > 0) {
        s->kind = TOKEN_LINE_END;
        s->line_begins = true;
        s->at += n;
    } else if (*s->at == '"' || *s->at == '\'') {
        r = take_string(s);
    } else if (is_name_byte(*s->at) && !(*s->at >= '0' && *s->at <= '9')) {
        s->kind = TOKEN_NAME;
        while (s->at < s->end && is_name_byte(*s->at))
            s->at++;
    } else {
        r = take_other(s);
    }
    s->token_len = (size_t)(s->at - s->token);
    return r;
}

static bool at_word(const struct scan *s, const char *word)
{
    return s->kind == TOKEN_NAME && s->token_len == strlen(word) &&
           memcmp(s->token, word, s->token_len) == 0;
}

static bool at_sign(const struct scan *s, char sign)
{
    return s->kind == TOKEN_OTHER && s->token_len == 1 && *s->token == sign;
}

static bool at_line_end(const struct scan *s)
{
    return s->kind == TOKEN_LINE_END || s->kind == TOKEN_END;
}

static bool at_statement_end(const struct scan *s)
{
    return at_line_end(s) || at_sign(s, ';');
}

static int finish_line(struct scan *s)
{
    int r = 0;

    while (r == 0 && !at_line_end(s))
        r = advance(s);
    return r;
}

/* A dotted name at the current token. One that is too long comes out as "". 0 or -EINVAL. */
static int take_dotted(struct scan *s, char ret_name[IMPORTS_NAME_MAX + 1])
{
    size_t len = 0;
    bool fits = true;

    for (;;) {
        if (s->kind != TOKEN_NAME)
            return -EINVAL;
        fits = fits && len + s->token_len + 1 <= IMPORTS_NAME_MAX;
        if (fits) {
            memcpy(ret_name + len, s->token, s->token_len);
            len += s->token_len;
        }
        if (advance(s) < 0)
            return -EINVAL;
        if (!at_sign(s, '.'))
            break;
        if (fits)
            ret_name[len++] = '.';
        if (advance(s) < 0)
            return -EINVAL;
    }
    ret_name[fits ? len : 0] = '\0';
    return 0;
}

/* `as name`, if it is there. 0 or -EINVAL. */
static int skip_alias(struct scan *s)
{
    if (!at_word(s, "as"))
        return 0;
    if (advance(s) < 0 || s->kind != TOKEN_NAME)
        return -EINVAL;
    return advance(s);
}

static int tell(struct scan *s, unsigned level, const char *module, const char *name)
{
    const struct imports_found found = {.level = level, .module = module, .name = name};

    return s->found ? s->found(s->user, &found) : 0;
}

/* import a.b as c, d */
static int take_import(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1];
    int r;

    do {
        if (advance(s) < 0 || take_dotted(s, module) < 0 || skip_alias(s) < 0)
            return -EINVAL;
        r = module[0] ? tell(s, 0, module, NULL) : 0;
        if (r < 0)
            return r;
    } while (at_sign(s, ','));
    return at_statement_end(s) ? 0 : -EINVAL;
}

/* The names after `from … import`, and a parenthesis around them. */
static int take_names(struct scan *s, unsigned level, const char *module, bool known)
{
    char name[IMPORTS_NAME_MAX + 1];
    bool paren = at_sign(s, '(');
    int r;

    if (paren && advance(s) < 0)
        return -EINVAL;
    if (!paren && at_sign(s, '*')) {
        r = known ? tell(s, level, module, "*") : 0;
        return r < 0 ? r : advance(s);
    }
    do {
        if (s->kind != TOKEN_NAME)
            return -EINVAL;
        known = known && s->token_len <= IMPORTS_NAME_MAX;
        if (known) {
            memcpy(name, s->token, s->token_len);
            name[s->token_len] = '\0';
        }
        if (advance(s) < 0 || skip_alias(s) < 0)
            return -EINVAL;
        r = known ? tell(s, level, module, name) : 0;
        if (r < 0)
            return r;
        if (!at_sign(s, ','))
            break;
        if (advance(s) < 0)
            return -EINVAL;
    } while (!(paren && at_sign(s, ')')));
    if (!paren)
        return 0;
    return at_sign(s, ')') ? advance(s) : -EINVAL;
}

/* from ..a.b import (c as d, e) */
static int take_from(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1] = "";
    unsigned level = 0;
    bool known = true;
    int r;

    if (advance(s) < 0)
        return -EINVAL;
    for (; at_sign(s, '.'); level++)
        if (advance(s) < 0)
            return -EINVAL;
    if (!(level > 0 && at_word(s, "import"))) {
        if (take_dotted(s, module) < 0)
            return -EINVAL;
        known = module[0];
    }
    if (!at_word(s, "import") || advance(s) < 0)
        return -EINVAL;
    r = take_names(s, level, module, known);
    if (r < 0)
        return r;
    return at_statement_end(s) ? 0 : -EINVAL;
}

/* The rest of this line and all that is indented deeper does not run. */
static int skip_body(struct scan *s)
{
    s->skipping = true;
    s->skip_column = s->column;
    return finish_line(s);
}

/* `== "__main__"`, which is false in a module that is imported. */
static int take_main_test(struct scan *s, bool *ret_false)
{
    for (int i = 0; i < 2; i++) {
        if (!at_sign(s, '='))
            return 0;
        if (advance(s) < 0)
            return -EINVAL;
    }
    if (s->kind != TOKEN_STRING || s->token_len != sizeof("'__main__'") - 1 ||
        memcmp(s->token + 1, "__main__", 8) != 0)
        return 0;
    *ret_false = !s->is_main;
    return advance(s);
}

/* A condition that says by itself that its body does not run; every other one may be true. */
static int take_condition(struct scan *s)
{
    bool is_false = false;

    if (advance(s) < 0)
        return -EINVAL;
    if (at_word(s, "__name__")) {
        if (advance(s) < 0 || take_main_test(s, &is_false) < 0)
            return -EINVAL;
    } else {
        while (s->kind == TOKEN_NAME) {
            is_false = at_word(s, "TYPE_CHECKING");
            if (advance(s) < 0)
                return -EINVAL;
            if (!at_sign(s, '.'))
                break;
            is_false = false;
            if (advance(s) < 0)
                return -EINVAL;
        }
    }
    return is_false && at_sign(s, ':') ? skip_body(s) : 0;
}

/* A statement at its first token. The current token is then any later one, its own or not. */
static int take_statement(struct scan *s)
{
    if (at_word(s, "import"))
        return take_import(s);
    if (at_word(s, "from"))
        return take_from(s);
    if (at_word(s, "if") || at_word(s, "elif"))
        return take_condition(s);
    if (at_word(s, "def"))
        return skip_body(s);
    if (at_word(s, "async")) {
        if (advance(s) < 0)
            return -EINVAL;
        return at_word(s, "def") ? skip_body(s) : 0;
    }
    return 0;
}

/*
 * One logical line. A colon outside brackets ends the head of a compound statement, or else
 * (an annotation, a lambda) is followed by an expression, which begins with no keyword that is
 * looked for here.
 */
static int take_line(struct scan *s)
{
    bool begins = true;
    int r = 0;

    if (s->skipping && s->column > s->skip_column)
        return finish_line(s);
    s->skipping = false;
    while (r == 0 && !at_line_end(s)) {
        if (begins && s->kind == TOKEN_NAME)
            r = take_statement(s);
        if (r < 0 || at_line_end(s))
            break;
        begins = s->brackets == 0 && (at_sign(s, ';') || at_sign(s, ':'));
        r = advance(s);
    }
    return r;
}

static int scan_text(struct scan *s)
{
    int r;

    s->line_begins = true;
    s->brackets = 0;
    s->skipping = false;
    do {
        if (advance(s) < 0)
            return -EINVAL;
        r = take_line(s);
    } while (r == 0 && s->kind != TOKEN_END);
    return r;
}

static bool is_encoding_byte(char c)
{
    return (is_name_byte(c) && (unsigned char)c < 0x80) || c == '-' || c == '.';
}

/* Whether the comment from p to end names an encoding, and then one that is read here. */
static bool names_other_encoding(const char *p, const char *end)
{
    static const char *const known[] = {"utf-8", "utf_8", "utf8", "ascii", "us-ascii"};

    for (; end - p > 6; p++) {
        const char *name = p + 7;
        size_t len = 0;

        if (memcmp(p, "coding", 6) != 0 || (p[6] != ':' && p[6] != '='))
            continue;
        while (name < end && (*name == ' ' || *name == '\t'))
            name++;
        while (name + len < end && is_encoding_byte(name[len]))
            len++;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            size_t n = strlen(known[i]);

            /* "utf-8-unix" is UTF-8 too: what editors write. */
            if (len >= n && strncasecmp(name, known[i], n) == 0 &&
                (len == n || (i < 2 && (name[n] == '-' || name[n] == '_'))))
                return false;
        }
        if (len > 0)
            return true;
    }
    return false;
}

/* The first two lines may declare an encoding, in a comment of its own. */
static bool declares_other_encoding(const struct scan *s)
{
    const char *p = s->at;

    for (int line = 0; line < 2; line++) {
        const char *end;

        while (p < s->end && (*p == ' ' || *p == '\t' || *p == '\f'))
            p++;
        for (end = p; end < s->end && !newline(s, end);)
            end++;
        if (p < end && *p != '#')
            return false;
        if (names_other_encoding(p, end))
            return true;
        p = end + newline(s, end);
    }
    return false;
}

int imports_scan(const char *text, size_t len, bool is_main, imports_found_fn found, void *user)
{
    struct scan s = {.at = text, .end = text + len, .is_main = is_main, .user = user};
    int r;

    if (memchr(text, 0, len) || !utf8_valid(text, len))
        return -EINVAL;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        s.at += 3;
    text = s.at;
    if (declares_other_encoding(&s))
        return -EINVAL;
    /* Twice: a source that does not compile imports nothing, wherever it is wrong. */
    r = scan_text(&s);
    s.at = text;
    s.found = found;
    return r < 0 ? r : scan_text(&s);
}
