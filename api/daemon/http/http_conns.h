/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's connections: who has each of them, what it is doing and since when, and which
 * one has to go when there are too many. Nobody who merely holds a connection keeps others out:
 * the one that has done nothing for the longest goes first.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_CONNS_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_CONNS_H

#include "api/daemon/http/http.h"
#include "api/daemon/http/http_reader.h"

#include <pthread.h>
#include <sys/queue.h>

enum http_phase {
    /* The loop's, which is told of what comes, once. */
    HTTP_PHASE_IDLE,      /* nothing of a request has come */
    HTTP_PHASE_HEAD,      /* not all of a head */
    HTTP_PHASE_LINGERING, /* its last answer is out: until the peer has read it */
    /* Its thread's, while a request is at work. */
    HTTP_PHASE_WORK,
    HTTP_PHASE_UNWANTED, /* a body comes that nobody wants */
    HTTP_PHASE_PUBLIC,   /* an answer goes out to somebody who did not say who he is */
};

/* What came of a request and what follows it. */
struct http_input {
    struct http_head head; /* which text begins with */
    size_t len;
    char text[2 * HTTP_HEAD_MAX];
};

struct http_conn {
    LIST_ENTRY(http_conn) of_all;
    struct http_conns *conns;
    int fd;
    bool is_tcp;
    uid_t uid; /* of a unix peer; (uid_t)-1 for any other */
    /* Of whoever has it. */
    struct http_input *in; /* NULL while nothing has come */
    /* The table's, under its lock. */
    enum http_phase phase;
    uint64_t since_ns;           /* of the phase */
    bool ended;                  /* told to end */
    char tenant[TENANT_ID_SIZE]; /* whose request this is, or "" */
};

struct http_conns {
    const struct http_config *config; /* borrowed */
    struct http_deadlines deadlines;
    unsigned max;
    int epoll_fd; /* of the loop; owned; -errno where there is none */
    pthread_mutex_t lock;
    pthread_cond_t quiet;
    LIST_HEAD(, http_conn) all; /* the newest first */
};

/* What is not set gets its default. */
void http_conns_init(struct http_conns *conns, const struct http_config *config);
/*
 * Without a loop: waits until no request is at work, from that time on by force, and closes
 * all.
 */
void http_conns_finish(struct http_conns *conns, uint64_t deadline_ns);

/* One that the loop has. Takes fd over. */
void http_conns_add(struct http_conns *conns, int fd, bool is_tcp);
/* Ends it. */
void http_conn_close(struct http_conn *c);
/*
 * Gives it to who has connections in this phase, the loop or the caller's thread. The phase
 * begins now if it is another one.
 */
void http_conn_enter(struct http_conn *c, enum http_phase phase);
/* For who is told of it: what it is doing, with all that its last owner did to it. */
enum http_phase http_conn_phase(struct http_conn *c);
/* Takes what has come. How many bytes that is, 0 for the end, or -errno. */
ssize_t http_conn_receive(struct http_conn *c);
/*
 * Counts the request as this tenant's until it ends. False when the tenant has half of all
 * connections already.
 */
bool http_conn_claim(struct http_conn *c, const char *tenant);

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
/* The same where another resource than places ran out, for a newcomer who can wait. */
void http_conns_shed(struct http_conns *conns, uint64_t now_ns);

#endif
