/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tenants have at each node goes to all others, soon after it changed and each second, so
 * that limits count over all nodes. Nobody keeps it and nobody answers: what is lost the next
 * message says again.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#define SUBJECT     "skillvm.load"
#define SUBJECT_ALL SUBJECT ".*"

/* Of the thread that tells. */
struct teller {
    struct cluster *cluster;
    struct cluster_link *link;
    uint64_t told_ns, looked_ns; /* monotonic */
    uint64_t apart_ns, each_ns;
    uint64_t retry_ns; /* not before */
    struct load load;
};

void cluster_note_load(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    if (!c->load.is_due)
        (void)pthread_cond_signal(&c->load.due);
    c->load.is_due = true;
}

struct load_total cluster_load_of(struct cluster *c, const char *tenant)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    return loads_of(&c->load.loads, tenant);
}

uint64_t cluster_load_waits_since(struct cluster *c, const char *tenant)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    return loads_waits_since(&c->load.loads, tenant);
}

static uint64_t longer_ns(unsigned ms, unsigned other_ms)
{
    return (ms > other_ms ? ms : other_ms) * NS_PER_MS;
}

/* The more nodes there are, the less often each tells. */
static void look_at_times(struct teller *t)
{
    struct cluster *c = t->cluster;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);
    unsigned n = (unsigned)c->nodes.n;

    t->apart_ns = longer_ns(CLUSTER_LOAD_APART_MS, n * CLUSTER_LOAD_APART_NODE_MS);
    t->each_ns = longer_ns(CLUSTER_LOAD_EACH_MS, n * CLUSTER_LOAD_EACH_NODE_MS);
}

/* Until there is something to tell, or it is time to. */
static void wait_due(struct teller *t)
{
    struct cluster_load *load = &t->cluster->load;
    uint64_t deadline_ns = t->told_ns + t->each_ns;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&load->lock);

    while (!load->is_due && !cluster_is_stopping(t->cluster) &&
           cond_wait_until(&load->due, held, deadline_ns))
        ;
}

/* Changes that come together are told together. */
static void wait_others(const struct teller *t)
{
    uint64_t next_ns = t->told_ns + t->apart_ns;
    uint64_t now_ns = clock_monotonic_ns();

    if (now_ns < next_ns)
        cluster_pause_ms(t->cluster, (unsigned)((next_ns - now_ns) / NS_PER_MS + 1));
}

static enum cluster_fault send(struct teller *t, struct err *err)
{
    struct cluster *c = t->cluster;
    _cleanup_buf_ struct buf text = {0};
    char subject[CLUSTER_SUBJECT_SIZE];

    if (!t->link && cluster_connect(c, 0, false, &t->link, err) < 0)
        return CLUSTER_UNREACHABLE;
    t->load.n_tenants = 0;
    c->load.sharing.fill(c->load.sharing.ctx, &t->load);
    memcpy(t->load.node, c->self.node, sizeof(t->load.node));
    memcpy(t->load.instance, c->self.instance, sizeof(t->load.instance));
    if (load_entry_write(&t->load, &text) < 0) {
        (void)err_set(err, E2BIG, "what tenants have here does not fit");
        return CLUSTER_OTHER;
    }
    cluster_name_subject("load.", c->self.node, subject);
    return c->driver->tell(t->link, subject, buf_cstr(&text), text.len, err);
}

static void count_told(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    c->load.told++;
}

static void take_due(struct cluster *c)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    c->load.is_due = false;
}

static void tell(struct teller *t)
{
    struct cluster *c = t->cluster;
    struct err err = {0};

    t->told_ns = clock_monotonic_ns();
    take_due(c);
    if (t->told_ns < t->retry_ns || !cluster_is_joined(c))
        return;
    if (send(t, &err) == CLUSTER_OK) {
        count_told(c);
        return;
    }
    log_warn("cluster", "load=\"not told\" node=%s reason=\"%s\"", c->self.node, err.message);
    c->driver->close(t->link);
    t->link = NULL;
    t->retry_ns = t->told_ns + CLUSTER_BACKOFF_MAX_MS * NS_PER_MS;
}

static bool is_process(void *ctx, const char *node, const char *instance)
{
    const struct cluster *c = ctx;

    return nodes_have(&c->nodes, node, instance);
}

/* Those that are silent or gone have nothing here any more. */
static void look_after(struct teller *t)
{
    struct cluster *c = t->cluster;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t silent_ns = CLUSTER_LOAD_SILENT * t->each_ns;

    if (now_ns - t->looked_ns < t->each_ns)
        return;
    t->looked_ns = now_ns;
    (void)pthread_mutex_lock(&c->load.lock);
    (void)pthread_mutex_lock(&c->lock);
    loads_forget(&c->load.loads, now_ns > silent_ns ? now_ns - silent_ns : 0, is_process, c);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_mutex_unlock(&c->load.lock);
    c->load.sharing.changed(c->load.sharing.ctx);
}

