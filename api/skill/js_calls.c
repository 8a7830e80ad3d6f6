/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/js_calls.h"

#include "api/skill/url_host.h"
#include "base/text.h"

#include <string.h>

static const struct {
    const char *name;
    enum imports_kind kind;
    bool common; /* so are the methods of others, as of a regular expression */
} functions[] = {
    {"exec", IMPORTS_COMMAND, true},           {"execSync", IMPORTS_COMMAND, false},
    {"execAsync", IMPORTS_COMMAND, false},     {"execPromise", IMPORTS_COMMAND, false},
    {"execaCommand", IMPORTS_COMMAND, false},  {"execaCommandSync", IMPORTS_COMMAND, false},
    {"execFile", IMPORTS_PROGRAM, false},      {"execFileSync", IMPORTS_PROGRAM, false},
    {"execFileAsync", IMPORTS_PROGRAM, false}, {"execa", IMPORTS_PROGRAM, false},
    {"execaSync", IMPORTS_PROGRAM, false},     {"spawn", IMPORTS_PROGRAM, false},
    {"spawnSync", IMPORTS_PROGRAM, false},
};

bool js_calls_module(const char *module)
{
    return text_has_word("child_process node:child_process cross-spawn execa shelljs", " ",
                         module);
}

/* Whether it is at one of these words, of which the last is NULL. */
static bool at_one_of(const struct js_tokens *t, const char *const *words)
{
    while (*words && !js_at_word(t, *words))
        words++;
    return *words;
}

/* What people call such a module. */
static bool at_module(const struct js_tokens *t)
{
    static const char *const names[] = {"child_process", "childProcess", "cp",
                                        "shell",         "shelljs",      NULL};

    return !t->member && at_one_of(t, names);
}

/* What asks the host of a URL: functions, and methods of modules. */
static bool take_asker(struct js_tokens *t)
{
    static const char *const functions_of_url[] = {"fetch", "axios", "got", "WebSocket", NULL};
    static const char *const modules[] = {"axios", "got", "https", "http", NULL};
    static const char *const methods[] = {"get",  "post",   "put",     "patch",
                                          "head", "delete", "request", NULL};
    bool is_function = at_one_of(t, functions_of_url), is_module = at_one_of(t, modules);

    if (t->member || (!is_function && !is_module))
        return false;
    js_advance(t);
    if (is_module && js_at_sign(t, ".")) {
        js_advance(t);
        is_function = at_one_of(t, methods);
        if (!is_function)
            return false;
        js_advance(t);
    }
    return is_function && js_at_sign(t, "(");
}

/* The text of a literal, up to what only running tells: an escape, or a field of a template. */
static bool take_literal(struct js_tokens *t, char ret[IMPORTS_TEXT_MAX + 1], bool *ret_whole)
{
    bool begins = t->kind == JS_OTHER && t->token[0] == '`';
    size_t around = begins ? sizeof("`${") - 1 : 2, len = 0;

    if ((t->kind != JS_STRING && !begins) || t->token_len < around)
        return false;
    for (const char *at = t->token + 1;
         len < t->token_len - around && len < IMPORTS_TEXT_MAX && *at != '\\';)
        ret[len++] = *at++;
    ret[len] = '\0';
    *ret_whole = !begins && len == t->token_len - around;
    js_advance(t);
    /* "git" + suffix, "git".concat(x) */
    *ret_whole = *ret_whole && (js_at_sign(t, ",") || js_at_sign(t, ")"));
    return true;
}

static bool take_argument(struct js_tokens *t, struct imports_found found,
                          void (*tell)(void *user, struct imports_found *), void *user)
{
    char text[IMPORTS_TEXT_MAX + 1];
    bool whole;

    found.line = js_line(t);
    found.module = text;
    if (!take_literal(t, text, &whole))
        return false;
    if (!whole)
        text_cut_word(text);
    if (text[0] && (whole || found.kind == IMPORTS_COMMAND))
        tell(user, &found);
    return true;
}

static bool take(struct js_tokens *t, bool of_module,
                 void (*tell)(void *user, struct imports_found *), void *user)
{
    if (at_module(t)) {
        js_advance(t);
        if (!js_at_sign(t, ".") && !js_at_sign(t, "?."))
            return false;
        js_advance(t);
        of_module = true;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        struct imports_found found = {.kind = functions[i].kind};

        if (!js_at_word(t, functions[i].name) ||
            (functions[i].common && t->member && !of_module))
            continue;
        js_advance(t);
        if (!js_at_sign(t, "("))
            return false;
        found.runs = t->depth == 1;
        js_advance(t);
        return take_argument(t, found, tell, user);
    }
    return false;
}

static bool take_host(struct js_tokens *t, void (*tell)(void *user, struct imports_found *),
                      void *user)
{
    char text[IMPORTS_TEXT_MAX + 1], host[URL_HOST_SIZE];
    struct imports_found found = {.kind = IMPORTS_HOST, .module = host};
    bool whole;

    if (!take_asker(t))
        return false;
    found.runs = t->depth == 1;
    js_advance(t);
    found.line = js_line(t);
    if (!take_literal(t, text, &whole))
        return false;
    if (url_host_take((struct text_span){text, strlen(text)}, whole, host))
        tell(user, &found);
    return true;
}

void js_calls_take_host(struct js_tokens *t, void (*tell)(void *user, struct imports_found *),
                        void *user)
{
    struct js_tokens ahead;

    (void)js_line(t);
    ahead = *t;
    if (take_host(&ahead, tell, user) && !t->error)
        *t = ahead;
}

void js_calls_take(struct js_tokens *t, bool of_module,
                   void (*tell)(void *user, struct imports_found *), void *user)
{
    struct js_tokens ahead;

    /* Lines are counted once: what the copy counts is lost with it. */
    (void)js_line(t);
    ahead = *t;
    /* Whoever was told may have ended it. */
    if (take(&ahead, of_module, tell, user) && !t->error)
        *t = ahead;
}
