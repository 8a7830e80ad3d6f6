/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a bucket: a thread of its own, with a connection of its own, that gives everything
 * of it to whoever keeps rows of it, in the order of revisions, and knows how late they are.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_CLUSTER_TAIL_H
#define SKILLVM_API_DAEMON_CLUSTER_CLUSTER_TAIL_H

#include "api/daemon/cluster/driver.h"
#include "api/daemon/cluster/refused.h"
#include "api/daemon/cluster/staged.h"

#include <pthread.h>

struct cluster;
struct tail_session;

/* What is different between buckets that are followed. */
struct tail_kind {
    const char *bucket;
    const char *what; /* for logs: "changes" */
    size_t
        batch; /* so many, or STAGED_BATCH_BYTES, are made rows at once; 0: all that is there */
    /* Which bucket this is, as rows note it. */
    enum cluster_fault (*identify)(struct tail_session *s, char ret[CHANGE_MARK_SIZE],
                                   struct err *err);
    /* How far the rows of this node are. 0 or -errno. */
    int (*look)(struct cluster *c, struct change_place *ret, struct err *err);
    /* Whether what came can be taken: it is staged then. */
    enum cluster_fault (*check)(struct tail_session *s, const struct cluster_entry *entry,
                                struct err *err);
    /* Makes rows of all that is staged, and notes the place. */
    enum cluster_fault (*apply)(struct tail_session *s, const struct change_place *place,
                                struct err *err);
    /* It is still all there is; about every 10 s. */
    enum cluster_fault (*note)(struct tail_session *s, struct err *err);
    /*
     * The servers have less than is here, as where they lost what they had taken, or another
     * bucket: it is read from its beginning. NULL: what is here is taken for all there is.
     */
    void (*went_back)(struct tail_session *s);
    /*
     * So many revisions before the last are read again from the server that leads when a
     * session begins, which is also where another one leads than before, and once it has all
     * that there is: it may have something else there than was here, or than came.
     */
    uint64_t again;
    /* A session begins, and everything was here last at a time (realtime; 0: never). May be
       NULL. */
    void (*began)(struct tail_session *s, uint64_t whole_ns);
    /* What else is to be done while all is there; about every second. May be NULL. */
    void (*tick)(struct tail_session *s);
};

/* A bucket as it is followed. Zeroed at first. */
struct cluster_tail {
    const struct tail_kind *kind;
    struct cluster *cluster;
    pthread_t thread;
    bool has_thread;
    /* Under the lock of the cluster. */
    bool is_replica;          /* it followed a bucket, in this process or before */
    bool is_good;             /* nothing is wrong, and it has had everything once */
    enum cluster_fault fault; /* else; CLUSTER_OK: at the beginning */
    char message[ERR_MESSAGE_MAX];
    uint64_t confirmed_ns;     /* monotonic, as of when it had everything; 0: never */
    uint64_t revision;         /* up to which there are rows here */
    uint64_t bytes, max_bytes; /* of the bucket, by the last look at it */
    uint64_t unread;   /* of the thread: the first that a later version wrote; 0: none */
    uint64_t began_ns; /* monotonic, the last session; another server may lead since */
    size_t server;     /* that was good last */
    struct refused refused;
};

/* Everything over one connection. */
struct tail_session {
    struct cluster *cluster;
    struct cluster_tail *tail;
    struct cluster_link *link;
    struct change_place place; /* as it was noted last */
    struct staged staged;
    bool is_whole;                /* everything comes */
    uint64_t revision;            /* of what came last */
    uint64_t again_at, again_end; /* what is read again: behind this revision, up to that one */
    bool has_all;                 /* everything was here once */
    bool is_leaders;              /* what is checked now is what the server that leads has */
    uint64_t noted_revision;      /* by tail_note_place */
    uint64_t seen;       /* what others knew of changes when they wrote what is staged */
    uint64_t created_ns; /* the bucket, by which it is told from another of the name */
    uint64_t began_ns, look_ns, looked_ns, note_ns, came_ns;
    uint64_t seen_ns,
        seen_revision; /* there was more than is here at that look; 0: there was not */
    char leader[CLUSTER_LEADER_SIZE]; /* of the bucket, when it began */
    bool is_doubtful;                 /* it may have had none since */
};

/* Begins to follow from where the rows are. Under the lock of the cluster. 0 or -errno. */
int tail_start(struct cluster *c, struct cluster_tail *tail, const struct tail_kind *kind,
               struct err *err);
/* Once the cluster was stopped. */
void tail_join(struct cluster_tail *tail);
/* Of a bucket without an entry that says which it is: when it was made does. */
enum cluster_fault tail_identify_created(struct tail_session *s, char ret[CHANGE_MARK_SIZE],
                                         struct err *err);
/* Notes how far the rows are, with none that are new, where that is another place. */
enum cluster_fault tail_note_place(struct tail_session *s, struct err *err);
/*
 * What came is of a later version, and is stepped over: rows are noted to be before it, so that
 * a process that begins, as one that can read it, reads on from there.
 */
void tail_note_unread(struct tail_session *s, uint64_t revision);
/* A place as rows are to note it. */
struct change_place tail_place_to_note(const struct tail_session *s,
                                       const struct change_place *place);
/* Counts what was left out, and why: as of refused_note. */
void tail_refuse(struct cluster_tail *tail, const char *key, unsigned why, unsigned n);
/*
 * Waits until there are rows up to a revision, or for 5 s. False where that is too long.
 */
bool tail_wait(struct cluster_tail *tail, uint64_t revision);

#endif
