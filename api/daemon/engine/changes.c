/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/changes.h"

#include "api/daemon/engine/fair_gate.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/registry/registry_skill_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/skill/skill.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node that is there notes how far it is every ten seconds. */
#define AWAY_NS (60 * NS_PER_SECOND)
/* For a tenant's turn. */
#define WAIT_NS (60 * NS_PER_SECOND)

struct changes {
    struct changes_env env;
    pthread_mutex_t lock; /* from a plan until its change is made */
    /* In a cluster tenants' changes are one behind it: who goes past it waits for that alone.
     */
    struct fair_gate *gate;
};

void changes_destroy(struct changes *changes)
{
    if (!changes)
        return;
    fair_gate_destroy(changes->gate);
    (void)pthread_mutex_destroy(&changes->lock);
    free(changes);
}

static int note_digest(void *ctx, const char *digest)
{
    return skill_strings_add(ctx, "%s", digest);
}

/*
 * Removes the rows of a tenant, and the objects that nobody else names. What a daemon that dies
 * in between leaves of these is swept later.
 */
static int remove_tenant(struct changes *changes, const char *id, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(changes->env.store);
    _cleanup_skill_strings_ struct skill_strings digests = {0};
    int r = registry_tenant_digests(changes->env.registry, id, note_digest, &digests, err);

    if (r < 0)
        return r;
    r = registry_tenant_delete(changes->env.registry, id, err);
    for (size_t i = 0; r == 0 && i < digests.len; i++)
        (void)store_release(store, digests.items[i], NULL);
    return r;
}

static int apply(struct changes *changes, const struct change *change, struct err *err)
{
    int r;

    if (change->is_removed)
        return remove_tenant(changes, change->id, err);
    r = registry_change_make(changes->env.registry, change, err);
    if (r == 0 && change->kind == CHANGE_TENANT)
        engine_limits_changed(changes->env.engine, change->id);
    return r;
}

/* Removed elsewhere: what has no execution here any more goes with all that it had. */
static void sweep_removed(struct changes *changes)
{
    char id[TENANT_ID_SIZE] = "", after[TENANT_ID_SIZE] = "";
    struct err ignored = {0};

    while (registry_removed_after(changes->env.registry, after, id, &ignored) == 0) {
        struct err err = {0};
        int r = remove_tenant(changes, id, &err);

        if (r < 0 && r != -EBUSY)
            log_warn("changes", "tenant=%s is=\"not removed yet\" reason=\"%s\"", id,
                     err.message);
        memcpy(after, id, sizeof(after));
    }
}

static int look(void *ctx, struct change_place *ret, struct err *err)
{
    const struct changes *changes = ctx;

    return registry_place_get(changes->env.registry, REGISTRY_PLACE_OF_CHANGES, ret, err);
}

static int each_of(struct changes *changes, enum change_kind kind, cluster_visit_fn *visit,
                   void *visit_ctx, struct err *err)
{
    char after[CHANGE_ID_SIZE] = "";
    int r = 0;

    while (r == 0) {
        struct change row;

        r = registry_change_after(changes->env.registry, kind, after, &row, err);
        if (r < 0)
            break;
        memcpy(after, row.id, sizeof(after));
        r = visit(visit_ctx, &row);
    }
    return r == -ENOENT ? 0 : r;
}

static int each(void *ctx, cluster_visit_fn *visit, void *visit_ctx, struct err *err)
{
    int r = 0;

    for (int kind = 0; r == 0 && kind < CHANGE_KINDS; kind++)
        r = each_of(ctx, (enum change_kind)kind, visit, visit_ctx, err);
    return r;
}

struct others {
    const struct staged *staged;
    char what[ERR_MESSAGE_MAX]; /* a row that is not there */
};

static int check_row(void *ctx, const struct change *change)
{
    struct others *others = ctx;
    char key[CHANGE_KEY_SIZE];

    change_entry_key(change->kind, change->id, key);
    /* What a node has of sessions from before they were a cluster's stays, until it is used. */
    if (change->kind == CHANGE_SESSION || staged_has(others->staged, key))
        return 0;
    if (change->kind == CHANGE_SKILL)
        (void)snprintf(others->what, sizeof(others->what), "skill %s %s of %s",
                       change->skill.name, change->skill.version, change->skill.tenant);
    else if (change->kind == CHANGE_FILE)
        (void)snprintf(others->what, sizeof(others->what), "file %s of %s", change->file.id,
                       change->file.tenant);
    else
        (void)snprintf(others->what, sizeof(others->what), "%s", key);
    return -EEXIST;
}

