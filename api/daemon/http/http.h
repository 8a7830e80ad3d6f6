/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1: routes and who may use them, request bodies within their limits (spooled, never
 * held whole in memory), replies, streams. A request has a thread while it is at work, so a
 * handler may block; connections without one wait in http_loop.h.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_H

#include "api/daemon/store/spool.h"
#include "api/daemon/terms/tenant.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_LISTENERS_MAX       4u
#define HTTP_CONNECTIONS_DEFAULT 1100u

/* Bytes a second that a body brings at least, whenever one looks (http_deadlines.body_ms). */
#define HTTP_BODY_RATE 8192u

#define HTTP_HOST_MAX   255u
#define HTTP_PARAMS_MAX 3u
#define HTTP_PARTS_MAX  3u
#define HTTP_QUERY_MAX  8u
#define HTTP_SEEN_SIZE  48u

/* Who may use a route; everybody else is answered with 401. */
enum http_access {
    HTTP_ACCESS_OPERATOR,
    HTTP_ACCESS_TENANT, /* and the operator */
    HTTP_ACCESS_OPEN,   /* nobody is asked; the request has no caller */
};

/* What a route takes as its body. */
enum http_body {
    HTTP_BODY_NONE,    /* ignored */
    HTTP_BODY_JSON,    /* JSON, or multipart/form-data */
    HTTP_BODY_ARCHIVE, /* an archive, or multipart/form-data */
    HTTP_BODY_FILE,    /* bytes of any type, or multipart/form-data; hashed as they come */
};

/* Where a request comes from. */
struct http_origin {
    bool is_unix;
    uid_t uid;                 /* of a unix peer; (uid_t)-1 for any other */
    const char *tenant_header; /* X-Tenant-ID, or NULL; borrowed */
};

/*
 * Tells who calls. bearer is the key of an Authorization header, "" for a header that has none,
 * NULL without one. 0, -EACCES for nobody we know, -EPERM and -ENOENT where tenant_header names
 * another's tenant or none, -EIO. Called by several threads at once,
 * before a body is read.
 */
typedef int http_authorize_fn(void *ctx, const struct http_origin *origin, const char *bearer,
                              struct caller *ret);

/* Why a request was answered with 401. */
enum http_unauthorized {
    HTTP_UNAUTHORIZED_NO_KEY,
    HTTP_UNAUTHORIZED_KEY,  /* the key is nobody's */
    HTTP_UNAUTHORIZED_ROLE, /* the key is good, and this is the operator's */
};

struct http_part {
    const char *name; /* of the route's part rule */
    bool seen;
    /* As the sender put them; owned, NULL where it did not. */
    char *file_name;
    char *content_type;
    struct spool content;
};

struct http_request {
    struct caller caller;
    /* All of it borrowed. */
    const char *params[HTTP_PARAMS_MAX]; /* what stood for ':' and '*' in the path */
    const char *query[HTTP_QUERY_MAX];   /* by the route's names; NULL where absent */
    const char *content_type;            /* of the body, or NULL */
    const char *host; /* the Host header, a name or address with or without a port; else "" */
    bool is_multipart;
    bool wants_events; /* Accept: text/event-stream */
    bool is_tcp;       /* else it came over a unix socket */
    struct spool body; /* what http_request_receive kept; empty for multipart */
    struct http_part parts[HTTP_PARTS_MAX];
};

struct http_reply {
    unsigned status;
    const char *content_type; /* static; NULL for an answer without a body */
    struct buf body;
    int file_fd; /* sent instead of body where not -1; owned */
    uint64_t file_bytes;
    const char *file_name; /* static: Content-Disposition, "" with no name in it; or NULL */
    unsigned retry_after_s;
    char location[64];         /* of what was created, or "" */
    char seen[HTTP_SEEN_SIZE]; /* the header Skillvm-Seen, or "" */
    /*
     * Streamed instead of body where not NULL: called until it returns -1. It may block for at
     * most 30 s, and then gives at least one byte.
     */
    ssize_t (*read)(void *ctx, char *data, size_t size);
    void (*release)(void *ctx); /* of any answer, before file_fd is closed; or NULL */
    void *stream_ctx;
    uint64_t stream_bytes; /* how many it gives in all, then -1; 0: nobody knows */
};

/* What is held for a caller while its request is at work. */
enum http_held {
    HTTP_HELD_FILE,   /* a body of HTTP_BODY_FILE */
    HTTP_HELD_BODY,   /* any other */
    HTTP_HELD_ANSWER, /* a large answer */
};

/* Where it may be held. */
enum http_place {
    HTTP_PLACE_NONE,
    HTTP_PLACE_MEMORY, /* of answers only */
    HTTP_PLACE_DISK,
};

/*
 * Asked before so many bytes more are held for a tenant ("" where nobody said who he is), which
 * counts them, beside those that this request holds already; with a reply where they may not
 * be. By several threads at once.
 */
typedef enum http_place http_hold_fn(void *ctx, const char *tenant, enum http_held what,
                                     uint64_t bytes, uint64_t already,
                                     struct http_reply *reply);
/* They are held no longer. */
typedef void http_release_fn(void *ctx, const char *tenant, enum http_held what,
                             uint64_t bytes);

/* Answers a request, whose body it may not have read yet. */
typedef void http_handle_fn(void *ctx, struct http_request *request, struct http_reply *reply);

/*
 * Asked now and then while a large body comes whether there is room for more; false with a
 * reply where there is not. By several threads at once.
 */
