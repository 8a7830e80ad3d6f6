/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This daemon as a node of a cluster: a thread that connects, keeps an entry of the node in the
 * bucket of nodes, and watches those of the others. What the others say is checked like a
 * stranger's, and nothing of it is a promise.
 *
 * A second thread, with a connection of its own, follows the bucket of changes: what tenants,
 * keys, skills and uploaded files are to be; a third one that of executions, and a fourth one
 * that of the audit. They are written there and become rows of every node. What skills and
 * files hold and executions leave is in two buckets of objects. Two more threads take what
 * other nodes have no room for, and one what an operator wants of this node and asks another
 * one for. One tells the others what tenants have here, and one hears that of them. One answers
 * what they ask of executions that run here.
 *
 * A node is joined while its own entry comes back to it, through a majority of the servers, and
 * every change and every execution of others is noted here.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_CLUSTER_H
#define SKILLVM_API_DAEMON_CLUSTER_CLUSTER_H

#include "api/daemon/cluster/driver.h"
#include "api/daemon/cluster/hold_entry.h"
#include "api/daemon/cluster/live_ask.h"
#include "api/daemon/cluster/loads.h"
#include "api/daemon/cluster/node_entry.h"
#include "api/daemon/cluster/node_wish.h"
#include "api/daemon/cluster/record_entry.h"
#include "api/daemon/cluster/refused.h"
#include "api/daemon/cluster/staged.h"
#include "api/daemon/terms/deed.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_BUCKET         "skillvm_nodes"
#define CLUSTER_CHANGES        "skillvm_registry"
#define CLUSTER_OBJECTS        "skillvm_objects"
#define CLUSTER_RECORDS        "skillvm_executions"
#define CLUSTER_AUDIT          "skillvm_audit"
#define CLUSTER_ARTIFACTS      "skillvm_artifacts"
#define CLUSTER_RENEW_MS       3000u  /* between two renewals of an entry */
#define CLUSTER_LEASE_MS       9000u  /* without a renewal a node is cut off, for itself too */
#define CLUSTER_TTL_MS         15000u /* and then its entry goes */
#define CLUSTER_CLOCK_MS       3000u  /* that a clock may differ from the servers' */
#define CLUSTER_BACKOFF_MS     250u /* after a first failure, and twice as long after the next */
#define CLUSTER_BACKOFF_MAX_MS 5000u
/*
 * Between two tellings of what tenants have, at least and at most, or so much for each node:
 * from each to each goes no more than the servers can carry.
 */
#define CLUSTER_LOAD_APART_MS      20u
#define CLUSTER_LOAD_APART_NODE_MS 4u
#define CLUSTER_LOAD_EACH_MS       1000u
#define CLUSTER_LOAD_EACH_NODE_MS  10u
#define CLUSTER_LOAD_SILENT        3u /* such times, after which a node is taken to have nothing */

/* Borrowed for cluster_create. Texts are never NULL; "" where there is none. */
struct cluster_config {
    const char *servers; /* as of fleet_servers_check, at least one */
    const char *credentials;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *labels;                  /* as of fleet_labels_check */
    const char *node;                    /* "": the first part of the host's name */
    const struct node_entry *facts;      /* what the node says of itself; but what is above, its
                                          * instance, state and start */
    unsigned replicas;                   /* of what cluster_init makes */
    uint64_t objects_bytes;              /* of the bucket of objects; 0: no bound */
    uint64_t artifacts_bytes;            /* of that of what executions leave; the same */
    const struct cluster_driver *driver; /* NULL: the module */
};

enum cluster_state {
    CLUSTER_CONNECTING, /* at the beginning */
    CLUSTER_JOINED,
    CLUSTER_CUT_OFF,
};

struct cluster_status {
    enum cluster_state state;
    const char *reason;            /* a word, where it is cut off; else NULL; static */
    char message[ERR_MESSAGE_MAX]; /* what is wrong and what to do, else "" */
};

struct cluster;

/*
 * What a node is called: the name of its settings, or, where that is "", the first part of the
 * host's. 0; -EINVAL: that is no node's name; -errno.
 */
