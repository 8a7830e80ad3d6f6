/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/input_schema.h"

#include "api/json/json_walk.h"

#include <cjson/cJSON.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const cJSON *member(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* True for a number as JSON writes it. */
static bool is_json_number(const char *text)
{
    return (*text == '-' || isdigit((unsigned char)*text)) &&
           json_text_check(text, strlen(text), NULL, NULL) == 0;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static cJSON *scalar_to_json(const struct yamltree *node)
{
    const char *text = node->text;

    if (!node->plain)
        return cJSON_CreateString(text);
    if (!text[0] || strcmp(text, "~") == 0 || is_one_of(text, "null", "Null", "NULL"))
        return cJSON_CreateNull();
    if (is_one_of(text, "true", "True", "TRUE"))
        return cJSON_CreateTrue();
    if (is_one_of(text, "false", "False", "FALSE"))
        return cJSON_CreateFalse();
    /* As it is written: no number is rounded here. */
    return is_json_number(text) ? cJSON_CreateRaw(text) : cJSON_CreateString(text);
}

/* 0, -EINVAL or -ENOMEM; the depth is bounded by that of the tree. */
static int to_json(const struct yamltree *node, cJSON **ret, struct err *err)
{
    bool is_map = node->kind == YAMLTREE_MAP;
    cJSON *json;
    int r = 0;

    if (node->kind == YAMLTREE_SCALAR) {
        *ret = scalar_to_json(node);
        return *ret ? 0 : -ENOMEM;
    }
    json = is_map ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!json)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i + (is_map ? 1 : 0) < node->n; i += is_map ? 2 : 1) {
        const struct yamltree *key = node->children[i];
        cJSON *item = NULL;

        if (is_map && key->kind != YAMLTREE_SCALAR)
            r = err_set(err, EINVAL, "line %u: a key in it is no text", key->line);
        else if (is_map && member(json, key->text))
            r = err_set(err, EINVAL, "line %u: a key in it is there twice", key->line);
        else
            r = to_json(node->children[i + (is_map ? 1 : 0)], &item, err);
        if (r == 0 && !(is_map ? cJSON_AddItemToObject(json, key->text, item)
                               : cJSON_AddItemToArray(json, item))) {
            cJSON_Delete(item);
            r = -ENOMEM;
        }
    }
    if (r < 0)
        cJSON_Delete(json);
    else
        *ret = json;
    return r;
}

static int check_depth(const cJSON *json, unsigned depth, struct err *err)
{
    if (depth > INPUT_SCHEMA_DEPTH_MAX)
        return err_set(err, EINVAL, "it is over %u levels deep", INPUT_SCHEMA_DEPTH_MAX);
    for (const cJSON *item = json->child; item; item = item->next) {
        int r = check_depth(item, depth + 1, err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* The words of JSON schema that everybody who reads it will look at. */
static int check_form(const cJSON *json, struct err *err)
{
    const cJSON *properties = member(json, "properties");
    const cJSON *required = member(json, "required");
    const cJSON *type = member(json, "type"), *item;

    if (type && (!cJSON_IsString(type) || strcmp(type->valuestring, "object") != 0))
        return err_set(err, EINVAL, "its type must be \"object\"");
    if (properties && !cJSON_IsObject(properties))
        return err_set(err, EINVAL, "its \"properties\" must be a map");
    cJSON_ArrayForEach(item, properties) {
        if (!cJSON_IsObject(item) && !cJSON_IsBool(item))
            return err_set(err, EINVAL, "its property \"%.64s\" must be a map", item->string);
    }
    if (required && !cJSON_IsArray(required))
        return err_set(err, EINVAL, "its \"required\" must be a list");
    cJSON_ArrayForEach(item, required) {
        if (!cJSON_IsString(item))
            return err_set(err, EINVAL, "its \"required\" must be a list of names");
    }
    return 0;
}

static int complete(cJSON *json, struct err *err)
{
    int r;

    if (!cJSON_IsObject(json))
        return err_set(err, EINVAL, "it must be a map, or text that holds a JSON object");
    r = check_depth(json, 1, err);
    if (r < 0)
        return r;
    r = check_form(json, err);
    if (r < 0)
        return r;
    if (!member(json, "type") && !cJSON_AddStringToObject(json, "type", "object"))
        return -ENOMEM;
    if (!member(json, "properties") && !cJSON_AddObjectToObject(json, "properties"))
        return -ENOMEM;
    return 0;
}

static int write_schema(cJSON *json, char **ret, struct err *err)
{
    int r = complete(json, err);
    char *text;

    if (r < 0)
        return r;
    text = cJSON_PrintUnformatted(json);
    if (!text)
        return -ENOMEM;
    if (strlen(text) > INPUT_SCHEMA_BYTES_MAX) {
        cJSON_free(text);
        return err_set(err, EINVAL, "it is over %u bytes", INPUT_SCHEMA_BYTES_MAX);
    }
    *ret = text;
    return 0;
}

/* Whether as text it may be short enough: a tree takes many times the room of its text. */
static bool may_fit(const char *text, size_t len)
{
    return json_fits((struct json_slice){text, len}, INPUT_SCHEMA_BYTES_MAX);
}

int input_schema_read(const struct yamltree *value, char **ret, struct err *err)
{
    bool is_text = value->kind == YAMLTREE_SCALAR;
    cJSON *json = is_text && may_fit(value->text, strlen(value->text))
                      ? cJSON_ParseWithOpts(value->text, NULL, true)
                      : NULL;
    int r = is_text ? 0 : to_json(value, &json, err);

    if (r < 0)
        return r;
    r = write_schema(json, ret, err);
    cJSON_Delete(json);
    return r;
}

int input_schema_read_json(const char *text, size_t len, char **ret, struct err *err)
{
    bool is_json = may_fit(text, len) && json_text_check(text, len, NULL, NULL) == 0;
    cJSON *json = is_json ? cJSON_ParseWithLength(text, len) : NULL;
    int r;

    if (!json || !member(json, "properties")) {
        cJSON_Delete(json);
        return err_set(err, EINVAL, "it must be a JSON object with \"properties\"");
    }
    r = write_schema(json, ret, err);
    cJSON_Delete(json);
    return r;
}
