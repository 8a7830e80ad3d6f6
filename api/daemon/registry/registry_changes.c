/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_changes.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>

#define TENANT_COLUMNS "id, name, is_disabled, created_ns, " REGISTRY_LIMIT_COLUMNS
#define KEY_COLUMNS    "id, tenant_id, digest, name, is_operator, created_ns, revoked_ns"

enum statement { PUT_TENANT, PUT_KEY, GET_TENANT, GET_KEY, N_STATEMENTS };

#define LIMIT(name, unset, max) ", " #name " = excluded." #name
static const char *const text[N_STATEMENTS] = {
    [PUT_TENANT] = "INSERT INTO tenants(" TENANT_COLUMNS ")"
                   " VALUES(?1, ?2, ?3, ?4, " REGISTRY_LIMIT_PLACES ")"
                   " ON CONFLICT(id) DO UPDATE SET name = excluded.name,"
                   " is_disabled = excluded.is_disabled, created_ns = excluded.created_ns,"
                   " reuse = excluded.reuse, images = excluded.images,"
                   " network = excluded.network" TENANT_LIMITS_EACH(LIMIT),
    [PUT_KEY] = "INSERT INTO keys(" KEY_COLUMNS ")"
                " SELECT ?1, id, ?3, ?4, ?5, ?6, NULLIF(?7, 0) FROM tenants WHERE id = ?2"
                " ON CONFLICT(id) DO UPDATE SET name = excluded.name,"
                " revoked_ns = excluded.revoked_ns",
    [GET_TENANT] = "SELECT " TENANT_COLUMNS " FROM tenants WHERE id = ?1",
    [GET_KEY] = "SELECT " KEY_COLUMNS " FROM keys WHERE id = ?1",
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

static void mend_tenant(void *row)
{
    struct change *change = row;

    change->kind = CHANGE_TENANT;
    registry_mend_limits(&change->tenant.limits);
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

static void mend_key(void *row)
{
    ((struct change *)row)->kind = CHANGE_KEY;
}

static const struct registry_rows kinds[] = {
    [CHANGE_TENANT] = {sizeof(struct change), tenant_columns,
                       sizeof(tenant_columns) / sizeof(tenant_columns[0]), mend_tenant},
    [CHANGE_KEY] = {sizeof(struct change), key_columns,
                    sizeof(key_columns) / sizeof(key_columns[0]), mend_key},
};

static int put_tenant(struct registry *registry, const char *id,
                      const struct change_tenant *tenant, struct err *err)
{
#define LIMIT(name, unset, max) registry_number(tenant->limits.name),
    const struct registry_value *values = REGISTRY_VALUES(
        registry_text(id), registry_text(tenant->name), registry_number(tenant->is_disabled),
        registry_number(tenant->created_ns),
        TENANT_LIMITS_EACH(LIMIT) registry_number(tenant->limits.reuse),
        registry_text(tenant->limits.images), registry_text(tenant->limits.network));
#undef LIMIT
    int r = registry_put(registry, REGISTRY_CHANGES, PUT_TENANT, values, "store a tenant", err);

    return r == -EEXIST
               ? err_set(err, EEXIST, "there is a tenant named %s already", tenant->name)
               : r;
}

static int put_key(struct registry *registry, const char *id, const struct change_key *key,
                   struct err *err)
{
    return registry_put(registry, REGISTRY_CHANGES, PUT_KEY,
                        REGISTRY_VALUES(registry_text(id), registry_text(key->tenant),
                                        registry_text(key->digest), registry_text(key->name),
                                        registry_number(key->is_operator),
                                        registry_number(key->created_ns),
                                        registry_number(key->revoked_ns)),
                        "store a key", err);
}

int registry_change_make(struct registry *registry, const struct change *change,
                         struct err *err)
{
    return change->kind == CHANGE_TENANT
               ? put_tenant(registry, change->id, &change->tenant, err)
               : put_key(registry, change->id, &change->key, err);
}

int registry_change_of(struct registry *registry, enum change_kind kind, const char *id,
                       struct change *ret, struct err *err)
{
    return registry_read_row(
        registry, REGISTRY_CHANGES, kind == CHANGE_TENANT ? GET_TENANT : GET_KEY,
        REGISTRY_VALUES(registry_text(id)), &kinds[kind], ret, "look up a row", err);
}
