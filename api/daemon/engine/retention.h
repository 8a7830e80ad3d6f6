/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets what is old or too much: executions with their results and files, input files that
 * expired, sessions that nobody used, old rows of the audit, objects that nothing names. A
 * thread of its own that works in small batches, so that nobody waits for it for long, and
 * gives the room back to the disk. It never touches an execution that has not ended, but writes
 * down the end of those whose result could not be stored; who reads what it removes goes on
 * reading.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_RETENTION_H
#define SKILLVM_API_DAEMON_ENGINE_RETENTION_H

#include "api/daemon/config/config.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/store.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct retention;

/* Borrowed. */
struct retention_env {
    struct registry *registry;
    struct store *store;
    struct objects *objects; /* of a cluster too; NULL: of none */
    bool in_cluster;         /* files and sessions expire as of retention_join */
};
struct changes;
struct shared_sessions;

/* Without a thread. 0 or -ENOMEM. */
int retention_create(const struct retention_env *env, const struct config_retention *settings,
                     struct retention **ret, struct err *err);
/* Starts the thread: one pass now, then one each interval. Once. 0 or -errno. */
int retention_start(struct retention *r, struct err *err);
/* Stops the thread. NULL is fine. */
void retention_destroy(struct retention *r);

/*
 * From now on files and sessions that expired go from all nodes of a cluster, as changes of it;
 * with NULL not any more, and nothing of that is on its way on return, once the cluster was
 * stopped. NULL for a retention is fine.
 */
void retention_join(struct retention *r, struct changes *changes,
                    struct shared_sessions *sessions);

/* Takes other settings; a pass with them follows at once. */
void retention_set(struct retention *r, const struct config_retention *settings);
/* When a file that is uploaded at a time (realtime) expires; INT64_MAX: never. */
uint64_t retention_file_expiry(struct retention *r, uint64_t created_ns);

/* The same of a session that was used at a time. */
uint64_t retention_session_expiry(struct retention *r, uint64_t used_ns);
/*
 * A session is used now: its row says so where that puts its end off by much, so that not every
 * use is a write to disk. On a full disk it stays as it was, which is logged. Other nodes of a
 * cluster know of it with the next pass.
 */
void retention_use_session(struct retention *r, struct registry_session *row);
/*
 * Finds a session, opens what is in it at the same moment, and uses it; shared: of a cluster,
 * or NULL. *ret_fd is the caller's. 0; -ENOENT also for another tenant's; -ENOMEM; -EIO; in a
 * cluster what objects_get gives too.
 */
int retention_open_session(struct retention *r, struct shared_sessions *shared,
                           const char *tenant, const char *id, struct registry_session *ret,
                           int *ret_fd, struct err *err);

/*
 * An execution has ended, and its result could not be stored: each pass tries to have its row
 * say that it failed, and why.
 */
void retention_end_later(struct retention *r, const char *tenant, const char *id,
                         const char *why);

/* How many sessions were removed because nobody used them, since the start. */
uint64_t retention_expired_sessions(struct retention *r);

/* What one pass removed. */
struct retention_report {
    unsigned executions;
    unsigned files;
    unsigned sessions;
    unsigned objects;
};

/*
 * One pass, as of a moment (realtime). It goes on where a part of it fails and returns the
 * first failure. 0 or -errno.
 */
int retention_pass(struct retention *r, uint64_t now_ns, struct retention_report *ret,
                   struct err *err);

#endif
