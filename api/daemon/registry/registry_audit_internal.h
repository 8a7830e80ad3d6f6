/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon's own audit and that of a cluster share: each has a statement for each of
 * these. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_AUDIT_INTERNAL_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_AUDIT_INTERNAL_H

#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_internal.h"

enum audit_statement {
    AUDIT_INSERT,       /* at_ns, tenant, actor, action, target, detail, node */
    AUDIT_LIST,         /* place, how many, unused, entry */
    AUDIT_LIST_TENANT,  /* the same, with the tenant as the third */
    AUDIT_PRUNE,        /* how many stay */
    AUDIT_PRUNE_TENANT, /* tenant, how many stay */
    AUDIT_STATEMENTS,
};

#endif
