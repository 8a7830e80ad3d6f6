/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/deed_entry.h"

#include "api/daemon/cluster/entry_values.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_entry(const char *key)
{
    size_t len = strcspn(key, ".");
    char node[FLEET_NODE_SIZE];

    if (len == 0 || len >= sizeof(node) || !key[len])
        return false;
    (void)snprintf(node, sizeof(node), "%.*s", (int)len, key);
    return fleet_node_valid(node) && ids_valid("", key + len + 1);
}

/* Of target and detail anybody may have said what. */
static int take_members(struct json_slice object, struct deed *ret)
{
    if (entry_take_number(object, "id", INT64_MAX, &ret->id) < 0 ||
        entry_take_number(object, "at_ns", INT64_MAX, &ret->at_ns) < 0 ||
        entry_take_text(object, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
        entry_take_text(object, "actor", ret->actor, sizeof(ret->actor)) < 0 ||
        entry_take_text(object, "action", ret->action, sizeof(ret->action)) < 0 ||
        entry_take_text(object, "target", ret->target, sizeof(ret->target)) < 0 ||
        entry_take_text(object, "detail", ret->detail, sizeof(ret->detail)) < 0)
        return -EINVAL;
    return ret->id > 0 && ret->at_ns > 0 && (!ret->tenant[0] || tenant_id_valid(ret->tenant)) &&
                   text_is_plain(ret->actor) && ret->action[0] && text_is_plain(ret->action)
               ? 0
               : -EINVAL;
}

int deed_entry_parse(const char *key, const char *data, size_t len, struct deed *ret,
                     enum node_refusal *ret_why)
{
    struct deed deed = {0};
    struct json_slice object;

    *ret_why = NODE_WRONG_NAME;
    if (!is_entry(key))
        return -EINVAL;
    if (entry_take_object(data, len, DEED_ENTRY_BYTES_MAX, DEED_ENTRY_SCHEMA, &object,
                          ret_why) < 0)
        return -EINVAL;
    *ret_why = NODE_MALFORMED;
    if (take_members(object, &deed) < 0)
        return -EINVAL;
    (void)snprintf(deed.entry, sizeof(deed.entry), "%s", key);
    *ret = deed;
    return 0;
}

int deed_entry_write(const struct deed *deed, struct buf *ret)
{
    struct json_writer w = entry_begin(DEED_ENTRY_BYTES_MAX, DEED_ENTRY_SCHEMA);

    json_write_number(&w, "id", deed->id);
    json_write_number(&w, "at_ns", deed->at_ns);
    json_write_string(&w, "tenant", deed->tenant);
    json_write_string(&w, "actor", deed->actor);
    json_write_string(&w, "action", deed->action);
    json_write_string(&w, "target", deed->target);
    json_write_string(&w, "detail", deed->detail);
    return entry_end(&w, ret);
}
