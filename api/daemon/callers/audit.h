/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the audit: admin acts, skills that come and go, keys that were refused. It is bounded
 * whoever fills it: a tenant's rows push out only older ones of its own, and refusals of keys
 * are one row a minute with their number.
 */
#ifndef SKILLVM_API_DAEMON_CALLERS_AUDIT_H
#define SKILLVM_API_DAEMON_CALLERS_AUDIT_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/tenant.h"

#include <stdint.h>

struct audit;

/* NULL without memory. The registry is borrowed. */
struct audit *audit_create(struct registry *registry);
/* Writes what is still to be said of refusals. NULL is fine. */
void audit_destroy(struct audit *audit);

/*
 * Notes what a caller did, after it was done. What cannot be stored is at least in the log.
 * format gives the detail, "" for none.
 */
void audit_note(struct audit *audit, const struct caller *caller, const char *action,
                const char *target, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/*
 * Notes that somebody was refused. actor is the id of the key where there is one, else where
 * he came from. Any number of these write one row in LIMIT_AUDIT_REFUSALS_NS.
 */
void audit_refused(struct audit *audit, const char *actor, const char *why);

#endif
