/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/forward_head.h"

#include "api/daemon/cluster/entry_values.h"
#include "api/json/json_write.h"

#include <errno.h>
#include <string.h>

#define LINE_MAX_BYTES 1024u

int forward_head_write(const struct forward_head *head, struct buf *out)
{
    struct json_writer w = entry_begin(LINE_MAX_BYTES, FORWARD_SCHEMA);
    _cleanup_buf_ struct buf line = {0};
    int r;

    json_write_string(&w, "tenant", head->tenant);
    json_write_string(&w, "id", head->id);
    json_write_string(&w, "digest", head->digest);
    json_write_number(&w, "seen", head->seen);
    json_write_number(&w, "sent_ns", head->sent_ns);
    if (head->from[0])
        json_write_string(&w, "from", head->from);
    if (head->node[0]) {
        json_write_string(&w, "node", head->node);
        json_write_string(&w, "instance", head->instance);
    }
    r = entry_end(&w, &line);
    return r < 0 ? r : buf_append(out, line.data, line.len);
}

static int take_sender(struct json_slice object, struct forward_head *ret)
{
    struct json_slice from;

    if (!json_find(object, "from", &from))
        return 0;
    return entry_take_text(object, "from", ret->from, sizeof(ret->from)) == 0 &&
                   fleet_node_valid(ret->from)
               ? 0
               : -EINVAL;
}

static int take_process(struct json_slice object, struct forward_head *ret)
{
    struct json_slice node;

    if (!json_find(object, "node", &node))
        return 0;
    return entry_take_text(object, "node", ret->node, sizeof(ret->node)) == 0 &&
                   fleet_node_valid(ret->node) &&
                   entry_take_text(object, "instance", ret->instance, sizeof(ret->instance)) ==
                       0 &&
                   ids_valid("", ret->instance)
               ? 0
               : -EINVAL;
}

ssize_t forward_head_parse(const char *data, size_t len, struct forward_head *ret)
{
    const char *end = memchr(data, '\n', len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);
    struct forward_head head = {0};
    struct json_slice object;
    enum node_refusal unused;

    if (!end ||
        entry_take_object(data, (size_t)(end - data), LINE_MAX_BYTES, FORWARD_SCHEMA, &object,
                          &unused) < 0 ||
        entry_take_text(object, "tenant", head.tenant, sizeof(head.tenant)) < 0 ||
        !tenant_id_valid(head.tenant) ||
        entry_take_text(object, "id", head.id, sizeof(head.id)) < 0 ||
        !ids_valid(ID_EXECUTION, head.id) ||
        entry_take_text(object, "digest", head.digest, sizeof(head.digest)) < 0 ||
        !entry_is_digest_or_none(head.digest) ||
        entry_take_number(object, "seen", INT64_MAX, &head.seen) < 0 ||
        entry_take_number(object, "sent_ns", INT64_MAX, &head.sent_ns) < 0 ||
        take_sender(object, &head) < 0 || take_process(object, &head) < 0)
        return -EINVAL;
    *ret = head;
    return end - data + 1;
}
