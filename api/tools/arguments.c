/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/arguments.h"

#include "api/json/json_walk.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

/* Of all arguments together. */
#define VALUES_MAX    8192u
#define ARGUMENTS_MAX 1024
#define SHOWN         64 /* bytes of a stranger's text in a message */

/* What a parser's options look like. */
struct looks {
    bool begins[UCHAR_MAX + 1]; /* with which characters */
    bool numbers;               /* one is a negative number */
};

struct filling {
    const cJSON *arguments;
    struct looks looks; /* of the parser that is filled now */
    struct skill_strings *argv;
    bool greedy; /* the last option would take a value that follows */
    struct err *err;
};

static int refuse(struct filling *f, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct filling *f, const char *name, const char *format, ...)
{
    char text[ERR_MESSAGE_MAX / 2];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return err_set(f->err, EINVAL, "the argument \"%.*s\" %s", SHOWN, name, text);
}

static int put(struct filling *f, const char *text)
{
    int r = skill_strings_add(f->argv, "%s", text);

    return r < 0 ? err_set(f->err, -r, "out of memory") : 0;
}

/* The value of an action, or NULL where there is none. */
static const cJSON *value_of(const struct filling *f, const struct parser_action *a)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(f->arguments, a->property);

    return cJSON_IsNull(item) ? NULL : item;
}

/* As argparse has it: -5 and -5.0 are numbers, unless an option looks like one. */
static bool is_negative_number(const char *text)
{
    size_t n;

    if (*text++ != '-')
        return false;
    n = strspn(text, "0123456789");
    if (text[n] == '\0')
        return n > 0;
    return text[n] == '.' && text[n + 1] &&
           text[n + 1 + strspn(text + n + 1, "0123456789")] == '\0';
}

static struct looks looks_of(const struct parser *p)
{
    struct looks looks = {.begins['-'] = true};

    for (size_t i = 0; i < p->n_actions; i++) {
        for (size_t k = 0; k < p->actions[i].n_options; k++) {
            const char *option = p->actions[i].options[k];

            looks.begins[(unsigned char)option[0]] = true;
            looks.numbers |= is_negative_number(option);
        }
    }
    return looks;
}

/* True where argparse would not take the text for a value. */
static bool looks_like_option(const struct looks *looks, const char *text)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a text that was written. */
    if (!text[0] || !text[1])
        return false;
    return looks->begins[(unsigned char)text[0]] &&
           (looks->numbers || !is_negative_number(text));
}

/* number is what the text is as one. Of what is no text and no number the type says all. */
static bool equals(const cJSON *choice, const cJSON *value, const char *text, double number)
{
    if (cJSON_IsString(choice))
        return strcmp(choice->valuestring, text) == 0;
    if (cJSON_IsNumber(choice))
        return !cJSON_IsBool(value) && number == choice->valuedouble;
    return !cJSON_IsArray(choice) && !cJSON_IsObject(choice) &&
           (choice->type & 0xff) == (value->type & 0xff);
}

static int refuse_choice(struct filling *f, const char *name, const cJSON *choices)
{
    char *list = cJSON_PrintUnformatted(choices);
    int r = refuse(f, name, "must be one of %.200s", list ? list : "its choices");

    cJSON_free(list);
    return r;
}

static int check_choice(struct filling *f, const struct parser_action *a, const cJSON *value,
                        const char *text)
{
    const double number = a->choices ? strtod(text, NULL) : 0;
    const cJSON *choice;

    if (!a->choices)
        return 0;
    cJSON_ArrayForEach(choice, a->choices) {
        if (equals(choice, value, text, number))
            return 0;
    }
    return refuse_choice(f, a->property, a->choices);
}

static bool is_number_text(const char *text, bool whole)
{
    char *end;

    if (!*text || isspace((unsigned char)*text))
        return false;
    if (whole) {
        text += *text == '-' || *text == '+';
        return *text && text[strspn(text, "0123456789")] == '\0';
    }
    return isfinite(strtod(text, &end)) && *end == '\0';
}

/* Writes a number so that it is read as the same again. */
static int write_number(struct filling *f, const char *name, double number, bool whole,
                        char **ret)
{
    char text[64];

    if (whole && (number != floor(number) || fabs(number) > PARSER_SAFE_NUMBER))
        return refuse(f, name, "must be a whole number");
    if (number == floor(number) && fabs(number) <= PARSER_SAFE_NUMBER)
        (void)snprintf(text, sizeof(text), "%.0f", number);
    else {
        (void)snprintf(text, sizeof(text), "%.15g", number);
        if (strtod(text, NULL) != number)
            (void)snprintf(text, sizeof(text), "%.17g", number);
    }
    *ret = strdup(text);
    return 0;
}

