/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_session_plan.h"

#include "api/daemon/registry/registry_entries.h"
#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum statement { ENTRY_OF, NEXT_USED, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [ENTRY_OF] = "SELECT entry FROM sessions WHERE tenant_id = ?1 AND id = ?2",
    /* Not of those that this daemon has on its own: the servers lack what they hold. */
    [NEXT_USED] = "SELECT entry FROM sessions WHERE entry > ?1 AND used_ns > told_ns"
                  " AND told_ns > 0"
                  " ORDER BY entry LIMIT 1",
};

const struct registry_statements registry_session_plan_statements = {text, N_STATEMENTS};

/* The change that makes the row what it is. */
static int find(struct registry *registry, enum statement which,
                const struct registry_value *values, struct change *ret, struct err *err)
{
    static const struct registry_column entry[] = {REGISTRY_COLUMN(REGISTRY_ID, change, id)};
    static const struct registry_rows entries = REGISTRY_ROWS(change, entry);
    int r = registry_read_row(registry, REGISTRY_SESSION_PLAN, which, values, &entries, ret,
                              "look up a session", err);

    return r < 0 ? r : registry_change_of(registry, CHANGE_SESSION, ret->id, ret, err);
}

static int find_named(struct registry *registry, const char *tenant, const char *id,
                      struct change *ret, struct err *err)
{
    return find(registry, ENTRY_OF, REGISTRY_VALUES(registry_text(tenant), registry_text(id)),
                ret, err);
}

static void fill(const struct registry_session *session, struct change_session *ret)
{
    (void)snprintf(ret->tenant, sizeof(ret->tenant), "%s", session->tenant);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", session->id);
    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", session->digest);
    ret->bytes = session->bytes;
    ret->files = session->files;
    ret->content_bytes = session->content_bytes;
    ret->changed_ns = session->changed_ns;
    ret->used_ns = session->changed_ns;
}

int registry_session_plan(struct registry *registry, const struct registry_session *session,
                          const char *before, struct change *ret, struct err *err)
{
    int r = find_named(registry, session->tenant, session->id, ret, err);

    if (r < 0 && r != -ENOENT)
        return r;
    if (strcmp(r == 0 ? ret->session.digest : "", before) != 0)
        return err_set(err, EADDRINUSE, "session %s was changed at the same time: ask again",
                       session->id);
    if (r == -ENOENT) {
        r = registry_entry_make(registry, CHANGE_SESSION, ret, err);
        ret->session.created_ns = session->changed_ns;
    }
    if (r == 0)
        fill(session, &ret->session);
    return r;
}

int registry_session_plan_delete(struct registry *registry, const char *tenant, const char *id,
                                 uint64_t used_ns, struct change *ret, struct err *err)
{
    int r = find_named(registry, tenant, id, ret, err);

    if (r < 0)
        return r;
    ret->is_removed = true;
    return ret->session.used_ns > used_ns ? -ENOENT : 0;
}

int registry_session_plan_use(struct registry *registry, const char *after, struct change *ret,
                              struct err *err)
{
    return find(registry, NEXT_USED, REGISTRY_VALUES(registry_text(after)), ret, err);
}
