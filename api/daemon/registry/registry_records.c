/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_records.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/registry/registry_record_statements.h"
#include "api/daemon/registry/registry_usage.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A record as it is read, with its result. */
struct read_record {
    struct record record;
    char *result;
};
/* Those of an acceptance come first. */
static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.id),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.tenant),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.skill_name),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.skill_version),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.skill_digest),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.idempotency_key),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.request_digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, read_record, record.accepted_ns),
    REGISTRY_COLUMN(REGISTRY_BOOL, read_record, record.waits),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.node),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.instance),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.status),
    REGISTRY_COLUMN(REGISTRY_NUMBER, read_record, record.finished_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, read_record, record.cpu_ms),
    REGISTRY_COLUMN(REGISTRY_ID, read_record, record.artifact_digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, read_record, record.artifact_bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, read_record, record.result_bytes),
    REGISTRY_COLUMN(REGISTRY_TEXT, read_record, result),
};
static const struct registry_rows kind = REGISTRY_ROWS(read_record, columns);
#define N_ACCEPTED 11u
static const struct registry_rows accepted_kind = {sizeof(struct read_record), columns,
                                                   N_ACCEPTED, NULL};

static const struct registry_column process_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_process, node),
    REGISTRY_COLUMN(REGISTRY_ID, registry_process, instance),
};
static const struct registry_rows process_kind =
    REGISTRY_ROWS(registry_process, process_columns);

static const struct registry_column id_columns[] = {REGISTRY_COLUMN(REGISTRY_ID, record, id)};
static const struct registry_rows id_kind = REGISTRY_ROWS(record, id_columns);

/* The values of an acceptance: those of a row and of a record are named alike. */
#define OF_ACCEPTANCE(e, tenant)                                                               \
    registry_text((e)->id), registry_text((e)->skill_name), registry_text((e)->skill_version), \
        registry_text((e)->skill_digest), registry_number((e)->accepted_ns),                   \
        registry_text((e)->idempotency_key), registry_text((e)->request_digest),               \
        registry_text(tenant)
#define ACCEPTANCE(e, tenant) REGISTRY_VALUES(OF_ACCEPTANCE(e, tenant))
/* Those of a record's end. */
#define OF_ENDING(record)                                                                      \
    registry_text((record)->status),                                                           \
        registry_bytes((record)->result,                                                       \
                       (record)->result ? (size_t)(record)->result_bytes : 0),                 \
        registry_number((record)->finished_ns), registry_text((record)->artifact_digest),      \
        registry_number((record)->artifact_bytes), registry_number((record)->result_bytes)

/* Whether there is a row of a tenant's, within a transaction. 0, -ENOENT or -EIO. */
static int is_there(struct registry *registry, const char *id, const char *tenant,
                    struct err *err)
{
    return registry_put_step(registry, REGISTRY_RECORDS, IS_THERE,
                             REGISTRY_VALUES(registry_text(id), registry_text(tenant)),
                             "look up an execution", err);
}

/* Another node began it at the same moment, and was overruled by the servers. */
static int take_over(struct registry *registry, const char *tenant,
                     const struct registry_execution *execution, bool waits, struct err *err)
{
    int r = registry_put_step(registry, REGISTRY_RECORDS, TAKE_OVER,
                              REGISTRY_VALUES(registry_text(execution->id),
                                              registry_text(tenant), registry_number(waits)),
                              "store an execution", err);

    if (r == 0)
        return registry_step(registry, REGISTRY_RECORDS, ADOPT_BEGIN,
                             ACCEPTANCE(execution, tenant), "store an execution", err);
    if (r != -ENOENT)
        return r;
    return is_there(registry, execution->id, tenant, err) == 0
               ? err_set(err, EEXIST, "another node has accepted it")
               : err_set(err, ENOENT, "the tenant was deleted");
}

static int accept(struct registry *registry, const char *tenant,
                  const struct registry_execution *execution, bool waits, struct err *err)
{
    int r = registry_put_step(registry, REGISTRY_RECORDS, ACCEPT, ACCEPTANCE(execution, tenant),
                              "store an execution", err);

    if (r == -ENOENT)
        return take_over(registry, tenant, execution, waits, err);
    return r < 0 ? r
                 : registry_step(
                       registry, REGISTRY_RECORDS, NOTE_OWN,
                       REGISTRY_VALUES(registry_text(execution->id), registry_number(waits)),
                       "store an execution", err);
}

int registry_record_accept(struct registry *registry, const char *tenant,
                           const struct registry_execution *execution, bool waits,
                           struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    return r < 0 ? r
                 : registry_transaction_end(
                       registry, accept(registry, tenant, execution, waits, err), err);
}

