/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_records.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/registry/registry_usage.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum statement {
    ACCEPT,
    NOTE_OWN,
    NOTE_OTHER,
    NOTE_END,
    END_OTHER,
    ADOPT,
    ADOPT_BEGIN,
    IS_OTHER_END,
    CHARGE,
    UNCHARGE,
    GET,
    UNTOLD,
    COUNT_UNTOLD,
    TOLD,
    TOLD_BEGIN,
    UNTELL,
    PROCESS,
    UNFINISHED,
    OTHER,
    IS_THERE,
    IS_OUR_END,
    REOPEN,
    TAKE_OVER,
    DROP_OLD,
    PASS,
    KEEP,
    YIELD,
    LEAVE,
    N_STATEMENTS
};

/* What is no object ends as what is written here does. */
#define ENDING                                                                                 \
    " SET status = ?2, result = ?3 || char(10), finished_ns = ?4, artifact_digest = "          \
    "NULLIF(?5, ''),"                                                                          \
    " artifact_bytes = ?6, result_bytes = ?7 + (?3 IS NOT NULL)"
#define ACCEPTED                                                                               \
    "e.id, e.tenant_id, e.skill_name, e.skill_version, e.skill_digest,"                        \
    " COALESCE(e.idempotency_key, ''), COALESCE(e.request_digest, ''), e.accepted_ns, "        \
    "r.waits,"                                                                                 \
    " r.node, r.instance"

