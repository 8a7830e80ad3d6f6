/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon must not forget, in SQLite (WAL, synchronous=FULL, so that a row that was
 * acknowledged survives a power loss): skills and executions here; tenants, keys, files, usage,
 * audit and tool schemas in registry_*.h. One connection writes, one reads, each with its lock;
 * every call may be made from any thread. SQL is fixed text with bound values. What belongs to
 * a tenant is only found with its id.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_H

#include "api/daemon/terms/fleet_words.h"
#include "api/daemon/terms/tenant.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registry;

/* A registered skill. Strings are owned. */
struct registry_skill {
    const char *name;
    const char *version;
    const char *digest;
    const char *description;
    uint64_t created_ns;         /* realtime */
    const char *packages_digest; /* of the object of its packages; NULL: none */
    const char *packages; /* which they are, as wheels.h writes them; NULL: none were wanted */
    uint64_t packages_python; /* the minor version of Python 3 that they are for; 0: unknown */
    uint64_t bytes;           /* of its objects; 0 where an older skillvm stored it */
    uint64_t place;           /* among the versions of its name: a newer one has a larger one */
    bool is_floating; /* SKILL.md gives no version: other content may come under this one */
};

void registry_skill_finish(struct registry_skill *skill);
#define _cleanup_registry_skill_ __attribute__((cleanup(registry_skill_finish)))

/* An execution. Strings are owned; result is NULL until it finished. */
struct registry_execution {
    const char *id;
    char tenant[TENANT_ID_SIZE];
    const char *status;
    const char *skill_name;
    const char *skill_version;
    const char *skill_digest;
    char *result; /* the result JSON; NULL until it was read, and where it is an object */
    char node[FLEET_NODE_SIZE]; /* of a cluster, which it is; "" in lists, and of this daemon */
    char *result_digest;        /* of that object; NULL: none */
    uint64_t result_bytes;      /* 0 in lists */
    const char *artifact_digest; /* of the archive of its files; NULL: none, or not an object */
    uint64_t artifact_bytes;
    uint64_t accepted_ns;        /* realtime */
    uint64_t finished_ns;        /* 0 until it finished */
    const char *idempotency_key; /* written, not read; NULL: none */
    const char *request_digest;  /* of the request that brought the key; not read either */
};

void registry_execution_finish(struct registry_execution *execution);
#define _cleanup_registry_execution_ __attribute__((cleanup(registry_execution_finish)))

/*
 * Opens or creates the database file. 0; -EPROTO when the file is of a newer skillvm or no
 * database; -EIO.
 */
int registry_open(const char *path, struct registry **ret, struct err *err);
/* NULL is fine. */
void registry_close(struct registry *registry);

/* What names content by its digest, in place of a version. */
#define REGISTRY_BY_DIGEST "sha256:"

/*
 * Registers a skill, now; durable on return. Where its version is there with another digest,
 * *ret_previous gets that (caller frees): with replace that content is forgotten, and where it
 * is floating its version becomes "sha256:DIGEST". 0 also when it is there with the same
 * digest, whose packages stay unless replace is given; -EEXIST, with err, when what is there
 * has to stay: it has this version as its own, or with replace an execution of it waits or
 * runs; -ENOENT when there is no such tenant any more; -EIO.
 */
int registry_skill_put(struct registry *registry, const char *tenant,
                       const struct registry_skill *skill, bool replace, char **ret_previous,
                       struct err *err);
/*
 * Whether to register a skill where another has its name and version changes nothing: that one
 * has the same content and, with replace, the same packages.
 */
bool registry_skill_is_there(const struct registry_skill *there,
                             const struct registry_skill *skill, bool replace);
/* -EEXIST: a skill's version is taken by content of another digest. */
int registry_skill_taken(const struct registry_skill *skill, const char *digest,
                         struct err *err);
/*
 * Finds a skill; version NULL means the one registered last, "sha256:DIGEST" what has this
 * digest. 0; -ENOENT with *ret_name_known saying whether the name has other versions; -EIO.
 */
