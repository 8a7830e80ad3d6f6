/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/python_calls.h"

#include "api/skill/url_host.h"
#include "base/text.h"

#include <string.h>

/* What the first argument of a function is; LIST: only where it is a list that begins so. */
enum argument {
    ARGUMENT_PROGRAM,
    ARGUMENT_LIST,
    ARGUMENT_SHELL,
    ARGUMENT_ASKED,
    ARGUMENT_MODULE,
    ARGUMENT_URL,
    ARGUMENT_METHOD, /* and the second is a URL */
    ARGUMENT_HOST,
};

static const struct {
    const char *module; /* NULL: imported by name */
    const char *function;
    enum argument argument;
} functions[] = {
    {"subprocess", "run", ARGUMENT_SHELL},
    {"subprocess", "call", ARGUMENT_SHELL},
    {"subprocess", "check_call", ARGUMENT_SHELL},
    {"subprocess", "check_output", ARGUMENT_SHELL},
    {"subprocess", "Popen", ARGUMENT_SHELL},
    {"subprocess", "getoutput", ARGUMENT_SHELL},
    {"subprocess", "getstatusoutput", ARGUMENT_SHELL},
    {"sp", "run", ARGUMENT_SHELL},
    {"sp", "call", ARGUMENT_SHELL},
    {"sp", "check_call", ARGUMENT_SHELL},
    {"sp", "check_output", ARGUMENT_SHELL},
    {"sp", "Popen", ARGUMENT_SHELL},
    {"asyncio", "create_subprocess_exec", ARGUMENT_PROGRAM},
    {"asyncio", "create_subprocess_shell", ARGUMENT_SHELL},
    {"os", "system", ARGUMENT_SHELL},
    {"os", "popen", ARGUMENT_SHELL},
    {"shutil", "which", ARGUMENT_ASKED},
    {"importlib", "import_module", ARGUMENT_MODULE},
    {"requests", "get", ARGUMENT_URL},
    {"requests", "post", ARGUMENT_URL},
    {"requests", "put", ARGUMENT_URL},
    {"requests", "patch", ARGUMENT_URL},
    {"requests", "delete", ARGUMENT_URL},
    {"requests", "head", ARGUMENT_URL},
    {"requests", "options", ARGUMENT_URL},
    {"requests", "request", ARGUMENT_METHOD},
    {"httpx", "get", ARGUMENT_URL},
    {"httpx", "post", ARGUMENT_URL},
    {"httpx", "put", ARGUMENT_URL},
    {"httpx", "patch", ARGUMENT_URL},
    {"httpx", "delete", ARGUMENT_URL},
    {"httpx", "head", ARGUMENT_URL},
    {"httpx", "request", ARGUMENT_METHOD},
    {"httpx", "stream", ARGUMENT_METHOD},
    {"urllib.request", "urlopen", ARGUMENT_URL},
    {"urllib.request", "urlretrieve", ARGUMENT_URL},
    {"urllib.request", "Request", ARGUMENT_URL},
    {"http.client", "HTTPSConnection", ARGUMENT_HOST},
    {"http.client", "HTTPConnection", ARGUMENT_HOST},
    {NULL, "urlopen", ARGUMENT_URL},
    {NULL, "urlretrieve", ARGUMENT_URL},
    {NULL, "Request", ARGUMENT_URL},
    {NULL, "HTTPSConnection", ARGUMENT_HOST},
    {NULL, "HTTPConnection", ARGUMENT_HOST},
    {NULL, "run", ARGUMENT_LIST},
    {NULL, "call", ARGUMENT_LIST},
    {NULL, "check_call", ARGUMENT_SHELL},
    {NULL, "check_output", ARGUMENT_SHELL},
    {NULL, "Popen", ARGUMENT_SHELL},
    {NULL, "which", ARGUMENT_ASKED},
    {NULL, "import_module", ARGUMENT_MODULE},
    {NULL, "__import__", ARGUMENT_MODULE},
};

/* A literal at the current token, as far as it is one. */
struct literal {
    char text[IMPORTS_TEXT_MAX + 1];
    size_t len;
    bool whole; /* nothing follows that is not in text */
};

/* What is told of a call. */
struct call {
    void (*tell)(void *user, struct imports_found *found);
    void *user;
};

static bool is_prefix(const struct python_tokens *t)
{
    return t->kind == PYTHON_NAME && t->token_len <= 2 && t->at < t->end &&
           (*t->at == '"' || *t->at == '\'') && strspn(t->token, "rRbBuUfF") >= t->token_len;
}

