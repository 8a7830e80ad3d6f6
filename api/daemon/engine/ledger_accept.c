/* SPDX-License-Identifier: Apache-2.0 */
/* What this process begins, and what it waits for that others began. */
#include "api/daemon/engine/ledger_internal.h"

#include "api/daemon/engine/lost.h"
#include "api/daemon/registry/registry_records.h"
#include "api/skill/sha256.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FOLLOW_NS (5 * NS_PER_SECOND)
#define SLICE_NS  (100 * NS_PER_MS)

/* No tenant's id has a slash in it. */
int ledger_name(const char *prefix, const char *tenant, const char *word, char *ret,
                size_t size)
{
    char text[TENANT_ID_SIZE + LIMIT_KEY_BYTES + 2], digest[SHA256_HEX_SIZE];
    int n = snprintf(text, sizeof(text), "%s/%s", tenant, word), r;

    if (n < 0 || (size_t)n >= sizeof(text))
        return -EINVAL;
    r = sha256_of(text, (size_t)n, digest);
    if (r < 0)
        return r;
    (void)snprintf(ret, size, "%s%.32s", prefix, digest);
    return 0;
}

int ledger_id_of_key(const char *tenant, const char *key, char ret[RECORD_ID_SIZE])
{
    return ledger_name(ID_EXECUTION, tenant, key, ret, RECORD_ID_SIZE);
}

/* A row of ours that nobody else may run: what the caller hears of it is that it failed. */
static int accept_lost(struct ledger *ledger, const char *tenant,
                       const struct registry_execution *execution, const struct err *why)
{
    struct err err = {0};

    int r = registry_record_accept(ledger->env.registry, tenant, execution, false, &err);

    /* There is nothing to tell, and the servers may have it. */
    if (r < 0)
        ledger_doubt(ledger, execution->id);
    else
        r = lost_end(ledger->env.registry, execution, why->message, true, &err);
    if (r < 0)
        log_error("ledger", "execution=%s lost=\"%s\"", execution->id, err.message);
    return -EAGAIN;
}

/* The servers have it, and this node has no row. */
static void end_rowless(struct ledger *ledger, const struct record *record)
{
    struct err ignored = {0};
    int r = lost_tell(NULL, ledger->env.cluster, record, "the node had no room for it", NULL,
                      &ignored);

    if (r < 0 && r != -EEXIST && r != -EBUSY && r != -ENOENT)
        ledger_doubt(ledger, record->id);
}

/* Until something was said of it, or a moment passed. False where the daemon stops. */
static bool wait_told(struct ledger *ledger, struct ledger_waiter *waiter, uint64_t deadline_ns)
{
    uint64_t now_ns;

    while ((now_ns = clock_monotonic_ns()) < deadline_ns) {
        uint64_t until_ns = now_ns + SLICE_NS < deadline_ns ? now_ns + SLICE_NS : deadline_ns;

        if (cluster_is_stopping(ledger->env.cluster))
            return false;
        if (ledger_waiter_wait(&ledger->waits, waiter, until_ns))
            break;
    }
    return true;
}

/* Whether a look-up gave what is waited for: the row, or its end. */
static bool is_enough(int r, const struct registry_execution *row, bool ended)
{
    if (r < 0)
        return ended || r != -ENOENT;
    return !ended || row->finished_ns > 0;
}

static int wait_as(struct ledger *ledger, struct ledger_waiter *waiter, const char *tenant,
                   bool ended, uint64_t deadline_ns, struct registry_execution *ret_row,
                   struct err *err)
{
    for (;;) {
        bool is_late = clock_monotonic_ns() >= deadline_ns;
        int r = registry_execution_get(ledger->env.registry, tenant, waiter->id, ret_row, err);

        if (is_late || is_enough(r, ret_row, ended))
            return r;
        *err = (struct err){0};
        registry_execution_finish(ret_row);
        if (!wait_told(ledger, waiter, deadline_ns))
            return err_set(err, ESHUTDOWN, "the daemon is stopping");
    }
}

/* The row, once it is there, or has ended; or as it is when a moment has passed. */
static int wait_for(struct ledger *ledger, const char *tenant, const char *id, bool ended,
                    uint64_t deadline_ns, struct registry_execution *ret_row, struct err *err)
{
    struct ledger_waiter waiter;
    int r;

    *ret_row = (struct registry_execution){0};
    ledger_waiter_begin(&ledger->waits, id, &waiter);
    r = wait_as(ledger, &waiter, tenant, ended, deadline_ns, ret_row, err);
    ledger_waiter_end(&ledger->waits, &waiter);
    return r;
}

int ledger_await(struct ledger *ledger, const char *tenant, const char *id, struct err *err)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};
    struct err ignored = {0};

    if (wait_for(ledger, tenant, id, false, clock_monotonic_ns() + FOLLOW_NS, &row, &ignored) ==
        0)
        return 0;
    return err_set(err, EAGAIN,
                   "another node accepted this request; what it accepted does not arrive here");
}

/* There is no row of it, or none any more. */
static bool is_forgotten(struct ledger *ledger, const char *tenant, const char *id)
{
    _cleanup_registry_execution_ struct registry_execution row = {0};

    return registry_execution_get(ledger->env.registry, tenant, id, &row, NULL) == -ENOENT;
}

bool ledger_knows(struct ledger *ledger, const char *tenant, const char *id)
{
    struct err err = {0};

    /* What cannot be read may be there. */
    if (is_forgotten(ledger, tenant, id))
        return false;
    if (registry_record_untell(ledger->env.registry, id, &err) < 0)
        log_warn("ledger", "execution=%s is=\"not told anew\" reason=\"%s\"", id, err.message);
    return true;
}

