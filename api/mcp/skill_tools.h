/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tools of the server's own, which run nothing: list_skills says which skills there are,
 * and get_skill_info what one of them says of itself. For models whose client shows no
 * resources.
 */
#ifndef SKILLVM_API_MCP_SKILL_TOOLS_H
#define SKILLVM_API_MCP_SKILL_TOOLS_H

#include "api/mcp/call.h"

#include <stdbool.h>

/* Writes their definitions into a list of tools. */
void skill_tools_write(struct json_writer *w);
/* True for the name of one of them. */
bool skill_tools_has(const char *name);
/* Answers a call of one of them. 0, or -1 with an error in the answer. */
int skill_tools_call(struct mcp_call *call, const char *name, struct json_slice arguments,
                     struct mcp_answer *answer);

#endif
