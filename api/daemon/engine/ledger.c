/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/ledger.h"

#include "api/daemon/engine/engine.h"
#include "api/daemon/engine/lost.h"
#include "api/daemon/registry/registry_records.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLLOW_NS (5 * NS_PER_SECOND)
#define SLICE_NS  (100 * NS_PER_MS)
#define TICK_MAX  64u /* executions that one tick tells, and that it ends for others */

#define ENDS_MAX 64u
/* An execution of this process that somebody wants to end. */
struct wanted_end {
    char tenant[TENANT_ID_SIZE];
    char id[RECORD_ID_SIZE];
};

struct ledger {
    struct ledger_env env;
    struct engine *engine; /* from ledger_start on */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of the ends */
    struct wanted_end ends[ENDS_MAX];
    size_t n_ends;
    bool is_due;               /* atomic */
    char told[RECORD_ID_SIZE]; /* the thread's: up to which it told again */
};

int ledger_create(const struct ledger_env *env, struct ledger **ret, struct err *err)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));

    if (!ledger)
        return err_no_memory(err);
    ledger->env = *env;
    (void)pthread_mutex_init(&ledger->lock, NULL);
    *ret = ledger;
    return 0;
}

void ledger_destroy(struct ledger *ledger)
{
    if (!ledger)
        return;
    (void)pthread_mutex_destroy(&ledger->lock);
    free(ledger);
}

int ledger_id_of_key(const char *tenant, const char *key, char ret[RECORD_ID_SIZE])
{
    char text[TENANT_ID_SIZE + LIMIT_KEY_BYTES + 2], digest[SHA256_HEX_SIZE];
    int n = snprintf(text, sizeof(text), "%s/%s", tenant, key), r;

    if (n < 0 || (size_t)n >= sizeof(text))
        return -EINVAL;
    r = sha256_of(text, (size_t)n, digest);
    if (r < 0)
        return r;
    (void)snprintf(ret, RECORD_ID_SIZE, ID_EXECUTION "%.32s", digest);
    return 0;
}

static void copy(char *ret, size_t size, const char *text)
{
    (void)snprintf(ret, size, "%s", text ? text : "");
}

/* A row of ours that nobody else may run: what the caller hears of it is that it failed. */
static int accept_lost(struct ledger *ledger, const char *tenant,
                       const struct registry_execution *execution, const struct err *why)
{
    struct err err = {0};

    if (registry_record_accept(ledger->env.registry, tenant, execution, &err) < 0 ||
        lost_end(ledger->env.registry, execution, why->message, true, &err) < 0)
        log_error("ledger", "execution=%s lost=\"%s\"", execution->id, err.message);
    return -EAGAIN;
}

int ledger_await(struct ledger *ledger, const char *tenant, const char *id, struct err *err)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + FOLLOW_NS;

    while (clock_monotonic_ns() < deadline_ns) {
        _cleanup_registry_execution_ struct registry_execution row = {0};

        if (registry_execution_get(ledger->env.registry, tenant, id, &row, NULL) == 0)
            return 0;
        if (!cluster_records_wait(ledger->env.cluster, clock_monotonic_ns() + SLICE_NS))
            break;
    }
    return err_set(err, EAGAIN,
                   "another node accepted this request; what it accepted does not arrive here");
}

int ledger_accept(struct ledger *ledger, const char *tenant,
                  const struct registry_execution *execution, struct err *err)
{
    struct record record = {.accepted_ns = execution->accepted_ns};
    int r;

    copy(record.id, sizeof(record.id), execution->id);
    copy(record.tenant, sizeof(record.tenant), tenant);
    copy(record.skill_name, sizeof(record.skill_name), execution->skill_name);
    copy(record.skill_version, sizeof(record.skill_version), execution->skill_version);
    copy(record.skill_digest, sizeof(record.skill_digest), execution->skill_digest);
    copy(record.idempotency_key, sizeof(record.idempotency_key), execution->idempotency_key);
    copy(record.request_digest, sizeof(record.request_digest), execution->request_digest);
    cluster_sign_record(ledger->env.cluster, &record);
    r = cluster_record_accept(ledger->env.cluster, &record, err);
    if (r == -EEXIST) {
        r = ledger_await(ledger, tenant, execution->id, err);
        return r < 0 ? r : err_set(err, EEXIST, "another node has accepted it");
    }
    if (r == -ETIMEDOUT)
        return accept_lost(ledger, tenant, execution, err);
    if (r < 0)
        return r;
    r = registry_record_accept(ledger->env.registry, tenant, execution, err);
    if (r < 0) {
        struct err ignored = {0};

        lost_tell(ledger->env.cluster, &record, "the node had no room for it", &ignored);
    }
    return r;
}

