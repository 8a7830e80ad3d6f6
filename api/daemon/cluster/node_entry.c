/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/node_entry.h"

#include "api/daemon/cluster/entry_values.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS_OF_ENTRY 1000000u
/* A number of an entry: whatever is counted, no more of it is true of a machine. */
#define NUMBER_MAX 1000000000000000ull

const char *const node_refusal_names[NODE_REFUSALS] = {
    [NODE_MALFORMED] = "malformed",   [NODE_NEWER] = "newer_schema",
    [NODE_WRONG_NAME] = "wrong_name", [NODE_TOO_LARGE] = "too_large",
    [NODE_TOO_MANY] = "too_many",
};

/* A string of characters that a word may have. 0 or -EINVAL. */
static int take_word(struct json_slice value, char *ret, size_t size)
{
    static const char also[] = "-_.+~";
    size_t len = value.len >= 2 ? value.len - 2 : 0;

    if (!json_is_string(value) || len >= size)
        return -EINVAL;
    for (size_t i = 1; i <= len; i++) {
        char c = value.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c != '\0' && strchr(also, c))))
            return -EINVAL;
    }
    memcpy(ret, value.data + 1, len);
    ret[len] = '\0';
    return 0;
}

static int take_member(struct json_slice object, const char *key, char *ret, size_t size)
{
    struct json_slice value;

    return json_find(object, key, &value) ? take_word(value, ret, size) : -EINVAL;
}

static int take_images(struct json_slice object, struct node_entry *e)
{
    struct json_items items = {0};
    struct json_slice item;

    if (!json_find(object, "images", &items.array) || !json_is_array(items.array))
        return -EINVAL;
    while (json_items_next(&items, &item)) {
        if (e->n_images == NODE_IMAGES_MAX ||
            take_word(item, e->images[e->n_images], NODE_IMAGE_SIZE) < 0)
            return -EINVAL;
        e->n_images++;
    }
    return 0;
}

/* 16 digits, as they are written. */
static int take_hash(struct json_slice value, uint64_t *ret)
{
    char digits[17];

    if (take_word(value, digits, sizeof(digits)) < 0 ||
        strspn(digits, "0123456789abcdef") != sizeof(digits) - 1)
        return -EINVAL;
    *ret = strtoull(digits, NULL, 16);
    return 0;
}

/* A node of an earlier version says nothing of them. */
static int take_snapshots(struct json_slice object, struct node_entry *e)
{
    struct json_items items = {0};
    struct json_slice item;

    if (!json_find(object, "snapshots", &items.array))
        return 0;
    if (!json_is_array(items.array))
        return -EINVAL;
    while (json_items_next(&items, &item)) {
        if (e->n_snapshots == NODE_SNAPSHOTS_MAX ||
            take_hash(item, &e->snapshots[e->n_snapshots]) < 0)
            return -EINVAL;
        e->n_snapshots++;
    }
    return 0;
}

static int take_labels(struct json_slice object, struct node_entry *e)
{
    struct json_member members[FLEET_LABELS_MAX];
    struct json_slice labels;
    size_t n;

    if (!json_find(object, "labels", &labels) ||
        json_text_members(labels.data, labels.len, members, FLEET_LABELS_MAX, &n, NULL) < 0)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        struct node_label *label = &e->labels[e->n_labels++];

        if (members[i].key.len >= sizeof(label->key) ||
            take_word(members[i].value, label->value, sizeof(label->value)) < 0)
            return -EINVAL;
        memcpy(label->key, members[i].key.data, members[i].key.len);
        if (!fleet_label_valid(label->key, label->value))
            return -EINVAL;
    }
    return 0;
}

static int take_all(struct json_slice object, struct node_entry *e)
{
    uint64_t started_ms, slots;

    if (take_member(object, "node", e->node, sizeof(e->node)) < 0 ||
        take_member(object, "instance", e->instance, sizeof(e->instance)) < 0 ||
        take_member(object, "state", e->state, sizeof(e->state)) < 0 ||
        take_member(object, "version", e->version, sizeof(e->version)) < 0 ||
        take_member(object, "cpu", e->cpu, sizeof(e->cpu)) < 0 ||
        entry_take_number(object, "started_ms", NUMBER_MAX / 100, &started_ms) < 0 ||
        entry_take_number(object, "memory_bytes", NUMBER_MAX, &e->memory_bytes) < 0 ||
        entry_take_number(object, "slots", UINT32_MAX, &slots) < 0 ||
        entry_take_bool(object, "kvm", &e->kvm) < 0)
        return -EINVAL;
    e->started_ns = started_ms * NS_PER_MS_OF_ENTRY;
    e->slots = (uint32_t)slots;
    if (!e->instance[0] || !e->state[0])
        return -EINVAL;
    return take_images(object, e) < 0 || take_labels(object, e) < 0 ||
                   take_snapshots(object, e) < 0
               ? -EINVAL
               : 0;
}

static int refuse(enum node_refusal why, enum node_refusal *ret)
{
    *ret = why;
    return -EINVAL;
}

int node_entry_parse(const char *key, const char *data, size_t len, struct node_entry *ret,
                     enum node_refusal *ret_why)
{
    _cleanup_free_ struct node_entry *entry = NULL;
    struct json_slice object;

    if (!fleet_node_valid(key))
        return refuse(NODE_WRONG_NAME, ret_why);
    if (entry_take_object(data, len, NODE_ENTRY_BYTES_MAX, NODE_ENTRY_SCHEMA, &object,
                          ret_why) < 0)
        return -EINVAL;
    entry = calloc(1, sizeof(*entry));
    if (!entry || take_all(object, entry) < 0)
        return refuse(NODE_MALFORMED, ret_why);
    if (strcmp(entry->node, key) != 0)
        return refuse(NODE_WRONG_NAME, ret_why);
    *ret = *entry;
    return 0;
}

void node_entry_write_members(struct json_writer *w, const struct node_entry *entry)
{
    json_write_string(w, "node", entry->node);
    json_write_string(w, "instance", entry->instance);
    json_write_string(w, "state", entry->state);
    json_write_string(w, "version", entry->version);
    json_write_string(w, "cpu", entry->cpu);
    json_write_bool(w, "kvm", entry->kvm);
    json_write_number(w, "memory_bytes", entry->memory_bytes);
    json_write_number(w, "slots", entry->slots);
    json_write_open(w, "images", '[');
    for (size_t i = 0; i < entry->n_images; i++)
        json_write_string(w, NULL, entry->images[i]);
    json_write_close(w, ']');
    json_write_open(w, "labels", '{');
    for (size_t i = 0; i < entry->n_labels; i++)
        json_write_string(w, entry->labels[i].key, entry->labels[i].value);
    json_write_close(w, '}');
}

/* Numbers of JSON have fewer bits. */
static void write_snapshots(struct json_writer *w, const struct node_entry *entry)
{
    char digits[17];

    json_write_open(w, "snapshots", '[');
    for (size_t i = 0; i < entry->n_snapshots; i++) {
        (void)snprintf(digits, sizeof(digits), "%016llx",
                       (unsigned long long)entry->snapshots[i]);
        json_write_string(w, NULL, digits);
    }
    json_write_close(w, ']');
}

int node_entry_write(const struct node_entry *entry, struct buf *ret)
{
    struct json_writer w = entry_begin(NODE_ENTRY_BYTES_MAX, NODE_ENTRY_SCHEMA);

    node_entry_write_members(&w, entry);
    write_snapshots(&w, entry);
    json_write_number(&w, "started_ms", entry->started_ns / NS_PER_MS_OF_ENTRY);
    return entry_end(&w, ret);
}
