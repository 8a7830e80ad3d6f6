/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/parser.h"

#include "api/json/json_text.h"
#include "api/tools/tool_names.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_MAX 128u

/* The names that must not be used again below: those of the commands on the way there. */
struct path {
    const struct path *above;
    const char *commands;
};

struct reading {
    size_t left; /* of PARSER_TOTAL_MAX */
    struct err *err;
};

static int bad(struct reading *r, const char *what)
{
    return err_set(r->err, EINVAL, "the description of its arguments %s", what);
}

static int no_memory(struct reading *r)
{
    return err_no_memory(r->err);
}

/* NULL for null too. */
static const cJSON *member(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

    return cJSON_IsNull(item) ? NULL : item;
}

/* Text or null; *ret stays NULL for null and for "". */
static int take_text(struct reading *r, const cJSON *json, const char *key, char **ret)
{
    const cJSON *item = member(json, key);

    if (!item)
        return 0;
    if (!cJSON_IsString(item) || strlen(item->valuestring) > PARSER_TEXT_MAX)
        return bad(r, "has a text that is none");
    if (!item->valuestring[0])
        return 0;
    *ret = strdup(item->valuestring);
    return *ret ? 0 : no_memory(r);
}

static int take_word(struct reading *r, const cJSON *json, const char *key,
                     const char *const *words, size_t n, unsigned *ret)
{
    const char *text = cJSON_GetStringValue(member(json, key));

    for (size_t i = 0; text && i < n; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = (unsigned)i;
            return 0;
        }
    }
    return bad(r, "has a kind or type that is unknown");
}

static int take_options(struct reading *r, const cJSON *json, struct parser_action *a)
{
    const cJSON *list = member(json, "options"), *item;
    int n = cJSON_GetArraySize(list);

    if (!cJSON_IsArray(list) || n > (int)PARSER_OPTIONS_MAX)
        return bad(r, "has options that are no list, or too many");
    a->options = calloc((size_t)n + 1, sizeof(*a->options));
    if (!a->options)
        return no_memory(r);
    cJSON_ArrayForEach(item, list) {
        const char *text = cJSON_GetStringValue(item);

        /* It must begin with a prefix character and not be cut in two by "=". */
        if (!text || !ispunct((unsigned char)text[0]) || !text[1] ||
            strlen(text) > OPTION_MAX || strpbrk(text, "= \t\r\n"))
            return bad(r, "has an option that is none");
        a->options[a->n_options] = strdup(text);
        if (!a->options[a->n_options++])
            return no_memory(r);
    }
    return 0;
}

static int take_nargs(struct reading *r, const cJSON *json, struct parser_action *a)
{
    static const char *const words[] = {"?", "*", "+", "rest"};
    const cJSON *item = member(json, "nargs");
    unsigned word = 0;

    if (!item ||
        (a->kind != PARSER_STORE && a->kind != PARSER_APPEND && a->kind != PARSER_EXTEND))
        return 0;
    if (cJSON_IsNumber(item)) {
        if (!(item->valuedouble >= 1 && item->valuedouble <= PARSER_NARGS_MAX) ||
            item->valuedouble != floor(item->valuedouble))
            return bad(r, "has a number of values that is none");
        a->nargs = PARSER_EXACT;
        a->count = (unsigned)item->valuedouble;
        return 0;
    }
    if (take_word(r, json, "nargs", words, 4, &word) < 0)
        return -EINVAL;
    a->nargs = (enum parser_nargs)(PARSER_OPTIONAL + word);
    return 0;
}

/* True for a scalar that an argument of this type may have. */
static bool fits(enum parser_type type, const cJSON *item)
{
    switch (type) {
    case PARSER_STRING:
        return cJSON_IsString(item);
    case PARSER_INTEGER:
    case PARSER_NUMBER:
        return cJSON_IsNumber(item) && fabs(item->valuedouble) <= PARSER_SAFE_NUMBER &&
               (type == PARSER_NUMBER || item->valuedouble == floor(item->valuedouble));
    case PARSER_BOOLEAN:
        return cJSON_IsBool(item);
    default:
        return cJSON_IsString(item) || cJSON_IsNumber(item) || cJSON_IsBool(item);
    }
}

static bool all_fit(enum parser_type type, const cJSON *list)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list) {
        if (!fits(type, item))
            return false;
    }
    return true;
}

/* Choices of another type than the argument's cannot be offered, and are left out. */
static int take_choices(struct reading *r, const cJSON *json, struct parser_action *a)
{
    const cJSON *list = member(json, "choices");

    if (!list)
        return 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > (int)PARSER_CHOICES_MAX)
        return bad(r, "has choices that are no list, or too many");
    if (cJSON_GetArraySize(list) == 0 || !all_fit(a->type, list))
        return 0;
    a->choices = cJSON_Duplicate(list, true);
    return a->choices ? 0 : no_memory(r);
}

bool parser_takes(const struct parser *parser, const char *property)
{
    for (size_t i = 0; i < parser->n_actions; i++) {
        const struct parser_action *a = &parser->actions[i];

        if (strcmp(a->property, property) == 0)
            return true;
        for (size_t k = 0; k < a->n_commands; k++) {
            if (parser_takes(&a->commands[k].parser, property))
                return true;
        }
    }
    return false;
}

