/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/retention.h"

#include "api/daemon/engine/file_changes.h"
#include "api/daemon/engine/objects.h"
#include "api/daemon/engine/shared_sessions.h"
#include "api/daemon/engine/unstored.h"
#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_retention.h"
#include "api/daemon/registry/registry_sessions.h"
#include "api/daemon/registry/registry_usage.h"
#include "api/daemon/terms/limits.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH        64u        /* rows in one transaction */
#define BATCH_BYTES  (4u << 20) /* and what they have: others wait for it */
#define VACUUM_PAGES 256u
#define VACUUM_FROM  1024u           /* free pages that are worth giving back */
#define PAUSE_NS     (2 * NS_PER_MS) /* between batches: locks are not fair by themselves */
#define FRESH_NS     (600 * 1000 * NS_PER_MS)
#define RENEW_PART   16u /* of its time that a session has had when a use is written */
#define SWEEP_PASSES 60u /* objects that nothing names are rare: each so many passes */

struct retention {
    struct retention_env env;
    pthread_t thread;
    bool started;
    unsigned passes;
    struct unstored unstored;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t wake;
    struct config_retention settings;
    bool changed;
    bool stopping;
    uint64_t expired_sessions;
    struct changes *changes; /* or NULL; stay while they are used, as */
    struct shared_sessions *sessions;
    bool is_changing;
};

int retention_create(const struct retention_env *env, const struct config_retention *settings,
                     struct retention **ret, struct err *err)
{
    struct retention *r = calloc(1, sizeof(*r));

    if (!r)
        return err_no_memory(err);
    r->env = *env;
    r->settings = *settings;
    unstored_init(&r->unstored);
    (void)pthread_mutex_init(&r->lock, NULL);
    cond_init(&r->wake);
    *ret = r;
    return 0;
}

void retention_join(struct retention *r, struct changes *changes,
                    struct shared_sessions *sessions)
{
    if (!r)
        return;
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);
    r->changes = changes;
    r->sessions = sessions;
    while (!changes && r->is_changing)
        (void)pthread_cond_wait(&r->wake, &r->lock);
}

/* The changes, which then stay until end_changing; or NULL. */
static struct changes *begin_changing(struct retention *r)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    r->is_changing = r->changes != NULL;
    return r->changes;
}

static void end_changing(struct retention *r)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    r->is_changing = false;
    (void)pthread_cond_broadcast(&r->wake);
}

void retention_set(struct retention *r, const struct config_retention *settings)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    r->settings = *settings;
    r->changed = true;
    (void)pthread_cond_broadcast(&r->wake);
}

static struct config_retention get_settings(struct retention *r)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    return r->settings;
}

/* When what began at a time is so old; INT64_MAX: never. */
static uint64_t expiry(uint64_t begin_ns, uint64_t age_ms)
{
    return age_ms > 0 && age_ms < INT64_MAX / (2 * NS_PER_MS) ? begin_ns + age_ms * NS_PER_MS
                                                              : INT64_MAX;
}

uint64_t retention_file_expiry(struct retention *r, uint64_t created_ns)
{
    return expiry(created_ns, get_settings(r).files_age_ms);
}

uint64_t retention_session_expiry(struct retention *r, uint64_t used_ns)
{
    return expiry(used_ns, get_settings(r).sessions_age_ms);
}

void retention_use_session(struct retention *r, struct registry_session *row)
{
    uint64_t now_ns = clock_realtime_ns(), expires_ns = retention_session_expiry(r, now_ns);
    struct err err = {0};

    if (expires_ns == INT64_MAX || now_ns < row->used_ns ||
        now_ns - row->used_ns < (expires_ns - now_ns) / RENEW_PART)
        return;
    if (registry_session_use(r->env.registry, row->tenant, row->id, now_ns, &err) < 0)
        log_warn("retention", "session=%s not_renewed=\"%s\"", row->id, err.message);
    else
        row->used_ns = now_ns;
}

/* On its own. */
static int open_here(struct retention *r, const char *tenant, const char *id,
                     struct registry_session *ret, int *ret_fd, struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(r->env.store);
    int result = registry_session_get(r->env.registry, tenant, id, ret, err);

    if (result < 0)
        return result;
    *ret_fd = store_get(store, ret->digest, err);
    if (*ret_fd < 0)
        return -EIO;
    retention_use_session(r, ret);
    return 0;
}

