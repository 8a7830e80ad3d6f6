/* SPDX-License-Identifier: Apache-2.0 */
/* What others tell, and what is looked after meanwhile. */
#include "api/daemon/engine/ledger_internal.h"

#include "api/daemon/engine/engine.h"
#include "api/daemon/engine/lost.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/registry/registry_records.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECK_MAX    16u /* executions of others that one tick asks for, once they are so old */
#define CHECK_AGE_NS (60 * NS_PER_SECOND)
#define TICK_MAX     64u /* executions that one tick tells, and that it ends for others */

int ledger_create(const struct ledger_env *env, struct ledger **ret, struct err *err)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));

    if (!ledger)
        return err_no_memory(err);
    ledger->env = *env;
    ledger->waiting = (struct waiting_env){
        .registry = env->registry, .store = env->store, .cluster = env->cluster};
    ledger_waits_init(&ledger->waits);
    ends_init(&ledger->ends);
    (void)pthread_mutex_init(&ledger->taking, NULL);
    (void)pthread_mutex_init(&ledger->lock, NULL);
    cond_init(&ledger->due);
    *ret = ledger;
    return 0;
}

void ledger_destroy(struct ledger *ledger)
{
    if (!ledger)
        return;
    ledger_waits_finish(&ledger->waits);
    ends_finish(&ledger->ends);
    (void)pthread_cond_destroy(&ledger->due);
    (void)pthread_mutex_destroy(&ledger->lock);
    (void)pthread_mutex_destroy(&ledger->taking);
    free(ledger);
}

void ledger_note_room(struct ledger *ledger)
{
    cluster_note_room(ledger->env.cluster);
}

int ledger_cancel(struct ledger *ledger, const char *id, struct err *err)
{
    return cluster_record_cancel(ledger->env.cluster, id, err);
}

static int look(void *ctx, struct change_place *ret, struct err *err)
{
    const struct ledger *ledger = ctx;

    return registry_place_get(ledger->env.registry, REGISTRY_PLACE_OF_RECORDS, ret, err);
}

struct told {
    const struct staged *records;
    struct record self; /* who this process is */
};

static void record_at(const void *ctx, size_t at, struct record *ret)
{
    const struct told *told = ctx;

    *ret = *told->records->list[at].record;
    /* What has not ended and is this process's is a row of its own. */
    if (!ret->status[0] && record_is_of_same(ret, &told->self))
        ret->node[0] = ret->instance[0] = '\0';
}

static int apply(void *ctx, const struct staged *records, const struct change_place *place,
                 unsigned *ret_conflicts, struct err *err)
{
    struct ledger *ledger = ctx;
    struct told told = {.records = records};
    int r;

    cluster_sign_record(ledger->env.cluster, &told.self);
    r = registry_records_make(ledger->env.registry, records->n, record_at, &told, place,
                              ret_conflicts, err);

    for (size_t i = 0; r == 0 && i < records->n; i++)
        ledger_waits_tell(&ledger->waits, records->list[i].key);
    return r;
}

static bool has(void *ctx, const struct record *record)
{
    return ledger_is_at_work(ctx, record);
}

/* How this process ended one comes back too. */
static void stop(void *ctx, const struct record *record)
{
    struct ledger *ledger = ctx;

    if (record->status[0] && !ledger_is_at_work(ledger, record))
        return;
    if (!ends_add(&ledger->ends, record->tenant, record->id, record->status[0] != '\0'))
        log_warn("ledger", "execution=%s is=\"not ended\" reason=\"too many are to be ended\"",
                 record->id);
}

/*
 * Where this process was taken for lost another one has begun again what runs here. What waits
 * here hears of it when its turn comes.
 */
static void taken(void *ctx, const struct record *record)
{
    struct ledger *ledger = ctx;
    struct execution *e = engine_find(ledger->engine, record->tenant, record->id);
    bool is_here = e && e->retries > 0 && e->accepted_ns == record->accepted_ns;

    execution_unref(e);
    if (is_here && !ends_add_taken(&ledger->ends, record))
        log_warn("ledger",
                 "execution=%s is=\"not given up\" reason=\"too many are to be ended\"",
                 record->id);
}

