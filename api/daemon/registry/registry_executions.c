/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of the registry. */
#include "api/daemon/registry/registry.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/registry/registry_usage.h"

#include <errno.h>
#include <sqlite3.h>

/* An execution; the result comes after, where it is wanted. */
#define COLUMNS                                                                                \
    "id, tenant_id, status, skill_name, skill_version, skill_digest, accepted_ns,"             \
    " finished_ns, artifact_digest, artifact_bytes"
/* One of a list, which has none. */
#define LISTED                                                                                 \
    "SELECT " COLUMNS ", NULL,"                                                                \
    " (SELECT node FROM records WHERE records.id = executions.id) FROM executions WHERE"
/* A page of a list: newest first, from a place on. */
#define PLACE " tenant_id = ?4 AND (accepted_ns, id) < (?1, ?2)"
#define PAGE  PLACE " ORDER BY accepted_ns DESC, id DESC LIMIT ?3"

enum statement {
    INSERT,
    END,
    CHARGE,
    UNTOLD,
    BY_ID,
    BY_KEY,
    UNFINISHED,
    LIST, /* and three more by what is filtered */
    LIST_SKILL,
    LIST_STATUS,
    LIST_BOTH,
    N_STATEMENTS,
};

static const char *const text[N_STATEMENTS] = {
    /* A tenant that was deleted since the request was let in gets no rows any more. */
    [INSERT] = "INSERT INTO executions(id, status, skill_name, skill_version, skill_digest,"
               " accepted_ns, idempotency_key, request_digest, tenant_id)"
               " SELECT ?1, 'accepted', ?2, ?3, ?4, ?5, ?6, ?7, id FROM tenants WHERE id = ?8",
    [END] = "UPDATE executions SET status = ?2, result = ?3, finished_ns = ?4,"
            " artifact_digest = ?5, artifact_bytes = ?6, result_bytes = ?7 WHERE id = ?1"
            " AND (NOT ?8 OR NOT EXISTS(SELECT 1 FROM records WHERE id = ?1 AND node <> ''))",
    [CHARGE] = "INSERT INTO usage(tenant_id, day, cpu_ms)"
               " SELECT tenant_id, ?2, ?3 FROM executions WHERE id = ?1"
               " ON CONFLICT(tenant_id, day) DO UPDATE SET cpu_ms = cpu_ms + ?3",
    [UNTOLD] = "UPDATE records SET is_told = 0, cpu_ms = ?2 WHERE id = ?1",
    [BY_ID] = "SELECT " COLUMNS ", NULL,"
              " (SELECT node FROM records WHERE id = ?1),"
              " (SELECT result_digest FROM records WHERE id = ?1), result_bytes"
              " FROM executions WHERE id = ?1 AND tenant_id = ?2",
    [BY_KEY] = "SELECT id, request_digest FROM executions"
               " WHERE tenant_id = ?1 AND idempotency_key = ?2",
    [UNFINISHED] = "SELECT " COLUMNS " FROM executions"
                   " WHERE finished_ns IS NULL"
                   " AND NOT EXISTS(SELECT 1 FROM records"
                   " WHERE records.id = executions.id AND node <> '') LIMIT 1",
    [LIST] = LISTED PAGE,
    [LIST_SKILL] = LISTED " skill_name = ?5 AND" PAGE,
    /* Two parts, each in the order of its index, that are merged as far as the page goes. */
    [LIST_STATUS] =
        LISTED " status = ?6 AND" PLACE " UNION ALL " LISTED " status = ?7 AND" PAGE,
    [LIST_BOTH] = LISTED " skill_name = ?5 AND status = ?6 AND" PLACE " UNION ALL " LISTED
                         " skill_name = ?5 AND status = ?7 AND" PAGE,
};

const struct registry_statements registry_execution_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_execution, id),
    REGISTRY_COLUMN(REGISTRY_ID, registry_execution, tenant),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_execution, status),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_execution, skill_name),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_execution, skill_version),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_execution, skill_digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_execution, accepted_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_execution, finished_ns),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_execution, artifact_digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_execution, artifact_bytes),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_execution, result),
    REGISTRY_COLUMN(REGISTRY_ID, registry_execution, node),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_execution, result_digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_execution, result_bytes),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_execution, columns);

/* What a key began. */
struct begun {
    char *id;
    char *request_digest;
};
static const struct registry_column begun_columns[] = {
    REGISTRY_COLUMN(REGISTRY_TEXT, begun, id),
    REGISTRY_COLUMN(REGISTRY_TEXT, begun, request_digest),
};
static const struct registry_rows begun_kind = REGISTRY_ROWS(begun, begun_columns);

