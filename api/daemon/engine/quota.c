/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/quota.h"

#include "api/daemon/registry/registry_tenants.h"
#include "api/daemon/registry/registry_usage.h"
#include "base/clock.h"

#include <errno.h>

#define DAY_NS (86400ull * NS_PER_SECOND)

int quota_limits(struct registry *registry, const char *tenant, struct tenant_limits *ret,
                 struct err *err)
{
    _cleanup_registry_tenant_ struct registry_tenant row = {0};
    int r = registry_tenant_get(registry, tenant, &row, err);

    if (r == -ENOENT)
        return err_set(err, ENOENT, "the tenant was deleted");
    if (r < 0)
        return r;
    *ret = row.limits;
    return 0;
}

/* Whole seconds, rounded up: to come earlier would be in vain. */
static unsigned seconds(uint64_t ns)
{
    return ns == 0 ? 1 : (unsigned)((ns + NS_PER_SECOND - 1) / NS_PER_SECOND);
}

int quota_check_cpu(struct registry *registry, const char *tenant,
                    const struct tenant_limits *limits, uint64_t realtime_ns,
                    struct refusal *ret, struct err *err)
{
    uint64_t used_ms = 0;
    int r;

    if (limits->cpu_ms_per_day == 0)
        return 0;
    r = registry_usage_get(registry, tenant, registry_usage_day(realtime_ns), &used_ms, err);
    if (r < 0 || used_ms < limits->cpu_ms_per_day)
        return r;
    *ret = (struct refusal){.code = "quota_exceeded",
                            .retry_after_s = seconds(DAY_NS - realtime_ns % DAY_NS)};
    return err_set(err, EDQUOT,
                   "cpu_ms_per_day: %llu ms of CPU time were used today, of the tenant's %llu; "
                   "the day ends at 00:00 UTC",
                   (unsigned long long)used_ms, (unsigned long long)limits->cpu_ms_per_day);
}

int quota_check_turn(struct registry *registry, const char *tenant, struct tenant_limits *ret,
                     struct err *err)
{
    struct refusal refusal;
    int r = quota_limits(registry, tenant, ret, err);

    return r < 0 ? r
                 : quota_check_cpu(registry, tenant, ret, clock_realtime_ns(), &refusal, err);
}

int quota_take_rate(struct rate *rate, const char *tenant, const struct tenant_limits *limits,
                    uint64_t monotonic_ns, struct refusal *ret, struct err *err)
{
    int64_t wait_ns = rate_take(rate, tenant, (unsigned)limits->rate_per_minute, monotonic_ns);

    if (wait_ns == 0)
        return 0;
    if (wait_ns < 0)
        return err_no_memory(err);
    *ret =
        (struct refusal){.code = "rate_limited", .retry_after_s = seconds((uint64_t)wait_ns)};
    return err_set(
        err, EDQUOT,
        "rate_per_minute: the tenant may begin %llu executions a minute; the next in "
        "%u s",
        (unsigned long long)limits->rate_per_minute, ret->retry_after_s);
}
