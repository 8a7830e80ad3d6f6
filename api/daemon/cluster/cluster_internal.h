/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a cluster share. */
#ifndef SKILLVM_API_DAEMON_CLUSTER_CLUSTER_INTERNAL_H
#define SKILLVM_API_DAEMON_CLUSTER_CLUSTER_INTERNAL_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/cluster_tail.h"
#include "api/daemon/cluster/nodes.h"
#include "api/daemon/cluster/object_meta.h"
#include "base/log.h"

#include <pthread.h>

#define CLUSTER_LEFT_MAX    16u /* of pushes that ended in the middle; of more nobody knows */
#define CLUSTER_THREADS_MAX 5u
#define CLUSTER_JOIN_MS     100u /* between two looks at whether this node is joined */
#define CLUSTER_SLICE_MS    250u /* how long a stop may wait for who waits for entries */

/* Threads that end when the node stops, none waiting for another. */
struct cluster_threads {
    pthread_t list[CLUSTER_THREADS_MAX];
    size_t n;
};

/* How the node follows the changes of tenants, keys, skills and files. */
struct cluster_follow {
    struct cluster_replica replica; /* where they are made; apply NULL: nowhere */
    uint64_t keys_timeout_ms;
    pthread_mutex_t writer; /* one change of this node's after the other; before lock */
    struct cluster_tail tail;
    /* Under the lock: why the servers had no room for a change of this node's, or "", what the
       bucket took then, and what it might. */
    char full[ERR_MESSAGE_MAX];
    uint64_t full_bytes, full_max;
    struct log_limit full_lines;
};

/* Connections that are open and that nobody uses. */
#define CLUSTER_LINKS      8u
#define CLUSTER_LINKS_OPEN 32u /* at once, those in use */
struct cluster_links {
    struct cluster_link *idle[CLUSTER_LINKS];
    size_t n;
    unsigned open; /* that are in use, or are being opened */
    pthread_cond_t given;
};

/* What other nodes have of tenants. */
struct cluster_load {
    struct cluster_sharing sharing;
    struct cluster_threads threads; /* that tells, and that hears */

    pthread_mutex_t lock; /* of what follows; before the cluster's */
    pthread_cond_t due;
    bool is_due;
    struct loads loads;
    uint64_t told, taken;
    struct refused refused;
};

/* Questions to other nodes that are at work: of who waits for news, of them of one tenant, in
   all, and of one tenant. What is asked of rows, for no tenant, is as many beside them. */
#define CLUSTER_LIVE_WAITING 256u
#define CLUSTER_LIVE_TENANT  64u
#define CLUSTER_LIVE_ASKED   320u
#define CLUSTER_LIVE_SHARE   (CLUSTER_LIVE_ASKED / 2)

struct cluster_question {
    char tenant[TENANT_ID_SIZE]; /* whose; "": a free place */
    bool waits;                  /* for news */
};

/* What is asked and answered of executions that run, over one link; under the cluster's lock.
 */
struct cluster_live {
    struct cluster_link *link; /* the server's; NULL: it has none */
    unsigned asked;            /* questions that are at work over it */
    unsigned of_rows;          /* of them */
    pthread_cond_t answered;
    struct cluster_question questions[CLUSTER_LIVE_ASKED]; /* all others */
    char silent[FLEET_NODE_SIZE];                          /* it did not answer: */
    uint64_t silent_until_ns;                              /* and is not asked (monotonic) */
};

/* Between tries: longer each time. Zeroed at the beginning and after a success. */
struct cluster_pause {
    uint64_t wait_ms;
    unsigned hurries;
};

struct cluster {
    const struct cluster_driver *driver;
    struct cluster_access access; /* texts are owned, but name */
    char servers[FLEET_SERVERS_MAX][FLEET_SERVER_SIZE];
    size_t n_servers;
    unsigned replicas;
    uint64_t objects_bytes;
    uint64_t artifacts_bytes;
    struct node_entry self; /* state and snapshots are the thread's, the rest never changes */

