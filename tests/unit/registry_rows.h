/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants and keys of a registry, in one line each. */
#ifndef SKILLVM_TESTS_UNIT_REGISTRY_ROWS_H
#define SKILLVM_TESTS_UNIT_REGISTRY_ROWS_H

#include "api/daemon/registry/registry_changes.h"

#include <stdio.h>

static inline int put_tenant(struct registry *registry, const char *id, const char *name,
                             uint64_t created_ns, bool is_disabled,
                             const struct tenant_limits *limits)
{
    struct change change = {
        .kind = CHANGE_TENANT,
        .tenant = {.is_disabled = is_disabled, .created_ns = created_ns, .limits = *limits}};

    (void)snprintf(change.id, sizeof(change.id), "%s", id);
    (void)snprintf(change.tenant.name, sizeof(change.tenant.name), "%s", name);
    return registry_change_make(registry, &change, NULL);
}

static inline int put_key(struct registry *registry, const char *id, const char *tenant,
                          const char *digest, bool is_operator, uint64_t revoked_ns)
{
    struct change change = {.kind = CHANGE_KEY,
                            .key = {.name = "n",
                                    .is_operator = is_operator,
                                    .created_ns = 6,
                                    .revoked_ns = revoked_ns}};

    (void)snprintf(change.id, sizeof(change.id), "%s", id);
    (void)snprintf(change.key.tenant, sizeof(change.key.tenant), "%s", tenant);
    (void)snprintf(change.key.digest, sizeof(change.key.digest), "%s", digest);
    return registry_change_make(registry, &change, NULL);
}

#endif
