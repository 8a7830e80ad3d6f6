/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_usage.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>

#define DAY_NS (86400ull * 1000000000ull)

enum statement { ADD, GET, PRUNE, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [ADD] = "INSERT INTO usage(tenant_id, day, cpu_ms)"
            " SELECT id, ?2, ?3 FROM tenants WHERE id = ?1"
            " ON CONFLICT(tenant_id, day) DO UPDATE SET cpu_ms = cpu_ms + ?3",
    [GET] = "SELECT COALESCE(SUM(cpu_ms), 0) FROM usage WHERE tenant_id = ?1 AND day = ?2",
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
    return registry_run(
        registry, REGISTRY_USAGE, ADD,
        REGISTRY_VALUES(registry_text(tenant), registry_number(day), registry_number(cpu_ms)),
        "store usage", err);
}

int registry_usage_get(struct registry *registry, const char *tenant, uint64_t day,
                       uint64_t *ret_cpu_ms, struct err *err)
{
    return registry_read_number(registry, REGISTRY_USAGE, GET,
                                REGISTRY_VALUES(registry_text(tenant), registry_number(day)),
                                "read usage", ret_cpu_ms, err);
}

int registry_usage_prune(struct registry *registry, uint64_t before_day, struct err *err)
{
    return registry_run(registry, REGISTRY_USAGE, PRUNE,
                        REGISTRY_VALUES(registry_number(before_day)), "prune usage", err);
}
