/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/cluster/loads.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct load_node {
    LIST_ENTRY(load_node) link;
    char node[FLEET_NODE_SIZE];
    char instance[NODE_INSTANCE_SIZE];
    uint64_t heard_ns;
    uint32_t free;
    struct load_tenant *tenants; /* owned */
    size_t n;
};

struct load_sum {
    LIST_ENTRY(load_sum) link;
    char tenant[TENANT_ID_SIZE];
    uint64_t running, waiting;
    unsigned n; /* nodes that say something of it */
};

static struct load_sums *bucket(const struct loads *loads, const char *tenant)
{
    uint32_t hash = 0x811c9dc5u; /* FNV-1a */

    for (; *tenant; tenant++)
        hash = (hash ^ (unsigned char)*tenant) * 0x01000193u;
    /* The cast: what is const is what is said, not the list's head. */
    return (struct load_sums *)(uintptr_t)&loads->sums[hash % LOADS_BUCKETS];
}

static struct load_sum *find_sum(const struct loads *loads, const char *tenant)
{
    struct load_sum *sum;

    LIST_FOREACH(sum, bucket(loads, tenant), link) {
        if (strcmp(sum->tenant, tenant) == 0)
            break;
    }
    return sum;
}

/* n: how many sums count this node. */
static void drop_sums(struct loads *loads, const struct load_tenant *tenants, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct load_sum *sum = find_sum(loads, tenants[i].tenant);

        if (sum && --sum->n == 0) {
            LIST_REMOVE(sum, link);
            free(sum);
        }
    }
}

/* Makes sure that there is a sum for each. What was made stays until it is dropped. */
static int make_sums(struct loads *loads, const struct load *load)
{
    for (size_t i = 0; i < load->n_tenants; i++) {
        struct load_sum *sum = find_sum(loads, load->tenants[i].tenant);

        if (!sum) {
            sum = calloc(1, sizeof(*sum));
            if (!sum) {
                drop_sums(loads, load->tenants, i);
                return -ENOMEM;
            }
            memcpy(sum->tenant, load->tenants[i].tenant, sizeof(sum->tenant));
            LIST_INSERT_HEAD(bucket(loads, sum->tenant), sum, link);
        }
        sum->n++;
    }
    return 0;
}

static void add(struct loads *loads, const struct load_node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        const struct load_tenant *t = &node->tenants[i];
        struct load_sum *sum = find_sum(loads, t->tenant);

        sum->running += t->running;
        sum->waiting += t->waiting;
        loads->running += t->running;
        loads->waiting += t->waiting;
    }
}

static void take_away(struct loads *loads, const struct load_node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        const struct load_tenant *t = &node->tenants[i];
        struct load_sum *sum = find_sum(loads, t->tenant);

        sum->running -= t->running;
        sum->waiting -= t->waiting;
        loads->running -= t->running;
        loads->waiting -= t->waiting;
    }
    drop_sums(loads, node->tenants, node->n);
}

static void drop(struct loads *loads, struct load_node *node)
{
    take_away(loads, node);
    LIST_REMOVE(node, link);
    loads->n--;
    free(node->tenants);
    free(node);
}

void loads_finish(struct loads *loads)
{
    while (LIST_FIRST(&loads->nodes))
        drop(loads, LIST_FIRST(&loads->nodes));
}

static struct load_node *find_node(const struct loads *loads, const char *name)
{
    struct load_node *node;

    LIST_FOREACH(node, &loads->nodes, link) {
        if (strcmp(node->node, name) == 0)
            break;
    }
    return node;
}

static int make_node(struct loads *loads, const struct load *load, struct load_node **ret)
{
    struct load_node *node;

    if (loads->n == LOADS_NODES_MAX)
        return -E2BIG;
    node = calloc(1, sizeof(*node));
    if (!node)
        return -ENOMEM;
    memcpy(node->node, load->node, sizeof(node->node));
    LIST_INSERT_HEAD(&loads->nodes, node, link);
    loads->n++;
    *ret = node;
    return 0;
}

/* What it said before of a tenant, most likely at the same place. */
static const struct load_tenant *find_before(const struct load_node *node, size_t at,
                                             const char *tenant)
{
    if (at < node->n && strcmp(node->tenants[at].tenant, tenant) == 0)
        return &node->tenants[at];
    for (size_t i = 0; i < node->n; i++) {
        if (strcmp(node->tenants[i].tenant, tenant) == 0)
            return &node->tenants[i];
    }
    return NULL;
}

static void find_charges(const struct load_node *node, const struct load *load,
                         struct load_charges *ret)
{
    if (strcmp(node->instance, load->instance) != 0)
        return;
    for (size_t i = 0; i < load->n_tenants; i++) {
        const struct load_tenant *now = &load->tenants[i];
        const struct load_tenant *before = find_before(node, i, now->tenant);
        /* Less than before: its rate was whole in between. */
        uint64_t known = before && before->taken <= now->taken ? before->taken : 0;

        if (now->taken == known)
            continue;
        memcpy(ret->list[ret->n].tenant, now->tenant, sizeof(now->tenant));
        ret->list[ret->n++].n = now->taken - known;
    }
}

int loads_take(struct loads *loads, const struct load *load, uint64_t now_ns,
               struct load_charges *ret_charges)
{
    struct load_node *node = find_node(loads, load->node);
    struct load_tenant *tenants;
    int r = node ? 0 : make_node(loads, load, &node);

    ret_charges->n = 0;
    if (r < 0)
        return r;
    tenants = calloc(load->n_tenants > 0 ? load->n_tenants : 1, sizeof(*tenants));
    if (!tenants)
        return -ENOMEM;
    memcpy(tenants, load->tenants, load->n_tenants * sizeof(*tenants));
    r = make_sums(loads, load);
    if (r < 0) {
        free(tenants);
        return r;
    }
    find_charges(node, load, ret_charges);
    take_away(loads, node);
    free(node->tenants);
    node->tenants = tenants;
    node->n = load->n_tenants;
    node->free = load->free;
    node->heard_ns = now_ns;
    memcpy(node->instance, load->instance, sizeof(node->instance));
    add(loads, node);
    return 0;
}

void loads_forget(struct loads *loads, uint64_t before_ns,
                  bool (*keep)(void *ctx, const char *node, const char *instance), void *ctx)
{
    struct load_node *next;

    for (struct load_node *node = LIST_FIRST(&loads->nodes); node; node = next) {
        next = LIST_NEXT(node, link);
        if (node->heard_ns < before_ns || !keep(ctx, node->node, node->instance))
            drop(loads, node);
    }
}

struct load_total loads_of(const struct loads *loads, const char *tenant)
{
    const struct load_sum *sum = find_sum(loads, tenant);

    return sum ? (struct load_total){sum->running, sum->waiting} : (struct load_total){0};
}

uint32_t loads_free(const struct loads *loads, const char *node, const char *instance)
{
    const struct load_node *said = find_node(loads, node);

    return said && strcmp(said->instance, instance) == 0 ? said->free : 0;
}

uint64_t loads_waits_since(const struct loads *loads, const char *tenant)
{
    const struct load_node *node;
    uint64_t oldest = 0;

    LIST_FOREACH(node, &loads->nodes, link) {
        const struct load_tenant *t = node->free > 0 ? find_before(node, 0, tenant) : NULL;
        uint64_t waits_ns = t ? t->waits_ms * NS_PER_MS : 0, since;

        if (!t || t->waiting == 0)
            continue;
        since = waits_ns < node->heard_ns ? node->heard_ns - waits_ns : 1;
        if (oldest == 0 || since < oldest)
            oldest = since;
    }
    return oldest;
}
