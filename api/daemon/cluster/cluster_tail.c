/* SPDX-License-Identifier: Apache-2.0 */
/* Like the thread of nodes these have sessions, which begin from how far the rows are. */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS   1000u  /* between two looks at whether there is more */
#define SOON_MS   100u   /* the same where something came */
#define NOTE_MS   10000u /* between two notes that there was none */
#define FOLLOW_MS 5000u  /* within which what was written comes back */
#define GAP_MS    3000u  /* for which nothing came of what there is */
#define GAP_MAX   1024u  /* entries of it that are read one by one */
#define AGAIN_MAX 16u    /* entries that are read again between two looks at what comes */

static void set_fault(struct cluster_tail *tail, enum cluster_fault fault,
                      const struct err *err)
{
    struct cluster *c = tail->cluster;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    uint64_t age_ns = clock_monotonic_ns() - tail->confirmed_ns;
    bool is_new;

    if (cluster_fault_passes(fault) && tail->is_good && age_ns < CLUSTER_LEASE_MS * NS_PER_MS)
        return;
    if (fault == CLUSTER_NO_BUCKET && tail->is_replica)
        fault = CLUSTER_BUCKET_GONE;
    is_new = tail->is_good || tail->fault != fault;
    tail->is_good = false;
    tail->fault = fault;
    cluster_explain(fault, err, tail->message);
    if (is_new)
        log_warn("cluster", "%s=\"not followed\" node=%s reason=%s message=\"%s\"",
                 tail->kind->what, c->self.node, cluster_fault_names[fault], tail->message);
}

static void set_good(struct cluster_tail *tail, uint64_t asked_ns)
{
    struct cluster *c = tail->cluster;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    if (!tail->is_good)
        log_info("cluster", "%s=followed node=%s revision=%llu", tail->kind->what, c->self.node,
                 (unsigned long long)tail->revision);
    tail->is_good = true;
    tail->fault = CLUSTER_OK;
    tail->confirmed_ns = asked_ns;
}

void tail_refuse(struct cluster_tail *tail, const char *key, unsigned why, unsigned n)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tail->cluster->lock);

    refused_note(&tail->refused, tail->kind->bucket, key, why, n);
}

void tail_note_unread(struct tail_session *s, uint64_t revision)
{
    if (s->tail->unread == 0 || revision < s->tail->unread)
        s->tail->unread = revision;
}

struct change_place tail_place_to_note(const struct tail_session *s,
                                       const struct change_place *place)
{
    struct change_place noted = *place;

    if (s->tail->unread > 0 && noted.revision >= s->tail->unread)
        noted.revision = s->tail->unread - 1;
    return noted;
}

enum cluster_fault tail_identify_created(struct tail_session *s, char ret[CHANGE_MARK_SIZE],
                                         struct err *err)
{
    struct cluster_bucket bucket = {0};
    enum cluster_fault fault =
        s->cluster->driver->bucket_look(s->link, s->tail->kind->bucket, &bucket, err);

    (void)snprintf(ret, CHANGE_MARK_SIZE, "%032llx", (unsigned long long)bucket.created_ns);
    return fault;
}

enum cluster_fault tail_note_place(struct tail_session *s, struct err *err)
{
    if (s->place.revision == s->noted_revision)
        return CLUSTER_OK;
    s->noted_revision = s->place.revision;
    return s->tail->kind->apply(s, &s->place, err);
}

bool tail_wait(struct cluster_tail *tail, uint64_t revision)
{
    struct cluster *c = tail->cluster;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    uint64_t deadline_ns = clock_monotonic_ns() + FOLLOW_MS * NS_PER_MS;

    while (tail->revision < revision && !c->is_stopping &&
           cond_wait_until(&c->wake, &c->lock, deadline_ns))
        ;
    return tail->revision >= revision;
}

/* All that came agrees now: it becomes rows. */
static enum cluster_fault commit(struct tail_session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    struct change_place place = s->place;
    enum cluster_fault fault = CLUSTER_OK;

    if (s->revision > place.revision)
        place.revision = s->revision;
    place.noted_ns = clock_realtime_ns();
    staged_sort(&s->staged);
    /* A place by itself is noted now and then. */
    if (s->staged.n > 0 || s->is_whole)
        fault = s->tail->kind->apply(s, &place, err);
    staged_finish(&s->staged);
    if (fault != CLUSTER_OK)
        return fault;
    s->place = place;
    s->is_whole = false;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    /* That is all there is, it may be; where others never stop writing there is time. */
    s->look_ns = s->tail->is_good ? s->looked_ns + SOON_MS * NS_PER_MS : 0;
    s->tail->revision = place.revision;
    s->tail->is_replica = true;
    (void)pthread_cond_broadcast(&c->wake);
    return CLUSTER_OK;
}

