/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/nodes.h"

#include "api/daemon/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nodes_finish(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        free(nodes->list[i]);
    free(nodes->list);
    *nodes = (struct nodes){0};
}

/* Its place in the list, or where it would have one. */
static size_t find(const struct nodes *nodes, const char *name, bool *ret_there)
{
    size_t low = 0, high = nodes->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(nodes->list[middle]->entry.node, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_there = low < nodes->n && strcmp(nodes->list[low]->entry.node, name) == 0;
    return low;
}

static void remove_at(struct nodes *nodes, size_t at)
{
    free(nodes->list[at]);
    nodes->n--;
    memmove(&nodes->list[at], &nodes->list[at + 1], (nodes->n - at) * sizeof(struct node *));
}

/* Makes room for one at a place. NULL where there is none. */
static struct node *insert_at(struct nodes *nodes, size_t at)
{
    struct node *node;

    if (!nodes->list)
        nodes->list = calloc(NODES_MAX, sizeof(struct node *));
    if (!nodes->list || nodes->n == NODES_MAX)
        return NULL;
    node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    memmove(&nodes->list[at + 1], &nodes->list[at], (nodes->n - at) * sizeof(struct node *));
    nodes->list[at] = node;
    nodes->n++;
    return node;
}

void nodes_begin(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        nodes->list[i]->revision = 0;
}

void nodes_take(struct nodes *nodes, const struct cluster_entry *entry, uint64_t renewed_ns)
{
    struct node_entry read;
    enum node_refusal why;
    struct node *node;
    bool there;
    size_t at = find(nodes, entry->key, &there);

    if (there && entry->revision < nodes->list[at]->revision)
        return;
    if (entry->is_removed) {
        if (there)
            remove_at(nodes, at);
        return;
    }
    if (node_entry_parse(entry->key, entry->data, entry->len, &read, &why) < 0) {
        refused_note(&nodes->refused, CLUSTER_BUCKET, entry->key, why, 1);
        return;
    }
    node = there ? nodes->list[at] : insert_at(nodes, at);
    if (!node) {
        refused_note(&nodes->refused, CLUSTER_BUCKET, entry->key, NODE_TOO_MANY, 1);
        return;
    }
    *node = (struct node){.entry = read, .revision = entry->revision, .renewed_ns = renewed_ns};
}

bool nodes_have(const struct nodes *nodes, const char *node, const char *instance)
{
    bool there;
    size_t at = find(nodes, node, &there);

    return there && strcmp(nodes->list[at]->entry.instance, instance) == 0;
}

void nodes_forget_before(struct nodes *nodes, uint64_t renewed_ns)
{
    for (size_t i = nodes->n; i-- > 0;) {
        if (nodes->list[i]->renewed_ns < renewed_ns)
            remove_at(nodes, i);
    }
}

size_t nodes_place(const struct nodes *nodes, const char *name, size_t *ret_n)
{
    size_t place = 0;
    bool is_there = false;

    for (size_t i = 0; i < nodes->n; i++) {
        int order = strcmp(nodes->list[i]->entry.node, name);

        place += order < 0;
        is_there = is_there || order == 0;
    }
    *ret_n = nodes->n + !is_there;
    return place;
}
