/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/schema.h"

#include "api/json/json_walk.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

#define HELP_MAX 2048u

const char schema_open[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"args\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"the script's command line\"},"
    "\"stdin\":{\"type\":\"string\",\"description\":\"what the script reads from standard "
    "input, in place of JSON\"}},"
    "\"description\":\"All but these becomes the script's JSON input.\","
    "\"additionalProperties\":true}";

/* One property of the object, from every action that has its name. */
struct property {
    const char *name;                     /* borrowed */
    const char *help;                     /* borrowed, or NULL */
    cJSON *variants;                      /* owned array of schemas that differ */
    struct buf where;                     /* the commands that take it */
    const struct parser_action *commands; /* borrowed: the first that are behind it, or NULL */
    bool is_required;                     /* whatever the command is */
    bool is_everywhere;
};

struct writing {
    struct property *properties;
    size_t n;
    int result;
};

static cJSON *keep(struct writing *w, cJSON *json)
{
    if (!json)
        w->result = -ENOMEM;
    return json;
}

/* Adds to an object, or without a key to an array. */
static void add(struct writing *w, cJSON *parent, const char *key, cJSON *item)
{
    bool added = keep(w, item) && (key ? cJSON_AddItemToObject(parent, key, item)
                                       : cJSON_AddItemToArray(parent, item));

    if (added)
        return;
    cJSON_Delete(item);
    w->result = -ENOMEM;
}

static void add_copy(struct writing *w, cJSON *object, const char *key, const cJSON *item)
{
    if (item)
        add(w, object, key, cJSON_Duplicate(item, true));
}

/* A schema of this type; NULL for any. */
static cJSON *begin(struct writing *w, const char *type)
{
    cJSON *json = keep(w, cJSON_CreateObject());

    if (type)
        add(w, json, "type", cJSON_CreateString(type));
    return json;
}

/* The schema of one value. */
static cJSON *write_value(struct writing *w, const struct parser_action *a)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", NULL};
    cJSON *json = begin(w, types[a->type]);

    add_copy(w, json, "enum", a->choices);
    return json;
}

/* An option that may come without its value: true is the option alone. */
static cJSON *write_optional(struct writing *w, const struct parser_action *a)
{
    cJSON *json = write_value(w, a), *both;

    if (a->n_options == 0 || a->type == PARSER_BOOLEAN || a->type == PARSER_JSON)
        return json;
    both = keep(w, cJSON_CreateArray());
    add(w, both, NULL, json);
    add(w, both, NULL, begin(w, "boolean"));
    json = begin(w, NULL);
    add(w, json, "anyOf", both);
    return json;
}

static cJSON *write_list(struct writing *w, cJSON *items, unsigned min, unsigned max)
{
    cJSON *json = begin(w, "array");

    add(w, json, "items", items);
    if (min > 0)
        add(w, json, "minItems", cJSON_CreateNumber(min));
    if (max > 0)
        add(w, json, "maxItems", cJSON_CreateNumber(max));
    return json;
}

/* The values of one time that it is given. */
static cJSON *write_values(struct writing *w, const struct parser_action *a)
{
    switch (a->nargs) {
    case PARSER_ONE:
        return write_value(w, a);
    case PARSER_OPTIONAL:
        return a->kind == PARSER_STORE ? write_optional(w, a) : write_value(w, a);
    case PARSER_ANY:
    case PARSER_REST:
        return write_list(w, write_value(w, a), 0, 0);
    case PARSER_SOME:
        return write_list(w, write_value(w, a), 1, 0);
    default:
        return write_list(w, write_value(w, a), a->count, a->count);
    }
}

static cJSON *write_commands(struct writing *w, const struct parser_action *a)
{
    cJSON *json = begin(w, "string"), *names = keep(w, cJSON_CreateArray());

    for (size_t i = 0; i < a->n_commands; i++)
        add(w, names, NULL, cJSON_CreateString(a->commands[i].name));
    add(w, json, "enum", names);
    return json;
}

static cJSON *write_action(struct writing *w, const struct parser_action *a)
{
    cJSON *json;

    switch (a->kind) {
    case PARSER_STORE:
        json = write_values(w, a);
        break;
    case PARSER_APPEND:
        json = write_list(w, write_values(w, a), 0, 0);
        break;
    case PARSER_EXTEND:
        json = write_list(w, write_value(w, a), 0, 0);
        break;
    case PARSER_COUNT:
        json = begin(w, "integer");
        add(w, json, "minimum", cJSON_CreateNumber(0));
        add(w, json, "maximum", cJSON_CreateNumber(PARSER_COUNT_MAX));
        break;
    case PARSER_COMMANDS:
        json = write_commands(w, a);
        break;
    default:
        json = begin(w, "boolean");
        break;
    }
    add_copy(w, json, "default", a->default_value);
    return json;
}

/* The property of this name, which is new where there was none. */
static struct property *find(struct writing *w, const char *name)
{
    struct property *p = w->properties;

    while (p < w->properties + w->n && strcmp(p->name, name) != 0)
        p++;
    if (p == w->properties + w->n) {
        *p = (struct property){.name = name,
                               .variants = keep(w, cJSON_CreateArray()),
                               .where = buf_init(HELP_MAX)};
        w->n++;
    }
    return p;
}

/* Ends what there is with a full stop, so that another sentence may follow. */
static void end_sentence(struct buf *text)
{
    if (text->len > 0)
        (void)buf_printf(text, strchr(".!?:;)", text->data[text->len - 1]) ? " " : ". ");
}

