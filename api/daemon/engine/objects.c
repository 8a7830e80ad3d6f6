/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/objects.h"

#include "api/daemon/engine/fair_gate.h"
#include "api/daemon/engine/objects_cache.h"
#include "api/daemon/registry/registry_skill_plan.h"
#include "api/skill/sha256.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FETCHES 4u /* at once, each with a connection */
#define WAIT_NS                                                                                \
    (60 * NS_PER_SECOND) /* for a place among them, or for one that is on its way              \
                          */
#define PUTS       8u    /* at once, of each kind */
#define UNNAMED_NS (3600 * NS_PER_SECOND)

/* One that is read from the servers now. */
struct fetch {
    char digest[SHA256_HEX_SIZE]; /* "": none */
    uint64_t bytes;               /* at most */
    enum cluster_kept kept;
    unsigned waiting; /* for what it gives; with it the place is free again */
    bool is_done;
    int result;
    struct err err;
};

struct objects {
    struct objects_env env;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t done;
    struct cluster *cluster; /* or NULL; stays while something is fetched */
    uint64_t cached_bytes;   /* of what skills and files hold, at most; what went counts too */
    bool is_counted;         /* that is known */
    bool is_trimming;
    bool is_sweeping; /* so the cluster stays */
    struct fetch fetches[FETCHES];
    /* Of those who put, by enum cluster_kept and whether it is a long one: neither what is
       pushed keeps executions from their ends, nor the large ones the small. */
    struct fair_gate *gates[2][2];
};

static int make_gates(struct objects *o)
{
    for (size_t i = 0; i < 4; i++) {
        o->gates[i / 2][i % 2] = fair_gate_create(PUTS);
        if (!o->gates[i / 2][i % 2])
            return -ENOMEM;
    }
    return 0;
}

int objects_create(const struct objects_env *env, struct objects **ret, struct err *err)
{
    struct objects *objects = calloc(1, sizeof(*objects));
    int r;

    if (!objects)
        return err_no_memory(err);
    objects->env = *env;
    (void)pthread_mutex_init(&objects->lock, NULL);
    cond_init(&objects->done);
    r = make_gates(objects);
    if (r < 0) {
        objects_destroy(objects);
        return err_no_memory(err);
    }
    *ret = objects;
    return 0;
}

void objects_destroy(struct objects *objects)
{
    if (!objects)
        return;
    for (size_t i = 0; i < 4; i++)
        fair_gate_destroy(objects->gates[i / 2][i % 2]);
    (void)pthread_cond_destroy(&objects->done);
    (void)pthread_mutex_destroy(&objects->lock);
    free(objects);
}

/* Under the lock: the one of this digest; with "" a free place. Or NULL. */
static struct fetch *find(struct objects *o, const char *digest)
{
    for (size_t i = 0; i < FETCHES; i++) {
        if (strcmp(o->fetches[i].digest, digest) == 0)
            return &o->fetches[i];
    }
    return NULL;
}

static bool is_fetching(const struct objects *o)
{
    for (size_t i = 0; i < FETCHES; i++) {
        if (o->fetches[i].digest[0])
            return true;
    }
    return false;
}

void objects_join(struct objects *o, struct cluster *cluster)
{
    if (!o)
        return;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);
    o->cluster = cluster;
    while (!cluster && (is_fetching(o) || o->is_sweeping))
        (void)pthread_cond_wait(&o->done, &o->lock);
}

/* Under the lock: who comes last frees the place. */
static int leave(struct objects *o, struct fetch *f, struct err *err)
{
    int r = f->result;

    if (r < 0)
        *err = f->err;
    if (--f->waiting == 0) {
        f->digest[0] = '\0';
        (void)pthread_cond_broadcast(&o->done);
    }
    return r;
}

/*
 * Under the lock: waits for one that is on its way, or takes a place. NULL: *ret is what the
 * other one gave.
 */
static struct fetch *enter(struct objects *o, const char *digest, int *ret, struct err *err)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + WAIT_NS;
    struct fetch *f;

    for (;;) {
        f = find(o, digest);
        if (f)
            break;
        if (!o->cluster) {
            *ret = -ENOENT;
            return NULL;
        }
        f = find(o, "");
        if (f) {
            *f = (struct fetch){.waiting = 1};
            memcpy(f->digest, digest, sizeof(f->digest));
            return f;
        }
        if (!cond_wait_until(&o->done, &o->lock, deadline_ns)) {
            *ret = err_set(err, EAGAIN, "this node reads too many objects of others");
            return NULL;
        }
    }
    f->waiting++;
    while (!f->is_done && cond_wait_until(&o->done, &o->lock, deadline_ns))
        ;
    if (!f->is_done) {
        f->waiting--;
        *ret = err_set(err, EAGAIN, "object %.12s does not come in time", digest);
        return NULL;
    }
    *ret = leave(o, f, err);
    return NULL;
}

