/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/js_scan.h"

#include "api/skill/js_calls.h"
#include "api/skill/js_tokens.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

/* Around one another, for each is looked through: what is deeper in has no catch of its own. */
#define TRIES_MAX 4u

struct
try {
    unsigned depth; /* that it stands in */
    bool expects;   /* that what is in it fails */
};

struct scan {
    struct js_tokens t;
    struct try tries[TRIES_MAX]; /* around the token, the innermost last */
    size_t n_tries;
    bool own_require;
    bool starts;            /* it imports what starts programs */
    imports_found_fn found; /* NULL: only check */
    void *user;
};

/* The text of a literal without escapes that a name has room in. */
static bool take_literal(struct scan *s, char ret[IMPORTS_NAME_MAX + 1])
{
    const struct js_tokens *t = &s->t;
    bool good = t->kind == JS_STRING && t->token_len > 2 &&
                t->token_len - 2 <= IMPORTS_NAME_MAX && !memchr(t->token, '\\', t->token_len);

    if (good) {
        memcpy(ret, t->token + 1, t->token_len - 2);
        ret[t->token_len - 2] = '\0';
    }
    return good;
}

static void tell_found(void *user, struct imports_found *found)
{
    struct scan *s = user;
    int r;

    for (size_t i = 0; i < s->n_tries; i++)
        found->guarded = found->guarded || s->tries[i].expects;
    r = s->found && !s->t.error ? s->found(s->user, found) : 0;
    if (r < 0)
        js_fail(&s->t, r);
}

static void tell(struct scan *s, const char *module, unsigned line, unsigned depth,
                 bool guarded)
{
    s->starts = s->starts || js_calls_module(module);
    tell_found(s, &(struct imports_found){.kind = IMPORTS_NODE,
                                          .line = line,
                                          .module = module,
                                          .runs = depth == 0,
                                          .guarded = guarded});
}

/* Whether a promise at its closing parenthesis has a catch() of its own. */
static bool is_caught(const struct scan *s)
{
    struct js_tokens ahead = s->t;

    js_advance(&ahead);
    if (!js_at_sign(&ahead, "."))
        return false;
    js_advance(&ahead);
    return js_at_word(&ahead, "catch");
}

/* ("m") of a call, at its parenthesis. True where m starts programs. */
static bool take_argument(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1];
    unsigned line, depth;

    if (!js_at_sign(&s->t, "("))
        return false;
    depth = s->t.depth - 1;
    js_advance(&s->t);
    line = js_line(&s->t);
    if (!take_literal(s, module))
        return false;
    js_advance(&s->t);
    if (js_at_sign(&s->t, ")"))
        tell(s, module, line, depth, is_caught(s));
    else if (js_at_sign(&s->t, ","))
        tell(s, module, line, depth, false);
    return js_at_sign(&s->t, ")") && js_calls_module(module);
}

/* Behind require("child_process"), at its parenthesis. */
static void take_method(struct scan *s)
{
    js_advance(&s->t);
    if (!js_at_sign(&s->t, "."))
        return;
    js_advance(&s->t);
    js_calls_take(&s->t, true, tell_found, s);
}

/* require("m"), require.resolve("m") */
static void take_require(struct scan *s)
{
    js_advance(&s->t);
    if (js_at_sign(&s->t, ".")) {
        js_advance(&s->t);
        if (!js_at_word(&s->t, "resolve"))
            return;
        js_advance(&s->t);
    }
    if (!s->own_require && take_argument(s))
        take_method(s);
}

static void take_module(struct scan *s)
{
    char module[IMPORTS_NAME_MAX + 1];

    if (take_literal(s, module))
        tell(s, module, js_line(&s->t), s->t.depth, false);
}

/* The names of `import a, {b as c} from "m"`, `export * as d from "m"`, and what is behind. */
static void take_clause(struct scan *s)
{
    if (js_at_sign(&s->t, "*")) {
        js_advance(&s->t);
        if (js_at_word(&s->t, "as")) {
            js_advance(&s->t);
            js_advance(&s->t);
        }
    } else if (js_at_sign(&s->t, "{")) {
        do
            js_advance(&s->t);
        while (s->t.kind == JS_NAME || s->t.kind == JS_STRING || js_at_sign(&s->t, ","));
        if (!js_at_sign(&s->t, "}"))
            return;
        js_advance(&s->t);
    }
    if (!js_at_word(&s->t, "from"))
        return;
    js_advance(&s->t);
    take_module(s);
}

static void take_import(struct scan *s)
{
    bool is_statement = s->t.depth == 0;

    js_advance(&s->t);
    if (js_at_sign(&s->t, "(")) {
        (void)take_argument(s);
    } else if (is_statement && s->t.kind == JS_STRING) {
        take_module(s);
    } else if (is_statement) {
        if (s->t.kind == JS_NAME) {
            js_advance(&s->t);
            if (js_at_sign(&s->t, ","))
                js_advance(&s->t);
        }
        take_clause(s);
    }
}