/* Whether enough came to become rows before all is there. */
static bool is_batch(const struct tail_session *s)
{
    const size_t batch = s->tail->kind->batch;

    return batch > 0 && (s->staged.n >= batch || s->staged.bytes >= STAGED_BATCH_BYTES);
}

static enum cluster_fault take(struct tail_session *s, const struct cluster_entry *entry,
                               struct err *err)
{
    enum cluster_fault fault = s->tail->kind->check(s, entry, err);

    if (fault != CLUSTER_OK)
        return fault;
    s->revision = entry->revision;
    s->came_ns = clock_monotonic_ns();
    return entry->pending == 0 || is_batch(s) ? commit(s, err) : CLUSTER_OK;
}

/* What a session has at its beginning, and what it has once everything is here. */
static void plan_again(struct tail_session *s)
{
    const uint64_t most = s->tail->kind->again;

    s->again_end = s->place.revision;
    if (s->again_end > most && s->again_at < s->again_end - most)
        s->again_at = s->again_end - most;
}

/* There is nothing that is not here. */
static enum cluster_fault note(struct tail_session *s, uint64_t asked_ns, struct err *err)
{
    const struct tail_kind *kind = s->tail->kind;

    set_good(s->tail, asked_ns);
    if (!s->has_all)
        plan_again(s);
    s->has_all = true;
    if (kind->tick)
        kind->tick(s);
    if (asked_ns < s->note_ns)
        return CLUSTER_OK;
    s->note_ns = asked_ns + NOTE_MS * NS_PER_MS;
    s->place.noted_ns = clock_realtime_ns() - (clock_monotonic_ns() - asked_ns);
    return kind->note(s, err);
}

/*
 * Whether the bucket is still what it was when the session began. A watch goes on in another
 * one, and behind what servers lost or wrote past.
 */
static enum cluster_fault check_same(struct tail_session *s,
                                     const struct cluster_bucket *bucket, struct err *err)
{
    const char *name = s->tail->kind->bucket;

    if (bucket->created_ns != s->created_ns)
        (void)err_set(err, EIO, "the bucket is another one than before");
    else if (s->place.revision > bucket->last_revision && s->tail->kind->went_back)
        (void)err_set(err, EIO, "the bucket %s has lost what was in it", name);
    else if (s->tail->kind->again > 0 &&
             (s->is_doubtful || strcmp(bucket->leader, s->leader) != 0))
        (void)err_set(err, EIO, "the bucket %s has another leader than before", name);
    else
        return CLUSTER_OK;
    return CLUSTER_UNREACHABLE;
}

/* Since when nothing has come: who has much to catch up on is not cut off while it comes. */
static uint64_t since_ns(const struct tail_session *s)
{
    return s->came_ns > s->began_ns ? s->came_ns : s->began_ns;
}

/*
 * A watch may be at a server that has stopped getting what the others have, and of what was
 * removed nothing comes.
 */
static bool is_gap(const struct tail_session *s, const struct cluster_bucket *bucket,
                   uint64_t now_ns)
{
    return !s->is_whole && s->staged.n == 0 && now_ns > since_ns(s) + GAP_MS * NS_PER_MS &&
           bucket->last_revision > s->place.revision &&
           bucket->last_revision - s->place.revision <= GAP_MAX;
}

/* Stages what the server that leads has at a revision, and counts it, where there is something.
 */
static enum cluster_fault take_at(struct tail_session *s, uint64_t revision, size_t *found,
                                  struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    struct cluster_entry entry = {0};
    enum cluster_fault fault =
        driver->get_at(s->link, s->tail->kind->bucket, revision, &entry, err);

    if (fault == CLUSTER_NO_ENTRY) {
        *err = (struct err){0};
        return CLUSTER_OK;
    }
    if (fault != CLUSTER_OK)
        return fault;
    (*found)++;
    s->is_leaders = true;
    fault = s->tail->kind->check(s, &entry, err);
    s->is_leaders = false;
    driver->release(&entry);
    return fault;
}

/* Takes what the server has that leads. */
static enum cluster_fault fill_gap(struct tail_session *s, uint64_t last, struct err *err)
{
    enum cluster_fault fault = CLUSTER_OK;
    size_t found = 0;

    for (uint64_t at = s->place.revision + 1; fault == CLUSTER_OK && at <= last; at++) {
        s->revision = at - 1;
        fault = take_at(s, at, &found, err);
    }
    s->revision = last;
    if (fault == CLUSTER_OK)
        fault = commit(s, err);
    if (fault != CLUSTER_OK || found == 0)
        return fault;
    (void)err_set(err, EIO, "what is in the bucket %s came by no watch", s->tail->kind->bucket);
    return CLUSTER_UNREACHABLE;
}

