/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other nodes said last of their tenants, and the sums of it. No lock and no clock:
 * whoever has it brings both.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_LOADS_H
#define SKILLVM_API_DAEMON_CLUSTER_LOADS_H

#include "api/daemon/cluster/load_entry.h"

#include <sys/queue.h>

#define LOADS_NODES_MAX 1024u
#define LOADS_BUCKETS   256u

struct load_node;
struct load_sum;

struct loads {
    LIST_HEAD(load_nodes, load_node) nodes;
    size_t n;
    LIST_HEAD(load_sums, load_sum) sums[LOADS_BUCKETS]; /* by tenant; those that are not 0 */
    uint64_t running, waiting;                          /* of all tenants */
};

/* How much of a tenant's rate a message told that was not told before. */
struct load_charge {
    char tenant[TENANT_ID_SIZE];
    uint64_t n;
};
struct load_charges {
    struct load_charge list[LOAD_TENANTS_MAX];
    size_t n;
};

void loads_finish(struct loads *loads);
/*
 * Takes what a node says in place of what it said before, at a moment (monotonic). A process's
 * first word charges nothing: nobody knows what of it was known before. 0; -E2BIG: there is no
 * room for another node; -ENOMEM.
 */
int loads_take(struct loads *loads, const struct load *load, uint64_t now_ns,
               struct load_charges *ret_charges);
/* Forgets nodes that said nothing since a moment, and those that are not to be kept. */
void loads_forget(struct loads *loads, uint64_t before_ns,
                  bool (*keep)(void *ctx, const char *node, const char *instance), void *ctx);

/* What runs and waits of a tenant at all of them. */
struct load_total {
    uint64_t running, waiting;
};
struct load_total loads_of(const struct loads *loads, const char *tenant);
/* How many slots are free at a process, as it said last; 0: it says nothing. */
uint32_t loads_free(const struct loads *loads, const char *node, const char *instance);
/*
 * Since when its first waits at a node that has a free slot (monotonic, as far as can be told);
 * 0: none does.
 */
uint64_t loads_waits_since(const struct loads *loads, const char *tenant);

#endif
