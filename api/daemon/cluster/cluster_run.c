/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a node. A *session* is everything over one connection: look at the bucket,
 * claim the name, watch, renew. It ends with the first thing that it cannot put right, and the
 * next one begins from nothing, at the next server.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cluster_is_stopping(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    return c->is_stopping;
}

static void set_state(struct cluster *c, enum cluster_state state, enum cluster_fault fault,
                      const char *message)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    bool is_new = c->state != state || c->fault != fault;

    (void)snprintf(c->message, sizeof(c->message), "%s", message);
    if (!is_new)
        return;
    c->state = state;
    c->fault = fault;
    c->since_ns = clock_realtime_ns();
    if (state == CLUSTER_JOINED)
        log_info("cluster", "state=joined node=%s server=%s", c->self.node, c->server);
    else
        log_warn("cluster", "state=cut_off node=%s reason=%s message=\"%s\"", c->self.node,
                 cluster_fault_names[fault], message);
}

static void set_server(struct cluster *c, const char *server)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    fleet_server_show(server, c->server);
}

static void set_confirmed(struct cluster *c, uint64_t at_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->confirmed_ns = at_ns;
}

bool cluster_fault_passes(enum cluster_fault fault)
{
    return fault == CLUSTER_UNREACHABLE || fault == CLUSTER_NO_QUORUM;
}

/* Says why the node is cut off, unless it will pass and the lease has not run out. */
static void report(struct cluster *c, enum cluster_fault fault, const struct err *err)
{
    char message[ERR_MESSAGE_MAX];

    if (cluster_fault_passes(fault) && cluster_is_confirmed(c))
        return;
    if (fault == CLUSTER_NO_BUCKET && c->was_joined)
        fault = CLUSTER_BUCKET_GONE;
    cluster_explain(fault, err, message);
    set_state(c, CLUSTER_CUT_OFF, fault, message);
    if (!cluster_fault_passes(fault))
        set_confirmed(c, 0);
}

static enum cluster_fault write_self(struct cluster *c, struct err *err)
{
    struct buf text;
    enum cluster_fault fault;
    int r;

    (void)pthread_mutex_lock(&c->lock);
    r = node_entry_write(&c->self, &text);
    (void)pthread_mutex_unlock(&c->lock);
    if (r < 0) {
        (void)err_set(err, E2BIG, "what this node says of itself does not fit");
        return CLUSTER_OTHER;
    }
    c->asked_ns = clock_realtime_ns();
    c->said_ns = clock_monotonic_ns();
    fault = c->driver->put(c->link, CLUSTER_BUCKET, c->self.node, buf_cstr(&text), text.len,
                           c->revision, &c->revision, err);
    c->written_ns = clock_realtime_ns();
    buf_finish(&text);
    return fault;
}

/*
 * Another revision than ours is the last one: our own write whose answer was lost, an entry
 * that its time took away, or another node of this name.
 */
static enum cluster_fault look_again(struct cluster *c, struct err *err)
{
    struct cluster_entry entry = {0};
    struct node_entry *other;
    enum node_refusal why;
    enum cluster_fault fault =
        c->driver->get(c->link, CLUSTER_BUCKET, c->self.node, &entry, err);

    if (fault == CLUSTER_NO_ENTRY) {
        c->revision = 0;
        *err = (struct err){0};
        return CLUSTER_OK;
    }
    if (fault != CLUSTER_OK)
        return fault;
    other = calloc(1, sizeof(*other));
    if (!other) {
        c->driver->release(&entry);
        (void)err_no_memory(err);
        return CLUSTER_OTHER;
    }
    c->revision = entry.revision;
    /* What is no entry is nobody's: it may be written over. */
    if (!entry.is_removed &&
        node_entry_parse(entry.key, entry.data, entry.len, other, &why) == 0 &&
        strcmp(other->instance, c->self.instance) != 0) {
        c->revision = 0;
        fault = CLUSTER_NAME_TAKEN;
        (void)err_set(err, EEXIST,
                      "another node is called %s (instance %s): give this one another name in "
                      "cluster.node; if it was this one before a crash, its entry goes within "
                      "%u s",
                      c->self.node, other->instance, CLUSTER_TTL_MS / 1000);
    }
    free(other);
    c->driver->release(&entry);
    return fault;
}

