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

/*
 * What a tenant may use, in numbers, each with what 0 stands for and the most there is. Its
 * name is that in the API and of its column; 0 is no limit of its own, the daemon's hold.
 */
#define TENANT_LIMITS_EACH(LIMIT)                                                              \
    /* its share where tenants wait for each other */                                          \
    LIMIT(weight, TENANT_WEIGHT_DEFAULT, TENANT_WEIGHT_MAX)                                    \
    LIMIT(max_running, 0, UINT32_MAX)                                                          \
    LIMIT(max_queued, 0, UINT32_MAX)                                                           \
    LIMIT(rate_per_minute, 0, UINT32_MAX)      /* executions */                                \
    LIMIT(cpu_ms_per_day, 0, TENANT_LIMIT_MAX) /* a day of UTC */                              \
    LIMIT(storage_bytes, 0, TENANT_LIMIT_MAX)                                                  \
    LIMIT(max_timeout_ms, 0, TENANT_LIMIT_MAX)                                                 \
    LIMIT(max_memory_bytes, 0, TENANT_LIMIT_MAX)
/* The largest whole number that every JSON reader keeps as it is. */
#define TENANT_LIMIT_MAX (1ull << 53)

/* Names of images, each up to 32 bytes, between spaces. */
#define TENANT_IMAGES_MAX  16u
#define TENANT_IMAGES_SIZE (TENANT_IMAGES_MAX * 33u + 1)

struct tenant_limits {
#define LIMIT(name, unset, max) uint64_t name;
    TENANT_LIMITS_EACH(LIMIT)
#undef LIMIT
    enum tenant_reuse reuse;
    char images[TENANT_IMAGES_SIZE]; /* that it may use; "": any */
};

/* Whether a list of images has one of this name. */
bool tenant_images_have(const char *images, const char *name);

/* The default weight and no limits. */
struct tenant_limits tenant_limits_default(void);

/* True for what a tenant's id looks like. */
bool tenant_id_valid(const char *id);

/* The operator, at work for the default tenant. */
struct caller caller_operator(const char *actor);

#endif
