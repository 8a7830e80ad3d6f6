/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/session_run.h"

#include "api/daemon/engine/retention.h"
#include "api/daemon/engine/shared_sessions.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct artifacts_limits limits = {.files = LIMIT_SESSION_FILES,
                                               .folders = LIMIT_FOLDERS,
                                               .names_bytes = LIMIT_NAMES_BYTES,
                                               .bytes = LIMIT_SESSION_BYTES,
                                               .file_bytes = LIMIT_SESSION_BYTES,
                                               .is_tree = true};

struct session_run session_run_init(const struct execution_env *env, struct execution *e)
{
    return (struct session_run){.env = env, .e = e, .left = left_init()};
}

void session_run_finish(struct session_run *run)
{
    left_finish(&run->left);
    registry_session_finish(&run->found);
}

/* In a cluster what the one before left may have to be read from the servers. */
static int find(struct session_run *run, struct err *err)
{
    const struct execution_env *env = run->env;
    struct execution *e = run->e;
    int r = retention_open_session(env->retention, env->sessions, e->tenant, e->session,
                                   &run->found, &e->job.session.fd, err);

    if (r == 0)
        e->job.session.len = run->found.bytes;
    return r;
}

void session_run_look(struct session_run *run)
{
    const struct execution *e = run->e;

    if (e->session)
        (void)registry_session_get(run->env->registry, e->tenant, e->session, &run->found,
                                   NULL);
}

int session_run_open(struct session_run *run, struct err *err)
{
    int r = run->e->session ? find(run, err) : 0;

    return r == -ENOENT ? 0 : r;
}

int session_run_take(struct session_run *run, const void *data, size_t len, struct err *err)
{
    return left_push(&run->left, run->env->store, &limits, data, len, err);
}

void session_run_refuse(struct session_run *run, const char *reason)
{
    /* What all nodes have is not taken back. */
    if (run->fate == SESSION_REFUSED || !run->e->session ||
        (run->fate == SESSION_COMMITTED && run->env->sessions))
        return;
    run->fate = SESSION_REFUSED;
    (void)snprintf(run->reason, sizeof(run->reason), "%s", reason);
    (void)skill_strings_add(&run->e->warnings, "session %s is as it was before: %s",
                            run->e->session, reason);
}

static void refuse_size(struct session_run *run)
{
    char reason[192];

    (void)snprintf(reason, sizeof(reason),
                   "it is larger than a session may be: %u files and empty folders, %llu MiB; "
                   "leave there what the next run needs, and write the rest to /tmp or as "
                   "artifacts",
                   LIMIT_SESSION_FILES, LIMIT_SESSION_BYTES / LIMIT_MIB);
    session_run_refuse(run, reason);
}

static void warn(struct session_run *run, const struct skill_strings *warnings)
{
    for (size_t i = 0; i < warnings->len; i++)
        (void)skill_strings_add(&run->e->warnings, "in the session %s", warnings->items[i]);
}

static bool complete(struct session_run *run)
{
    const struct artifacts_kept *kept;
    struct err err = {0};

    if (!run->left.artifacts) {
        session_run_refuse(run, "the guest handed over nothing");
        return false;
    }
    if (left_complete(&run->left, &err) < 0) {
        session_run_refuse(run, err.message);
        return false;
    }
    kept = artifacts_kept(run->left.artifacts);
    warn(run, &kept->warnings);
    if (kept->truncated)
        refuse_size(run);
    return true;
}

bool session_run_complete(struct session_run *run, const struct guest_exit *exit,
                          const char *ended)
{
    bool is_ours = true;

    if (!run->e->session)
        return true;
    if (ended)
        session_run_refuse(run, ended);
    else if (exit->flags & PROTO_EXIT_SESSION_TOO_LARGE)
        refuse_size(run);
    else
        is_ours = complete(run);
    /* Now: an answer means that nothing of the execution can be seen. */
    if (run->fate == SESSION_REFUSED)
        left_finish(&run->left);
    return is_ours;
}

static int store_left(struct session_run *run, struct store *store, struct err *err)
{
    int r = sessions_check_room(run->env->registry, run->e->tenant, run->e->session,
                                run->left.bytes, err);

    return r < 0 ? r : store_put(store, run->left.fd, run->left.digest, err);
}

void session_run_store(struct session_run *run, struct store *store)
{
    struct err err = {0};
    int r;

    if (!run->left.digest[0] || run->env->sessions)
        return;
    r = store_left(run, store, &err);
    if (r < 0)
        session_run_refuse(run, err.code ? err.message : strerror(-r));
    else
        run->fate = SESSION_COMMITTED;
}

/* The row of what it left. */
static const struct registry_session *make_row(struct session_run *run, uint64_t now_ns)
{
    const struct artifacts_kept *kept = artifacts_kept(run->left.artifacts);

    run->made = (struct registry_session){.digest = run->left.digest,
                                          .bytes = run->left.bytes,
                                          .files = kept->files,
                                          .content_bytes = kept->bytes,
                                          .changed_ns = now_ns};
    (void)snprintf(run->made.tenant, sizeof(run->made.tenant), "%s", run->e->tenant);
    (void)snprintf(run->made.id, sizeof(run->made.id), "%s", run->e->session);
    return &run->made;
}

void session_run_share(struct session_run *run)
{
    struct err err = {0};
    int r;

    if (!run->left.digest[0] || !run->env->sessions)
        return;
    r = shared_sessions_commit(run->env->sessions, run->e->id,
                               make_row(run, clock_realtime_ns()), &run->found, run->left.fd,
                               &err);
    if (r < 0)
        session_run_refuse(run, err.code ? err.message : strerror(-r));
    else
        run->fate = SESSION_COMMITTED;
}

const struct registry_session *session_run_change(struct session_run *run, uint64_t now_ns)
{
    return run->fate == SESSION_COMMITTED && !run->env->sessions ? make_row(run, now_ns) : NULL;
}

void session_run_settle(struct session_run *run, struct store *store, bool is_stored)
{
    const char *spent =
        is_stored && run->fate == SESSION_COMMITTED ? run->found.digest : run->left.digest;
    struct err err = {0};

    /* Nothing was stored where there is no lock. */
    if (store && !run->env->sessions && spent && spent[0] &&
        store_release(store, spent, &err) < 0)
        log_error("engine", "execution=%s session=\"%s\"", run->e->id, err.message);
}

struct result_session session_run_tell(const struct session_run *run)
{
    struct result_session told = {
        .id = run->e->session, .bytes = run->found.content_bytes, .files = run->found.files};

    if (run->fate != SESSION_COMMITTED) {
        told.reason = run->reason;
        return told;
    }
    told.committed = true;
    told.bytes = artifacts_kept(run->left.artifacts)->bytes;
    told.files = artifacts_kept(run->left.artifacts)->files;
    return told;
}