int cluster_name_node(const char *name, char ret[FLEET_NODE_SIZE], struct err *err);
/*
 * Checks the settings, loads the module and starts; it never waits for a server. 0; -EINVAL for
 * a file that cannot be read, a host's name that is no node's; -errno.
 */
int cluster_create(const struct cluster_config *config, struct cluster **ret, struct err *err);
/* Takes the node's entry away where it can, and ends. NULL is fine. */
void cluster_destroy(struct cluster *cluster);

/* Stops at the first that gives less than 0, and gives it. */
typedef int cluster_visit_fn(void *ctx, const struct change *change);

/* Where changes are made: the rows of this node. One thread calls, but for each. */
struct cluster_replica {
    void *ctx;
    int (*look)(void *ctx, struct change_place *ret, struct err *err);
    /*
     * Makes all changes and notes the place, or does nothing. Where they are the whole of a
     * bucket, every row of this node has to be among them: -EEXIST, with one that is not. A
     * change that contradicts others is left out and counted. 0 or -EIO.
     */
    int (*apply)(void *ctx, const struct staged *changes, bool is_whole,
                 const struct change_place *place, unsigned *ret_conflicts, struct err *err);
    /* Called now and then: it is still all there is. */
    void (*note)(void *ctx, const struct change_place *place);
    /* One row, or -ENOENT; and all of them. */
    int (*row)(void *ctx, enum change_kind kind, const char *id, struct change *ret,
               struct err *err);
    int (*each)(void *ctx, cluster_visit_fn *visit, void *visit_ctx, struct err *err);
    /* What the rows of a tenant's skills and files take as entries, about. 0 or -EIO. */
    int (*owned_bytes)(void *ctx, const char *tenant, uint64_t *ret, struct err *err);
    /* Opens an object that a row names: a descriptor, or -ENOENT where it is not here. */
    int (*object)(void *ctx, const char *digest, struct err *err);
};

/*
 * From now on the changes of the cluster are made in a replica, which stays until
 * cluster_destroy. Once it was cut off for keys_timeout_ms the node takes no keys. 0 or -errno.
 */
int cluster_follow(struct cluster *cluster, const struct cluster_replica *replica,
                   uint64_t keys_timeout_ms, struct err *err);
/*
 * Works a change out and writes it for all nodes: on return it is where the settings want it,
 * and made here. 0; what the plan gives; -EDQUOT for a skill or a file whose tenant has what it
 * may of the bucket; -EAGAIN while the node is not joined, or where the servers do not confirm
 * it, with what is known of it.
 */
int cluster_change(struct cluster *cluster, change_plan *plan, void *ctx, struct err *err);
/*
 * Objects of skills and files stay until nobody names them, and where there is no room for one
 * it is refused. What executions leave, and large results, take the place of the oldest ones.
 */
enum cluster_kept { CLUSTER_OF_CHANGES, CLUSTER_OF_EXECUTIONS };
/*
 * One of up to so many bytes is put in a moment, over a connection that others share, a larger
 * one over its own: who puts sees to it that few are put at once.
 */
#define CLUSTER_OBJECT_SHORT (128u * 1024u)
/*
 * Puts what a file holds into a bucket of objects, under its SHA-256; replicated on return.
 * One that is there stays, and is as new as one that is put. 0; -EAGAIN as of cluster_change;
 * -errno of the file.
 */
int cluster_object_put(struct cluster *cluster, enum cluster_kept kept, const char *digest,
                       int fd, struct err *err);
/*
 * Says of an object of changes, which a row names by now, that it is there; as of
 * cluster_object_put. Who was about to remove it, and did not know of the row, finds that;
 * where he was quicker it is -ENOENT, and to be put again.
 */
int cluster_object_confirm(struct cluster *cluster, const char *digest, int fd,
                           struct err *err);
/*
 * Writes what the bucket has under a digest to an empty file, up to max bytes; the caller
 * checks whether it is that. 0; -EREMOTEIO where the servers do not have it, or not so;
 * -EAGAIN where they cannot be asked; -errno of the file.
 */
int cluster_object_get(struct cluster *cluster, enum cluster_kept kept, const char *digest,
                       uint64_t max, int fd, struct err *err);
/*
 * Says which of n objects the bucket has, of their sizes; of those after one that could not be
 * asked for none. 0 or -EAGAIN.
 */
