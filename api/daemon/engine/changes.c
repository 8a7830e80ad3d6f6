/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/changes.h"

#include "api/daemon/registry/registry_tenants.h"
#include "api/skill/skill.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>

struct changes {
    struct changes_env env;
    pthread_mutex_t lock; /* from a plan until its change is made */
};

struct changes *changes_create(const struct changes_env *env)
{
    struct changes *changes = calloc(1, sizeof(*changes));

    if (!changes)
        return NULL;
    changes->env = *env;
    (void)pthread_mutex_init(&changes->lock, NULL);
    return changes;
}

void changes_destroy(struct changes *changes)
{
    if (!changes)
        return;
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

int changes_make(struct changes *changes, change_plan *plan, void *ctx, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&changes->lock);
    struct change change = {0};
    int r = plan(ctx, &change, err);

    return r < 0 ? r : apply(changes, &change, err);
}