/* How large it may be, with room for it and all others that are on their way. */
static int check_room(struct objects *o, struct fetch *f, struct err *err)
{
    uint64_t bytes = 0;
    struct registry_naming naming = {0};
    int r = registry_object_naming(o->env.registry, f->digest, &naming, err);

    if (r < 0)
        return r;
    if (!naming.by_changes && !naming.by_executions)
        return -ENOENT;
    r = registry_object_bytes(o->env.registry, f->digest, &bytes, err);
    if (r < 0)
        return r;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);
    f->bytes = bytes > 0 ? bytes : o->env.bytes_max;
    f->kept = naming.by_changes ? CLUSTER_OF_CHANGES : CLUSTER_OF_EXECUTIONS;
    bytes = 0;
    for (size_t i = 0; i < FETCHES; i++)
        bytes += o->fetches[i].digest[0] && !o->fetches[i].is_done ? o->fetches[i].bytes : 0;
    return watermarks_check_room(o->env.watermarks, bytes, err) < 0 ? -ENOBUFS : 0;
}

static int put(struct objects *o, const char *digest, int fd, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(o->env.store);
    int r = store_put(store, fd, digest, err);

    /* Where its row went meanwhile. */
    return r < 0 ? r : store_release(store, digest, err);
}

/* Counts what came, and says whether it may be too much: then the caller makes room. */
static bool is_full(struct objects *o, int fd)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);
    struct stat st;

    o->cached_bytes += fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (o->env.cache_bytes == 0 || o->is_trimming ||
        (o->is_counted && o->cached_bytes <= o->env.cache_bytes))
        return false;
    o->is_trimming = true;
    return true;
}

static void make_room(struct objects *o, struct cluster *cluster, const char *digest, int fd)
{
    const struct objects_cache cache = {.registry = o->env.registry,
                                        .store = o->env.store,
                                        .cluster = cluster,
                                        .bytes_max = o->env.cache_bytes,
                                        .kept = digest};
    uint64_t bytes = 0;
    struct err err = {0};
    int r;

    if (!cluster || !is_full(o, fd))
        return;
    r = objects_cache_trim(&cache, &bytes, &err);
    if (r < 0)
        log_warn("objects", "cache=\"not trimmed\" reason=\"%s\"", err.message);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);
    o->is_trimming = false;
    o->is_counted |= r == 0;
    o->cached_bytes = r == 0 ? bytes : o->cached_bytes;
}

static int keep(struct objects *o, const char *digest, int fd, struct err *err)
{
    char found[SHA256_HEX_SIZE];
    int r = sha256_of_fd(fd, found);

    if (r < 0)
        return err_set_errno(err, -r, "cannot read an object");
    if (strcmp(found, digest) != 0)
        return err_set(err, EREMOTEIO,
                       "what the servers of the cluster have as object %.12s is another: "
                       "remove it there (`nats object rm " CLUSTER_OBJECTS
                       "`) and push the skill, or upload the file, again",
                       digest);
    (void)fsync(fd);
    return put(o, digest, fd, err);
}

static int fetch(struct objects *o, struct fetch *f, struct cluster *cluster, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r = check_room(o, f, err);

    if (r < 0)
        return r;
    fd = store_temporary(o->env.store);
    if (fd < 0)
        return err_set_errno(err, -fd, "cannot keep an object");
    r = cluster_object_get(cluster, f->kept, f->digest, f->bytes, fd, err);
    if (r < 0)
        return r;
    r = keep(o, f->digest, fd, err);
    if (r < 0)
        return r;
    make_room(o, cluster, f->digest, fd);
    return 0;
}

static int fetch_and_tell(struct objects *o, struct fetch *f, struct cluster *cluster,
                          struct err *err)
{
    int r = fetch(o, f, cluster, err);

    if (r < 0)
        log_warn("objects", "object=%.12s is=\"not read\" reason=\"%s\"", f->digest,
                 err->message);
    return r;
}

/* One at a time of each: who comes meanwhile waits for it. */
static int fetch_once(struct objects *o, const char *digest, struct err *err)
{
    struct cluster *cluster;
    struct fetch *f;
    int r = 0;

    (void)pthread_mutex_lock(&o->lock);
    f = enter(o, digest, &r, err);
    cluster = o->cluster;
    (void)pthread_mutex_unlock(&o->lock);
    if (!f)
        return r;
    r = fetch_and_tell(o, f, cluster, &f->err);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);
    f->result = r;
    f->is_done = true;
    (void)pthread_cond_broadcast(&o->done);
    return leave(o, f, err);
}

static struct cluster *cluster_of(struct objects *o)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);

    return o->cluster;
}

