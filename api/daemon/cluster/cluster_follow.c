/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to the bucket of changes: only all that is there agrees. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

/* How long nobody is waited for once what others say was there did not come. */
#define DISTRUST_NS (60 * NS_PER_SECOND)
#define AWAIT_NS    (2 * NS_PER_SECOND)

static enum cluster_fault apply(struct tail_session *s, const struct change_place *place,
                                struct err *err)
{
    const struct cluster_replica *replica = &s->cluster->follow.replica;
    unsigned conflicts = 0;
    int r = replica->apply(replica->ctx, &s->staged, s->is_whole, place, &conflicts, err);

    if (r < 0)
        return r == -EEXIST ? CLUSTER_OWN_ROWS : CLUSTER_OTHER;
    if (conflicts > 0)
        tail_refuse(s->tail, "", TAIL_CONFLICTS, conflicts);
    return CLUSTER_OK;
}

/* What the entry of a key was before somebody wrote over it, where it can be told. */
static int write_again(struct tail_session *s, const char *key, struct buf *ret)
{
    struct cluster_replica *replica = &s->cluster->follow.replica;
    struct change change = {0};

    if (strcmp(key, CHANGE_BEGIN_KEY) == 0)
        return change_entry_write_begin(s->place.bucket, ret);
    if (change_entry_parse_key(key, &change) < 0 ||
        replica->row(replica->ctx, change.kind, change.id, &change, NULL) < 0)
        return -ENOENT;
    return change_entry_write(&change, ret);
}

/*
 * Nonsense took the place of what was there. Who had made every change before it writes what
 * its rows say; others would not know whether theirs are the newest. One of many is first.
 */
static void heal(struct tail_session *s, const struct cluster_entry *entry)
{
    _cleanup_buf_ struct buf text = {0};
    struct cluster *c = s->cluster;
    struct err ignored = {0};

    if (s->is_whole || s->staged.n > 0 || entry->revision != s->revision + 1 ||
        write_again(s, entry->key, &text) < 0)
        return;
    if (c->driver->put(s->link, CLUSTER_CHANGES, entry->key, buf_cstr(&text), text.len,
                       entry->revision, NULL, &ignored) == CLUSTER_OK)
        log_warn("cluster", "entry=\"%s\" was=unreadable is=\"written anew\"", entry->key);
}

static enum cluster_fault refuse_entry(struct tail_session *s,
                                       const struct cluster_entry *entry, enum node_refusal why,
                                       struct err *err)
{
    tail_refuse(s->tail, entry->key, why, 1);
    if (why == NODE_NEWER) {
        (void)err_set(err, EPROTO, "the entry %s", entry->key);
        return CLUSTER_NEWER;
    }
    heal(s, entry);
    return CLUSTER_OK;
}

static enum cluster_fault check(struct tail_session *s, const struct cluster_entry *entry,
                                struct err *err)
{
    char bucket[CHANGE_MARK_SIZE];
    enum node_refusal why = NODE_MALFORMED;
    struct change change;

    if (strcmp(entry->key, CHANGE_BEGIN_KEY) == 0)
        return change_entry_parse_begin(entry->data, entry->len, bucket) == 0
                   ? CLUSTER_OK
                   : refuse_entry(s, entry, why, err);
    if (change_entry_parse(entry->key, entry->data, entry->len, entry->is_removed, &change,
                           &why) < 0)
        return refuse_entry(s, entry, why, err);
    if (staged_add(&s->staged, entry->key, entry->revision, entry->data, entry->len,
                   entry->is_removed) < 0) {
        (void)err_set(err, ENOMEM, "there is no memory for the changes");
        return CLUSTER_OTHER;
    }
    return CLUSTER_OK;
}

/* That there are places for what skills hold and executions leave. */
static enum cluster_fault look_at_objects(struct tail_session *s, struct err *err)
{
    struct cluster_bucket bucket = {0};
    const struct cluster_driver *driver = s->cluster->driver;
    enum cluster_fault fault = driver->objects_look(s->link, CLUSTER_OBJECTS, &bucket, err);

    if (fault == CLUSTER_OK)
        fault = driver->objects_look(s->link, CLUSTER_ARTIFACTS, &bucket, err);
    if (cluster_fault_passes(fault))
        *err = (struct err){0};
    return fault == CLUSTER_NO_BUCKET    ? CLUSTER_NO_OBJECTS
           : cluster_fault_passes(fault) ? CLUSTER_OK
                                         : fault;
}

