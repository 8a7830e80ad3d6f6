/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/load_entry.h"

#include "api/daemon/cluster/entry_values.h"

#include <errno.h>
#include <string.h>

#define COUNT_MAX 1000000u /* of executions at a node */
#define WAITS_MAX 1000000000000ull
#define TAKEN_MAX 1000000000000ull

static int take_count(struct json_items *items, uint64_t max, uint64_t *ret)
{
    struct json_slice value;

    return json_items_next(items, &value) ? json_take_whole(value, max, ret) : -EINVAL;
}

/* An identifier as tenants have it: nothing in it is escaped. */
static int take_tenant(struct json_items *items, char ret[TENANT_ID_SIZE])
{
    struct json_slice value;

    if (!json_items_next(items, &value) || !json_is_string(value) || value.len < 2 ||
        value.len - 2 >= TENANT_ID_SIZE)
        return -EINVAL;
    memcpy(ret, value.data + 1, value.len - 2);
    ret[value.len - 2] = '\0';
    return tenant_id_valid(ret) ? 0 : -EINVAL;
}

/* What stands behind these a later version added. */
static int take_one(struct json_slice array, struct load_tenant *ret)
{
    struct json_items items = {.array = array};
    uint64_t running, waiting;

    if (!json_is_array(array) || take_tenant(&items, ret->tenant) < 0 ||
        take_count(&items, COUNT_MAX, &running) < 0 ||
        take_count(&items, COUNT_MAX, &waiting) < 0 ||
        take_count(&items, WAITS_MAX, &ret->waits_ms) < 0 ||
        take_count(&items, TAKEN_MAX, &ret->taken) < 0)
        return -EINVAL;
    ret->running = (uint32_t)running;
    ret->waiting = (uint32_t)waiting;
    return 0;
}

static int take_tenants(struct json_slice object, struct load *ret)
{
    struct json_items items = {0};
    struct json_slice item;

    if (!json_find(object, "tenants", &items.array) || !json_is_array(items.array))
        return -EINVAL;
    while (json_items_next(&items, &item)) {
        if (ret->n_tenants == LOAD_TENANTS_MAX ||
            take_one(item, &ret->tenants[ret->n_tenants]) < 0)
            return -EINVAL;
        ret->n_tenants++;
    }
    return 0;
}

int load_entry_parse(const char *key, const char *data, size_t len, struct load *ret,
                     enum node_refusal *ret_why)
{
    struct json_slice object;
    uint64_t free_slots;

    ret->n_tenants = 0;
    *ret_why = NODE_WRONG_NAME;
    if (!fleet_node_valid(key))
        return -EINVAL;
    if (entry_take_object(data, len, LOAD_BYTES_MAX, LOAD_SCHEMA, &object, ret_why) < 0)
        return -EINVAL;
    *ret_why = NODE_MALFORMED;
    if (entry_take_text(object, "node", ret->node, sizeof(ret->node)) < 0 ||
        entry_take_text(object, "instance", ret->instance, sizeof(ret->instance)) < 0 ||
        !ret->instance[0] || entry_take_number(object, "free", COUNT_MAX, &free_slots) < 0 ||
        take_tenants(object, ret) < 0)
        return -EINVAL;
    ret->free = (uint32_t)free_slots;
    *ret_why = NODE_WRONG_NAME;
    return strcmp(ret->node, key) == 0 ? 0 : -EINVAL;
}

int load_entry_write(const struct load *load, struct buf *ret)
{
    struct json_writer w = entry_begin(LOAD_BYTES_MAX, LOAD_SCHEMA);

    json_write_string(&w, "node", load->node);
    json_write_string(&w, "instance", load->instance);
    json_write_number(&w, "free", load->free);
    json_write_open(&w, "tenants", '[');
    for (size_t i = 0; i < load->n_tenants; i++) {
        const struct load_tenant *t = &load->tenants[i];

        json_write_open(&w, NULL, '[');
        json_write_string(&w, NULL, t->tenant);
        json_write_number(&w, NULL, t->running);
        json_write_number(&w, NULL, t->waiting);
        json_write_number(&w, NULL, t->waits_ms);
        json_write_number(&w, NULL, t->taken);
        json_write_close(&w, ']');
    }
    json_write_close(&w, ']');
    return entry_end(&w, ret);
}