bool parser_action_is_list(const struct parser_action *a)
{
    return a->kind == PARSER_APPEND || a->kind == PARSER_EXTEND ||
           (a->kind == PARSER_STORE && a->nargs != PARSER_ONE && a->nargs != PARSER_OPTIONAL);
}

static int take_default(struct reading *r, const cJSON *json, struct parser_action *a)
{
    const cJSON *item = member(json, "default");
    bool good = false;

    if (a->kind == PARSER_SET || a->kind == PARSER_UNSET || a->kind == PARSER_SWITCH)
        good = cJSON_IsBool(item);
    else if (a->kind == PARSER_COUNT)
        good = fits(PARSER_INTEGER, item);
    else if (parser_action_is_list(a))
        good = cJSON_IsArray(item) && cJSON_GetArraySize(item) <= (int)PARSER_CHOICES_MAX &&
               all_fit(a->type, item);
    else
        good = fits(a->type, item);
    if (!good)
        return 0;
    a->default_value = cJSON_Duplicate(item, true);
    return a->default_value ? 0 : no_memory(r);
}

static bool is_taken(const struct parser *p, const struct path *path, const char *name)
{
    for (; path; path = path->above) {
        if (strcmp(path->commands, name) == 0)
            return true;
    }
    for (size_t i = 0; i < p->n_actions; i++) {
        if (strcmp(p->actions[i].property, name) == 0)
            return true;
    }
    return false;
}

const char *parser_action_option(const struct parser_action *a)
{
    for (size_t i = 0; i < a->n_options; i++) {
        if (a->options[i][0] == a->options[i][1])
            return a->options[i];
    }
    return a->options[0];
}

/* What argparse calls an argument with these options where nothing else is said. */
static void name_of_option(const struct parser_action *a, char name[PARSER_NAME_SIZE])
{
    const char *best = parser_action_option(a);

    while (ispunct((unsigned char)*best) && *best != '_')
        best++;
    tool_name_clean(best, "_-.", name, PARSER_NAME_SIZE);
    for (char *c = name; *c; c++) {
        if (*c == '-')
            *c = '_';
    }
}

/* Gives the action its property: its dest, else its option, else one of these with a number. */
static int choose_name(struct reading *r, const struct parser *p, const struct path *path,
                       const char *dest, struct parser_action *a)
{
    char first[PARSER_NAME_SIZE] = "", option[PARSER_NAME_SIZE] = "";

    if (dest)
        tool_name_clean(dest, "_-.", first, sizeof(first));
    if (a->n_options > 0)
        name_of_option(a, option);
    /* "--no-color" that makes "color" false, but not one that is called no_color itself. */
    a->sets_on = a->kind != PARSER_UNSET || strcmp(first, option) == 0;
    if (first[0] && !is_taken(p, path, first)) {
        memcpy(a->property, first, sizeof(first));
        return 0;
    }
    a->sets_on = true;
    if (option[0] && !is_taken(p, path, option)) {
        memcpy(a->property, option, sizeof(option));
        return 0;
    }
    for (unsigned i = 2; i < PARSER_TOTAL_MAX; i++) {
        (void)snprintf(a->property, sizeof(a->property), "%.58s_%u",
                       option[0]  ? option
                       : first[0] ? first
                                  : "argument",
                       i);
        if (!is_taken(p, path, a->property))
            return 0;
    }
    return bad(r, "has too many arguments of one name");
}

static int read_parser(struct reading *r, const cJSON *json, const struct path *path,
                       unsigned depth, struct parser *p);

static int read_command(struct reading *r, const cJSON *json, const struct path *path,
                        unsigned depth, struct parser_action *a)
{
    struct parser_command *c = &a->commands[a->n_commands++];
    int result = take_text(r, json, "name", &c->name);

    if (result < 0)
        return result;
    if (!c->name || strlen(c->name) > OPTION_MAX || c->name[0] == '-')
        return bad(r, "has a command without a name");
    for (size_t i = 0; i + 1 < a->n_commands; i++) {
        if (strcmp(a->commands[i].name, c->name) == 0)
            return bad(r, "has a command twice");
    }
    result = take_text(r, json, "help", &c->help);
    return result < 0 ? result
                      : read_parser(r, member(json, "parser"), path, depth + 1, &c->parser);
}

