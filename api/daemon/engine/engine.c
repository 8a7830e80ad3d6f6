/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/engine.h"

#include "api/daemon/engine/engine_internal.h"
#include "api/daemon/engine/handover.h"
#include "api/daemon/engine/ledger.h"
#include "api/daemon/engine/shared_sessions.h"
#include "api/daemon/terms/ids.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_QUEUE_MAX_S 60u

/* The bucket of an id: its digits are random. */
static struct live *bucket(struct engine *engine, const char *id)
{
    char digits[9];

    (void)snprintf(digits, sizeof(digits), "%.8s",
                   strlen(id) > strlen(ID_EXECUTION) ? id + strlen(ID_EXECUTION) : "");
    return &engine->live[strtoul(digits, NULL, 16) % LIVE_BUCKETS];
}

static struct execution *live_find(struct engine *engine, const char *tenant, const char *id)
{
    struct execution *e = LIST_FIRST(bucket(engine, id));

    while (e && (strcmp(e->id, id) != 0 || strcmp(e->tenant, tenant) != 0))
        e = LIST_NEXT(e, live);
    return e;
}

/* Chooses the next to run; NULL when it is time to end. */
static struct execution *take(struct engine *engine)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);
    struct fair_entry *place = NULL;

    while (!engine->stopping && !(place = fair_queue_take(engine->queue, clock_monotonic_ns())))
        (void)pthread_cond_wait(&engine->work, held);
    if (place)
        engine_note_load(engine);
    return place ? engine_of_place(place) : NULL;
}

static void set_limits(struct engine *engine, const char *tenant,
                       const struct tenant_limits *limits)
{
    const struct fair_limits fair = engine_fair_limits(limits);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    fair_queue_set_limits(engine->queue, tenant, &fair);
    (void)pthread_cond_broadcast(&engine->work);
}

/* Whether its tenant may run it now; the reuse is what the tenant wants by now. */
static int check_turn(struct engine *engine, struct execution *e, struct err *err)
{
    struct tenant_limits limits;
    int r = quota_check_turn(engine->config.env.registry, e->tenant, &limits, err);

    if (r == 0)
        e->limits.reuse = limits.reuse;
    return r;
}

static bool is_stopping(struct engine *engine)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    return engine->stopping;
}

/* One will not run here; what others can run is left to them by who stops. */
static void say_unrun(const struct engine *engine, struct execution *e, bool cancelled)
{
    if (cancelled)
        execution_run_none(&engine->config.env, e, RESULT_CANCELLED, "cancelled");
    else if (!handover_leave(engine->config.env.ledger, e))
        execution_run_none(&engine->config.env, e, RESULT_FAILED,
                           "the daemon stopped before this execution ran");
}

/* Its turn has come: runs it, unless its tenant has nothing left to run it with. */
static void run(struct engine *engine, struct execution *e)
{
    struct err err = {0};
    int r = handover_begin(engine->config.env.ledger, e);

    if (r == -ECANCELED)
        say_unrun(engine, e, !is_stopping(engine));
    if (r < 0)
        return;
    r = check_turn(engine, e, &err);
    if (r == -EDQUOT) {
        execution_run_none(&engine->config.env, e, RESULT_FAILED, err.message);
        return;
    }
    /* What was accepted runs, whatever keeps the limits from being read. */
    if (r < 0)
        log_error("engine", "execution=%s limits=\"%s\"", e->id, err.message);
    execution_run(&engine->config.env, e);
}

/* Whether something runs, or is being ended. Under the lock. */
static bool is_running(const struct engine *engine)
{
    return fair_queue_count(engine->queue).running + engine->n_ending > 0;
}

/* Whether something is on its way: waits, or that. Under the lock. */
static bool is_busy(const struct engine *engine)
{
    return fair_queue_count(engine->queue).waiting > 0 || is_running(engine);
}

