/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_audit.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>

#define SELECT "SELECT id, at_ns, tenant_id, actor, action, target, detail FROM audit WHERE "

enum statement { INSERT, LIST, LIST_TENANT, PRUNE, PRUNE_TENANT, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO audit(at_ns, tenant_id, actor, action, target, detail)"
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [LIST] = SELECT "id < ?1 ORDER BY id DESC LIMIT ?2",
    [LIST_TENANT] = SELECT "tenant_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2",
    /* By rows that are there: what a tenant's own limit took away makes nobody else's go. */
    [PRUNE] = "DELETE FROM audit WHERE id <= (SELECT id FROM audit"
              " ORDER BY id DESC LIMIT 1 OFFSET ?1)",
    [PRUNE_TENANT] = "DELETE FROM audit WHERE tenant_id = ?1 AND id <= (SELECT id FROM audit"
                     " WHERE tenant_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
};

const struct registry_statements registry_audit_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_audit, id),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_audit, at_ns),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, tenant),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, actor),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, action),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, target),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, detail),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_audit, columns);

REGISTRY_FINISH(registry_audit, kind)

static struct registry_value text_or_empty(const char *value)
{
    return registry_text(value ? value : "");
}

/* What INSERT has places for. */
#define INSERTED(row)                                                                          \
    REGISTRY_VALUES(registry_number((row)->at_ns), text_or_empty((row)->tenant),               \
                    text_or_empty((row)->actor), registry_text((row)->action),                 \
                    text_or_empty((row)->target), text_or_empty((row)->detail))

int registry_audit_append(struct registry *registry, const struct registry_audit *row,
                          struct err *err)
{
    return registry_run(registry, REGISTRY_AUDIT, INSERT, INSERTED(row), "store an audit row",
                        err);
}

static int add_rows(struct registry *registry, const struct registry_audit *rows, size_t n,
                    uint64_t keep, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        int r = registry_step(registry, REGISTRY_AUDIT, INSERT, INSERTED(&rows[i]),
                              "store an audit row", err);

        if (r < 0)
            return r;
    }
    return registry_step(registry, REGISTRY_AUDIT, PRUNE_TENANT,
                         REGISTRY_VALUES(registry_text(rows[0].tenant), registry_number(keep)),
                         "prune the audit of a tenant", err);
}

int registry_audit_append_all(struct registry *registry, const struct registry_audit *rows,
                              size_t n, uint64_t keep, struct err *err)
{
    int r = n > 0 ? registry_transaction_begin(registry, err) : 0;

    if (n == 0 || r < 0)
        return r;
    return registry_transaction_end(registry, add_rows(registry, rows, n, keep, err), err);
}

int registry_audit_list(struct registry *registry, const char *tenant, uint64_t before_id,
                        size_t max, struct registry_audit *rows, size_t *ret_n, struct err *err)
{
    return registry_read_rows(
        registry, REGISTRY_AUDIT, tenant ? LIST_TENANT : LIST,
        REGISTRY_VALUES(registry_number(before_id ? before_id : INT64_MAX),
                        registry_number(max), registry_text(tenant)),
        &kind, max, rows, ret_n, "list the audit", err);
}

int registry_audit_prune(struct registry *registry, uint64_t keep, struct err *err)
{
    return registry_run(registry, REGISTRY_AUDIT, PRUNE, REGISTRY_VALUES(registry_number(keep)),
                        "prune the audit", err);
}

int registry_audit_prune_tenant(struct registry *registry, const char *tenant, uint64_t keep,
                                struct err *err)
{
    return registry_run(registry, REGISTRY_AUDIT, PRUNE_TENANT,
                        REGISTRY_VALUES(registry_text(tenant), registry_number(keep)),
                        "prune the audit of a tenant", err);
}