static void tell_again(struct ledger *ledger, const char *id)
{
    _cleanup_free_ char *result = NULL;
    struct record record;
    struct err ignored = {0};

    if (registry_record_get(ledger->env.registry, id, &record, &result, &ignored) < 0)
        return;
    if (!record.status[0] || !ledger_is_at_work(ledger, &record))
        (void)ledger_tell_record(ledger, &record, 0, NULL, &ignored);
}

/*
 * What could not be told when it ended, some of it each time: one that still cannot be keeps
 * nobody else waiting.
 */
static void tell_rest(struct ledger *ledger)
{
    struct err ignored = {0};

    for (unsigned n = 0; n < TICK_MAX; n++) {
        if (registry_record_untold(ledger->env.registry, ledger->told, ledger->told, &ignored) <
            0) {
            ledger->told[0] = '\0';
            return;
        }
        tell_again(ledger, ledger->told);
    }
}

/* However long ago its end was told. */
static void unended(void *ctx, const struct record *record)
{
    struct ledger *ledger = ctx;
    struct err err = {0};

    if (!ledger_is_at_work(ledger, record) &&
        registry_record_untell(ledger->env.registry, record->id, &err) < 0)
        log_warn("ledger", "execution=%s is=\"not told anew\" reason=\"%s\"", record->id,
                 err.message);
}

static void tell_anew(void *ctx, uint64_t since_ns)
{
    const struct ledger *ledger = ctx;
    struct err err = {0};

    if (registry_records_untell(ledger->env.registry, since_ns, &err) < 0)
        log_warn("ledger", "executions=\"not told anew\" reason=\"%s\"", err.message);
}

/* All that others tell is here: time to look after what is left. */
static void tick(void *ctx)
{
    struct ledger *ledger = ctx;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&ledger->lock);

    ledger->is_due = true;
    (void)pthread_cond_broadcast(&ledger->due);
}

/* False where the daemon stops. */
static bool wait_due(struct ledger *ledger)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&ledger->lock);

    while (!ledger->is_due && !ledger->is_stopping)
        (void)pthread_cond_wait(&ledger->due, &ledger->lock);
    ledger->is_due = false;
    return !ledger->is_stopping;
}

/* One at a time: whoever asks meanwhile asks another node, or again. */
int ledger_take_over(struct ledger *ledger, const char *id,
                     const struct registry_process *process, bool is_lost, struct err *err)
{
    int r;

    if (pthread_mutex_trylock(&ledger->taking) != 0)
        return err_set(err, EBUSY, "this node is about to take another one over");
    r = ledger->waiting.resume ? waiting_take_over(&ledger->waiting, id, process, is_lost, err)
                               : err_set(err, EAGAIN, "this node takes nothing over now");
    (void)pthread_mutex_unlock(&ledger->taking);
    return r;
}

static void settle(struct ledger *ledger)
{
    if (pthread_mutex_trylock(&ledger->taking) != 0)
        return;
    waiting_settle(&ledger->waiting);
    (void)pthread_mutex_unlock(&ledger->taking);
}

/* A run that was given up, and has not come to its end. */
static bool is_at_work_here(struct ledger *ledger, const char *id)
{
    struct record row;

    return registry_record_other(ledger->env.registry, id, &row, NULL) == 0 &&
           ledger_is_at_work(ledger, &row);
}

/* Where nobody else is there it is run, or fails, as what comes here does. */
static bool may_take(struct ledger *ledger)
{
    return cluster_is_alone(ledger->env.cluster) ? engine_has_slot(ledger->engine)
                                                 : engine_has_room(ledger->engine);
}

/* Nodes take turns, so that they seldom ask for the same one at once. */
static int take_lost(void *ctx, const char *id, const struct registry_process *process,
                     struct err *err)
{
    struct ledger *ledger = ctx;

    if (!may_take(ledger))
        return err_set(err, EAGAIN, "this node has no room");
    if (!cluster_has_turn(ledger->env.cluster, id) || is_at_work_here(ledger, id))
        return -ENOTSUP;
    return ledger_take_over(ledger, id, process, true, err);
}

