/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/skill_changes.h"

#include "api/daemon/registry/registry_skill_plan.h"

#include <errno.h>
#include <string.h>

/* Others may set aside and replace the same version meanwhile. */
#define TRIES 16u

/* What a caller wants of a skill. */
struct wanted {
    struct registry *registry;
    const char *tenant;
    const struct registry_skill *skill;
    bool replace;
    bool is_made; /* before: only what is besides is left */
    bool is_last; /* the change that was worked out is the one */
    char previous[CHANGE_DIGEST_SIZE];
};

static int plan_put(void *ctx, struct change *ret, struct err *err)
{
    struct wanted *wanted = ctx;
    char previous[CHANGE_DIGEST_SIZE];
    int r = registry_skill_plan(wanted->registry, wanted->tenant, wanted->skill,
                                wanted->replace, ret, previous, err);

    if (r < 0)
        return r;
    wanted->is_last = r == 0;
    /* Somebody else's took its place at once, and is the newer one. */
    if (wanted->is_made && (wanted->is_last || !ret->is_removed))
        return -EALREADY;
    if (wanted->is_last)
        memcpy(wanted->previous, previous, sizeof(previous));
    return 0;
}

int skill_changes_put(struct changes *changes, struct registry *registry, const char *tenant,
                      const struct registry_skill *skill, bool replace, char **ret_previous,
                      struct err *err)
{
    struct wanted wanted = {
        .registry = registry, .tenant = tenant, .skill = skill, .replace = replace};
    struct err why = {0};
    int r = 0;

    for (unsigned tries = 0; r == 0 && tries < TRIES; tries++) {
        why = (struct err){0};
        r = changes_make(changes, tenant, plan_put, &wanted, &why);
        wanted.is_made |= r == 0 && wanted.is_last;
    }
    /* What is left besides is no matter of the caller's. */
    if (r != -EALREADY && !wanted.is_made) {
        *err = why;
        return r == 0 ? err_set(err, EAGAIN, "others change this skill too much at once") : r;
    }
    if (!wanted.previous[0])
        return 0;
    *ret_previous = strdup(wanted.previous);
    return *ret_previous ? 0 : err_no_memory(err);
}

static int plan_delete(void *ctx, struct change *ret, struct err *err)
{
    const struct wanted *wanted = ctx;

    return registry_skill_plan_delete(wanted->registry, wanted->tenant, wanted->skill, ret,
                                      err);
}

int skill_changes_delete(struct changes *changes, struct registry *registry, const char *tenant,
                         const struct registry_skill *skill, struct err *err)
{
    struct wanted wanted = {.registry = registry, .tenant = tenant, .skill = skill};

    return changes_make(changes, tenant, plan_delete, &wanted, err);
}
