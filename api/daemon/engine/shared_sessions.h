/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions of a cluster: one execution of all nodes has one at a time, and finds what the
 * one before left, whichever node that ran at. What is in one is an object at the servers, its
 * row a change. A daemon on its own has none of this.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_SHARED_SESSIONS_H
#define SKILLVM_API_DAEMON_ENGINE_SHARED_SESSIONS_H

#include "api/daemon/engine/changes.h"
#include "api/daemon/engine/objects.h"
#include "api/daemon/registry/registry_sessions.h"

struct shared_sessions;

/* Borrowed. */
struct shared_sessions_env {
    struct registry *registry;
    struct cluster *cluster;
    struct objects *objects;
    struct skill_room *room;
};

/* NULL without memory. */
struct shared_sessions *shared_sessions_create(const struct shared_sessions_env *env);
/* How they are changed, before anybody does. */
void shared_sessions_join(struct shared_sessions *s, struct changes *changes);
/* NULL is fine. */
void shared_sessions_destroy(struct shared_sessions *s);

/*
 * From now on an execution that is about to be accepted here has a session, until it has ended;
 * or a caller has (execution ""), who changes something of it, until it is given. 0;
 * -EADDRINUSE: another one has it; -EAGAIN. Where s or id is NULL it does nothing, as the next.
 */
int shared_sessions_take(struct shared_sessions *s, const char *tenant, const char *id,
                         const char *execution, struct err *err);
/* It has it no more, also where it was not accepted after all. */
void shared_sessions_give(struct shared_sessions *s, const char *tenant, const char *id,
                          const char *execution);
/*
 * Finds one and opens what is in it, as the rows here are: *ret_fd is the caller's. 0; -ENOENT
 * also for another tenant's; what objects_get gives.
 */
int shared_sessions_open(struct shared_sessions *s, const char *tenant, const char *id,
                         struct registry_session *ret, int *ret_fd, struct err *err);
/*
 * What who has it made of a session takes the place of what it was (before; zeros: nothing): fd
 * has it, of the digest and size that the row says. 0; -EOWNERDEAD: the execution has been
 * ended elsewhere; -EADDRINUSE: somebody changed it meanwhile; -EDQUOT; -EAGAIN, also where it
 * is not known whether it did.
 */
int shared_sessions_commit(struct shared_sessions *s, const char *execution,
                           const struct registry_session *session,
                           const struct registry_session *before, int fd, struct err *err);
/* A caller removes one that no execution has. 0; -ENOENT; -EADDRINUSE; -EAGAIN. */
int shared_sessions_remove(struct shared_sessions *s, const char *tenant, const char *id,
                           struct err *err);
/* Forgets one that nobody used since a time. 0; -ENOENT; -EAGAIN; -EIO. */
int shared_sessions_expire(struct shared_sessions *s, const char *tenant, const char *id,
                           uint64_t used_ns, struct err *err);
/* Tells the other nodes of what was used here alone. 0; -EAGAIN; -EIO. */
int shared_sessions_tell_uses(struct shared_sessions *s, struct err *err);

/*
 * Whether a tenant may have a session of so many bytes, one more or in place of what it has, by
 * the rows here; of a daemon on its own too. 0; -EDQUOT; -EIO.
 */
int sessions_check_room(struct registry *registry, const char *tenant, const char *id,
                        uint64_t bytes, struct err *err);

#endif
