/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What skillvmd asks of the servers of a cluster, as a struct of functions that the module
 * skillvm-cluster.so fills in: skillvmd links no client library, and maps one only where it is
 * told to join a cluster. The module knows buckets, keys and bytes, and nothing of skillvm.
 *
 * Every call may be made by any thread, but those of one link one after the other; `call` alone
 * may be made by many at once, also beside next_call and answer. None waits
 * for longer than 2.5 s, open 4 s, but for looking up a name, which takes as long as the
 * system's resolver does. The module calls nobody back.
 */
#ifndef SKILLVM_API_DAEMON_CLUSTER_DRIVER_H
#define SKILLVM_API_DAEMON_CLUSTER_DRIVER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both sides have the same, or the module is of another version. */
#define CLUSTER_DRIVER_VERSION 10u
/* The function of the module that gives its struct. */
#define CLUSTER_DRIVER_SYMBOL "skillvm_cluster_driver"

#define CLUSTER_KEY_SIZE    129u
#define CLUSTER_PENDING     64u   /* who calls does not wait for longer than for these */
#define CLUSTER_CALL_MS     2000u /* that a call waits for its answer, at most */
#define CLUSTER_LEADER_SIZE 65u

#define CLUSTER_OBJECT_META  "M."
#define CLUSTER_OBJECT_CHUNK "C."

/* Why something of the cluster's was not done. */
enum cluster_fault {
    CLUSTER_OK,
    CLUSTER_UNREACHABLE, /* no server there, or the connection ended */
    CLUSTER_CREDENTIALS, /* the server does not take them */
    CLUSTER_DENIED,      /* it takes them, and they do not permit this */
    CLUSTER_TLS,         /* no encrypted connection comes about */
    CLUSTER_OLD_SERVER,
    CLUSTER_NO_JETSTREAM,
    CLUSTER_NO_QUORUM, /* nothing is agreed on, or no answer came in time */
    CLUSTER_NO_ROOM,   /* too few servers, or a limit of theirs */
    CLUSTER_NO_BUCKET,
    CLUSTER_NO_ENTRY, /* no such key */
    CLUSTER_CONFLICT, /* it is there in another revision, or with other settings */
    CLUSTER_OTHER,
    /* What follows is found out by the daemon itself. */
    CLUSTER_BUCKET_GONE, /* it was there */
    CLUSTER_NAME_TAKEN,
    CLUSTER_CLOCK,
    CLUSTER_NEWER,      /* what a later version wrote cannot be followed */
    CLUSTER_OWN_ROWS,   /* this node has what the cluster does not */
    CLUSTER_NO_OBJECTS, /* the bucket of objects is not there */
};
#define CLUSTER_FAULTS (CLUSTER_NO_OBJECTS + 1)

/* How to be let in. Texts are borrowed for a call; "" where there is none. */
struct cluster_access {
    const char *name; /* what the servers call this connection */
    const char *credentials;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
};

/* The settings of a bucket. */
struct cluster_bucket {
    const char *name;
    unsigned replicas;
    uint64_t ttl_ms; /* after which an entry that nobody renews goes; 0: never */
    uint64_t max_bytes;
    uint64_t max_entries; /* 0: no bound; of one that is to be made */
    uint32_t max_value_bytes;
    bool drops_old; /* a full one takes what is new, and drops what is old */
    /* Not of one that is to be made. */
    uint64_t last_revision;           /* of whatever was written last */
    uint64_t created_ns;              /* another one of the name has another */
    uint64_t bytes;                   /* that it takes */
    char leader[CLUSTER_LEADER_SIZE]; /* the server that leads it; "": none, or only one has it
                                       */
};

/* An entry of a bucket, the mark that one was removed, or a message. Given back by release. */
struct cluster_entry {
    char key[CLUSTER_KEY_SIZE]; /* "" for one that does not fit */
    const char *data;           /* the module's; not NUL-terminated */
    size_t len;
    uint64_t revision;
    uint64_t stored_ns; /* realtime, by the server's clock */
    uint64_t pending;   /* how many come after it at once; of watched ones */
    bool is_removed;
    void *held; /* the module's */
};

/* A connection to one server, and what is watched over it. It ends, and is not repaired. */
struct cluster_link;

/*
 * All return CLUSTER_OK, or why not with a message in err; what they give is untouched then.
 */
struct cluster_driver {
    unsigned version; /* CLUSTER_DRIVER_VERSION */

    /*
     * Connects to one server, which must have JetStream. Where something is to be watched next
     * says whether the server is alive: what it says to other questions comes behind all that
     * is under way, which may take long. Any other link ends where it says nothing for 6 s.
     */
    enum cluster_fault (*open)(const struct cluster_access *access, const char *server,
                               bool is_to_watch, struct cluster_link **ret, struct err *err);
    /* NULL is fine. */
    void (*close)(struct cluster_link *link);

    /* The settings of a bucket that is there; name stays as it is. */
    enum cluster_fault (*bucket_look)(struct cluster_link *link, const char *name,
                                      struct cluster_bucket *ret, struct err *err);
    /* Makes one. CLUSTER_CONFLICT where it is there with other settings. */
    enum cluster_fault (*bucket_make)(struct cluster_link *link,
                                      const struct cluster_bucket *bucket, struct err *err);

