/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/schema.h"

#include "api/json/json_text.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

#define SHOWN 64 /* bytes of a name in a message */

static const cJSON *member(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

static bool is_of_type(struct json_slice value, const char *type)
{
    char c = value.data[0];

    if (strcmp(type, "object") == 0)
        return c == '{';
    if (strcmp(type, "array") == 0)
        return c == '[';
    if (strcmp(type, "string") == 0)
        return c == '"';
    if (strcmp(type, "boolean") == 0)
        return c == 't' || c == 'f';
    if (strcmp(type, "null") == 0)
        return c == 'n';
    if (strcmp(type, "number") == 0)
        return c == '-' || (c >= '0' && c <= '9');
    if (strcmp(type, "integer") == 0) {
        double number = c == '-' || (c >= '0' && c <= '9') ? strtod(value.data, NULL) : NAN;

        return number == floor(number);
    }
    return true;
}

static bool matches_type(struct json_slice value, const cJSON *type)
{
    const cJSON *item;

    if (cJSON_IsString(type))
        return is_of_type(value, type->valuestring);
    if (!cJSON_IsArray(type) || cJSON_GetArraySize(type) == 0)
        return true;
    cJSON_ArrayForEach(item, type)
    {
        if (!cJSON_IsString(item) || is_of_type(value, item->valuestring))
            return true;
    }
    return false;
}

/* 0, -EINVAL without a message, or -ENOMEM. */
static int match_enum(struct json_slice value, const cJSON *list)
{
    const cJSON *item;
    cJSON *json;
    bool found = false;

    if (!cJSON_IsArray(list))
        return 0;
    json = cJSON_ParseWithLength(value.data, value.len);
    cJSON_ArrayForEach(item, list)
    {
        found |= cJSON_Compare(item, json, true);
    }
    cJSON_Delete(json);
    return found ? 0 : -EINVAL;
}

static int check_member(const cJSON *schema, const struct json_member *m, const char *key,
                        struct err *err)
{
    const cJSON *rule = member(member(schema, "properties"), key), *type = member(rule, "type");
    char *text;
    int r;

    if (!rule && cJSON_IsFalse(member(schema, "additionalProperties")))
        return err_set(err, EINVAL, "there is no argument \"%.*s\"", SHOWN, key);
    if (!matches_type(m->value, type)) {
        text = cJSON_PrintUnformatted(type);
        r = err_set(err, EINVAL, "the argument \"%.*s\" must be of type %.200s", SHOWN, key,
                    text ? text : "?");
        cJSON_free(text);
        return r;
    }
    if (match_enum(m->value, member(rule, "enum")) == 0)
        return 0;
    text = cJSON_PrintUnformatted(member(rule, "enum"));
    r = err_set(err, EINVAL, "the argument \"%.*s\" must be one of %.200s", SHOWN, key,
                text ? text : "?");
    cJSON_free(text);
    return r;
}

/* The member's key, decoded. NULL without memory. */
static char *decode_key(struct json_slice key)
{
    const struct json_slice quoted = {key.data - 1, key.len + 2};
    struct buf text = buf_init(SIZE_MAX / 2);
    char *copy = NULL;

    if (json_append_decoded(&text, quoted) == 0 && buf_cstr(&text))
        copy = strdup((const char *)text.data);
    buf_finish(&text);
    return copy;
}

static int check_required(const cJSON *schema, char *const *keys, size_t n, struct err *err)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, member(schema, "required"))
    {
        bool found = !cJSON_IsString(item);

        for (size_t i = 0; !found && i < n; i++)
            found = strcmp(keys[i], item->valuestring) == 0;
        if (!found)
            return err_set(err, EINVAL, "the argument \"%.*s\" is missing", SHOWN,
                           item->valuestring);
    }
    return 0;
}

static int check_keys(const cJSON *schema, const struct json_member *members, size_t n,
                      char **keys, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        int r;

        keys[i] = decode_key(members[i].key);
        r = keys[i] ? check_member(schema, &members[i], keys[i], err) : -ENOMEM;
        if (r < 0)
            return r;
    }
    return check_required(schema, keys, n, err);
}

static int check_members(const cJSON *schema, const struct json_member *members, size_t n,
                         struct err *err)
{
    char **keys = calloc(n + 1, sizeof(*keys));
    int r = keys ? check_keys(schema, members, n, keys, err) : -ENOMEM;

    for (size_t i = 0; keys && i < n; i++)
        free(keys[i]);
    free(keys);
    return r;
}

int schema_check(const char *schema, const char *arguments, size_t len, struct err *err)
{
    _cleanup_free_ struct json_member *members = calloc(SCHEMA_ARGUMENTS_MAX, sizeof(*members));
    _cleanup_(cJSON_Delete) cJSON *json = cJSON_Parse(schema);
    size_t n = 0;
    int r;

    if (!members || !json)
        return err_set(err, ENOMEM, "out of memory");
    r = json_text_members(arguments, len, members, SCHEMA_ARGUMENTS_MAX, &n, err);
    if (r < 0)
        return r;
    r = check_members(json, members, n, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}
