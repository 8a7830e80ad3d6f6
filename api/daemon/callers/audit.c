/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/callers/audit.h"

#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TEXT_MAX 400u
/* One append in so many prunes, by chance: nobody can arrange to be never the one. */
#define PRUNE_CHANCE 32u

struct audit {
    struct registry *registry;
    pthread_mutex_t lock;
    uint64_t refused_ns; /* under the lock: when the last row of refusals was written */
    uint64_t refusals;   /* those since */
    char actor[CALLER_ACTOR_SIZE];
    char why[64];
};

struct audit *audit_create(struct registry *registry)
{
    struct audit *audit = calloc(1, sizeof(*audit));

    if (!audit)
        return NULL;
    audit->registry = registry;
    (void)pthread_mutex_init(&audit->lock, NULL);
    return audit;
}

static void append(struct audit *audit, const struct registry_audit *deed)
{
    struct err err = {0};
    uint8_t chance = 0;
    int r = registry_audit_append(audit->registry, deed, &err);

    if (r == 0 && (getrandom(&chance, 1, 0) != 1 || chance % PRUNE_CHANCE == 0))
        r = registry_audit_prune_tenant(audit->registry, deed->tenant, LIMIT_AUDIT_TENANT_ROWS,
                                        &err);
    if (r < 0)
        log_error("audit", "actor=%s action=%s target=\"%s\" lost=\"%s\"", deed->actor,
                  deed->action, deed->target, err.message);
}

void audit_note(struct audit *audit, const struct caller *caller, const char *action,
                const char *target, const char *format, ...)
{
    char clipped[TEXT_MAX], detail[TEXT_MAX];
    struct registry_audit deed = {.at_ns = clock_realtime_ns(),
                                  .tenant = caller->tenant,
                                  .actor = caller->actor,
                                  .action = action,
                                  .target = clipped,
                                  .detail = detail};
    va_list args;

    (void)snprintf(clipped, sizeof(clipped), "%s", target);
    va_start(args, format);
    (void)vsnprintf(detail, sizeof(detail), format, args);
    va_end(args);
    append(audit, &deed);
}

/* Writes the row of the refusals so far. Under the lock. */
static void write_refusals(struct audit *audit, uint64_t now_ns)
{
    char detail[TEXT_MAX];
    const struct registry_audit deed = {.at_ns = clock_realtime_ns(),
                                        .tenant = "",
                                        .actor = audit->actor,
                                        .action = "auth.refused",
                                        .target = "",
                                        .detail = detail};

    (void)snprintf(detail, sizeof(detail), "%llu refused, the last one: %s",
                   (unsigned long long)audit->refusals, audit->why);
    audit->refused_ns = now_ns;
    audit->refusals = 0;
    append(audit, &deed);
}

void audit_refused(struct audit *audit, const char *actor, const char *why)
{
    uint64_t now_ns = clock_monotonic_ns();
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&audit->lock);

    audit->refusals++;
    (void)snprintf(audit->actor, sizeof(audit->actor), "%s", actor);
    (void)snprintf(audit->why, sizeof(audit->why), "%s", why);
    if (audit->refused_ns == 0 || now_ns - audit->refused_ns >= LIMIT_AUDIT_REFUSALS_NS)
        write_refusals(audit, now_ns);
}

void audit_destroy(struct audit *audit)
{
    if (!audit)
        return;
    if (audit->refusals > 0)
        write_refusals(audit, 0);
    (void)pthread_mutex_destroy(&audit->lock);
    free(audit);
}
