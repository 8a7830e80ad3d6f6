/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server's parts share: its state, the requests under way, and how answers leave.
 */
#ifndef SKILLVM_API_MCP_SESSION_H
#define SKILLVM_API_MCP_SESSION_H

#include "api/mcp/call.h"
#include "api/mcp/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The answers of a batch, which are sent together. */
struct batch {
    size_t waiting; /* for answers, and for the end of the batch itself */
    struct buf text;
};

struct mcp_server {
    struct mcp_config config;
    pthread_mutex_t send_lock;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t ended; /* a call */
    struct mcp_call *calls;
    struct mcp_call *done; /* their threads are about to end, and are to be joined */
    unsigned n_calls;
    size_t held;
    const char *version;     /* of the session; NULL until it is agreed on */
    bool initialized;        /* the session is */
    struct mcp_watch *watch; /* NULL until somebody is there to be told */
    unsigned long changes;   /* of the lists */
    pthread_cond_t changed;  /* a change, or a call was cancelled */
    atomic_bool stopping;
};

struct method {
    const char *name;
    int (*handler)(struct mcp_call *call, struct mcp_answer *answer);
    bool cached;    /* a result without a session says how long it holds */
    bool has_meta;  /* its handler writes _meta */
    bool stateless; /* not there in a session */
};

/* Sends a message if r says that it was written whole. Frees it. */
void reply_send(struct mcp_server *s, struct buf *text, int r);
/* Sends an answer, or keeps it for its batch where batch is not NULL. Frees it. */
void reply_keep(struct mcp_server *s, struct batch *batch, struct buf *text, int r);
void reply_error(struct mcp_server *s, struct batch *batch, struct json_slice id, int code,
                 const char *text);
/* Frees the result, and answers with an error where writing it failed. */
void reply_result(struct mcp_server *s, struct batch *batch, struct json_slice id,
                  struct json_writer *result);
/* One that the batch waited for is done; the last one sends it and frees it. */
void reply_release(struct mcp_server *s, struct batch *batch);

/* Under the server's lock. NULL when no request of this id is under way. */
struct mcp_call *calls_find(struct mcp_server *s, struct json_slice id);
/*
 * Answers a request from a thread of its own. value is the message, which is copied, and m what
 * it says; version is that of its answer.
 */
void calls_start(struct mcp_server *s, struct batch *batch, struct json_slice value,
                 const struct message *m, const struct method *method, const char *version);
/* Joins the threads of requests that are done. */
void calls_reap(struct mcp_server *s);

#endif