    /* The last entry of a key, or the mark. CLUSTER_NO_ENTRY where there was never one. */
    enum cluster_fault (*get)(struct cluster_link *link, const char *bucket, const char *key,
                              struct cluster_entry *ret, struct err *err);
    /*
     * The entry, or the mark, of a revision, as the server has it that leads the bucket.
     * CLUSTER_NO_ENTRY where something was written over it, or it was dropped.
     */
    enum cluster_fault (*get_at)(struct cluster_link *link, const char *bucket,
                                 uint64_t revision, struct cluster_entry *ret, struct err *err);
    /*
     * Writes an entry, or with data NULL the mark that it is removed, where the key's last
     * revision is this one (0: it has none). CLUSTER_CONFLICT where it is another.
     * CLUSTER_NO_BUCKET also where a bucket that is there has no leader now.
     */
    enum cluster_fault (*put)(struct cluster_link *link, const char *bucket, const char *key,
                              const char *data, size_t len, uint64_t last_revision,
                              uint64_t *ret_revision, struct err *err);

    /*
     * The same where this is the bucket's last revision, whatever key that is of: nobody wrote
     * anything meanwhile. From 1 on.
     */
    enum cluster_fault (*put_next)(struct cluster_link *link, const char *bucket,
                                   const char *key, const char *data, size_t len,
                                   uint64_t bucket_revision, uint64_t *ret_revision,
                                   struct err *err);

    /*
     * From here on next gives every entry of a bucket that is of a later revision than this,
     * and then every change, in the order of revisions. Once a link.
     */
    enum cluster_fault (*watch)(struct cluster_link *link, const char *bucket, uint64_t after,
                                struct err *err);
    /* Waits for one. *ret_some is false where none came. */
    enum cluster_fault (*next)(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                               struct cluster_entry *ret, struct err *err);
    /* Safe on a zeroed one. */
    void (*release)(struct cluster_entry *entry);

    /*
     * Buckets of objects, as NATS's own tools read them: under the key CLUSTER_OBJECT_META and
     * its name in base64url lies what an object is, as JSON, and under CLUSTER_OBJECT_CHUNK and
     * a word that no other has are its chunks in turn. Of their settings name, replicas and
     * max_bytes count.
     */
    enum cluster_fault (*objects_look)(struct cluster_link *link, const char *name,
                                       struct cluster_bucket *ret, struct err *err);
    enum cluster_fault (*objects_make)(struct cluster_link *link,
                                       const struct cluster_bucket *bucket, struct err *err);
    /* As get. */
    enum cluster_fault (*object_get)(struct cluster_link *link, const char *bucket,
                                     const char *key, struct cluster_entry *ret,
                                     struct err *err);
    /* As put, in place of all that is under the key. */
    enum cluster_fault (*object_put)(struct cluster_link *link, const char *bucket,
                                     const char *key, const char *data, size_t len,
                                     uint64_t last_revision, uint64_t *ret_revision,
                                     struct err *err);
    /* Sends a chunk to behind those of its key, and does not wait for more than a socket. */
    enum cluster_fault (*chunk_send)(struct cluster_link *link, const char *bucket,
                                     const char *key, const void *data, size_t len,
                                     struct err *err);
    /*
     * Waits until one more of those that were sent is kept: how many are not yet. What is not
     * kept fails, and after that nothing more is to be sent over the link.
     */
    enum cluster_fault (*chunk_confirm)(struct cluster_link *link, unsigned *ret_left,
                                        struct err *err);
    /* From here on next gives all that is under a key, which may end with ">". As watch. */
    enum cluster_fault (*objects_watch)(struct cluster_link *link, const char *bucket,
                                        const char *key, struct err *err);
    /* Takes all away that is under a key, up to a revision; 0: whatever it is of. */
    enum cluster_fault (*objects_purge)(struct cluster_link *link, const char *bucket,
                                        const char *key, uint64_t up_to, struct err *err);

    /*
     * From here on, which the server knows unless it is late, next_call gives what is sent to a
     * subject: of those who share a group each message goes to one, and with NULL as group each
     * to all. The subject may end with ".*". What comes past so many that were not taken yet is
     * lost. At most one at a time; with NULL as subject no more come.
     */
    enum cluster_fault (*serve)(struct cluster_link *link, const char *subject,
                                const char *group, unsigned pending, struct err *err);
    /*
     * Waits for one; its key is what stands behind the last '.' of its subject. *ret_some is
     * false where none came. CLUSTER_NO_ENTRY where no more come, and there is none that has
     * come.
     */
    enum cluster_fault (*next_call)(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                                    struct cluster_entry *ret, struct err *err);
    /* Answers one that next_call gave, and that was not released. */
    enum cluster_fault (*answer)(struct cluster_link *link, const struct cluster_entry *call,
                                 const char *data, size_t len, struct err *err);
    /* Sends to a subject, for whoever is there; nobody says whether that was somebody. */
    enum cluster_fault (*tell)(struct cluster_link *link, const char *subject, const char *data,
                               size_t len, struct err *err);
    /*
     * Sends to a subject and waits for the answer, for up to CLUSTER_CALL_MS. CLUSTER_NO_ENTRY
     * where nobody is there to take it, CLUSTER_NO_QUORUM where no answer came.
     */
    enum cluster_fault (*call)(struct cluster_link *link, const char *subject, const char *data,
                               size_t len, unsigned wait_ms, struct cluster_entry *ret,
                               struct err *err);
};

typedef const struct cluster_driver *cluster_driver_fn(void);

#endif
