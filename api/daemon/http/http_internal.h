/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the HTTP server share: one request on its way, from its first line to the
 * end of its answer. Everything here belongs to the thread of its connection.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_INTERNAL_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_INTERNAL_H

#include "api/daemon/http/http_conns.h"

#define HTTP_BEARER_MAX 256u

struct MHD_Connection;
struct MHD_PostProcessor;

struct http_exchange {
    const struct http_config *config; /* borrowed */
    struct http_server *server;
    struct http_conns *conns; /* borrowed */
    struct http_conn *conn;   /* the entry of its connection; NULL where memory ran out */
    struct MHD_Connection *connection;
    char *target;                   /* the request line's, as sent; owned */
    const struct http_route *route; /* NULL: none, and there is a reply already */
    struct http_request request;
    struct http_reply reply; /* status 0 until it is known */
    bool begun;              /* its headers were looked at */
    bool draining;           /* its body comes and is not wanted */
    bool early;              /* answered before its body had come */
    bool is_known;           /* who calls has said who he is */
    bool must_close;         /* nothing that follows on the connection can be trusted */
    char allow[64];
    struct MHD_PostProcessor *form;
    uint64_t drained; /* bytes of a body that nobody wants */
    uint64_t kept;    /* bytes of the body so far */
    uint64_t held;    /* counted for it; more than kept where its length was told */
    uint64_t held_answer;
};

/* http_reply.c */
struct http_reply http_reply_init(void);
void http_reply_finish(struct http_reply *reply);
/* What was held for the answer is no longer. */
void http_reply_release(struct http_exchange *x);
/* Queues the reply. False: the connection has to be closed. */
bool http_reply_send(struct http_exchange *x);

/* http_framing.c */
/* Refuses what two readers could take for different requests; else notes Host and Accept. */
void http_framing_check(struct http_exchange *x, const char *version);
/* True for a name or an address with or without a port, and nothing else. */
bool http_framing_is_host(const char *value);

/* http_auth.c: who calls, and may they? Else there is a reply. */
void http_auth_check(struct http_exchange *x);
/* The key of an Authorization header's value; "" where it is not a bearer's. */
void http_auth_bearer(const char *value, char ret[HTTP_BEARER_MAX + 1]);

/* http_body.c */
const char *http_header(const struct http_exchange *x, const char *name);
/* Looks at the headers: which body comes, and may it? Else there is a reply. */
void http_body_begin(struct http_exchange *x);
/*
 * Looks at the declared length. True when the reply should go out before the body comes: the
 * sender asked first, or it is hopelessly large.
 */
bool http_body_refused(struct http_exchange *x);
/* Takes a piece of the body. False: the connection has to be closed. */
bool http_body_take(struct http_exchange *x, const char *data, size_t size);
/* The body is there as a whole. Else there is a reply. */
void http_body_end(struct http_exchange *x);
/* Gives back all that the body takes. More than once is fine. */
void http_body_finish(struct http_exchange *x);

#endif