static int change_at(const void *ctx, size_t at, struct change *ret)
{
    return staged_read(ctx, at, ret);
}

/* The objects of a row that is changed. */
struct before {
    char tenant[TENANT_ID_SIZE];
    char digest[CHANGE_DIGEST_SIZE];
    char packages_digest[CHANGE_DIGEST_SIZE];
    uint64_t bytes;
    bool goes_at_once; /* who removes or changes it sees to what it held, or counts that */
};

static void describe_before(const struct change *row, struct before *ret)
{
    memcpy(ret->tenant, change_owner(row), sizeof(ret->tenant));
    ret->goes_at_once = row->kind != CHANGE_SKILL;
    if (row->kind == CHANGE_FILE) {
        memcpy(ret->digest, row->file.digest, sizeof(ret->digest));
        ret->bytes = row->file.bytes;
    } else if (row->kind == CHANGE_SESSION) {
        memcpy(ret->digest, row->session.digest, sizeof(ret->digest));
        ret->bytes = row->session.bytes;
    } else {
        memcpy(ret->digest, row->skill.digest, sizeof(ret->digest));
        memcpy(ret->packages_digest, row->skill.packages_digest, sizeof(ret->packages_digest));
        ret->bytes = row->skill.bytes;
    }
}

/* What the skills, files and sessions name that are changed. */
static size_t note_before(struct changes *changes, const struct staged *staged,
                          struct before *ret)
{
    struct change change, row;
    size_t n = 0;

    for (size_t i = 0; i < staged->n; i++) {
        if (staged_read(staged, i, &change) < 0 || change.kind < CHANGE_SKILL ||
            registry_change_of(changes->env.registry, change.kind, change.id, &row, NULL) < 0)
            continue;
        describe_before(&row, &ret[n++]);
    }
    return n;
}

static void release(struct changes *changes, const char *digest)
{
    _cleanup_store_lock_ struct store *store = store_lock(changes->env.store);

    if (*digest)
        (void)store_release(store, digest, NULL);
}

/* What a node was away for the servers may have removed long since: it counts for nobody. */
static void release_objects(struct changes *changes, const struct before *befores, size_t n,
                            bool was_away)
{
    for (size_t i = 0; i < n; i++) {
        const struct before *before = &befores[i];
        const struct skill_room_row row = {.tenant = before->tenant,
                                           .digest = before->digest,
                                           .packages_digest = before->packages_digest,
                                           .bytes = before->bytes};

        if (!was_away && !before->goes_at_once)
            skill_room_left(changes->env.skill_room, &row, clock_monotonic_ns());
        release(changes, before->digest);
        release(changes, before->packages_digest);
    }
}

/* Whether these are more than what came just now. */
static bool is_late(struct changes *changes, const struct change_place *place)
{
    struct change_place before = {0};

    return registry_place_get(changes->env.registry, REGISTRY_PLACE_OF_CHANGES, &before, NULL) <
               0 ||
           place->noted_ns > before.noted_ns + AWAY_NS;
}

/* What waits for its tenant's turn shall know of other limits. */
static void tell_engine(struct changes *changes, const struct staged *staged)
{
    struct change change;

    for (size_t i = 0; i < staged->n; i++) {
        if (staged_read(staged, i, &change) == 0 && change.kind == CHANGE_TENANT)
            engine_limits_changed(changes->env.engine, change.id);
    }
}

static int apply_all(void *ctx, const struct staged *staged, bool is_whole,
                     const struct change_place *place, unsigned *ret_conflicts, struct err *err)
{
    struct changes *changes = ctx;
    struct others others = {.staged = staged};
    _cleanup_free_ struct before *befores = calloc(staged->n + 1, sizeof(*befores));
    bool was_away = is_whole || is_late(changes, place);
    int r = is_whole ? each(changes, check_row, &others, err) : 0;
    size_t n;

    if (!befores)
        return err_no_memory(err);
    if (r == -EEXIST)
        return err_set(err, EEXIST, "%s", others.what);
    if (r < 0)
        return r;
    n = note_before(changes, staged, befores);
    r = registry_changes_make(changes->env.registry, staged->n, change_at, staged, place,
                              ret_conflicts, err);
    if (r < 0)
        return r;
    release_objects(changes, befores, n, was_away);
    sweep_removed(changes);
    tell_engine(changes, staged);
    return 0;
}

