/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the HTTP server share: one request at work, from its head to the end of its
 * answer. Everything here belongs to the thread of its connection. Who says false has filled
 * the reply.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_INTERNAL_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_INTERNAL_H

#include "api/daemon/http/http_conns.h"
#include "api/daemon/http/http_form.h"

#define HTTP_BEARER_MAX 256u

/* Whether a body comes fast enough. */
struct http_pace {
    uint64_t since_ns; /* when it had last brought enough */
    uint64_t bytes;    /* since then */
};

struct http_exchange {
    const struct http_config *config; /* borrowed */
    struct http_conn *conn;
    struct http_head *head; /* of its input */
    const struct http_route *route;
    struct http_request request;
    struct http_reply reply; /* status 0 until it is known */
    size_t at;               /* of the input: what was taken */
    struct http_framing framing;
    struct http_pace pace;
    bool is_known;   /* who calls has said who he is */
    bool must_close; /* nothing that follows on the connection can be trusted */
    char allow[64];
    struct http_form *form;
    struct http_part *part; /* of the form, which comes */
    uint64_t kept;          /* bytes of the body so far */
    uint64_t held;          /* counted for it; more than kept where its length was told */
    uint64_t held_beside;   /* counted like it, by who answers */
    uint64_t held_answer;
};

/* http.c: answers the requests of a connection whose input begins with a whole head. */
void *http_serve(void *conn);

/* http_auth.c: who calls, and may they? */
bool http_auth_check(struct http_exchange *x);
/* The key of an Authorization header's value; "" where it is not a bearer's. */
void http_auth_bearer(const char *value, char ret[HTTP_BEARER_MAX + 1]);

/* http_body.c */
/* The exchange that a handler's request is of. */
struct http_exchange *http_exchange_of(struct http_request *request);
/* Asks where so many bytes more may be held: on disk where nobody cares. NONE: there is a
 * reply. */
enum http_place http_hold(struct http_exchange *x, enum http_held what, uint64_t bytes,
                          uint64_t already);
/* They are held no longer; none are then. */
void http_release(struct http_exchange *x, enum http_held what, uint64_t *bytes);
/* So many bytes came of a body that has body_ms for each HTTP_BODY_RATE bytes a second. */
void http_pace_add(struct http_pace *pace, unsigned body_ms, size_t bytes, uint64_t now_ns);
/* Looks at the headers: which body comes, and may it? */
bool http_body_begin(struct http_exchange *x);
/* Reads what is left of the body for nobody, unless the sender has to hear the answer first. */
void http_body_drain(struct http_exchange *x);
/* Gives back all that the body takes. */
void http_body_finish(struct http_exchange *x);

/* http_reply.c */
struct http_reply http_reply_init(void);
/* Sends the reply and ends it. False: not all of it, and the connection has to be closed. */
bool http_reply_send(struct http_exchange *x);
/*
 * Answers what is no request, or one that is not read, as far as the socket takes it at once;
 * nothing may follow.
 */
void http_refusal_send(int fd, unsigned status);

#endif
