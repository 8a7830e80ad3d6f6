/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of tenants and keys, and of the skills, uploaded files and sessions of a cluster: the
 * one way to write their rows, but for what goes with a deleted tenant and when a key was used.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_CHANGES_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_CHANGES_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/change.h"

/*
 * Makes a change that removes nothing; durable on return. 0; -EEXIST: the name of a tenant or
 * the digest of a key is another's; -ENOENT: a key's tenant is not there; -EIO.
 */
int registry_change_make(struct registry *registry, const struct change *change,
                         struct err *err);
/* Says whether it could be made, and makes nothing. As above. */
int registry_change_check(struct registry *registry, const struct change *change,
                          struct err *err);
/* The change that makes a row what it is. 0, -ENOENT or -EIO. */
int registry_change_of(struct registry *registry, enum change_kind kind, const char *id,
                       struct change *ret, struct err *err);

/* The first row of a kind whose id is after this one; "": of all. As above. */
int registry_change_after(struct registry *registry, enum change_kind kind, const char *after,
                          struct change *ret, struct err *err);

/* The change at a place. 0 or -errno, which ends the whole. */
typedef int registry_change_at(const void *ctx, size_t at, struct change *ret);
/*
 * Makes n changes, in whatever order they are, and notes the place, or does nothing. A tenant
 * that is removed has no name and no keys that work from now on, and is one of
 * registry_removed. Those that contradict the others, which names are unique among, are left
 * out: *ret_conflicts. A key without a tenant is no row. 0, what at gave, or -EIO.
 */
int registry_changes_make(struct registry *registry, size_t n, registry_change_at *at,
                          const void *ctx, const struct change_place *place,
                          unsigned *ret_conflicts, struct err *err);
/* A tenant that is to be deleted, after this id. 0, -ENOENT or -EIO. */
int registry_removed_after(struct registry *registry, const char *after,
                           char ret[TENANT_ID_SIZE], struct err *err);
/* Whether an execution of a tenant waits or runs. 0 or -EIO. */
int registry_tenant_is_busy(struct registry *registry, const char *id, bool *ret,
                            struct err *err);

#endif
