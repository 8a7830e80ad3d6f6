/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/hold_entry.h"

#include "api/daemon/cluster/entry_values.h"

#include <errno.h>

bool hold_entry_is_key(const char *key)
{
    return ids_valid(ID_SESSION, key);
}

int hold_entry_parse(const char *data, size_t len, struct hold *ret)
{
    struct hold hold = {0};
    struct json_slice object;
    enum node_refusal unused;

    if (entry_take_object(data, len, HOLD_ENTRY_BYTES_MAX, HOLD_ENTRY_SCHEMA, &object,
                          &unused) < 0 ||
        entry_take_text(object, "node", hold.node, sizeof(hold.node)) < 0 ||
        !fleet_node_valid(hold.node) ||
        entry_take_text(object, "instance", hold.instance, sizeof(hold.instance)) < 0 ||
        !ids_valid("", hold.instance) ||
        entry_take_text(object, "execution", hold.execution, sizeof(hold.execution)) < 0 ||
        (hold.execution[0] && !ids_valid(ID_EXECUTION, hold.execution)) ||
        entry_take_number(object, "seen", INT64_MAX, &hold.seen) < 0 ||
        entry_take_bool(object, "over", &hold.is_over) < 0)
        return -EINVAL;
    *ret = hold;
    return 0;
}

int hold_entry_write(const struct hold *hold, struct buf *ret)
{
    struct json_writer w = entry_begin(HOLD_ENTRY_BYTES_MAX, HOLD_ENTRY_SCHEMA);

    json_write_string(&w, "node", hold->node);
    json_write_string(&w, "instance", hold->instance);
    json_write_string(&w, "execution", hold->execution);
    json_write_number(&w, "seen", hold->seen);
    json_write_bool(&w, "over", hold->is_over);
    return entry_end(&w, ret);
}