/*
 * What ends with the thread that started it is a machine's process: none of the threads ends
 * before the last execution.
 */
static void await_others(struct engine *engine)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    while (is_busy(engine))
        (void)pthread_cond_wait(&engine->idle, held);
}

static void *worker(void *arg)
{
    struct engine *engine = arg;
    struct execution *e;

    while ((e = take(engine))) {
        run(engine, e);
        (void)pthread_mutex_lock(&engine->lock);
        fair_queue_done(engine->queue, &e->place, clock_monotonic_ns());
        sessions_leave(e);
        LIST_REMOVE(e, live);
        engine_note_load(engine);
        (void)pthread_cond_broadcast(&engine->idle);
        (void)pthread_mutex_unlock(&engine->lock);
        if (engine->config.env.ledger)
            ledger_note_room(engine->config.env.ledger);
        execution_unref(e);
    }
    await_others(engine);
    return NULL;
}

int engine_create(const struct engine_config *config, struct engine **ret, struct err *err)
{
    struct engine *engine = calloc(1, sizeof(*engine));

    if (!engine)
        return err_no_memory(err);
    engine->config = *config;
    (void)pthread_mutex_init(&engine->lock, NULL);
    (void)pthread_cond_init(&engine->work, NULL);
    cond_init(&engine->idle);
    engine->workers = calloc(config->max_running, sizeof(*engine->workers));
    engine->queue = fair_queue_create();
    engine->rate = rate_create();
    if (!engine->workers || !engine->queue || !engine->rate) {
        engine_destroy(engine);
        return err_no_memory(err);
    }
    for (; engine->n_workers < config->max_running; engine->n_workers++) {
        int r = pthread_create(&engine->workers[engine->n_workers], NULL, worker, engine);

        if (r != 0) {
            engine_stop(engine, 0);
            engine_destroy(engine);
            return err_set_errno(err, r, "cannot start a worker");
        }
    }
    *ret = engine;
    return 0;
}

/* How long until one of n that run has ended, by what executions took lately. */
static unsigned retry_s(const struct engine *engine, unsigned n)
{
    uint64_t s = fair_queue_mean_ns(engine->queue) / (n > 0 ? n : 1) / NS_PER_SECOND + 1;

    return s < RETRY_QUEUE_MAX_S ? (unsigned)s : RETRY_QUEUE_MAX_S;
}

/* Looks whether another execution has its session. Under the lock. */
static int check_session(struct engine *engine, const struct execution *e, struct err *err)
{
    const struct execution *other =
        e->session ? sessions_taken_by(&engine->sessions, e->tenant, e->session) : NULL;

    return other ? err_set(err, EADDRINUSE,
                           "execution %s has session %s; this one can begin when it has ended",
                           other->id, e->session)
                 : 0;
}

/* Looks for room in the queue, and for the session. Under the lock. */
static int check_room(struct engine *engine, const struct execution *e,
                      const struct tenant_limits *limits, struct refusal *ret, struct err *err)
{
    struct fair_count all = fair_queue_count(engine->queue);
    struct fair_count own = fair_queue_count_of(engine->queue, e->tenant);

    if (engine->stopping)
        return err_set(err, ESHUTDOWN, "the daemon is stopping");
    if (check_session(engine, e, err) < 0)
        return -EADDRINUSE;
    /* It was let in where it was accepted, and counts as waiting there until it is here. */
    if (e->is_taken)
        return 0;
    ret->code = "overloaded";
    if (limits->max_queued > 0) {
        unsigned waiting = own.waiting + engine_waiting_elsewhere(engine, e->tenant);

        if (waiting >= limits->max_queued) {
            ret->retry_after_s = retry_s(engine, own.running);
            return err_set(err, EDQUOT,
                           "max_queued: %u of the tenant's executions are waiting already",
                           waiting);
        }
    }
    if (all.waiting >= engine->config.max_queued) {
        ret->retry_after_s = retry_s(engine, all.running);
        return err_set(err, EDQUOT, "%u executions are waiting already", all.waiting);
    }
    return 0;
}

