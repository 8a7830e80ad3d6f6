/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where connections wait: one thread that accepts on every listener and reads heads of requests
 * as they come. Only with a whole one does a connection get a thread, and only until it is
 * answered, so one that says nothing, or says it slowly, costs a descriptor. Nothing here
 * blocks.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_LOOP_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_LOOP_H

#include "api/daemon/http/http_conns.h"
#include "api/daemon/http/listener.h"

struct http_loop;

struct http_loop_config {
    struct listener *listeners; /* borrowed; open */
    size_t n_listeners;
    struct http_conns *conns; /* borrowed */
    /* Starts a thread for a connection, which was taken for it. False: it cannot. */
    bool (*serve)(void *ctx, struct http_conn *conn);
    void *ctx;
};

/* Starts the thread. 0 or -errno. */
int http_loop_start(const struct http_loop_config *config, struct http_loop **ret,
                    struct err *err);
/* Accepts no more and removes the names of the listeners. */
void http_loop_quiesce(struct http_loop *loop);
/* Ends the thread. Connections stay. NULL is fine. */
void http_loop_stop(struct http_loop *loop);

/*
 * What a connection's input is, as far as it came: 0 for a whole head. Else it is not the
 * caller's any more: the loop waits for more, or it was refused.
 */
int http_loop_look(struct http_conns *conns, struct http_conn *conn);

#endif
