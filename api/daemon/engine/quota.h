/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tenant may use over time: executions a minute and CPU time a day. How many may wait
 * and run at once is the queue's affair (engine.c). Limits are read from the registry whenever
 * they are needed, so that a change holds for the next request.
 *
 * CPU time is that of the machines' processes, and of the daemon's threads while they read what
 * those say, as the host's kernel counted it: a guest cannot understate it. It is added when an
 * execution has ended, to the day of UTC on which it ended. So a tenant can go over its day by
 * what runs when the day's time is used up, each of which ends by its timeout; what still waits
 * then fails when its turn comes.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_QUOTA_H
#define SKILLVM_API_DAEMON_ENGINE_QUOTA_H

#include "api/daemon/engine/rate.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/tenant.h"
#include "base/err.h"

#include <stdint.h>

/* Why an execution was not accepted, as HTTP says it. */
struct refusal {
    const char *code;       /* "rate_limited", "quota_exceeded" or "overloaded"; static */
    unsigned retry_after_s; /* when it makes sense to come again; at least 1 */
};

/* The limits of a tenant now. 0, -ENOENT (there is no such tenant), -ENOMEM or -EIO. */
int quota_limits(struct registry *registry, const char *tenant, struct tenant_limits *ret,
                 struct err *err);
/* Looks whether there is CPU time left on the day of a realtime. 0; -EDQUOT with *ret; -EIO. */
int quota_check_cpu(struct registry *registry, const char *tenant,
                    const struct tenant_limits *limits, uint64_t realtime_ns,
                    struct refusal *ret, struct err *err);
/* Both of these, now, for what was accepted before. 0; -EDQUOT; else as quota_limits. */
int quota_check_turn(struct registry *registry, const char *tenant, struct tenant_limits *ret,
                     struct err *err);
/* Takes one execution of the tenant's rate. 0; -EDQUOT with *ret; -ENOMEM. */
int quota_take_rate(struct rate *rate, const char *tenant, const struct tenant_limits *limits,
                    uint64_t monotonic_ns, struct refusal *ret, struct err *err);

#endif