int retention_open_session(struct retention *r, struct shared_sessions *shared,
                           const char *tenant, const char *id, struct registry_session *ret,
                           int *ret_fd, struct err *err)
{
    int result;

    if (!shared)
        return open_here(r, tenant, id, ret, ret_fd, err);
    result = shared_sessions_open(shared, tenant, id, ret, ret_fd, err);
    if (result == 0)
        retention_use_session(r, ret);
    return result;
}

void retention_end_later(struct retention *r, const char *tenant, const char *id,
                         const char *why)
{
    unstored_note(&r->unstored, tenant, id, why);
}

uint64_t retention_expired_sessions(struct retention *r)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    return r->expired_sessions;
}

static void count_expired_sessions(struct retention *r, unsigned n)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    r->expired_sessions += n;
}

static bool is_stopping(struct retention *r)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);

    return r->stopping;
}

/* Lets others in. True when it is time to stop. */
static bool pause_and_look(struct retention *r)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    return is_stopping(r);
}

/*
 * Forgets these executions: the rows in one transaction, then the objects that only they named.
 * Dying in between leaves objects that nothing names.
 */
static int forget_executions(struct retention *r, const struct registry_spent *rows, size_t n,
                             struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(r->env.store);
    int result = registry_executions_delete(r->env.registry, rows, n, err);
    for (size_t i = 0; result == 0 && i < n; i++) {
        if (rows[i].artifact_digest)
            result = store_release(store, rows[i].artifact_digest, err);
        if (result == 0 && rows[i].result_digest)
            result = store_release(store, rows[i].result_digest, err);
    }
    return result;
}

/*
 * Forgets executions of a tenant (NULL: of all) that ended before a time, the oldest first,
 * until they were *excess bytes together, of which it leaves what they were not.
 */
static int expire_executions(struct retention *r, const char *tenant, uint64_t before_ns,
                             uint64_t *excess, unsigned *ret_n, struct err *err)
{
    struct registry_spent rows[BATCH];
    bool stop = false;
    int result = 0;

    while (result == 0 && *excess > 0 && !stop) {
        size_t n = 0, due = 0;
        uint64_t together = 0;

        result =
            registry_execution_spent(r->env.registry, tenant, before_ns, BATCH, rows, &n, err);
        if (result < 0)
            break;
        while (*excess > 0 && due < n && together < BATCH_BYTES) {
            uint64_t bytes = rows[due++].bytes;

            together += bytes;
            *excess -= bytes < *excess ? bytes : *excess;
        }
        if (due > 0)
            result = forget_executions(r, rows, due, err);
        if (result == 0)
            *ret_n += (unsigned)due;
        for (size_t i = 0; i < n; i++)
            registry_spent_finish(&rows[i]);
        stop = (due == n && n < BATCH) || pause_and_look(r);
    }
    return result;
}

/*
 * Forgets these, and the objects that only they named; but one that somebody forgot or used
 * meanwhile.
 */
static int forget_aged(struct retention *r, enum registry_aged kind, uint64_t before_ns,
                       const struct registry_aged_row *rows, size_t n, unsigned *ret_n,
                       struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(r->env.store);

    for (size_t i = 0; i < n; i++) {
        int result = registry_aged_forget(r->env.registry, kind, &rows[i], before_ns, err);

        if (result == -ENOENT)
            continue;
        if (result < 0)
            return result;
        result = store_release(store, rows[i].digest, err);
        if (result < 0)
            return result;
        (*ret_n)++;
    }
    return 0;
}

static int forget_file(struct retention *r, struct changes *changes,
                       const struct registry_aged_row *row, struct err *err)
{
    int result = file_changes_expire(changes, r->env.registry, row->tenant, row->id, err);
    struct err ignored = {0};

    /* What stays the hour's sweep removes. */
    if (result == 0)
        (void)objects_drop(r->env.objects, row->digest, &ignored);
    return result;
}

/* Every node does so: who comes second finds that there is none any more. */
static int forget_everywhere(struct retention *r, enum registry_aged kind, uint64_t before_ns,
                             const struct registry_aged_row *rows, size_t n, unsigned *ret_n,
                             struct err *err)
{
    struct changes *changes = begin_changing(r);
    int result = changes ? 0 : -EAGAIN;

    for (size_t i = 0; result == 0 && i < n; i++) {
        result = kind == REGISTRY_AGED_FILES
                     ? forget_file(r, changes, &rows[i], err)
                     : shared_sessions_expire(r->sessions, rows[i].tenant, rows[i].id,
                                              before_ns, err);
        *ret_n += result == 0;
        result = result == -ENOENT ? 0 : result;
    }
    end_changing(r);
    return result;
}

