/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks now and then whether the daemon has other skills than before.
 */
#ifndef SKILLVM_API_MCP_WATCH_H
#define SKILLVM_API_MCP_WATCH_H

#include "api/mcp/server.h"

#include <stdbool.h>
#include <stdint.h>

struct mcp_watch;

/*
 * Looks every config->watch_ms, the first time at once, and calls on_change from a thread of
 * its own. config must outlive it. NULL when it cannot.
 */
struct mcp_watch *mcp_watch_start(const struct mcp_config *config, void (*on_change)(void *ctx),
                                  void *ctx);
/*
 * Ends and frees it. False when it did not end by deadline_ns (monotonic), and it is not freed.
 */
bool mcp_watch_stop(struct mcp_watch *watch, uint64_t deadline_ns);

#endif
