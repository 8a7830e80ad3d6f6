/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/marker.h"

#include "api/skill/pep440.h"
#include "base/package_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VALUE_MAX 256u

struct reader {
    const char *at, *end;
    const struct marker_python *python;
    const char *extra;
    unsigned depth;
};

struct value {
    char text[VALUE_MAX];
    bool is_extra; /* the variable of that name */
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool take(struct reader *r, const char *text)
{
    size_t len = strlen(text);

    skip_space(r);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0)
        return false;
    r->at += len;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    const char *before = r->at;

    if (take(r, word) &&
        (r->at == r->end || !(isalnum((unsigned char)*r->at) || *r->at == '_')))
        return true;
    r->at = before;
    return false;
}

static int take_string(struct reader *r, char quote, struct value *ret)
{
    const char *end = memchr(r->at, quote, (size_t)(r->end - r->at));
    size_t len = end ? (size_t)(end - r->at) : VALUE_MAX;

    if (len >= VALUE_MAX)
        return -EINVAL;
    memcpy(ret->text, r->at, len);
    ret->text[len] = '\0';
    r->at = end + 1;
    return 0;
}

/* The kernel's release and version are the host's business: they are empty. */
static int take_variable(struct reader *r, struct value *ret)
{
    static const struct {
        const char *name, *value;
    } variables[] = {{"os_name", "posix"},
                     {"os.name", "posix"},
                     {"sys_platform", "linux"},
                     {"sys.platform", "linux"},
                     {"platform_machine", "x86_64"},
                     {"platform.machine", "x86_64"},
                     {"platform_python_implementation", "CPython"},
                     {"platform.python_implementation", "CPython"},
                     {"python_implementation", "CPython"},
                     {"implementation_name", "cpython"},
                     {"platform_system", "Linux"},
                     {"platform_release", ""},
                     {"platform_version", ""},
                     {"platform.version", ""}};
    const struct marker_python *python = r->python;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (take_word(r, variables[i].name)) {
            (void)snprintf(ret->text, sizeof(ret->text), "%s", variables[i].value);
            return 0;
        }
    }
    if (take_word(r, "python_version")) {
        (void)snprintf(ret->text, sizeof(ret->text), "3.%u", python->minor);
    } else if (take_word(r, "python_full_version") || take_word(r, "implementation_version")) {
        (void)snprintf(ret->text, sizeof(ret->text), "3.%u.%u", python->minor, python->micro);
    } else if (take_word(r, "extra")) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s", r->extra);
        ret->is_extra = true;
    } else {
        return -EINVAL;
    }
    return 0;
}

static int take_value(struct reader *r, struct value *ret)
{
    ret->is_extra = false;
    if (take(r, "\""))
        return take_string(r, '"', ret);
    if (take(r, "'"))
        return take_string(r, '\'', ret);
    return take_variable(r, ret);
}

static void normalize(struct value *value)
{
    char name[VALUE_MAX];

    if (package_name_clean(value->text, strlen(value->text), name, sizeof(name)) == 0)
        (void)snprintf(value->text, sizeof(value->text), "%s", name);
}

static bool compare_text(const char *left, const char *op, const char *right)
{
    int order = strcmp(left, right);

    if (strcmp(op, "==") == 0 || strcmp(op, "===") == 0)
        return order == 0;
    if (strcmp(op, "!=") == 0)
        return order != 0;
    if (op[0] == '<')
        return op[1] ? order <= 0 : order < 0;
    return op[0] == '>' && (op[1] ? order >= 0 : order > 0);
}

static bool compare(struct value *left, const char *op, struct value *right)
{
    char text[VALUE_MAX + 4];
    struct pep440_clause clause;
    struct pep440 version;

    if (left->is_extra || right->is_extra) {
        normalize(left);
        normalize(right);
        return compare_text(left->text, op, right->text);
    }
    (void)snprintf(text, sizeof(text), "%s%s", op, right->text);
    if (pep440_parse_clause(text, strlen(text), &clause) == 0 &&
        pep440_parse(left->text, strlen(left->text), &version) == 0)
        return pep440_clause_has(&clause, &version, left->text);
    return compare_text(left->text, op, right->text);
}

static int take_comparison(struct reader *r)
{
    static const char *const operators[] = {"===", "==", "!=", "<=", ">=", "~=", "<", ">"};
    struct value left, right;

    if (take_value(r, &left) < 0)
        return -EINVAL;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (take(r, operators[i]))
            return take_value(r, &right) < 0 ? -EINVAL : compare(&left, operators[i], &right);
    }
    if (take_word(r, "in"))
        return take_value(r, &right) < 0 ? -EINVAL : strstr(right.text, left.text) != NULL;
    if (take_word(r, "not") && take_word(r, "in"))
        return take_value(r, &right) < 0 ? -EINVAL : strstr(right.text, left.text) == NULL;
    return -EINVAL;
}

static int take_or(struct reader *r);

static int take_atom(struct reader *r)
{
    int result;

    if (!take(r, "("))
        return take_comparison(r);
    if (++r->depth > MARKER_DEPTH_MAX)
        return -EINVAL;
    result = take_or(r);
    r->depth--;
    return result < 0 || take(r, ")") ? result : -EINVAL;
}

static int take_and(struct reader *r)
{
    int result = take_atom(r);

    while (result >= 0 && take_word(r, "and")) {
        int next = take_atom(r);

        result = next < 0 ? next : result && next;
    }
    return result;
}

/* All of it is read, whatever holds: what is behind may be no marker. */
static int take_or(struct reader *r)
{
    int result = take_and(r);

    while (result >= 0 && take_word(r, "or")) {
        int next = take_and(r);

        result = next < 0 ? next : result || next;
    }
    return result;
}

int marker_holds(const char *text, size_t len, const struct marker_python *python,
                 const char *extra)
{
    struct reader r = {.at = text, .end = text + len, .python = python, .extra = extra};
    int result;

    if (len > MARKER_TEXT_MAX)
        return -EINVAL;
    result = take_or(&r);
    skip_space(&r);
    return result < 0 || r.at == r.end ? result : -EINVAL;
}
