/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node tells the others many times a second of what its tenants have there, so that
 * their limits count over all nodes: JSON, which no stream keeps, under its name. A broken or
 * hostile node may have written it.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_LOAD_ENTRY_H
#define SKILLVM_API_DAEMON_CLUSTER_LOAD_ENTRY_H

#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/terms/tenant.h"

#define LOAD_SCHEMA      1u
#define LOAD_BYTES_MAX   32768u
#define LOAD_TENANTS_MAX 256u /* of more, those past it are not told */

struct load_tenant {
    char tenant[TENANT_ID_SIZE];
    uint32_t running, waiting; /* executions */
    uint64_t waits_ms;         /* for how long the first of them has */
    uint64_t taken;            /* of its rate, since that was whole */
};

struct load {
    char node[FLEET_NODE_SIZE];
    char instance[NODE_INSTANCE_SIZE];
    uint32_t free; /* slots */
    struct load_tenant tenants[LOAD_TENANTS_MAX];
    size_t n_tenants;
};

/*
 * Reads what came under a node's name. 0, or -EINVAL with *ret_why; what *ret has is nothing
 * then.
 */
int load_entry_parse(const char *key, const char *data, size_t len, struct load *ret,
                     enum node_refusal *ret_why);
/* 0, or -E2BIG or -ENOMEM. */
int load_entry_write(const struct load *load, struct buf *ret);

#endif
