/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_retention.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>

enum statement {
    SPENT,
    SPENT_OF,
    SUM_BYTES,
    OVER,
    FILES_DUE,
    SESSIONS_DUE,
    FORGET_FILE,
    FORGET_SESSION,
    DELETE,
    FREE_PAGES,
    N_STATEMENTS
};

/* The object that its result is. */
#define RESULT_OF "(SELECT result_digest FROM records WHERE records.id = executions.id)"

static const char *const text[N_STATEMENTS] = {
    [SPENT] = ("SELECT id, artifact_digest, " RESULT_OF ", result_bytes + artifact_bytes"
               " FROM executions"
               " WHERE finished_ns IS NOT NULL AND finished_ns < ?1"
               " ORDER BY finished_ns, id LIMIT ?2"),
    [SPENT_OF] = ("SELECT id, artifact_digest, " RESULT_OF ", result_bytes + artifact_bytes"
                  " FROM executions"
                  " WHERE tenant_id = ?3 AND finished_ns IS NOT NULL AND finished_ns < ?1"
                  " ORDER BY accepted_ns, id LIMIT ?2"),
    /* Triggers keep what tenants store: what is no skill, file or session of it is
     * executions'. */
    [SUM_BYTES] = ("SELECT (SELECT COALESCE(SUM(stored_bytes), 0) FROM tenants)"
                   " - (SELECT COALESCE(SUM(bytes), 0) FROM skills)"
                   " - (SELECT COALESCE(SUM(bytes), 0) FROM files)"
                   " - (SELECT COALESCE(SUM(bytes), 0) FROM sessions)"),
    [OVER] = ("SELECT id, stored_bytes - storage_bytes FROM tenants"
              " WHERE storage_bytes > 0 AND stored_bytes > storage_bytes AND id > ?1"
              " ORDER BY id LIMIT ?2"),
    [FILES_DUE] = "SELECT tenant_id, id, digest FROM files WHERE expires_ns <= ?1"
                  " ORDER BY expires_ns, id LIMIT ?2",
    [SESSIONS_DUE] = "SELECT tenant_id, id, digest FROM sessions WHERE used_ns <= ?1"
                     " ORDER BY used_ns LIMIT ?2",
    [FORGET_FILE] = "DELETE FROM files WHERE tenant_id = ?1 AND id = ?2 AND expires_ns <= ?3",
    [FORGET_SESSION] =
        "DELETE FROM sessions WHERE tenant_id = ?1 AND id = ?2 AND used_ns <= ?3",
    [DELETE] = "DELETE FROM executions WHERE id = ?1 AND finished_ns IS NOT NULL",
    [FREE_PAGES] = "SELECT freelist_count FROM pragma_freelist_count",
};

const struct registry_statements registry_retention_statements = {text, N_STATEMENTS};

static const struct registry_column spent_columns[] = {
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_spent, id),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_spent, artifact_digest),
    REGISTRY_COLUMN(REGISTRY_TEXT_OR_NULL, registry_spent, result_digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_spent, bytes),
};
static const struct registry_rows spent_kind = REGISTRY_ROWS(registry_spent, spent_columns);

static const struct registry_column excess_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_excess, tenant),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_excess, bytes),
};
static const struct registry_rows excess_kind = REGISTRY_ROWS(registry_excess, excess_columns);

static const struct registry_column aged_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_aged_row, tenant),
    REGISTRY_COLUMN(REGISTRY_ID, registry_aged_row, id),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_aged_row, digest),
};
static const struct registry_rows aged_kind = REGISTRY_ROWS(registry_aged_row, aged_columns);

REGISTRY_FINISH(registry_spent, spent_kind)
REGISTRY_FINISH(registry_aged_row, aged_kind)

int registry_execution_spent(struct registry *registry, const char *tenant, uint64_t before_ns,
                             size_t max, struct registry_spent *rows, size_t *ret_n,
                             struct err *err)
{
    return registry_read_rows(registry, REGISTRY_RETENTION, tenant ? SPENT_OF : SPENT,
                              REGISTRY_VALUES(registry_number(before_ns), registry_number(max),
                                              registry_text(tenant)),
                              &spent_kind, max, rows, ret_n, "list old executions", err);
}

int registry_execution_bytes(struct registry *registry, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, REGISTRY_RETENTION, SUM_BYTES, NULL,
                                "add up what executions take", ret, err);
}

int registry_tenants_over(struct registry *registry, const char *after, size_t max,
                          struct registry_excess *rows, size_t *ret_n, struct err *err)
{
    return registry_read_rows(registry, REGISTRY_RETENTION, OVER,
                              REGISTRY_VALUES(registry_text(after), registry_number(max)),
                              &excess_kind, max, rows, ret_n, "find tenants over their storage",
                              err);
}

int registry_aged_due(struct registry *registry, enum registry_aged kind, uint64_t due_ns,
                      size_t max, struct registry_aged_row *rows, size_t *ret_n,
                      struct err *err)
{
    return registry_read_rows(registry, REGISTRY_RETENTION,
                              kind == REGISTRY_AGED_FILES ? FILES_DUE : SESSIONS_DUE,
                              REGISTRY_VALUES(registry_number(due_ns), registry_number(max)),
                              &aged_kind, max, rows, ret_n, "list what is old", err);
}

int registry_aged_forget(struct registry *registry, enum registry_aged kind,
                         const struct registry_aged_row *row, uint64_t due_ns, struct err *err)
{
    return registry_put(registry, REGISTRY_RETENTION,
                        kind == REGISTRY_AGED_FILES ? FORGET_FILE : FORGET_SESSION,
                        REGISTRY_VALUES(registry_text(row->tenant), registry_text(row->id),
                                        registry_number(due_ns)),
                        "forget what is old", err);
}

int registry_executions_delete(struct registry *registry, const struct registry_spent *rows,
                               size_t n, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = registry_step(registry, REGISTRY_RETENTION, DELETE,
                          REGISTRY_VALUES(registry_text(rows[i].id)), "delete an execution",
                          err);
    return registry_transaction_end(registry, r, err);
}

int registry_free_pages(struct registry *registry, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, REGISTRY_RETENTION, FREE_PAGES, NULL,
                                "count its free pages", ret, err);
}

int registry_vacuum(struct registry *registry, unsigned pages, uint64_t *ret_left,
                    struct err *err)
{
    char pragma[64];
    int r;

    (void)sqlite3_snprintf(sizeof(pragma), pragma, "PRAGMA incremental_vacuum(%u)", pages);
    r = registry_execute(registry, pragma, "give room back", err);
    return r < 0 ? r : registry_free_pages(registry, ret_left, err);
}

int registry_checkpoint(struct registry *registry, struct err *err)
{
    return registry_execute(registry, "PRAGMA wal_checkpoint(TRUNCATE)", "write back its log",
                            err);
}
