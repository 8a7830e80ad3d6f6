/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tenants and keys, and skills and uploaded files of a cluster, are changed: the one way
 * for all who change them. What follows from a change (objects that nobody names any more,
 * limits of what waits) is done here.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_CHANGES_H
#define SKILLVM_API_DAEMON_ENGINE_CHANGES_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/engine/engine.h"
#include "api/daemon/engine/skill_room.h"
#include "api/daemon/registry/registry_changes.h"
#include "api/daemon/store/store.h"

struct changes;

/* Borrowed. */
struct changes_env {
    struct registry *registry;
    struct store *store;
    struct engine *engine;
    struct cluster *cluster; /* NULL: it is on its own */
    struct skill_room *skill_room;
    uint64_t keys_timeout_ms;
};

/* With a cluster its changes are made here from now on. 0 or -errno. */
int changes_create(const struct changes_env *env, struct changes **ret, struct err *err);
/* After the cluster. NULL is fine. */
void changes_destroy(struct changes *changes);

/*
 * Makes the change that a plan works out, one after the other; durable on return. 0; what the
 * plan gives; as of registry_change_make; of a tenant's removal -ENOENT, and -EBUSY while one
 * of its executions has not ended. In a cluster it is made at every node, and -EAGAIN says
 * that it cannot be now, as of cluster_change. There tenants take turns with what they want,
 * and the daemon with what it changes by itself, however much that is: -EAGAIN also where a
 * turn did not come in a minute. NULL: the operator wants it, and waits for one of theirs.
 */
#define CHANGES_OF_DAEMON "" /* no tenant's id */
int changes_make(struct changes *changes, const char *tenant, change_plan *plan, void *ctx,
                 struct err *err);

#endif
