/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the module share: a link, and what libnats's codes mean. After
 * <nats/nats.h>, whose types stay in these files.
 */
#ifndef SKILLVM_API_DAEMON_NATS_NATS_LINK_H
#define SKILLVM_API_DAEMON_NATS_NATS_LINK_H

#include "api/daemon/cluster/driver.h"

#define NATS_REQUEST_MS   2000
#define NATS_SUBJECT_SIZE 256u

struct cluster_link {
    natsConnection *connection;
    jsCtx *stream;
    natsSubscription *watched;
    struct nats_ending *ending;
    bool *denied;           /* a slot */
    natsInbox *watch_inbox; /* to which what is watched comes */
    size_t prefix_len;      /* of the subjects that are watched */
    uint64_t delivered;     /* entries of it so far */
    int64_t heard_ns;       /* monotonic: when something came of it */

    natsSubscription *calls;         /* that are served; or NULL */
    bool is_leaving;                 /* what served them was told to end */
    natsSubscription *confirmations; /* of what was sent without waiting; or NULL */
    natsInbox *inbox;                /* to which these come */
    unsigned unconfirmed;
};

/* How the end of a connection is heard of: made before it; nats_note_end is told by libnats. */
struct nats_ending *nats_ending_create(void);
void nats_note_end(natsConnection *connection, void *ending);
/*
 * Ends the connection of a link, and what heard of that. False where libnats does not say that
 * it has ended, and may use what belongs to it.
 */
bool nats_end_connection(struct cluster_link *link);

/* What a server said before of permissions is of another request. */
void nats_begin_request(const struct cluster_link *link);
enum cluster_fault nats_fault_of_code(jsErrCode code);
/* Says what failed, and why. code is 0 where the server gave none. */
enum cluster_fault nats_failed(const struct cluster_link *link, natsStatus s, jsErrCode code,
                               const char *what, struct err *err);

/* How a bucket lies on the servers: a stream of this prefix, and subjects of this one. */
struct nats_layout {
    const char *stream;
    const char *subject;
};

/*
 * Entries that came and were not taken yet: what comes past these libnats throws away. More
 * than a bucket of changes can hold, and than the 32 MiB that a server has under way at once.
 */
#define NATS_PENDING_MAX       (1024 * 1024)
#define NATS_PENDING_BYTES_MAX (64 * 1024 * 1024)

/* What a layout calls the stream of a bucket, and the subject of a key. */
void nats_name_stream(const struct nats_layout *layout, const char *bucket,
                      char name[NATS_SUBJECT_SIZE]);
void nats_name_subject(const struct nats_layout *layout, const char *bucket, const char *key,
                       char subject[NATS_SUBJECT_SIZE]);
/* Takes a message over as an entry, whose key is behind a prefix of its subject. */
void nats_fill_entry(natsMsg *message, size_t prefix_len, struct cluster_entry *ret);

/* What layouts have in common, as of the functions of struct cluster_driver. */
enum cluster_fault nats_look(struct cluster_link *link, const struct nats_layout *layout,
                             const char *name, struct cluster_bucket *ret, struct err *err);
/* config has what is a layout's own. */
enum cluster_fault nats_make(struct cluster_link *link, const struct nats_layout *layout,
                             const struct cluster_bucket *bucket, jsStreamConfig *config,
                             struct err *err);
enum cluster_fault nats_get(struct cluster_link *link, const struct nats_layout *layout,
                            const char *bucket, const char *key, struct cluster_entry *ret,
                            struct err *err);
/* header: its name and value, or NULL. options have what the last revision has to be. */
enum cluster_fault nats_publish(struct cluster_link *link, const struct nats_layout *layout,
                                const char *bucket, const char *key, const char *data,
                                size_t len, const char *header[2], jsPubOptions *options,
                                uint64_t *ret_revision, struct err *err);
/* key may be ">", or end so; after is for js_DeliverByStartSequence. */
enum cluster_fault nats_watch(struct cluster_link *link, const struct nats_layout *layout,
                              const char *bucket, const char *key, jsDeliverPolicy policy,
                              uint64_t after, struct err *err);

enum cluster_fault nats_next(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                             struct cluster_entry *ret, struct err *err);

/* The functions of struct cluster_driver for objects. */
enum cluster_fault nats_objects_look(struct cluster_link *link, const char *name,
                                     struct cluster_bucket *ret, struct err *err);
enum cluster_fault nats_objects_make(struct cluster_link *link,
                                     const struct cluster_bucket *bucket, struct err *err);
enum cluster_fault nats_object_get(struct cluster_link *link, const char *bucket,
                                   const char *key, struct cluster_entry *ret, struct err *err);
enum cluster_fault nats_object_put(struct cluster_link *link, const char *bucket,
                                   const char *key, const char *data, size_t len,
                                   uint64_t last_revision, uint64_t *ret_revision,
                                   struct err *err);
enum cluster_fault nats_chunk_send(struct cluster_link *link, const char *bucket,
                                   const char *key, const void *data, size_t len,
                                   struct err *err);
enum cluster_fault nats_chunk_confirm(struct cluster_link *link, unsigned *ret_left,
                                      struct err *err);
enum cluster_fault nats_objects_watch(struct cluster_link *link, const char *bucket,
                                      const char *key, struct err *err);
enum cluster_fault nats_objects_purge(struct cluster_link *link, const char *bucket,
                                      const char *key, uint64_t up_to, struct err *err);

/* Those for calls. */
enum cluster_fault nats_serve(struct cluster_link *link, const char *subject, const char *group,
                              unsigned pending, struct err *err);
enum cluster_fault nats_next_call(struct cluster_link *link, unsigned wait_ms, bool *ret_some,
                                  struct cluster_entry *ret, struct err *err);
enum cluster_fault nats_answer(struct cluster_link *link, const struct cluster_entry *call,
                               const char *data, size_t len, struct err *err);
enum cluster_fault nats_tell(struct cluster_link *link, const char *subject, const char *data,
                             size_t len, struct err *err);
enum cluster_fault nats_call(struct cluster_link *link, const char *subject, const char *data,
                             size_t len, unsigned wait_ms, struct cluster_entry *ret,
                             struct err *err);

#endif
