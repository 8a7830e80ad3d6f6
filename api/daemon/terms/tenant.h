/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants: who owns skills, executions and files, who calls, and what a tenant may use. Values
 * only; the rows are registry_tenants.h's.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_TENANT_H
#define SKILLVM_API_DAEMON_TERMS_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "ten_" and 32 hexadecimal digits, or TENANT_DEFAULT. */
#define TENANT_ID_SIZE 37u
/* The operator's own tenant: always there, without limits unless it is given some. */
#define TENANT_DEFAULT "default"

#define TENANT_WEIGHT_DEFAULT 10u
#define TENANT_WEIGHT_MAX     100u

/* "key_" and 32 hexadecimal digits, or "uid:" and a number. */
#define CALLER_ACTOR_SIZE 40u

/* Who sent a request. */
struct caller {
    bool is_operator;
    char tenant[TENANT_ID_SIZE];   /* whose skills, executions and files these are */
    char actor[CALLER_ACTOR_SIZE]; /* for the audit: the id of the key, or the peer */
};

/*
 * Whose later executions a machine may run, each of which begins from the snapshot again: the
 * same skill's of the same tenant, any of the same tenant, or none. From the narrowest on; a
 * tenant's own can only be narrower than the daemon's.
 */
enum tenant_reuse {
    TENANT_REUSE_UNSET, /* the daemon's */
    TENANT_REUSE_NEVER,
    TENANT_REUSE_SKILL,
    TENANT_REUSE_TENANT,
};
#define TENANT_REUSES (TENANT_REUSE_TENANT + 1)

/* "never", "skill", "tenant"; "" for UNSET. */
const char *tenant_reuse_name(enum tenant_reuse reuse);
/* The reverse, "" included; len bytes of text. 0 or -EINVAL. */
int tenant_reuse_parse(const char *text, size_t len, enum tenant_reuse *ret);

/* What a tenant may use. 0: no limit of its own, the daemon's hold. */
struct tenant_limits {
    uint32_t weight; /* 1..TENANT_WEIGHT_MAX: its share where tenants wait for each other */
    uint32_t max_running;
    uint32_t max_queued;
    uint32_t rate_per_minute; /* executions */
    uint64_t cpu_ms_per_day;  /* a day of UTC */
    uint64_t storage_bytes;
    uint64_t max_timeout_ms;
    uint64_t max_memory_bytes;
    enum tenant_reuse reuse;
};

/* The default weight and no limits. */
struct tenant_limits tenant_limits_default(void);

/* True for what a tenant's id looks like. */
bool tenant_id_valid(const char *id);

/* The operator, at work for the default tenant. */
struct caller caller_operator(const char *actor);

#endif
