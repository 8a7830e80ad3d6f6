/* SPDX-License-Identifier: Apache-2.0 */
/* What retention asks of the registry besides reading: forgetting many rows, and the file. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_RETENTION_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_RETENTION_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_files.h"
#include "api/daemon/terms/limits.h"

/* An execution that has ended, as retention looks at it. Strings are owned. */
struct registry_spent {
    char *id;
    char *artifact_digest; /* or NULL */
    char *result_digest;   /* of the object that its result is; or NULL */
    uint64_t bytes;        /* of its result and its files */
};

void registry_spent_finish(struct registry_spent *spent);

/*
 * Reads up to max executions of a tenant (NULL: of all) that ended before a time, the oldest
 * first. *ret_n are the caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_execution_spent(struct registry *registry, const char *tenant, uint64_t before_ns,
                             size_t max, struct registry_spent *rows, size_t *ret_n,
                             struct err *err);
/* What the results and files of all executions take. 0 or -EIO. */
int registry_execution_bytes(struct registry *registry, uint64_t *ret, struct err *err);

/* A tenant that stores more than it may. */
struct registry_excess {
    char tenant[TENANT_ID_SIZE];
    uint64_t bytes; /* too many */
};

/* Reads up to max of them, by id from after one ("": the first). 0 or -EIO. */
int registry_tenants_over(struct registry *registry, const char *after, size_t max,
                          struct registry_excess *rows, size_t *ret_n, struct err *err);

/* What goes by its age: files that expired, sessions that nobody used. */
enum registry_aged { REGISTRY_AGED_FILES, REGISTRY_AGED_SESSIONS };

/* One of them. Strings are owned. */
struct registry_aged_row {
    char tenant[TENANT_ID_SIZE];
    char id[LIMIT_SESSION_ID_BYTES + 1];
    char *digest; /* of its object */
};
_Static_assert(REGISTRY_FILE_ID_SIZE <= LIMIT_SESSION_ID_BYTES + 1, "a file's id has room");

void registry_aged_row_finish(struct registry_aged_row *row);

/*
 * Reads up to max that are due at a time, of any tenant, the earliest first. *ret_n are the
 * caller's to finish. 0, -ENOMEM or -EIO.
 */
int registry_aged_due(struct registry *registry, enum registry_aged kind, uint64_t due_ns,
                      size_t max, struct registry_aged_row *rows, size_t *ret_n,
                      struct err *err);
/* Forgets one. Durable on return. 0; -ENOENT: it is gone, or not due any more; -EIO. */
int registry_aged_forget(struct registry *registry, enum registry_aged kind,
                         const struct registry_aged_row *row, uint64_t due_ns, struct err *err);

/*
 * Forgets executions that have ended, all or none; those that are gone already do not matter.
 * Durable on return. 0 or -EIO.
 */
int registry_executions_delete(struct registry *registry, const struct registry_spent *rows,
                               size_t n, struct err *err);
/* How many pages of the database file nothing uses. 0 or -EIO. */
int registry_free_pages(struct registry *registry, uint64_t *ret, struct err *err);
/* Gives up to so many of them back; *ret_left: how many there are still. 0 or -EIO. */
int registry_vacuum(struct registry *registry, unsigned pages, uint64_t *ret_left,
                    struct err *err);
/* Moves the log into the database file and cuts it to nothing. 0 or -EIO. */
int registry_checkpoint(struct registry *registry, struct err *err);

#endif
