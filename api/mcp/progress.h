/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress of a tool's call: what became of it and what it prints, as notifications that are
 * neither too many nor too large. Output that comes faster than it may be told is shortened;
 * the result has all of it.
 */
#ifndef SKILLVM_API_MCP_PROGRESS_H
#define SKILLVM_API_MCP_PROGRESS_H

#include "api/mcp/call.h"

#include <stddef.h>
#include <stdint.h>

#define MCP_PROGRESS_TEXT_MAX 4096u  /* bytes of output in one notification */
#define MCP_PROGRESS_BEAT_MS  10000u /* longest silence while it runs */

struct mcp_progress {
    struct mcp_call *call;
    struct json_slice token; /* empty: nobody wants to know */
    uint64_t sent;           /* how many */
    uint64_t began_ns;
    uint64_t last_ns;
    struct buf output; /* not told yet */
    bool shortened;    /* some of it had no room */
};

/* Begins. The token is looked for in the call's parameters. */
void mcp_progress_init(struct mcp_progress *p, struct mcp_call *call);
/* Tells it at once. */
void mcp_progress_say(struct mcp_progress *p, const char *text);
/* Takes output, and tells whole lines of it when they are due. */
void mcp_progress_output(struct mcp_progress *p, const void *data, size_t len);
/* Call often: tells what has become due. */
void mcp_progress_tick(struct mcp_progress *p);
/* Tells what is left. */
void mcp_progress_end(struct mcp_progress *p);
void mcp_progress_finish(struct mcp_progress *p);

#endif
