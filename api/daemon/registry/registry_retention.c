/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_retention.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>
#include <stdlib.h>

enum statement { SPENT, SPENT_OF, SUM_BYTES, OVER, DELETE, FREE_PAGES, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [SPENT] = ("SELECT id, artifact_digest, result_bytes + artifact_bytes FROM executions"
               " WHERE finished_ns IS NOT NULL AND finished_ns < ?1"
               " ORDER BY finished_ns, id LIMIT ?2"),
    [SPENT_OF] = ("SELECT id, artifact_digest, result_bytes + artifact_bytes FROM executions"
                  " WHERE tenant_id = ?3 AND finished_ns IS NOT NULL AND finished_ns < ?1"
                  " ORDER BY accepted_ns, id LIMIT ?2"),
    /* Triggers keep what tenants store: what is no skill and no file of it is executions'. */
    [SUM_BYTES] = ("SELECT (SELECT COALESCE(SUM(stored_bytes), 0) FROM tenants)"
                   " - (SELECT COALESCE(SUM(bytes), 0) FROM skills)"
                   " - (SELECT COALESCE(SUM(bytes), 0) FROM files)"),
    [OVER] = ("SELECT id, stored_bytes - storage_bytes FROM tenants"
              " WHERE storage_bytes > 0 AND stored_bytes > storage_bytes AND id > ?1"
              " ORDER BY id LIMIT ?2"),
    [DELETE] = "DELETE FROM executions WHERE id = ?1 AND finished_ns IS NOT NULL",
    [FREE_PAGES] = "PRAGMA freelist_count",
};

const struct registry_statements registry_retention_statements = {text, N_STATEMENTS};

static sqlite3_stmt *begin(struct registry *registry, enum statement which)
{
    return registry_begin(registry, REGISTRY_RETENTION, which);
}

void registry_spent_finish(struct registry_spent *spent)
{
    free(spent->id);
    free(spent->artifact_digest);
    *spent = (struct registry_spent){0};
}

static bool read_spent(sqlite3_stmt *s, void *row)
{
    struct registry_spent *ret = row;

    ret->bytes = registry_column_u64(s, 2);
    return registry_column(s, 0, &ret->id) &&
           registry_column_or_null(s, 1, &ret->artifact_digest);
}

static void finish_spent(void *row)
{
    registry_spent_finish(row);
}

int registry_execution_spent(struct registry *registry, const char *tenant, uint64_t before_ns,
                             size_t max, struct registry_spent *rows, size_t *ret_n,
                             struct err *err)
{
    sqlite3_stmt *s = begin(registry, tenant ? SPENT_OF : SPENT);
    const struct registry_rows kind = {sizeof(*rows), read_spent, finish_spent};

    registry_bind_u64(s, 1, before_ns);
    registry_bind_u64(s, 2, max);
    if (tenant)
        registry_bind_text(s, 3, tenant);
    return registry_read_rows(registry, s, &kind, max, rows, ret_n, "list old executions", err);
}

int registry_execution_bytes(struct registry *registry, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, begin(registry, SUM_BYTES),
                                "add up what executions take", ret, err);
}

static bool read_excess(sqlite3_stmt *s, void *row)
{
    struct registry_excess *ret = row;

    registry_column_copy(s, 0, ret->tenant, sizeof(ret->tenant));
    ret->bytes = registry_column_u64(s, 1);
    return true;
}

static void finish_excess(void *row)
{
    (void)row;
}

int registry_tenants_over(struct registry *registry, const char *after, size_t max,
                          struct registry_excess *rows, size_t *ret_n, struct err *err)
{
    sqlite3_stmt *s = begin(registry, OVER);
    const struct registry_rows kind = {sizeof(*rows), read_excess, finish_excess};

    registry_bind_text(s, 1, after);
    registry_bind_u64(s, 2, max);
    return registry_read_rows(registry, s, &kind, max, rows, ret_n,
                              "find tenants over their storage", err);
}

int registry_executions_delete(struct registry *registry, const struct registry_spent *rows,
                               size_t n, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = registry_step_for(registry, REGISTRY_RETENTION, DELETE, rows[i].id,
                              "delete an execution", err);
    return registry_transaction_end(registry, r, err);
}

int registry_free_pages(struct registry *registry, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, begin(registry, FREE_PAGES), "count its free pages",
                                ret, err);
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
