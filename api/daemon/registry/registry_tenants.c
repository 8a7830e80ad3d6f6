/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_tenants.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <sqlite3.h>

#define COLUMNS "id, name, is_disabled, created_ns, stored_bytes, " REGISTRY_LIMIT_COLUMNS

enum statement { BY_ID, BY_NAME, LIST, DIGESTS, DELETE_EXECUTIONS, DELETE, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [BY_ID] = "SELECT " COLUMNS " FROM tenants WHERE id = ?1",
    [BY_NAME] =
        "SELECT " COLUMNS " FROM tenants WHERE (id = ?1 OR name = ?1) AND NOT is_removed",
    [LIST] = "SELECT " COLUMNS " FROM tenants WHERE (created_ns, id) < (?1, ?2)"
             " AND NOT is_removed"
             " ORDER BY created_ns DESC, id DESC LIMIT ?3",
    [DIGESTS] = "SELECT digest FROM skills WHERE tenant_id = ?1"
                " UNION SELECT packages_digest FROM skills WHERE tenant_id = ?1"
                " AND packages_digest IS NOT NULL"
                " UNION SELECT digest FROM files WHERE tenant_id = ?1"
                " UNION SELECT digest FROM sessions WHERE tenant_id = ?1"
                " UNION SELECT artifact_digest FROM executions"
                " WHERE tenant_id = ?1 AND artifact_digest IS NOT NULL"
                " UNION SELECT result_digest FROM records WHERE result_digest IS NOT NULL"
                " AND id IN (SELECT id FROM executions WHERE tenant_id = ?1)",
    [DELETE_EXECUTIONS] = "DELETE FROM executions WHERE tenant_id = ?1",
    /* The rest goes with it (ON DELETE CASCADE). */
    [DELETE] = ("DELETE FROM tenants WHERE id = ?1 AND NOT EXISTS(SELECT 1 FROM executions"
                " WHERE tenant_id = ?1 AND finished_ns IS NULL)"),
};

const struct registry_statements registry_tenant_statements = {text, N_STATEMENTS};

#define LIMIT(name, unset, max) REGISTRY_COLUMN(REGISTRY_NUMBER, registry_tenant, limits.name),
static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_tenant, id),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_tenant, name),
    REGISTRY_COLUMN(REGISTRY_BOOL, registry_tenant, is_disabled),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_tenant, created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_tenant, stored_bytes),
    TENANT_LIMITS_EACH(LIMIT) REGISTRY_COLUMN(REGISTRY_ENUM, registry_tenant, limits.reuse),
    REGISTRY_COLUMN(REGISTRY_ID, registry_tenant, limits.images),
    REGISTRY_COLUMN(REGISTRY_ID, registry_tenant, limits.network),
};
#undef LIMIT

void registry_mend_limits(struct tenant_limits *limits)
{
    if (limits->reuse >= TENANT_REUSES)
        limits->reuse = TENANT_REUSE_NEVER;
}

static void mend(void *row)
{
    registry_mend_limits(&((struct registry_tenant *)row)->limits);
}

static const struct registry_rows kind = {sizeof(struct registry_tenant), columns,
                                          sizeof(columns) / sizeof(columns[0]), mend};

REGISTRY_FINISH(registry_tenant, kind)

static int find(struct registry *registry, enum statement which, const char *id,
                struct registry_tenant *ret, struct err *err)
{
    return registry_read_row(registry, REGISTRY_TENANTS, which,
                             REGISTRY_VALUES(registry_text(id)), &kind, ret, "look up a tenant",
                             err);
}

int registry_tenant_get(struct registry *registry, const char *id, struct registry_tenant *ret,
                        struct err *err)
{
    return find(registry, BY_ID, id, ret, err);
}

int registry_tenant_find(struct registry *registry, const char *id_or_name,
                         struct registry_tenant *ret, struct err *err)
{
    return find(registry, BY_NAME, id_or_name, ret, err);
}

int registry_tenant_list(struct registry *registry, uint64_t after_ns, const char *after_id,
                         size_t max, struct registry_tenant *rows, size_t *ret_n,
                         struct err *err)
{
    return registry_read_rows(registry, REGISTRY_TENANTS, LIST,
                              REGISTRY_VALUES(registry_after(after_ns, after_id),
                                              registry_after_id(after_id),
                                              registry_number(max)),
                              &kind, max, rows, ret_n, "list the tenants", err);
}

int registry_tenant_check_room(struct registry *registry, const char *id, uint64_t bytes,
                               struct err *err)
{
    _cleanup_registry_tenant_ struct registry_tenant row = {0};
    uint64_t limit, left;
    int r = registry_tenant_get(registry, id, &row, err);

    if (r < 0)
        return r;
    limit = row.limits.storage_bytes;
    left = row.stored_bytes < limit ? limit - row.stored_bytes : 0;
    if (limit > 0 && bytes > left)
        return err_set(err, EDQUOT,
                       "storage_bytes: %llu of %llu bytes are in use, %llu more do not fit: "
                       "remove skills, files or sessions",
                       (unsigned long long)row.stored_bytes, (unsigned long long)limit,
                       (unsigned long long)bytes);
    return 0;
}

int registry_tenant_digests(struct registry *registry, const char *id,
                            registry_digest_visit *visit, void *ctx, struct err *err)
{
    sqlite3_stmt *s =
        registry_begin(registry, REGISTRY_TENANTS, DIGESTS, REGISTRY_VALUES(registry_text(id)));
    int step = SQLITE_DONE, r = 0;

    while (r == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        r = visit(ctx, (const char *)sqlite3_column_text(s, 0));
    if (r == 0 && step != SQLITE_DONE)
        r = registry_error(registry, REGISTRY_TENANTS, DIGESTS, err,
                           "list the objects of a tenant");
    registry_end(registry, REGISTRY_TENANTS, DIGESTS, s);
    return r;
}

static int delete_rows(struct registry *registry, const char *id, struct err *err)
{
    const struct registry_value *values = REGISTRY_VALUES(registry_text(id));
    int r = registry_step(registry, REGISTRY_TENANTS, DELETE, values, "delete a tenant", err);

    if (r < 0)
        return r;
    if (registry_changes(registry) == 0)
        return err_set(err, EBUSY, "executions of this tenant wait or run");
    return registry_step(registry, REGISTRY_TENANTS, DELETE_EXECUTIONS, values,
                         "delete a tenant's executions", err);
}

int registry_tenant_delete(struct registry *registry, const char *id, struct err *err)
{
    _cleanup_registry_tenant_ struct registry_tenant tenant = {0};
    int r = registry_tenant_get(registry, id, &tenant, err);

    if (r < 0)
        return r;
    r = registry_transaction_begin(registry, err);
    return r < 0 ? r : registry_transaction_end(registry, delete_rows(registry, id, err), err);
}