/* A value's text on the command line, for its type. */
static int write_text(struct filling *f, const struct parser_action *a, const cJSON *value,
                      char **ret)
{
    const char *string = cJSON_GetStringValue(value);
    char *text = NULL;
    int r = 0;

    if (a->type == PARSER_JSON) {
        text = cJSON_PrintUnformatted(value);
    } else if (a->type == PARSER_BOOLEAN) {
        /* argparse asks bool() of the text. */
        if (!cJSON_IsBool(value))
            return refuse(f, a->property, "must be true or false");
        text = strdup(cJSON_IsTrue(value) ? "True" : "");
    } else if (cJSON_IsNumber(value)) {
        r = write_number(f, a->property, value->valuedouble, a->type == PARSER_INTEGER, &text);
    } else if (string && (a->type == PARSER_STRING ||
                          is_number_text(string, a->type == PARSER_INTEGER))) {
        text = strdup(string);
    } else if (a->type == PARSER_STRING && cJSON_IsBool(value)) {
        text = strdup(cJSON_IsTrue(value) ? "true" : "false");
    } else {
        return refuse(f, a->property, "must be %s",
                      a->type == PARSER_STRING    ? "text"
                      : a->type == PARSER_INTEGER ? "a whole number"
                                                  : "a number");
    }
    if (r < 0)
        return r;
    if (!text)
        return err_no_memory(f->err);
    *ret = text;
    return check_choice(f, a, value, text);
}

/* "--option=value": however the value begins, it is one. */
static int put_joined(struct filling *f, const struct parser_action *a, const cJSON *value)
{
    _cleanup_free_ char *text = NULL;
    int r = write_text(f, a, value, &text);

    f->greedy = false;
    if (r < 0)
        return r;
    r = skill_strings_add(f->argv, "%s=%s", parser_action_option(a), text);
    return r < 0 ? err_no_memory(f->err) : 0;
}

static int check_count(struct filling *f, const struct parser_action *a, const cJSON *list)
{
    int n = cJSON_GetArraySize(list);

    if (!cJSON_IsArray(list))
        return refuse(f, a->property, "must be a list");
    if (a->nargs == PARSER_EXACT && n != (int)a->count)
        return refuse(f, a->property, "must be a list of %u values, not %d", a->count, n);
    if (a->nargs == PARSER_SOME && n == 0)
        return refuse(f, a->property, "must have at least one value");
    return 0;
}

/* One of several values behind an option. */
static int put_item(struct filling *f, const struct parser_action *a, const cJSON *item)
{
    _cleanup_free_ char *text = NULL;
    int r = write_text(f, a, item, &text);

    if (r < 0)
        return r;
    if (looks_like_option(&f->looks, text))
        return refuse(f, a->property, "cannot have the value \"%.*s\" among others", SHOWN,
                      text);
    return put(f, text);
}

/* "--option value value" */
static int put_list(struct filling *f, const struct parser_action *a, const cJSON *list)
{
    const cJSON *item;
    int r = check_count(f, a, list);

    if (r < 0)
        return r;
    if (cJSON_GetArraySize(list) == 1 && a->nargs != PARSER_REST)
        return put_joined(f, a, list->child);
    r = put(f, parser_action_option(a));
    if (r < 0)
        return r;
    cJSON_ArrayForEach(item, list) {
        r = put_item(f, a, item);
        if (r < 0)
            return r;
    }
    f->greedy = a->nargs != PARSER_EXACT;
    return 0;
}

/* One time that an option is given. */
static int put_once(struct filling *f, const struct parser_action *a, const cJSON *value)
{
    if (a->nargs == PARSER_ONE)
        return put_joined(f, a, value);
    if (a->nargs != PARSER_OPTIONAL)
        return put_list(f, a, value);
    if (a->kind == PARSER_APPEND || a->type == PARSER_BOOLEAN || a->type == PARSER_JSON ||
        !cJSON_IsBool(value))
        return put_joined(f, a, value);
    if (cJSON_IsFalse(value))
        return 0;
    f->greedy = true;
    return put(f, parser_action_option(a));
}