static int expire(struct retention *r, enum registry_aged kind, uint64_t before_ns,
                  unsigned *ret_n, struct err *err)
{
    struct registry_aged_row rows[BATCH];
    bool stop = false;
    int result = 0;

    while (result == 0 && !stop) {
        size_t n = 0;

        result = registry_aged_due(r->env.registry, kind, before_ns, BATCH, rows, &n, err);
        if (result < 0)
            break;
        result = r->env.in_cluster ? forget_everywhere(r, kind, before_ns, rows, n, ret_n, err)
                                   : forget_aged(r, kind, before_ns, rows, n, ret_n, err);
        for (size_t i = 0; i < n; i++)
            registry_aged_row_finish(&rows[i]);
        stop = n < BATCH || pause_and_look(r);
    }
    return result;
}

/* One pass on its way. */
struct pass {
    struct config_retention settings;
    uint64_t now_ns;
    struct retention_report report;
};

static int by_age(struct retention *r, struct pass *pass, struct err *err)
{
    uint64_t age_ns = pass->settings.executions_age_ms * NS_PER_MS, all = UINT64_MAX;

    if (age_ns == 0 || age_ns > pass->now_ns)
        return 0;
    return expire_executions(r, NULL, pass->now_ns - age_ns, &all, &pass->report.executions,
                             err);
}

/*
 * Pushes and uploads stop at a tenant's storage limit, what its executions leave does not: of
 * those that ended before a time the oldest go, *most bytes of all tenants' at most.
 */
static int expire_excess(struct retention *r, struct pass *pass, uint64_t before_ns,
                         uint64_t *most, struct err *err)
{
    struct registry_excess over[BATCH];
    char after[TENANT_ID_SIZE] = "";
    size_t n = BATCH;
    int result = 0;

    while (result == 0 && n == BATCH) {
        result = registry_tenants_over(r->env.registry, after, BATCH, over, &n, err);
        for (size_t i = 0; result == 0 && i < n; i++) {
            const uint64_t bytes = over[i].bytes < *most ? over[i].bytes : *most;
            uint64_t left = bytes;

            result = expire_executions(r, over[i].tenant, before_ns, &left,
                                       &pass->report.executions, err);
            *most -= bytes - left;
        }
        if (result == 0 && n > 0)
            memcpy(after, over[n - 1].tenant, sizeof(after));
    }
    return result;
}

/* Who keeps to its storage loses nothing to whoever does not. */
static int by_size(struct retention *r, struct pass *pass, struct err *err)
{
    uint64_t max = pass->settings.executions_bytes, bytes = 0;
    int result;

    if (max == 0)
        return 0;
    result = registry_execution_bytes(r->env.registry, &bytes, err);
    if (result < 0 || bytes <= max)
        return result;
    bytes -= max;
    result = expire_excess(r, pass, INT64_MAX, &bytes, err);
    if (result < 0 || is_stopping(r))
        return result;
    return expire_executions(r, NULL, INT64_MAX, &bytes, &pass->report.executions, err);
}

/* None that may just have been answered. */
static int by_tenant(struct retention *r, struct pass *pass, struct err *err)
{
    uint64_t all = UINT64_MAX;

    return expire_excess(r, pass, pass->now_ns > FRESH_NS ? pass->now_ns - FRESH_NS : 0, &all,
                         err);
}

/* While the cluster changes nothing here, others see to it, or the next pass. */
static int unless_later(int result, const struct err *why, struct err *err)
{
    if (result == -EAGAIN)
        return 0;
    if (result < 0)
        *err = *why;
    return result;
}

static int files(struct retention *r, struct pass *pass, struct err *err)
{
    struct err why = {0};
    int result = expire(r, REGISTRY_AGED_FILES, pass->now_ns, &pass->report.files, &why);

    return unless_later(result, &why, err);
}

static int tell_uses(struct retention *r, struct err *err)
{
    int result = begin_changing(r) ? shared_sessions_tell_uses(r->sessions, err) : -EAGAIN;

    end_changing(r);
    return result;
}

/* What other nodes know of uses comes with their passes: a session has so much longer. */
static uint64_t sessions_age(const struct retention *r, const struct pass *pass)
{
    uint64_t age_ns = pass->settings.sessions_age_ms * NS_PER_MS;

    return age_ns == 0 || !r->env.in_cluster
               ? age_ns
               : age_ns + 2 * pass->settings.interval_ms * NS_PER_MS;
}