/*
 * Reads the literals that stand behind one another. False where there is none. A text ends
 * before its first escape, and a formatted one before its first field.
 */
static bool take_literal(struct python_tokens *t, struct literal *ret)
{
    ret->len = 0;
    ret->whole = true;
    if (t->kind != PYTHON_STRING && !is_prefix(t))
        return false;
    while (t->kind == PYTHON_STRING || is_prefix(t)) {
        bool formatted = false;
        size_t quotes, len;

        if (t->kind == PYTHON_NAME) {
            formatted =
                memchr(t->token, 'f', t->token_len) || memchr(t->token, 'F', t->token_len);
            python_advance(t);
        }
        if (t->kind != PYTHON_STRING)
            return false;
        quotes = t->token_len >= 6 && t->token[1] == t->token[0] && t->token[2] == t->token[0]
                     ? 3
                     : 1;
        len = t->token_len - 2 * quotes;
        for (size_t i = 0; i < len && ret->whole; i++) {
            char c = t->token[quotes + i];

            ret->whole = c != '\\' && !(formatted && c == '{') && ret->len < IMPORTS_TEXT_MAX;
            if (ret->whole)
                ret->text[ret->len++] = c;
        }
        python_advance(t);
    }
    /* "git" + suffix, "%s" % x, "x".format() */
    ret->whole = ret->whole && (python_at_sign(t, ',') || python_at_sign(t, ')') ||
                                python_at_sign(t, ']') || python_at_line_end(t));
    ret->text[ret->len] = '\0';
    return true;
}

static void tell(const struct call *call, enum imports_kind kind, unsigned line,
                 const char *text)
{
    call->tell(call->user, &(struct imports_found){.kind = kind, .line = line, .module = text});
}

/* A command of which not all is literal is told up to the last word that is. */
static void tell_command(const struct call *call, struct literal *text, unsigned line)
{
    if (!text->whole)
        text_cut_word(text->text);
    if (text->text[0])
        tell(call, IMPORTS_COMMAND, line, text->text);
}

/* A dotted name that is not relative, as of an import statement. */
static bool is_module(const struct literal *text)
{
    bool begins = true;

    for (size_t i = 0; i < text->len; i++) {
        char c = text->text[i];

        if (begins ? c == '.' || (c >= '0' && c <= '9') : false)
            return false;
        if (c != '.' && !python_is_name_byte(c))
            return false;
        begins = c == '.';
    }
    return !begins && text->len <= IMPORTS_NAME_MAX;
}

/* What is asked at a literal that begins with a URL, or is a host. */
static bool take_host(struct python_tokens *t, enum argument argument, const struct call *call)
{
    char host[URL_HOST_SIZE];
    struct literal text;
    unsigned line;

    if (argument == ARGUMENT_METHOD) {
        if (!take_literal(t, &text) || !python_at_sign(t, ','))
            return false;
        python_advance(t);
    }
    if (python_at_word(t, argument == ARGUMENT_HOST ? "host" : "url")) {
        python_advance(t);
        if (!python_at_sign(t, '='))
            return false;
        python_advance(t);
    }
    line = python_line(t);
    if (!take_literal(t, &text))
        return false;
    if (argument == ARGUMENT_HOST
            ? text.whole && url_host_take_bare((struct text_span){text.text, text.len}, host)
            : url_host_take((struct text_span){text.text, text.len}, text.whole, host))
        tell(call, IMPORTS_HOST, line, host);
    return true;
}

/* The first argument, behind the parenthesis or the sign of an assignment. */
static bool take_argument(struct python_tokens *t, enum argument argument,
                          const struct call *call)
{
    struct literal text;
    unsigned line;
    bool is_list;

    if (argument >= ARGUMENT_URL)
        return take_host(t, argument, call);
    if (python_at_word(t, "args")) {
        python_advance(t);
        if (!python_at_sign(t, '='))
            return false;
        python_advance(t);
    }
    is_list = python_at_sign(t, '[') || python_at_sign(t, '(');
    if (is_list)
        python_advance(t);
    line = python_line(t);
    if ((argument == ARGUMENT_LIST && !is_list) || !take_literal(t, &text))
        return false;
    if (argument == ARGUMENT_MODULE) {
        if (!is_list && text.whole && is_module(&text))
            tell(call, IMPORTS_NAMED, line, text.text);
        return true;
    }
    if (argument == ARGUMENT_SHELL && !is_list)
        tell_command(call, &text, line);
    else if (text.whole && text.len > 0)
        tell(call, argument == ARGUMENT_ASKED ? IMPORTS_ASKED : IMPORTS_PROGRAM, line,
             text.text);
    return true;
}