static int put_each(struct filling *f, const struct parser_action *a, const cJSON *list,
                    bool joined)
{
    const cJSON *item;

    if (!cJSON_IsArray(list))
        return refuse(f, a->property, "must be a list");
    cJSON_ArrayForEach(item, list) {
        int r = joined ? put_joined(f, a, item) : put_once(f, a, item);

        if (r < 0)
            return r;
    }
    return 0;
}

/* "--x" for true and "--no-x" for false. */
static int put_switch(struct filling *f, const struct parser_action *a, bool on)
{
    for (size_t i = 0; i < a->n_options; i++) {
        if ((strncmp(a->options[i], "--no-", 5) == 0) != on)
            return put(f, a->options[i]);
    }
    return refuse(f, a->property, "cannot be %s", on ? "true" : "false");
}

static int put_count(struct filling *f, const struct parser_action *a, const cJSON *value)
{
    int r = 0;

    if (!cJSON_IsNumber(value) ||
        !(value->valuedouble >= 0 && value->valuedouble <= PARSER_COUNT_MAX) ||
        value->valuedouble != floor(value->valuedouble))
        return refuse(f, a->property, "must be a whole number from 0 to %d", PARSER_COUNT_MAX);
    for (int i = 0; r == 0 && i < value->valueint; i++)
        r = put(f, parser_action_option(a));
    return r;
}

static int put_option(struct filling *f, const struct parser_action *a)
{
    const cJSON *value = value_of(f, a);
    bool is_flag = a->kind == PARSER_SET || a->kind == PARSER_UNSET || a->kind == PARSER_SWITCH;

    if (!value)
        return a->required ? refuse(f, a->property, "is missing") : 0;
    if (is_flag && !cJSON_IsBool(value))
        return refuse(f, a->property, "must be true or false");
    switch (a->kind) {
    case PARSER_STORE:
        return put_once(f, a, value);
    case PARSER_APPEND:
        return put_each(f, a, value, false);
    case PARSER_EXTEND:
        return a->nargs == PARSER_EXACT ? put_list(f, a, value) : put_each(f, a, value, true);
    case PARSER_SWITCH:
        f->greedy = false;
        return put_switch(f, a, cJSON_IsTrue(value));
    case PARSER_COUNT:
        f->greedy = false;
        return put_count(f, a, value);
    default:
        f->greedy = false;
        return cJSON_IsTrue(value) == a->sets_on ? put(f, parser_action_option(a)) : 0;
    }
}

/* True for an option that may take what follows it; these come first. */
static bool may_be_greedy(const struct parser_action *a)
{
    return a->nargs != PARSER_ONE && a->nargs != PARSER_EXACT;
}

static int put_options(struct filling *f, const struct parser *p)
{
    f->greedy = false;
    for (int first = 1; first >= 0; first--) {
        for (size_t i = 0; i < p->n_actions; i++) {
            const struct parser_action *a = &p->actions[i];
            bool greedy = f->greedy;
            size_t before = f->argv->len;
            int r;

            if (a->n_options == 0 || may_be_greedy(a) != (first == 1))
                continue;
            r = put_option(f, a);
            if (r < 0)
                return r;
            if (f->argv->len == before)
                f->greedy = greedy;
        }
    }
    return 0;
}

/* The texts of a positional argument. */
static int write_positional(struct filling *f, const struct parser_action *a,
                            struct skill_strings *texts)
{
    const cJSON *value = value_of(f, a), *item;
    bool is_list = parser_action_is_list(a);
    int r;

    if (!value)
        return a->required ? refuse(f, a->property, "is missing") : 0;
    r = is_list ? check_count(f, a, value) : 0;
    item = is_list ? value->child : value;
    for (; r == 0 && item; item = is_list ? item->next : NULL) {
        _cleanup_free_ char *text = NULL;

        r = write_text(f, a, item, &text);
        if (r < 0)
            return r;
        if (text && strcmp(text, "--") == 0)
            return refuse(f, a->property, "cannot be \"--\"");
        if (skill_strings_add(texts, "%s", text) < 0)
            return err_no_memory(f->err);
    }
    return r;
}

static int fill(struct filling *f, const struct parser *p);

static const struct parser_command *find_command(const struct filling *f,
                                                 const struct parser_action *a)
{
    const char *name = cJSON_GetStringValue(value_of(f, a));

    for (size_t i = 0; name && i < a->n_commands; i++) {
        if (strcmp(a->commands[i].name, name) == 0)
            return &a->commands[i];
    }
    return NULL;
}

