/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of tenants and keys: the one way to write their rows, but for what goes with a
 * deleted tenant and when a key was used.
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
/* The change that makes a row what it is. 0, -ENOENT or -EIO. */
int registry_change_of(struct registry *registry, enum change_kind kind, const char *id,
                       struct change *ret, struct err *err);

#endif