    pthread_t thread;
    /* Of the thread alone. */
    struct cluster_link *link;
    uint64_t revision;   /* of our entry as it was written last; 0: none of ours is there */
    uint64_t asked_ns;   /* realtime before that was sent, */
    uint64_t written_ns; /* and when it was acknowledged */
    uint64_t renew_ns;   /* monotonic, when it is to be written again */
    uint64_t said_ns;    /* monotonic, when it was */
    bool was_joined;     /* ever */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    pthread_cond_t room; /* for calls */
    bool is_stopping;
    bool is_draining;
    unsigned hurries; /* somebody changed something: try again at once */
    enum cluster_state state;
    enum cluster_fault fault; /* why it is cut off */
    char message[ERR_MESSAGE_MAX];
    uint64_t confirmed_ns; /* monotonic, when our entry was last seen to come back, or 0;
                            * the thread, which alone writes it, reads it without */
    uint64_t joined_ns;    /* monotonic, since when it came back without a gap */
    uint64_t since_ns;     /* realtime of the last change of state or fault */
    char server[FLEET_SERVER_SIZE]; /* that there is a connection to, as it may be shown; or ""
                                     */
    struct nodes nodes;
    /* Under which words chunks are that no object has, and that could not be removed. */
    char left[CLUSTER_LEFT_MAX][OBJECT_WORD_SIZE];
    unsigned n_left;
    struct cluster_follow follow;
    struct cluster_ledger ledger; /* where executions are noted; apply NULL: nowhere */
    struct cluster_tail records;
    uint64_t records_written;       /* the last revision that this node wrote of them; atomic */
    struct cluster_auditor auditor; /* where the audit is noted; apply NULL: nowhere */
    struct cluster_tail audit;
    /* Until then nobody waits for what others say they saw, in records and in calls; atomic. */
    uint64_t records_distrust_ns, calls_distrust_ns;
    struct cluster_links links;
    struct cluster_load load;
    struct cluster_live live;
    struct cluster_service service;
    struct cluster_threads servers_of_others;
    int n_serving; /* of them those that take calls now; under the lock */
    /* Under the lock: the snapshots that are here, and the place of the node that was last
       called for one that it has. */
    uint64_t snapshots[NODE_SNAPSHOTS_MAX];
    size_t n_snapshots;
    bool has_other_images; /* than it said last */
    size_t holder;
};

/*
 * How the node is now. Under the lock. The thread may be waiting for a server while the lease
 * runs out: what was joined is cut off then.
 */
void cluster_state_now(const struct cluster *c, struct cluster_status *ret);

/* An execution was written by this node: who hears of it finds it at others. */
void cluster_note_written(struct cluster *c, uint64_t revision);

/* Whether our entry came back within the lease. */
bool cluster_is_confirmed(const struct cluster *c);

/* "no_quorum", and so on. */
extern const char *const cluster_fault_names[CLUSTER_FAULTS];
/* What a fault means to a person and what to do about it, with what is known of it. */
void cluster_explain(enum cluster_fault fault, const struct err *err,
                     char ret[ERR_MESSAGE_MAX]);

/* The work of a thread, until the node stops. */
typedef void *cluster_thread_fn(void *cluster);
/* Starts one for each work, of up to CLUSTER_THREADS_MAX. 0 or -errno; those that are there are
   to be joined in both cases. */
int cluster_threads_start(struct cluster *c, struct cluster_threads *threads,
                          cluster_thread_fn *const *work, size_t n, struct err *err);
/* Waits until they end; then there are none. */
void cluster_threads_join(struct cluster_threads *threads);
/* Whether the node is joined now, as cluster_look says. */
bool cluster_is_joined(struct cluster *c);
/* Waits for so long, or until the node is stopped. */
void cluster_pause_ms(struct cluster *c, unsigned ms);
/* Who answers what comes over a link. */
struct cluster_caller {
    void *ctx;
    void (*take)(void *ctx, const char *data, size_t len, struct buf *answer);
};
/* Answers one that comes within a time, if one does; as next_call. */
enum cluster_fault cluster_serve_one(struct cluster *c, struct cluster_link *link,
                                     const struct cluster_caller *caller, unsigned wait_ms,
                                     bool *ret_some, struct err *err);
/* Serves over a connection while the node is joined and not stopped; else why it ended. */
typedef enum cluster_fault cluster_serve_fn(void *ctx, struct cluster_link *link,
                                            struct err *err);
/*
 * The work of a thread: serves over a connection of its own whenever the node is joined, until
 * it is stopped. undone is what the log says where that fails: loads="not heard".
 */
void cluster_serve_joined(struct cluster *c, const char *undone, cluster_serve_fn *serve,
                          void *ctx);
/* Whether this node has room, which is asked for four times a second at least. */
typedef bool cluster_room_fn(struct cluster *c);
cluster_room_fn cluster_has_room;
/* Where a node takes what others give. */
struct cluster_desk {
    const char *subject;
    const char *group;
    cluster_room_fn *has_room;
    bool is_for_all; /* it counts as one that takes executions */
    uint64_t images; /* then: the group of nodes that it is of */
};
/* Takes what others give over a connection while there is room. */
enum cluster_fault cluster_serve_while_room(struct cluster *c, struct cluster_link *link,
                                            const struct cluster_desk *desk, struct err *err);
/* Waits until somebody makes room, or for a slice. */
void cluster_wait_room(struct cluster *c);
/*
 * Sends a call to a subject, once. *ret_sent: somebody may have it.
 */
enum cluster_fault cluster_call_subject(struct cluster *c, const char *subject,
                                        const char *data, size_t len, struct buf *ret_answer,
                                        bool *ret_sent, struct err *err);
/* The thread that takes what is to begin from a snapshot that this node has. */
cluster_thread_fn cluster_serve_snapshots;
/* Whether this node says something new of its images. Once. */
bool cluster_take_images(struct cluster *c);
/* What this node says of its snapshots from now on. False: nothing else than before. */
bool cluster_take_snapshots(struct cluster *c);
/* The thread that takes what is wished of this node. */
cluster_thread_fn cluster_serve_wishes;

