/* SPDX-License-Identifier: Apache-2.0 */
/* The tenants of the registry. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_TENANTS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_TENANTS_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/tenant.h"

/* A tenant. The name is owned. */
struct registry_tenant {
    char id[TENANT_ID_SIZE];
    char *name;
    bool is_disabled;
    uint64_t created_ns;   /* realtime */
    uint64_t stored_bytes; /* what its skills, files and results take */
    struct tenant_limits limits;
};

void registry_tenant_finish(struct registry_tenant *tenant);
#define _cleanup_registry_tenant_ __attribute__((cleanup(registry_tenant_finish)))

/* 0, -ENOENT, -ENOMEM or -EIO. */
int registry_tenant_get(struct registry *registry, const char *id, struct registry_tenant *ret,
                        struct err *err);
/* The same by id or by name. */
int registry_tenant_find(struct registry *registry, const char *id_or_name,
                         struct registry_tenant *ret, struct err *err);
/*
 * Reads up to max tenants to rows, the newest first, from after a place (after_id NULL: the
 * beginning). *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_tenant_list(struct registry *registry, uint64_t after_ns, const char *after_id,
                         size_t max, struct registry_tenant *rows, size_t *ret_n,
                         struct err *err);
/*
 * Whether a tenant may store so many bytes more. 0; -EDQUOT with a sentence for the caller;
 * -ENOENT when there is no such tenant any more; -EIO. Only exact under the store's lock.
 */
int registry_tenant_check_room(struct registry *registry, const char *id, uint64_t bytes,
                               struct err *err);
/*
 * Calls visit for the digest of every object that a tenant's skills, executions and files name.
 * visit must not use the registry, and a negative result of its ends the walk. 0, that result,
 * or -EIO.
 */
typedef int registry_digest_visit(void *ctx, const char *digest);
int registry_tenant_digests(struct registry *registry, const char *id,
                            registry_digest_visit *visit, void *ctx, struct err *err);
/*
 * Forgets a tenant, its keys, skills, executions, files and usage; its audit stays. 0; -ENOENT;
 * -EBUSY while one of its executions has not ended; -EIO. The objects it named are the caller's
 * to remove.
 */
int registry_tenant_delete(struct registry *registry, const char *id, struct err *err);

#endif
