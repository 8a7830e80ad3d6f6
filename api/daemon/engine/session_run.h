/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of an execution that runs: what it finds there, what comes back, and whether that
 * takes its place. It does so in the step that stores the result, or not at all, but in a
 * cluster before that; a run that did not end by itself leaves the session as it was. No two
 * runs have one session at a time, which is the engine's to see to. All of it does nothing for
 * an execution without one.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_SESSION_RUN_H
#define SKILLVM_API_DAEMON_ENGINE_SESSION_RUN_H

#include "api/daemon/engine/execution_run.h"
#include "api/daemon/engine/left.h"
#include "api/daemon/engine/result.h"
#include "api/daemon/registry/registry_sessions.h"

enum session_fate { SESSION_OPEN, SESSION_COMMITTED, SESSION_REFUSED };

struct session_run {
    const struct execution_env *env; /* borrowed, as the next */
    struct execution *e;
    struct left left;
    struct registry_session found; /* what it began with; zeros: nothing */
    struct registry_session made;  /* what it left; borrows the digest */
    enum session_fate fate;
    char reason[ERR_MESSAGE_MAX + 64]; /* why it is refused */
};

struct session_run session_run_init(const struct execution_env *env, struct execution *e);
void session_run_finish(struct session_run *run);

/* Only looks at what there is, of an execution that will not run. */
void session_run_look(struct session_run *run);
/* Gives the job what is in the session, which counts as used. 0 or -EIO. */
int session_run_open(struct session_run *run, struct err *err);
/* The next bytes of what comes back. As artifacts_push. */
int session_run_take(struct session_run *run, const void *data, size_t len, struct err *err);
/*
 * All came. ended says why it is not kept, whatever came, or is NULL. False where the guest
 * gave what no guest of ours does.
 */
bool session_run_complete(struct session_run *run, const struct guest_exit *exit,
                          const char *ended);
/* It is not kept, for a reason; the first one counts. */
void session_run_refuse(struct session_run *run, const char *reason);
/*
 * In a cluster, before the result is stored: what is kept takes its place at all nodes, if the
 * tenant may store it. What follows does nothing then.
 */
void session_run_share(struct session_run *run);
/* Under the store lock: makes an object of what is kept, if the tenant may store it. */
void session_run_store(struct session_run *run, struct store *store);
/* What is to be stored with the result; NULL: nothing. */
const struct registry_session *session_run_change(struct session_run *run, uint64_t now_ns);
/*
 * Under the store lock, where there is one: removes the object that no row names now.
 * is_stored: the result is, with what session_run_change gave.
 */
void session_run_settle(struct session_run *run, struct store *store, bool is_stored);
/* What the result says. */
struct result_session session_run_tell(const struct session_run *run);

#endif
