/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MCP server with a scripted client on one side and a scripted daemon on the other.
 */
#ifndef SKILLVM_TESTS_UNIT_MCP_SCRIPT_H
#define SKILLVM_TESTS_UNIT_MCP_SCRIPT_H

#include "api/mcp/server.h"

#include <stdbool.h>
#include <stddef.h>

/* The server of a test; begins with no message taken. */
void script_begin(unsigned watch_ms);
/* The same with other settings, of which functions and times are the script's. */
void script_begin_with(const struct mcp_config *wanted);
/* Ends it. True when nothing was left over. */
bool script_end(void);

/* What the daemon answers on a GET: 200 with the body, or what status says. */
void script_page(const char *path, int status, const char *type, const void *body, size_t len);
/* Waits until somebody was given it. */
void script_wait_given(const char *path);

/*
 * What the daemon does with a tool's call. Events are lines "name data"; after them it waits
 * for script_release() where hold is set. status is not 200: it refuses with this body.
 */
void script_tool(const char *name, int status, const char *events, bool hold);
void script_release(void);

/* Sends one line to the server. */
void script_send(const char *line);
/* initialize with this version, and its answer taken away. */
void script_initialize(const char *version);
/* The next line that the server sent; fails when none comes in five seconds. Valid until the
 * next call. */
const char *script_next(void);
/* Fails unless the next line has this text in it. Returns the line. */
const char *script_expect(const char *part);
/* Fails when a line comes in the next tenth of a second. */
void script_expect_nothing(void);
/* How many DELETEs of this path came, after waiting for the first one (or a second). */
unsigned script_deletes(const char *path);
/* The body of the last tool's call. */
const char *script_last_call(void);

#endif
