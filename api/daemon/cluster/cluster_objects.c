/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of the cluster: what skills and files hold and executions leave, each under its
 * SHA-256. What is read, and what takes long to be put, goes over a connection of its own, as
 * long as it comes on.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "api/daemon/cluster/object_meta.h"
#include "api/daemon/terms/ids.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define IN_FLIGHT  16u /* chunks that are sent and not confirmed */
#define TRIES      4u  /* where others put the same meanwhile */
#define SILENCE_MS 5000u
#define KEPT_PART  64u        /* such a part of the bucket is kept free */
#define LEAST_RATE (1u << 20) /* bytes that have to come in a second, after the silence */
/*
 * An object that no row names is removed when it is an hour old: who is about to name one that
 * is there makes it new long before.
 */
#define FRESH_NS (30 * 60 * NS_PER_SECOND)
/* What drops the oldest has not dropped what it took so lately. */
#define LATELY_NS (10 * 60 * NS_PER_SECOND)

/* An object on its way. */
struct transfer {
    struct cluster *cluster;
    enum cluster_kept kept;
    struct cluster_link *link;
    const char *digest;
    int fd;
    uint64_t size;             /* of the file */
    char key[OBJECT_KEY_SIZE]; /* of what is said of it */
    struct object_meta meta;   /* that is there, or is to be */
    bool is_there;
    uint64_t revision; /* of what is said of it; 0: nothing */
    uint64_t stored_ns;
};

static const char *const kept_buckets[] = {
    [CLUSTER_OF_CHANGES] = CLUSTER_OBJECTS,
    [CLUSTER_OF_EXECUTIONS] = CLUSTER_ARTIFACTS,
};

static const char *bucket_of(const struct transfer *t)
{
    return kept_buckets[t->kept];
}

/* Whether it is there, and what is said of it. */
static enum cluster_fault look(struct transfer *t, struct err *err)
{
    const struct cluster_driver *driver = t->cluster->driver;
    struct cluster_entry entry = {0};
    enum cluster_fault fault = driver->object_get(t->link, bucket_of(t), t->key, &entry, err);

    t->revision = fault == CLUSTER_OK ? entry.revision : 0;
    t->stored_ns = entry.stored_ns;
    t->is_there = fault == CLUSTER_OK &&
                  object_meta_parse(t->key, entry.data, entry.len, &t->meta) == 0 &&
                  !t->meta.is_deleted;
    driver->release(&entry);
    if (fault != CLUSTER_NO_ENTRY)
        return fault;
    *err = (struct err){0};
    return CLUSTER_OK;
}

static enum cluster_fault say(struct transfer *t, const struct object_meta *meta,
                              struct err *err)
{
    _cleanup_buf_ struct buf text = {0};

    if (object_meta_write(meta, bucket_of(t), &text) < 0) {
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    return t->cluster->driver->object_put(t->link, bucket_of(t), t->key, buf_cstr(&text),
                                          text.len, t->revision, NULL, err);
}

static enum cluster_fault confirm(struct transfer *t, unsigned up_to, struct err *err)
{
    unsigned left = up_to + 1;