static int owned_bytes(void *ctx, const char *tenant, uint64_t *ret, struct err *err)
{
    const struct changes *changes = ctx;

    return registry_owned_rows_bytes(changes->env.registry, tenant, ret, err);
}

static int object(void *ctx, const char *digest, struct err *err)
{
    const struct changes *changes = ctx;

    return store_get(changes->env.store, digest, err);
}

static void note(void *ctx, const struct change_place *place)
{
    struct changes *changes = ctx;
    struct err err = {0};

    sweep_removed(changes);
    if (registry_place_put(changes->env.registry, REGISTRY_PLACE_OF_CHANGES, place, &err) < 0)
        log_warn("changes", "replica=\"not noted\" reason=\"%s\"", err.message);
}

static int row(void *ctx, enum change_kind kind, const char *id, struct change *ret,
               struct err *err)
{
    const struct changes *changes = ctx;

    return registry_change_of(changes->env.registry, kind, id, ret, err);
}

int changes_create(const struct changes_env *env, struct changes **ret, struct err *err)
{
    struct changes *changes = calloc(1, sizeof(*changes));
    const struct cluster_replica replica = {.ctx = changes,
                                            .look = look,
                                            .apply = apply_all,
                                            .note = note,
                                            .row = row,
                                            .each = each,
                                            .owned_bytes = owned_bytes,
                                            .object = object};

    if (!changes)
        return err_no_memory(err);
    changes->env = *env;
    (void)pthread_mutex_init(&changes->lock, NULL);
    *ret = changes;
    changes->gate = fair_gate_create(1);
    if (!changes->gate)
        return err_no_memory(err);
    if (!env->cluster)
        return registry_place_forget(env->registry, REGISTRY_PLACE_OF_CHANGES, err);
    return cluster_follow(env->cluster, &replica, env->keys_timeout_ms, err);
}

/* A plan, and whether what it gives can be made at all. */
struct checked {
    struct changes *changes;
    change_plan *plan;
    void *ctx;
};

/* What the rows would refuse when it comes back is refused before it is written. */
static int check(struct changes *changes, const struct change *change, struct err *err)
{
    struct registry *registry = changes->env.registry;
    struct change there;
    bool is_busy = false;
    int r;

    if (!change->is_removed) {
        r = registry_change_check(registry, change, err);
        return r == -ENOENT && change_owner(change)
                   ? err_set(err, ENOENT, "the tenant was deleted")
                   : r;
    }
    r = registry_change_of(registry, change->kind, change->id, &there, err);
    if (r < 0)
        return r;
    r = registry_tenant_is_busy(registry, change->id, &is_busy, err);
    if (r < 0)
        return r;
    return is_busy ? err_set(err, EBUSY, "executions of this tenant wait or run") : 0;
}

static int plan_checked(void *ctx, struct change *ret, struct err *err)
{
    const struct checked *checked = ctx;
    int r = checked->plan(checked->ctx, ret, err);

    return r < 0 ? r : check(checked->changes, ret, err);
}

/* In its tenant's turn: however much of one tenant's waits, others' comes between. */
static int make_in_turn(struct changes *changes, const char *tenant, struct checked *checked,
                        struct err *err)
{
    struct fair_gate_entry entry;
    int r =
        fair_gate_enter(changes->gate, tenant, &entry, clock_monotonic_ns() + WAIT_NS, NULL);

    if (r == -EBUSY)
        return err_set(err, EAGAIN,
                       "nothing was changed: too many changes wait for their turn already");
    if (r < 0)
        return err_no_memory(err);
    r = cluster_change(changes->env.cluster, plan_checked, checked, err);
    fair_gate_leave(changes->gate, &entry);
    return r;
}

int changes_make(struct changes *changes, const char *tenant, change_plan *plan, void *ctx,
                 struct err *err)
{
    struct checked checked = {.changes = changes, .plan = plan, .ctx = ctx};
    struct change change = {0};

    if (changes->env.cluster && tenant)
        return make_in_turn(changes, tenant, &checked, err);
    if (changes->env.cluster)
        return cluster_change(changes->env.cluster, plan_checked, &checked, err);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&changes->lock);
    int r = plan(ctx, &change, err);

    return r < 0 ? r : apply(changes, &change, err);
}
