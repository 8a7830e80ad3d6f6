/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the parsers of scripts, a few at a time, beside the executions: a bounded queue of
 * what shall be looked at, PROBER_WORKERS machines at most. What was found is in the registry
 * (registry_tools.h); nobody has to wait, and who does says until when.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_PROBER_H
#define SKILLVM_API_DAEMON_ENGINE_PROBER_H

#include "api/daemon/engine/tool_probe.h"
#include "api/daemon/registry/registry_tools.h"
#include "api/daemon/store/watermarks.h"
#include "base/err.h"

#include <stdint.h>

#define PROBER_WORKERS    2u
#define PROBER_QUEUE_MAX  512u
#define PROBER_TENANT_MAX 64u /* of one tenant in the queue */

struct prober;

/* Borrowed. */
struct prober_config {
    struct tool_probe_env env;
    struct registry *registry;
    struct watermarks *watermarks;
};

int prober_create(const struct prober_config *config, struct prober **ret, struct err *err);
/* Ends what runs and lets nobody wait any longer. */
void prober_stop(struct prober *prober);
/* Stops it, waits for what ran, and frees it, once nobody asks any more. NULL is fine. */
void prober_destroy(struct prober *prober);

/*
 * Asks for a look at a script of a registered skill, of which the registry is told as tool. 0
 * when it is or will be looked at; -EAGAIN when it cannot be now: the queue is full, disk or
 * memory is short, or the daemon stops; -ENODATA when it failed a moment ago.
 */
int prober_ask(struct prober *prober, const char *tenant, const struct tool_script *script,
               const struct registry_tool *tool);
/* How long a look takes at most, about. */
uint64_t prober_timeout_ms(const struct prober *prober);
/* Waits until nobody is looking at it nor going to, at most until deadline_ns (monotonic). */
void prober_wait(struct prober *prober, const struct registry_tool *tool, uint64_t deadline_ns);

#endif
