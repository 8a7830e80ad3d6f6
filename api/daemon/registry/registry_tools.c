/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_tools.h"

#include "api/daemon/registry/registry_internal.h"

#include <sqlite3.h>

enum statement { PUT, GET, N_STATEMENTS };

static const char *const text[N_STATEMENTS] = {
    [PUT] = "INSERT OR REPLACE INTO"
            " tool_schemas(skill_digest, packages_digest, images, script, schema)"
            " SELECT ?1, ?2, ?3, ?4, IIF(LENGTH(CAST(?5 AS BLOB))"
            " + (SELECT COALESCE(SUM(LENGTH(CAST(schema AS BLOB))), 0) FROM tool_schemas WHERE "
            "skill_digest = ?1 AND packages_digest = ?2"
            " AND images = ?3 AND script <> ?4) <= ?6, ?5, NULL)"
            " WHERE EXISTS(SELECT 1 FROM skills WHERE digest = ?1)",
    [GET] = "SELECT schema FROM tool_schemas WHERE skill_digest = ?1 AND packages_digest = ?2"
            " AND images = ?3 AND script = ?4",
};

const struct registry_statements registry_tool_statements = {text, N_STATEMENTS};

int registry_tool_schema_put(struct registry *registry, const struct registry_tool *tool,
                             const char *schema, struct err *err)
{
    return registry_run(
        registry, REGISTRY_TOOLS, PUT,
        REGISTRY_VALUES(registry_text(tool->skill), registry_text(tool->packages),
                        registry_text(tool->images), registry_text(tool->script),
                        registry_text(schema), registry_number(REGISTRY_SCHEMAS_MAX)),
        "store a tool's schema", err);
}

int registry_tool_schema_get(struct registry *registry, const struct registry_tool *tool,
                             char **ret, struct err *err)
{
    static const struct registry_column schema = {REGISTRY_TEXT_OR_NULL, 0, sizeof(*ret)};
    static const struct registry_rows kind = {sizeof(*ret), &schema, 1, NULL};
    return registry_read_row(
        registry, REGISTRY_TOOLS, GET,
        REGISTRY_VALUES(registry_text(tool->skill), registry_text(tool->packages),
                        registry_text(tool->images), registry_text(tool->script)),
        &kind, ret, "look up a tool's schema", err);
}
