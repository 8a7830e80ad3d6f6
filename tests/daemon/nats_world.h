/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real nats-servers on the loopback interface, with JetStream, in a folder of their own: one,
 * or three in a cluster. They end with the test, whatever ends it.
 */
#ifndef SKILLVM_TESTS_DAEMON_NATS_WORLD_H
#define SKILLVM_TESTS_DAEMON_NATS_WORLD_H

#include "tests/daemon/daemon_harness.h"
#include "tests/daemon/net_world.h"

#define NATS_SERVERS_MAX 3u
#define NATS_WAIT_S      90 /* for what takes a moment on an idle machine */

struct nats_server {
    pid_t pid; /* -1: it does not run */
    uint16_t port;
    uint16_t route_port;
};

struct nats_world {
    char dir[64];
    struct nats_server servers[NATS_SERVERS_MAX];
    size_t n;
    const char *jetstream;       /* "jetstream {…}" in place of the usual one; NULL: that */
    const char *file_store;      /* max_file_store of the usual one; NULL: much */
    const char *more;            /* of the servers' settings; "" or NULL: nothing */
    const char *user;            /* "name:password@" of URLs, or NULL */
    const struct net_world *net; /* whose first hosts the servers are; NULL: they are here */
    bool takes_nobody; /* without more than that: it is enough that somebody listens */
};

/* Starts so many servers and waits until each answers and, with JetStream, they have a leader.
 */
void nats_begin(struct nats_world *w, size_t n);
void nats_end(struct nats_world *w);
/* Ends one at once, or starts it again with what it had and waits until it accepts. */
void nats_kill(struct nats_world *w, size_t server);
void nats_restart(struct nats_world *w, size_t server);
/* The streams of nodes, of changes and of what skills hold. */
#define NATS_NODES   "KV_skillvm_nodes"
#define NATS_CHANGES "KV_skillvm_registry"
#define NATS_OBJECTS "OBJ_skillvm_objects"
#define NATS_RECORDS "KV_skillvm_executions"
/* The server that leads a stream. Waits until one does. */
size_t nats_leader(const struct nats_world *w, const char *stream);

/* The URLs of all servers for cluster.servers, in out. Returns out. */
const char *nats_urls(const struct nats_world *w, char *out, size_t size);
/* A natsConnection to one of the servers, the caller's. Waits until one takes it. */
void *nats_connect(const struct nats_world *w);
/* Publishes to a subject of some server's, as anybody might, until that is kept. */
void nats_publish(const struct nats_world *w, const char *subject, const void *data,
                  size_t len);
/* Says something to who listens, which nobody keeps. */
void nats_tell(const struct nats_world *w, const char *subject, const void *data, size_t len);
/* The same to one of them, with what it answers. False where nobody does. */
bool nats_call(const struct nats_world *w, const char *subject, const char *text,
               char ret_answer[256]);
/* Answers so whatever is asked there, until its end. */
struct nats_answering {
    void *connection, *subscription;
};
struct nats_answering nats_answer(const struct nats_world *w, const char *subject,
                                  char *answer);
void nats_answer_end(struct nats_answering *answering);
void nats_delete_bucket(const struct nats_world *w, const char *stream);
/* The last message of a stream to a subject, as an owned text; NULL: there is none. */
char *nats_last(const struct nats_world *w, const char *stream, const char *subject,
                char ret_subject[256]);
/* Removes all of a subject from a stream. */
void nats_purge(const struct nats_world *w, const char *stream, const char *subject);
/* Lets a stream have so many bytes, and refuse or drop what is more, as it does. */
void nats_limit(const struct nats_world *w, const char *stream, int64_t max_bytes);
/* Waits until all replicas of a stream have what its leader has. */
void nats_wait_replicas(const struct nats_world *w, const char *stream);
/* How many messages a stream has. */
uint64_t nats_count(const struct nats_world *w, const char *stream);
/* How many it may have. */
int64_t nats_messages_max(const struct nats_world *w, const char *stream);

/*
 * A daemon that is to be a node of this name (NULL: of its host's); more: further lines of
 * `cluster:`, or "". With the folder that it had where it was one before; zeroed at first.
 */
void nats_start_node(struct harness *h, const struct nats_world *w, const char *name,
                     const char *more);
/* Waits until its GET /v1/admin/cluster has this, or fails with what it has. */
void nats_wait_node(const struct harness *h, const char *part);
/* Waits until it refused an entry for a reason ("malformed") at this key. */
void nats_wait_refused(const struct harness *h, const char *why, const char *key);
/* Waits until one of two did. What a node has itself it writes over at once, and the other may
   never see the entry that it refuses. */
void nats_wait_refused_by(const struct harness *h, const struct harness *other, const char *why,
                          const char *key);
/* Waits until it has no entry of a node of this name. */
void nats_wait_gone(const struct harness *h, const char *name);
/* What the daemon says to method and /v1/admin/cluster with rest behind it, once the servers
   are not too busy to answer it. */
struct answer nats_ask(const struct harness *h, const char *method, const char *rest);
/* Has the bucket made, which is not there. */
void nats_make(const struct harness *h);

#endif
