/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/imports_scan.h"

#include "api/skill/python_calls.h"
#include "api/skill/python_tokens.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define TRIES_MAX 16u /* around one another; what is deeper in has no handlers of its own */

/* What the handlers of a try expect. */
enum expected { EXPECTED_NO_MODULE = 1u, EXPECTED_NO_FILE = 2u };

struct guard {
    size_t column;
    unsigned expected;
};

struct scan {
    struct python_tokens t;
    bool
        skipping; /* what is on the line, and lines that are indented deeper than skip_column */
    size_t skip_column;
    bool in_function; /* lines that are indented deeper than function_column are */
    size_t function_column;
    struct guard guards[TRIES_MAX]; /* around the line, the innermost last */
    size_t n_guards;
    bool is_main;
    imports_found_fn found; /* NULL: only check */
    void *user;
};

/* A dotted name at the current token. One that is too long comes out as "". */
static void take_dotted(struct scan *s, char ret_name[IMPORTS_NAME_MAX + 1])
{
    size_t len = 0;
    bool fits = true;

    for (;; python_advance(&s->t)) {
        python_require(&s->t, s->t.kind == PYTHON_NAME);
        fits = fits && len + s->t.token_len + 1 <= IMPORTS_NAME_MAX;
        if (fits) {
            memcpy(ret_name + len, s->t.token, s->t.token_len);
            len += s->t.token_len;
        }
        python_advance(&s->t);
        if (!python_at_sign(&s->t, '.'))
            break;
        if (fits)
            ret_name[len++] = '.';
    }
    ret_name[fits ? len : 0] = '\0';
}

/* `as name`, if it is there. */
static void skip_alias(struct scan *s)
{
    if (!python_at_word(&s->t, "as"))
        return;
    python_advance(&s->t);
    python_require(&s->t, s->t.kind == PYTHON_NAME);
    python_advance(&s->t);
}

/* Completes what was found, and tells it. */
static void tell(struct scan *s, struct imports_found *found)
{
    unsigned expected = 0;
    int r;

    if (!s->found || s->skipping || s->t.error)
        return;
    for (size_t i = 0; i < s->n_guards; i++)
        expected |= s->guards[i].expected;
    found->runs = !s->in_function;
    found->guarded =
        expected & (found->kind == IMPORTS_MODULE ? EXPECTED_NO_MODULE : EXPECTED_NO_FILE);
    r = s->found(s->user, found);
    if (r < 0)
        python_fail(&s->t, r);
}

static void tell_import(struct scan *s, unsigned level, const char *module, const char *name)
{
    tell(s, &(struct imports_found){.kind = IMPORTS_MODULE,
                                    .line = python_line(&s->t),
                                    .level = level,
                                    .module = module,
                                    .name = name});
}

/* import a.b as c, d */
static void take_import(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1];

    do {
        python_advance(&s->t);
        take_dotted(s, module);
        skip_alias(s);
        if (module[0])
            tell_import(s, 0, module, NULL);
    } while (python_at_sign(&s->t, ','));
    python_require(&s->t, python_at_statement_end(&s->t));
}

/* The names after `from … import`, and a parenthesis around them. */
static void take_names(struct scan *s, unsigned level, const char *module, bool known)
{
    char name[IMPORTS_NAME_MAX + 1];
    bool paren = python_at_sign(&s->t, '(');

    if (paren)
        python_advance(&s->t);
    if (!paren && python_at_sign(&s->t, '*')) {
        if (known)
            tell_import(s, level, module, "*");
        python_advance(&s->t);
        return;
    }
    do {
        python_require(&s->t, s->t.kind == PYTHON_NAME);
        known = known && s->t.token_len <= IMPORTS_NAME_MAX;
        if (known) {
            memcpy(name, s->t.token, s->t.token_len);
            name[s->t.token_len] = '\0';
        }
        python_advance(&s->t);
        skip_alias(s);
        if (known)
            tell_import(s, level, module, name);
        if (!python_at_sign(&s->t, ','))
            break;
        python_advance(&s->t);
    } while (!(paren && python_at_sign(&s->t, ')')));
    if (!paren)
        return;
    python_require(&s->t, python_at_sign(&s->t, ')'));
    python_advance(&s->t);
}

/* from ..a.b import (c as d, e) */
static void take_from(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1] = "";
    unsigned level = 0;
    bool known = true;

    python_advance(&s->t);
    for (; python_at_sign(&s->t, '.'); level++)
        python_advance(&s->t);
    if (!(level > 0 && python_at_word(&s->t, "import"))) {
        take_dotted(s, module);
        known = module[0];
    }
    python_require(&s->t, python_at_word(&s->t, "import"));
    python_advance(&s->t);
    take_names(s, level, module, known);
    python_require(&s->t, python_at_statement_end(&s->t));
}

