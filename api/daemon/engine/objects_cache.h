/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a node of a cluster keeps of what skills and files hold: past a limit what nobody
 * asked for the longest goes, where the servers have it. Who has it open keeps it.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_OBJECTS_CACHE_H
#define SKILLVM_API_DAEMON_ENGINE_OBJECTS_CACHE_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/store.h"

/* Borrowed. */
struct objects_cache {
    struct registry *registry;
    struct store *store;
    struct cluster *cluster;
    uint64_t bytes_max;
    const char *kept; /* the digest of one that stays in any case */
};

/* *ret_bytes: how much there is then. 0; -EAGAIN where the servers cannot be asked; -errno. */
int objects_cache_trim(const struct objects_cache *cache, uint64_t *ret_bytes, struct err *err);

#endif
