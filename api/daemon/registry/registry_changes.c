/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_changes.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <string.h>

#define TENANT_COLUMNS "id, name, is_disabled, created_ns, " REGISTRY_LIMIT_COLUMNS
#define KEY_COLUMNS    "id, tenant_id, digest, name, is_operator, created_ns, revoked_ns"
#define SKILL_COLUMNS                                                                          \
    "entry, tenant_id, name, version, digest, description, created_ns, bytes, place,"          \
    " is_floating, packages_digest, packages, packages_python"
#define FILE_COLUMNS                                                                           \
    "entry, tenant_id, id, name, content_type, digest, bytes, created_ns, expires_ns"
#define SESSION_COLUMNS                                                                        \
    "entry, tenant_id, id, digest, bytes, files, content_bytes, created_ns, changed_ns,"       \
    " used_ns"
/* Packages that no change has room for are none that can be read. */
#define SKILL_READ                                                                             \
    "SELECT entry, tenant_id, name, version, digest, description, created_ns, bytes, place,"   \
    " is_floating, packages_digest, CASE WHEN length(CAST(packages AS BLOB)) >= "              \
    "8193 THEN '!' ELSE packages END, packages_python FROM skills"

_Static_assert(CHANGE_PACKAGES_SIZE == 8193u, "as of SKILL_READ");

enum statement {
    PUT_TENANT,
    PUT_KEY,
    PUT_SKILL,
    PUT_FILE,
    PUT_SESSION,
    GET_TENANT,
    GET_KEY,
    GET_SKILL,
    GET_FILE,
    GET_SESSION,
    NEXT_TENANT,
    NEXT_KEY,
    NEXT_SKILL,
    NEXT_FILE,
    NEXT_SESSION,
    REMOVE_TENANT,
    REMOVE_KEY,
    REMOVE_SKILL,
    REMOVE_FILE,
    REMOVE_SESSION,
    CLEAR_SKILL,
    CLEAR_FILE,
    CLEAR_SESSION,
    UNNAME,
    REMOVED,
    BUSY,
    N_STATEMENTS
};

