/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nobody needs any more goes from the servers.
 *
 * What no skill, file or session names any more goes from the bucket of objects. Nobody says
 * that a row is about to name one: so it has to be old, and who names one that is there makes
 * it new first, of which the servers tell who would remove it. What goes at once may be named
 * at that moment: so who names one looks for it once more after its row is written.
 *
 * Keys, skills, files and sessions of tenants that were removed go from the bucket of changes,
 * where that fills up.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "api/daemon/cluster/object_meta.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define SILENCE_MS 2000u
#define SWEEP_MS   60000u /* for all; the next one goes on */
#define CROWDED    8u /* a bucket of changes is swept where more than such a part is taken */

struct sweep;
typedef int judge_fn(struct sweep *s, const struct cluster_entry *entry, struct err *err);

struct sweep {
    struct cluster *cluster;
    struct cluster_link *link;
    judge_fn *judge;
    /* Of objects. */
    uint64_t min_age_ns;
    cluster_named_fn *named;
    void *ctx;
    const char *digest; /* of the one that is to go */
    unsigned n;
};

/* What says that it was there stays for a while, as NATS's own tools leave it. */
static enum cluster_fault forget(struct sweep *s, const struct cluster_entry *entry,
                                 const struct object_meta *meta, struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    struct object_meta gone = *meta;
    _cleanup_buf_ struct buf text = {0};
    enum cluster_fault fault;

    gone.is_deleted = true;
    gone.size = gone.chunks = 0;
    if (object_meta_write(&gone, CLUSTER_OBJECTS, &text) < 0) {
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    fault = driver->object_put(s->link, CLUSTER_OBJECTS, entry->key, buf_cstr(&text), text.len,
                               entry->revision, NULL, err);
    if (fault != CLUSTER_OK)
        return fault;
    s->n++;
    log_info("cluster", "removed object=%.12s reason=\"nothing names it\"", meta->digest);
    cluster_remove_chunks(s->cluster, s->link, CLUSTER_OF_CHANGES, meta->chunks_under);
    return CLUSTER_OK;
}

/*
 * That it was there nobody needs to know for ever: who puts it again meanwhile says something
 * newer. With chunks that could not be removed then.
 */
static int forget_mark(struct sweep *s, const struct cluster_entry *entry,
                       const struct object_meta *meta, struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    char chunks[OBJECT_KEY_SIZE];
    enum cluster_fault fault = CLUSTER_OK;
    struct err why = {0};

    object_chunks_key(meta->chunks_under, chunks);
    if (meta->chunks_under[0])
        fault = driver->objects_purge(s->link, CLUSTER_OBJECTS, chunks, 0, &why);
    if (fault == CLUSTER_OK)
        fault =
            driver->objects_purge(s->link, CLUSTER_OBJECTS, entry->key, entry->revision, &why);
    return cluster_result(fault, &why, err);
}

static int judge_now(struct sweep *s, const struct cluster_entry *entry, struct err *err)
{
    enum cluster_fault fault;
    struct object_meta meta;
    struct err why = {0};
    bool named = true;
    int r;

    if (object_meta_parse(entry->key, entry->data, entry->len, &meta) < 0)
        return 0;
    if (meta.is_deleted)
        return forget_mark(s, entry, &meta, err);
    /* By rows that are up to date. */
    r = cluster_check_joined(s->cluster, err);
    if (r < 0)
        return r;
    r = s->named(s->ctx, meta.digest, &named, err);
    if (r < 0 || named)
        return r;
    fault = forget(s, entry, &meta, &why);
    return fault == CLUSTER_CONFLICT ? 0 : cluster_result(fault, &why, err);
}

static int judge_object(struct sweep *s, const struct cluster_entry *entry, struct err *err)
{
    uint64_t now_ns = clock_realtime_ns();

    return now_ns < entry->stored_ns || now_ns - entry->stored_ns < s->min_age_ns
               ? 0
               : judge_now(s, entry, err);
}

static int take_all(struct sweep *s, struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    uint64_t heard_ns = clock_monotonic_ns(), over_ns = heard_ns + SWEEP_MS * NS_PER_MS;
    bool is_last = false;
    int r = 0;

    while (r == 0 && !is_last && !cluster_is_stopping(s->cluster) &&
           clock_monotonic_ns() < over_ns &&
           clock_monotonic_ns() - heard_ns < SILENCE_MS * NS_PER_MS) {
        struct cluster_entry entry = {0};
        struct err why = {0};
        bool some = false;
        enum cluster_fault fault = driver->next(s->link, CLUSTER_SLICE_MS, &some, &entry, &why);

        if (fault != CLUSTER_OK)
            return cluster_result(fault, &why, err);
        if (!some)
            continue;
        is_last = entry.pending == 0;
        r = s->judge(s, &entry, err);
        driver->release(&entry);
        heard_ns = clock_monotonic_ns();
    }
    return r;
}

/* Over a connection of its own, while the node is joined. */
static int over_link(struct sweep *s, int (*work)(struct sweep *s, struct err *err),
                     struct err *err)
{
    int r = cluster_check_joined(s->cluster, err);

    if (r < 0)
        return r;
    r = cluster_connect(s->cluster, 0, true, &s->link, err);
    if (r < 0)
        return r;
    r = work(s, err);
    s->cluster->driver->close(s->link);
    return r;
}

static int sweep_objects(struct sweep *s, struct err *err)
{
    struct err why = {0};
    enum cluster_fault fault;

    cluster_remove_left(s->cluster, s->link);
    fault = s->cluster->driver->objects_watch(s->link, CLUSTER_OBJECTS, CLUSTER_OBJECT_META ">",
                                              &why);
    return fault == CLUSTER_OK ? take_all(s, err) : cluster_result(fault, &why, err);
}

int cluster_objects_sweep(struct cluster *c, uint64_t min_age_ns, cluster_named_fn *named,
                          void *ctx, unsigned *ret_n, struct err *err)
{
    struct sweep s = {.cluster = c,
                      .judge = judge_object,
                      .min_age_ns = min_age_ns,
                      .named = named,
                      .ctx = ctx};
    int r = over_link(&s, sweep_objects, err);

    *ret_n = s.n;
    return r;
}

/*
 * What is said of it, then the rows, up to what was written before that: who named it earlier
 * is among them, and who does so later says it anew, or finds that it went.
 */
static int remove_now(struct sweep *s, struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    struct cluster_bucket bucket = {0};
    struct cluster_entry entry = {0};
    char key[OBJECT_KEY_SIZE];
    struct err why = {0};
    enum cluster_fault fault;
    int r;

    object_meta_key(s->digest, key);
    fault = driver->object_get(s->link, CLUSTER_OBJECTS, key, &entry, &why);
    if (fault == CLUSTER_NO_ENTRY)
        return 0;
    if (fault == CLUSTER_OK)
        fault = driver->bucket_look(s->link, CLUSTER_CHANGES, &bucket, &why);
    if (fault != CLUSTER_OK)
        r = cluster_result(fault, &why, err);
    else if (!tail_wait(&s->cluster->follow.tail, bucket.last_revision))
        r = err_set(err, EAGAIN, "this node is behind the others");
    else
        r = judge_now(s, &entry, err);
    driver->release(&entry);
    return r;
}

int cluster_object_remove(struct cluster *c, const char *digest, cluster_named_fn *named,
                          void *ctx, struct err *err)
{
    struct sweep s = {.cluster = c, .named = named, .ctx = ctx, .digest = digest};

    return over_link(&s, remove_now, err);
}

/* Whose it is; NULL: it is a tenant. */
static const char *tenant_of(const struct change *change)
{
    return change->kind == CHANGE_KEY ? change->key.tenant : change_owner(change);
}

/*
 * What is a tenant's that is not there, by rows that are as new as it is. A tenant
 * that was removed does not come back, and somebody else's in that place is of another
 * revision.
 */
static int judge_row(struct sweep *s, const struct cluster_entry *entry, struct err *err)
{
    const struct cluster_replica *replica = &s->cluster->follow.replica;
    enum cluster_fault fault;
    enum node_refusal unused;
    struct err why = {0};
    struct change change, tenant;
    int r;

    if (entry->is_removed || entry->revision > cluster_revision_now(s->cluster) ||
        change_entry_parse(entry->key, entry->data, entry->len, false, &change, &unused) < 0 ||
        !tenant_of(&change))
        return 0;
    r = replica->row(replica->ctx, CHANGE_TENANT, tenant_of(&change), &tenant, err);
    if (r != -ENOENT)
        return r;
    r = cluster_check_joined(s->cluster, err);
    if (r < 0)
        return r;
    fault = s->cluster->driver->put(s->link, CLUSTER_CHANGES, entry->key, NULL, 0,
                                    entry->revision, NULL, &why);
    s->n += fault == CLUSTER_OK;
    return fault == CLUSTER_CONFLICT ? 0 : cluster_result(fault, &why, err);
}

static int sweep_rows(struct sweep *s, struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    struct cluster_bucket bucket = {0};
    struct err why = {0};
    enum cluster_fault fault = driver->bucket_look(s->link, CLUSTER_CHANGES, &bucket, &why);

    if (fault == CLUSTER_OK && bucket.bytes < bucket.max_bytes / CROWDED)
        return 0;
    if (fault == CLUSTER_OK)
        fault = driver->watch(s->link, CLUSTER_CHANGES, 0, &why);
    return fault == CLUSTER_OK ? take_all(s, err) : cluster_result(fault, &why, err);
}

int cluster_rows_sweep(struct cluster *c, unsigned *ret_n, struct err *err)
{
    struct sweep s = {.cluster = c, .judge = judge_row};
    int r = over_link(&s, sweep_rows, err);

    *ret_n = s.n;
    return r;
}
