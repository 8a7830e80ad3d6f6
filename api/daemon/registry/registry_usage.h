/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants used, by day of UTC. */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_USAGE_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_USAGE_H

#include "api/daemon/registry/registry.h"

/* The day of UTC a realtime lies in, counted from 1970. */
uint64_t registry_usage_day(uint64_t realtime_ns);
/* Adds CPU milliseconds to a tenant's day. 0 also when the tenant is gone; -EIO. */
int registry_usage_add(struct registry *registry, const char *tenant, uint64_t day,
                       uint64_t cpu_ms, struct err *err);
/* CPU milliseconds of a tenant on a day; 0 when there are none. 0 or -EIO. */
int registry_usage_get(struct registry *registry, const char *tenant, uint64_t day,
                       uint64_t *ret_cpu_ms, struct err *err);
/* Forgets the days before one. 0 or -EIO. */
int registry_usage_prune(struct registry *registry, uint64_t before_day, struct err *err);

#endif
