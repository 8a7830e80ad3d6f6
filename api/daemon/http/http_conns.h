/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's connections: what each is doing and since when, which one has used up its time,
 * and which one has to go when there are too many. Nobody who merely holds a connection keeps
 * others out: the one that has done nothing for the longest goes first.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_CONNS_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_CONNS_H

#include "api/daemon/http/http.h"

#include <pthread.h>

enum http_phase {
    HTTP_PHASE_WAITING,   /* no whole head yet; the lobby's */
    HTTP_PHASE_LINGERING, /* refused, until the peer has read why; the lobby's */
    HTTP_PHASE_PASSED,    /* on its way to a thread of its own */
    HTTP_PHASE_IDLE,      /* in its thread, between requests */
    HTTP_PHASE_HEAD,      /* headers come */
    HTTP_PHASE_UNWANTED,  /* a body comes that nobody wants */
    HTTP_PHASE_BODY,
    HTTP_PHASE_ANSWER, /* the handler is at work, or its answer goes out */
    HTTP_PHASE_PUBLIC, /* an answer goes out to somebody who did not say who he is */
};

struct http_conn {
    struct http_conn *next, *previous;
    int fd;
    bool is_tcp;
    uid_t uid; /* of a unix peer; (uid_t)-1 for any other */
    /* The table's, under its lock. */
    enum http_phase phase;
    uint64_t since_ns;           /* of the phase, or when a body had last brought enough */
    uint64_t bytes;              /* of the body since then */
    bool ended;                  /* told to end */
    char tenant[TENANT_ID_SIZE]; /* whose request this is, or "" */
    /* The lobby's. */
    uint64_t look_ns; /* not to be looked at before */
    unsigned looks;
    bool has_news;    /* since the last look */
    bool half_closed; /* the peer sends no more */
};

struct http_conns {
    pthread_mutex_t lock;
    struct http_conn *first; /* the newest */
    unsigned n;
    unsigned n_ended; /* of them */
    unsigned n_tcp;   /* of them, without those that were told to end */
    unsigned max;
    struct http_deadlines deadlines;
};

/* Deadlines of 0 get their default. */
void http_conns_init(struct http_conns *conns, unsigned max,
                     const struct http_deadlines *deadlines);
void http_conns_finish(struct http_conns *conns);

/* A connection that waits. Takes fd over unless it returns NULL: out of memory. */
struct http_conn *http_conns_add(struct http_conns *conns, int fd, bool is_tcp, uid_t uid);
/* Forgets and frees it; its descriptor is not closed. */
void http_conns_remove(struct http_conns *conns, struct http_conn *conn);
/* The one with this descriptor that is on its way to its thread, or NULL. */
struct http_conn *http_conns_passed(struct http_conns *conns, int fd);
/* conn may be NULL. */
void http_conns_enter(struct http_conns *conns, struct http_conn *conn, enum http_phase phase);
void http_conns_progress(struct http_conns *conns, struct http_conn *conn, size_t bytes);
/*
 * Counts the request as this tenant's until it ends. False when the tenant has half of all
 * connections already.
 */
bool http_conns_claim(struct http_conns *conns, struct http_conn *conn, const char *tenant);

/* How many there are, and without those that were told to end. */
unsigned http_conns_count(struct http_conns *conns, unsigned *ret_living);
/* True when one more needs room; an eighth of all places is the unix sockets'. */
bool http_conns_full(struct http_conns *conns, bool is_tcp);
/*
 * The lobby's own whose next look is due: how many of them are in ret. *ret_next_ns is when the
 * first of the others is due; 0: there are none.
 */
size_t http_conns_due(struct http_conns *conns, uint64_t now_ns, struct http_conn **ret,
                      size_t max, uint64_t *ret_next_ns);
/*
 * Ends what has used up its time. One of the lobby's own is returned instead, for it to close
 * and to ask again; NULL when there is none.
 */
struct http_conn *http_conns_expire(struct http_conns *conns, uint64_t now_ns);
/* What came of making room. */
enum http_room {
    HTTP_ROOM_MADE,
    HTTP_ROOM_SOON, /* who does nothing has only just come: it gets a moment to speak */
    HTTP_ROOM_NONE, /* every one is at work */
};

/*
 * Makes room: ends the connection that has done nothing for the longest, of the unix sockets
 * only where TCP has none, and of TCP only for a newcomer by TCP. Who has only just begun to do
 * nothing is spared, unless the newcomer has waited for as long. *ret gets it where it is the
 * lobby's own, for it to close, else NULL.
 */
enum http_room http_conns_evict(struct http_conns *conns, bool is_tcp, uint64_t waited_ns,
                                uint64_t now_ns, struct http_conn **ret);

#endif
