/* SPDX-License-Identifier: Apache-2.0 */
/* What the servers are told of what this process began, and of how it ended. */
#include "api/daemon/engine/ledger_internal.h"

#include "api/daemon/engine/engine.h"
#include "api/daemon/registry/registry_records.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Whether it waits or runs here, or a worker is about to tell how it ended itself. */
bool ledger_is_at_work(struct ledger *ledger, const struct record *record)
{
    struct execution *e = engine_find(ledger->engine, record->tenant, record->id);

    execution_unref(e);
    return e != NULL;
}

/* A result that is too long for a record becomes an object. */
static int send_result(struct ledger *ledger, struct record *record, uint64_t wait_ns,
                       struct err *err)
{
    struct objects_put put = {.tenant = record->tenant,
                              .kept = CLUSTER_OF_EXECUTIONS,
                              .wait_ns = wait_ns,
                              .digest = record->result_digest};
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
    put.fd = fd;
    return objects_send(ledger->env.objects, &put, err);
}

/* What it left is at the servers before anybody hears of it. */
static int send_files(struct ledger *ledger, const struct record *record, uint64_t wait_ns,
                      struct err *err)
{
    struct objects_put put = {.tenant = record->tenant,
                              .kept = CLUSTER_OF_EXECUTIONS,
                              .wait_ns = wait_ns,
                              .digest = record->artifact_digest};
    _cleanup_fd_ int fd = -1;

    if (!record->artifact_digest[0])
        return 0;
    fd = store_get(ledger->env.store, record->artifact_digest, err);
    put.fd = fd;
    /* What is gone cannot be told; the record says that it was there. */
    return fd < 0 ? 0 : objects_send(ledger->env.objects, &put, err);
}

/*
 * Where what it left cannot be sent its end is told all the same: it is sent later, and until
 * then nobody but this node has it.
 */
static int send(struct ledger *ledger, struct record *record, uint64_t wait_ns,
                struct record_copy *theirs, struct err *err)
{
    struct err later = {0};
    int files = send_files(ledger, record, wait_ns, &later),
        result = send_result(ledger, record, wait_ns, &later), r;

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

    (void)snprintf(theirs->id, sizeof(theirs->id), "%s", ours->id);
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

/*
 * This node was taken for lost, or was not told that it has it, and another one runs it: what
 * ran here, if anything did, is none of it. -ESTALE, or -errno.
 */
static int reopen(struct ledger *ledger, const struct record *ours, struct record *theirs,
                  struct err *err)
{
    _cleanup_store_lock_ struct store *store = store_lock(ledger->env.store);
    int r = registry_record_reopen(ledger->env.registry, theirs, ours->finished_ns, err);

    log_warn("ledger", "execution=%s ended=%s begun_again_by=%s", ours->id, ours->status,
             theirs->node);
    if (r == 0 && ours->artifact_digest[0])
        (void)store_release(store, ours->artifact_digest, NULL);
    return r < 0 ? r : -ESTALE;
}

/*
 * What this node accepted once more under the same id, which the servers confirmed, has no row:
 * there was one of the first, which they had not. It never waits, and is begun once.
 */
static bool is_second(struct ledger *ledger, const struct record *record,
                      const struct record *theirs)
{
    return strcmp(theirs->node, record->node) == 0 &&
           theirs->accepted_ns != record->accepted_ns && !theirs->waits &&
           theirs->retries == 0 && !ledger_is_at_work(ledger, record);
}

/* It ends as the first did, which is told as the end of it. */
static int end_second(struct ledger *ledger, struct record *record, uint64_t wait_ns,
                      struct record_copy *theirs, struct err *err)
{
    int r;