/* What callers get for -EDQUOT, which is counted by its code. */
static int refused(struct engine *engine, const char *tenant, const struct refusal *refusal)
{
    enum metrics_refusal why = strcmp(refusal->code, "rate_limited") == 0 ? METRICS_REFUSED_RATE
                               : strcmp(refusal->code, "quota_exceeded") == 0
                                   ? METRICS_REFUSED_QUOTA
                                   : METRICS_REFUSED_QUEUE;

    metrics_count_refusal(engine->config.env.metrics, tenant, why);
    return -EBUSY;
}

static int check_limits(struct engine *engine, const struct execution *e,
                        struct tenant_limits *ret, struct refusal *ret_refusal, struct err *err)
{
    struct registry *registry = engine->config.env.registry;
    const char *tenant = e->tenant;
    int r = quota_limits(registry, tenant, ret, err);

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&engine->lock);
    r = check_room(engine, e, ret, ret_refusal, err);
    (void)pthread_mutex_unlock(&engine->lock);
    if (r < 0)
        return r;
    r = quota_check_cpu(registry, tenant, ret, clock_realtime_ns(), ret_refusal, err);
    if (r < 0)
        return r;
    /* The node that gave it has taken it off. */
    if (e->is_given)
        return 0;
    /* Last: what is refused for another reason costs nothing of the rate. */
    return quota_take_rate(engine->rate, tenant, ret, clock_monotonic_ns(), ret_refusal, err);
}

int engine_admit(struct engine *engine, struct execution *e, struct refusal *ret_refusal,
                 struct err *err)
{
    struct tenant_limits limits;
    int r = check_limits(engine, e, &limits, ret_refusal, err);

    if (r == -EDQUOT)
        return refused(engine, e->tenant, ret_refusal);
    if (r < 0)
        return r;
    e->limits = limits;
    e->admitted = true;
    return 0;
}

/* What was admitted, and what no other node took, may still not wait here. Under the lock. */
static int check_place(struct engine *engine, const struct execution *e, struct refusal *ret,
                       struct err *err)
{
    if (engine->draining && !engine->stopping && !e->is_taken)
        return err_set(err, EHOSTDOWN,
                       "this node is being drained, and no other one takes this: ask another");
    return check_room(engine, e, &e->limits, ret, err);
}

/* Keeps a place in the queue, and the session. */
static int reserve(struct engine *engine, struct execution *e, struct fair_tenant **ret,
                   struct refusal *ret_refusal, struct err *err)
{
    int r;

    *ret = steal_ptr(&e->turn);
    if (*ret)
        return 0;
    (void)pthread_mutex_lock(&engine->lock);
    r = check_place(engine, e, ret_refusal, err);
    *ret = r < 0 ? NULL : engine_keep_place(engine, e);
    (void)pthread_mutex_unlock(&engine->lock);
    if (r == -EDQUOT)
        return refused(engine, e->tenant, ret_refusal);
    if (r < 0)
        return r;
    return *ret ? 0 : err_no_memory(err);
}

/* Writes the durable row of an execution. */
static int accept_execution(struct engine *engine, struct execution *e, struct err *err)
{
    struct registry_execution acceptance;

    if (!e->is_taken)
        e->accepted_ns = clock_realtime_ns();
    e->queued_ns = clock_monotonic_ns();
    acceptance = (struct registry_execution){.id = e->id,
                                             .skill_name = e->skill_name,
                                             .skill_version = e->skill_version,
                                             .skill_digest = e->skill_digest,
                                             .accepted_ns = e->accepted_ns,
                                             .idempotency_key = e->idempotency_key,
                                             .request_digest = e->request_digest};
    if (engine->config.env.ledger)
        return handover_accept(engine->config.env.ledger, e, &acceptance, err);
    return registry_execution_accept(engine->config.env.registry, e->tenant, &acceptance, err);
}

