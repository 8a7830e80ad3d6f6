/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions of the registry: files that an execution finds as an earlier one left them. What
 * is in one is an object; registry_execution_end changes it, in the step that ends an
 * execution.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SESSIONS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SESSIONS_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/limits.h"

/* A session. Strings are owned, but for what is written. */
struct registry_session {
    char tenant[TENANT_ID_SIZE];
    char id[LIMIT_SESSION_ID_BYTES + 1]; /* the caller's word for it */
    char *digest;
    uint64_t bytes;         /* of its object */
    uint64_t files;         /* in it, and empty folders */
    uint64_t content_bytes; /* of these */
    uint64_t created_ns;    /* realtime */
    uint64_t changed_ns;
    uint64_t used_ns;
};

void registry_session_finish(struct registry_session *session);
#define _cleanup_registry_session_ __attribute__((cleanup(registry_session_finish)))

/* 0; -ENOENT also for another tenant's; -ENOMEM; -EIO. */
int registry_session_get(struct registry *registry, const char *tenant, const char *id,
                         struct registry_session *ret, struct err *err);
/*
 * Reads up to max sessions of a tenant to rows, the one changed last first. *ret_n are the
 * caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_session_list(struct registry *registry, const char *tenant, size_t max,
                          struct registry_session *rows, size_t *ret_n, struct err *err);
/* How many sessions a tenant has. 0 or -EIO. */
int registry_session_count(struct registry *registry, const char *tenant, uint64_t *ret,
                           struct err *err);
/* How many there are of all tenants, and the bytes of their objects. 0 or -EIO. */
int registry_session_totals(struct registry *registry, uint64_t *ret_n, uint64_t *ret_bytes,
                            struct err *err);
/* It was used now. 0; -ENOENT; -EIO. */
int registry_session_use(struct registry *registry, const char *tenant, const char *id,
                         uint64_t now_ns, struct err *err);
/*
 * Changes what is in it, unless that is not the object before any more. Durable on return. 0;
 * -ENOENT also for another tenant's, and where it has another object; -EIO.
 */
int registry_session_change(struct registry *registry, const struct registry_session *session,
                            const char *before, struct err *err);
/* Durable on return. 0; -ENOENT also for another tenant's; -EIO. */
int registry_session_delete(struct registry *registry, const char *tenant, const char *id,
                            struct err *err);

#endif