static int sessions(struct retention *r, struct pass *pass, struct err *err)
{
    uint64_t age_ns = sessions_age(r, pass);
    struct err why = {0};
    int result = r->env.in_cluster ? tell_uses(r, &why) : 0;

    if (result == 0 && age_ns > 0 && age_ns < pass->now_ns)
        result = expire(r, REGISTRY_AGED_SESSIONS, pass->now_ns - age_ns,
                        &pass->report.sessions, &why);
    return unless_later(result, &why, err);
}

/* Behind what may have made room for it. */
static int unstored(struct retention *r, struct pass *pass, struct err *err)
{
    (void)pass;
    return unstored_end(&r->unstored, r->env.registry, r->env.in_cluster, err);
}

static int audit(struct retention *r, struct pass *pass, struct err *err)
{
    (void)pass;
    return registry_audit_prune(r->env.registry, LIMIT_AUDIT_ROWS, err);
}

static int objects(struct retention *r, struct pass *pass, struct err *err)
{
    int result, own;

    if (r->passes++ % SWEEP_PASSES != 0)
        return 0;
    result = r->env.objects ? objects_sweep(r->env.objects, err) : 0;
    own = store_sweep(r->env.store, &pass->report.objects, err);
    return result < 0 ? result : own;
}

/* Gives pages that nothing uses back to the file system, a few at a time. */
static int shrink(struct retention *r, struct pass *pass, struct err *err)
{
    uint64_t free_pages = 0, before;
    int result = registry_free_pages(r->env.registry, &free_pages, err);

    (void)pass;
    if (result < 0 || free_pages < VACUUM_FROM)
        return result;
    do {
        before = free_pages;
        result = registry_vacuum(r->env.registry, VACUUM_PAGES, &free_pages, err);
    } while (result == 0 && free_pages > 0 && free_pages < before && !pause_and_look(r));
    return result;
}

/* Only today's usage is asked for; a day of grace for a clock that is put back. */
static int usage(struct retention *r, struct pass *pass, struct err *err)
{
    return registry_usage_prune(r->env.registry, registry_usage_day(pass->now_ns) - 1, err);
}

static int checkpoint(struct retention *r, struct pass *pass, struct err *err)
{
    (void)pass;
    return registry_checkpoint(r->env.registry, err);
}

int retention_pass(struct retention *r, uint64_t now_ns, struct retention_report *ret,
                   struct err *err)
{
    static int (*const steps[])(struct retention *, struct pass *, struct err *) = {
        by_age, by_tenant, by_size, files,  sessions,  unstored,
        audit,  usage,     objects, shrink, checkpoint};
    struct pass pass = {.settings = get_settings(r), .now_ns = now_ns};
    int result = 0;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct err step_err = {0};
        int step_result = steps[i](r, &pass, &step_err);

        if (step_result == 0 || result < 0)
            continue;
        result = step_result;
        if (err)
            *err = step_err;
    }
    count_expired_sessions(r, pass.report.sessions);
    *ret = pass.report;
    return result;
}

/* Waits for the next pass. False when it is time to stop. */
static bool wait_for_turn(struct retention *r)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&r->lock);
    uint64_t deadline_ns = clock_monotonic_ns() + r->settings.interval_ms * NS_PER_MS;

    while (!r->stopping && !r->changed && cond_wait_until(&r->wake, held, deadline_ns))
        ;
    r->changed = false;
    return !r->stopping;
}

static void *run(void *arg)
{
    struct retention *r = arg;

    do {
        struct retention_report report;
        struct err err = {0};

        if (retention_pass(r, clock_realtime_ns(), &report, &err) < 0)
            log_warn("retention", "reason=\"%s\"", err.message);
        if (report.executions + report.files + report.sessions + report.objects > 0)
            log_info("retention", "removed executions=%u files=%u sessions=%u objects=%u",
                     report.executions, report.files, report.sessions, report.objects);
        /* What executions gave back lies in pieces between what stays, and the library would
           keep it. */
        (void)malloc_trim(0);
    } while (wait_for_turn(r));
    return NULL;
}

int retention_start(struct retention *r, struct err *err)
{
    int result;

    /* A start has just swept the objects. */
    r->passes = 1;
    result = pthread_create(&r->thread, NULL, run, r);
    if (result != 0)
        return err_set_errno(err, result, "cannot start the thread of retention");
    r->started = true;
    return 0;
}

void retention_destroy(struct retention *r)
{
    if (!r)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    (void)pthread_cond_broadcast(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
    if (r->started)
        (void)pthread_join(r->thread, NULL);
    unstored_finish(&r->unstored);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