static int put_command(struct filling *f, const struct parser_action *a)
{
    const struct parser_command *command = find_command(f, a);
    _cleanup_(cJSON_Delete) cJSON *names = NULL;
    int r;

    if (!value_of(f, a))
        return a->required ? refuse(f, a->property, "is missing") : 0;
    if (command) {
        r = put(f, command->name);
        return r < 0 ? r : fill(f, &command->parser);
    }
    names = cJSON_CreateArray();
    for (size_t i = 0; i < a->n_commands; i++)
        cJSON_AddItemToArray(names, cJSON_CreateString(a->commands[i].name));
    return refuse_choice(f, a->property, names);
}

/* Positional arguments, and "--" before them where they could be taken for something else. */
static int put_positionals(struct filling *f, const struct parser *p)
{
    const struct parser_action *odd = NULL, *commands = NULL;
    _cleanup_skill_strings_ struct skill_strings texts = {0};
    bool may_part = true;
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->n_actions && !commands; i++) {
        const struct parser_action *a = &p->actions[i];
        size_t before = texts.len;

        if (a->kind == PARSER_COMMANDS) {
            commands = value_of(f, a) || a->required ? a : NULL;
        } else if (a->n_options == 0) {
            r = write_positional(f, a, &texts);
            /* What is left is taken as it is, with the "--", and once it has begun. */
            may_part &= a->nargs != PARSER_REST;
        }
        for (size_t k = before; !odd && k < texts.len && (k == 0 || a->nargs != PARSER_REST);
             k++)
            odd = looks_like_option(&f->looks, texts.items[k]) ? a : NULL;
        if (!odd && f->greedy && (texts.len > 0 || commands))
            odd = a;
    }
    if (r == 0 && odd && (commands || !may_part))
        r = refuse(f, odd->property, "cannot be given like this on a command line");
    else if (r == 0 && odd)
        r = put(f, "--");
    for (size_t i = 0; r == 0 && i < texts.len; i++)
        r = put(f, texts.items[i]);
    return r < 0 || !commands ? r : put_command(f, commands);
}

static int fill(struct filling *f, const struct parser *p)
{
    int r;

    f->looks = looks_of(p);
    r = put_options(f, p);
    return r < 0 ? r : put_positionals(f, p);
}

/* The arguments that a parser has, and those of the commands that were chosen. */
struct known {
    const char *names[PARSER_TOTAL_MAX];
    size_t n;
};

static void collect(const struct filling *f, const struct parser *p, struct known *known)
{
    for (size_t i = 0; i < p->n_actions && known->n < PARSER_TOTAL_MAX; i++) {
        const struct parser_action *a = &p->actions[i];
        const struct parser_command *chosen = a->n_commands > 0 ? find_command(f, a) : NULL;

        known->names[known->n++] = a->property;
        if (chosen)
            collect(f, &chosen->parser, known);
    }
}

static bool is_known(const struct known *known, const char *name)
{
    for (size_t i = 0; i < known->n; i++) {
        if (strcmp(known->names[i], name) == 0)
            return true;
    }
    return false;
}

int arguments_to_argv(const struct parser *parser, const char *arguments, size_t len,
                      struct skill_strings *ret, struct err *err)
{
    const struct json_slice text = {arguments, len};
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    struct filling f = {.argv = ret, .err = err};
    struct known known = {0};
    const cJSON *item;
    int r;

    if (!json_fits(text, VALUES_MAX))
        return err_set(err, EINVAL, "the arguments have more than %u values", VALUES_MAX);
    f.arguments = json = cJSON_ParseWithLength(arguments, len);
    if (json_text_has_nul(arguments, len))
        return err_set(err, EINVAL, "the arguments hold a NUL character");
    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "the arguments must be a JSON object");
    if (cJSON_GetArraySize(json) > ARGUMENTS_MAX)
        return err_set(err, EINVAL, "there are more than %d arguments", ARGUMENTS_MAX);
    r = fill(&f, parser);
    if (r < 0)
        return r;
    collect(&f, parser, &known);
    cJSON_ArrayForEach(item, json) {
        if (!cJSON_IsNull(item) && !is_known(&known, item->string))
            return err_set(err, EINVAL, "there is no argument \"%.*s\" here", SHOWN,
                           item->string);
    }
    return 0;
}
