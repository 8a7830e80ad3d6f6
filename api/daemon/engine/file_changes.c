/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/file_changes.h"

#include "api/daemon/registry/registry_file_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/terms/limits.h"

#include <errno.h>

int file_changes_check_room(struct registry *registry, const char *tenant, uint64_t bytes,
                            struct err *err)
{
    uint64_t n = 0;
    int r = registry_tenant_check_room(registry, tenant, bytes, err);

    if (r < 0)
        return r;
    r = registry_file_count(registry, tenant, &n, err);
    if (r < 0 || n < LIMIT_STORED_FILES)
        return r;
    return err_set(err, EDQUOT, "files: %llu are kept already, which is the limit: remove one",
                   (unsigned long long)n);
}

/* What a caller wants of a file. */
struct wanted {
    struct registry *registry;
    const char *tenant;
    const char *id;
    const struct registry_file *file;
};

/* By rows that are those of all nodes: two that store at once never pass a limit together. */
static int plan_put(void *ctx, struct change *ret, struct err *err)
{
    const struct wanted *wanted = ctx;
    int r = file_changes_check_room(wanted->registry, wanted->tenant, wanted->file->bytes, err);

    return r < 0 ? r
                 : registry_file_plan(wanted->registry, wanted->tenant, wanted->file, ret, err);
}

int file_changes_put(struct changes *changes, struct registry *registry, const char *tenant,
                     const struct registry_file *file, struct err *err)
{
    struct wanted wanted = {.registry = registry, .tenant = tenant, .file = file};

    return changes_make(changes, tenant, plan_put, &wanted, err);
}

static int plan_delete(void *ctx, struct change *ret, struct err *err)
{
    const struct wanted *wanted = ctx;

    return registry_file_plan_delete(wanted->registry, wanted->tenant, wanted->id, ret, err);
}

int file_changes_delete(struct changes *changes, struct registry *registry, const char *tenant,
                        const char *id, struct err *err)
{
    struct wanted wanted = {.registry = registry, .tenant = tenant, .id = id};

    return changes_make(changes, tenant, plan_delete, &wanted, err);
}

int file_changes_expire(struct changes *changes, struct registry *registry, const char *tenant,
                        const char *id, struct err *err)
{
    struct wanted wanted = {.registry = registry, .tenant = tenant, .id = id};

    return changes_make(changes, CHANGES_OF_DAEMON, plan_delete, &wanted, err);
}
