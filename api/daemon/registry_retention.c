/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry_retention.h"

#include "api/daemon/registry_internal.h"

#include <sqlite3.h>

enum statement { DELETE, SET_ARTIFACT, FREE_PAGES, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [DELETE] = "DELETE FROM executions WHERE id = ?1 AND finished_ns IS NOT NULL",
    [SET_ARTIFACT] = ("UPDATE executions SET artifact_digest = ?2, artifact_bytes = ?3"
                      " WHERE id = ?1 AND finished_ns IS NOT NULL"),
    [FREE_PAGES] = "PRAGMA freelist_count",
};

const struct registry_statements registry_retention_statements = {text, N_STATEMENTS};

static sqlite3_stmt *begin(struct registry *registry, enum statement which)
{
    return registry_begin(registry, REGISTRY_RETENTION, which);
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

int registry_execution_set_artifact(struct registry *registry, const char *id,
                                    const char *digest, uint64_t bytes, struct err *err)
{
    sqlite3_stmt *s = begin(registry, SET_ARTIFACT);

    registry_bind_text(s, 1, id);
    registry_bind_text(s, 2, digest);
    registry_bind_u64(s, 3, bytes);
    return registry_run_on_row(registry, s, "name the files of an execution", err);
}

int registry_free_pages(struct registry *registry, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *s = begin(registry, FREE_PAGES);
    int r = 0;

    if (sqlite3_step(s) == SQLITE_ROW)
        *ret = registry_column_u64(s, 0);
    else
        r = registry_error(registry, err, "count its free pages");
    registry_end(registry, s);
    return r;
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
