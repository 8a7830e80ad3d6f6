/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct engine {
    struct engine_config config;
    pthread_t *workers;
    unsigned n_workers;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t work;  /* something queued, or stopping */
    pthread_cond_t idle;  /* something ended */
    struct execution *queue;
    struct execution **queue_end;
    struct execution *running;
    unsigned n_queued; /* and reserved by a submit under way */
    unsigned n_running;
    bool stopping;
};

static struct execution *list_find(struct execution *e, const char *tenant, const char *id)
{
    for (; e; e = e->next) {
        if (strcmp(e->id, id) == 0 && strcmp(e->tenant, tenant) == 0)
            return e;
    }
    return NULL;
}

static void list_remove(struct execution **list, struct execution *e)
{
    while (*list != e)
        list = &(*list)->next;
    *list = e->next;
    e->next = NULL;
}

/* Takes the first of the queue to the running list; NULL when it is time to end. */
static struct execution *take(struct engine *engine)
{
    struct execution *e;

    (void)pthread_mutex_lock(&engine->lock);
    /* A place that is reserved will be filled: somebody must be there to end it. */
    while (!engine->queue && !(engine->stopping && engine->n_queued == 0))
        (void)pthread_cond_wait(&engine->work, &engine->lock);
    e = engine->queue;
    if (e) {
        engine->queue = e->next;
        if (!engine->queue)
            engine->queue_end = &engine->queue;
        engine->n_queued--;
        engine->n_running++;
        e->next = engine->running;
        engine->running = e;
    }
    (void)pthread_mutex_unlock(&engine->lock);
    return e;
}

static void *worker(void *arg)
{
    struct engine *engine = arg;
    struct execution *e;

    while ((e = take(engine))) {
        bool stopping;

        (void)pthread_mutex_lock(&engine->lock);
        stopping = engine->stopping;
        (void)pthread_mutex_unlock(&engine->lock);
        if (stopping)
            run_refuse(&engine->config.env, e, "the daemon stopped before this execution ran");
        else
            run_execution(&engine->config.env, e);
        (void)pthread_mutex_lock(&engine->lock);
        list_remove(&engine->running, e);
        engine->n_running--;
        if (engine->stopping)
            (void)pthread_cond_broadcast(&engine->work);
        (void)pthread_cond_broadcast(&engine->idle);
        (void)pthread_mutex_unlock(&engine->lock);
        execution_unref(e);
    }
    return NULL;
}

int engine_create(const struct engine_config *config, struct engine **ret, struct err *err)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    pthread_condattr_t attr;

    if (engine)
        engine->workers = calloc(config->max_running, sizeof(*engine->workers));
    if (!engine || !engine->workers) {
        free(engine);
        return err_set(err, ENOMEM, "out of memory");
    }
    engine->config = *config;
    engine->queue_end = &engine->queue;
    (void)pthread_mutex_init(&engine->lock, NULL);
    (void)pthread_cond_init(&engine->work, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&engine->idle, &attr);
    (void)pthread_condattr_destroy(&attr);
    for (unsigned i = 0; i < config->max_running; i++) {
        int r = pthread_create(&engine->workers[i], NULL, worker, engine);

        if (r != 0) {
            engine_stop(engine, 0);
            engine_destroy(engine);
            return err_set_errno(err, r, "cannot start a worker");
        }
        engine->n_workers++;
    }
    *ret = engine;
    return 0;
}

/* Keeps a place in the queue. */
static int reserve(struct engine *engine, struct err *err)
{
    int r = 0;

    (void)pthread_mutex_lock(&engine->lock);
    if (engine->stopping)
        r = err_set(err, ESHUTDOWN, "the daemon is stopping");
    else if (engine->n_queued >= engine->config.max_queued)
        r = err_set(err, EBUSY, "%u executions are waiting already", engine->n_queued);
    else
        engine->n_queued++;
    (void)pthread_mutex_unlock(&engine->lock);
    return r;
}