static void take_export(struct scan *s)
{
    bool is_statement = s->t.depth == 0;

    js_advance(&s->t);
    if (is_statement && (js_at_sign(&s->t, "*") || js_at_sign(&s->t, "{")))
        take_clause(s);
}

/* function require(…), function (require, …) */
static void take_function(struct scan *s)
{
    js_advance(&s->t);
    if (js_at_sign(&s->t, "*"))
        js_advance(&s->t);
    for (;; js_advance(&s->t)) {
        s->own_require = s->own_require || js_at_word(&s->t, "require");
        if (s->t.kind != JS_NAME && !js_at_sign(&s->t, "(") && !js_at_sign(&s->t, ","))
            return;
    }
}

static bool at_exit(const struct js_tokens *t)
{
    struct js_tokens ahead = *t;

    js_advance(&ahead);
    js_advance(&ahead);
    return js_at_word(&ahead, "exit") || js_at_word(&ahead, "abort");
}

/* A statement that ends the program, or raises. */
static bool at_end(const struct js_tokens *t)
{
    return !t->member && (js_at_word(t, "throw") || (js_at_word(t, "process") && at_exit(t)));
}

/* Whether the block at the current token ends the program, and not only on a condition. */
static bool take_ending(struct js_tokens *t)
{
    unsigned depth = t->depth;
    bool ends = false, spared = false;

    for (js_advance(t); t->kind != JS_END && t->depth >= depth; js_advance(t)) {
        if (t->depth == depth && !spared)
            ends = ends || at_end(t);
        /* What one statement behind a head or an else does may not be done. */
        spared = js_at_word(t, "else") || (js_at_sign(t, ")") && t->next == JS_STATEMENT);
    }
    return ends;
}

/* Whether the try at the current token has a catch that goes on without what failed. */
static bool expects_failure(const struct scan *s)
{
    struct js_tokens ahead = s->t;

    js_advance(&ahead);
    if (!js_at_sign(&ahead, "{"))
        return false;
    (void)take_ending(&ahead);
    js_advance(&ahead);
    if (!js_at_word(&ahead, "catch"))
        return false;
    js_advance(&ahead);
    /* No further than to the end of what it is given: a file may have many of these. */
    if (js_at_sign(&ahead, "(")) {
        do
            js_advance(&ahead);
        while (ahead.kind != JS_END && ahead.depth > s->t.depth);
        js_advance(&ahead);
    }
    return js_at_sign(&ahead, "{") && !take_ending(&ahead);
}

static void take_try(struct scan *s)
{
    if (s->found && s->n_tries < TRIES_MAX)
        s->tries[s->n_tries++] = (struct try){s->t.depth, expects_failure(s)};
    js_advance(&s->t);
}

/* Leaves behind what the current token is no part of: a try goes on with its catch. */
static void leave_tries(struct scan *s)
{
    for (; s->n_tries > 0; s->n_tries--) {
        unsigned depth = s->tries[s->n_tries - 1].depth;

        if (s->t.depth > depth ||
            (s->t.depth == depth &&
             (js_at_sign(&s->t, "}") || js_at_sign(&s->t, ")") || js_at_word(&s->t, "catch") ||
              js_at_word(&s->t, "finally"))))
            return;
    }
}

/* What stands at the current token, which is then any later one, its own or not. */
static void take(struct scan *s)
{
    static const struct {
        const char *word;
        void (*take)(struct scan *s);
    } words[] = {{"import", take_import},
                 {"export", take_export},
                 {"require", take_require},
                 {"function", take_function},
                 {"try", take_try}};
    const char *name = s->t.token;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!s->t.member && js_at_word(&s->t, words[i].word)) {
            words[i].take(s);
            return;
        }
    }
    if (s->starts)
        js_calls_take(&s->t, false, tell_found, s);
    if (s->t.token == name && s->t.kind == JS_NAME && s->found)
        js_calls_take_host(&s->t, tell_found, s);
    if (s->t.token == name)
        js_advance(&s->t);
}

static int scan_text(struct scan *s)
{
    js_advance(&s->t);
    while (s->t.kind != JS_END) {
        leave_tries(s);
        take(s);
    }
    return s->t.error;
}

int js_scan(const char *text, size_t len, imports_found_fn found, void *user)
{
    struct scan s = {.user = user}, again;
    const char *end = text + len;

    if (memchr(text, 0, len) || !utf8_valid(text, len))
        return -EINVAL;
    s.t = (struct js_tokens){.at = text, .end = end, .counted = text};
    if (len >= 2 && memcmp(text, "#!", 2) == 0)
        while (s.t.at < end && *s.t.at != '\n')
            s.t.at++;
    /* Twice: a source that is wrong imports nothing, wherever it is wrong. */
    again = s;
    if (scan_text(&s) < 0)
        return s.t.error;
    again.found = found;
    again.own_require = s.own_require;
    again.starts = s.starts;
    return scan_text(&again);
}