/*
 * Some of what was planned, by the server that leads: a watch may be at one that lacks some of
 * it.
 */
static enum cluster_fault read_again(struct tail_session *s, struct err *err)
{
    enum cluster_fault fault = CLUSTER_OK;
    size_t found = 0;

    for (unsigned n = 0; fault == CLUSTER_OK && n < AGAIN_MAX && s->again_at < s->again_end;
         n++)
        fault = take_at(s, ++s->again_at, &found, err);
    return fault == CLUSTER_OK && found > 0 ? commit(s, err) : fault;
}

/*
 * Whether everything is here, or was here that there was at an earlier look, where others never
 * stop writing; *as_of is when that was.
 */
static bool reaches(struct tail_session *s, const struct cluster_bucket *bucket,
                    uint64_t *as_of_ns)
{
    const uint64_t at = s->place.revision, seen_ns = s->seen_ns;

    if (s->is_whole)
        return false;
    if (at >= bucket->last_revision) {
        s->seen_ns = 0;
        return true;
    }
    if (seen_ns > 0 && at < s->seen_revision)
        return false;
    s->seen_ns = *as_of_ns;
    s->seen_revision = bucket->last_revision;
    *as_of_ns = seen_ns;
    return seen_ns > 0;
}

static void note_size(struct cluster_tail *tail, const struct cluster_bucket *bucket)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tail->cluster->lock);

    tail->bytes = bucket->bytes;
    tail->max_bytes = bucket->max_bytes;
}

/* Asks whether there is more than what is made here. */
static enum cluster_fault look(struct tail_session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    struct cluster_bucket bucket = {0};
    uint64_t asked_ns = clock_monotonic_ns();
    enum cluster_fault fault =
        c->driver->bucket_look(s->link, s->tail->kind->bucket, &bucket, err);
    uint64_t good_ns;

    s->looked_ns = clock_monotonic_ns();
    s->look_ns = s->looked_ns + LOOK_MS * NS_PER_MS;
    if (fault != CLUSTER_OK && !cluster_fault_passes(fault))
        return fault;
    if (fault == CLUSTER_OK) {
        note_size(s->tail, &bucket);
        fault = check_same(s, &bucket, err);
        if (fault != CLUSTER_OK)
            return fault;
    } else {
        s->is_doubtful = true;
    }
    if (fault == CLUSTER_OK && reaches(s, &bucket, &asked_ns))
        return note(s, asked_ns, err);
    if (fault == CLUSTER_OK && is_gap(s, &bucket, asked_ns))
        return fill_gap(s, bucket.last_revision, err);
    good_ns = s->tail->confirmed_ns > since_ns(s) ? s->tail->confirmed_ns : since_ns(s);
    if (asked_ns < good_ns || asked_ns - good_ns < CLUSTER_LEASE_MS * NS_PER_MS) {
        *err = (struct err){0};
        return CLUSTER_OK;
    }
    /* Also a watch can die without a word. */
    if (fault == CLUSTER_OK)
        (void)err_set(err, EIO, "what is in the bucket %s does not arrive",
                      s->tail->kind->bucket);
    return CLUSTER_NO_QUORUM;
}

static enum cluster_fault stay(struct tail_session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    enum cluster_fault fault = CLUSTER_OK;
    uint64_t pending = 0;

    while (fault == CLUSTER_OK && !cluster_is_stopping(c)) {
        struct cluster_entry entry = {0};
        bool some = false;

        fault = clock_monotonic_ns() < s->look_ns ? CLUSTER_OK : look(s, err);
        /* What comes goes first: where others never stop writing it would fall behind. */
        if (fault == CLUSTER_OK && pending == 0)
            fault = read_again(s, err);
        if (fault != CLUSTER_OK)
            break;
        fault = c->driver->next(s->link, s->again_at < s->again_end ? 1 : CLUSTER_SLICE_MS,
                                &some, &entry, err);
        pending = some ? entry.pending : 0;
        if (!some)
            continue;
        fault = take(s, &entry, err);
        c->driver->release(&entry);
    }
    return fault;
}

/* What is known of another bucket says nothing of this one. */
static void begin_anew(struct cluster_tail *tail)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&tail->cluster->lock);

    tail->revision = 0;
}

/* What this process stepped over it need not read again. */
static void step_over(struct tail_session *s, const char *bucket)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->cluster->lock);

    if (s->tail->unread > 0 && s->tail->revision > s->place.revision &&
        strcmp(s->place.bucket, bucket) == 0)
        s->place.revision = s->tail->revision;
}

