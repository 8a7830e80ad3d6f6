/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where connections wait: one thread that accepts on every listener and looks at what comes,
 * without taking it, until there is the whole head of a request. Only then does a connection
 * get a thread of its own, so one that says nothing, or says it slowly, costs a descriptor. It
 * also watches over the connections that have a thread (http_conns.h).
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_LOBBY_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_LOBBY_H

#include "api/daemon/http/http_conns.h"
#include "api/daemon/http/listener.h"

#include <sys/socket.h>

struct http_lobby;

struct http_lobby_config {
    struct listener *listeners; /* borrowed; open */
    size_t n_listeners;
    struct http_conns *conns; /* borrowed */
    /*
     * Gives a connection its thread; its phase is HTTP_PHASE_PASSED. False: it cannot, and has
     * closed the descriptor; the entry is the lobby's again.
     */
    bool (*pass)(void *ctx, int fd, const struct sockaddr *peer, socklen_t len);
    void *ctx;
};

/* Starts the thread. 0 or -errno. */
int http_lobby_start(const struct http_lobby_config *config, struct http_lobby **ret,
                     struct err *err);
/* Accepts no more and removes the names of the listeners. */
void http_lobby_quiesce(struct http_lobby *lobby);
/* There may be room again. From any thread. */
void http_lobby_wake(struct http_lobby *lobby);
/* Ends the thread and every connection without a thread; it may still be woken. NULL is fine.
 */
void http_lobby_stop(struct http_lobby *lobby);
/* After http_lobby_stop. NULL is fine. */
void http_lobby_destroy(struct http_lobby *lobby);

#endif