struct cluster_object {
    const char *digest;
    uint64_t size;
    bool is_there;
};
int cluster_objects_look(struct cluster *cluster, struct cluster_object *objects, size_t n,
                         struct err *err);
/* Whether a row names an object. 0 or -errno. */
typedef int cluster_named_fn(void *ctx, const char *digest, bool *ret_named, struct err *err);
/*
 * Removes from the bucket what no row of this node names and is older than that: rows of other
 * nodes are here long before. *ret_n: how many. 0; -EAGAIN as of cluster_change, where it
 * stops.
 */
int cluster_objects_sweep(struct cluster *cluster, uint64_t min_age_ns, cluster_named_fn *named,
                          void *ctx, unsigned *ret_n, struct err *err);
/*
 * Removes one now, where no row names it: those of this node are as new as the servers' then.
 * 0, also where a row does or somebody puts it meanwhile; what named gives; -EAGAIN, and it may
 * be there.
 */
int cluster_object_remove(struct cluster *cluster, const char *digest, cluster_named_fn *named,
                          void *ctx, struct err *err);
/*
 * Removes the skills and files of tenants that are no more from the bucket of changes, where an
 * eighth of it is taken. *ret_n: how many. As above.
 */
int cluster_rows_sweep(struct cluster *cluster, unsigned *ret_n, struct err *err);

/* Where executions of others become rows. One thread calls. */
struct cluster_ledger {
    void *ctx;
    int (*look)(void *ctx, struct change_place *ret, struct err *err);
    /*
     * Makes rows of all records of others, and of those that are this process's again, and
     * notes the place, or does nothing. What can be no row is left out and counted. 0 or -EIO.
     */
    int (*apply)(void *ctx, const struct staged *records, const struct change_place *place,
                 unsigned *ret_conflicts, struct err *err);
    /* Somebody wants an execution of this process to end, or says that it has. */
    void (*stop)(void *ctx, const struct record *record);
    /* Whether one waits or runs at this process, as its record says. */
    bool (*has)(void *ctx, const struct record *record);
    /* A record, which may be an old one, says that another process has one, or had it when it
       ended. */
    void (*taken)(void *ctx, const struct record *record);
    /* The server that leads has one of this process as not ended: where it has ended here that
       was lost. */
    void (*unended)(void *ctx, const struct record *record);
    /* The servers may have lost what they were told since a time (realtime). */
    void (*tell_anew)(void *ctx, uint64_t since_ns);
    /* Called about every second while all that there is is here. */
    void (*tick)(void *ctx);
};
/*
 * From now on the records of executions are followed; the ledger stays until cluster_destroy.
 * 0 or -errno.
 */
int cluster_follow_records(struct cluster *cluster, const struct cluster_ledger *ledger,
                           struct err *err);

/* Where the audit of all nodes becomes rows, and what this one wrote of it. One thread calls.
 */
struct cluster_auditor {
    void *ctx;
    int (*look)(void *ctx, struct change_place *ret, struct err *err);
    /* Makes rows of all of them that are not there, and notes the place, or does nothing. 0 or
     * -EIO. */
    int (*apply)(void *ctx, const struct staged *deeds, const struct change_place *place,
                 struct err *err);
    /* The first row of this node behind this id that is not told. 0, -ENOENT or -EIO. */
    int (*untold)(void *ctx, uint64_t after_id, struct deed *ret, struct err *err);
    /* Those up to this id are. 0 or -EIO. */
    int (*told)(void *ctx, uint64_t up_to_id, struct err *err);
    /* The servers may have lost what they were told since a time (realtime; 0: ever). */
    void (*tell_anew)(void *ctx, uint64_t since_ns);
};
/*
 * From now on the audit is followed, and told; the auditor stays until cluster_destroy. A node
 * is joined also where that cannot be. 0 or -errno.
 */
int cluster_follow_audit(struct cluster *cluster, const struct cluster_auditor *auditor,
                         struct err *err);