int objects_open(struct objects *o, const char *digest, struct job_bytes *ret, struct err *err)
{
    int fd = objects_get(o, digest, err);
    struct stat st;

    if (fd < 0)
        return fd;
    fd_close(&ret->fd);
    ret->fd = fd;
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read an object");
    ret->len = (uint64_t)st.st_size;
    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
    return 0;
}

int objects_get_here(struct objects *o, const char *digest, struct err *err)
{
    int fd = store_get(o->env.store, digest, err);

    if (fd >= 0 && cluster_of(o))
        store_note_use(fd);
    return fd;
}

int objects_get(struct objects *o, const char *digest, struct err *err)
{
    struct err gone = {0}, why = {0};
    int fd = objects_get_here(o, digest, &gone);

    if (fd == -ENOENT) {
        int r = fetch_once(o, digest, &why);

        gone = why.code ? why : gone;
        fd = r < 0 ? r : objects_get_here(o, digest, &gone);
    }
    if (fd < 0 && err)
        *err = gone;
    return fd;
}

int objects_keep(struct objects *o, const char *digest, int fd, struct err *err)
{
    int r = put(o, digest, fd, err);

    if (r < 0)
        return r;
    make_room(o, cluster_of(o), digest, fd);
    return 0;
}

/* Waits for its turn to be put. */
static int send(struct objects *o, struct cluster *cluster, const struct objects_put *put,
                bool is_long, struct err *err)
{
    struct fair_gate *gate = o->gates[put->kept][is_long];
    struct fair_gate_entry entry;
    int r =
        fair_gate_enter(gate, put->tenant, &entry, clock_monotonic_ns() + put->wait_ns, NULL);

    if (r == -EBUSY)
        return err_set(err, EAGAIN, "this node sends the servers too many objects at once");
    if (r < 0)
        return err_no_memory(err);
    r = cluster_object_put(cluster, put->kept, put->digest, put->fd, err);
    fair_gate_leave(gate, &entry);
    return r;
}

int objects_send(struct objects *o, const struct objects_put *put, struct err *err)
{
    struct cluster *cluster = cluster_of(o);
    struct stat st;

    if (!cluster)
        return 0;
    if (fstat(put->fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read an object");
    return send(o, cluster, put, (uint64_t)st.st_size > CLUSTER_OBJECT_SHORT, err);
}

int objects_confirm(struct objects *o, const struct objects_put *put, struct err *err)
{
    struct cluster *cluster = cluster_of(o);
    int r = cluster ? cluster_object_confirm(cluster, put->digest, put->fd, err) : 0;

    /* Whoever would remove it now finds the row. */
    return r == -ENOENT ? objects_send(o, put, err) : r;
}

static int is_named(void *ctx, const char *digest, bool *ret_named, struct err *err)
{
    return registry_digest_used(ctx, digest, ret_named, err);
}

int objects_drop(struct objects *o, const char *digest, struct err *err)
{
    struct cluster *cluster = cluster_of(o);

    return cluster ? cluster_object_remove(cluster, digest, is_named, o->env.registry, err) : 0;
}

static int change_and_confirm(struct objects *o, const struct objects_put *put,
                              objects_change_fn *change, void *ctx, struct err *err)
{
    int r = change(ctx, err);

    return r < 0 ? r : objects_confirm(o, put, err);
}

int objects_share(struct objects *o, const struct objects_put *put, objects_change_fn *change,
                  void *ctx, bool *ret_sent, struct err *err)
{
    struct err ignored = {0};
    int r = objects_send(o, put, err);

    if (r < 0)
        return r;
    r = change_and_confirm(o, put, change, ctx, err);
    *ret_sent = r < 0 && objects_drop(o, put->digest, &ignored) < 0;
    return r;
}

/* The cluster, which then stays; or NULL. */
static struct cluster *begin_sweep(struct objects *o)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);

    o->is_sweeping = o->cluster != NULL;
    return o->cluster;
}

/*
 * What executions left goes with time: a node that is new, or was away, may not know who names
 * it.
 */
static int sweep_servers(struct objects *o, struct cluster *cluster, struct err *err)
{
    unsigned n = 0;
    int r = cluster_rows_sweep(cluster, &n, err);

    return r < 0
               ? r
               : cluster_objects_sweep(cluster, UNNAMED_NS, is_named, o->env.registry, &n, err);
}

int objects_sweep(struct objects *o, struct err *err)
{
    struct cluster *cluster = begin_sweep(o);
    struct cluster_status status;
    int r = 0;

    if (!cluster)
        return 0;
    cluster_look(cluster, &status);
    if (status.state == CLUSTER_JOINED)
        r = sweep_servers(o, cluster, err);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&o->lock);
    o->is_sweeping = false;
    (void)pthread_cond_broadcast(&o->done);
    return r;
}
