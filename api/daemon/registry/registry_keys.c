/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_keys.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>

#define SELECT                                                                                 \
    "SELECT k.id, k.tenant_id, k.name, k.is_operator, t.is_disabled, k.created_ns,"            \
    " k.last_used_ns, k.revoked_ns FROM keys k JOIN tenants t ON t.id = k.tenant_id WHERE "
#define PAGE "(k.created_ns, k.id) < (?1, ?2) ORDER BY k.created_ns DESC, k.id DESC LIMIT ?3"

enum statement { BY_DIGEST, LIST, LIST_TENANT, TOUCH, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [BY_DIGEST] = SELECT "k.digest = ?1",
    [LIST] = SELECT PAGE,
    [LIST_TENANT] = SELECT "k.tenant_id = ?4 AND " PAGE,
    [TOUCH] = "UPDATE keys SET last_used_ns = ?2 WHERE id = ?1",
};

const struct registry_statements registry_key_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_key, id),
    REGISTRY_COLUMN(REGISTRY_ID, registry_key, tenant),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_key, name),
    REGISTRY_COLUMN(REGISTRY_BOOL, registry_key, is_operator),
    REGISTRY_COLUMN(REGISTRY_BOOL, registry_key, tenant_disabled),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_key, created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_key, last_used_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_key, revoked_ns),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_key, columns);

REGISTRY_FINISH(registry_key, kind)

int registry_key_by_digest(struct registry *registry, const char *digest,
                           struct registry_key *ret, struct err *err)
{
    return registry_read_row(registry, REGISTRY_KEYS, BY_DIGEST,
                             REGISTRY_VALUES(registry_text(digest)), &kind, ret,
                             "look up a key", err);
}

int registry_key_list(struct registry *registry, const char *tenant, uint64_t after_ns,
                      const char *after_id, size_t max, struct registry_key *rows,
                      size_t *ret_n, struct err *err)
{
    return registry_read_rows(registry, REGISTRY_KEYS, tenant ? LIST_TENANT : LIST,
                              REGISTRY_VALUES(registry_after(after_ns, after_id),
                                              registry_after_id(after_id), registry_number(max),
                                              registry_text(tenant)),
                              &kind, max, rows, ret_n, "list the keys", err);
}

int registry_key_touch(struct registry *registry, const char *id, uint64_t now_ns,
                       struct err *err)
{
    return registry_run(registry, REGISTRY_KEYS, TOUCH,
                        REGISTRY_VALUES(registry_text(id), registry_number(now_ns)),
                        "note the use of a key", err);
}