#define LIMIT(name, unset, max) ", " #name " = excluded." #name
static const char *const text[N_STATEMENTS] = {
    [PUT_TENANT] =
        "INSERT INTO tenants(" TENANT_COLUMNS ")"
        " VALUES(?1, ?2, ?3, ?4, " REGISTRY_LIMIT_PLACES ")"
        " ON CONFLICT(id) DO UPDATE SET name = excluded.name,"
        " is_removed = 0, is_disabled = excluded.is_disabled, created_ns = excluded.created_ns,"
        " reuse = excluded.reuse, images = excluded.images,"
        " network = excluded.network" TENANT_LIMITS_EACH(LIMIT),
    [PUT_KEY] = "INSERT INTO keys(" KEY_COLUMNS ")"
                " SELECT ?1, id, ?3, ?4, ?5, ?6, NULLIF(?7, 0) FROM tenants WHERE id = ?2"
                " AND NOT is_removed"
                " ON CONFLICT(id) DO UPDATE SET name = excluded.name,"
                " revoked_ns = excluded.revoked_ns",
    [PUT_SKILL] =
        "INSERT INTO skills(" SKILL_COLUMNS ")"
        " SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULLIF(?11, ''), NULLIF(?12, ''), ?13"
        " FROM tenants WHERE id = ?2 AND NOT is_removed"
        " AND NOT EXISTS(SELECT 1 FROM skills WHERE entry = ?1)",
    [PUT_FILE] = "INSERT INTO files(" FILE_COLUMNS ")"
                 " SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM tenants WHERE id = ?2"
                 " AND NOT is_removed AND NOT EXISTS(SELECT 1 FROM files WHERE entry = ?1)",
    [PUT_SESSION] =
        "INSERT INTO sessions(" SESSION_COLUMNS ", told_ns)"
        " SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10 FROM tenants WHERE id = ?2"
        " AND NOT is_removed AND NOT EXISTS(SELECT 1 FROM sessions WHERE entry = ?1)",
    /* What is as it is to be stays, with what is known of it. */
    [CLEAR_SKILL] = "DELETE FROM skills WHERE entry = ?1 AND NOT (tenant_id = ?2 AND name = ?3"
                    " AND version = ?4 AND digest = ?5 AND description = ?6 AND created_ns = ?7"
                    " AND bytes = ?8 AND place = ?9 AND is_floating = ?10"
                    " AND COALESCE(packages_digest, '') = ?11 AND COALESCE(packages, '') = ?12"
                    " AND packages_python = ?13)",
    [CLEAR_FILE] = "DELETE FROM files WHERE entry = ?1 AND NOT (tenant_id = ?2 AND id = ?3"
                   " AND name = ?4 AND content_type = ?5 AND digest = ?6 AND bytes = ?7"
                   " AND created_ns = ?8 AND expires_ns = ?9)",
    /* Also what a node has of one under another entry, as from before it was a cluster's. */
    [CLEAR_SESSION] =
        "DELETE FROM sessions WHERE (entry = ?1 OR (tenant_id = ?2 AND id = ?3))"
        " AND NOT (entry = ?1 AND tenant_id = ?2 AND id = ?3 AND digest = ?4 AND bytes = ?5"
        " AND files = ?6 AND content_bytes = ?7 AND created_ns = ?8 AND changed_ns = ?9"
        " AND told_ns = ?10)",
    [GET_TENANT] = "SELECT " TENANT_COLUMNS " FROM tenants WHERE id = ?1 AND NOT is_removed",
    [GET_KEY] = "SELECT " KEY_COLUMNS " FROM keys WHERE id = ?1",
    [GET_SKILL] = SKILL_READ " WHERE entry = ?1",
    [NEXT_SKILL] = SKILL_READ " WHERE entry > ?1 AND tenant_id NOT IN"
                              " (SELECT id FROM tenants WHERE is_removed)"
                              " ORDER BY entry LIMIT 1",
    [GET_FILE] = "SELECT " FILE_COLUMNS " FROM files WHERE entry = ?1",
    [NEXT_FILE] = "SELECT " FILE_COLUMNS " FROM files WHERE entry > ?1 AND tenant_id NOT IN"
                  " (SELECT id FROM tenants WHERE is_removed) ORDER BY entry LIMIT 1",
    [GET_SESSION] = "SELECT " SESSION_COLUMNS " FROM sessions WHERE entry = ?1",
    [NEXT_SESSION] = "SELECT " SESSION_COLUMNS " FROM sessions WHERE entry > ?1 AND tenant_id"
                     " NOT IN (SELECT id FROM tenants WHERE is_removed)"
                     " ORDER BY entry LIMIT 1",
    [NEXT_TENANT] = "SELECT " TENANT_COLUMNS " FROM tenants WHERE id > ?1 AND NOT is_removed"
                    " ORDER BY id LIMIT 1",
    [NEXT_KEY] = "SELECT " KEY_COLUMNS " FROM keys WHERE id > ?1 AND tenant_id NOT IN"
                 " (SELECT id FROM tenants WHERE is_removed) ORDER BY id LIMIT 1",
    /* Its name is another's to have; no name is an id. */
    [REMOVE_TENANT] = "UPDATE tenants SET name = id, is_disabled = 1, is_removed = 1"
                      " WHERE id = ?1",
    [REMOVE_KEY] = "DELETE FROM keys WHERE id = ?1",
    [REMOVE_SKILL] = "DELETE FROM skills WHERE entry = ?1",
    [REMOVE_FILE] = "DELETE FROM files WHERE entry = ?1",
    [REMOVE_SESSION] = "DELETE FROM sessions WHERE entry = ?1",
    [UNNAME] = "UPDATE tenants SET name = id WHERE id = ?1",
    [REMOVED] = "SELECT id FROM tenants WHERE is_removed AND id > ?1 ORDER BY id LIMIT 1",
    [BUSY] = "SELECT EXISTS(SELECT 1 FROM executions WHERE tenant_id = ?1"
             " AND finished_ns IS NULL AND NOT EXISTS(SELECT 1 FROM records"
             " WHERE records.id = executions.id AND node <> ''))",
};
#undef LIMIT

const struct registry_statements registry_change_statements = {text, N_STATEMENTS};

#define LIMIT(name, unset, max) REGISTRY_COLUMN(REGISTRY_NUMBER, change, tenant.limits.name),
static const struct registry_column tenant_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, change, id),
    REGISTRY_COLUMN(REGISTRY_ID, change, tenant.name),
    REGISTRY_COLUMN(REGISTRY_BOOL, change, tenant.is_disabled),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, tenant.created_ns),
    TENANT_LIMITS_EACH(LIMIT) REGISTRY_COLUMN(REGISTRY_ENUM, change, tenant.limits.reuse),
    REGISTRY_COLUMN(REGISTRY_ID, change, tenant.limits.images),
    REGISTRY_COLUMN(REGISTRY_ID, change, tenant.limits.network),
};
#undef LIMIT

_Static_assert(sizeof(tenant_columns) / sizeof(tenant_columns[0]) <= REGISTRY_PUT_COLUMNS,
               "all of a row are put");

static void mend_tenant(void *row)
{
    registry_mend_limits(&((struct change *)row)->tenant.limits);
}

