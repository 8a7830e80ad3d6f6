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

/*
 * Starts the thread, which gives each connection with a whole head a thread of its own: serve,
 * with the connection, which is taken for it then. What is passed is borrowed; the listeners
 * are open. 0 or -errno.
 */
int http_loop_start(struct http_conns *conns, struct listener *listeners, size_t n_listeners,
                    void *(*serve)(void *conn), struct http_loop **ret, struct err *err);
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
