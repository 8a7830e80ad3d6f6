/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request's handler works with: the request, the way to the daemon, and the answer to
 * fill in. Each request that needs the daemon runs in a thread of its own.
 */
#ifndef SKILLVM_API_MCP_CALL_H
#define SKILLVM_API_MCP_CALL_H

#include "api/json/json_text.h"
#include "api/json/json_write.h"
#include "api/mcp/message.h"
#include "api/mcp/server.h"
#include "base/buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MCP_PAGE_MAX   100u        /* entries of a list in one answer */
#define MCP_RESULT_MAX (48u << 20) /* bytes of an answer */
#define MCP_DAEMON_MAX (72u << 20) /* bytes of an answer of the daemon's */

struct batch;
struct mcp_server;
struct method;

struct mcp_call {
    const struct mcp_config *config;
    struct message message; /* points into text */
    const char *version;    /* of the protocol, which the request is of */
    atomic_bool cancelled;  /* the client does not want an answer any more */
    /* The server's: */
    struct mcp_server *server;
    struct mcp_call *next;
    pthread_t thread;
    struct batch *batch; /* NULL: a message of its own */
    const struct method *method;
    unsigned long seen; /* how many changes of the lists; under its lock */
    size_t len;
    char text[];
};

/* What a request is answered with: a result, or an error where code is not 0. */
struct mcp_answer {
    struct json_writer result;
    int code; /* of enum message_error */
    char text[SKILLVM_MESSAGE_MAX];
};

/* Makes it an error, and -1 for the handler to return. */
int mcp_answer_fail(struct mcp_answer *answer, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True when the request is of this version of the protocol or a later one. */
bool mcp_call_speaks(const struct mcp_call *call, const char *version);
/* Sends a notification that belongs to the request, unless it was cancelled. */
void mcp_call_notify(struct mcp_call *call, const char *method, const struct buf *params);

/*
 * Waits for a change of the lists of tools and resources since the request came or was told of
 * one. False when it was cancelled.
 */
bool mcp_call_wait_change(struct mcp_call *call);

/*
 * GET of something of the daemon's into body, which bounds it. type (64 bytes, or NULL) gets
 * its media type. 0, or -errno with error; -EINTR when stop became true.
 */
int mcp_get(const struct mcp_config *config, const atomic_bool *stop, const char *path,
            uint64_t timeout_ms, struct buf *body, char *type, struct skillvm_error *error);
/* The same for a request, until it is cancelled. */
int mcp_call_get(struct mcp_call *call, const char *path, struct buf *body, char *type,
                 struct skillvm_error *error);

/* The answer for a call of the daemon's that failed, and -1. */
int mcp_answer_daemon(struct mcp_answer *answer, const struct skillvm_error *error);

/* Handlers. 0 with a result, or -1 with an error in the answer. */
int mcp_tools_list(struct mcp_call *call, struct mcp_answer *answer);
int mcp_tools_call(struct mcp_call *call, struct mcp_answer *answer);
int mcp_resources_list(struct mcp_call *call, struct mcp_answer *answer);
int mcp_resources_templates(struct mcp_call *call, struct mcp_answer *answer);
int mcp_resources_read(struct mcp_call *call, struct mcp_answer *answer);
int mcp_listen(struct mcp_call *call, struct mcp_answer *answer);

#endif
