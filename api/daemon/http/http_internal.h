/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the HTTP server share: one request at work, from its head to the end of its
 * answer. Everything here belongs to the thread of its connection.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_INTERNAL_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_INTERNAL_H

#include "api/daemon/http/http_conns.h"
#include "api/daemon/http/http_form.h"
#include "api/daemon/http/http_framing.h"

#define HTTP_BEARER_MAX 256u

/* Whether a body comes fast enough. */
struct http_pace {
    uint64_t since_ns; /* when it had last brought enough */
    uint64_t bytes;    /* since then */
};

struct http_exchange {
    const struct http_config *config; /* borrowed */
    struct http_conns *conns;         /* borrowed */
    struct http_conn *conn;
    const struct http_route *route; /* NULL: none, and there is a reply already */
    struct http_request request;
    struct http_reply reply; /* status 0 until it is known */
    size_t at;               /* of the connection's input: what was taken */
    struct http_framing framing;
    struct http_pace pace;
    bool is_unwanted; /* nobody reads the body */
    bool is_known;    /* who calls has said who he is */
    bool must_close;  /* nothing that follows on the connection can be trusted */
    char allow[64];
    struct http_form *form;
    struct http_part *part; /* of the form, which comes */
    uint64_t kept;          /* bytes of the body so far */
    uint64_t held;          /* counted for it; more than kept where its length was told */
    uint64_t held_answer;
};

/* http_auth.c: who calls, and may they? Else there is a reply. */
void http_auth_check(struct http_exchange *x);
/* The key of an Authorization header's value; "" where it is not a bearer's. */
void http_auth_bearer(const char *value, char ret[HTTP_BEARER_MAX + 1]);

/* http_body.c */
/* The first header of the name, or NULL. */
const char *http_header(const struct http_exchange *x, const char *name);
/* So many bytes came of a body that has body_ms for each HTTP_BODY_RATE bytes a second. */
void http_pace_add(struct http_pace *pace, unsigned body_ms, size_t bytes, uint64_t now_ns);
/* Looks at the headers: which body comes, and may it? Else there is a reply. */
void http_body_begin(struct http_exchange *x);
/* Reads what is left of the body for nobody, unless the sender has to hear the answer first. */
void http_body_drain(struct http_exchange *x);
/* Gives back all that the body takes. More than once is fine. */
void http_body_finish(struct http_exchange *x);

/* http_reply.c */
struct http_reply http_reply_init(void);
void http_reply_finish(struct http_reply *reply);
/* What was held for the answer is no longer. */
void http_reply_release(struct http_exchange *x);
/* Sends the reply. False: not all of it, and the connection has to be closed. */
bool http_reply_send(struct http_exchange *x);
/*
 * Answers what is no request, or one that is not read, as far as the socket takes it at once;
 * nothing may follow.
 */
void http_refusal_send(int fd, unsigned status);

#endif
