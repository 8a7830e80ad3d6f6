/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit of a cluster: rows of all nodes, in the order of their times, so that a place in a
 * list is the same at each, and each row once, by its entry.
 */
#include "api/daemon/registry/registry_audit_internal.h"
#include "api/daemon/terms/limits.h"

#include <errno.h>
#include <string.h>

#define SELECT                                                                                 \
    "SELECT at_ns, COALESCE(number, id), at_ns, tenant_id, actor, action, target, detail,"     \
    " entry FROM audit WHERE entry IS NOT NULL AND "
#define NEWEST "ORDER BY at_ns DESC, entry DESC LIMIT "
#define OF     "entry >= ?1 || '.' AND entry < ?1 || '/'" /* what comes after a '.' */
#define RANDOM "lower(hex(randomblob(16)))"

enum statement {
    NAME = AUDIT_STATEMENTS,
    RENAME,
    UNTOLD,
    COUNT_UNTOLD,
    TOLD,
    UNTELL_SINCE,
    UNTELL_NEWEST,
    TAKE,
    PRUNE_OTHERS,
    N_STATEMENTS
};

static const char *const text[N_STATEMENTS] = {
    [AUDIT_INSERT] =
        "INSERT INTO audit(at_ns, tenant_id, actor, action, target, detail, entry, told_ns)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7 || '.' || " RANDOM ", 0)",
    [AUDIT_LIST] = SELECT "(at_ns, entry) < (?1, ?4) " NEWEST "?2",
    [AUDIT_LIST_TENANT] = SELECT "tenant_id = ?3 AND (at_ns, entry) < (?1, ?4) " NEWEST "?2",
    /* Whatever others write, what this daemon wrote goes by what it wrote since alone. */
    [AUDIT_PRUNE] = "DELETE FROM audit WHERE entry IS NOT NULL AND (at_ns, entry) <="
                    " (SELECT at_ns, entry FROM audit WHERE entry IS NOT NULL " NEWEST
                    "1 OFFSET ?1) AND (told_ns IS NULL OR id <= (SELECT id FROM audit"
                    " WHERE told_ns IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?1))",
    [AUDIT_PRUNE_TENANT] =
        "DELETE FROM audit WHERE tenant_id = ?1 AND told_ns IS NOT NULL AND id <="
        " (SELECT id FROM audit WHERE tenant_id = ?1 AND told_ns IS NOT NULL"
        " ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    [PRUNE_OTHERS] =
        "DELETE FROM audit WHERE entry IS NOT NULL AND tenant_id = ?1 AND (at_ns, entry) <="
        " (SELECT at_ns, entry FROM audit WHERE entry IS NOT NULL AND tenant_id = ?1 " NEWEST
        "1 OFFSET ?2) AND told_ns IS NULL",
    /* What was written since this was a node the last time, or ever. */
    [NAME] = "UPDATE audit SET entry = ?1 || '.' || " RANDOM ", told_ns ="
             " id <= COALESCE((SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?2), 0)"
             " WHERE entry IS NULL AND id > COALESCE((SELECT id FROM audit NOT INDEXED"
             " WHERE entry IS NOT NULL ORDER BY id DESC LIMIT 1), 0)",
    /* Nobody heard of it under the name that this node had before. */
    [RENAME] = "UPDATE OR IGNORE audit SET entry = ?1 || substr(entry, instr(entry, '.'))"
               " WHERE told_ns = 0 AND NOT (" OF ")",
    [UNTOLD] = "SELECT entry, id, at_ns, tenant_id, actor, action, target, detail FROM audit"
               " WHERE told_ns = 0 AND id > ?1 ORDER BY id LIMIT 1",
    [COUNT_UNTOLD] = "SELECT COUNT(*) FROM audit WHERE told_ns = 0",
    [TOLD] = "UPDATE audit SET told_ns = ?2 WHERE told_ns = 0 AND id <= ?1",
    /* What was told under another name nobody but that may tell. */
    [UNTELL_SINCE] =
        "UPDATE audit INDEXED BY audit_told SET told_ns = 0 WHERE told_ns >= ?2 AND " OF,
    [UNTELL_NEWEST] =
        "UPDATE audit NOT INDEXED SET told_ns = 0 WHERE told_ns > 0 AND " OF " AND id >"
        " COALESCE((SELECT id FROM audit NOT INDEXED WHERE told_ns IS NOT NULL"
        " ORDER BY id DESC LIMIT 1 OFFSET ?2), 0)",
    [TAKE] = "INSERT OR IGNORE INTO audit(at_ns, tenant_id, actor, action, target, detail,"
             " entry, number) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
};

