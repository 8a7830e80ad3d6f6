/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's connections: who has each of them, what it is doing and since when, and which
 * one has to go when there are too many. Nobody who merely holds a connection keeps others out:
 * the one that has done nothing for the longest goes first.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_CONNS_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_CONNS_H

#include "api/daemon/http/http.h"
#include "api/daemon/http/http_head.h"

#include <pthread.h>

/* Bytes that a connection may have sent before they are looked at. */
#define HTTP_INPUT_MAX (2 * HTTP_HEAD_MAX)

enum http_phase {
    /* The loop's, which watches it. */
    HTTP_PHASE_IDLE,      /* nothing of a request has come */
    HTTP_PHASE_HEAD,      /* not all of a head */
    HTTP_PHASE_LINGERING, /* its last answer is out: until the peer has read it */
    /* Its thread's, while a request is at work. */
    HTTP_PHASE_WORK,
    HTTP_PHASE_UNWANTED, /* a body comes that nobody wants */
    HTTP_PHASE_PUBLIC,   /* an answer goes out to somebody who did not say who he is */
};

struct http_conn {
    struct http_conn *next, *previous;
    struct http_server *server; /* borrowed */
    int fd;
    bool is_tcp;
    uid_t uid; /* of a unix peer; (uid_t)-1 for any other */
    /* Of whoever has it. */
    char *in; /* of HTTP_INPUT_MAX bytes; NULL while nothing has come */
    size_t in_len;
    struct http_head head; /* which in begins with */
    /* The table's, under its lock. */
    enum http_phase phase;
    uint64_t since_ns;           /* of the phase */
    bool ended;                  /* told to end */
    char tenant[TENANT_ID_SIZE]; /* whose request this is, or "" */
};

struct http_conns {
    struct http_server *server; /* borrowed: whose they are */
    pthread_mutex_t lock;
    pthread_cond_t quiet;
    int epoll_fd;            /* of the loop; owned */
    struct http_conn *first; /* the newest */
    unsigned n;
    unsigned n_ended; /* of them */
    unsigned n_tcp;   /* of them, without those that were told to end */
    unsigned n_working;
    unsigned max;
    struct http_deadlines deadlines;
};

/* Deadlines of 0 get their default. 0 or -errno; http_conns_finish in any case. */
int http_conns_init(struct http_conns *conns, struct http_server *server, unsigned max,
                    const struct http_deadlines *deadlines);
/* When no request is at work any more. Closes all that is left. */
void http_conns_finish(struct http_conns *conns);

/* One that the loop has. Takes fd over. */
void http_conns_add(struct http_conns *conns, int fd, bool is_tcp, uid_t uid);
/* Ends it. */
void http_conns_close(struct http_conns *conns, struct http_conn *conn);
/* Gives it to the loop, or leaves it there. Its phase begins now if it is another one. */
void http_conns_give(struct http_conns *conns, struct http_conn *conn, enum http_phase phase);
/* Takes it from the loop, for a thread of its own. */
void http_conns_take(struct http_conns *conns, struct http_conn *conn);
/* Another phase with who has it; what it had done before is forgotten. */
void http_conns_enter(struct http_conns *conns, struct http_conn *conn, enum http_phase phase);
/*
 * Counts the request as this tenant's until it ends. False when the tenant has half of all
 * connections already.
 */
bool http_conns_claim(struct http_conns *conns, struct http_conn *conn, const char *tenant);
/* Waits until no request is at work; false when that time has come. */
bool http_conns_wait(struct http_conns *conns, uint64_t deadline_ns);
/* Tells all to end. */
void http_conns_end(struct http_conns *conns);

/* One of the loop's that has used up its time, for it to end and to ask again; else NULL. */
struct http_conn *http_conns_expired(struct http_conns *conns, uint64_t now_ns);

/* What came of making room. */
enum http_room {
    HTTP_ROOM_MADE,
    HTTP_ROOM_SOON, /* who does nothing, or is at work, has only just begun to */
    HTTP_ROOM_NONE, /* every one is at work, and not only just so */
};

/*
 * Room for one more; an eighth of all places is the unix sockets'. Where there is none ends the
 * connection that has done nothing for the longest, of the unix sockets only where TCP has
 * none, and of TCP only for a newcomer by TCP. Who has only just begun to do nothing is spared,
 * unless the newcomer has waited for as long. The loop's, which has no news of it afterwards.
 */
enum http_room http_conns_make_room(struct http_conns *conns, bool is_tcp, uint64_t waited_ns,
                                    uint64_t now_ns);
/* The same where another resource than places ran out; of nobody while others are ending. */
void http_conns_shed(struct http_conns *conns, uint64_t now_ns);

#endif
