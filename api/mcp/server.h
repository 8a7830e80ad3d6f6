/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Model Context Protocol server for one client: messages go in line by line, messages come
 * out through a function. The skills of a daemon are its tools, their SKILL.md and the files of
 * executions its resources. It never touches a descriptor and never logs.
 */
#ifndef SKILLVM_API_MCP_SERVER_H
#define SKILLVM_API_MCP_SERVER_H

#include "api/client/skillvm.h"

#include <stdbool.h>
#include <stddef.h>

#define MCP_LINE_MAX                                                                           \
    (20u << 20)           /* bytes: the largest input of a skill, and what is around it */
#define MCP_CALLS_MAX 32u /* requests under way at once */
#define MCP_BATCH_MAX 64u /* messages of a batch */

struct mcp_server;

struct mcp_config {
    /* As skillvm_perform(); from many threads at once. */
    int (*perform)(void *ctx, const struct skillvm_request *request,
                   struct skillvm_error *error);
    /* Writes one message with its line end; never from two threads at once. */
    void (*send)(void *ctx, const char *line, size_t len);
    void *ctx;              /* of both */
    bool no_network;        /* no tool reaches a host */
    unsigned watch_ms;      /* how often to look for new skills; 0: never */
    unsigned progress_ms;   /* least time between two notifications of progress */
    unsigned cancel_end_ms; /* how long mcp_server_stop() waits */
};

/* 0 or -ENOMEM. */
int mcp_server_create(const struct mcp_config *config, struct mcp_server **ret_server);

/*
 * Takes one line of the client's; NULL stands for one that was over MCP_LINE_MAX. Answers come
 * now or later, from other threads.
 */
void mcp_server_take(struct mcp_server *server, const char *line, size_t len);

/*
 * Cancels what runs and waits for its end. True when nothing is left; false when something
 * still was after cancel_end_ms, and then the server must not be freed. Nothing is sent after
 * it was called.
 */
bool mcp_server_stop(struct mcp_server *server);
/* Frees a server that has stopped. NULL is fine. */
void mcp_server_free(struct mcp_server *server);

#endif