int registry_record_begun(struct registry *registry, const char *id, struct err *err)
{
    return registry_run(registry, REGISTRY_RECORDS, KEEP, REGISTRY_VALUES(registry_text(id)),
                        "note that an execution begins", err);
}

/* Where its process is lost another one begins it. */
#define MAY_BEGIN(record) ((record)->waits || (record)->retries > 0)
#define PASSED(record, also_ours)                                                              \
    REGISTRY_VALUES(registry_text((record)->id), registry_text((record)->node),                \
                    registry_text((record)->instance), registry_number(MAY_BEGIN(record)),     \
                    registry_number(also_ours))

int registry_record_pass(struct registry *registry, const struct record *record, bool also_ours,
                         struct err *err)
{
    return registry_run(registry, REGISTRY_RECORDS, PASS, PASSED(record, also_ours),
                        "note whose an execution is", err);
}

int registry_records_leave(struct registry *registry, const struct registry_process *process,
                           const char *id, struct err *err)
{
    return registry_run(registry, REGISTRY_RECORDS, LEAVE,
                        REGISTRY_VALUES(registry_text(process->node),
                                        registry_text(process->instance), registry_text(id)),
                        "leave to others what waits", err);
}

int registry_record_get(struct registry *registry, const char *id, struct record *ret,
                        char **ret_result, struct err *err)
{
    struct read_record row = {0};
    int r =
        registry_read_row(registry, REGISTRY_RECORDS, GET, REGISTRY_VALUES(registry_text(id)),
                          &kind, &row, "look up an execution", err);

    if (r < 0)
        return r;
    *ret = row.record;
    ret->result = row.result;
    *ret_result = row.result;
    return 0;
}

static int read_id(struct registry *registry, enum record_statement which,
                   const struct registry_value *values, char ret[RECORD_ID_SIZE],
                   struct err *err)
{
    struct record row = {0};
    int r = registry_read_row(registry, REGISTRY_RECORDS, which, values, &id_kind, &row,
                              "look up an execution", err);

    if (r == 0)
        memcpy(ret, row.id, sizeof(row.id));
    return r;
}

int registry_record_untold(struct registry *registry, const char *after,
                           char ret[RECORD_ID_SIZE], struct err *err)
{
    return read_id(registry, UNTOLD, REGISTRY_VALUES(registry_text(after)), ret, err);
}

int registry_records_untold(struct registry *registry, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, REGISTRY_RECORDS, COUNT_UNTOLD, NULL,
                                "count what is not told", ret, err);
}

int registry_record_told(struct registry *registry, const struct record *record,
                         struct err *err)
{
    return registry_run(
        registry, REGISTRY_RECORDS, record->status[0] ? TOLD : TOLD_BEGIN,
        REGISTRY_VALUES(registry_text(record->id), registry_text(record->result_digest)),
        "note what is told", err);
}

/* An end, as the statements of ENDING want it. */
static int end_step(struct registry *registry, enum record_statement which,
                    const struct record *record, struct err *err)
{
    return registry_put_step(registry, REGISTRY_RECORDS, which,
                             REGISTRY_VALUES(registry_text(record->id), OF_ENDING(record),
                                             registry_text(record->tenant)),
                             "store a result", err);
}

static int note_end(struct registry *registry, const struct record *record, struct err *err)
{
    return registry_step(registry, REGISTRY_RECORDS, NOTE_END,
                         REGISTRY_VALUES(registry_text(record->id),
                                         registry_number(record->cpu_ms),
                                         registry_text(record->result_digest)),
                         "store a result", err);
}

/* A row that there was none of yet. */
static int begin_other(struct registry *registry, const struct record *record, struct err *err)
{
    int r = registry_put_step(registry, REGISTRY_RECORDS, ACCEPT,
                              ACCEPTANCE(record, record->tenant), "store an execution", err);

    return r < 0 ? r
                 : registry_step(registry, REGISTRY_RECORDS, NOTE_OTHER, PASSED(record, false),
                                 "store an execution", err);
}

static int charge(struct registry *registry, const struct record *record, struct err *err)
{
    if (record->cpu_ms == 0)
        return 0;
    return registry_step(
        registry, REGISTRY_RECORDS, CHARGE,
        REGISTRY_VALUES(registry_text(record->tenant),
                        registry_number(registry_usage_day(record->finished_ns)),
                        registry_number(record->cpu_ms)),
        "store usage", err);
}

