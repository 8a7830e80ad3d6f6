/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/schema.h"

#include "api/json/json_walk.h"
#include "api/skill/skill.h"
#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

#define SHOWN 64 /* bytes of a name in a message */

#define TYPES_MAX 7 /* there are no more, and each may have a long number read again */

/* Of an argument that is compared with choices. */
#define ENUM_BYTES_MAX  (256u * 1024u)
#define ENUM_VALUES_MAX 1024u

static const cJSON *member(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* By its first character; what JSON schema does not know fits anything. */
static bool is_of_type(struct json_slice value, const char *type)
{
    static const struct {
        const char *type;
        const char *begins;
    } types[] = {
        {"object", "{"},   {"array", "["}, {"string", "\""},
        {"boolean", "tf"}, {"null", "n"},  {"number", "-0123456789"},
    };

    if (strcmp(type, "integer") == 0) {
        double number = is_of_type(value, "number") ? strtod(value.data, NULL) : NAN;

        return number == floor(number);
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].type) == 0)
            return strchr(types[i].begins, value.data[0]) != NULL;
    }
    return true;
}

static bool matches_type(struct json_slice value, const cJSON *type)
{
    const cJSON *item;

    if (cJSON_IsString(type))
        return is_of_type(value, type->valuestring);
    if (!cJSON_IsArray(type) || cJSON_GetArraySize(type) == 0 ||
        cJSON_GetArraySize(type) > TYPES_MAX)
        return true;
    cJSON_ArrayForEach(item, type) {
        if (!cJSON_IsString(item) || is_of_type(value, item->valuestring))
            return true;
    }
    return false;
}

/* Whether one is written like this: cJSON_Compare() takes twice as long for each object that is
 * in another. */
static bool is_written(const cJSON *json, const char *text)
{
    char *written = cJSON_PrintUnformatted(json);
    bool equal = written && strcmp(written, text) == 0;

    cJSON_free(written);
    return equal;
}

/* 0, -EINVAL without a message, or -ENOMEM. What is large is none of a schema's few choices. */
static int match_enum(struct json_slice value, const cJSON *list)
{
    _cleanup_(cJSON_Delete) cJSON *json = NULL;
    const cJSON *item;
    bool found = false;
    char *text;

    if (!cJSON_IsArray(list))
        return 0;
    if (value.len > ENUM_BYTES_MAX || !json_fits(value, ENUM_VALUES_MAX))
        return -EINVAL;
    json = cJSON_ParseWithLength(value.data, value.len);
    text = json ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_ArrayForEach(item, list) {
        found = text && (item->type & 0xff) == (json->type & 0xff) && is_written(item, text);
        if (found)
            break;
    }
    cJSON_free(text);
    return found ? 0 : -EINVAL;
}

static int refuse(const char *key, const char *what, const cJSON *allowed, struct err *err)
{
    char *text = cJSON_PrintUnformatted(allowed);
    int r = err_set(err, EINVAL, "the argument \"%.*s\" must be %s %.200s", SHOWN, key, what,
                    text ? text : "?");

    cJSON_free(text);
    return r;
}

static int check_member(const cJSON *schema, struct json_slice value, const char *key,
                        struct err *err)
{
    const cJSON *rule = member(member(schema, "properties"), key);

    if (!rule && cJSON_IsFalse(member(schema, "additionalProperties")))
        return err_set(err, EINVAL, "there is no argument \"%.*s\"", SHOWN, key);
    if (!matches_type(value, member(rule, "type")))
        return refuse(key, "of type", member(rule, "type"), err);
    if (match_enum(value, member(rule, "enum")) < 0)
        return refuse(key, "one of", member(rule, "enum"), err);
    return 0;
}

/* Adds the member's key to keys, decoded: as text two of one may differ. */
static int take_key(struct json_slice key, struct skill_strings *keys, struct err *err)
{
    const struct json_slice quoted = {key.data - 1, key.len + 2};
    _cleanup_buf_ struct buf text = buf_init(SIZE_MAX / 2);

    if (json_append_decoded(&text, quoted) < 0 || !buf_cstr(&text))
        return -ENOMEM;
    if (skill_strings_has(keys, (const char *)text.data))
        return err_set(err, EINVAL, "the argument \"%.*s\" comes twice", SHOWN,
                       (const char *)text.data);
    return skill_strings_add(keys, "%s", (const char *)text.data);
}

static int check_required(const cJSON *schema, const struct skill_strings *keys,
                          struct err *err)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, member(schema, "required")) {
        if (cJSON_IsString(item) && !skill_strings_has(keys, item->valuestring))
            return err_set(err, EINVAL, "the argument \"%.*s\" is missing", SHOWN,
                           item->valuestring);
    }
    return 0;
}

static int check_members(const cJSON *schema, const struct json_member *members, size_t n,
                         struct err *err)
{
    _cleanup_skill_strings_ struct skill_strings keys = {0};

    for (size_t i = 0; i < n; i++) {
        int r = take_key(members[i].key, &keys, err);

        if (r < 0)
            return r;
        r = check_member(schema, members[i].value, keys.items[i], err);
        if (r < 0)
            return r;
    }
    return check_required(schema, &keys, err);
}

int schema_check(const char *schema, const char *arguments, size_t len, struct err *err)
{
    _cleanup_free_ struct json_member *members = calloc(SCHEMA_ARGUMENTS_MAX, sizeof(*members));
    _cleanup_(cJSON_Delete) cJSON *json = cJSON_Parse(schema);
    size_t n = 0;
    int r;

    if (!members || !json)
        return err_no_memory(err);
    r = json_text_members(arguments, len, members, SCHEMA_ARGUMENTS_MAX, &n, err);
    if (r < 0)
        return r;
    r = check_members(json, members, n, err);
    return r == -ENOMEM ? err_no_memory(err) : r;
}