/* Writes into a record that it is of this process, as it knows the cluster now. */
void cluster_sign_record(struct cluster *cluster, struct record *record);
/*
 * Writes the record of an execution that is accepted, replicated on return. 0; -EEXIST where
 * there is one of its id, which is here then; -EAGAIN while the node is not joined, or where
 * the servers do not take it; -ETIMEDOUT where they may have taken it. is_new: it was never
 * told before; where it has a key, and cluster_check_unknown says that another node knows it,
 * -EALREADY, and -EAGAIN or -ETIMEDOUT as of that.
 */
int cluster_record_accept(struct cluster *cluster, const struct record *record, bool is_new,
                          struct err *err);

/* A record and the text that it lies in. */
struct record_copy {
    struct record record;
    char *text; /* owned */
};
void record_copy_finish(struct record_copy *copy);
/*
 * Writes how an execution ended. 0; -EEXIST where the servers have another end of it, with
 * that; -EBUSY with the record where another node has it, or accepted its id at another moment;
 * -EAGAIN as above, also where it is not known whether it was taken.
 */
int cluster_record_end(struct cluster *cluster, const struct record *record,
                       struct record_copy *ret_theirs, struct err *err);
/*
 * Writes it over one that has ended, and that this node had heard of and forgot: its key is
 * free. known: up to which revision it had heard when it looked. 0; -EEXIST where it is not so;
 * else as of cluster_record_accept.
 */
int cluster_record_replace(struct cluster *cluster, const struct record *record, uint64_t known,
                           struct err *err);
/*
 * Says that one of this process that waited begins now, as the record of it says. 0; -EEXIST
 * where it has ended or another process took it over, with what there is; -EAGAIN.
 */
int cluster_record_begin(struct cluster *cluster, const struct record *record,
                         struct record_copy *ret_theirs, struct err *err);
/*
 * Says that one of this process waits, with its request (as of struct record): others may take
 * it over from now on. 0; -ENOENT where it is not this process's any more; -EAGAIN, and others
 * may all the same.
 */
int cluster_record_offer(struct cluster *cluster, const struct record *record, struct err *err);
/*
 * Makes one this process's own that waits at another, which gives it away or is lost; of one
 * that is lost also what it began and may be begun again. It waits here then. 0 with
 * the record as it was, and its request; -EEXIST with the record where it has ended, or yet
 * another process has it; -ENODATA: the servers have none; -EOWNERDEAD with the record: nobody
 * can run it; -ENOTSUP: its image is not here, and is elsewhere; -EAGAIN: it may be this
 * process's all the same.
 */
int cluster_record_claim(struct cluster *cluster, const char *id, const char *node,
                         const char *instance, bool is_lost, struct record_copy *ret,
                         struct err *err);
/* What the servers have of one. 0, -ENOENT or -EAGAIN. */
int cluster_record_read(struct cluster *cluster, const char *id, struct record_copy *ret,
                        struct err *err);
/* Whether one that has not ended is this process's. 0, -ENOENT or -EAGAIN. */
int cluster_record_is_ours(struct cluster *cluster, const char *id, struct err *err);
/* What this process took over waits where it was, as it was. 0, -ENOENT or -EAGAIN. */
int cluster_record_put_back(struct cluster *cluster, const struct record *before,
                            struct err *err);
/* Up to which revision executions of others are rows here. */
uint64_t cluster_records_known(struct cluster *cluster);
/*
 * Makes an execution of this process, or a caller of it (execution ""), the one who has a
 * session, which has a key of its own (HOLD_KEY_SIZE); what the one before left in it is a row
 * here then. It has the session until its record has ended, or that is given. 0; -EADDRINUSE:
 * another one has it; -EAGAIN as above, and this one may have it all the same.
 */
int cluster_hold_take(struct cluster *cluster, const char *key, const char *session,
                      const char *execution, struct err *err);
/* It has it no more, where it had; as far as that can be told. */
void cluster_hold_give(struct cluster *cluster, const char *key, const char *execution);
/*
 * Writes how one of another process ended that is gone. 0; -EEXIST where it has ended; -ENOENT
 * where the servers have no record of it; -EBUSY where another process has it; -EAGAIN.
 * ret_left: NULL, or what others may begin is left to them: -EBUSY with the record (caller's).
 */
int cluster_record_lose(struct cluster *cluster, const struct record *record,
                        struct record_copy *ret_left, struct err *err);
