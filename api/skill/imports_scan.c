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
    int error; /* the first failure; nothing but the end comes after it */
};

static void fail(struct scan *s, int error)
{
    s->error = s->error ? s->error : error;
    s->at = s->end;
    s->kind = TOKEN_END;
}

static void require(struct scan *s, bool good)
{
    if (!good)
        fail(s, -EINVAL);
}

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

/* A backslash and the end of its line. */
static void take_continuation(struct scan *s)
{
    size_t n = newline(s, s->at + 1);

    s->at += 1 + n;
    require(s, n > 0 && s->at < s->end);
}

/* Goes to the first token of the next logical line, past blank lines, and tells its column. */
static void begin_line(struct scan *s)
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
            take_continuation(s);
            s->at--;
        } else {
            break;
        }
    }
    s->column = first ? first : column;
    s->line_begins = false;
}

static void take_string(struct scan *s)
{
    char quote = *s->at;
    bool triple = s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote;
    const char *p = s->at + (triple ? 3 : 1);

    while (p < s->end) {
        size_t n = newline(s, p);

        if (*p == quote && (!triple || (s->end - p >= 3 && p[1] == quote && p[2] == quote))) {
            s->at = p + (triple ? 3 : 1);
            s->kind = TOKEN_STRING;
            return;
        }
        if (n > 0 && !triple)
            break;
        if (*p == '\\') {
            if (++p == s->end)
                break;
            n = newline(s, p);
        }
        p += n > 0 ? n : 1;
    }
    fail(s, -EINVAL);
}