/* Until what another node began under a key is a row here. -EEXIST or -EAGAIN. */
static int await_theirs(struct ledger *ledger, const char *tenant, const char *id,
                        struct err *err)
{
    int r = ledger_await(ledger, tenant, id, err);

    return r < 0 ? r : err_set(err, EEXIST, "another node has accepted it");
}

int ledger_take(struct ledger *ledger, const char *tenant,
                const struct registry_execution *execution, bool waits, struct err *err)
{
    return registry_record_accept(ledger->env.registry, tenant, execution, waits, err);
}

int ledger_accept(struct ledger *ledger, const char *tenant,
                  const struct registry_execution *execution, bool waits, struct err *err)
{
    struct record record = {.accepted_ns = execution->accepted_ns};
    uint64_t known;
    int r;

    (void)text_copy(record.id, sizeof(record.id), execution->id);
    (void)text_copy(record.tenant, sizeof(record.tenant), tenant);
    (void)text_copy(record.skill_name, sizeof(record.skill_name), execution->skill_name);
    (void)text_copy(record.skill_version, sizeof(record.skill_version),
                    execution->skill_version);
    (void)text_copy(record.skill_digest, sizeof(record.skill_digest), execution->skill_digest);
    (void)text_copy(record.idempotency_key, sizeof(record.idempotency_key),
                    execution->idempotency_key);
    (void)text_copy(record.request_digest, sizeof(record.request_digest),
                    execution->request_digest);
    cluster_sign_record(ledger->env.cluster, &record);
    known = cluster_records_known(ledger->env.cluster);
    r = cluster_record_accept(ledger->env.cluster, &record, true, err);
    if (r == -EEXIST && is_forgotten(ledger, tenant, execution->id))
        r = cluster_record_replace(ledger->env.cluster, &record, known, err);
    if (r == -EEXIST || r == -EALREADY)
        return await_theirs(ledger, tenant, record.id, err);
    if (r == -ETIMEDOUT)
        return accept_lost(ledger, tenant, execution, err);
    if (r < 0)
        return r;
    r = registry_record_accept(ledger->env.registry, tenant, execution, waits, err);
    if (r < 0)
        end_rowless(ledger, &record);
    return r;
}

int ledger_offer(struct ledger *ledger, const struct registry_execution *execution,
                 const struct waiting_request *request, struct err *err)
{
    struct record record = {.accepted_ns = execution->accepted_ns};

    (void)text_copy(record.id, sizeof(record.id), execution->id);
    waiting_add(request, &record);
    cluster_sign_record(ledger->env.cluster, &record);
    return cluster_record_offer(ledger->env.cluster, &record, err);
}

/* As the servers say of one that this process has no more. */
static int pass(struct ledger *ledger, const struct record *ours, struct record *theirs,
                struct err *err)
{
    int r = registry_record_believe(ledger->env.registry, theirs, err);

    log_info("ledger", "execution=%s has=%s", ours->id, theirs->node);
    return r < 0 ? r : -EEXIST;
}

/*
 * One of which this node has no row as its own. Who had it before may be heard of after it was
 * taken over: what comes behind that makes the row this node's again. -EEXIST where it is not
 * to be begun here.
 */
static int check_row(struct ledger *ledger, const char *id, struct err *err)
{
    struct record row;
    int r = registry_record_other(ledger->env.registry, id, &row, err);

    /* Its tenant was deleted. */
    if (r < 0)
        return r == -ENOENT ? -EEXIST : r;
    r = cluster_record_is_ours(ledger->env.cluster, id, err);
    if (r < 0)
        return r == -ENOENT ? -EEXIST : r;
    return err_set(err, EAGAIN, "that this node has it does not arrive here");
}

int ledger_begin(struct ledger *ledger, const char *id, bool again, struct err *err)
{
    _cleanup_free_ char *unused = NULL;
    struct record_copy theirs = {0};
    struct record record;
    int r = registry_record_get(ledger->env.registry, id, &record, &unused, err);

    if (r < 0)
        return r == -ENOENT ? check_row(ledger, id, err) : r;
    cluster_sign_record(ledger->env.cluster, &record);
    record.waits = false;
    r = cluster_record_begin(ledger->env.cluster, &record, &theirs, err);
    if (r == -EEXIST)
        r = pass(ledger, &record, &theirs.record, err);
    record_copy_finish(&theirs);
    return r < 0 || again ? r : registry_record_begun(ledger->env.registry, id, err);
}

int ledger_leave(struct ledger *ledger, const char *id, struct err *err)
{
    struct registry_process self;
    struct record record = {0};

    cluster_sign_record(ledger->env.cluster, &record);
    memcpy(self.node, record.node, sizeof(self.node));
    memcpy(self.instance, record.instance, sizeof(self.instance));
    return registry_records_leave(ledger->env.registry, &self, id, err);
}

int ledger_wait(struct ledger *ledger, const char *tenant, const char *id, uint64_t deadline_ns,
                struct registry_execution *ret_row, struct err *err)
{
    return wait_for(ledger, tenant, id, true, deadline_ns, ret_row, err);
}

void ledger_note(const struct ledger *ledger, const char *id, const char *what)
{
    struct record self = {0};

    cluster_sign_record(ledger->env.cluster, &self);
    log_info("ledger", "execution=%s %s node=%s", id, what, self.node);
}
