/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_usage.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <sqlite3.h>

#define DAY_NS (86400ull * 1000000000ull)

enum statement { ADD, GET, PRUNE, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [ADD] = "INSERT INTO usage(tenant_id, day, cpu_ms)"
            " SELECT id, ?2, ?3 FROM tenants WHERE id = ?1"
            " ON CONFLICT(tenant_id, day) DO UPDATE SET cpu_ms = cpu_ms + ?3",
    [GET] = "SELECT cpu_ms FROM usage WHERE tenant_id = ?1 AND day = ?2",
    [PRUNE] = "DELETE FROM usage WHERE day < ?1",
};

const struct registry_statements registry_usage_statements = {text, N_STATEMENTS};

uint64_t registry_usage_day(uint64_t realtime_ns)
{
    return realtime_ns / DAY_NS;
}

int registry_usage_add(struct registry *registry, const char *tenant, uint64_t day,
                       uint64_t cpu_ms, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_USAGE, ADD);

    registry_bind_text(s, 1, tenant);
    registry_bind_u64(s, 2, day);
    registry_bind_u64(s, 3, cpu_ms);
    return registry_run(registry, s, "store usage", err);
}

int registry_usage_get(struct registry *registry, const char *tenant, uint64_t day,
                       uint64_t *ret_cpu_ms, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_USAGE, GET);
    int r;

    registry_bind_text(s, 1, tenant);
    registry_bind_u64(s, 2, day);
    r = registry_fetch(registry, s, "read usage", err);
    if (r == 0 || r == -ENOENT)
        *ret_cpu_ms = r == 0 ? registry_column_u64(s, 0) : 0;
    registry_end(registry, s);
    return r == -ENOENT ? 0 : r;
}

int registry_usage_prune(struct registry *registry, uint64_t before_day, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_USAGE, PRUNE);

    registry_bind_u64(s, 1, before_day);
    return registry_run(registry, s, "prune usage", err);
}