    while (left > up_to) {
        enum cluster_fault fault = t->cluster->driver->chunk_confirm(t->link, &left, err);

        if (fault != CLUSTER_OK)
            return fault;
        if (cluster_is_stopping(t->cluster)) {
            (void)err_set(err, EAGAIN, "the daemon is stopping");
            return CLUSTER_OTHER;
        }
    }
    return CLUSTER_OK;
}

static enum cluster_fault send_chunks(struct transfer *t, const char *key,
                                      const struct object_meta *meta, struct err *err)
{
    _cleanup_free_ char *chunk = malloc(OBJECT_CHUNK_BYTES);
    enum cluster_fault fault = CLUSTER_OK;

    if (!chunk) {
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    for (uint64_t i = 0; fault == CLUSTER_OK && i < meta->chunks; i++) {
        uint64_t at = i * OBJECT_CHUNK_BYTES, left = meta->size - at;
        size_t len = left < OBJECT_CHUNK_BYTES ? (size_t)left : OBJECT_CHUNK_BYTES;

        if (fd_pread_full(t->fd, chunk, len, at) != (ssize_t)len) {
            (void)err_set(err, EIO, "an object cannot be read");
            return CLUSTER_OTHER;
        }
        fault = t->cluster->driver->chunk_send(t->link, bucket_of(t), key, chunk, len, err);
        if (fault == CLUSTER_OK && (i + 1) % IN_FLIGHT == 0)
            fault = confirm(t, IN_FLIGHT / 2, err);
    }
    return fault == CLUSTER_OK ? confirm(t, 0, err) : fault;
}

static bool remove_chunks(struct cluster *c, struct cluster_link *link, enum cluster_kept kept,
                          const char *chunks_under)
{
    char key[OBJECT_KEY_SIZE];
    struct err ignored = {0};

    object_chunks_key(chunks_under, key);
    return c->driver->objects_purge(link, kept_buckets[kept], key, 0, &ignored) == CLUSTER_OK;
}

void cluster_remove_chunks(struct cluster *c, struct cluster_link *link, enum cluster_kept kept,
                           const char *chunks_under)
{
    /* Those of executions go with time. */
    if (remove_chunks(c, link, kept, chunks_under) || kept == CLUSTER_OF_EXECUTIONS)
        return;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    memcpy(c->left[c->n_left++ % CLUSTER_LEFT_MAX], chunks_under, OBJECT_WORD_SIZE);
}

void cluster_remove_left(struct cluster *c, struct cluster_link *link)
{
    char left[CLUSTER_LEFT_MAX][OBJECT_WORD_SIZE];

    (void)pthread_mutex_lock(&c->lock);
    memcpy(left, c->left, sizeof(left));
    memset(c->left, 0, sizeof(c->left));
    (void)pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < CLUSTER_LEFT_MAX; i++) {
        if (left[i][0])
            cluster_remove_chunks(c, link, CLUSTER_OF_CHANGES, left[i]);
    }
}

/*
 * Whether a bucket that has a bound has room for so many bytes, and for what is said of objects
 * that are to go. Those who ask at once may all find room: then what is too much is refused as
 * it comes.
 */
static enum cluster_fault check_room(struct transfer *t, uint64_t size, struct err *err)
{
    struct cluster_bucket bucket = {0};
    enum cluster_fault fault =
        t->cluster->driver->objects_look(t->link, bucket_of(t), &bucket, err);
    uint64_t max = bucket.max_bytes - bucket.max_bytes / KEPT_PART;

    if (fault != CLUSTER_OK || max == 0 ||
        (bucket.bytes < max && size + size / KEPT_PART < max - bucket.bytes))
        return fault;
    (void)err_set(
        err, ENOSPC,
        "of %llu bytes that skills and files may hold there (cluster.objects_bytes) %llu are "
        "taken, and %llu more do not fit",
        (unsigned long long)bucket.max_bytes, (unsigned long long)bucket.bytes,
        (unsigned long long)size);
    return CLUSTER_NO_ROOM;
}

/* All chunks, and then what says that they are one. */
static enum cluster_fault upload(struct transfer *t, struct err *err)
{
    struct object_meta before = t->meta, meta = {.size = t->size,
                                                 .chunks = (t->size + OBJECT_CHUNK_BYTES - 1) /
                                                           OBJECT_CHUNK_BYTES};
    char key[OBJECT_KEY_SIZE];
    enum cluster_fault fault =
        t->kept == CLUSTER_OF_CHANGES ? check_room(t, t->size, err) : CLUSTER_OK;

