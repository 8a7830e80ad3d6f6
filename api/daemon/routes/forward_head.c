/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/forward_head.h"

#include "api/json/json_text.h"
#include "api/json/json_walk.h"
#include "api/json/json_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024u

int forward_head_write(const struct forward_head *head, struct buf *out)
{
    struct json_writer w = json_writer_init(LINE_MAX_BYTES);
    _cleanup_buf_ struct buf line = {0};
    int r;

    json_write_open(&w, NULL, '{');
    json_write_number(&w, "schema", FORWARD_SCHEMA);
    json_write_string(&w, "tenant", head->tenant);
    json_write_string(&w, "id", head->id);
    json_write_string(&w, "digest", head->digest);
    json_write_number(&w, "seen", head->seen);
    json_write_number(&w, "sent_ns", head->sent_ns);
    json_write_close(&w, '}');
    r = json_writer_end(&w, &line);
    return r < 0 ? r : buf_append(out, line.data, line.len);
}

static bool take_text(struct json_slice object, const char *key, char *ret, size_t size)
{
    char *text = json_strdup_member(object, key, size - 1);

    if (text)
        memcpy(ret, text, strlen(text) + 1);
    free(text);
    return text != NULL;
}

static bool take_number(struct json_slice object, const char *key, uint64_t max, uint64_t *ret)
{
    struct json_slice value;

    return json_find(object, key, &value) && json_take_whole(value, max, ret) == 0;
}

static bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == strlen(text) &&
           (!text[0] || strlen(text) == RECORD_DIGEST_SIZE - 1);
}

ssize_t forward_head_parse(const char *data, size_t len, struct forward_head *ret)
{
    const char *end = memchr(data, '\n', len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);
    struct forward_head head = {0};
    struct json_slice object;
    uint64_t schema = 0;

    if (!end || json_text_check(data, (size_t)(end - data), &object, NULL) < 0 ||
        !json_is_object(object) || !take_number(object, "schema", UINT32_MAX, &schema) ||
        schema != FORWARD_SCHEMA ||
        !take_text(object, "tenant", head.tenant, sizeof(head.tenant)) ||
        !tenant_id_valid(head.tenant) || !take_text(object, "id", head.id, sizeof(head.id)) ||
        !ids_valid(ID_EXECUTION, head.id) ||
        !take_text(object, "digest", head.digest, sizeof(head.digest)) ||
        !is_digest(head.digest) || !take_number(object, "seen", INT64_MAX, &head.seen) ||
        !take_number(object, "sent_ns", INT64_MAX, &head.sent_ns))
        return -EINVAL;
    *ret = head;
    return end - data + 1;
}
