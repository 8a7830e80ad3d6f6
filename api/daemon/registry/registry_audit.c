/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_audit.h"

#include "api/daemon/registry/registry_audit_internal.h"

#define SELECT                                                                                 \
    "SELECT id, COALESCE(number, id), at_ns, tenant_id, actor, action, target, detail,"        \
    " COALESCE(entry, '') FROM audit WHERE "

static const char *const text[AUDIT_STATEMENTS] = {
    [AUDIT_INSERT] = "INSERT INTO audit(at_ns, tenant_id, actor, action, target, detail)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [AUDIT_LIST] = SELECT "id < ?1 ORDER BY id DESC LIMIT ?2",
    [AUDIT_LIST_TENANT] = SELECT "tenant_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2",
    /* By rows that are there: what a tenant's own limit took away makes nobody else's go. */
    [AUDIT_PRUNE] = "DELETE FROM audit WHERE id <= (SELECT id FROM audit"
                    " ORDER BY id DESC LIMIT 1 OFFSET ?1)",
    [AUDIT_PRUNE_TENANT] =
        "DELETE FROM audit WHERE tenant_id = ?1 AND id <= (SELECT id FROM audit"
        " WHERE tenant_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
};

const struct registry_statements registry_audit_statements = {text, AUDIT_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_audit, place),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_audit, id),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_audit, at_ns),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, tenant),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, actor),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, action),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, target),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, detail),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_audit, entry),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_audit, columns);

REGISTRY_FINISH(registry_audit, kind)

static struct registry_value text_or_empty(const char *value)
{
    return registry_text(value ? value : "");
}

/* What AUDIT_INSERT has places for. */
#define INSERTED(row, node)                                                                    \
    REGISTRY_VALUES(registry_number((row)->at_ns), text_or_empty((row)->tenant),               \
                    text_or_empty((row)->actor), registry_text((row)->action),                 \
                    text_or_empty((row)->target), text_or_empty((row)->detail),                \
                    registry_text(node))

/* Whose statements are to be used: this daemon's alone, or those of a cluster. */
static enum registry_part part_of(const struct registry *registry)
{
    return registry_audit_node(registry)[0] ? REGISTRY_AUDIT_SHARED : REGISTRY_AUDIT;
}

int registry_audit_append(struct registry *registry, const struct registry_audit *row,
                          struct err *err)
{
    return registry_run(registry, part_of(registry), AUDIT_INSERT,
                        INSERTED(row, registry_audit_node(registry)), "store an audit row",
                        err);
}

static int add_rows(struct registry *registry, const struct registry_audit *rows, size_t n,
                    uint64_t keep, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        int r = registry_step(registry, part_of(registry), AUDIT_INSERT,
                              INSERTED(&rows[i], registry_audit_node(registry)),
                              "store an audit row", err);

        if (r < 0)
            return r;
    }
    return registry_step(registry, part_of(registry), AUDIT_PRUNE_TENANT,
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

int registry_audit_list(struct registry *registry, const char *tenant, uint64_t before,
                        const char *before_entry, size_t max, struct registry_audit *rows,
                        size_t *ret_n, struct err *err)
{
    return registry_read_rows(
        registry, part_of(registry), tenant ? AUDIT_LIST_TENANT : AUDIT_LIST,
        REGISTRY_VALUES(registry_number(before ? before : INT64_MAX), registry_number(max),
                        registry_text(tenant), registry_text(before_entry)),
        &kind, max, rows, ret_n, "list the audit", err);
}

int registry_audit_prune(struct registry *registry, uint64_t keep, struct err *err)
{
    return registry_run(registry, part_of(registry), AUDIT_PRUNE,
                        REGISTRY_VALUES(registry_number(keep)), "prune the audit", err);
}

int registry_audit_prune_tenant(struct registry *registry, const char *tenant, uint64_t keep,
                                struct err *err)
{
    return registry_run(registry, part_of(registry), AUDIT_PRUNE_TENANT,
                        REGISTRY_VALUES(registry_text(tenant), registry_number(keep)),
                        "prune the audit of a tenant", err);
}