static void *tell_load(void *cluster)
{
    struct teller t = {.cluster = cluster};

    while (!cluster_is_stopping(t.cluster)) {
        look_at_times(&t);
        wait_due(&t);
        wait_others(&t);
        tell(&t);
        look_after(&t);
    }
    t.cluster->driver->close(t.link);
    return NULL;
}

static bool is_alive(struct cluster *c, const struct load *load)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    return nodes_have(&c->nodes, load->node, load->instance);
}

/* What a process says that has no entry among the nodes counts for nothing. */
static bool keep(struct cluster *c, const struct cluster_entry *entry, struct load *load,
                 struct load_charges *ret)
{
    enum node_refusal why;
    bool is_good = load_entry_parse(entry->key, entry->data, entry->len, load, &why) == 0;
    bool is_kept = is_good && is_alive(c, load);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    if (!is_good)
        refused_note(&c->load.refused, SUBJECT, entry->key, why, 1);
    if (!is_kept)
        return false;
    if (loads_take(&c->load.loads, load, clock_monotonic_ns(), ret) < 0) {
        refused_note(&c->load.refused, SUBJECT, entry->key, NODE_TOO_MANY, 1);
        return false;
    }
    c->load.taken++;
    return true;
}

/* Of the thread that hears. */
struct hearer {
    struct cluster *cluster;
    struct cluster_link *link;
    bool is_new; /* something that was not passed on yet */
    struct load load;
    struct load_charges charges;
};

/* Takes one that comes within a time; what came together is passed on together. */
static enum cluster_fault hear_one(struct hearer *h, struct err *err)
{
    struct cluster *c = h->cluster;
    const struct cluster_sharing *sharing = &c->load.sharing;
    struct cluster_entry entry = {0};
    bool some = false;
    enum cluster_fault fault =
        c->driver->next_call(h->link, h->is_new ? 1 : CLUSTER_SLICE_MS, &some, &entry, err);

    if (!some && h->is_new) {
        h->is_new = false;
        sharing->changed(sharing->ctx);
    }
    if (!some)
        return fault;
    if (strcmp(entry.key, c->self.node) != 0 && keep(c, &entry, &h->load, &h->charges)) {
        h->is_new = true;
        for (size_t i = 0; i < h->charges.n; i++)
            sharing->charge(sharing->ctx, h->charges.list[i].tenant, h->charges.list[i].n);
    }
    c->driver->release(&entry);
    return CLUSTER_OK;
}

static enum cluster_fault hear_while_joined(void *hearer, struct cluster_link *link,
                                            struct err *err)
{
    struct hearer *h = hearer;
    struct cluster *c = h->cluster;
    enum cluster_fault fault;

    h->link = link;
    fault = c->driver->serve(link, SUBJECT_ALL, NULL, CLUSTER_PENDING, err);
    while (fault == CLUSTER_OK && cluster_is_joined(c) && !cluster_is_stopping(c))
        fault = hear_one(h, err);
    return fault;
}

static void *hear_loads(void *cluster)
{
    struct hearer h = {.cluster = cluster};

    cluster_serve_joined(cluster, "loads=\"not heard\"", hear_while_joined, &h);
    return NULL;
}

int cluster_share(struct cluster *c, const struct cluster_sharing *sharing, struct err *err)
{
    static cluster_thread_fn *const work[] = {tell_load, hear_loads};

    c->load.sharing = *sharing;
    return cluster_threads_start(c, &c->load.threads, work, sizeof(work) / sizeof(work[0]),
                                 err);
}

void cluster_share_end(struct cluster *c)
{
    if (c)
        cluster_threads_join(&c->load.threads);
}

void cluster_load_stop(struct cluster_load *load)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&load->lock);

    (void)pthread_cond_broadcast(&load->due);
}

void cluster_load_init(struct cluster_load *load)
{
    (void)pthread_mutex_init(&load->lock, NULL);
    cond_init(&load->due);
}

void cluster_load_finish(struct cluster_load *load)
{
    loads_finish(&load->loads);
    (void)pthread_cond_destroy(&load->due);
    (void)pthread_mutex_destroy(&load->lock);
}

void cluster_load_measure(struct cluster *c, struct cluster_load_measure *ret)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->load.lock);

    *ret = (struct cluster_load_measure){.nodes = (unsigned)c->load.loads.n,
                                         .running = c->load.loads.running,
                                         .waiting = c->load.loads.waiting,
                                         .told = c->load.told,
                                         .taken = c->load.taken,
                                         .refused = c->load.refused};
}