/* Writes our entry where the name is free or ours. */
static enum cluster_fault claim(struct cluster *c, struct err *err)
{
    struct err why = {0};
    enum cluster_fault fault = write_self(c, &why);

    for (unsigned tries = 0; fault == CLUSTER_CONFLICT && tries < 3; tries++) {
        why = (struct err){0};
        fault = look_again(c, &why);
        if (fault == CLUSTER_OK)
            fault = write_self(c, &why);
    }
    if (fault != CLUSTER_OK)
        (void)err_set(err, why.code ? why.code : EIO, "%s", why.message);
    return fault;
}

enum cluster_fault cluster_tell_apart(struct cluster *c, struct cluster_link *link,
                                      const char *name, enum cluster_fault fault,
                                      struct err *err)
{
    const bool of_objects = cluster_is_of_objects(name);
    struct cluster_bucket bucket = {0};
    struct err why = {0};

    if (fault != CLUSTER_NO_BUCKET)
        return fault;
    fault = (of_objects ? c->driver->objects_look : c->driver->bucket_look)(link, name, &bucket,
                                                                            &why);
    if (fault == CLUSTER_OK) {
        *err = (struct err){0};
        (void)err_set(err, EAGAIN, "the bucket %s has no leader", name);
        return CLUSTER_NO_QUORUM;
    }
    *err = why;
    return of_objects && fault == CLUSTER_NO_BUCKET ? CLUSTER_NO_OBJECTS : fault;
}

/* How far this machine's clock is ahead of the servers', at least: what was written was stored
   between two looks at it. */
static int64_t clock_off_ms(const struct cluster *c, uint64_t stored_ns)
{
    if (stored_ns < c->asked_ns)
        return (int64_t)((c->asked_ns - stored_ns) / NS_PER_MS);
    return stored_ns > c->written_ns ? -(int64_t)((stored_ns - c->written_ns) / NS_PER_MS) : 0;
}

/* Our entry comes back; since when it does without a gap. */
static void note_joined(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    if (!cluster_is_confirmed(c) || c->state != CLUSTER_JOINED)
        c->joined_ns = clock_monotonic_ns();
}

/* What a node that is joined says of itself. */
static const char *what_to_say(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    return c->is_draining ? "draining" : "joined";
}

/* The others hear at once whether it is being drained and of images, and within a second of
 * snapshots. */
static void say_anew(struct cluster *c)
{
    const char *said = what_to_say(c);
    uint64_t soon_ns = c->said_ns + NS_PER_SECOND;

    if (cluster_take_snapshots(c) && c->renew_ns > soon_ns)
        c->renew_ns = soon_ns;
    if (cluster_take_images(c))
        c->renew_ns = 0;
    if (strcmp(c->self.state, "clock") == 0 || strcmp(c->self.state, said) == 0)
        return;
    (void)snprintf(c->self.state, sizeof(c->self.state), "%s", said);
    c->renew_ns = 0;
}

/* Our own entry came back: now the node is joined, if its clock is right. */
static void confirm(struct cluster *c, const struct cluster_entry *entry)
{
    int64_t off_ms = clock_off_ms(c, entry->stored_ns);
    bool is_off = llabs(off_ms) > CLUSTER_CLOCK_MS;
    const char *said = is_off ? "clock" : what_to_say(c);
    char message[128];

    note_joined(c);
    set_confirmed(c, clock_monotonic_ns());
    if (strcmp(c->self.state, said) != 0) {
        (void)snprintf(c->self.state, sizeof(c->self.state), "%s", said);
        c->renew_ns = c->confirmed_ns; /* the others see it too */
    }
    if (is_off) {
        (void)snprintf(message, sizeof(message),
                       "this machine's clock is %lld s %s the servers': set it",
                       (llabs(off_ms) + 500) / 1000, off_ms > 0 ? "ahead of" : "behind");
        set_state(c, CLUSTER_CUT_OFF, CLUSTER_CLOCK, message);
        return;
    }
    c->was_joined = true;
    set_state(c, CLUSTER_JOINED, CLUSTER_OK, "");
}