static const char *const text[N_STATEMENTS] = {
    [ACCEPT] = "INSERT OR IGNORE INTO executions(id, status, skill_name, skill_version,"
               " skill_digest, accepted_ns, idempotency_key, request_digest, tenant_id)"
               " SELECT ?1, 'accepted', ?2, ?3, ?4, ?5, NULLIF(?6, ''), NULLIF(?7, ''), id"
               " FROM tenants WHERE id = ?8",
    [NOTE_OWN] = "INSERT INTO records(id, node, instance, is_told, waits)"
                 " VALUES(?1, '', '', 1, ?2)",
    [NOTE_OTHER] = "INSERT INTO records(id, node, instance, is_told, waits)"
                   " VALUES(?1, ?2, ?3, 1, ?4)",
    [NOTE_END] = "UPDATE records SET cpu_ms = ?2, result_digest = NULLIF(?3, ''), is_told = 1"
                 " WHERE id = ?1",
    [END_OTHER] = "UPDATE executions" ENDING " WHERE id = ?1 AND tenant_id = ?8"
                  " AND finished_ns IS NULL"
                  " AND EXISTS(SELECT 1 FROM records WHERE id = ?1 AND node <> '')",
    [ADOPT] = "UPDATE executions" ENDING " WHERE id = ?1 AND tenant_id = ?8",
    /* Under its key another node may have begun another request. */
    [ADOPT_BEGIN] = "UPDATE OR IGNORE executions SET skill_name = ?2, skill_version = ?3,"
                    " skill_digest = ?4, accepted_ns = ?5, idempotency_key = NULLIF(?6, ''),"
                    " request_digest = NULLIF(?7, '')"
                    " WHERE id = ?1 AND tenant_id = ?8 AND accepted_ns <> ?5",
    /* Changes a row as it is, as IS_THERE. */
    [IS_OTHER_END] = "UPDATE records SET is_told = is_told WHERE id = ?1"
                     " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND tenant_id = ?3"
                     " AND finished_ns <> ?2)",
    [CHARGE] = "INSERT INTO usage(tenant_id, day, cpu_ms) VALUES(?1, ?2, ?3)"
               " ON CONFLICT(tenant_id, day) DO UPDATE SET cpu_ms = cpu_ms + ?3",
    /* What an end was counted with, on the day that it has; ?2: as of uncharge. */
    [UNCHARGE] = "UPDATE usage SET cpu_ms = MAX(0, usage.cpu_ms - r.cpu_ms)"
                 " FROM executions e JOIN records r ON r.id = e.id"
                 " WHERE e.id = ?1 AND usage.tenant_id = e.tenant_id"
                 " AND usage.day = e.finished_ns / 86400000000000"
                 " AND (?2 = 0 OR (r.node <> '' AND e.accepted_ns <> ?2))",
    [GET] = "SELECT " ACCEPTED ","
            " IIF(e.finished_ns IS NULL, '', e.status), COALESCE(e.finished_ns, 0), r.cpu_ms, "
            "COALESCE(e.artifact_digest, ''),"
            " e.artifact_bytes, e.result_bytes, IIF(e.finished_ns IS NULL, '', e.result)"
            " FROM executions e JOIN records r ON r.id = e.id"
            " WHERE e.id = ?1 AND r.node = ''",
    [UNTOLD] = "SELECT id FROM records WHERE NOT is_told AND id > ?1 ORDER BY id LIMIT 1",
    [COUNT_UNTOLD] = "SELECT COUNT(*) FROM records WHERE NOT is_told",
    [TOLD] = "UPDATE records SET is_told = 1, result_digest = NULLIF(?2, '') WHERE id = ?1",
    /* Its end may have come meanwhile, which is not. */
    [TOLD_BEGIN] = "UPDATE records SET is_told = 1 WHERE id = ?1 AND EXISTS"
                   "(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns IS NULL)",
    [UNTELL] = "UPDATE records SET is_told = 0 WHERE node = '' AND ?2 IN ('', id) AND id IN"
               " (SELECT id FROM executions WHERE finished_ns IS NULL UNION ALL"
               " SELECT id FROM executions WHERE finished_ns >= ?1 AND result IS NOT NULL)",
    [PROCESS] = "SELECT DISTINCT r.node, r.instance FROM executions e"
                " JOIN records r ON r.id = e.id WHERE e.finished_ns IS NULL AND r.node <> ''"
                " AND (r.node, r.instance) > (?1, ?2) ORDER BY r.node, r.instance LIMIT 1",
    /* Of those that have not ended, which are few. */
    [UNFINISHED] = "SELECT e.id FROM executions e INDEXED BY executions_unfinished"
                   " CROSS JOIN records r ON r.id = e.id"
                   " WHERE e.finished_ns IS NULL AND r.node = ?1 AND r.instance = ?2"
                   " AND r.waits = ?3 AND e.id > ?4 ORDER BY e.id LIMIT 1",
    /* Changes a row as it is: a transaction's own rows are read by no other way. */
    /* Of two nodes that begin one at once the last one has it. */
    [TAKE_OVER] = "UPDATE records SET node = '', instance = '', waits = ?3"
                  " WHERE id = ?1 AND node <> ''"
                  " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND tenant_id = ?2"
                  " AND finished_ns IS NULL)",
    /* Another node's, which was begun anew since. */
    [DROP_OLD] = "DELETE FROM executions WHERE id = ?1 AND tenant_id = ?2 AND accepted_ns <> ?3"
                 " AND EXISTS(SELECT 1 FROM records WHERE id = ?1 AND node <> '')",
    /* Whose it is now, which has not ended; ?5: also where it was ours. */
    [PASS] = "UPDATE records SET node = ?2, instance = ?3, waits = ?4"
             " WHERE id = ?1 AND (node <> '' OR ?5)"
             " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns IS NULL)",
    /* Ours others may begin, and another process says that it has it. */
    [YIELD] = "UPDATE records SET node = ?2, instance = ?3, waits = ?4"
              " WHERE id = ?1 AND node = '' AND waits"
              " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns IS NULL)",
    [KEEP] = "UPDATE records SET waits = 0 WHERE id = ?1",
    [LEAVE] = "UPDATE records SET node = ?1, instance = ?2, is_told = 1"
              " WHERE node = '' AND waits AND ?3 IN ('', id) AND id IN"
              " (SELECT id FROM executions WHERE finished_ns IS NULL)",
    [IS_THERE] = "UPDATE records SET is_told = is_told WHERE id = ?1"
                 " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND tenant_id = ?2)",
    /* Changes a row as it is, as IS_THERE. */
    [IS_OUR_END] = "UPDATE records SET is_told = is_told WHERE id = ?1 AND node = ''"
                   " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns = ?2)",
    [REOPEN] = "UPDATE executions SET status = 'accepted', result = NULL, finished_ns = NULL,"
               " artifact_digest = NULL, artifact_bytes = 0, result_bytes = 0 WHERE id = ?1",
    [OTHER] = "SELECT " ACCEPTED " FROM executions e JOIN records r ON r.id = e.id"
              " WHERE e.id = ?1",
};