static const struct registry_column key_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, change, id),
    REGISTRY_COLUMN(REGISTRY_ID, change, key.tenant),
    REGISTRY_COLUMN(REGISTRY_ID, change, key.digest),
    REGISTRY_COLUMN(REGISTRY_ID, change, key.name),
    REGISTRY_COLUMN(REGISTRY_BOOL, change, key.is_operator),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, key.created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, key.revoked_ns),
};

static const struct registry_column skill_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, change, id),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.tenant),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.name),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.version),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.digest),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.description),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, skill.created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, skill.bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, skill.place),
    REGISTRY_COLUMN(REGISTRY_BOOL, change, skill.is_floating),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.packages_digest),
    REGISTRY_COLUMN(REGISTRY_ID, change, skill.packages),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, skill.packages_python),
};

static const struct registry_column file_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, change, id),
    REGISTRY_COLUMN(REGISTRY_ID, change, file.tenant),
    REGISTRY_COLUMN(REGISTRY_ID, change, file.id),
    REGISTRY_COLUMN(REGISTRY_ID, change, file.name),
    REGISTRY_COLUMN(REGISTRY_ID, change, file.content_type),
    REGISTRY_COLUMN(REGISTRY_ID, change, file.digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, file.bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, file.created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, file.expires_ns),
};

static const struct registry_column session_columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, change, id),
    REGISTRY_COLUMN(REGISTRY_ID, change, session.tenant),
    REGISTRY_COLUMN(REGISTRY_ID, change, session.name),
    REGISTRY_COLUMN(REGISTRY_ID, change, session.digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, session.bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, session.files),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, session.content_bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, session.created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, session.changed_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, change, session.used_ns),
};

static const struct registry_rows kinds[] = {
    [CHANGE_TENANT] = {sizeof(struct change), tenant_columns,
                       sizeof(tenant_columns) / sizeof(tenant_columns[0]), mend_tenant},
    [CHANGE_KEY] = REGISTRY_ROWS(change, key_columns),
    [CHANGE_SKILL] = REGISTRY_ROWS(change, skill_columns),
    [CHANGE_FILE] = REGISTRY_ROWS(change, file_columns),
    [CHANGE_SESSION] = REGISTRY_ROWS(change, session_columns),
};

/* By one of its kind's statements, which have its columns as their places. */
static int write_row(struct registry *registry, const struct change *change,
                     enum statement which, struct err *err)
{
    return registry_put_row(registry, REGISTRY_CHANGES, which, &kinds[change->kind], change,
                            "make a change", err);
}

static int put_tenant(struct registry *registry, const struct change *change, struct err *err)
{
    int r = write_row(registry, change, PUT_TENANT, err);

    return r == -EEXIST
               ? err_set(err, EEXIST, "there is a tenant named %s already", change->tenant.name)
               : r;
}

/* Takes away what is there and another. */
static int clear(struct registry *registry, const struct change *change, struct err *err)
{
    int r = write_row(registry, change, CLEAR_SKILL + change->kind - CHANGE_SKILL, err);

    return r == -ENOENT ? 0 : r;
}

/* The same, and puts it where nothing is there any more. */
static int put_anew(struct registry *registry, const struct change *change, struct err *err)
{
    int r = clear(registry, change, err);

    if (r < 0)
        return r;
    return write_row(registry, change, PUT_TENANT + change->kind, err);
}

static int put(struct registry *registry, const struct change *change, struct err *err)
{
    switch (change->kind) {
    case CHANGE_TENANT:
        return put_tenant(registry, change, err);
    case CHANGE_KEY:
        return write_row(registry, change, PUT_KEY, err);
    default:
        return put_anew(registry, change, err);
    }
}

int registry_change_make(struct registry *registry, const struct change *change,
                         struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    return r < 0 ? r : registry_transaction_end(registry, put(registry, change, err), err);
}

int registry_change_check(struct registry *registry, const struct change *change,
                          struct err *err)
{
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    r = put(registry, change, err);
    /* Undone in any case. */
    (void)registry_transaction_end(registry, -ECANCELED, NULL);
    return r;
}

static int read_change(struct registry *registry, enum statement which, enum change_kind kind,
                       const char *id, struct change *ret, struct err *err)
{
    int r =
        registry_read_row(registry, REGISTRY_CHANGES, which, REGISTRY_VALUES(registry_text(id)),
                          &kinds[kind], ret, "look up a row", err);

    ret->kind = kind;
    return r;
}

int registry_change_of(struct registry *registry, enum change_kind kind, const char *id,
                       struct change *ret, struct err *err)
{
    return read_change(registry, GET_TENANT + (enum statement)kind, kind, id, ret, err);
}