REGISTRY_FINISH(registry_execution, kind)

int registry_execution_accept(struct registry *registry, const char *tenant,
                              const struct registry_execution *execution, struct err *err)
{
    int r = registry_put(
        registry, REGISTRY_EXECUTIONS, INSERT,
        REGISTRY_VALUES(
            registry_text(execution->id), registry_text(execution->skill_name),
            registry_text(execution->skill_version), registry_text(execution->skill_digest),
            registry_number(execution->accepted_ns), registry_text(execution->idempotency_key),
            registry_text(execution->request_digest), registry_text(tenant)),
        "store an execution", err);

    /* An id of 128 random bits is never there already: it is the key. */
    if (r == -EEXIST && execution->idempotency_key)
        return err_set(err, EEXIST, "the idempotency key is in use");
    if (r == -EEXIST)
        return err_set(err, EIO, "database: cannot store an execution: its id is in use");
    return r == -ENOENT ? err_set(err, ENOENT, "the tenant was deleted") : r;
}

int registry_execution_by_key(struct registry *registry, const char *tenant, const char *key,
                              char **ret_id, char **ret_request_digest, struct err *err)
{
    struct begun begun;
    int r = registry_read_row(registry, REGISTRY_EXECUTIONS, BY_KEY,
                              REGISTRY_VALUES(registry_text(tenant), registry_text(key)),
                              &begun_kind, &begun, "look up an idempotency key", err);

    if (r < 0)
        return r;
    *ret_id = begun.id;
    *ret_request_digest = begun.request_digest;
    return 0;
}

static int end_row(struct registry *registry, const char *id,
                   const struct registry_ending *ending, struct err *err)
{
    int r =
        registry_put_step(registry, REGISTRY_EXECUTIONS, END,
                          REGISTRY_VALUES(registry_text(id), registry_text(ending->status),
                                          registry_bytes(ending->result, ending->result_len),
                                          registry_number(ending->finished_ns),
                                          registry_text(ending->artifact_digest),
                                          registry_number(ending->artifact_bytes),
                                          registry_number(ending->result_len),
                                          registry_number(ending->is_shared)),
                          "store a result", err);

    /* Of a tenant that was deleted, or another process's by now. */
    return r == -ENOENT && !ending->is_shared ? 0 : r;
}

int registry_execution_end(struct registry *registry, const char *id,
                           const struct registry_ending *ending, struct err *err)
{
    const uint64_t day = registry_usage_day(ending->finished_ns);
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    r = end_row(registry, id, ending, err);
    if (r == 0 && ending->cpu_ms > 0)
        r = registry_step(registry, REGISTRY_EXECUTIONS, CHARGE,
                          REGISTRY_VALUES(registry_text(id), registry_number(day),
                                          registry_number(ending->cpu_ms)),
                          "store usage", err);
    if (r == 0 && ending->is_shared)
        r = registry_step(registry, REGISTRY_EXECUTIONS, UNTOLD,
                          REGISTRY_VALUES(registry_text(id), registry_number(ending->cpu_ms)),
                          "store a result", err);
    if (r == 0 && ending->session)
        r = registry_session_put(registry, ending->session, err);
    return registry_transaction_end(registry, r, err);
}

int registry_execution_get(struct registry *registry, const char *tenant, const char *id,
                           struct registry_execution *ret, struct err *err)
{
    return registry_read_row(registry, REGISTRY_EXECUTIONS, BY_ID,
                             REGISTRY_VALUES(registry_text(id), registry_text(tenant)), &kind,
                             ret, "look up an execution", err);
}

int registry_execution_unfinished(struct registry *registry, struct registry_execution *ret,
                                  struct err *err)
{
    return registry_read_row(registry, REGISTRY_EXECUTIONS, UNFINISHED, NULL, &kind, ret,
                             "look up an execution", err);
}

int registry_execution_list(struct registry *registry, const char *tenant,
                            const struct registry_page *page, struct registry_execution *rows,
                            size_t *ret_n, struct err *err)
{
    enum statement which =
        (enum statement)(LIST + (page->skill ? 1 : 0) + (page->status ? 2 : 0));
    return registry_read_rows(
        registry, REGISTRY_EXECUTIONS, which,
        REGISTRY_VALUES(registry_after(page->after_ns, page->after_id),
                        registry_after_id(page->after_id), registry_number(page->max),
                        registry_text(tenant), registry_text(page->skill),
                        registry_text(page->status), registry_text(page->or_status)),
        &kind, page->max, rows, ret_n, "list executions", err);
}
