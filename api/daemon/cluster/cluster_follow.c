/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that makes the changes of the cluster here. Like that of nodes it has sessions,
 * which begin from what the rows say how far they are.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS 1000u  /* between two looks at whether there is more */
#define NOTE_MS 10000u /* between two notes that there was none */

struct session {
    struct cluster *cluster;
    struct cluster_link *link;
    struct change_place place; /* as it was noted last */
    struct staged staged;
    bool is_whole;       /* everything comes */
    uint64_t revision;   /* of what came last */
    uint64_t created_ns; /* the bucket, by which it is told from another of the name */
    uint64_t began_ns, look_ns, note_ns;
};

static void set_fault(struct cluster *c, enum cluster_fault fault, const struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    struct cluster_follow *f = &c->follow;
    uint64_t age_ns = clock_monotonic_ns() - f->confirmed_ns;
    bool is_new;

    if (cluster_fault_passes(fault) && f->is_good && age_ns < CLUSTER_LEASE_MS * NS_PER_MS)
        return;
    if (fault == CLUSTER_NO_BUCKET && f->is_replica)
        fault = CLUSTER_BUCKET_GONE;
    is_new = f->is_good || f->fault != fault;
    f->is_good = false;
    f->fault = fault;
    cluster_explain(fault, err, f->message);
    if (is_new)
        log_warn("cluster", "changes=\"not followed\" node=%s reason=%s message=\"%s\"",
                 c->self.node, cluster_fault_names[fault], f->message);
}

static void set_good(struct cluster *c, uint64_t asked_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    struct cluster_follow *f = &c->follow;

    if (!f->is_good)
        log_info("cluster", "changes=followed node=%s revision=%llu", c->self.node,
                 (unsigned long long)f->revision);
    f->is_good = true;
    f->fault = CLUSTER_OK;
    f->confirmed_ns = asked_ns;
}

static void refuse(struct cluster *c, const char *key, unsigned why, unsigned n)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    const char *word = why == CHANGE_CONFLICTS ? "conflict" : node_refusal_names[why];

    c->follow.refused[why] += n;
    (void)snprintf(c->follow.last_refused, sizeof(c->follow.last_refused), "%s at \"%s\"", word,
                   key);
}

static enum cluster_fault fault_of(int result)
{
    return result == -EEXIST ? CLUSTER_OWN_ROWS : CLUSTER_OTHER;
}

/* All that came agrees now: it becomes rows. */
static enum cluster_fault commit(struct session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    struct change_place place = s->place;
    unsigned conflicts = 0;
    int r;

    place.revision = s->revision;
    place.noted_ns = clock_realtime_ns();
    staged_sort(&s->staged);
    r = c->follow.replica.apply(c->follow.replica.ctx, &s->staged, s->is_whole, &place,
                                &conflicts, err);
    staged_finish(&s->staged);
    if (r < 0)
        return fault_of(r);
    if (conflicts > 0)
        refuse(c, "", CHANGE_CONFLICTS, conflicts);
    s->place = place;
    s->is_whole = false;
    s->look_ns = 0;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    c->follow.revision = place.revision;
    c->follow.is_replica = true;
    (void)pthread_cond_broadcast(&c->wake);
    return CLUSTER_OK;
}

/* What the entry of a key was before somebody wrote over it, where it can be told. */
static int write_again(struct session *s, const char *key, struct buf *ret)
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
static void heal(struct session *s, const struct cluster_entry *entry)
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

static enum cluster_fault refuse_entry(struct session *s, const struct cluster_entry *entry,
                                       enum node_refusal why, struct err *err)
{
    refuse(s->cluster, entry->key, why, 1);
    if (why == NODE_NEWER) {
        (void)err_set(err, EPROTO, "the entry %s", entry->key);
        return CLUSTER_NEWER;
    }
    heal(s, entry);
    return CLUSTER_OK;
}