int registry_change_after(struct registry *registry, enum change_kind kind, const char *after,
                          struct change *ret, struct err *err)
{
    return read_change(registry, NEXT_TENANT + (enum statement)kind, kind, after, ret, err);
}

/* Changes that are made together. */
struct batch {
    struct registry *registry;
    size_t n;
    registry_change_at *at;
    const void *ctx;
    struct change change; /* the one at work */
    unsigned conflicts;
};

static int step_of(struct batch *b, enum statement which, struct err *err)
{
    return registry_step(b->registry, REGISTRY_CHANGES, which,
                         REGISTRY_VALUES(registry_text(b->change.id)), "make a change", err);
}

/*
 * Names may have gone round between tenants: those that change lose theirs first. What has to
 * be as it was gets it back.
 */
static int put_named(struct batch *b, struct err *err)
{
    struct change before;
    struct err why = {0};
    int r = put_tenant(b->registry, &b->change, &why);

    if (r != -EEXIST) {
        if (r < 0)
            *err = why;
        return r;
    }
    b->conflicts++;
    /* As it was committed: this transaction's own changes are not to be seen there. */
    if (registry_change_of(b->registry, CHANGE_TENANT, b->change.id, &before, NULL) == 0)
        (void)put_tenant(b->registry, &before, NULL);
    return 0;
}

/* A key, or what tenants make. */
static int put_owned(struct batch *b, struct err *err)
{
    int r = put(b->registry, &b->change, err);

    if (r == -EEXIST)
        b->conflicts++;
    return r == -EEXIST || r == -ENOENT ? 0 : r;
}

/* Versions go round between skills, and names between rows, as they do between tenants. */
static int unname_owned(struct batch *b, struct err *err)
{
    if (b->change.is_removed)
        return step_of(b, REMOVE_TENANT + b->change.kind, err);
    return b->change.kind == CHANGE_KEY ? 0 : clear(b->registry, &b->change, err);
}

enum turn { TURN_UNNAME, TURN_TENANTS, TURN_OWNED, TURNS };

static int take_turn(struct batch *b, enum turn turn, struct err *err)
{
    if (b->change.kind != CHANGE_TENANT) {
        if (turn == TURN_OWNED && !b->change.is_removed)
            return put_owned(b, err);
        return turn == TURN_UNNAME ? unname_owned(b, err) : 0;
    }
    if (turn == TURN_UNNAME)
        return step_of(b, b->change.is_removed ? REMOVE_TENANT : UNNAME, err);
    return turn == TURN_TENANTS && !b->change.is_removed ? put_named(b, err) : 0;
}

static int make_all(struct batch *b, const struct change_place *place, struct err *err)
{
    /* First: while there is one, rows are changed one by one. */
    int r = registry_place_put_step(b->registry, REGISTRY_PLACE_OF_CHANGES, place, err);

    for (int turn = 0; r == 0 && turn < TURNS; turn++) {
        for (size_t i = 0; i < b->n; i++) {
            r = b->at(b->ctx, i, &b->change);
            if (r < 0)
                return r;
            r = take_turn(b, (enum turn)turn, err);
            if (r < 0)
                return r;
        }
    }
    return r;
}

int registry_changes_make(struct registry *registry, size_t n, registry_change_at *at,
                          const void *ctx, const struct change_place *place,
                          unsigned *ret_conflicts, struct err *err)
{
    struct batch batch = {.registry = registry, .n = n, .at = at, .ctx = ctx};
    int r = registry_transaction_begin(registry, err);

    if (r < 0)
        return r;
    r = registry_transaction_end(registry, make_all(&batch, place, err), err);
    if (r == 0)
        *ret_conflicts = batch.conflicts;
    return r;
}

int registry_removed_after(struct registry *registry, const char *after,
                           char ret[TENANT_ID_SIZE], struct err *err)
{
    static const struct registry_column id[] = {REGISTRY_COLUMN(REGISTRY_ID, change, id)};
    static const struct registry_rows ids = REGISTRY_ROWS(change, id);
    struct change row;
    int r = registry_read_row(registry, REGISTRY_CHANGES, REMOVED,
                              REGISTRY_VALUES(registry_text(after)), &ids, &row,
                              "look up a tenant", err);

    if (r == 0)
        memcpy(ret, row.id, TENANT_ID_SIZE);
    return r;
}

int registry_tenant_is_busy(struct registry *registry, const char *id, bool *ret,
                            struct err *err)
{
    uint64_t busy = 0;
    int r = registry_read_number(registry, REGISTRY_CHANGES, BUSY,
                                 REGISTRY_VALUES(registry_text(id)), "look up executions",
                                 &busy, err);

    if (r == 0)
        *ret = busy != 0;
    return r;
}