/*
 * Says that somebody wants an execution of another process to end. 0; -ENOENT where it has
 * ended; -EAGAIN.
 */
int cluster_record_cancel(struct cluster *cluster, const char *id, struct err *err);
/*
 * Whether a process has no entry among the nodes any more. 0; -EAGAIN, also where this node has
 * not been joined for as long as others may take to come back with it.
 */
int cluster_process_is_gone(struct cluster *cluster, const char *node, const char *instance,
                            bool *ret, struct err *err);
/*
 * Whether it is this node's turn to see to an execution that nobody has: nodes take turns of a
 * second each, by what they know of each other.
 */
bool cluster_has_turn(struct cluster *cluster, const char *id);
/* Whether it knows of no other node. */
bool cluster_is_alone(struct cluster *cluster);
/* What this node does for others. All are called by several threads. */
struct cluster_service {
    void *ctx;
    bool (*has_room)(void *ctx);
    /* Hashes of the snapshots that are here, but the common plain one: how many of max. */
    size_t (*snapshots)(void *ctx, uint64_t *ret, size_t max);
    /* Gives something that waits here to another node, while there is no room. False: nothing.
     */
    bool (*lend)(void *ctx);
    /* Does what a call says, as of a stranger's, and appends an answer that is never empty. */
    void (*take)(void *ctx, const char *data, size_t len, struct buf *answer);
    /* Does what an operator wants of this node. 0; -errno with the reason. */
    int (*wish)(void *ctx, enum node_wish wish, struct node_drain *ret, struct err *err);
    /*
     * Says what an execution here is like, with pieces behind that. False, and nothing: there
     * is nothing that who asks does not know, and it can be waited for. Called by one thread.
     */
    bool (*look)(void *ctx, const struct live_ask *ask, bool is_last, struct buf *answer);
};
#define CLUSTER_CALL_MAX (512u * 1024u) /* bytes of a call */
/* Takes calls while it has room, until cluster_serve_end. 0 or -errno. */
int cluster_serve(struct cluster *cluster, const struct cluster_service *service,
                  struct err *err);
/* There may be room again. */
void cluster_note_room(struct cluster *cluster);
/* Ends that once the cluster was stopped, and waits for what is at work. NULL is fine. */
void cluster_serve_end(struct cluster *cluster);
/*
 * Calls one of the nodes that have a snapshot and, by what they say, a free slot: those in
 * turn. 0; -ENOENT: there is none, or nobody was called, as of cluster_call; -EBUSY: it has no
 * room now; -EAGAIN as there.
 */
int cluster_call_holder(struct cluster *cluster, uint64_t snapshot, const char *data,
                        size_t len, struct buf *ret_answer, struct err *err);
/*
 * Calls a node that has room and an image, with the answer appended. 0; -ENOENT: there is none,
 * or this node is not joined, or has no server, and called nobody; -EAGAIN: nobody knows what
 * became of it.
 */
int cluster_call(struct cluster *cluster, const char *image, const char *data, size_t len,
                 struct buf *ret_answer, struct err *err);
/* From now on the node tells the others that it is being drained, or that it is not. */
void cluster_set_draining(struct cluster *cluster, bool is_draining);
/* The images that it has from now on, of what it says of itself. */
void cluster_set_images(struct cluster *cluster, const struct node_entry *facts);
bool cluster_is_self(const struct cluster *cluster, const char *node);
/*
 * Wants something of another node, which did it on return. 0; -ENOENT: there is no such node;
 * -EAGAIN where it cannot be asked, does not answer or does not do it, with the reason.
 */
int cluster_wish(struct cluster *cluster, const char *node, enum node_wish wish,
                 struct node_drain *ret, struct err *err);
/* What another node says, with the text that it lies in. */
struct live_copy {
    struct live_answer answer;
    struct buf text;
};
void live_copy_finish(struct live_copy *copy);
/*
 * Asks another node of an execution that it has: within a second, and as long as it may wait
 * for news. Where too many wait, in all or of the tenant, it does not wait. 0; -EAGAIN where it
 * does not answer, this one is cut off, or asks too much already, in all or for the tenant.
 */