/* The words of a property for commands: what each of them does. */
static void write_command_help(const struct parser_action *a, struct buf *text)
{
    if (a->help)
        (void)buf_printf(text, "%s", a->help);
    end_sentence(text);
    for (size_t i = 0; i < a->n_commands; i++) {
        const struct parser_command *c = &a->commands[i];
        const char *help = c->help ? c->help : c->parser.description;

        if (help)
            (void)buf_printf(text, "%s: %s; ", c->name, help);
    }
    while (text->len > 0 && strchr("; ", text->data[text->len - 1]))
        text->len--;
}

/* Adds an action to the property of its name. where is NULL outside of commands. */
static void merge(struct writing *w, const struct parser_action *a, const char *where)
{
    struct property *p = find(w, a->property);
    cJSON *json = write_action(w, a);
    const cJSON *known;
    bool same = false;

    cJSON_ArrayForEach(known, p->variants) {
        same |= cJSON_Compare(known, json, true);
    }
    if (same)
        cJSON_Delete(json);
    else
        add(w, p->variants, NULL, json);
    if (!p->help)
        p->help = a->help;
    if (!p->commands && a->kind == PARSER_COMMANDS)
        p->commands = a;
    p->is_everywhere |= !where;
    p->is_required |= !where && a->required;
    if (where)
        (void)buf_printf(&p->where, "%s%s%s", p->where.len ? ", " : "", where,
                         a->required ? " (required)" : "");
}

static void merge_parser(struct writing *w, const struct parser *parser, const char *where)
{
    for (size_t i = 0; i < parser->n_actions; i++) {
        const struct parser_action *a = &parser->actions[i];

        merge(w, a, where);
        for (size_t k = 0; k < a->n_commands; k++) {
            char path[HELP_MAX / 4];

            (void)snprintf(path, sizeof(path), "%.360s%s%.128s", where ? where : "",
                           where ? " " : "", a->commands[k].name);
            merge_parser(w, &a->commands[k].parser, path);
        }
    }
}

static void write_description(struct writing *w, const struct property *p, cJSON *json)
{
    _cleanup_buf_ struct buf help = buf_init(HELP_MAX);
    _cleanup_buf_ struct buf text = buf_init(2 * HELP_MAX + PARSER_TEXT_MAX);

    if (p->commands)
        write_command_help(p->commands, &help);
    if (p->commands)
        (void)buf_append(&text, help.data, help.len);
    else if (p->help)
        (void)buf_printf(&text, "%s", p->help);
    if (!p->is_everywhere && p->where.len > 0) {
        end_sentence(&text);
        (void)buf_printf(&text, "With the command %.*s.", (int)p->where.len,
                         (const char *)p->where.data);
    }
    if (text.len > 0)
        add(w, json, "description",
            cJSON_CreateString(buf_cstr(&text) ? (char *)text.data : ""));
}

static cJSON *write_property(struct writing *w, struct property *p)
{
    cJSON *json;

    if (cJSON_GetArraySize(p->variants) == 1) {
        json = cJSON_DetachItemFromArray(p->variants, 0);
    } else {
        json = begin(w, NULL);
        add(w, json, "anyOf", steal_ptr(&p->variants));
    }
    write_description(w, p, json);
    return json;
}

static cJSON *write_object(struct writing *w)
{
    cJSON *json = begin(w, "object"), *properties = begin(w, NULL);
    cJSON *required = keep(w, cJSON_CreateArray());

    for (size_t i = 0; i < w->n && w->result == 0; i++) {
        struct property *p = &w->properties[i];

        add(w, properties, p->name, write_property(w, p));
        if (p->is_required)
            add(w, required, NULL, cJSON_CreateString(p->name));
    }
    add(w, json, "properties", properties);
    if (cJSON_GetArraySize(required) > 0)
        add(w, json, "required", required);
    else
        cJSON_Delete(required);
    add(w, json, "additionalProperties", cJSON_CreateFalse());
    return json;
}

static int write_all(struct writing *w, struct buf *out)
{
    _cleanup_(cJSON_Delete) cJSON *json = write_object(w);
    _cleanup_free_ char *text = w->result < 0 ? NULL : cJSON_PrintUnformatted(json);

    if (w->result < 0)
        return w->result;
    return text ? buf_append(out, text, strlen(text)) : -ENOMEM;
}

int schema_write(const struct parser *parser, struct buf *out)
{
    /* At most one for each action that parser_read() takes. */
    struct writing w = {.properties = calloc(PARSER_TOTAL_MAX, sizeof(struct property))};

    if (!w.properties)
        return -ENOMEM;
    merge_parser(&w, parser, NULL);
    if (w.result == 0)
        w.result = write_all(&w, out);
    for (size_t i = 0; i < w.n; i++) {
        cJSON_Delete(w.properties[i].variants);
        buf_finish(&w.properties[i].where);
    }
    free(w.properties);
    return w.result;
}

static struct json_slice slice_of(const char *text)
{
    return (struct json_slice){text, strlen(text)};
}

bool schema_has_room(const char *schema, const char *property)
{
    static const char *const elsewhere[] = {"allOf", "anyOf", "oneOf", "$ref"};
    struct json_slice properties, value;

    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        if (json_find(slice_of(schema), elsewhere[i], &value))
            return false;
    }
    return json_find(slice_of(schema), "properties", &properties) &&
           json_is_object(properties) && !json_find(properties, property, &value);
}

int schema_append_files(struct json_slice schema, struct buf *out)
{
    struct json_slice properties = {0};
    size_t before;

    if (!json_find(schema, "properties", &properties))
        return buf_append(out, schema.data, schema.len);
    before = (size_t)(properties.data - schema.data) + properties.len - 1;
    (void)buf_append(out, schema.data, before);
    /* What is in it has a key. */
    (void)buf_append(out, ",", memchr(properties.data, '"', properties.len) != NULL);
    (void)buf_printf(out, "%s", SCHEMA_FILES);
    (void)buf_append(out, schema.data + before, schema.len - before);
    return out->error;
}