/* Two that were not confirmed may have begun it, and one of them ended it. */
static int count_end(struct registry *registry, const struct record *record, struct err *err)
{
    int r = registry_step(registry, REGISTRY_RECORDS, ADOPT_BEGIN,
                          ACCEPTANCE(record, record->tenant), "store an execution", err);

    if (r < 0)
        return r;
    r = note_end(registry, record, err);
    return r < 0 ? r : charge(registry, record, err);
}

/* Where it was begun at another time by another node; 0: in any case. */
static int uncharge(struct registry *registry, const char *id, uint64_t accepted_ns,
                    struct err *err)
{
    return registry_step(registry, REGISTRY_RECORDS, UNCHARGE,
                         REGISTRY_VALUES(registry_text(id), registry_number(accepted_ns)),
                         "store usage", err);
}

/* One that nothing was heard of before has ended: most do while a node catches up. */
static int make_ended(struct registry *registry, const struct record *record, struct err *err)
{
    int r = registry_put_step(
        registry, REGISTRY_RECORDS, ACCEPT_ENDED,
        REGISTRY_VALUES(OF_ACCEPTANCE(record, record->tenant), OF_ENDING(record)),
        "store an execution", err);

    if (r < 0)
        return r;
    r = registry_step(registry, REGISTRY_RECORDS, NOTE_ENDED,
                      REGISTRY_VALUES(registry_text(record->id), registry_text(record->node),
                                      registry_text(record->instance),
                                      registry_number(record->cpu_ms),
                                      registry_text(record->result_digest)),
                      "store an execution", err);
    return r < 0 ? r : charge(registry, record, err);
}

/* It is counted as the others count it. */
static int adopt(struct registry *registry, const struct record *record, struct err *err)
{
    int r = is_there(registry, record->id, record->tenant, err);

    /* Its row may have gone meanwhile. */
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = uncharge(registry, record->id, 0, err);
    if (r < 0)
        return r;
    r = end_step(registry, ADOPT, record, err);
    return r < 0 ? r : count_end(registry, record, err);
}

int registry_record_adopt(struct registry *registry, const struct record *record,
                          struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    return r < 0 ? r : registry_transaction_end(registry, adopt(registry, record, err), err);
}

int registry_record_redate(struct registry *registry, const char *id, uint64_t finished_ns,
                           uint64_t accepted_ns, struct err *err)
{
    return registry_put(registry, REGISTRY_RECORDS, REDATE,
                        REGISTRY_VALUES(registry_text(id), registry_number(finished_ns),
                                        registry_number(accepted_ns)),
                        "note when an execution was accepted", err);
}

static int reopen(struct registry *registry, const struct record *record, uint64_t finished_ns,
                  struct err *err)
{
    struct record open = {0};
    int r = registry_put_step(
        registry, REGISTRY_RECORDS, IS_OUR_END,
        REGISTRY_VALUES(registry_text(record->id), registry_number(finished_ns)),
        "look up an execution", err);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = uncharge(registry, record->id, 0, err);
    if (r < 0)
        return r;
    memcpy(open.id, record->id, sizeof(open.id));
    r = note_end(registry, &open, err);
    if (r < 0)
        return r;
    r = registry_step(registry, REGISTRY_RECORDS, REOPEN,
                      REGISTRY_VALUES(registry_text(record->id)), "begin an execution anew",
                      err);
    if (r < 0)
        return r;
    r = registry_step(registry, REGISTRY_RECORDS, ADOPT_BEGIN,
                      ACCEPTANCE(record, record->tenant), "store an execution", err);
    return r < 0 ? r
                 : registry_step(registry, REGISTRY_RECORDS, PASS, PASSED(record, true),
                                 "store an execution", err);
}

int registry_record_reopen(struct registry *registry, const struct record *record,
                           uint64_t finished_ns, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    return r < 0 ? r
                 : registry_transaction_end(registry,
                                            reopen(registry, record, finished_ns, err), err);
}

/*
 * Servers may take two ends of one execution that came at once, or one that is told again with
 * another beginning (ledger_tell.c), and nodes see both or the last alone: the last one is
 * true. -ENOENT: it is the one that is here.
 */
static int end_again(struct registry *registry, const struct record *record, struct err *err)
{
    int r = registry_put_step(
        registry, REGISTRY_RECORDS, IS_OTHER_END,
        REGISTRY_VALUES(registry_text(record->id), registry_number(record->finished_ns),
                        registry_text(record->tenant), registry_number(record->accepted_ns)),
        "look up an execution", err);

    return r < 0 ? r : adopt(registry, record, err);
}

