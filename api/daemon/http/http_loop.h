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

struct http_loop {
    struct http_conns *conns;
    struct listener listeners[HTTP_LISTENERS_MAX];
    pthread_mutex_t lock; /* of the listeners */
    pthread_t thread;
    int stop_fd; /* an event: stop */
    /* The thread's own. */
    uint64_t resume_ns; /* the listeners are not watched until then; 0: they are */
    uint64_t tick_ns;
    uint64_t put_off_ns[HTTP_LISTENERS_MAX]; /* since then somebody waits for room; 0: nobody */
};

/*
 * Listens where the table's config says and starts the thread. As of http_start; http_loop_stop
 * in any case.
 */
int http_loop_start(struct http_loop *l, struct http_conns *conns, struct err *err);
/* Closes the listeners: accepts no more, and removes their names. */
void http_loop_quiesce(struct http_loop *l);
/* Ends the thread. Connections stay. */
void http_loop_stop(struct http_loop *l);

/*
 * Whether a connection's input begins with a whole head. Else the connection is not the
 * caller's any more: the loop waits for more, or it was refused.
 */
bool http_loop_look(struct http_conn *c);

#endif