static int read_commands(struct reading *r, const cJSON *json, const struct path *path,
                         unsigned depth, struct parser_action *a)
{
    const struct path below = {.above = path, .commands = a->property};
    const cJSON *list = member(json, "commands"), *item;
    int n = cJSON_GetArraySize(list), result = 0;

    if (!cJSON_IsArray(list) || n < 1 || n > (int)PARSER_COMMANDS_MAX ||
        depth >= PARSER_DEPTH_MAX || (size_t)n > r->left)
        return bad(r, "has no commands, too many, or too deep ones");
    r->left -= (size_t)n;
    a->commands = calloc((size_t)n, sizeof(*a->commands));
    if (!a->commands)
        return no_memory(r);
    cJSON_ArrayForEach(item, list) {
        result = read_command(r, item, &below, depth, a);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_values(struct reading *r, const cJSON *json, struct parser_action *a)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", "json"};
    unsigned type = 0;
    int result = take_word(r, json, "type", types, 5, &type);

    a->type = (enum parser_type)type;
    if (result < 0)
        return result;
    result = take_options(r, json, a);
    if (result < 0)
        return result;
    result = take_nargs(r, json, a);
    if (result < 0)
        return result;
    /* Without an option there is no way to say a flag, or something twice. */
    if (a->n_options == 0) {
        if (a->kind == PARSER_APPEND || a->kind == PARSER_EXTEND)
            a->kind = PARSER_STORE;
        if (a->kind != PARSER_STORE)
            return bad(r, "has a flag without an option");
    }
    result = take_choices(r, json, a);
    return result < 0 ? result : take_default(r, json, a);
}

static int read_action(struct reading *r, const cJSON *json, const struct path *path,
                       unsigned depth, struct parser *p)
{
    static const char *const kinds[] = {"store", "append", "extend", "set",
                                        "unset", "switch", "count",  "commands"};
    struct parser_action *a = &p->actions[p->n_actions];
    const cJSON *required = member(json, "required");
    const char *dest = cJSON_GetStringValue(member(json, "dest"));
    unsigned kind = 0;
    int result = take_word(r, json, "kind", kinds, 8, &kind);

    a->kind = (enum parser_kind)kind;
    a->required = cJSON_IsTrue(required);
    if (result < 0)
        return result;
    if (!cJSON_IsBool(required))
        return bad(r, "does not say what is required");
    result = take_text(r, json, "help", &a->help);
    if (result < 0)
        return result;
    if (a->kind != PARSER_COMMANDS)
        result = read_values(r, json, a);
    if (result < 0)
        return result;
    result = choose_name(r, p, path,
                         dest || a->kind != PARSER_COMMANDS ? dest
                         : depth == 0                       ? "command"
                                                            : "subcommand",
                         a);
    if (result < 0 || a->kind != PARSER_COMMANDS)
        return result;
    return read_commands(r, json, path, depth, a);
}

static int read_parser(struct reading *r, const cJSON *json, const struct path *path,
                       unsigned depth, struct parser *p)
{
    const cJSON *list = member(json, "actions"), *item;
    int n = cJSON_GetArraySize(list);
    int result = cJSON_IsObject(json) ? take_text(r, json, "description", &p->description)
                                      : bad(r, "has a parser that is none");

    if (result < 0)
        return result;
    if (!cJSON_IsArray(list) || n > (int)PARSER_ACTIONS_MAX || (size_t)n > r->left)
        return bad(r, "has arguments that are no list, or too many");
    r->left -= (size_t)n;
    p->actions = calloc((size_t)n + 1, sizeof(*p->actions));
    if (!p->actions)
        return no_memory(r);
    cJSON_ArrayForEach(item, list) {
        result = read_action(r, item, path, depth, p);
        /* Counted whatever happened: what it owns is freed with the parser. */
        p->n_actions++;
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_script(struct reading *r, const cJSON *json, struct parser_script *script)
{
    const cJSON *version = member(json, "version"), *parser = member(json, "parser");
    int result;

    if (!cJSON_IsNumber(version) || version->valuedouble != 1)
        return bad(r, "has another version");
    result = take_text(r, json, "doc", &script->doc);
    if (result < 0 || !parser)
        return result;
    script->has_parser = true;
    return read_parser(r, parser, NULL, 0, &script->parser);
}

int parser_read(const char *text, size_t len, struct parser_script *ret, struct err *err)
{
    struct reading reading = {.left = PARSER_TOTAL_MAX, .err = err};
    struct parser_script script = {0};
    cJSON *json;
    int result;

    if (len > PARSER_BYTES_MAX)
        return bad(&reading, "is too large");
    if (json_text_check(text, len, NULL, NULL) < 0 || json_text_has_nul(text, len))
        return bad(&reading, "is no JSON");
    json = cJSON_ParseWithLength(text, len);
    result = cJSON_IsObject(json) ? read_script(&reading, json, &script)
                                  : bad(&reading, "is no JSON object");
    cJSON_Delete(json);
    if (result < 0)
        parser_script_finish(&script);
    else
        *ret = script;
    return result;
}

static void parser_finish(struct parser *p)
{
    for (size_t i = 0; i < p->n_actions; i++) {
        struct parser_action *a = &p->actions[i];

        for (size_t k = 0; k < a->n_options; k++)
            free(a->options[k]);
        free(a->options);
        cJSON_Delete(a->choices);
        cJSON_Delete(a->default_value);
        free(a->help);
        for (size_t k = 0; k < a->n_commands; k++) {
            free(a->commands[k].name);
            free(a->commands[k].help);
            parser_finish(&a->commands[k].parser);
        }
        free(a->commands);
    }
    free(p->actions);
    free(p->description);
}

void parser_script_finish(struct parser_script *script)
{
    free(script->doc);
    parser_finish(&script->parser);
    *script = (struct parser_script){0};
}