/* What separates tokens on one logical line. */
static void skip_space(struct scan *s)
{
    while (s->at < s->end) {
        size_t n = s->brackets > 0 ? newline(s, s->at) : 0;

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

static void take_other(struct scan *s)
{
    char c = *s->at++;

    s->kind = TOKEN_OTHER;
    if (c == '(' || c == '[' || c == '{')
        require(s, ++s->brackets <= BRACKETS_MAX);
    else if (c == ')' || c == ']' || c == '}')
        require(s, s->brackets-- > 0);
    /* A number in one piece: no name begins within it. */
    else if (c >= '0' && c <= '9')
        while (s->at < s->end && (is_name_byte(*s->at) || *s->at == '.'))
            s->at++;
}

/* Makes the next token the current one. */
static void advance(struct scan *s)
{
    size_t n;

    if (s->line_begins)
        begin_line(s);
    else
        skip_space(s);
    n = newline(s, s->at);
    s->token = s->at;
    if (s->at == s->end) {
        s->kind = TOKEN_END;
        require(s, s->brackets == 0);
    } else if (n > 0) {
        s->kind = TOKEN_LINE_END;
        s->line_begins = true;
        s->at += n;
    } else if (*s->at == '"' || *s->at == '\'') {
        take_string(s);
    } else if (is_name_byte(*s->at) && !(*s->at >= '0' && *s->at <= '9')) {
        s->kind = TOKEN_NAME;
        while (s->at < s->end && is_name_byte(*s->at))
            s->at++;
    } else {
        take_other(s);
    }
    s->token_len = (size_t)(s->at - s->token);
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

static void finish_line(struct scan *s)
{
    while (!at_line_end(s))
        advance(s);
}

/* A dotted name at the current token. One that is too long comes out as "". */
static void take_dotted(struct scan *s, char ret_name[IMPORTS_NAME_MAX + 1])
{
    size_t len = 0;
    bool fits = true;

    for (;; advance(s)) {
        require(s, s->kind == TOKEN_NAME);
        fits = fits && len + s->token_len + 1 <= IMPORTS_NAME_MAX;
        if (fits) {
            memcpy(ret_name + len, s->token, s->token_len);
            len += s->token_len;
        }
        advance(s);
        if (!at_sign(s, '.'))
            break;
        if (fits)
            ret_name[len++] = '.';
    }
    ret_name[fits ? len : 0] = '\0';
}

/* `as name`, if it is there. */
static void skip_alias(struct scan *s)
{
    if (!at_word(s, "as"))
        return;
    advance(s);
    require(s, s->kind == TOKEN_NAME);
    advance(s);
}

static void tell(struct scan *s, unsigned level, const char *module, const char *name)
{
    const struct imports_found found = {.level = level, .module = module, .name = name};
    int r = s->found && !s->error ? s->found(s->user, &found) : 0;

    if (r < 0)
        fail(s, r);
}

/* import a.b as c, d */
static void take_import(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1];

    do {
        advance(s);
        take_dotted(s, module);
        skip_alias(s);
        if (module[0])
            tell(s, 0, module, NULL);
    } while (at_sign(s, ','));
    require(s, at_statement_end(s));
}

/* The names after `from … import`, and a parenthesis around them. */
static void take_names(struct scan *s, unsigned level, const char *module, bool known)
{
    char name[IMPORTS_NAME_MAX + 1];
    bool paren = at_sign(s, '(');

    if (paren)
        advance(s);
    if (!paren && at_sign(s, '*')) {
        if (known)
            tell(s, level, module, "*");
        advance(s);
        return;
    }
    do {
        require(s, s->kind == TOKEN_NAME);
        known = known && s->token_len <= IMPORTS_NAME_MAX;
        if (known) {
            memcpy(name, s->token, s->token_len);
            name[s->token_len] = '\0';
        }
        advance(s);
        skip_alias(s);
        if (known)
            tell(s, level, module, name);
        if (!at_sign(s, ','))
            break;
        advance(s);
    } while (!(paren && at_sign(s, ')')));
    if (!paren)
        return;
    require(s, at_sign(s, ')'));
    advance(s);
}

/* from ..a.b import (c as d, e) */
static void take_from(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1] = "";
    unsigned level = 0;
    bool known = true;

    advance(s);
    for (; at_sign(s, '.'); level++)
        advance(s);
    if (!(level > 0 && at_word(s, "import"))) {
        take_dotted(s, module);
        known = module[0];
    }
    require(s, at_word(s, "import"));
    advance(s);
    take_names(s, level, module, known);
    require(s, at_statement_end(s));
}

/* The rest of this line and all that is indented deeper does not run. */
static void skip_body(struct scan *s)
{
    s->skipping = true;
    s->skip_column = s->column;
    finish_line(s);
}

/* True for `== "__main__"` in a module that is imported, where it is false. */
static bool take_main_test(struct scan *s)
{
    for (int i = 0; i < 2; i++) {
        if (!at_sign(s, '='))
            return false;
        advance(s);
    }
    if (s->kind != TOKEN_STRING || s->token_len != sizeof("'__main__'") - 1 ||
        memcmp(s->token + 1, "__main__", 8) != 0)
        return false;
    advance(s);
    return !s->is_main;
}

/* A condition that says by itself that its body does not run; every other one may be true. */
static void take_condition(struct scan *s)
{
    bool is_false = false;

    advance(s);
    if (at_word(s, "__name__")) {
        advance(s);
        is_false = take_main_test(s);
    } else {
        while (s->kind == TOKEN_NAME) {
            is_false = at_word(s, "TYPE_CHECKING");
            advance(s);
            if (!at_sign(s, '.'))
                break;
            is_false = false;
            advance(s);
        }
    }
    if (is_false && at_sign(s, ':'))
        skip_body(s);
}

/* A statement at its first token. The current token is then any later one, its own or not. */
static void take_statement(struct scan *s)
{
    if (at_word(s, "import"))
        take_import(s);
    else if (at_word(s, "from"))
        take_from(s);
    else if (at_word(s, "if") || at_word(s, "elif"))
        take_condition(s);
    else if (at_word(s, "def"))
        skip_body(s);
    else if (at_word(s, "async")) {
        advance(s);
        if (at_word(s, "def"))
            skip_body(s);
    }
}

/*
 * One logical line. A colon outside brackets ends the head of a compound statement, or else
 * (an annotation, a lambda) is followed by an expression, which begins with no keyword that is
 * looked for here.
 */
static void take_line(struct scan *s)
{
    bool begins = true;

    if (s->skipping && s->column > s->skip_column) {
        finish_line(s);
        return;
    }
    s->skipping = false;
    while (!at_line_end(s)) {
        if (begins && s->kind == TOKEN_NAME)
            take_statement(s);
        if (at_line_end(s))
            break;
        begins = s->brackets == 0 && (at_sign(s, ';') || at_sign(s, ':'));
        advance(s);
    }
}

static int scan_text(struct scan *s)
{
    s->line_begins = true;
    s->brackets = 0;
    s->skipping = false;
    do {
        advance(s);
        take_line(s);
    } while (s->kind != TOKEN_END);
    return s->error;
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
