/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/execution_run.h"

#include <string.h>

/*
 * Packages from this size on are worth a snapshot that holds them: to compile so much Python
 * takes as long as to start its interpreter.
 */
#define HELD_MIN_BYTES (32u * 1024)

void execution_name_snapshot(const struct execution_env *env, const struct execution *e,
                             struct snapshot_name *ret)
{
    *ret = (struct snapshot_name){0};
    if (env->scope_tenant)
        memcpy(ret->scope, e->tenant, sizeof(e->tenant));
    if (e->images)
        snapshot_name_image(ret, e->images, e->image.place);
    memcpy(ret->profile, e->profile, sizeof(e->profile));
    if (e->job.packages.len >= HELD_MIN_BYTES)
        memcpy(ret->packages, e->job.packages.digest, SNAPSHOT_KEY_SIZE);
}
