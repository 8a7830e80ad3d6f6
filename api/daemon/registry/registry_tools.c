/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_tools.h"

#include "api/daemon/registry/registry_internal.h"

#include <errno.h>
#include <sqlite3.h>

enum statement { PUT, GET, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [PUT] = "INSERT OR REPLACE INTO tool_schemas(skill_digest, script, schema)"
            " SELECT ?1, ?2, ?3 WHERE EXISTS(SELECT 1 FROM skills WHERE digest = ?1)",
    [GET] = "SELECT schema FROM tool_schemas WHERE skill_digest = ?1 AND script = ?2",
};

const struct registry_statements registry_tool_statements = {text, N_STATEMENTS};

int registry_tool_schema_put(struct registry *registry, const char *skill_digest,
                             const char *script, const char *schema, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_TOOLS, PUT);

    registry_bind_text(s, 1, skill_digest);
    registry_bind_text(s, 2, script);
    registry_bind_text(s, 3, schema);
    return registry_run(registry, s, "store a tool's schema", err);
}

int registry_tool_schema_get(struct registry *registry, const char *skill_digest,
                             const char *script, char **ret, struct err *err)
{
    sqlite3_stmt *s = registry_begin(registry, REGISTRY_TOOLS, GET);
    int r;

    registry_bind_text(s, 1, skill_digest);
    registry_bind_text(s, 2, script);
    r = registry_fetch(registry, s, "look up a tool's schema", err);
    if (r == 0 && !registry_column_or_null(s, 0, ret))
        r = registry_no_memory(err);
    registry_end(registry, s);
    return r;
}
