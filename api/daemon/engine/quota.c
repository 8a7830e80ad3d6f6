/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/quota.h"

#include "api/daemon/engine/rate.h"
#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_usage.h"

#include <errno.h>
#include <stdlib.h>

#define SECOND_NS 1000000000ull
#define DAY_NS    (86400ull * SECOND_NS)

struct quota {
    struct registry *registry;
    struct rate *rate;
};

struct quota *quota_create(struct registry *registry)
{
    struct quota *quota = calloc(1, sizeof(*quota));

    if (!quota)
        return NULL;
    quota->registry = registry;
    quota->rate = rate_create();
    if (!quota->rate) {
        free(quota);
        return NULL;
    }
    return quota;
}

void quota_destroy(struct quota *quota)
{
    if (!quota)
        return;
    rate_destroy(quota->rate);
    free(quota);
}

int quota_limits(struct quota *quota, const char *tenant, struct tenant_limits *ret,
                 struct err *err)
{
    struct registry_tenant row;
    int r = registry_tenant_get(quota->registry, tenant, &row, err);

    if (r == -ENOENT)
        return err_set(err, ENOENT, "the tenant was deleted");
    if (r < 0)
        return r;
    *ret = row.limits;
    registry_tenant_finish(&row);
    return 0;
}

/* Whole seconds, rounded up: to come earlier would be in vain. */
static unsigned seconds(uint64_t ns)
{
    return ns == 0 ? 1 : (unsigned)((ns + SECOND_NS - 1) / SECOND_NS);
}

int quota_check_cpu(struct quota *quota, const char *tenant, const struct tenant_limits *limits,
                    uint64_t realtime_ns, struct refusal *ret, struct err *err)
{
    uint64_t used_ms = 0;
    int r;

    if (limits->cpu_ms_per_day == 0)
        return 0;
    r = registry_usage_get(quota->registry, tenant, registry_usage_day(realtime_ns), &used_ms,
                           err);
    if (r < 0 || used_ms < limits->cpu_ms_per_day)
        return r;
    *ret = (struct refusal){.code = "quota_exceeded",
                            .retry_after_s = seconds(DAY_NS - realtime_ns % DAY_NS)};
    return err_set(err, EDQUOT,
                   "cpu_ms_per_day: %llu ms of CPU time were used today, of the tenant's %llu; "
                   "the day ends at 00:00 UTC",
                   (unsigned long long)used_ms, (unsigned long long)limits->cpu_ms_per_day);
}

int quota_take_rate(struct quota *quota, const char *tenant, const struct tenant_limits *limits,
                    uint64_t monotonic_ns, struct refusal *ret, struct err *err)
{
    int64_t wait_ns =
        rate_take(quota->rate, tenant, (unsigned)limits->rate_per_minute, monotonic_ns);

    if (wait_ns == 0)
        return 0;
    if (wait_ns < 0)
        return err_set(err, ENOMEM, "out of memory");
    *ret =
        (struct refusal){.code = "rate_limited", .retry_after_s = seconds((uint64_t)wait_ns)};
    return err_set(
        err, EDQUOT,
        "rate_per_minute: the tenant may begin %llu executions a minute; the next in "
        "%u s",
        (unsigned long long)limits->rate_per_minute, ret->retry_after_s);
}