static void take(struct cluster *c, const struct cluster_entry *entry)
{
    uint64_t now = clock_monotonic_ns(), server_now = clock_realtime_ns(), age_ns;

    if (strcmp(entry->key, c->self.node) == 0 && entry->revision == c->revision &&
        !entry->is_removed)
        confirm(c, entry);
    /* Old ones come too when a watch begins. A clock that is off makes them no younger. */
    age_ns = server_now > entry->stored_ns ? server_now - entry->stored_ns : 0;
    if (age_ns > CLUSTER_TTL_MS * NS_PER_MS)
        age_ns = CLUSTER_TTL_MS * NS_PER_MS;
    if (age_ns > now)
        age_ns = now;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    nodes_take(&c->nodes, entry, now - age_ns);
}

/* Drops the nodes whose entries their time took away, which no watch tells. */
static void forget_gone(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    uint64_t now = clock_monotonic_ns(), kept = 2ull * CLUSTER_TTL_MS * NS_PER_MS;

    if ((c->state == CLUSTER_JOINED || c->fault == CLUSTER_CLOCK) && now > kept)
        nodes_forget_before(&c->nodes, now - kept);
}

/* Renews; a failure that will pass is one only when the lease has run out. */
static enum cluster_fault renew(struct cluster *c, struct err *err)
{
    struct err why = {0};
    enum cluster_fault fault =
        cluster_tell_apart(c, c->link, CLUSTER_BUCKET, claim(c, &why), &why);

    if (fault == CLUSTER_OK || (fault == CLUSTER_NO_QUORUM && cluster_is_confirmed(c)))
        return CLUSTER_OK;
    *err = why;
    return fault;
}

/* Takes entries and renews ours until something is wrong or the node is stopped. */
static enum cluster_fault stay(struct cluster *c, struct err *err)
{
    uint64_t began_ns = clock_monotonic_ns();
    struct cluster_entry entry = {0};
    enum cluster_fault fault = CLUSTER_OK;

    c->renew_ns = began_ns + CLUSTER_RENEW_MS * NS_PER_MS;
    while (fault == CLUSTER_OK && !cluster_is_stopping(c)) {
        bool some = false;

        fault = c->driver->next(c->link, CLUSTER_SLICE_MS, &some, &entry, err);
        if (some) {
            take(c, &entry);
            c->driver->release(&entry);
        }
        forget_gone(c);
        if (cluster_is_confirmed(c))
            say_anew(c);
        if (fault != CLUSTER_OK || clock_monotonic_ns() < c->renew_ns)
            continue;
        c->renew_ns = clock_monotonic_ns() + CLUSTER_RENEW_MS * NS_PER_MS;
        fault = renew(c, err);
        /* Also a watch can die without a word. */
        if (fault == CLUSTER_OK && !cluster_is_confirmed(c) &&
            clock_monotonic_ns() - began_ns > CLUSTER_LEASE_MS * NS_PER_MS) {
            (void)err_set(err, EIO, "what this node writes does not come back to it");
            fault = CLUSTER_NO_QUORUM;
        }
    }
    return fault;
}

static enum cluster_fault session(struct cluster *c, const char *server, struct err *err)
{
    struct cluster_bucket bucket = {.name = CLUSTER_BUCKET};
    enum cluster_fault fault = c->driver->open(&c->access, server, true, &c->link, err);

