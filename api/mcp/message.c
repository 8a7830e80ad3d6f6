/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/message.h"

#include "api/json/json_walk.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A string, or a number without a fraction or an exponent. */
static bool is_id(struct json_slice value)
{
    if (value.len == 0 || value.len > MESSAGE_ID_MAX)
        return false;
    if (json_is_string(value))
        return true;
    return strchr("-0123456789", value.data[0]) && !memchr(value.data, '.', value.len) &&
           !memchr(value.data, 'e', value.len) && !memchr(value.data, 'E', value.len);
}

int message_parse(struct json_slice value, struct message *ret, struct err *err)
{
    struct json_slice version, method, id, params, other;

    *ret = (struct message){.kind = MESSAGE_NOTIFICATION};
    if (!json_is_object(value))
        return err_set(err, EINVAL, "a message is an object");
    if (json_find(value, "id", &id)) {
        ret->kind = MESSAGE_REQUEST;
        if (is_id(id))
            ret->id = id;
    }
    if (!json_find(value, "jsonrpc", &version) || !json_slice_is(version, "\"2.0\""))
        return err_set(err, EINVAL, "\"jsonrpc\" must be \"2.0\"");
    if (!json_find(value, "method", &method)) {
        if (!json_find(value, "result", &other) && !json_find(value, "error", &other))
            return err_set(err, EINVAL, "there is no \"method\"");
        ret->kind = MESSAGE_RESPONSE;
        return 0;
    }
    if (ret->kind == MESSAGE_REQUEST && ret->id.len == 0)
        return err_set(err, EINVAL,
                       "\"id\" must be a string or an integer, of %u bytes at most",
                       MESSAGE_ID_MAX);
    if (!json_is_string(method))
        return err_set(err, EINVAL, "\"method\" must be a string");
    if (json_find(value, "params", &params)) {
        if (!json_is_object(params))
            return err_set(err, EINVAL, "\"params\" must be an object");
        ret->params = params;
    }
    _cleanup_free_ char *name = json_strdup(method, sizeof(ret->method) - 1);
    snprintf(ret->method, sizeof(ret->method), "%s", name ? name : "");
    return 0;
}

bool message_same_id(struct json_slice a, struct json_slice b)
{
    if (a.len == b.len && memcmp(a.data, b.data, a.len) == 0)
        return true;
    if (!json_is_string(a) || !json_is_string(b))
        return false;

    _cleanup_buf_ struct buf left = buf_init(MESSAGE_ID_MAX), right = buf_init(MESSAGE_ID_MAX);
    return json_append_decoded(&left, a) == 0 && json_append_decoded(&right, b) == 0 &&
           left.len == right.len &&
           (left.len == 0 || memcmp(left.data, right.data, left.len) == 0);
}

/* Writes what comes before a result or an error. */
static void begin(struct buf *out, struct json_slice id)
{
    (void)buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (id.len > 0)
        (void)json_append_compact(out, id);
    else
        (void)buf_printf(out, "null");
}

/* Ends it with a member of this key where there is one, and braces. 0 or the first failure. */
static int end(struct buf *out, const char *key, const struct buf *value, const char *braces)
{
    if (value && value->len > 0) {
        (void)buf_printf(out, ",\"%s\":", key);
        (void)buf_append(out, value->data, value->len);
    }
    (void)buf_printf(out, "%s", braces);
    return out->error;
}

int message_append_result(struct buf *out, struct json_slice id, const struct buf *result)
{
    begin(out, id);
    return end(out, "result", result, "}");
}

int message_append_error(struct buf *out, struct json_slice id, int code, const char *text,
                         const struct buf *data)
{
    begin(out, id);
    (void)buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    (void)json_append_cstr(out, text);
    return end(out, "data", data, "}}");
}

int message_append_notification(struct buf *out, const char *method, const struct buf *params)
{
    (void)buf_printf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"", method);
    return end(out, "params", params, "}");
}