    if (fault != CLUSTER_OK)
        return fault;
    memcpy(meta.digest, t->digest, sizeof(meta.digest));
    if (ids_make_digits(16, meta.chunks_under) < 0) {
        (void)err_set(err, EIO, "no random bytes");
        return CLUSTER_OTHER;
    }
    object_chunks_key(meta.chunks_under, key);
    fault = send_chunks(t, key, &meta, err);
    if (fault != CLUSTER_OK) {
        cluster_remove_chunks(t->cluster, t->link, t->kept, meta.chunks_under);
        return fault;
    }
    fault = say(t, &meta, err);
    /* Where that was not confirmed it may be there all the same, and name them. */
    if (fault == CLUSTER_CONFLICT)
        cluster_remove_chunks(t->cluster, t->link, t->kept, meta.chunks_under);
    else if (fault == CLUSTER_OK && t->is_there)
        cluster_remove_chunks(t->cluster, t->link, t->kept, before.chunks_under);
    return fault;
}

/* Its chunks go before what is said of them. */
static bool may_be_dropped(const struct transfer *t)
{
    return t->kept == CLUSTER_OF_EXECUTIONS && clock_realtime_ns() > t->stored_ns + LATELY_NS;
}

static int measure(struct transfer *t, struct err *err)
{
    struct stat st;

    if (fstat(t->fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read an object");
    t->size = (uint64_t)st.st_size;
    return 0;
}

static enum cluster_fault put(struct transfer *t, struct err *err)
{
    enum cluster_fault fault = CLUSTER_CONFLICT;

    for (unsigned tries = 0; tries < TRIES && fault == CLUSTER_CONFLICT; tries++) {
        *err = (struct err){0};
        fault = look(t, err);
        if (fault != CLUSTER_OK)
            return fault;
        if (!t->is_there || t->meta.size != t->size || may_be_dropped(t))
            fault = upload(t, err);
        else if (t->kept == CLUSTER_OF_CHANGES && clock_realtime_ns() > t->stored_ns + FRESH_NS)
            fault = say(t, &t->meta, err);
    }
    return fault;
}

/* Says anew that it is there, where it is. */
static enum cluster_fault say_again(struct transfer *t, struct err *err)
{
    enum cluster_fault fault = CLUSTER_CONFLICT;

    for (unsigned tries = 0; tries < TRIES && fault == CLUSTER_CONFLICT; tries++) {
        *err = (struct err){0};
        fault = look(t, err);
        t->is_there &= t->meta.size == t->size;
        if (fault == CLUSTER_OK && t->is_there)
            fault = say(t, &t->meta, err);
    }
    return fault;
}

/*
 * A connection for one object. At once refused while the node is not joined: who lists many
 * would wait for servers that are gone again and again.
 */
static int begin(struct transfer *t, bool is_to_watch, struct err *err)
{
    int r = cluster_check_joined(t->cluster, err);

    if (r < 0)
        return r;
    object_meta_key(t->digest, t->key);
    return cluster_connect_near(t->cluster, is_to_watch, &t->link, err);
}

/* What is done over a connection. */
typedef enum cluster_fault transfer_work(struct transfer *t, struct err *err);

static enum cluster_fault work_over(struct transfer *t, transfer_work *work, struct err *why)
{
    enum cluster_fault fault;

    cluster_remove_left(t->cluster, t->link);
    fault = work(t, why);
    return cluster_tell_apart(t->cluster, t->link, bucket_of(t), fault, why);
}

/* Over a connection that others use behind it: for what is done in a moment. */
static int over_shared(struct transfer *t, transfer_work *work, struct err *err)
{
    struct cluster *c = t->cluster;
    enum cluster_fault fault = CLUSTER_UNREACHABLE;
    struct err why = {0};
    bool is_used = true;
    int r = cluster_check_joined(c, err);

    object_meta_key(t->digest, t->key);
    /* One that was open may have died. */
    while (r == 0 && fault == CLUSTER_UNREACHABLE && is_used) {
        r = cluster_link_take(c, &t->link, &is_used, err);
        if (r < 0)
            return r;
        why = (struct err){0};
        fault = work_over(t, work, &why);
        cluster_link_give(c, t->link, fault == CLUSTER_OK);
    }
    return r < 0 ? r : cluster_result(fault, &why, err);
}

/* Who waits for a moment's work does not wait for this. */
static int put_alone(struct transfer *t, struct err *err)
{
    enum cluster_fault fault;
    struct err why = {0};
    int r = begin(t, false, err);

    if (r < 0)
        return r;
    fault = work_over(t, put, &why);
    t->cluster->driver->close(t->link);
    return cluster_result(fault, &why, err);
}

int cluster_object_put(struct cluster *c, enum cluster_kept kept, const char *digest, int fd,
                       struct err *err)
{
    struct transfer t = {.cluster = c, .kept = kept, .digest = digest, .fd = fd};
    int r = measure(&t, err);

    if (r < 0)
        return r;
    return t.size > CLUSTER_OBJECT_SHORT ? put_alone(&t, err) : over_shared(&t, put, err);
}

int cluster_object_confirm(struct cluster *c, const char *digest, int fd, struct err *err)
{
    struct transfer t = {.cluster = c, .kept = CLUSTER_OF_CHANGES, .digest = digest, .fd = fd};
    int r = measure(&t, err);

    if (r < 0)
        return r;
    r = over_shared(&t, say_again, err);
    return r == 0 && !t.is_there ? -ENOENT : r;
}

int cluster_objects_look(struct cluster *c, struct cluster_object *objects, size_t n,
                         struct err *err)
{
    enum cluster_fault fault = CLUSTER_OK;
    struct transfer t = {.cluster = c};
    struct err why = {0};
    int r = cluster_connect_near(c, false, &t.link, err);

    if (r < 0)
        return r;
    for (size_t i = 0; fault == CLUSTER_OK && i < n && !cluster_is_stopping(c); i++) {
        object_meta_key(objects[i].digest, t.key);
        fault = look(&t, &why);
        objects[i].is_there =
            fault == CLUSTER_OK && t.is_there && t.meta.size == objects[i].size;
    }
    c->driver->close(t.link);
    return cluster_result(fault, &why, err);
}

struct seed {
    struct cluster *cluster;
    struct cluster_link *link;
    struct err why;
};

static int seed_object(struct seed *seed, const char *digest)
{
    const struct cluster_replica *replica = &seed->cluster->follow.replica;
    struct transfer t = {.cluster = seed->cluster, .link = seed->link, .digest = digest};
    _cleanup_fd_ int fd = *digest ? replica->object(replica->ctx, digest, NULL) : -ENOENT;
    enum cluster_fault fault;
    struct err why = {0};
    int r;

    if (fd < 0)
        return 0;
    t.fd = fd;
    r = measure(&t, &seed->why);
    if (r < 0)
        return r;
    object_meta_key(digest, t.key);
    fault = put(&t, &why);
    return cluster_result(fault, &why, &seed->why);
}

static int seed_row(void *ctx, const struct change *change)
{
    int r;

    if (change->kind == CHANGE_FILE)
        return seed_object(ctx, change->file.digest);
    if (change->kind == CHANGE_SESSION)
        return seed_object(ctx, change->session.digest);
    if (change->kind != CHANGE_SKILL)
        return 0;
    r = seed_object(ctx, change->skill.digest);
    return r < 0 ? r : seed_object(ctx, change->skill.packages_digest);
}

int cluster_seed_objects(struct cluster *c, struct cluster_link *link, struct err *err)
{
    struct seed seed = {.cluster = c, .link = link};
    int r = c->follow.replica.each(c->follow.replica.ctx, seed_row, &seed, err);

    if (seed.why.code)
        *err = seed.why;
    return r;
}

static int not_there(struct err *err, const char *digest, const char *why)
{
    return err_set(err, EREMOTEIO, "the servers of the cluster have no object %.12s%s", digest,
                   why);
}

/* Takes what comes until it is all there, nothing comes any more or it is not the object. */
static int receive(struct transfer *t, struct err *err)
{
    const struct cluster_driver *driver = t->cluster->driver;
    uint64_t at = 0, heard_ns = clock_monotonic_ns();
    const uint64_t over_ns =
        heard_ns + SILENCE_MS * NS_PER_MS + t->meta.size / LEAST_RATE * NS_PER_SECOND;
    bool is_last = false;
    int r = 0;

    while (r == 0 && at < t->meta.size && !is_last) {
        struct cluster_entry entry = {0};
        struct err why = {0};
        bool some = false;
        enum cluster_fault fault = driver->next(t->link, CLUSTER_SLICE_MS, &some, &entry, &why);

        if (cluster_is_stopping(t->cluster))
            r = err_set(err, EAGAIN, "the daemon is stopping");
        else if (fault != CLUSTER_OK)
            r = cluster_result(fault, &why, err);
        else if (!some)
            r = clock_monotonic_ns() - heard_ns < SILENCE_MS * NS_PER_MS
                    ? 0
                    : err_set(err, ETIMEDOUT, "nothing comes");
        else if (clock_monotonic_ns() >= over_ns)
            r = err_set(err, ETIMEDOUT, "it comes too slowly");
        else if (entry.len == 0 || entry.len > t->meta.size - at)
            is_last = true;
        else
            r = fd_pwrite_full(t->fd, entry.data, entry.len, at);
        if (some) {
            heard_ns = clock_monotonic_ns();
            at += entry.len;
            is_last |= entry.pending == 0;
            driver->release(&entry);
        }
    }
    if (r == 0 && at != t->meta.size)
        return not_there(err, t->digest, " that is whole");
    return r < 0 && !err->code ? err_set_errno(err, -r, "cannot keep an object") : r;
}

/* Of an object without chunks nothing ever comes. */
static int judge_silence(struct transfer *t, const char *key, struct err *err)
{
    const struct cluster_driver *driver = t->cluster->driver;
    struct cluster_entry entry = {0};
    struct err why = {0};
    enum cluster_fault fault = driver->object_get(t->link, bucket_of(t), key, &entry, &why);

    driver->release(&entry);
    *err = (struct err){0};
    if (fault == CLUSTER_NO_ENTRY)
        return not_there(err, t->digest, " that is whole");
    (void)err_set(&why, ETIMEDOUT, "an object does not arrive");
    return cluster_result(fault == CLUSTER_OK ? CLUSTER_NO_QUORUM : fault, &why, err);
}

static int get(struct transfer *t, uint64_t max, struct err *err)
{
    struct err why = {0};
    char key[OBJECT_KEY_SIZE];
    enum cluster_fault fault = look(t, &why);
    int r;

    if (fault == CLUSTER_OK && !t->is_there)
        return not_there(err, t->digest, "");
    if (fault == CLUSTER_OK && t->meta.size > max)
        return not_there(err, t->digest, " of the size that its row has");
    object_chunks_key(t->meta.chunks_under, key);
    if (fault == CLUSTER_OK)
        fault = t->cluster->driver->objects_watch(t->link, bucket_of(t), key, &why);
    if (fault != CLUSTER_OK)
        return cluster_result(
            cluster_tell_apart(t->cluster, t->link, bucket_of(t), fault, &why), &why, err);
    r = receive(t, err);
    return r == -ETIMEDOUT ? judge_silence(t, key, err) : r;
}

/* Whoever puts the same meanwhile has other chunks for it. */
int cluster_object_get(struct cluster *c, enum cluster_kept kept, const char *digest,
                       uint64_t max, int fd, struct err *err)
{
    struct transfer t = {.cluster = c, .kept = kept, .digest = digest, .fd = fd};
    int r = -EREMOTEIO;

    for (unsigned tries = 0; r == -EREMOTEIO && tries < TRIES; tries++) {
        *err = (struct err){0};
        r = begin(&t, true, err);
        if (r < 0)
            return r;
        r = get(&t, max, err);
        c->driver->close(t.link);
        if (!t.is_there || t.meta.size > max)
            return r;
    }
    return r;
}
