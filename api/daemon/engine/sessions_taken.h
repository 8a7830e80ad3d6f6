/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sessions executions have: each at most one that waits or runs. Without a lock of its
 * own; it is the engine's.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_SESSIONS_TAKEN_H
#define SKILLVM_API_DAEMON_ENGINE_SESSIONS_TAKEN_H

#include "api/daemon/engine/execution.h"

#define SESSIONS_TAKEN_BUCKETS 256u

LIST_HEAD(session_takers, execution);

/* Zero-initialise. */
struct sessions_taken {
    struct session_takers buckets[SESSIONS_TAKEN_BUCKETS];
};

/* The execution that has a tenant's session and has not ended, or NULL. */
struct execution *sessions_taken_by(struct sessions_taken *taken, const char *tenant,
                                    const char *session);
/* Takes the session of an execution, if it has one, which nobody else has. */
void sessions_take(struct sessions_taken *taken, struct execution *e);
/* Gives it back; the answer of an execution that has ended does so already. */
void sessions_leave(struct execution *e);

#endif