/* True for `== "__main__"` in a module that is imported, where it is false. */
static bool take_main_test(struct python_tokens *t, bool is_main)
{
    for (int i = 0; i < 2; i++) {
        if (!python_at_sign(t, '='))
            return false;
        python_advance(t);
    }
    if (t->kind != PYTHON_STRING || t->token_len != sizeof("'__main__'") - 1 ||
        memcmp(t->token + 1, "__main__", 8) != 0)
        return false;
    python_advance(t);
    return !is_main;
}

/* A condition that says by itself that its body does not run; every other one may be true. */
static void take_condition(struct scan *s)
{
    struct python_tokens ahead = s->t;
    bool is_false = false;

    python_advance(&ahead);
    if (python_at_word(&ahead, "__name__")) {
        python_advance(&ahead);
        is_false = take_main_test(&ahead, s->is_main);
    } else {
        while (ahead.kind == PYTHON_NAME) {
            is_false = python_at_word(&ahead, "TYPE_CHECKING");
            python_advance(&ahead);
            if (!python_at_sign(&ahead, '.'))
                break;
            is_false = false;
            python_advance(&ahead);
        }
    }
    if (!is_false || !python_at_sign(&ahead, ':') || s->skipping)
        return;
    s->skipping = true;
    s->skip_column = s->t.column;
}

/* What the exceptions named until the colon, or none at all, stand for. */
static unsigned take_exceptions(struct python_tokens *t)
{
    static const struct {
        const char *name;
        unsigned expected;
    } known[] = {
        {"ImportError", EXPECTED_NO_MODULE},
        {"ModuleNotFoundError", EXPECTED_NO_MODULE},
        {"FileNotFoundError", EXPECTED_NO_FILE},
        {"OSError", EXPECTED_NO_FILE},
        {"EnvironmentError", EXPECTED_NO_FILE},
        {"IOError", EXPECTED_NO_FILE},
        {"Exception", EXPECTED_NO_MODULE | EXPECTED_NO_FILE},
        {"BaseException", EXPECTED_NO_MODULE | EXPECTED_NO_FILE},
    };
    unsigned expected = 0;

    if (python_at_sign(t, ':'))
        return EXPECTED_NO_MODULE | EXPECTED_NO_FILE;
    for (; !python_at_line_end(t) && !(t->brackets == 0 && python_at_sign(t, ':'));
         python_advance(t)) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            expected |= python_at_word(t, known[i].name) ? known[i].expected : 0;
    }
    return expected;
}

/* Whether the statement that goes on to the end of the line ends the program, or raises. */
static bool take_end(struct python_tokens *t)
{
    static const char *const exits[] = {"exit", "_exit", "quit"};
    bool ends = python_at_word(t, "raise");

    for (; !python_at_line_end(t); python_advance(t)) {
        struct python_tokens ahead = *t;

        if (python_at_sign(t, ';'))
            ends = false;
        for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
            if (python_at_word(t, exits[i])) {
                python_advance(&ahead);
                ends = ends || python_at_sign(&ahead, '(');
            }
    }
    return ends;
}

/*
 * The body of a handler, from its colon to the first line that is no part of it: whether its
 * last statement, not one that a condition may spare, ends the program.
 */
static bool take_handler(struct python_tokens *t, size_t column)
{
    size_t body = 0;
    bool ends;

    if (python_at_sign(t, ':'))
        python_advance(t);
    ends = take_end(t);
    for (;;) {
        if (t->kind == PYTHON_END)
            return ends;
        python_advance(t);
        if (t->column <= column || t->kind == PYTHON_END)
            return ends;
        body = body ? body : t->column;
        if (python_at_line_end(t))
            continue;
        if (t->column == body)
            ends = take_end(t);
        while (!python_at_line_end(t))
            python_advance(t);
    }
}

/*
 * What the handlers of the try at the current token expect: they come behind its body. One that
 * ends the program expects nothing.
 */
static unsigned look_at_handlers(const struct scan *s)
{
    struct python_tokens ahead = s->t;
    size_t column = ahead.column;
    unsigned expected = 0, found;

    (void)take_handler(&ahead, column);
    while (ahead.kind != PYTHON_END && ahead.column == column &&
           python_at_word(&ahead, "except")) {
        python_advance(&ahead);
        if (python_at_sign(&ahead, '*'))
            python_advance(&ahead);
        found = take_exceptions(&ahead);
        if (!take_handler(&ahead, column))
            expected |= found;
    }
    return expected;
}

