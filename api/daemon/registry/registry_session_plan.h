/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as changes that every node of a cluster makes. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SESSION_PLAN_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SESSION_PLAN_H

#include "api/daemon/registry/registry_changes.h"
#include "api/daemon/registry/registry_sessions.h"

/*
 * The change that puts what a session holds in place of the object before ("": there is no such
 * session yet); all but created_ns and used_ns is read. 0; -EADDRINUSE where it has another
 * object by now; -EIO.
 */
int registry_session_plan(struct registry *registry, const struct registry_session *session,
                          const char *before, struct change *ret, struct err *err);
/*
 * The change that forgets one that nobody used since a time (realtime). 0; -ENOENT also for
 * another tenant's; -EIO.
 */
int registry_session_plan_delete(struct registry *registry, const char *tenant, const char *id,
                                 uint64_t used_ns, struct change *ret, struct err *err);
/*
 * The change that tells of the use of one here, of those that the cluster does not know: the
 * first whose entry is after this one ("": of all). 0, -ENOENT or -EIO.
 */
int registry_session_plan_use(struct registry *registry, const char *after, struct change *ret,
                              struct err *err);

#endif