static enum cluster_fault note(struct tail_session *s, struct err *err)
{
    const struct cluster_replica *replica = &s->cluster->follow.replica;
    enum cluster_fault fault = look_at_objects(s, err);

    if (fault == CLUSTER_OK)
        replica->note(replica->ctx, &s->place);
    return fault;
}

/* Who the bucket is. */
static enum cluster_fault identify(struct tail_session *s, char ret[CHANGE_MARK_SIZE],
                                   struct err *err)
{
    struct cluster *c = s->cluster;
    struct cluster_entry begin = {0};
    enum cluster_fault fault =
        c->driver->get(s->link, CLUSTER_CHANGES, CHANGE_BEGIN_KEY, &begin, err);

    if (fault != CLUSTER_OK)
        return fault == CLUSTER_NO_ENTRY ? CLUSTER_NO_BUCKET : fault;
    if (change_entry_parse_begin(begin.data, begin.len, ret) < 0) {
        (void)err_set(err, EPROTO,
                      "the entry begin of the bucket " CLUSTER_CHANGES
                      " cannot be read: run `skillvm cluster init` at the node "
                      "whose changes are the newest");
        fault = CLUSTER_OTHER;
    }
    c->driver->release(&begin);
    return fault == CLUSTER_OK ? look_at_objects(s, err) : fault;
}

static int look(struct cluster *c, struct change_place *ret, struct err *err)
{
    return c->follow.replica.look(c->follow.replica.ctx, ret, err);
}

int cluster_follow(struct cluster *c, const struct cluster_replica *replica,
                   uint64_t keys_timeout_ms, struct err *err)
{
    static const struct tail_kind kind = {.bucket = CLUSTER_CHANGES,
                                          .what = "changes",
                                          .identify = identify,
                                          .look = look,
                                          .check = check,
                                          .apply = apply,
                                          .note = note};
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->follow.replica = *replica;
    c->follow.keys_timeout_ms =
        keys_timeout_ms > CLUSTER_LEASE_MS ? keys_timeout_ms : CLUSTER_LEASE_MS;
    return tail_start(c, &c->follow.tail, &kind, err);
}

/* One who says more than there is keeps nobody from going on for long. */
bool cluster_await_seen(struct cluster *c, uint64_t *distrust_ns, uint64_t seen)
{
    bool is_here;

    if (clock_monotonic_ns() < __atomic_load_n(distrust_ns, __ATOMIC_RELAXED)) {
        _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

        return c->follow.tail.revision >= seen;
    }
    is_here = tail_wait(&c->follow.tail, seen);
    if (!is_here)
        __atomic_store_n(distrust_ns, clock_monotonic_ns() + DISTRUST_NS, __ATOMIC_RELAXED);
    return is_here;
}

void cluster_note_written(struct cluster *c, uint64_t revision)
{
    uint64_t last = __atomic_load_n(&c->records_written, __ATOMIC_ACQUIRE);

    while (last < revision &&
           !__atomic_compare_exchange_n(&c->records_written, &last, revision, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

void cluster_seen_now(struct cluster *c, struct cluster_seen *ret)
{
    const uint64_t written = __atomic_load_n(&c->records_written, __ATOMIC_ACQUIRE);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    ret->changes = c->follow.tail.revision;
    ret->executions = written > c->records.revision ? written : c->records.revision;
}

bool cluster_await(struct cluster *c, const struct cluster_seen *seen)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + AWAIT_NS;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    while (
        (c->follow.tail.revision < seen->changes || c->records.revision < seen->executions) &&
        !c->is_stopping && cond_wait_until(&c->wake, &c->lock, deadline_ns))
        ;
    return c->follow.tail.revision >= seen->changes && c->records.revision >= seen->executions;
}

bool cluster_has_seen(struct cluster *c, uint64_t seen)
{
    return cluster_await_seen(c, &c->calls_distrust_ns, seen);
}

bool cluster_keys_good(const struct cluster_follow *f)
{
    return !f->tail.is_replica ||
           clock_monotonic_ns() - f->tail.confirmed_ns < f->keys_timeout_ms * NS_PER_MS;
}

bool cluster_takes_keys(struct cluster *c)
{
    if (!c)
        return true;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    return cluster_keys_good(&c->follow);
}