/* `with suppress(ImportError):` is a try too. */
static unsigned look_at_suppress(const struct scan *s)
{
    struct python_tokens ahead = s->t;

    if (!s->found || !python_at_word(&ahead, "with"))
        return 0;
    while (!python_at_line_end(&ahead) && !python_at_word(&ahead, "suppress"))
        python_advance(&ahead);
    return python_at_word(&ahead, "suppress") ? take_exceptions(&ahead) : 0;
}

/* All of the statement at the current token is done where that is expected. */
static void guard(struct scan *s, unsigned expected)
{
    if (s->n_guards < TRIES_MAX)
        s->guards[s->n_guards++] = (struct guard){.column = s->t.column, .expected = expected};
}

static bool goes_on(const struct python_tokens *t)
{
    return python_at_word(t, "except") || python_at_word(t, "else") ||
           python_at_word(t, "finally");
}

/* Leaves behind what the line at the current token is no part of. */
static void leave_blocks(struct scan *s)
{
    size_t column = s->t.column;

    s->skipping = s->skipping && column > s->skip_column;
    s->in_function = s->in_function && column > s->function_column;
    while (s->n_guards > 0 &&
           (column < s->guards[s->n_guards - 1].column ||
            (column == s->guards[s->n_guards - 1].column && !goes_on(&s->t))))
        s->n_guards--;
}

static void enter_function(struct scan *s)
{
    if (!s->in_function)
        s->function_column = s->t.column;
    s->in_function = true;
}

/* A statement at its first token. The current token is then any later one, its own or not. */
static void take_statement(struct scan *s)
{
    if (python_at_word(&s->t, "import"))
        take_import(s);
    else if (python_at_word(&s->t, "from"))
        take_from(s);
    else if (python_at_word(&s->t, "if") || python_at_word(&s->t, "elif"))
        take_condition(s);
    else if (python_at_word(&s->t, "try") && s->found && s->n_guards < TRIES_MAX)
        guard(s, look_at_handlers(s));
    else if (python_at_word(&s->t, "def"))
        enter_function(s);
}

static void on_call(void *user, struct imports_found *found)
{
    tell(user, found);
}

/*
 * One logical line. A colon outside brackets ends the head of a compound statement, or else
 * (an annotation, a lambda) is followed by an expression, which begins with no keyword that is
 * looked for here.
 */
static void take_line(struct scan *s)
{
    bool begins = true, dotted = false;
    unsigned suppressed;

    leave_blocks(s);
    suppressed = look_at_suppress(s);
    if (suppressed)
        guard(s, suppressed);
    while (!python_at_line_end(&s->t)) {
        const char *before = s->t.token;

        if (s->t.kind == PYTHON_NAME && begins)
            take_statement(s);
        if (s->t.kind == PYTHON_NAME && s->t.token == before && !dotted && s->found)
            python_calls_take(&s->t, on_call, s);
        if (python_at_line_end(&s->t))
            break;
        begins =
            s->t.brackets == 0 && (python_at_sign(&s->t, ';') || python_at_sign(&s->t, ':'));
        dotted = python_at_sign(&s->t, '.');
        /* `async` is followed by the statement itself. */
        begins = begins || python_at_word(&s->t, "async");
        /* What a call was not is looked at again from its next name. */
        if (s->t.token == before || s->t.kind != PYTHON_NAME)
            python_advance(&s->t);
    }
}

static int scan_text(struct scan *s)
{
    do {
        python_advance(&s->t);
        take_line(s);
    } while (s->t.kind != PYTHON_END);
    return s->t.error;
}

static bool is_encoding_byte(char c)
{
    return (python_is_name_byte(c) && (unsigned char)c < 0x80) || c == '-' || c == '.';
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
static bool declares_other_encoding(const struct python_tokens *t)
{
    const char *p = t->at;

    for (int line = 0; line < 2; line++) {
        const char *end;

        while (p < t->end && (*p == ' ' || *p == '\t' || *p == '\f'))
            p++;
        for (end = p; end < t->end && !python_newline(t, end);)
            end++;
        if (p < end && *p != '#')
            return false;
        if (names_other_encoding(p, end))
            return true;
        p = end + python_newline(t, end);
    }
    return false;
}

int imports_scan(const char *text, size_t len, bool is_main, imports_found_fn found, void *user)
{
    struct scan s = {.is_main = is_main, .user = user}, again;
    const char *end = text + len;

    if (memchr(text, 0, len) || !utf8_valid(text, len))
        return -EINVAL;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    s.t = (struct python_tokens){
        .at = text, .end = end, .token = text, .counted = text, .line_begins = true};
    if (declares_other_encoding(&s.t))
        return -EINVAL;
    /* Twice: a source that does not compile imports nothing, wherever it is wrong. */
    again = s;
    again.found = found;
    if (scan_text(&s) < 0)
        return s.t.error;
    return scan_text(&again);
}