/* The session, of all nodes of a cluster, and then the row. */
static int hold_and_accept(struct engine *engine, struct execution *e, struct err *err)
{
    struct shared_sessions *sessions = engine->config.env.sessions;
    int r = shared_sessions_take(sessions, e->tenant, e->session, e->id, err);

    if (r < 0)
        return r;
    r = accept_execution(engine, e, err);
    if (r < 0)
        shared_sessions_give(sessions, e->tenant, e->session, e->id);
    return r;
}

void engine_end_unrun(struct engine *engine, struct execution *e, bool cancelled)
{
    say_unrun(engine, e, cancelled);
    (void)pthread_mutex_lock(&engine->lock);
    engine->n_ending--;
    sessions_leave(e);
    LIST_REMOVE(e, live);
    (void)pthread_cond_broadcast(&engine->idle);
    (void)pthread_mutex_unlock(&engine->lock);
    execution_unref(e);
}

int engine_submit(struct engine *engine, struct execution *e, struct refusal *ret_refusal,
                  struct err *err)
{
    struct fair_tenant *place = NULL;
    bool stopping;
    int r = e->admitted ? 0 : engine_admit(engine, e, ret_refusal, err);

    if (r < 0)
        return r;
    r = reserve(engine, e, &place, ret_refusal, err);
    if (r < 0)
        return r;
    r = hold_and_accept(engine, e, err);
    if (r < 0) {
        engine_give_back(engine, e, place);
        return r;
    }
    (void)execution_ref(e);
    (void)pthread_mutex_lock(&engine->lock);
    stopping = engine->stopping;
    LIST_INSERT_HEAD(bucket(engine, e->id), e, live);
    if (stopping) {
        /* The queue was emptied meanwhile, and nobody will look at it again. */
        fair_queue_give_back(engine->queue, place);
        engine->n_ending++;
    } else {
        fair_queue_push(engine->queue, place, &e->place, e->queued_ns);
        (void)pthread_cond_signal(&engine->work);
    }
    (void)pthread_mutex_unlock(&engine->lock);
    if (stopping)
        engine_end_unrun(engine, e, false);
    return 0;
}

int engine_refuse(struct engine *engine, struct execution *e, const char *reason,
                  struct refusal *ret_refusal, struct err *err)
{
    int r = e->admitted ? 0 : engine_admit(engine, e, ret_refusal, err);

    if (r < 0)
        return r;
    r = accept_execution(engine, e, err);
    if (r < 0)
        return r;
    execution_run_none(&engine->config.env, e, RESULT_FAILED, reason);
    return 0;
}

struct execution *engine_find(struct engine *engine, const char *tenant, const char *id)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);
    struct execution *e = live_find(engine, tenant, id);

    return e ? execution_ref(e) : NULL;
}

/* Takes one out of the queue, to be ended. Under the lock. */
static void take_out(struct engine *engine, struct execution *e)
{
    fair_queue_remove(engine->queue, &e->place);
    engine->n_ending++;
    engine_note_load(engine);
}

/* Somebody wants it to end: nobody is to begin it again, and who has it is to end it. */
static void end_wanted(struct execution *e)
{
    __atomic_store_n(&e->is_wanted, true, __ATOMIC_RELEASE);
    __atomic_store_n(&e->is_left, false, __ATOMIC_RELEASE);
    execution_cancel(e);
}

int engine_cancel(struct engine *engine, const char *tenant, const char *id, bool *ret_ended)
{
    struct execution *e;
    bool waits = false, late;

    (void)pthread_mutex_lock(&engine->lock);
    e = live_find(engine, tenant, id);
    late = e && execution_get_state(e) >= EXECUTION_COLLECTING;
    if (late)
        e = NULL;
    waits = e && e->place.tenant && !e->place.running;
    if (waits)
        take_out(engine, e);
    else if (e)
        end_wanted(e);
    (void)pthread_mutex_unlock(&engine->lock);
    if (!e)
        return late ? -EALREADY : -ENOENT;
    if (waits)
        engine_end_unrun(engine, e, true);
    *ret_ended = waits;
    return 0;
}