const struct registry_statements registry_audit_shared_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, deed, entry),     REGISTRY_COLUMN(REGISTRY_NUMBER, deed, id),
    REGISTRY_COLUMN(REGISTRY_NUMBER, deed, at_ns), REGISTRY_COLUMN(REGISTRY_ID, deed, tenant),
    REGISTRY_COLUMN(REGISTRY_ID, deed, actor),     REGISTRY_COLUMN(REGISTRY_ID, deed, action),
    REGISTRY_COLUMN(REGISTRY_ID, deed, target),    REGISTRY_COLUMN(REGISTRY_ID, deed, detail),
};
static const struct registry_rows kind = REGISTRY_ROWS(deed, columns);

static int name_rows(struct registry *registry, const char *node, struct err *err)
{
    int r =
        registry_step(registry, REGISTRY_AUDIT_SHARED, NAME,
                      REGISTRY_VALUES(registry_text(node), registry_number(LIMIT_AUDIT_TOLD)),
                      "share the audit", err);

    return r < 0 ? r
                 : registry_step(registry, REGISTRY_AUDIT_SHARED, RENAME,
                                 REGISTRY_VALUES(registry_text(node)), "share the audit", err);
}

int registry_audit_share(struct registry *registry, const char *node, struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    r = registry_transaction_end(registry, name_rows(registry, node, err), err);
    if (r == 0)
        registry_set_audit_node(registry, node);
    return r;
}

int registry_audit_untold(struct registry *registry, uint64_t after_id, struct deed *ret,
                          struct err *err)
{
    return registry_read_row(registry, REGISTRY_AUDIT_SHARED, UNTOLD,
                             REGISTRY_VALUES(registry_number(after_id)), &kind, ret,
                             "look up what is not told of the audit", err);
}

int registry_audit_count_untold(struct registry *registry, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, REGISTRY_AUDIT_SHARED, COUNT_UNTOLD,
                                REGISTRY_VALUES({0}), "count what is not told of the audit",
                                ret, err);
}

int registry_audit_told(struct registry *registry, uint64_t up_to_id, uint64_t now_ns,
                        struct err *err)
{
    return registry_run(registry, REGISTRY_AUDIT_SHARED, TOLD,
                        REGISTRY_VALUES(registry_number(up_to_id), registry_number(now_ns)),
                        "note what is told of the audit", err);
}

int registry_audit_untell(struct registry *registry, uint64_t since_ns, struct err *err)
{
    return registry_run(
        registry, REGISTRY_AUDIT_SHARED, since_ns > 0 ? UNTELL_SINCE : UNTELL_NEWEST,
        REGISTRY_VALUES(registry_text(registry_audit_node(registry)),
                        registry_number(since_ns > 0 ? since_ns : LIMIT_AUDIT_TOLD)),
        "note what is to be told of the audit", err);
}

static int take(struct registry *registry, const struct deed *deed, struct err *err)
{
    return registry_step(
        registry, REGISTRY_AUDIT_SHARED, TAKE,
        REGISTRY_VALUES(registry_number(deed->at_ns), registry_text(deed->tenant),
                        registry_text(deed->actor), registry_text(deed->action),
                        registry_text(deed->target), registry_text(deed->detail),
                        registry_text(deed->entry), registry_number(deed->id)),
        "store an audit row", err);
}

static int prune_others(struct registry *registry, const char *tenant, uint64_t keep,
                        struct err *err)
{
    return registry_step(registry, REGISTRY_AUDIT_SHARED, PRUNE_OTHERS,
                         REGISTRY_VALUES(registry_text(tenant), registry_number(keep)),
                         "prune the audit of a tenant", err);
}

/* A tenant's rows push out its own, after the last of those that come one after the other. */
static int take_all(struct registry *registry, size_t n, registry_deed_at *at, const void *ctx,
                    uint64_t keep, struct err *err)
{
    char tenant[TENANT_ID_SIZE] = "";
    bool some = false;

    for (size_t i = 0; i < n; i++) {
        struct deed deed;
        int r;

        if (at(ctx, i, &deed) < 0)
            continue;
        r = some && strcmp(tenant, deed.tenant) != 0 ? prune_others(registry, tenant, keep, err)
                                                     : 0;
        if (r < 0)
            return r;
        r = take(registry, &deed, err);
        if (r < 0)
            return r;
        memcpy(tenant, deed.tenant, sizeof(tenant));
        some = true;
    }
    return some ? prune_others(registry, tenant, keep, err) : 0;
}

int registry_audit_take(struct registry *registry, size_t n, registry_deed_at *at,
                        const void *ctx, uint64_t keep, const struct change_place *place,
                        struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    r = take_all(registry, n, at, ctx, keep, err);
    return registry_transaction_end(
        registry,
        r < 0 ? r : registry_place_put_step(registry, REGISTRY_PLACE_OF_AUDIT, place, err),
        err);
}
