/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_sessions.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>

#define SELECT                                                                                 \
    "SELECT tenant_id, id, digest, bytes, files, content_bytes, created_ns, changed_ns,"       \
    " used_ns FROM sessions WHERE "

enum statement { PUT, BY_ID, LIST, COUNT, ALL, BYTES, USE, CHANGE, DELETE, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [PUT] = "INSERT INTO sessions(tenant_id, id, digest, bytes, files, content_bytes,"
            " created_ns, changed_ns, used_ns, entry)"
            " SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?7, 'ses_' || lower(hex(randomblob(16)))"
            " FROM tenants WHERE id = ?1"
            " ON CONFLICT(tenant_id, id) DO UPDATE SET digest = ?3, bytes = ?4, files = ?5,"
            " content_bytes = ?6, changed_ns = ?7, used_ns = ?7",
    [BY_ID] = SELECT "tenant_id = ?1 AND id = ?2",
    [LIST] = SELECT "tenant_id = ?1 ORDER BY changed_ns DESC, id DESC LIMIT ?2",
    [COUNT] = "SELECT COUNT(*) FROM sessions WHERE tenant_id = ?1",
    [ALL] = "SELECT COUNT(*) FROM sessions",
    [BYTES] = "SELECT COALESCE(SUM(bytes), 0) FROM sessions",
    [USE] = "UPDATE sessions SET used_ns = ?3 WHERE tenant_id = ?1 AND id = ?2",
    [CHANGE] = "UPDATE sessions SET digest = ?4, bytes = ?5, files = ?6, content_bytes = ?7,"
               " changed_ns = ?8, used_ns = ?8 WHERE tenant_id = ?1 AND id = ?2 AND"
               " digest = ?3",
    [DELETE] = "DELETE FROM sessions WHERE tenant_id = ?1 AND id = ?2",
};

const struct registry_statements registry_session_statements = {text, N_STATEMENTS};

static const struct registry_column columns[] = {
    REGISTRY_COLUMN(REGISTRY_ID, registry_session, tenant),
    REGISTRY_COLUMN(REGISTRY_ID, registry_session, id),
    REGISTRY_COLUMN(REGISTRY_TEXT, registry_session, digest),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_session, bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_session, files),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_session, content_bytes),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_session, created_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_session, changed_ns),
    REGISTRY_COLUMN(REGISTRY_NUMBER, registry_session, used_ns),
};
static const struct registry_rows kind = REGISTRY_ROWS(registry_session, columns);

REGISTRY_FINISH(registry_session, kind)

int registry_session_put(struct registry *registry, const struct registry_session *session,
                         struct err *err)
{
    return registry_step(
        registry, REGISTRY_SESSIONS, PUT,
        REGISTRY_VALUES(registry_text(session->tenant), registry_text(session->id),
                        registry_text(session->digest), registry_number(session->bytes),
                        registry_number(session->files),
                        registry_number(session->content_bytes),
                        registry_number(session->changed_ns)),
        "store a session", err);
}

int registry_session_get(struct registry *registry, const char *tenant, const char *id,
                         struct registry_session *ret, struct err *err)
{
    return registry_read_row(registry, REGISTRY_SESSIONS, BY_ID,
                             REGISTRY_VALUES(registry_text(tenant), registry_text(id)), &kind,
                             ret, "look up a session", err);
}

int registry_session_list(struct registry *registry, const char *tenant, size_t max,
                          struct registry_session *rows, size_t *ret_n, struct err *err)
{
    return registry_read_rows(registry, REGISTRY_SESSIONS, LIST,
                              REGISTRY_VALUES(registry_text(tenant), registry_number(max)),
                              &kind, max, rows, ret_n, "list sessions", err);
}

int registry_session_count(struct registry *registry, const char *tenant, uint64_t *ret,
                           struct err *err)
{
    return registry_read_number(registry, REGISTRY_SESSIONS, COUNT,
                                REGISTRY_VALUES(registry_text(tenant)), "count sessions", ret,
                                err);
}

int registry_session_totals(struct registry *registry, uint64_t *ret_n, uint64_t *ret_bytes,
                            struct err *err)
{
    int r = registry_read_number(registry, REGISTRY_SESSIONS, ALL, NULL, "count sessions",
                                 ret_n, err);

    return r < 0 ? r
                 : registry_read_number(registry, REGISTRY_SESSIONS, BYTES, NULL,
                                        "add up what sessions take", ret_bytes, err);
}

int registry_session_use(struct registry *registry, const char *tenant, const char *id,
                         uint64_t now_ns, struct err *err)
{
    return registry_put(
        registry, REGISTRY_SESSIONS, USE,
        REGISTRY_VALUES(registry_text(tenant), registry_text(id), registry_number(now_ns)),
        "renew a session", err);
}

int registry_session_change(struct registry *registry, const struct registry_session *session,
                            const char *before, struct err *err)
{
    return registry_put(
        registry, REGISTRY_SESSIONS, CHANGE,
        REGISTRY_VALUES(registry_text(session->tenant), registry_text(session->id),
                        registry_text(before), registry_text(session->digest),
                        registry_number(session->bytes), registry_number(session->files),
                        registry_number(session->content_bytes),
                        registry_number(session->changed_ns)),
        "change a session", err);
}

int registry_session_delete(struct registry *registry, const char *tenant, const char *id,
                            struct err *err)
{
    return registry_put(registry, REGISTRY_SESSIONS, DELETE,
                        REGISTRY_VALUES(registry_text(tenant), registry_text(id)),
                        "delete a session", err);
}
