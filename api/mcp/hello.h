/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of the protocol, and how the server introduces itself. Up to 2025-11-25 a client
 * begins with `initialize`, which agrees on a version for the session; since 2026-07-28 every
 * request names the version it is of, and there is no session.
 */
#ifndef SKILLVM_API_MCP_HELLO_H
#define SKILLVM_API_MCP_HELLO_H

#include "api/json/json_text.h"
#include "api/json/json_write.h"

#include <stdbool.h>

/* The version without a session. */
#define HELLO_STATELESS "2026-07-28"
/* The one version with batches. */
#define HELLO_BATCHES "2025-03-26"

/*
 * The version for a session whose client asked for this one (a JSON string): the same one, or
 * the latest with sessions. Static.
 */
const char *hello_agree(struct json_slice asked);
/*
 * The version that a request's parameters name in their _meta (JSON of any type); empty when
 * they name none, as in a session.
 */
struct json_slice hello_named(struct json_slice params);

/* The result of `initialize` and of `server/discover`. */
void hello_write_initialize(struct json_writer *w, const char *version, bool list_changed);
void hello_write_discover(struct json_writer *w, bool list_changed, unsigned ttl_ms);
/* All versions that are spoken, as an array. */
void hello_write_versions(struct json_writer *w, const char *key);
/* "io.modelcontextprotocol/serverInfo" as a member, as the results of each request have it. */
void hello_write_server(struct json_writer *w);

#endif