int cluster_ask_live(struct cluster *cluster, const char *node, const struct live_ask *ask,
                     struct live_copy *ret, struct err *err);
/*
 * Whether no other node knows of an execution of a tenant's, where the servers may lack what
 * they had confirmed: for a minute after who follows them began anew, as where another server
 * leads. At other times nobody is asked. Takes up to 3 s. 0; -EEXIST where one does, which
 * tells the servers anew what is its own; -EAGAIN where one does not answer, or there are too
 * many, with the reason.
 */
int cluster_check_unknown(struct cluster *cluster, const char *tenant, const char *id,
                          struct err *err);
/*
 * What somebody has seen of the cluster: up to which revisions of changes and of executions it
 * is here, with those of executions that this node wrote.
 */
struct cluster_seen {
    uint64_t changes;
    uint64_t executions;
};
void cluster_seen_now(struct cluster *cluster, struct cluster_seen *ret);
/* Waits for up to 2 s until so much is here. */
bool cluster_await(struct cluster *cluster, const struct cluster_seen *seen);
/* Whether this node has the changes up to a revision that who calls says it saw, in a moment.
 */
bool cluster_has_seen(struct cluster *cluster, uint64_t seen);

/* What tenants have here, for all nodes. Called by threads of the cluster. */
struct cluster_sharing {
    void *ctx;
    /* Fills in free and the tenants. */
    void (*fill)(void *ctx, struct load *ret);
    /* Others took so much of a tenant's rate, which may be no tenant's. */
    void (*charge)(void *ctx, const char *tenant, uint64_t n);
    /* What others have is another thing than before, maybe. */
    void (*changed)(void *ctx);
};
/* Tells and hears until cluster_share_end. 0 or -errno. */
int cluster_share(struct cluster *cluster, const struct cluster_sharing *sharing,
                  struct err *err);
/* Ends that once the cluster was stopped. NULL is fine. */
void cluster_share_end(struct cluster *cluster);
/*
 * What is to be told has changed. This and the next two take no lock but one of their own, and
 * wait for nothing.
 */
void cluster_note_load(struct cluster *cluster);
/* What a tenant has at other nodes, as of loads_of and loads_waits_since. */
struct load_total cluster_load_of(struct cluster *cluster, const char *tenant);
uint64_t cluster_load_waits_since(struct cluster *cluster, const char *tenant);

/* Whether cluster_stop was called. */
bool cluster_is_stopping(struct cluster *cluster);

/* Whether what is known of keys is new enough to go by. NULL is fine, and yes. */
bool cluster_takes_keys(struct cluster *cluster);
/* Who waits for servers stops waiting. NULL is fine. */
void cluster_stop(struct cluster *cluster);

void cluster_look(struct cluster *cluster, struct cluster_status *ret);

/*
 * Makes the buckets with the replicas of the settings, where they are not there, with the
 * objects of skills and files that are here and not there. *ret_made is
 * false where they were. -EEXIST where they have other replicas; -EAGAIN where the servers
 * cannot be asked, or cannot do it, with the reason.
 */
int cluster_init(struct cluster *cluster, bool *ret_made, struct err *err);
/*
 * Removes the entry of a node that is gone. -ENOENT; -EEXIST for one that is alive; -EAGAIN as
 * above.
 */
int cluster_remove(struct cluster *cluster, const char *node, struct err *err);

/* Appends the state and all nodes as one JSON object, for the operator. */
void cluster_write(struct cluster *cluster, struct json_writer *w);

/* What is known of the tenants' use of other nodes, and how. */
struct cluster_load_measure {
    unsigned nodes;            /* that told something lately */
    uint64_t running, waiting; /* executions there */
    uint64_t told, taken;      /* messages */
    struct refused refused;
};
/* For metrics. */
struct cluster_measure {
    bool is_joined;
    bool is_draining;
    struct cluster_load_measure load;
    unsigned nodes;
    uint64_t refused[NODE_REFUSALS];
    uint64_t revision;         /* up to which changes are made here */
    uint64_t records_revision; /* the same of executions */
    bool takes_keys;
};
/* NULL is fine, and all zero. */
void cluster_measure(struct cluster *cluster, struct cluster_measure *ret);

#endif
