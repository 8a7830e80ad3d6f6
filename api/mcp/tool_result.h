/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of an execution as the result of a tool's call.
 */
#ifndef SKILLVM_API_MCP_TOOL_RESULT_H
#define SKILLVM_API_MCP_TOOL_RESULT_H

#include "api/json/json_text.h"
#include "api/json/json_write.h"
#include "api/mcp/call.h"

#define MCP_TEXT_MAX  (1u << 20)  /* bytes of output in a result; more is shortened */
#define MCP_TAIL_MAX  (8u * 1024) /* bytes of standard error with a failure */
#define MCP_LINKS_MAX 256u        /* files named in a result */

/*
 * Writes it: the output, or what was printed, as text; an output that is an object as
 * structured content too; a link for each file; a failure with its reason and the end of
 * standard error. What failed in writing stays in w.
 */
void mcp_result_write(const struct mcp_call *call, struct json_slice result,
                      struct json_writer *w);

/* The result of a call that ran nothing: a text, which may be an object as JSON. */
void mcp_result_write_text(const struct mcp_call *call, const struct buf *text, bool is_object,
                           struct json_writer *w);

/* The result of a call that the daemon did not take, for the model to read. */
void mcp_result_write_refusal(struct json_writer *w, const char *text);

#endif