/* A result that is too long for a record becomes an object. */
static int send_result(struct ledger *ledger, struct record *record, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    int r;

    if (record->result_bytes <= RECORD_RESULT_MAX) {
        record->result_bytes = strcspn(record->result, "\n");
        return 0;
    }
    r = sha256_of(record->result, (size_t)record->result_bytes, record->result_digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read a result");
    fd = store_temporary(ledger->env.store);
    r = fd < 0 ? fd : fd_pwrite_full(fd, record->result, (size_t)record->result_bytes, 0);
    if (r < 0)
        return err_set_errno(err, -r, "cannot keep a result");
    return objects_send(ledger->env.objects, CLUSTER_OF_EXECUTIONS, record->result_digest, fd,
                        err);
}

/* What it left is at the servers before anybody hears of it. */
static int send_files(struct ledger *ledger, const struct record *record, struct err *err)
{
    _cleanup_fd_ int fd = -1;

    if (!record->artifact_digest[0])
        return 0;
    fd = store_get(ledger->env.store, record->artifact_digest, err);
    /* What is gone cannot be told; the record says that it was there. */
    return fd < 0 ? 0
                  : objects_send(ledger->env.objects, CLUSTER_OF_EXECUTIONS,
                                 record->artifact_digest, fd, err);
}

/*
 * Where what it left cannot be sent its end is told all the same: it is sent later, and until
 * then nobody but this node has it.
 */
static int send(struct ledger *ledger, struct record *record, struct record_copy *theirs,
                struct err *err)
{
    struct err later = {0};
    int files = send_files(ledger, record, &later),
        result = send_result(ledger, record, &later), r;

    cluster_sign_record(ledger->env.cluster, record);
    r = cluster_record_end(ledger->env.cluster, record, theirs, err);
    if (r < 0)
        return r;
    *err = later;
    return files < 0 ? files : result;
}

static int adopt(struct ledger *ledger, const struct record *ours, struct record *theirs,
                 struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(ledger->env.store);
    int r;

    copy(theirs->id, sizeof(theirs->id), ours->id);
    r = registry_record_adopt(ledger->env.registry, theirs, err);
    log_warn("ledger", "execution=%s ended=%s others_say=%s", ours->id, ours->status,
             theirs->status);
    if (r == 0 && ours->artifact_digest[0])
        (void)store_release(store, ours->artifact_digest, NULL);
    return r;
}

/* What the others say takes the place of what this node says. -EEXIST, or -errno. */
static int yield(struct ledger *ledger, const struct record *record, struct record *theirs,
                 struct buf *ret_result, struct err *err)
{
    int r = adopt(ledger, record, theirs, err);

    if (r < 0)
        return r;
    if (ret_result && theirs->result)
        (void)buf_printf(ret_result, "%.*s\n", (int)theirs->result_bytes, theirs->result);
    return -EEXIST;
}

static int tell(struct ledger *ledger, struct record *record, struct buf *ret_result,
                struct err *err)
{
    struct record_copy theirs = {0};
    int r = send(ledger, record, &theirs, err);

    if (r == -EEXIST)
        r = yield(ledger, record, &theirs.record, ret_result, err);
    record_copy_finish(&theirs);
    return r < 0 ? r : registry_record_told(ledger->env.registry, record->id, err);
}

int ledger_tell(struct ledger *ledger, const char *id, struct buf *ret_result)
{
    _cleanup_free_ char *result = NULL;
    struct record record;
    struct err err = {0};
    int r = registry_record_get(ledger->env.registry, id, &record, &result, &err);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = tell(ledger, &record, ret_result, &err);
    if (r < 0 && r != -EEXIST && r != -EBUSY)
        log_warn("ledger", "execution=%s is=\"not told yet\" reason=\"%s\"", id, err.message);
    return r;
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

    return registry_records_place(ledger->env.registry, ret, err);
}

static int record_at(const void *ctx, size_t at, struct record *ret)
{
    const struct staged *staged = ctx;
    const struct staged_entry *e = &staged->list[at];
    enum node_refusal unused;

    return record_entry_parse(e->key, e->data, e->len, ret, &unused);
}

static int apply(void *ctx, const struct staged *records, const struct change_place *place,
                 unsigned *ret_conflicts, struct err *err)
{
    const struct ledger *ledger = ctx;

    return registry_records_make(ledger->env.registry, records->n, record_at, records, place,
                                 ret_conflicts, err);
}

static void end_now(struct ledger *ledger, const struct wanted_end *wanted)
{
    bool unused;

    (void)engine_cancel(ledger->engine, wanted->tenant, wanted->id, &unused);
}

/* To end one that waits takes longer than who follows has; of too many at once it does it. */
static void stop(void *ctx, const struct record *record)
{
    struct ledger *ledger = ctx;
    struct wanted_end wanted;
    bool is_full;

    memcpy(wanted.tenant, record->tenant, sizeof(wanted.tenant));
    memcpy(wanted.id, record->id, sizeof(wanted.id));
    (void)pthread_mutex_lock(&ledger->lock);
    is_full = ledger->n_ends == ENDS_MAX;
    if (!is_full)
        ledger->ends[ledger->n_ends++] = wanted;
    (void)pthread_mutex_unlock(&ledger->lock);
    if (is_full)
        end_now(ledger, &wanted);
}

static void end_wanted(struct ledger *ledger)
{
    struct wanted_end ends[ENDS_MAX];
    size_t n;

    (void)pthread_mutex_lock(&ledger->lock);
    n = ledger->n_ends;
    memcpy(ends, ledger->ends, n * sizeof(ends[0]));
    ledger->n_ends = 0;
    (void)pthread_mutex_unlock(&ledger->lock);
    for (size_t i = 0; i < n; i++)
        end_now(ledger, &ends[i]);
}

/* Whether a worker of this process is about to tell it. */
static bool is_at_work(struct ledger *ledger, const struct record *record)
{
    struct execution *e = engine_find(ledger->engine, record->tenant, record->id);

    execution_unref(e);
    return e != NULL;
}

static void tell_again(struct ledger *ledger, const char *id)
{
    _cleanup_free_ char *result = NULL;
    struct record record;
    struct err ignored = {0};

    if (registry_record_get(ledger->env.registry, id, &record, &result, &ignored) == 0 &&
        !is_at_work(ledger, &record))
        (void)tell(ledger, &record, NULL, &ignored);
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

/* All that others tell is here: time to look after what is left. */
static void tick(void *ctx)
{
    struct ledger *ledger = ctx;

    __atomic_store_n(&ledger->is_due, true, __ATOMIC_RELAXED);
}

/* What may take long keeps nobody from following. */
static void *look_after(void *arg)
{
    struct ledger *ledger = arg;

    while (cluster_records_wait(ledger->env.cluster, clock_monotonic_ns() + SLICE_NS)) {
        end_wanted(ledger);
        if (!__atomic_exchange_n(&ledger->is_due, false, __ATOMIC_RELAXED))
            continue;
        tell_rest(ledger);
        lost_end_others(ledger->env.registry, ledger->env.cluster, TICK_MAX);
    }
    return NULL;
}

int ledger_start(struct ledger *ledger, struct engine *engine, struct err *err)
{
    const struct cluster_ledger callbacks = {
        .ctx = ledger, .look = look, .apply = apply, .stop = stop, .tick = tick};
    int r;

    ledger->engine = engine;
    r = cluster_follow_records(ledger->env.cluster, &callbacks, err);
    if (r < 0)
        return r;
    r = pthread_create(&ledger->thread, NULL, look_after, ledger);
    if (r != 0)
        return err_set_errno(err, r, "cannot start a thread");
    ledger->has_thread = true;
    return 0;
}

void ledger_stop(struct ledger *ledger)
{
    if (ledger && ledger->has_thread)
        (void)pthread_join(ledger->thread, NULL);
}

int ledger_read_result(struct objects *objects, struct registry_execution *row, struct err *err)
{
    _cleanup_fd_ int fd = -1;
    _cleanup_free_ char *text = NULL;
    struct stat st;

    if (row->result || !row->result_digest)
        return 0;
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

int ledger_wait(struct ledger *ledger, const char *tenant, const char *id, uint64_t deadline_ns,
                struct registry_execution *ret_row, struct err *err)
{
    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        int r = registry_execution_get(ledger->env.registry, tenant, id, ret_row, err);

        if (r < 0)
            return r;
        if (ret_row->finished_ns > 0)
            return ledger_read_result(ledger->env.objects, ret_row, err);
        if (now_ns >= deadline_ns)
            return 0;
        registry_execution_finish(ret_row);
        if (!cluster_records_wait(ledger->env.cluster, now_ns + SLICE_NS < deadline_ns
                                                           ? now_ns + SLICE_NS
                                                           : deadline_ns))
            return err_set(err, ESHUTDOWN, "the daemon is stopping");
    }
}
