/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/shared_sessions.h"

#include "api/daemon/engine/ledger.h"
#include "api/daemon/registry/registry_session_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS 8u /* at a row whose object goes meanwhile */

struct shared_sessions {
    struct shared_sessions_env env;
    struct changes *changes;
};

struct shared_sessions *shared_sessions_create(const struct shared_sessions_env *env)
{
    struct shared_sessions *s = calloc(1, sizeof(*s));

    if (s)
        s->env = *env;
    return s;
}

void shared_sessions_join(struct shared_sessions *s, struct changes *changes)
{
    s->changes = changes;
}

void shared_sessions_destroy(struct shared_sessions *s)
{
    free(s);
}

static int name_key(const char *tenant, const char *id, char ret[HOLD_KEY_SIZE])
{
    return ledger_name(ID_SESSION, tenant, id, ret, HOLD_KEY_SIZE);
}

int shared_sessions_take(struct shared_sessions *s, const char *tenant, const char *id,
                         const char *execution, struct err *err)
{
    char key[HOLD_KEY_SIZE];
    int r;

    if (!s || !id)
        return 0;
    r = name_key(tenant, id, key);
    return r < 0 ? err_set_errno(err, -r, "cannot name a session")
                 : cluster_hold_take(s->env.cluster, key, id, execution, err);
}

void shared_sessions_give(struct shared_sessions *s, const char *tenant, const char *id,
                          const char *execution)
{
    char key[HOLD_KEY_SIZE];

    if (s && id && name_key(tenant, id, key) == 0)
        cluster_hold_give(s->env.cluster, key, execution);
}

int shared_sessions_open(struct shared_sessions *s, const char *tenant, const char *id,
                         struct registry_session *ret, int *ret_fd, struct err *err)
{
    int r = -ENOENT;

    for (unsigned looks = 0; looks < LOOKS && r == -ENOENT; looks++) {
        _cleanup_registry_session_ struct registry_session row = {0};

        r = registry_session_get(s->env.registry, tenant, id, &row, err);
        if (r < 0)
            return r;
        *err = (struct err){0};
        r = objects_get(s->env.objects, row.digest, err);
        if (r < 0)
            continue;
        *ret_fd = r;
        *ret = row;
        row = (struct registry_session){0};
        return 0;
    }
    return r == -ENOENT ? err_set(err, EAGAIN, "session %s changes too much at once", id) : r;
}

int sessions_check_room(struct registry *registry, const char *tenant, const char *id,
                        uint64_t bytes, struct err *err)
{
    _cleanup_registry_session_ struct registry_session now = {0};
    uint64_t n = 0;
    int r = registry_session_get(registry, tenant, id, &now, err);

    if (r == -ENOENT)
        r = registry_session_count(registry, tenant, &n, err);
    if (r < 0)
        return r;
    if (n >= LIMIT_SESSIONS)
        return err_set(err, EDQUOT,
                       "sessions: %llu are kept already, which is the limit: remove one",
                       (unsigned long long)n);
    return bytes <= now.bytes
               ? 0
               : registry_tenant_check_room(registry, tenant, bytes - now.bytes, err);
}

/* What is to take the place of what a session has. */
struct wanted {
    struct shared_sessions *sessions;
    const struct registry_session *session;
    const char *before; /* its digest; "": nothing */
    int fd;
};

/* By rows that are those of all nodes: two that commit at once never pass a limit together. */
static int plan_commit(void *ctx, struct change *ret, struct err *err)
{
    const struct wanted *wanted = ctx;
    const struct registry_session *session = wanted->session;
    struct registry *registry = wanted->sessions->env.registry;
    int r = sessions_check_room(registry, session->tenant, session->id, session->bytes, err);

    return r < 0 ? r : registry_session_plan(registry, session, wanted->before, ret, err);
}

static int change(void *ctx, struct err *err)
{
    const struct wanted *wanted = ctx;

    return changes_make(wanted->sessions->changes, wanted->session->tenant, plan_commit, ctx,
                        err);
}

static int send_and_change(void *ctx, bool *ret_sent, struct err *err)
{
    const struct wanted *wanted = ctx;
    const struct objects_put put = {.tenant = wanted->session->tenant,
                                    .kept = CLUSTER_OF_CHANGES,
                                    .wait_ns = OBJECTS_SOON_NS,
                                    .digest = wanted->session->digest,
                                    .fd = wanted->fd};

    return objects_share(wanted->sessions->env.objects, &put, change, ctx, ret_sent, err);
}