const struct registry_statements registry_record_statements = {text, N_STATEMENTS};

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
#define ACCEPTANCE(e, tenant)                                                                  \
    REGISTRY_VALUES(registry_text((e)->id), registry_text((e)->skill_name),                    \
                    registry_text((e)->skill_version), registry_text((e)->skill_digest),       \
                    registry_number((e)->accepted_ns), registry_text((e)->idempotency_key),    \
                    registry_text((e)->request_digest), registry_text(tenant))

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

static int read_id(struct registry *registry, enum statement which,
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
static int end_step(struct registry *registry, enum statement which,
                    const struct record *record, struct err *err)
{
    return registry_put_step(
        registry, REGISTRY_RECORDS, which,
        REGISTRY_VALUES(
            registry_text(record->id), registry_text(record->status),
            registry_bytes(record->result, record->result ? (size_t)record->result_bytes : 0),
            registry_number(record->finished_ns), registry_text(record->artifact_digest),
            registry_number(record->artifact_bytes), registry_number(record->result_bytes),
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
 * Servers may take two ends of one execution that came at once, and nodes see both or the last
 * alone: the last one is true. -ENOENT: it is the one that is here.
 */
static int end_again(struct registry *registry, const struct record *record, struct err *err)
{
    int r = registry_put_step(registry, REGISTRY_RECORDS, IS_OTHER_END,
                              REGISTRY_VALUES(registry_text(record->id),
                                              registry_number(record->finished_ns),
                                              registry_text(record->tenant)),
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

    if (r == -ENOENT && !record->status[0])
        r = begin_again(registry, record, err);
    if (r != -ENOENT)
        return r;
    r = is_there(registry, record->id, record->tenant, err);
    /* It begins, or another node has it now. */
    return r < 0 || record->status[0]
               ? r
               : registry_step(registry, REGISTRY_RECORDS, PASS, PASSED(record, false),
                               "store an execution", err);
}

/* -ENOENT: it is not there, and cannot be. */
static int make(struct registry *registry, const struct record *record, struct err *err)
{
    int r = begin(registry, record, err);

    if (r < 0)
        return r;
    r = registry_step(registry, REGISTRY_RECORDS, YIELD, PASSED(record, false),
                      "store an execution", err);
    if (r < 0 || !record->status[0])
        return r;
    r = end_step(registry, END_OTHER, record, err);
    if (r != -ENOENT)
        return r < 0 ? r : count_end(registry, record, err);
    r = end_again(registry, record, err);
    return r == -ENOENT ? 0 : r;
}

static int make_all(struct registry *registry, size_t n, registry_record_at *at,
                    const void *ctx, unsigned *ret_conflicts, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct record record;
        int r;

        if (at(ctx, i, &record) < 0)
            continue;
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
        registry, r < 0 ? r : registry_records_put_place(registry, place, err), err);
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

int registry_records_untell(struct registry *registry, uint64_t since_ns, const char *id,
                            struct err *err)
{
    return registry_run(registry, REGISTRY_RECORDS, UNTELL,
                        REGISTRY_VALUES(registry_number(since_ns), registry_text(id)),
                        "note what is to be told", err);
}