/* From what was made here already on, where that is of this bucket. */
static enum cluster_fault begin(struct tail_session *s, struct err *err)
{
    struct cluster *c = s->cluster;
    const struct tail_kind *kind = s->tail->kind;
    struct cluster_bucket bucket = {0};
    char name[CHANGE_MARK_SIZE];
    enum cluster_fault fault = c->driver->bucket_look(s->link, kind->bucket, &bucket, err);

    if (fault == CLUSTER_OK)
        fault = kind->identify(s, name, err);
    if (fault != CLUSTER_OK)
        return fault;
    if (kind->look(c, &s->place, err) < 0)
        return CLUSTER_OTHER;
    step_over(s, name);
    s->created_ns = bucket.created_ns;
    s->is_whole =
        strcmp(s->place.bucket, name) != 0 || s->place.revision > bucket.last_revision;
    if (s->is_whole && s->place.bucket[0] && kind->went_back) {
        begin_anew(s->tail);
        kind->went_back(s);
    }
    if (s->is_whole)
        s->tail->unread = s->place.revision = 0;
    memcpy(s->place.bucket, name, sizeof(name));
    memcpy(s->leader, bucket.leader, sizeof(s->leader));
    s->revision = s->place.revision;
    plan_again(s);
    if (kind->began)
        kind->began(s, s->is_whole ? 0 : s->place.noted_ns);
    /* One that nothing was ever in has nothing to wait for. */
    if (bucket.last_revision == 0)
        s->is_whole = false;
    return c->driver->watch(s->link, kind->bucket, s->revision, err);
}

static enum cluster_fault follow(struct cluster_tail *tail, size_t server, struct err *err)
{
    struct cluster *c = tail->cluster;
    struct tail_session s = {.cluster = c, .tail = tail, .began_ns = clock_monotonic_ns()};
    enum cluster_fault fault =
        c->driver->open(&c->access, c->servers[server], true, &s.link, err);

    if (fault != CLUSTER_OK)
        return fault;
    (void)pthread_mutex_lock(&c->lock);
    tail->server = server;
    tail->began_ns = s.began_ns;
    (void)pthread_mutex_unlock(&c->lock);
    fault = cluster_is_stopping(c) ? CLUSTER_OK : begin(&s, err);
    if (fault == CLUSTER_OK)
        fault = stay(&s, err);
    staged_finish(&s.staged);
    c->driver->close(s.link);
    return fault;
}

static void *run(void *arg)
{
    struct cluster_tail *tail = arg;
    struct cluster *c = tail->cluster;
    struct cluster_pause pause = {0};
    size_t at = 0, gone = 0;

    while (!cluster_is_stopping(c)) {
        uint64_t confirmed_ns = tail->confirmed_ns;
        struct err err = {0};
        enum cluster_fault fault = follow(tail, at, &err);

        at = (at + 1) % c->n_servers;
        if (tail->confirmed_ns != confirmed_ns) {
            pause.wait_ms = 0;
            gone = 0;
        }
        if (cluster_is_stopping(c))
            break;
        /* What a server says counts for more than that another is not there. */
        if (fault == CLUSTER_UNREACHABLE && ++gone < c->n_servers)
            continue;
        gone = 0;
        set_fault(tail, fault, &err);
        cluster_wait(c, &pause);
    }
    return NULL;
}

/* What was known when the daemon ended is as old as that is. */
static int begin_from(struct cluster_tail *tail, struct err *err)
{
    uint64_t now_ns = clock_realtime_ns(), up_ns = clock_monotonic_ns(), age_ns;
    struct change_place place = {0};
    int r = tail->kind->look(tail->cluster, &place, err);

    if (r < 0)
        return r;
    age_ns = now_ns > place.noted_ns ? now_ns - place.noted_ns : 0;
    tail->is_replica = place.bucket[0] != '\0';
    tail->revision = place.revision;
    tail->confirmed_ns = tail->is_replica && age_ns < up_ns ? up_ns - age_ns : 0;
    return 0;
}

int tail_start(struct cluster *c, struct cluster_tail *tail, const struct tail_kind *kind,
               struct err *err)
{
    int r;

    tail->kind = kind;
    tail->cluster = c;
    r = begin_from(tail, err);
    if (r < 0)
        return r;
    r = pthread_create(&tail->thread, NULL, run, tail);
    if (r != 0)
        return err_set_errno(err, r, "cannot start a thread");
    tail->has_thread = true;
    return 0;
}

void tail_join(struct cluster_tail *tail)
{
    if (tail->has_thread)
        (void)pthread_join(tail->thread, NULL);
    tail->has_thread = false;
}
