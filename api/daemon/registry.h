/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon must not forget: registered skills and executions, in SQLite (WAL,
 * synchronous=FULL, so that a row that was acknowledged survives a power loss). One connection,
 * one lock; every call may be made from any thread. SQL is fixed text with bound values.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_H
#define SKILLVM_API_DAEMON_REGISTRY_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registry;

/* A registered skill. Strings are owned. */
struct registry_skill {
    char *name;
    char *version;
    char *digest;
    char *description;
};

void registry_skill_finish(struct registry_skill *skill);

/* An execution. Strings are owned; result is NULL until it finished. */
struct registry_execution {
    char *id;
    char *status;
    char *skill_name;
    char *skill_version;
    char *skill_digest;
    char *result; /* the result JSON */
    uint64_t accepted_ns;
};

void registry_execution_finish(struct registry_execution *execution);

/*
 * Opens or creates the database file. 0; -EPROTO when the file is of a newer skillvm or no
 * database; -EIO.
 */
int registry_open(const char *path, struct registry **ret, struct err *err);
/* NULL is fine. */
void registry_close(struct registry *registry);

/*
 * Registers a skill; durable on return. 0 also when it is there with the same digest; -EEXIST
 * when it is there with another one, which *ret_existing gets (caller frees); -EIO.
 */
int registry_skill_put(struct registry *registry, const char *name, const char *version,
                       const char *digest, const char *description, char **ret_existing,
                       struct err *err);
/*
 * Finds a skill; version NULL means the one registered last. 0; -ENOENT with *ret_name_known
 * saying whether the name has other versions; -EIO.
 */
int registry_skill_get(struct registry *registry, const char *name, const char *version,
                       struct registry_skill *ret, bool *ret_name_known, struct err *err);

/* Writes the row of an accepted execution; durable on return. 0 or -EIO. */
int registry_execution_accept(struct registry *registry, const char *id, const char *skill_name,
                              const char *skill_version, const char *skill_digest,
                              uint64_t accepted_ns, struct err *err);
/* Stores how it ended; durable on return. 0 or -EIO. */
int registry_execution_end(struct registry *registry, const char *id, const char *status,
                           const char *result, size_t result_len, uint64_t finished_ns,
                           struct err *err);
/* 0, -ENOENT or -EIO. */
int registry_execution_get(struct registry *registry, const char *id,
                           struct registry_execution *ret, struct err *err);
/* One execution that was accepted and never ended. 0, -ENOENT when there is none, or -EIO. */
int registry_execution_unfinished(struct registry *registry, struct registry_execution *ret,
                                  struct err *err);

#endif
