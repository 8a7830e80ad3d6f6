/* SPDX-License-Identifier: Apache-2.0 */
/* The audit: who did what to whom. Rows are only added, and the oldest forgotten. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_AUDIT_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_AUDIT_H

#include "api/daemon/registry/registry.h"

/* A row. Strings are owned and never NULL. */
struct registry_audit {
    uint64_t id; /* grows */
    uint64_t at_ns;
    const char *tenant; /* for whom the actor spoke; "" where nobody knows */
    const char *actor;  /* the id of a key, "uid:N", or an address */
    const char *action; /* "skill.push" */
    const char *target; /* what it was done to */
    const char *detail;
};

void registry_audit_finish(struct registry_audit *row);

/* Durable on return. Its id does not count, and NULL is "". 0 or -EIO. */
int registry_audit_append(struct registry *registry, const struct registry_audit *row,
                          struct err *err);
/*
 * The same for rows of one tenant's, as one commit: all of them or none. Of that tenant the
 * newest keep rows stay. 0 or -EIO.
 */
int registry_audit_append_all(struct registry *registry, const struct registry_audit *rows,
                              size_t n, uint64_t keep, struct err *err);
/*
 * Reads up to max rows of a tenant (NULL: all), the newest first, with ids below before_id (0:
 * all). *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_audit_list(struct registry *registry, const char *tenant, uint64_t before_id,
                        size_t max, struct registry_audit *rows, size_t *ret_n,
                        struct err *err);
/* Keeps the newest rows only. 0 or -EIO. */
int registry_audit_prune(struct registry *registry, uint64_t keep, struct err *err);
/* Keeps the newest rows of a tenant only. 0 or -EIO. */
int registry_audit_prune_tenant(struct registry *registry, const char *tenant, uint64_t keep,
                                struct err *err);

#endif