/* Where the row is of an earlier beginning, which all others forgot or overruled. */
static int begin_again(struct registry *registry, const struct record *record, struct err *err)
{
    int r = uncharge(registry, record->id, record->accepted_ns, err);

    if (r < 0)
        return r;
    r = registry_put_step(registry, REGISTRY_RECORDS, DROP_OLD,
                          REGISTRY_VALUES(registry_text(record->id),
                                          registry_text(record->tenant),
                                          registry_number(record->accepted_ns)),
                          "begin an execution anew", err);
    return r < 0 ? r : begin_other(registry, record, err);
}

static int begin(struct registry *registry, const struct record *record, struct err *err)
{
    int r = begin_other(registry, record, err);

    if (r == -ENOENT)
        r = begin_again(registry, record, err);
    if (r != -ENOENT)
        return r;
    r = is_there(registry, record->id, record->tenant, err);
    /* It begins, or another node has it now. */
    return r < 0 ? r
                 : registry_step(registry, REGISTRY_RECORDS, PASS, PASSED(record, false),
                                 "store an execution", err);
}

static int yield(struct registry *registry, const struct record *record, struct err *err)
{
    return registry_step(registry, REGISTRY_RECORDS, YIELD, PASSED(record, false),
                         "store an execution", err);
}

static int end(struct registry *registry, const struct record *record, struct err *err)
{
    int r = make_ended(registry, record, err);

    if (r != -ENOENT)
        return r;
    r = is_there(registry, record->id, record->tenant, err);
    if (r < 0)
        return r;
    r = yield(registry, record, err);
    if (r < 0)
        return r;
    r = end_step(registry, END_OTHER, record, err);
    if (r != -ENOENT)
        return r < 0 ? r : count_end(registry, record, err);
    r = end_again(registry, record, err);
    return r == -ENOENT ? 0 : r;
}

/* -ENOENT: it is not there, and cannot be. */
static int make(struct registry *registry, const struct record *record, struct err *err)
{
    int r;

    if (record->status[0])
        return end(registry, record, err);
    r = begin(registry, record, err);
    return r < 0 ? r : yield(registry, record, err);
}

static int make_all(struct registry *registry, size_t n, registry_record_at *at,
                    const void *ctx, unsigned *ret_conflicts, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct record record;
        int r;

        at(ctx, i, &record);
        r = make(registry, &record, err);
        if (r < 0 && r != -ENOENT)
            return r;
        *ret_conflicts += r == -ENOENT;
    }
    return 0;
}

int registry_records_make(struct registry *registry, size_t n, registry_record_at *at,
                          const void *ctx, const struct change_place *place,
                          unsigned *ret_conflicts, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    *ret_conflicts = 0;
    r = make_all(registry, n, at, ctx, ret_conflicts, err);
    return registry_transaction_end(
        registry,
        r < 0 ? r : registry_place_put_step(registry, REGISTRY_PLACE_OF_RECORDS, place, err),
        err);
}

int registry_record_process(struct registry *registry, const struct registry_process *after,
                            struct registry_process *ret, struct err *err)
{
    return registry_read_row(
        registry, REGISTRY_RECORDS, PROCESS,
        REGISTRY_VALUES(registry_text(after->node), registry_text(after->instance)),
        &process_kind, ret, "look up what others run", err);
}

int registry_record_unfinished(struct registry *registry,
                               const struct registry_process *process, bool waits,
                               const char *after, char ret[RECORD_ID_SIZE], struct err *err)
{
    return read_id(registry, UNFINISHED,
                   REGISTRY_VALUES(registry_text(process->node),
                                   registry_text(process->instance), registry_number(waits),
                                   registry_text(after)),
                   ret, err);
}

int registry_record_other(struct registry *registry, const char *id, struct record *ret,
                          struct err *err)
{
    struct read_record row = {0};
    int r =
        registry_read_row(registry, REGISTRY_RECORDS, OTHER, REGISTRY_VALUES(registry_text(id)),
                          &accepted_kind, &row, "look up an execution", err);

    if (r == 0)
        *ret = row.record;
    return r;
}

int registry_record_believe(struct registry *registry, const struct record *record,
                            struct err *err)
{
    return record->status[0] ? registry_record_adopt(registry, record, err)
                             : registry_record_pass(registry, record, true, err);
}

int registry_records_untell(struct registry *registry, uint64_t since_ns, struct err *err)
{
    return registry_run(registry, REGISTRY_RECORDS, UNTELL,
                        REGISTRY_VALUES(registry_number(since_ns)), "note what is to be told",
                        err);
}

int registry_record_untell(struct registry *registry, const char *id, struct err *err)
{
    return registry_run(registry, REGISTRY_RECORDS, UNTELL_ONE,
                        REGISTRY_VALUES(registry_text(id)), "note what is to be told", err);
}