typedef bool http_room_fn(void *ctx, struct http_reply *reply);
/* Who knows where there is room; all of it may be NULL. */
struct http_keeper {
    http_room_fn *room;
    http_hold_fn *hold;
    http_release_fn *release;
    void *ctx; /* of these */
};

/*
 * Where others answer for the same service: what a caller has seen there he has to find here.
 * By several threads at once.
 */
struct http_others {
    /* Waits a moment for what the header Skillvm-Seen of a request says; false with a reply. */
    bool (*await)(void *ctx, const char *seen, struct http_reply *reply);
    /* Writes what that header is to say of an answer that is given now. */
    void (*stamp)(void *ctx, char ret[HTTP_SEEN_SIZE]);
    void *ctx;
};

/* As many bytes as the settings allow an archive. */
#define HTTP_BYTES_ARCHIVE UINT64_MAX

struct http_part_rule {
    const char *name; /* NULL ends the list */
    uint64_t max_bytes;
};

struct http_route {
    const char *method;
    const char *path; /* ":" stands for a segment, "*" at the end for all that follows */
    http_handle_fn *handle;
    enum http_access access;
    enum http_body body;
    uint64_t max_bytes;
    struct http_part_rule parts[HTTP_PARTS_MAX];
    const char *query[HTTP_QUERY_MAX]; /* parameters it looks at; others are ignored */
};

/* One place to listen at: the first of these that is set. */
struct http_listen {
    const char
        *socket_path; /* of a unix socket, bound with socket_mode; a stale one is replaced */
    mode_t socket_mode;
    const char *address; /* ADDRESS:PORT of TCP, numbers only */
    int fd; /* listens already; the server's from http_start on, whatever it returns */
};

/* How long a connection may take, in milliseconds; 0: the default. */
struct http_deadlines {
    unsigned idle_ms; /* without a request: 60 s */
    unsigned head_ms; /* from a request's first byte to the end of its headers: 20 s */
    unsigned body_ms; /* for the next HTTP_BODY_RATE bytes a second of a body: 30 s */
    unsigned send_ms; /* without taking anything of its answer, rounded up to seconds: 60 s */
};

struct http_config {
    struct http_listen listeners[HTTP_LISTENERS_MAX];
    size_t n_listeners;
    /*
     * 0: the default. At most half as many as the process may open files; an eighth of them is
     * not for TCP; where all are taken the idlest gives way.
     */
    unsigned max_connections;
    struct http_deadlines deadlines;
    uint64_t archive_bytes;          /* what HTTP_BYTES_ARCHIVE stands for */
    int tmp_fd;                      /* directory of spools; borrowed */
    const struct http_route *routes; /* ended by a NULL method; borrowed */
    http_authorize_fn *authorize;
    /* Told of every 401; by several threads at once. May be NULL. */
    void (*unauthorized)(void *ctx, enum http_unauthorized why);
    void *ctx; /* of the handlers and of all above */
    struct http_keeper keeper;
    struct http_others others; /* zeros: there are none */
};

struct http_server;

/*
 * Listens everywhere and serves. 0; -EADDRINUSE when somebody listens there; -EINVAL for an
 * address that is none or a descriptor that does not listen; -errno.
 */
int http_start(const struct http_config *config, struct http_server **ret, struct err *err);
/* Accepts no more connections and removes the sockets it made. */
void http_quiesce(struct http_server *server);
/* Gives answers a moment to arrive, ends every connection, waits for its thread. NULL is fine.
 */
void http_stop(struct http_server *server);

/*
 * For handlers, which are called when a request's head has come and its caller is known. Both
 * wait for the body, and the first of them tells a sender who asked (100-continue) to go on.
 * They reply themselves where the body is none, is late or may not be kept.
 */
/* The next bytes of the body, borrowed until the next call; 0: its end; -1: there is a reply.
 */
ssize_t http_request_read(struct http_request *request, const char **ret);
/* Keeps all of it, in request->body or in the parts. False: there is a reply. */
bool http_request_receive(struct http_request *request);

/*
 * Under the lock that makes it so: from here on the request's body is stored, and counts as
 * held no longer.
 */
void http_request_stored(struct http_request *request);

/*
 * Asks whether so many bytes more may be on disk while the request is at work, like bytes of
 * its body; they are given back with these. False: there is a reply.
 */
bool http_request_hold(struct http_request *request, uint64_t bytes);
/* No more than so many of them are held any longer: the others are gone, or are stored. */
void http_request_shrink(struct http_request *request, uint64_t bytes);
/*
 * Of what is held for the request up to so many bytes stay held when it is over. Returns how
 * many: the caller gives them back to the keeper, as those of a body.
 */
uint64_t http_request_hand_over(struct http_request *request, uint64_t bytes);

/*
 * Asks whether an answer of so many bytes may be made, before it is; as it grows, again. They
 * count until it was sent, like all that is large and not read yet. False: there is a reply.
 */
bool http_request_hold_answer(struct http_request *request, uint64_t bytes);

/*
 * For who asks by another way than a connection: a handler gets a request of a tenant that has
 * come as a whole, with this as its JSON body. It counts as its tenant's like any other. False:
 * there was no room or no memory for it. ctx is the handler's.
 */
bool http_call(struct http_server *server, const char *tenant, const void *body, size_t len,
               http_handle_fn *handle, void *ctx);

/* Fills a reply that has no body. */
void http_reply_empty(struct http_reply *reply, unsigned status);
/* Fills a reply with JSON text that is formatted. */
void http_reply_json(struct http_reply *reply, unsigned status, struct buf *body);
/* Fills a reply with {"error":code,"message":…}. False, for who says by that: there is a reply.
 */
bool http_reply_error(struct http_reply *reply, unsigned status, const char *code,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