static void unreserve(struct engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    engine->n_queued--;
    (void)pthread_cond_broadcast(&engine->work);
    (void)pthread_cond_broadcast(&engine->idle);
    (void)pthread_mutex_unlock(&engine->lock);
}

/* Makes the execution and its durable row. */
static int accept_execution(struct engine *engine, struct run_plan *plan,
                            struct execution **ret, struct err *err)
{
    struct execution *e = execution_create(plan, err);
    struct registry_acceptance acceptance;
    int r;

    if (!e)
        return -ENOMEM;
    e->accepted_ns = clock_realtime_ns();
    e->queued_ns = clock_monotonic_ns();
    acceptance = (struct registry_acceptance){.id = e->id,
                                              .skill_name = e->plan.skill_name,
                                              .skill_version = e->plan.skill_version,
                                              .skill_digest = e->plan.skill_digest,
                                              .accepted_ns = e->accepted_ns,
                                              .idempotency_key = e->plan.idempotency_key,
                                              .request_digest = e->plan.request_digest};
    r = registry_execution_accept(engine->config.env.registry, e->tenant, &acceptance, err);
    if (r < 0) {
        *plan = e->plan;
        e->plan = run_plan_init();
        execution_unref(e);
        return r;
    }
    *ret = e;
    return 0;
}

int engine_submit(struct engine *engine, struct run_plan *plan, struct execution **ret,
                  struct err *err)
{
    struct execution *e;
    int r = reserve(engine, err);

    if (r < 0)
        return r;
    r = accept_execution(engine, plan, &e, err);
    if (r < 0) {
        unreserve(engine);
        return r;
    }
    *ret = execution_ref(e);
    (void)pthread_mutex_lock(&engine->lock);
    *engine->queue_end = e;
    engine->queue_end = &e->next;
    (void)pthread_cond_signal(&engine->work);
    (void)pthread_mutex_unlock(&engine->lock);
    return 0;
}

int engine_refuse(struct engine *engine, struct run_plan *plan, const char *reason,
                  struct execution **ret, struct err *err)
{
    int r = accept_execution(engine, plan, ret, err);

    if (r == 0)
        run_refuse(&engine->config.env, *ret, reason);
    return r;
}

struct execution *engine_find(struct engine *engine, const char *tenant, const char *id)
{
    struct execution *e;

    (void)pthread_mutex_lock(&engine->lock);
    e = list_find(engine->running, tenant, id);
    if (!e)
        e = list_find(engine->queue, tenant, id);
    if (e)
        (void)execution_ref(e);
    (void)pthread_mutex_unlock(&engine->lock);
    return e;
}

void engine_count(struct engine *engine, unsigned *ret_queued, unsigned *ret_running)
{
    (void)pthread_mutex_lock(&engine->lock);
    *ret_queued = engine->n_queued;
    *ret_running = engine->n_running;
    (void)pthread_mutex_unlock(&engine->lock);
}

void engine_set_max_queued(struct engine *engine, unsigned max_queued)
{
    (void)pthread_mutex_lock(&engine->lock);
    engine->config.max_queued = max_queued;
    (void)pthread_mutex_unlock(&engine->lock);
}

void engine_hurry(struct engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    for (struct execution *e = engine->running; e; e = e->next)
        execution_cancel(e);
    (void)pthread_mutex_unlock(&engine->lock);
}

void engine_stop(struct engine *engine, uint64_t wait_ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait_ms / 1000);
    (void)pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    (void)pthread_cond_broadcast(&engine->work);
    while (engine->n_running + engine->n_queued > 0 &&
           pthread_cond_timedwait(&engine->idle, &engine->lock, &until) != ETIMEDOUT)
        ;
    for (struct execution *e = engine->running; e; e = e->next)
        execution_cancel(e);
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
    free(engine->workers);
    free(engine);
}
