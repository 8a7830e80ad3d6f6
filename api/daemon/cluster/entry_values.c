/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/entry_values.h"

#include <errno.h>
#include <string.h>

int entry_take_number(struct json_slice object, const char *key, uint64_t max, uint64_t *ret)
{
    struct json_slice value;
    uint64_t number = 0;

    if (!json_find(object, key, &value))
        return -EINVAL;
    for (size_t i = 0; i < value.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)value.data[i] - '0';

        if (digit > 9 || number > max / 10 || number * 10 > max - digit)
            return -EINVAL;
        number = number * 10 + digit;
    }
    *ret = number;
    return 0;
}

int entry_take_bool(struct json_slice object, const char *key, bool *ret)
{
    struct json_slice value;

    if (!json_find(object, key, &value) ||
        (!json_slice_is(value, "true") && !json_slice_is(value, "false")))
        return -EINVAL;
    *ret = json_slice_is(value, "true");
    return 0;
}

int entry_take_text(struct json_slice object, const char *key, char *ret, size_t size)
{
    _cleanup_buf_ struct buf text = buf_init(size);
    struct json_slice value;

    if (!json_find(object, key, &value) || !json_is_string(value) ||
        json_text_has_nul(value.data, value.len) || json_append_decoded(&text, value) < 0 ||
        text.len >= size)
        return -EINVAL;
    memcpy(ret, buf_cstr(&text), text.len);
    ret[text.len] = '\0';
    return 0;
}
