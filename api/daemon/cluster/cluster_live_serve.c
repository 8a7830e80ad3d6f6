/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers what other nodes ask of executions that run here. Who waits for news keeps nothing
 * but a place and a second's time: where nobody asks again nothing is left.
 */
#include "api/daemon/cluster/cluster_internal.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 20u /* between two looks for news */
/* Questions that are not looked at yet: those of all who hear news at one moment, and ask on.
 */
#define PENDING (4 * CLUSTER_LIVE_WAITING)

/* One that is not answered yet. */
struct waiting {
    struct live_ask ask;
    struct cluster_entry call;
    uint64_t until_ns; /* monotonic */
};

struct server {
    struct cluster *cluster;
    struct cluster_link *link;
    struct waiting waiting[CLUSTER_LIVE_WAITING];
    size_t n;
};

static unsigned count_of(const struct server *s, const char *tenant)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += strcmp(s->waiting[i].ask.tenant, tenant) == 0;
    return n;
}

/* *ret_some: it was answered. */
static enum cluster_fault try_answer(struct server *s, const struct live_ask *ask,
                                     const struct cluster_entry *call, bool is_last,
                                     bool *ret_some, struct err *err)
{
    const struct cluster_service *service = &s->cluster->service;
    _cleanup_buf_ struct buf answer = buf_init(LIVE_ANSWER_MAX);

    *ret_some = service->look(service->ctx, ask, is_last, &answer);
    /* Without memory for an answer none is given. */
    return *ret_some && answer.len > 0 && answer.error == 0
               ? s->cluster->driver->answer(s->link, call, buf_cstr(&answer), answer.len, err)
               : CLUSTER_OK;
}

/* Takes a question: it is answered, or waits. What is none gets no answer. */
static enum cluster_fault take(struct server *s, struct cluster_entry *call, struct err *err)
{
    const struct cluster_driver *driver = s->cluster->driver;
    enum cluster_fault fault = CLUSTER_OK;
    struct waiting w = {.call = *call};
    bool may_wait, some = true;

    if (live_ask_parse(call->data, call->len, &w.ask) == 0) {
        may_wait = w.ask.wait_ms > 0 && s->n < CLUSTER_LIVE_WAITING &&
                   count_of(s, w.ask.tenant) < CLUSTER_LIVE_TENANT;
        fault = try_answer(s, &w.ask, call, !may_wait, &some, err);
    }
    if (fault != CLUSTER_OK || some) {
        driver->release(call);
        return fault;
    }
    w.until_ns = clock_monotonic_ns() + w.ask.wait_ms * NS_PER_MS;
    s->waiting[s->n++] = w;
    return CLUSTER_OK;
}

/* Looks for news for all that wait. */
static enum cluster_fault look_again(struct server *s, struct err *err)
{
    uint64_t now_ns = clock_monotonic_ns();
    enum cluster_fault fault = CLUSTER_OK;

    for (size_t i = s->n; i-- > 0 && fault == CLUSTER_OK;) {
        struct waiting *w = &s->waiting[i];
        bool some;

        fault = try_answer(s, &w->ask, &w->call, now_ns >= w->until_ns, &some, err);
        if (!some)
            continue;
        s->cluster->driver->release(&w->call);
        *w = s->waiting[--s->n];
    }
    return fault;
}

static enum cluster_fault serve_some(struct server *s, uint64_t *looked_ns, struct err *err)
{
    struct cluster_entry call = {0};
    bool some = false;
    enum cluster_fault fault = s->cluster->driver->next_call(
        s->link, s->n > 0 ? TICK_MS : CLUSTER_SLICE_MS, &some, &call, err);

    if (some)
        fault = take(s, &call, err);
    if (fault != CLUSTER_OK || clock_monotonic_ns() - *looked_ns < TICK_MS * NS_PER_MS)
        return fault;
    *looked_ns = clock_monotonic_ns();
    return look_again(s, err);
}

/* What this node asks goes over the same link: from now on, or, with NULL, no more. */
static void set_link(struct cluster *c, struct cluster_link *link)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&c->lock);

    c->live.link = link;
    while (!link && c->live.asked > 0)
        (void)pthread_cond_wait(&c->live.answered, &c->lock);
}

static enum cluster_fault serve_while_joined(void *server, struct cluster_link *link,
                                             struct err *err)
{
    struct server *s = server;
    struct cluster *c = s->cluster;
    char subject[CLUSTER_SUBJECT_SIZE];
    enum cluster_fault fault;
    uint64_t looked_ns = 0;

    s->link = link;
    cluster_name_subject(CLUSTER_LIVE, c->self.node, subject);
    fault = c->driver->serve(s->link, subject, "node", PENDING, err);
    if (fault == CLUSTER_OK)
        set_link(c, s->link);
    while (fault == CLUSTER_OK && cluster_is_joined(c) && !cluster_is_stopping(c))
        fault = serve_some(s, &looked_ns, err);
    set_link(c, NULL);
    while (s->n > 0)
        c->driver->release(&s->waiting[--s->n].call);
    return fault;
}

void *cluster_serve_live(void *cluster)
{
    struct server *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->cluster = cluster;
    cluster_serve_joined(cluster, "live=\"not answered\"", serve_while_joined, s);
    free(s);
    return NULL;
}
