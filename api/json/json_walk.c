/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json_walk.h"

#include "api/json/json_scan.h"

#include <errno.h>
#include <string.h>

bool json_fits(struct json_slice value, size_t max)
{
    bool in_string = false;
    size_t n = 1;

    for (size_t i = 0; i < value.len && n <= max; i++) {
        char c = value.data[i];

        if (c == '"')
            in_string = !in_string;
        else if (in_string)
            i += c == '\\';
        else
            n += c == ',' || c == '[' || c == '{';
    }
    return n <= max;
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
    struct json_scanner s = {.text = object.data, .len = object.len};
    struct json_slice name, value;

    if (!json_scan_take(&s, '{'))
        return false;
    do {
        if (json_scan_key(&s, &name, NULL) < 0 || json_scan_value(&s, &value, NULL) < 0)
            return false;
        if (json_slice_is(name, key)) {
            *ret = value;
            return true;
        }
        json_scan_space(&s);
    } while (json_scan_take(&s, ','));
    return false;
}

bool json_items_next(struct json_items *items, struct json_slice *ret)
{
    struct json_slice array = items->array;
    struct json_scanner s = {.text = array.data, .len = array.len, .at = items->at};

    if (!json_is_array(array))
        return false;
    json_scan_space(&s);
    /* The bracket, or the comma after the item before. */
    if (!json_scan_take(&s, s.at == 0 ? '[' : ',') || json_scan_value(&s, ret, NULL) < 0)
        return false;
    items->at = s.at;
    return true;
}

int json_take_bool(struct json_slice value, bool *ret)
{
    bool is_true = json_slice_is(value, "true");

    if (!is_true && !json_slice_is(value, "false"))
        return -EINVAL;
    *ret = is_true;
    return 0;
}

int json_take_whole(struct json_slice value, uint64_t max, uint64_t *ret)
{
    uint64_t number = 0;

    for (size_t i = 0; i < value.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)value.data[i] - '0';

        if (digit > 9)
            return -EINVAL;
        if (digit > max || number > max / 10 || number * 10 > max - digit)
            return -ERANGE;
        number = number * 10 + digit;
    }
    *ret = number;
    return 0;
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

char *json_strdup_member(struct json_slice object, const char *key, size_t max)
{
    struct json_slice value;

    return json_find(object, key, &value) ? json_strdup(value, max) : NULL;
}
