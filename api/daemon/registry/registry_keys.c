/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_keys.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#define SELECT                                                                                 \
    "SELECT k.id, k.tenant_id, k.name, k.is_operator, t.is_disabled, k.created_ns,"            \
    " k.last_used_ns, k.revoked_ns FROM keys k JOIN tenants t ON t.id = k.tenant_id WHERE "
#define PAGE "(k.created_ns, k.id) < (?1, ?2) ORDER BY k.created_ns DESC, k.id DESC LIMIT ?3"

enum statement { INSERT, BY_DIGEST, LIST, LIST_TENANT, REVOKE, TOUCH, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [INSERT] = "INSERT INTO keys(id, digest, name, is_operator, created_ns, tenant_id)"
               " SELECT ?1, ?2, ?3, ?4, ?5, id FROM tenants WHERE id = ?6",
    [BY_DIGEST] = SELECT "k.digest = ?1",
    [LIST] = SELECT PAGE,
    [LIST_TENANT] = SELECT "k.tenant_id = ?4 AND " PAGE,
    [REVOKE] = "UPDATE keys SET revoked_ns = COALESCE(revoked_ns, ?2) WHERE id = ?1",
    [TOUCH] = "UPDATE keys SET last_used_ns = ?2 WHERE id = ?1",
};

const struct registry_statements registry_key_statements = {text, N_STATEMENTS};

static sqlite3_stmt *begin(struct registry *registry, enum statement which)
{
    return registry_begin(registry, REGISTRY_KEYS, which);
}

void registry_key_finish(struct registry_key *key)
{
    free(key->name);
    *key = (struct registry_key){0};
}

static bool read_row(sqlite3_stmt *s, void *row)
{
    struct registry_key *ret = row;

    registry_column_copy(s, 0, ret->id, sizeof(ret->id));
    registry_column_copy(s, 1, ret->tenant, sizeof(ret->tenant));
    ret->is_operator = sqlite3_column_int(s, 3) != 0;
    ret->tenant_disabled = sqlite3_column_int(s, 4) != 0;
    ret->created_ns = registry_column_u64(s, 5);
    ret->last_used_ns = registry_column_u64(s, 6);
    ret->revoked_ns = registry_column_u64(s, 7);
    return registry_column(s, 2, &ret->name);
}

static void finish_row(void *row)
{
    registry_key_finish(row);
}

static const struct registry_rows kind = {sizeof(struct registry_key), read_row, finish_row};

int registry_key_create(struct registry *registry, const char *tenant,
                        const struct registry_new_key *key, struct err *err)
{
    sqlite3_stmt *s = begin(registry, INSERT);

    registry_bind_text(s, 1, key->id);
    registry_bind_text(s, 2, key->digest);
    registry_bind_text(s, 3, key->name);
    registry_bind_u64(s, 4, key->is_operator);
    registry_bind_u64(s, 5, key->created_ns);
    registry_bind_text(s, 6, tenant);
    return registry_run_on_row(registry, s, "store a key", err);
}

int registry_key_by_digest(struct registry *registry, const char *digest,
                           struct registry_key *ret, struct err *err)
{
    sqlite3_stmt *s = begin(registry, BY_DIGEST);

    registry_bind_text(s, 1, digest);
    return registry_read_row(registry, s, &kind, ret, "look up a key", err);
}

int registry_key_list(struct registry *registry, const char *tenant, uint64_t after_ns,
                      const char *after_id, size_t max, struct registry_key *rows,
                      size_t *ret_n, struct err *err)
{
    sqlite3_stmt *s = begin(registry, tenant ? LIST_TENANT : LIST);

    registry_bind_place(s, after_ns, after_id);
    registry_bind_u64(s, 3, max);
    if (tenant)
        registry_bind_text(s, 4, tenant);
    return registry_read_rows(registry, s, &kind, max, rows, ret_n, "list the keys", err);
}

int registry_key_revoke(struct registry *registry, const char *id, uint64_t now_ns,
                        struct err *err)
{
    sqlite3_stmt *s = begin(registry, REVOKE);

    registry_bind_text(s, 1, id);
    registry_bind_u64(s, 2, now_ns);
    return registry_run_on_row(registry, s, "revoke a key", err);
}

int registry_key_touch(struct registry *registry, const char *id, uint64_t now_ns,
                       struct err *err)
{
    sqlite3_stmt *s = begin(registry, TOUCH);

    registry_bind_text(s, 1, id);
    registry_bind_u64(s, 2, now_ns);
    return registry_run(registry, s, "note the use of a key", err);
}
