/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/entry_values.h"

#include "api/daemon/terms/change.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

struct json_writer entry_begin(size_t max, uint32_t schema)
{
    struct json_writer w = json_writer_init(max);

    json_write_open(&w, NULL, '{');
    json_write_number(&w, "schema", schema);
    return w;
}

int entry_end(struct json_writer *w, struct buf *ret)
{
    json_write_close(w, '}');
    return json_writer_end(w, ret);
}

int entry_take_object(const char *data, size_t len, size_t max, uint32_t newest,
                      struct json_slice *ret, enum node_refusal *ret_why)
{
    uint64_t schema;

    *ret_why = NODE_TOO_LARGE;
    if (len > max)
        return -EINVAL;
    *ret_why = NODE_MALFORMED;
    if (!data || json_text_check(data, len, ret, NULL) < 0 || !json_is_object(*ret) ||
        entry_take_number(*ret, "schema", UINT32_MAX, &schema) < 0 || schema == 0)
        return -EINVAL;
    *ret_why = NODE_NEWER;
    return schema > newest ? -EINVAL : 0;
}

int entry_take_number(struct json_slice object, const char *key, uint64_t max, uint64_t *ret)
{
    struct json_slice value;

    return json_find(object, key, &value) && json_take_whole(value, max, ret) == 0 ? 0
                                                                                   : -EINVAL;
}

int entry_take_bool(struct json_slice object, const char *key, bool *ret)
{
    struct json_slice value;

    return json_find(object, key, &value) ? json_take_bool(value, ret) : -EINVAL;
}

int entry_take_text(struct json_slice object, const char *key, char *ret, size_t size)
{
    struct json_slice value;
    _cleanup_free_ char *text = NULL;

    if (!json_find(object, key, &value) || !json_is_string(value))
        return -EINVAL;
    /* Most have nothing to be decoded. */
    if (!memchr(value.data, '\\', value.len)) {
        if (value.len - 2 >= size)
            return -EINVAL;
        memcpy(ret, value.data + 1, value.len - 2);
        ret[value.len - 2] = '\0';
        return 0;
    }
    text = json_strdup(value, size - 1);
    if (!text)
        return -EINVAL;
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

int entry_take_one_of(struct json_slice object, const char *key, const char *const *words,
                      unsigned n, unsigned *ret)
{
    char word[16];

    if (entry_take_text(object, key, word, sizeof(word)) < 0)
        return -EINVAL;
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret = i;
            return 0;
        }
    }
    return -EINVAL;
}

bool entry_is_digest(const char *text)
{
    return strlen(text) == CHANGE_DIGEST_SIZE - 1 &&
           strspn(text, "0123456789abcdef") == CHANGE_DIGEST_SIZE - 1;
}

bool entry_is_digest_or_none(const char *text)
{
    return !text[0] || entry_is_digest(text);
}