int registry_skill_get(struct registry *registry, const char *tenant, const char *name,
                       const char *version, struct registry_skill *ret, bool *ret_name_known,
                       struct err *err);

/*
 * Calls visit for every skill of a tenant, by name, the newest version first. The row is
 * borrowed, and a negative result of visit ends the walk. Others use the registry meanwhile,
 * and so may visit. 0, that result, -ENOMEM or -EIO.
 */
typedef int registry_skill_visit(void *ctx, const struct registry_skill *skill);
int registry_skill_each(struct registry *registry, const char *tenant,
                        registry_skill_visit *visit, void *ctx, struct err *err);
/*
 * Forgets a skill by name, version and digest: other content that took its place since it was
 * looked up stays. Durable on return. 0, -ENOENT or -EIO.
 */
int registry_skill_delete(struct registry *registry, const char *tenant,
                          const struct registry_skill *skill, struct err *err);
/* Says whether a skill, an execution, a file or a session of any tenant names this object. 0 or
 * -EIO. */
int registry_digest_used(struct registry *registry, const char *digest, bool *ret,
                         struct err *err);

/*
 * Writes the row of an accepted one; durable on return. 0; -EEXIST when the tenant uses the key
 * already; -ENOENT when there is no such tenant any more; -EIO.
 */
int registry_execution_accept(struct registry *registry, const char *tenant,
                              const struct registry_execution *execution, struct err *err);
/* The execution that a tenant began under a key. 0 (both strings are the caller's), -ENOENT or
 * -EIO. */
int registry_execution_by_key(struct registry *registry, const char *tenant, const char *key,
                              char **ret_id, char **ret_request_digest, struct err *err);

struct registry_session;

/* How an execution ended. Strings are borrowed. */
struct registry_ending {
    const char *status;
    const char *result; /* the result JSON */
    size_t result_len;
    uint64_t finished_ns;
    const char *artifact_digest; /* NULL: no files */
    uint64_t artifact_bytes;
    const struct registry_session *session; /* what it left of its session; NULL: as it was */
    uint64_t cpu_ms; /* it took: counts as used by its tenant on the day it finished */
    bool is_shared;  /* with a cluster, which is to be told */
};

/*
 * Stores it, and what it used, or neither; durable on return. 0; -ENOENT of one that is shared
 * and is another process's by now, or of a tenant that was deleted; -EIO.
 */
int registry_execution_end(struct registry *registry, const char *id,
                           const struct registry_ending *ending, struct err *err);
/* Without its result. 0; -ENOENT also for another tenant's; -EIO. */
int registry_execution_get(struct registry *registry, const char *tenant, const char *id,
                           struct registry_execution *ret, struct err *err);
/*
 * Reads the result to a row that was read: nothing where it has none or is an object. Looks at
 * rows do not wait for it, other results do. 0; -ENOENT where it was removed; -ENOMEM; -EIO.
 */
int registry_execution_read_result(struct registry *registry, struct registry_execution *row,
                                   struct err *err);
/* One execution of this daemon, of any tenant, that was accepted and never ended. 0, -ENOENT
 * when there is none, or -EIO. */
int registry_execution_unfinished(struct registry *registry, struct registry_execution *ret,
                                  struct err *err);

/* Which executions a list has: newest first, those after a place in it. */
struct registry_page {
    const char *skill;     /* name, or NULL for all */
    const char *status;    /* or NULL for all */
    const char *or_status; /* with that one; or NULL */
    uint64_t after_ns;     /* accepted_ns of the last one of the page before */
    const char *after_id;  /* its id; NULL on the first page */
    size_t max;            /* rows has that many places */
};

/* Reads a page to rows, of which *ret_n are the caller's to finish. 0, -ENOMEM or -EIO. */
int registry_execution_list(struct registry *registry, const char *tenant,
                            const struct registry_page *page, struct registry_execution *rows,
                            size_t *ret_n, struct err *err);

#endif
