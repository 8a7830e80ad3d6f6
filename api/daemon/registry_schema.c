/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry_schema.h"

const char *const registry_schema_steps[REGISTRY_SCHEMA_VERSION] = {
    "CREATE TABLE skills("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " digest TEXT NOT NULL,"
    " description TEXT NOT NULL,"
    " created_ns INTEGER NOT NULL,"
    " UNIQUE(name, version));"
    "CREATE TABLE executions("
    " id TEXT PRIMARY KEY,"
    " status TEXT NOT NULL,"
    " skill_name TEXT NOT NULL,"
    " skill_version TEXT NOT NULL,"
    " skill_digest TEXT NOT NULL,"
    " accepted_ns INTEGER NOT NULL,"
    " finished_ns INTEGER,"
    " result TEXT) WITHOUT ROWID;"
    "CREATE INDEX executions_unfinished ON executions(id) WHERE finished_ns IS NULL;",

    /* Lists that are paged, objects that are counted, keys that make a request one. */
    "CREATE INDEX skills_digest ON skills(digest);"
    "ALTER TABLE executions ADD COLUMN idempotency_key TEXT;"
    "ALTER TABLE executions ADD COLUMN request_digest TEXT;"
    "CREATE UNIQUE INDEX executions_key ON executions(idempotency_key)"
    " WHERE idempotency_key IS NOT NULL;"
    "CREATE INDEX executions_newest ON executions(accepted_ns, id);"
    "CREATE INDEX executions_by_skill ON executions(skill_name, accepted_ns, id);"
    "CREATE INDEX executions_by_status ON executions(status, accepted_ns, id);",
};