/* sys.path.insert(0, …), sys.path = […]: its literals, joined as the parts of a path. */
static bool take_path(struct python_tokens *t, const struct call *call)
{
    struct literal part, all = {.len = 0};
    unsigned line = python_line(t), outside = t->brackets;
    bool is_call = false;

    python_advance(t);
    if (python_at_sign(t, '.')) {
        python_advance(t);
        if (!python_at_word(t, "insert") && !python_at_word(t, "append") &&
            !python_at_word(t, "extend"))
            return false;
        python_advance(t);
        is_call = python_at_sign(t, '(');
    } else if (python_at_sign(t, '+')) {
        python_advance(t);
    }
    if (!is_call && !python_at_sign(t, '=') && !python_at_sign(t, '['))
        return false;
    python_advance(t);
    while (!python_at_line_end(t) && !(is_call && t->brackets <= outside)) {
        if (!take_literal(t, &part)) {
            python_advance(t);
            continue;
        }
        if (all.len + part.len + 2 > sizeof(all.text))
            continue;
        if (all.len > 0)
            all.text[all.len++] = '/';
        memcpy(all.text + all.len, part.text, part.len);
        all.len += part.len;
    }
    all.text[all.len] = '\0';
    tell(call, IMPORTS_FOLDER, line, all.text);
    return true;
}

/* The functions of this name that stand here, as of take_argument(). */
static bool take_function(struct python_tokens *t, const char *module, const struct call *call)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (!python_at_word(t, functions[i].function) ||
            (module ? !functions[i].module || strcmp(module, functions[i].module) != 0
                    : functions[i].module != NULL))
            continue;
        python_advance(t);
        if (!python_at_sign(t, '('))
            return false;
        python_advance(t);
        return take_argument(t, functions[i].argument, call);
    }
    return false;
}

/* cmd = ["git", …]: what a later call is given. */
static bool take_assignment(struct python_tokens *t, const struct call *call)
{
    python_advance(t);
    if (!python_at_sign(t, '='))
        return false;
    python_advance(t);
    return python_at_sign(t, '[') && take_argument(t, ARGUMENT_LIST, call);
}

/* From a name to behind the dot that follows it. */
static bool take_dot(struct python_tokens *t)
{
    python_advance(t);
    if (!python_at_sign(t, '.'))
        return false;
    python_advance(t);
    return true;
}

static bool take(struct python_tokens *t, const struct call *call)
{
    static const struct {
        const char *name;
        const char *inner; /* what a second name makes of it, or NULL */
        const char *whole;
    } modules[] = {{"subprocess", NULL, "subprocess"},
                   {"sp", NULL, "sp"},
                   {"asyncio", NULL, "asyncio"},
                   {"os", NULL, "os"},
                   {"shutil", NULL, "shutil"},
                   {"importlib", NULL, "importlib"},
                   {"sys", NULL, "sys"},
                   {"requests", NULL, "requests"},
                   {"httpx", NULL, "httpx"},
                   {"urllib", "request", "urllib.request"},
                   {"request", NULL, "urllib.request"},
                   {"http", "client", "http.client"}};
    const char *module = NULL, *inner = NULL;

    if (python_at_word(t, "cmd") || python_at_word(t, "command"))
        return take_assignment(t, call);
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
        if (python_at_word(t, modules[i].name)) {
            module = modules[i].whole;
            inner = modules[i].inner;
        }
    if (!module)
        return take_function(t, NULL, call);
    if (!take_dot(t))
        return false;
    if (inner && (!python_at_word(t, inner) || !take_dot(t)))
        return false;
    if (strcmp(module, "sys") == 0)
        return python_at_word(t, "path") && take_path(t, call);
    return take_function(t, module, call);
}

void python_calls_take(struct python_tokens *t,
                       void (*tell_found)(void *user, struct imports_found *), void *user)
{
    const struct call call = {tell_found, user};
    struct python_tokens ahead;

    /* Lines are counted once: what the copy counts is lost with it. */
    (void)python_line(t);
    ahead = *t;
    /* Whoever was told may have ended it. */
    if (take(&ahead, &call) && !t->error)
        *t = ahead;
}