    if (fault != CLUSTER_OK || cluster_is_stopping(c))
        return fault;
    set_server(c, server);
    fault = c->driver->bucket_look(c->link, CLUSTER_BUCKET, &bucket, err);
    if (fault == CLUSTER_OK) {
        struct err why = {0};

        fault = cluster_tell_apart(c, c->link, CLUSTER_BUCKET, claim(c, &why), &why);
        if (fault != CLUSTER_OK)
            *err = why;
    }
    if (fault == CLUSTER_OK && !cluster_is_stopping(c))
        fault = c->driver->watch(c->link, CLUSTER_BUCKET, 0, err);
    if (fault != CLUSTER_OK || cluster_is_stopping(c))
        return fault;
    (void)pthread_mutex_lock(&c->lock);
    nodes_begin(&c->nodes);
    (void)pthread_mutex_unlock(&c->lock);
    return stay(c, err);
}

/* Others need not wait for our entry's time to be up. */
static void leave(struct cluster *c)
{
    struct err ignored = {0};

    if (c->link && c->revision > 0 && cluster_is_confirmed(c))
        (void)c->driver->put(c->link, CLUSTER_BUCKET, c->self.node, NULL, 0, c->revision, NULL,
                             &ignored);
}

static void end_session(struct cluster *c)
{
    c->driver->close(c->link);
    c->link = NULL;
    (void)pthread_mutex_lock(&c->lock);
    c->server[0] = '\0';
    (void)pthread_mutex_unlock(&c->lock);
}

/* Each server once, from the one at *first on, until one was good for a while. */
static void go_round(struct cluster *c, size_t *first)
{
    enum cluster_fault worst = CLUSTER_OK;
    struct err told = {0};

    for (size_t i = 0; i < c->n_servers && !cluster_is_stopping(c); i++) {
        size_t at = (*first + i) % c->n_servers;
        uint64_t confirmed_ns = c->confirmed_ns;
        struct err err = {0};
        enum cluster_fault fault = session(c, c->servers[at], &err);

        if (cluster_is_stopping(c))
            leave(c);
        end_session(c);
        if (fault == CLUSTER_OK)
            return;
        if (c->confirmed_ns != confirmed_ns) {
            report(c, fault, &err);
            *first = at + 1;
            return;
        }
        /* What a server says counts for more than that another is not there. */
        if (worst == CLUSTER_OK || worst == CLUSTER_UNREACHABLE) {
            worst = fault;
            told = err;
        }
    }
    *first = *first + 1;
    if (worst != CLUSTER_OK)
        report(c, worst, &told);
}

/* Nodes that lost their servers together do not come back together. */
static uint64_t spread(const struct cluster *c, uint64_t wait_ms)
{
    char digits[9];

    (void)snprintf(digits, sizeof(digits), "%.8s", c->self.instance);
    return wait_ms - wait_ms / 4 + strtoul(digits, NULL, 16) % (wait_ms / 2);
}

void cluster_wait(struct cluster *c, struct cluster_pause *pause)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    uint64_t wait_ms = pause->wait_ms ? pause->wait_ms : CLUSTER_BACKOFF_MS;
    uint64_t deadline_ns = clock_monotonic_ns() + spread(c, wait_ms) * NS_PER_MS;

    pause->wait_ms =
        wait_ms * 2 < CLUSTER_BACKOFF_MAX_MS ? wait_ms * 2 : CLUSTER_BACKOFF_MAX_MS;
    while (!c->is_stopping && c->hurries == pause->hurries &&
           cond_wait_until(&c->wake, &c->lock, deadline_ns))
        ;
    pause->hurries = c->hurries;
}

void *cluster_run(void *cluster)
{
    struct cluster *c = cluster;
    struct cluster_pause pause = {0};
    size_t first = 0;

    while (!cluster_is_stopping(c)) {
        uint64_t confirmed_ns = c->confirmed_ns;

        go_round(c, &first);
        /* Where it was joined meanwhile this is a new failure. */
        if (c->confirmed_ns != confirmed_ns)
            pause.wait_ms = 0;
        cluster_wait(c, &pause);
    }
    return NULL;
}
