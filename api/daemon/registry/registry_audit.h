/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit: who did what to whom. Rows are only added, and the oldest forgotten. Those of a
 * node of a cluster are all nodes', each known by its entry, and in the order of their times.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_AUDIT_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_AUDIT_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/change.h"
#include "api/daemon/terms/deed.h"

/* A row. Strings are owned and never NULL. */
struct registry_audit {
    uint64_t place; /* in a list, with entry */
    uint64_t id;    /* grows at the node that wrote it */
    uint64_t at_ns;
    const char *tenant; /* for whom the actor spoke; "" where nobody knows */
    const char *actor;  /* the id of a key, "uid:N", or an address */
    const char *action; /* "skill.push" */
    const char *target; /* what it was done to */
    const char *detail;
    const char *entry; /* as of struct deed; "": no cluster knows it */
};

void registry_audit_finish(struct registry_audit *row);

/* Durable on return. Its ids and entry do not count, and NULL is "". 0 or -EIO. */
int registry_audit_append(struct registry *registry, const struct registry_audit *row,
                          struct err *err);
/*
 * The same for rows of one tenant's, as one commit: all of them or none. Of that tenant the
 * newest keep rows stay. 0 or -EIO.
 */
int registry_audit_append_all(struct registry *registry, const struct registry_audit *rows,
                              size_t n, uint64_t keep, struct err *err);
/*
 * Reads up to max rows of a tenant (NULL: all), the newest first, behind the row of this place
 * and entry (0: from the first). *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_audit_list(struct registry *registry, const char *tenant, uint64_t before,
                        const char *before_entry, size_t max, struct registry_audit *rows,
                        size_t *ret_n, struct err *err);
/*
 * Keeps the newest rows only: of a cluster's those of all nodes, and as many that were written
 * here. 0 or -EIO.
 */
int registry_audit_prune(struct registry *registry, uint64_t keep, struct err *err);
/* Keeps the newest rows of a tenant only, of those that were written here. 0 or -EIO. */
int registry_audit_prune_tenant(struct registry *registry, const char *tenant, uint64_t keep,
                                struct err *err);

/*
 * From now on the audit is that of a cluster, and what is written here is of a node of this
 * name, as is what no cluster knows yet; of that LIMIT_AUDIT_TOLD of the newest are to be told.
 * Once, before there is a second thread. 0 or -EIO.
 */
int registry_audit_share(struct registry *registry, const char *node, struct err *err);
/* The first own row behind this id that is not told. 0, -ENOENT or -EIO. */
int registry_audit_untold(struct registry *registry, uint64_t after_id, struct deed *ret,
                          struct err *err);
/* How many there are. 0 or -EIO. */
int registry_audit_count_untold(struct registry *registry, uint64_t *ret, struct err *err);
/* Those up to this id are told now (realtime). 0 or -EIO. */
int registry_audit_told(struct registry *registry, uint64_t up_to_id, uint64_t now_ns,
                        struct err *err);
/*
 * What was told since a time (realtime; 0: ever, of which LIMIT_AUDIT_TOLD of the newest) is to
 * be told as if it were not. 0 or -EIO.
 */
int registry_audit_untell(struct registry *registry, uint64_t since_ns, struct err *err);

/* The row at a place. 0; -EINVAL: it is none, and left out. */
typedef int registry_deed_at(const void *ctx, size_t at, struct deed *ret);
/*
 * Makes rows of n of other nodes, where they are not there, and notes the place, or does
 * nothing. Of each tenant others' rows stay that are among the newest keep ones of all, and all
 * that were written here. 0 or -EIO.
 */
int registry_audit_take(struct registry *registry, size_t n, registry_deed_at *at,
                        const void *ctx, uint64_t keep, const struct change_place *place,
                        struct err *err);

#endif