    *err = (struct err){0};
    r = registry_record_redate(ledger->env.registry, record->id, record->finished_ns,
                               theirs->record.accepted_ns, err);
    if (r < 0)
        return r == -ENOENT ? -EBUSY : r; /* it has another end by now */
    log_warn("ledger", "execution=%s accepted=twice ended=%s", record->id, record->status);
    record->accepted_ns = theirs->record.accepted_ns;
    record_copy_finish(theirs);
    return send(ledger, record, wait_ns, theirs, err);
}

/*
 * Whether another node has it in place of this one. Where that began it anew, what ran here may
 * be the only end of it, and is kept.
 */
static bool is_theirs(const struct record *record, const struct record *theirs)
{
    return theirs->accepted_ns == record->accepted_ns ||
           (strcmp(theirs->node, record->node) != 0 && record->cpu_ms == 0);
}

/* What somebody wanted to end whoever has it is to end: else it stays untold. */
static int pass_wish(struct ledger *ledger, const struct record *record, struct err *err)
{
    bool is_wish = strcmp(record->status, "cancelled") == 0;

    return is_wish && cluster_record_cancel(ledger->env.cluster, record->id, err) == -EAGAIN
               ? -EAGAIN
               : -EBUSY;
}

static int tell_end(struct ledger *ledger, struct record *record, uint64_t wait_ns,
                    struct buf *ret_result, struct err *err)
{
    struct record_copy theirs = {0};
    int r = send(ledger, record, wait_ns, &theirs, err);

    if (r == -EBUSY && is_second(ledger, record, &theirs.record))
        r = end_second(ledger, record, wait_ns, &theirs, err);
    if (r == -EEXIST)
        r = yield(ledger, record, &theirs.record, ret_result, err);
    if (r == -EBUSY)
        r = pass_wish(ledger, record, err);
    if (r == -EBUSY && is_theirs(record, &theirs.record))
        r = reopen(ledger, record, &theirs.record, err);
    record_copy_finish(&theirs);
    return r;
}

/*
 * What may be begun again has its request here, and others may still begin it. One that has
 * begun says so after that; one that begins at this moment reads as if it waited, which is the
 * same to others once this process is lost.
 */
static int offer_anew(struct ledger *ledger, struct record *record, struct err *err)
{
    struct execution *e = engine_find(ledger->engine, record->tenant, record->id);
    const struct registry_execution accepted = {.id = record->id,
                                                .accepted_ns = record->accepted_ns};
    struct record_copy unused = {0};
    int r = 0;

    if (e && e->retries > 0 && (e->request.object[0] || e->request.text.len > 0))
        r = ledger_offer(ledger, &accepted, &e->request, err);
    if (e && r == 0 && execution_get_state(e) >= EXECUTION_RUNNING)
        r = cluster_record_begin(ledger->env.cluster, record, &unused, err);
    record_copy_finish(&unused);
    execution_unref(e);
    return r == -ENOENT || r == -EEXIST ? 0 : r;
}

/* Where others ended it meanwhile, who follows hears of that. */
static int tell_begin(struct ledger *ledger, struct record *record, struct err *err)
{
    int r;

    cluster_sign_record(ledger->env.cluster, record);
    /* Its request was with the record that was lost. */
    record->waits = false;
    r = cluster_record_accept(ledger->env.cluster, record, false, err);
    if (r < 0)
        return r == -EEXIST ? 0 : r;
    return offer_anew(ledger, record, err);
}

int ledger_tell_record(struct ledger *ledger, struct record *record, uint64_t wait_ns,
                       struct buf *ret_result, struct err *err)
{
    int r = record->status[0] ? tell_end(ledger, record, wait_ns, ret_result, err)
                              : tell_begin(ledger, record, err);

    return r < 0 ? r : registry_record_told(ledger->env.registry, record, err);
}

int ledger_tell(struct ledger *ledger, const char *id, struct buf *ret_result)
{
    _cleanup_free_ char *result = NULL;
    struct record record;
    struct err err = {0};
    int r = registry_record_get(ledger->env.registry, id, &record, &result, &err);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = ledger_tell_record(ledger, &record, OBJECTS_SOON_NS, ret_result, &err);
    if (r < 0 && r != -EEXIST && r != -EBUSY && r != -ESTALE)
        log_warn("ledger", "execution=%s is=\"not told yet\" reason=\"%s\"", id, err.message);
    return r;
}
