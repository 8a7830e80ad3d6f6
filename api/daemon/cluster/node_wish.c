/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/node_wish.h"

#include "api/daemon/cluster/entry_values.h"
#include "api/json/json_write.h"
#include "base/text.h"

#include <errno.h>

#define COUNT_MAX 1000000u /* of executions at a node */

static const char *const names[NODE_WISHES] = {
    [NODE_WISH_LOOK] = "look",
    [NODE_WISH_DRAIN] = "drain",
    [NODE_WISH_UNDO] = "undo",
};

static int take_object(const char *data, size_t len, struct json_slice *ret)
{
    enum node_refusal unused;

    return entry_take_object(data, len, NODE_WISH_BYTES_MAX, NODE_WISH_SCHEMA, ret, &unused);
}

int node_wish_write(enum node_wish wish, struct buf *ret)
{
    struct json_writer w = entry_begin(NODE_WISH_BYTES_MAX, NODE_WISH_SCHEMA);

    json_write_string(&w, "wish", names[wish]);
    return entry_end(&w, ret);
}

int node_wish_parse(const char *data, size_t len, enum node_wish *ret)
{
    struct json_slice object;
    unsigned wish;

    if (take_object(data, len, &object) < 0 ||
        entry_take_one_of(object, "wish", names, NODE_WISHES, &wish) < 0)
        return -EINVAL;
    *ret = (enum node_wish)wish;
    return 0;
}

int node_drain_write(const struct node_drain *drain, struct buf *ret)
{
    struct json_writer w = entry_begin(NODE_WISH_BYTES_MAX, NODE_WISH_SCHEMA);

    json_write_bool(&w, "draining", drain->is_draining);
    json_write_number(&w, "running", drain->running);
    json_write_number(&w, "waiting", drain->waiting);
    json_write_string(&w, "refused", drain->refused);
    return entry_end(&w, ret);
}

int node_drain_parse(const char *data, size_t len, struct node_drain *ret)
{
    struct node_drain drain = {0};
    uint64_t running, waiting;
    struct json_slice object;

    if (take_object(data, len, &object) < 0 ||
        entry_take_bool(object, "draining", &drain.is_draining) < 0 ||
        entry_take_number(object, "running", COUNT_MAX, &running) < 0 ||
        entry_take_number(object, "waiting", COUNT_MAX, &waiting) < 0 ||
        entry_take_text(object, "refused", drain.refused, sizeof(drain.refused)) < 0 ||
        !text_is_plain(drain.refused))
        return -EINVAL;
    drain.running = (uint32_t)running;
    drain.waiting = (uint32_t)waiting;
    *ret = drain;
    return 0;
}