/* The next of what others have, in turn. False where there is none. */
static bool next_other(struct ledger *ledger)
{
    struct registry *registry = ledger->env.registry;
    struct err ignored = {0};

    while (registry_record_unfinished(registry, &ledger->checked_process,
                                      ledger->checks_waiting, ledger->checked, ledger->checked,
                                      &ignored) < 0) {
        ledger->checked[0] = '\0';
        ledger->checks_waiting = !ledger->checks_waiting;
        if (ledger->checks_waiting)
            continue;
        if (registry_record_process(registry, &ledger->checked_process,
                                    &ledger->checked_process, &ignored) < 0) {
            ledger->checked_process = (struct registry_process){0};
            return false;
        }
    }
    return true;
}

void ledger_doubt(struct ledger *ledger, const char *id)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&ledger->taking);

    waiting_doubt(&ledger->waiting, id);
}

/*
 * A server that lags or lost something may give a watch less than the others have. So what has
 * not ended here for long is asked for, some of it each time.
 */
static void check_others(struct ledger *ledger)
{
    struct err ignored = {0};

    for (unsigned n = 0; n < CHECK_MAX && next_other(ledger); n++) {
        struct record row;
        int r;

        if (registry_record_other(ledger->env.registry, ledger->checked, &row, &ignored) < 0 ||
            row.accepted_ns + CHECK_AGE_NS > clock_realtime_ns())
            continue;
        r = waiting_check(&ledger->waiting, ledger->checked, &ledger->checked_process,
                          &ignored);
        if (r == -EAGAIN)
            return;
        if (r == -EOWNERDEAD && !ledger_is_at_work(ledger, &row))
            ledger_doubt(ledger, ledger->checked);
    }
}

/* What may take long keeps nobody from following. */
static void *look_after(void *arg)
{
    struct ledger *ledger = arg;
    const struct lost_taker taker = {.ctx = ledger, .take = take_lost};

    while (wait_due(ledger)) {
        lost_see_to(ledger->env.registry, ledger->env.cluster, &taker, TICK_MAX);
        settle(ledger);
        check_others(ledger);
        tell_rest(ledger);
    }
    return NULL;
}

void ledger_resume_by(struct ledger *ledger, waiting_resume_fn *resume, void *ctx)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&ledger->taking);

    ledger->waiting.resume = resume;
    ledger->waiting.resume_ctx = ctx;
}

int ledger_start(struct ledger *ledger, struct engine *engine, struct err *err)
{
    const struct cluster_ledger callbacks = {.ctx = ledger,
                                             .look = look,
                                             .apply = apply,
                                             .stop = stop,
                                             .has = has,
                                             .taken = taken,
                                             .unended = unended,
                                             .tell_anew = tell_anew,
                                             .tick = tick};
    int r;

    ledger->engine = engine;
    r = ends_start(&ledger->ends, engine, ledger->env.registry, ledger->env.cluster, err);
    if (r < 0)
        return r;
    r = pthread_create(&ledger->thread, NULL, look_after, ledger);
    if (r != 0)
        return err_set_errno(err, r, "cannot start a thread");
    ledger->has_thread = true;
    return cluster_follow_records(ledger->env.cluster, &callbacks, err);
}

void ledger_stop(struct ledger *ledger)
{
    if (!ledger)
        return;
    ends_stop(&ledger->ends);
    (void)pthread_mutex_lock(&ledger->lock);
    ledger->is_stopping = true;
    (void)pthread_cond_broadcast(&ledger->due);
    (void)pthread_mutex_unlock(&ledger->lock);
    if (ledger->has_thread)
        (void)pthread_join(ledger->thread, NULL);
    ledger->has_thread = false;
}

int ledger_read_result(struct registry *registry, struct objects *objects,
                       struct registry_execution *row, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    _cleanup_free_ char *text = NULL;
    struct stat st;
    int r = 0;

    if (!row->result && row->finished_ns > 0)
        r = registry_execution_read_result(registry, row, err);
    /* What ran here has it here, whatever the servers have. */
    if (r < 0 || row->result || !row->result_digest)
        return r;
    fd = objects_get(objects, row->result_digest, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > RECORD_RESULT_BYTES_MAX)
        return err_set(err, EIO, "cannot read the result of %s", row->id);
    text = calloc(1, (size_t)st.st_size + 1);
    if (!text)
        return err_no_memory(err);
    if (fd_pread_full(fd, text, (size_t)st.st_size, 0) != st.st_size)
        return err_set(err, EIO, "cannot read the result of %s", row->id);
    row->result = steal_ptr(&text);
    return 0;
}
