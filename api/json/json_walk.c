/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json_walk.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_space(struct json_slice s, size_t at)
{
    while (at < s.len && is_space(s.data[at]))
        at++;
    return at;
}

/* The byte after the string that begins at at. */
static size_t skip_string(struct json_slice s, size_t at)
{
    for (at++; at < s.len && s.data[at] != '"'; at++) {
        if (s.data[at] == '\\')
            at++;
    }
    return at < s.len ? at + 1 : s.len;
}

/* The byte after the value that begins at at. */
static size_t skip_value(struct json_slice s, size_t at)
{
    size_t depth = 0;

    if (at < s.len && s.data[at] == '"')
        return skip_string(s, at);
    if (at >= s.len || (s.data[at] != '{' && s.data[at] != '[')) {
        while (at < s.len && !is_space(s.data[at]) && !strchr(",]}", s.data[at]))
            at++;
        return at;
    }
    while (at < s.len) {
        char c = s.data[at];

        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            break;
    }
    return at;
}

bool json_is_object(struct json_slice value)
{
    return value.len > 1 && value.data[0] == '{';
}

bool json_is_array(struct json_slice value)
{
    return value.len > 1 && value.data[0] == '[';
}

bool json_is_string(struct json_slice value)
{
    return value.len > 1 && value.data[0] == '"';
}

bool json_find(struct json_slice object, const char *key, struct json_slice *ret)
{
    size_t at = skip_space(object, 1);

    if (!json_is_object(object))
        return false;
    while (at < object.len && object.data[at] == '"') {
        struct json_slice name = {object.data + at + 1, 0}, value;
        size_t end = skip_string(object, at);

        name.len = end - at - 2;
        at = skip_space(object, end);
        at = skip_space(object, at + 1); /* the colon */
        end = skip_value(object, at);
        value = (struct json_slice){object.data + at, end - at};
        if (json_slice_is(name, key)) {
            *ret = value;
            return true;
        }
        at = skip_space(object, end);
        at = skip_space(object, at + 1); /* a comma, or the end */
    }
    return false;
}

bool json_items_next(struct json_items *items, struct json_slice *ret)
{
    struct json_slice array = items->array;
    size_t at = items->at, end;

    if (!json_is_array(array))
        return false;
    /* The bracket, or the comma after the item before. */
    at = skip_space(array, at);
    at = skip_space(array, at + 1);
    if (at >= array.len || array.data[at] == ']')
        return false;
    end = skip_value(array, at);
    *ret = (struct json_slice){array.data + at, end - at};
    items->at = end;
    return true;
}

char *json_strdup(struct json_slice value, size_t max)
{
    struct buf text = buf_init(max + 1);

    if (!json_is_string(value) || json_append_decoded(&text, value) < 0 ||
        (text.len > 0 && memchr(text.data, '\0', text.len)) || buf_append(&text, "", 1) < 0) {
        buf_finish(&text);
        return NULL;
    }
    return (char *)text.data;
}