void engine_give_up(struct engine *engine, const char *tenant, const char *id,
                    uint64_t accepted_ns)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);
    struct execution *e = live_find(engine, tenant, id);

    /* One of the same key that was accepted at another moment is another one. */
    if (!e || !e->place.running || e->retries == 0 || e->accepted_ns != accepted_ns)
        return;
    __atomic_store_n(&e->is_gone, true, __ATOMIC_RELEASE);
    execution_cancel(e);
}

bool engine_has_session(struct engine *engine, const char *tenant, const char *session)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    return sessions_taken_by(&engine->sessions, tenant, session) != NULL;
}

void engine_limits_changed(struct engine *engine, const char *tenant)
{
    struct tenant_limits limits;
    struct err err = {0};

    if (quota_limits(engine->config.env.registry, tenant, &limits, &err) == 0)
        set_limits(engine, tenant, &limits);
}

void engine_set_max_queued(struct engine *engine, unsigned max_queued)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    engine->config.max_queued = max_queued;
}

/* What nobody wanted to end others may begin again, where they may. */
static void end_here(struct execution *e)
{
    if (e->retries > 0 && !fd_is_readable(e->cancel_fd))
        __atomic_store_n(&e->is_left, true, __ATOMIC_RELEASE);
    execution_cancel(e);
}

/* Cancels what runs; whoever has another one lent would take it for a wish to end it. Under
   the lock. */
static void cancel_all(struct engine *engine)
{
    struct execution *e;

    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        LIST_FOREACH(e, &engine->live[i], live) {
            if (e->place.running)
                end_here(e);
        }
    }
}

void engine_hurry(struct engine *engine)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&engine->lock);

    cancel_all(engine);
}

/* Ends all that waits but what stays. Under the lock, which it gives away meanwhile. */
static void end_queue(struct engine *engine, bool (*stays)(const struct fair_entry *))
{
    struct fair_entry *place;

    while ((place = fair_queue_drain(engine->queue, stays))) {
        engine->n_ending++;
        (void)pthread_mutex_unlock(&engine->lock);
        engine_end_unrun(engine, engine_of_place(place), false);
        (void)pthread_mutex_lock(&engine->lock);
    }
}

void engine_close(struct engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    (void)pthread_cond_broadcast(&engine->work);
    (void)pthread_mutex_unlock(&engine->lock);
}

void engine_stop(struct engine *engine, uint64_t wait_ms)
{
    uint64_t deadline_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS;

    engine_close(engine);
    (void)pthread_mutex_lock(&engine->lock);
    end_queue(engine, engine_can_move);
    /* What others can run is lent to those that have room for as long as this goes on. */
    while (is_running(engine) && cond_wait_until(&engine->idle, &engine->lock, deadline_ns))
        ;
    engine->left = true;
    end_queue(engine, NULL);
    while (is_busy(engine) && cond_wait_until(&engine->idle, &engine->lock, deadline_ns))
        ;
    cancel_all(engine);
    while (is_busy(engine))
        (void)pthread_cond_wait(&engine->idle, &engine->lock);
    (void)pthread_mutex_unlock(&engine->lock);
    for (unsigned i = 0; i < engine->n_workers; i++)
        (void)pthread_join(engine->workers[i], NULL);
    engine->n_workers = 0;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    (void)pthread_cond_destroy(&engine->work);
    (void)pthread_cond_destroy(&engine->idle);
    (void)pthread_mutex_destroy(&engine->lock);
    fair_queue_destroy(engine->queue);
    rate_destroy(engine->rate);
    free(engine->workers);
    free(engine);
}
