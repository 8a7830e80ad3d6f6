/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm mcp`: the Model Context Protocol on standard input and output. */
#ifndef SKILLVM_API_MCP_COMMAND_H
#define SKILLVM_API_MCP_COMMAND_H

#include "api/cli/cli.h"

/* As the commands of api/cli/cli.h. */
int cmd_mcp(struct cli_globals *globals, int argc, char **argv);

#endif