static enum cluster_fault stage(struct session *s, const struct cluster_entry *entry,
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

static enum cluster_fault take(struct session *s, const struct cluster_entry *entry,
                               struct err *err)
{
    enum cluster_fault fault = stage(s, entry, err);

    if (fault != CLUSTER_OK)
        return fault;
    s->revision = entry->revision;
    return entry->pending == 0 ? commit(s, err) : CLUSTER_OK;
}

/* That there is a place for what skills hold. */
static enum cluster_fault look_at_objects(struct session *s, struct err *err)
{
    struct cluster_bucket bucket = {0};
    enum cluster_fault fault =
        s->cluster->driver->objects_look(s->link, CLUSTER_OBJECTS, &bucket, err);

    if (cluster_fault_passes(fault))
        *err = (struct err){0};
    return fault == CLUSTER_NO_BUCKET    ? CLUSTER_NO_OBJECTS
           : cluster_fault_passes(fault) ? CLUSTER_OK
                                         : fault;
}

/* Asks whether there is more than what is made here. */
static enum cluster_fault look(struct session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    struct cluster_bucket bucket = {0};
    uint64_t asked_ns = clock_monotonic_ns();
    enum cluster_fault fault = c->driver->bucket_look(s->link, CLUSTER_CHANGES, &bucket, err);
    uint64_t good_ns;

    s->look_ns = clock_monotonic_ns() + LOOK_MS * NS_PER_MS;
    if (fault != CLUSTER_OK && !cluster_fault_passes(fault))
        return fault;
    /* A watch may go on in it, behind what it has lost. */
    if (fault == CLUSTER_OK && bucket.created_ns != s->created_ns) {
        (void)err_set(err, EIO, "the bucket is another one than before");
        return CLUSTER_UNREACHABLE;
    }
    if (fault == CLUSTER_OK && !s->is_whole && s->place.revision >= bucket.last_revision) {
        set_good(c, asked_ns);
        if (asked_ns < s->note_ns)
            return CLUSTER_OK;
        fault = look_at_objects(s, err);
        if (fault != CLUSTER_OK)
            return fault;
        s->note_ns = asked_ns + NOTE_MS * NS_PER_MS;
        s->place.noted_ns = clock_realtime_ns();
        c->follow.replica.note(c->follow.replica.ctx, &s->place);
        return CLUSTER_OK;
    }
    good_ns = c->follow.confirmed_ns > s->began_ns ? c->follow.confirmed_ns : s->began_ns;
    if (asked_ns < good_ns || asked_ns - good_ns < CLUSTER_LEASE_MS * NS_PER_MS) {
        *err = (struct err){0};
        return CLUSTER_OK;
    }
    /* Also a watch can die without a word. */
    if (fault == CLUSTER_OK)
        (void)err_set(err, EIO, "changes of tenants and keys do not arrive");
    return CLUSTER_NO_QUORUM;
}

static enum cluster_fault stay(struct session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    enum cluster_fault fault = CLUSTER_OK;

    while (fault == CLUSTER_OK && !cluster_is_stopping(c)) {
        struct cluster_entry entry = {0};
        bool some = false;

        fault = clock_monotonic_ns() < s->look_ns ? CLUSTER_OK : look(s, err);
        if (fault != CLUSTER_OK)
            break;
        fault = c->driver->next(s->link, CLUSTER_SLICE_MS, &some, &entry, err);
        if (!some)
            continue;
        fault = take(s, &entry, err);
        c->driver->release(&entry);
    }
    return fault;
}

/* Who the bucket is. */
static enum cluster_fault ask_bucket(struct session *s, char ret[CHANGE_MARK_SIZE],
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
    return fault;
}

/* From what was made here already on, where that is of this bucket. */
static enum cluster_fault begin(struct session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    struct cluster_replica *replica = &c->follow.replica;
    struct cluster_bucket bucket = {0};
    char name[CHANGE_MARK_SIZE];
    enum cluster_fault fault = c->driver->bucket_look(s->link, CLUSTER_CHANGES, &bucket, err);

    if (fault == CLUSTER_OK)
        fault = ask_bucket(s, name, err);
    if (fault == CLUSTER_OK)
        fault = look_at_objects(s, err);
    if (fault != CLUSTER_OK)
        return fault;
    if (replica->look(replica->ctx, &s->place, err) < 0)
        return CLUSTER_OTHER;
    s->created_ns = bucket.created_ns;
    s->is_whole =
        strcmp(s->place.bucket, name) != 0 || s->place.revision > bucket.last_revision;
    if (s->is_whole)
        s->place.revision = 0;
    memcpy(s->place.bucket, name, sizeof(name));
    s->revision = s->place.revision;
    return c->driver->watch(s->link, CLUSTER_CHANGES, s->place.revision, err);
}

static enum cluster_fault follow(struct cluster *c, size_t server, struct err *err)
{
    struct session s = {.cluster = c, .began_ns = clock_monotonic_ns()};
    enum cluster_fault fault = c->driver->open(&c->access, c->servers[server], &s.link, err);

    if (fault != CLUSTER_OK)
        return fault;
    (void)pthread_mutex_lock(&c->lock);
    c->follow.server = server;
    (void)pthread_mutex_unlock(&c->lock);
    fault = cluster_is_stopping(c) ? CLUSTER_OK : begin(&s, err);
    if (fault == CLUSTER_OK)
        fault = stay(&s, err);
    staged_finish(&s.staged);
    c->driver->close(s.link);
    return fault;
}

void *cluster_follow_run(void *cluster)
{
    struct cluster *c = cluster;
    struct cluster_pause pause = {0};
    size_t at = 0, gone = 0;

    while (!cluster_is_stopping(c)) {
        uint64_t confirmed_ns = c->follow.confirmed_ns;
        struct err err = {0};
        enum cluster_fault fault = follow(c, at, &err);

        at = (at + 1) % c->n_servers;
        if (c->follow.confirmed_ns != confirmed_ns) {
            pause.wait_ms = 0;
            gone = 0;
        }
        if (cluster_is_stopping(c))
            break;
        /* What a server says counts for more than that another is not there. */
        if (fault == CLUSTER_UNREACHABLE && ++gone < c->n_servers)
            continue;
        gone = 0;
        set_fault(c, fault, &err);
        cluster_wait(c, &pause);
    }
    return NULL;
}

/* What was known when the daemon ended is as old as that is. */
static int begin_from(struct cluster *c, struct err *err)
{
    struct cluster_follow *f = &c->follow;
    uint64_t now_ns = clock_realtime_ns(), up_ns = clock_monotonic_ns(), age_ns;
    struct change_place place = {0};
    int r = f->replica.look(f->replica.ctx, &place, err);

    if (r < 0)
        return r;
    age_ns = now_ns > place.noted_ns ? now_ns - place.noted_ns : 0;
    f->is_replica = place.bucket[0] != '\0';
    f->revision = place.revision;
    f->confirmed_ns = f->is_replica && age_ns < up_ns ? up_ns - age_ns : 0;
    return 0;
}

int cluster_follow(struct cluster *c, const struct cluster_replica *replica,
                   uint64_t keys_timeout_ms, struct err *err)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    int r;

    c->follow.replica = *replica;
    c->follow.keys_timeout_ms =
        keys_timeout_ms > CLUSTER_LEASE_MS ? keys_timeout_ms : CLUSTER_LEASE_MS;
    r = begin_from(c, err);
    if (r < 0)
        return r;
    r = pthread_create(&c->follow.thread, NULL, cluster_follow_run, c);
    if (r != 0)
        return err_set_errno(err, r, "cannot start a thread");
    c->follow.has_thread = true;
    return 0;
}

bool cluster_keys_good(const struct cluster_follow *f)
{
    return !f->is_replica ||
           clock_monotonic_ns() - f->confirmed_ns < f->keys_timeout_ms * NS_PER_MS;
}

bool cluster_takes_keys(struct cluster *c)
{
    if (!c)
        return true;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    return cluster_keys_good(&c->follow);
}