/* What no row names any more goes from the servers, or counts while it stays. */
static void drop(struct shared_sessions *s, const char *tenant, const char *digest,
                 uint64_t bytes)
{
    const struct skill_room_row row = {
        .tenant = tenant, .digest = digest, .packages_digest = "", .bytes = bytes};
    struct err ignored = {0};

    if (objects_drop(s->env.objects, digest, &ignored) < 0)
        skill_room_left(s->env.room, &row, clock_monotonic_ns());
}

static int commit(struct shared_sessions *s, const struct registry_session *session,
                  const struct registry_session *before, int fd, struct err *err)
{
    const struct skill_room_row row = {.tenant = session->tenant,
                                       .digest = session->digest,
                                       .packages_digest = "",
                                       .bytes = session->bytes};
    struct wanted wanted = {.sessions = s,
                            .session = session,
                            .before = before->digest ? before->digest : "",
                            .fd = fd};
    uint64_t more = session->bytes > before->bytes ? session->bytes - before->bytes : 0;
    struct err ignored = {0};
    int r = skill_room_hold(s->env.room, &row, more, send_and_change, &wanted, err);

    if (r < 0)
        return r;
    /* It is asked for here first, as likely as not. */
    (void)objects_keep(s->env.objects, session->digest, fd, &ignored);
    if (before->digest && strcmp(before->digest, session->digest) != 0)
        drop(s, session->tenant, before->digest, before->bytes);
    return 0;
}

int shared_sessions_commit(struct shared_sessions *s, const char *execution,
                           const struct registry_session *session,
                           const struct registry_session *before, int fd, struct err *err)
{
    int r = *execution ? cluster_record_is_ours(s->env.cluster, execution, err) : 0;

    if (r == -ENOENT)
        return err_set(err, EOWNERDEAD,
                       "this node was taken for lost, and what it ran was ended");
    return r < 0 ? r : commit(s, session, before, fd, err);
}

/* One that is to be forgotten. */
struct unwanted {
    struct registry *registry;
    const char *tenant, *id;
    uint64_t used_ns; /* since when nobody used it */
    struct change_session was;
};

static int plan_delete(void *ctx, struct change *ret, struct err *err)
{
    struct unwanted *unwanted = ctx;
    int r = registry_session_plan_delete(unwanted->registry, unwanted->tenant, unwanted->id,
                                         unwanted->used_ns, ret, err);

    if (r == 0)
        unwanted->was = ret->session;
    return r;
}

/* by: as the tenant of changes_make. */
static int forget(struct shared_sessions *s, const char *by, struct unwanted *unwanted,
                  struct err *err)
{
    int r = changes_make(s->changes, by, plan_delete, unwanted, err);

    if (r == 0)
        drop(s, unwanted->tenant, unwanted->was.digest, unwanted->was.bytes);
    return r;
}

int shared_sessions_expire(struct shared_sessions *s, const char *tenant, const char *id,
                           uint64_t used_ns, struct err *err)
{
    struct unwanted unwanted = {
        .registry = s->env.registry, .tenant = tenant, .id = id, .used_ns = used_ns};

    return forget(s, CHANGES_OF_DAEMON, &unwanted, err);
}

int shared_sessions_remove(struct shared_sessions *s, const char *tenant, const char *id,
                           struct err *err)
{
    struct unwanted unwanted = {
        .registry = s->env.registry, .tenant = tenant, .id = id, .used_ns = INT64_MAX};
    int r = shared_sessions_take(s, tenant, id, "", err);

    if (r < 0)
        return r;
    r = forget(s, tenant, &unwanted, err);
    shared_sessions_give(s, tenant, id, "");
    return r;
}

/* The next one that was used here. */
struct used {
    struct registry *registry;
    char after[CHANGE_ID_SIZE];
    char at[CHANGE_ID_SIZE];
};

static int plan_use(void *ctx, struct change *ret, struct err *err)
{
    struct used *used = ctx;
    int r = registry_session_plan_use(used->registry, used->after, ret, err);

    if (r == 0)
        memcpy(used->at, ret->id, sizeof(used->at));
    return r;
}

int shared_sessions_tell_uses(struct shared_sessions *s, struct err *err)
{
    struct used used = {.registry = s->env.registry};
    int r = 0;

    while (r == 0) {
        r = changes_make(s->changes, CHANGES_OF_DAEMON, plan_use, &used, err);
        memcpy(used.after, used.at, sizeof(used.after));
    }
    return r == -ENOENT ? 0 : r;
}