#define CLUSTER_SUBJECT_SIZE (FLEET_NODE_SIZE + 16u)
#define CLUSTER_LIVE         "live." /* where a node is asked of executions that it has */
/* A subject of one node: what is done there, with a mark at its end, and the node's name. */
void cluster_name_subject(const char *what, const char *node, char ret[CLUSTER_SUBJECT_SIZE]);
/* The thread that answers that. */
cluster_thread_fn cluster_serve_live;

void cluster_load_init(struct cluster_load *load);
void cluster_load_finish(struct cluster_load *load);
/* Who waits to tell something waits no more. */
void cluster_load_stop(struct cluster_load *load);
void cluster_load_measure(struct cluster *c, struct cluster_load_measure *ret);

/* Waits until it is time to try again, somebody hurries, or the node is stopped. */
void cluster_wait(struct cluster *c, struct cluster_pause *pause);
/* What may pass by itself, as while the servers elect another leader. */
bool cluster_fault_passes(enum cluster_fault fault);
/* Whether a bucket of this name holds objects, not entries. */
bool cluster_is_of_objects(const char *bucket);
/* A bucket without a leader takes entries no more than one that is not there. */
enum cluster_fault cluster_tell_apart(struct cluster *c, struct cluster_link *link,
                                      const char *name, enum cluster_fault fault,
                                      struct err *err);
/* 0, or -EAGAIN with the fault explained. */
int cluster_result(enum cluster_fault fault, const struct err *why, struct err *err);
/*
 * Connects to the first server that can be reached, from one of them on: as open of struct
 * cluster_driver. 0, or -EAGAIN.
 */
int cluster_connect(struct cluster *c, size_t first, bool is_to_watch,
                    struct cluster_link **ret, struct err *err);
/* The same, from the server on that the changes come from. */
int cluster_connect_near(struct cluster *c, bool is_to_watch, struct cluster_link **ret,
                         struct err *err);
/*
 * A connection that is open, or a new one; *ret_used is false for that. 0, or -EAGAIN. It is
 * given back, and closed where something went wrong on it.
 */
int cluster_link_take(struct cluster *c, struct cluster_link **ret, bool *ret_used,
                      struct err *err);
void cluster_link_give(struct cluster *c, struct cluster_link *link, bool is_good);
/* Removes chunks that were left. */
void cluster_remove_left(struct cluster *c, struct cluster_link *link);
/* Chunks that nothing names; where the servers are lost too, with cluster_remove_left. */
void cluster_remove_chunks(struct cluster *c, struct cluster_link *link, enum cluster_kept kept,
                           const char *chunks_under);
/*
 * What is to be written in place of what is there, which has an empty id where nothing is. 0,
 * or why nothing is.
 */
typedef int cluster_next_record(const void *ctx, const struct record *there,
                                struct record *ret);
/*
 * Writes what next says in place of the record that the servers have, which *there is then.
 * Tried again while others write of the same, and once more where a connection was an old one.
 * What next says; -EAGAIN.
 */
int cluster_record_update(struct cluster *c, const char *id, cluster_next_record *next,
                          const void *ctx, struct record_copy *there, struct err *err);
/* Writes one in place of this revision of it; 0: of none. */
enum cluster_fault cluster_record_write(struct cluster *c, struct cluster_link *link,
                                        const struct record *record, uint64_t revision,
                                        struct err *err);
/* Whether this node does not have an image, and another one has. */
bool cluster_leaves_image(struct cluster *c, const char *image);
/* Puts all objects that rows of this node name, and that are here, to where they are not. */
int cluster_seed_objects(struct cluster *c, struct cluster_link *link, struct err *err);
/*
 * Waits until this node has the changes up to a revision that another one says it saw, for a
 * moment, and not for who said too much. False where it has not.
 */
bool cluster_await_seen(struct cluster *c, uint64_t *distrust_ns, uint64_t seen);
/* 0, or -EAGAIN where this node is not joined. */
int cluster_check_joined(struct cluster *c, struct err *err);
/* Puts all rows of this node into a bucket that is not whole, and says then that it is. */
int cluster_seed(struct cluster *c, struct cluster_link *link, bool *ret_made, struct err *err);
/* Of the last change that this node has. */
uint64_t cluster_revision_now(struct cluster *c);
/*
 * Whether the bucket of changes has room for one: skills and files may take half of it, so that
 * tenants and keys can be changed whatever is pushed. 0, -EDQUOT or -EAGAIN.
 */
int cluster_check_room(struct cluster *c, struct cluster_link *link,
                       const struct change *change, struct err *err);
/* Whether keys are taken by what is known; under the lock. */
bool cluster_keys_good(const struct cluster_follow *follow);
/* The thread: joins, stays and begins anew until it is stopped. */
void *cluster_run(void *cluster);

#endif
