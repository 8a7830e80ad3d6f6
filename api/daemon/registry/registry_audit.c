/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_audit.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>
#include <stdlib.h>

#define SELECT "SELECT id, at_ns, tenant_id, actor, action, target, detail FROM audit WHERE "

enum statement { INSERT, LIST, LIST_TENANT, PRUNE, PRUNE_TENANT, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO audit(at_ns, tenant_id, actor, action, target, detail)"
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [LIST] = SELECT "id < ?1 ORDER BY id DESC LIMIT ?2",
    [LIST_TENANT] = SELECT "tenant_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2",
    [PRUNE] = "DELETE FROM audit WHERE id <= (SELECT MAX(id) FROM audit) - ?1",
    [PRUNE_TENANT] = "DELETE FROM audit WHERE tenant_id = ?1 AND id <= (SELECT id FROM audit"
                     " WHERE tenant_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
};

const struct registry_statements registry_audit_statements = {text, N_STATEMENTS};

void registry_audit_finish(struct registry_audit *row)
{
    free(row->tenant);
    free(row->actor);
    free(row->action);
    free(row->target);
    free(row->detail);
    *row = (struct registry_audit){0};
}

int registry_audit_append(struct registry *registry, const struct registry_deed *deed,
                          struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_AUDIT, INSERT);

    registry_bind_u64(s, 1, deed->at_ns);
    registry_bind_text(s, 2, deed->tenant ? deed->tenant : "");
    registry_bind_text(s, 3, deed->actor ? deed->actor : "");
    registry_bind_text(s, 4, deed->action);
    registry_bind_text(s, 5, deed->target ? deed->target : "");
    registry_bind_text(s, 6, deed->detail ? deed->detail : "");
    return registry_run(registry, s, "store an audit row", err);
}

static bool read_row(sqlite3_stmt *s, void *row)
{
    struct registry_audit *ret = row;

    *ret = (struct registry_audit){.id = registry_column_u64(s, 0),
                                   .at_ns = registry_column_u64(s, 1)};
    return registry_column(s, 2, &ret->tenant) && registry_column(s, 3, &ret->actor) &&
           registry_column(s, 4, &ret->action) && registry_column(s, 5, &ret->target) &&
           registry_column(s, 6, &ret->detail);
}

static void finish_row(void *row)
{
    registry_audit_finish(row);
}

static const struct registry_rows kind = {sizeof(struct registry_audit), read_row, finish_row};

int registry_audit_list(struct registry *registry, const char *tenant, uint64_t before_id,
                        size_t max, struct registry_audit *rows, size_t *ret_n, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_AUDIT, tenant ? LIST_TENANT : LIST);

    registry_bind_u64(s, 1, before_id ? before_id : INT64_MAX);
    registry_bind_u64(s, 2, max);
    if (tenant)
        registry_bind_text(s, 3, tenant);
    return registry_read_rows(registry, s, &kind, max, rows, ret_n, "list the audit", err);
}

int registry_audit_prune(struct registry *registry, uint64_t keep, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_AUDIT, PRUNE);

    registry_bind_u64(s, 1, keep);
    return registry_run(registry, s, "prune the audit", err);
}

int registry_audit_prune_tenant(struct registry *registry, const char *tenant, uint64_t keep,
                                struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_AUDIT, PRUNE_TENANT);

    registry_bind_text(s, 1, tenant);
    registry_bind_u64(s, 2, keep);
    return registry_run(registry, s, "prune the audit of a tenant", err);
}
