/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_schema.h"

const char *const registry_schema_steps[REGISTRY_SCHEMA_VERSION] = {
    /*
     * Tenants own what there is. Triggers keep tenants.stored_bytes: what a tenant's skills,
     * files and results take.
     */
    "CREATE TABLE tenants("
    " id TEXT PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " created_ns INTEGER NOT NULL,"
    " is_disabled INTEGER NOT NULL DEFAULT 0,"
    " stored_bytes INTEGER NOT NULL DEFAULT 0,"
    " weight INTEGER NOT NULL,"
    " max_running INTEGER NOT NULL DEFAULT 0,"
    " max_queued INTEGER NOT NULL DEFAULT 0,"
    " rate_per_minute INTEGER NOT NULL DEFAULT 0,"
    " cpu_ms_per_day INTEGER NOT NULL DEFAULT 0,"
    " storage_bytes INTEGER NOT NULL DEFAULT 0,"
    " max_timeout_ms INTEGER NOT NULL DEFAULT 0,"
    " max_memory_bytes INTEGER NOT NULL DEFAULT 0,"
    " reuse INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;" /* an enum tenant_reuse */
    "CREATE INDEX tenants_newest ON tenants(created_ns, id);"
    "INSERT INTO tenants(id, name, created_ns, weight)"
    " VALUES('default', 'default', strftime('%s', 'now') * 1000000000, 10);"

    "CREATE TABLE keys("
    " id TEXT PRIMARY KEY,"
    " tenant_id TEXT NOT NULL REFERENCES tenants(id) ON DELETE CASCADE,"
    " digest TEXT NOT NULL UNIQUE,"
    " name TEXT NOT NULL,"
    " is_operator INTEGER NOT NULL,"
    " created_ns INTEGER NOT NULL,"
    " last_used_ns INTEGER,"
    " revoked_ns INTEGER) WITHOUT ROWID;"
    "CREATE INDEX keys_newest ON keys(created_ns, id);"
    "CREATE INDEX keys_by_tenant ON keys(tenant_id, created_ns, id);"

    "CREATE TABLE skills("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " tenant_id TEXT NOT NULL REFERENCES tenants(id) ON DELETE CASCADE,"
    " name TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " digest TEXT NOT NULL,"
    " description TEXT NOT NULL,"
    " created_ns INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL DEFAULT 0,"
    " UNIQUE(tenant_id, name, version));"
    "CREATE INDEX skills_digest ON skills(digest);"

    /*
     * A result may have many MiB. It is the last column of its row, and rows are found by small
     * ones: no look-up of another row reads it.
     */
    "CREATE TABLE executions("
    " id TEXT PRIMARY KEY NOT NULL,"
    " tenant_id TEXT NOT NULL,"
    " status TEXT NOT NULL,"
    " skill_name TEXT NOT NULL,"
    " skill_version TEXT NOT NULL,"
    " skill_digest TEXT NOT NULL,"
    " accepted_ns INTEGER NOT NULL,"
    " finished_ns INTEGER,"
    " idempotency_key TEXT,"
    " request_digest TEXT,"
    " artifact_digest TEXT,"
    " artifact_bytes INTEGER NOT NULL DEFAULT 0,"
    " result_bytes INTEGER NOT NULL DEFAULT 0,"
    " result TEXT);"
    "CREATE INDEX executions_unfinished ON executions(tenant_id, id) WHERE finished_ns IS NULL;"
    "CREATE UNIQUE INDEX executions_key ON executions(tenant_id, idempotency_key)"
    " WHERE idempotency_key IS NOT NULL;"
    "CREATE INDEX executions_newest ON executions(tenant_id, accepted_ns, id);"
    "CREATE INDEX executions_by_skill ON executions(tenant_id, skill_name, accepted_ns, id);"
    "CREATE INDEX executions_by_status ON executions(tenant_id, status, accepted_ns, id);"
    "CREATE INDEX executions_finished ON executions(finished_ns, id)"
    " WHERE finished_ns IS NOT NULL;"
    "CREATE INDEX executions_artifact ON executions(artifact_digest)"
    " WHERE artifact_digest IS NOT NULL;"

    "CREATE TABLE files("
    " id TEXT PRIMARY KEY,"
    " tenant_id TEXT NOT NULL REFERENCES tenants(id) ON DELETE CASCADE,"
    " name TEXT NOT NULL,"
    " content_type TEXT NOT NULL DEFAULT 'application/octet-stream',"
    " digest TEXT NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " created_ns INTEGER NOT NULL,"
    " expires_ns INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX files_newest ON files(tenant_id, created_ns, id);"
    "CREATE INDEX files_digest ON files(digest);"
    "CREATE INDEX files_expiry ON files(expires_ns, id);"

    "CREATE TABLE usage("
    " tenant_id TEXT NOT NULL REFERENCES tenants(id) ON DELETE CASCADE,"
    " day INTEGER NOT NULL," /* since 1970 */
    " cpu_ms INTEGER NOT NULL,"
    " PRIMARY KEY(tenant_id, day)) WITHOUT ROWID;"

    /* It outlives the tenants and keys it tells of. */
    "CREATE TABLE audit("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " at_ns INTEGER NOT NULL,"
    " tenant_id TEXT NOT NULL,"
    " actor TEXT NOT NULL,"
    " action TEXT NOT NULL,"
    " target TEXT NOT NULL,"
    " detail TEXT NOT NULL);"
    "CREATE INDEX audit_by_tenant ON audit(tenant_id, id);"

    /* What introspection found of a script; NULL: nothing. */
    "CREATE TABLE tool_schemas("
    " skill_digest TEXT NOT NULL,"
    " script TEXT NOT NULL,"
    " schema TEXT,"
    " PRIMARY KEY(skill_digest, script)) WITHOUT ROWID;"

    "CREATE TRIGGER skills_stored AFTER INSERT ON skills BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes + NEW.bytes WHERE id = NEW.tenant_id; END;"
    "CREATE TRIGGER skills_freed AFTER DELETE ON skills BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes - OLD.bytes WHERE id = OLD.tenant_id;"
    " DELETE FROM tool_schemas WHERE skill_digest = OLD.digest"
    " AND NOT EXISTS(SELECT 1 FROM skills WHERE digest = OLD.digest); END;"
    "CREATE TRIGGER files_stored AFTER INSERT ON files BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes + NEW.bytes WHERE id = NEW.tenant_id; END;"
    "CREATE TRIGGER files_freed AFTER DELETE ON files BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes - OLD.bytes WHERE id = OLD.tenant_id; END;"
    "CREATE TRIGGER executions_changed AFTER UPDATE OF result_bytes, artifact_bytes"
    " ON executions BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes + NEW.result_bytes + NEW.artifact_bytes"
    " - OLD.result_bytes - OLD.artifact_bytes WHERE id = NEW.tenant_id; END;"
    "CREATE TRIGGER executions_freed AFTER DELETE ON executions BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes - OLD.result_bytes - OLD.artifact_bytes"
    " WHERE id = OLD.tenant_id; END;",

    /* Content that is back under a version is not an earlier one any more. */
    "ALTER TABLE skills ADD COLUMN is_floating INTEGER NOT NULL DEFAULT 0;"
    "CREATE TRIGGER skills_current AFTER INSERT ON skills BEGIN"
    " DELETE FROM skills WHERE tenant_id = NEW.tenant_id AND name = NEW.name"
    " AND version = 'sha256:' || NEW.digest; END;",

    /*
     * The workspaces that executions share, each an object; content_bytes is what is in it.
     * They count in tenants.stored_bytes.
     */
    "CREATE TABLE sessions("
    " tenant_id TEXT NOT NULL REFERENCES tenants(id) ON DELETE CASCADE,"
    " id TEXT NOT NULL,"
    " digest TEXT NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " files INTEGER NOT NULL,"
    " content_bytes INTEGER NOT NULL,"
    " created_ns INTEGER NOT NULL,"
    " changed_ns INTEGER NOT NULL,"
    " used_ns INTEGER NOT NULL,"
    " PRIMARY KEY(tenant_id, id)) WITHOUT ROWID;"
    "CREATE INDEX sessions_newest ON sessions(tenant_id, changed_ns, id);"
    "CREATE INDEX sessions_digest ON sessions(digest);"
    "CREATE INDEX sessions_used ON sessions(used_ns);"
    "CREATE TRIGGER sessions_stored AFTER INSERT ON sessions BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes + NEW.bytes WHERE id = NEW.tenant_id; END;"
    "CREATE TRIGGER sessions_changed AFTER UPDATE OF bytes ON sessions BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes + NEW.bytes - OLD.bytes"
    " WHERE id = NEW.tenant_id; END;"
    "CREATE TRIGGER sessions_freed AFTER DELETE ON sessions BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes - OLD.bytes WHERE id = OLD.tenant_id; "
    "END;",
    /* Names between spaces; none is all of them. */
    "ALTER TABLE tenants ADD COLUMN images TEXT NOT NULL DEFAULT '';",
    /* Which hosts its skills may reach, as of tenant_network_clean. */
    "ALTER TABLE tenants ADD COLUMN network TEXT NOT NULL DEFAULT '';",

    /* The object of what a skill's wheels hold, and which they are as JSON; NULL: none. */
    "ALTER TABLE skills ADD COLUMN packages_digest TEXT;"
    "ALTER TABLE skills ADD COLUMN packages TEXT;"
    "CREATE INDEX skills_packages ON skills(packages_digest)"
    " WHERE packages_digest IS NOT NULL;",

    /* Packages and image decide too what a script's parser is; what was found is found anew. */
    "DROP TABLE tool_schemas;"
    "CREATE TABLE tool_schemas("
    " skill_digest TEXT NOT NULL,"
    " packages_digest TEXT NOT NULL," /* "": none */
    " images TEXT NOT NULL,"          /* of which its image was chosen */
    " script TEXT NOT NULL,"
    " schema TEXT," /* NULL: it has no parser */
    " PRIMARY KEY(skill_digest, packages_digest, images, script)) WITHOUT ROWID;"
    /* The minor version of Python 3 that its packages were chosen for; 0: nobody knows. */
    "ALTER TABLE skills ADD COLUMN packages_python INTEGER NOT NULL DEFAULT 0;",

    /* It was removed at another node, and goes when its executions here have ended. */
    "ALTER TABLE tenants ADD COLUMN is_removed INTEGER NOT NULL DEFAULT 0;"
    /* Of which cluster tenants and keys are a replica, how far, and when that was all. */
    "CREATE TABLE replica("
    " one INTEGER PRIMARY KEY CHECK(one = 1),"
    " bucket TEXT NOT NULL,"
    " revision INTEGER NOT NULL,"
    " noted_ns INTEGER NOT NULL);",

    /*
     * What a cluster calls a skill, and its place among those of its name, which is the same at
     * all nodes. What a replica has is changed one by one. Skills were not part of one before:
     * it begins anew.
     */
    "ALTER TABLE skills ADD COLUMN entry TEXT;"
    "ALTER TABLE skills ADD COLUMN place INTEGER NOT NULL DEFAULT 0;"
    "UPDATE skills SET entry = 'skl_' || lower(hex(randomblob(16))), place = id;"
    "CREATE UNIQUE INDEX skills_entry ON skills(entry);"
    "DROP TRIGGER skills_current;"
    "CREATE TRIGGER skills_current AFTER INSERT ON skills"
    " WHEN NOT EXISTS(SELECT 1 FROM replica) BEGIN"
    " DELETE FROM skills WHERE tenant_id = NEW.tenant_id AND name = NEW.name"
    " AND version = 'sha256:' || NEW.digest; END;"
    "DELETE FROM replica;",

    /*
     * What an execution is to a cluster: which node's it is ("": ours), whether its end is told
     * there, and of others the object that its result is where that is large.
     */
    "CREATE TABLE records("
    " id TEXT PRIMARY KEY REFERENCES executions(id) ON DELETE CASCADE,"
    " node TEXT NOT NULL,"
    " instance TEXT NOT NULL,"
    " is_told INTEGER NOT NULL,"
    " cpu_ms INTEGER NOT NULL DEFAULT 0,"
    " result_digest TEXT) WITHOUT ROWID;"
    "CREATE INDEX records_untold ON records(id) WHERE NOT is_told;"
    "CREATE INDEX records_result ON records(result_digest) WHERE result_digest IS NOT NULL;"
    /* How far executions are followed, as replica says it of changes. */
    "CREATE TABLE records_place("
    " one INTEGER PRIMARY KEY CHECK(one = 1),"
    " bucket TEXT NOT NULL,"
    " revision INTEGER NOT NULL,"
    " noted_ns INTEGER NOT NULL);",

    /* Whether it has not begun, and another node may take it over. */
    "ALTER TABLE records ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;",

    /*
     * What a cluster calls the row of an uploaded file. Files were not part of one before: it
     * begins anew.
     */
    "ALTER TABLE files ADD COLUMN entry TEXT;"
    "UPDATE files SET entry = 'fil_' || lower(hex(randomblob(16)));"
    "CREATE UNIQUE INDEX files_entry ON files(entry);"
    "DELETE FROM replica;",

    /*
     * What a cluster calls a row of the audit (NULL: none knows it), which number it has at the
     * node that wrote it where that is not this one, and of this daemon's own when it was told
     * (0: not yet; NULL: it is not ours to tell).
     */
    "ALTER TABLE audit ADD COLUMN entry TEXT;"
    "ALTER TABLE audit ADD COLUMN number INTEGER;"
    "ALTER TABLE audit ADD COLUMN told_ns INTEGER;"
    "CREATE UNIQUE INDEX audit_entry ON audit(entry) WHERE entry IS NOT NULL;"
    "CREATE INDEX audit_newest ON audit(at_ns, entry) WHERE entry IS NOT NULL;"
    "CREATE INDEX audit_tenants_newest ON audit(tenant_id, at_ns, entry)"
    " WHERE entry IS NOT NULL;"
    "CREATE INDEX audit_told ON audit(told_ns) WHERE told_ns IS NOT NULL;"
    "CREATE INDEX audit_own ON audit(tenant_id, id, told_ns) WHERE told_ns IS NOT NULL;"
    /* How far the audit is followed, as replica says it of changes. */
    "CREATE TABLE audit_place("
    " one INTEGER PRIMARY KEY CHECK(one = 1),"
    " bucket TEXT NOT NULL,"
    " revision INTEGER NOT NULL,"
    " noted_ns INTEGER NOT NULL);",

    /*
     * What a cluster calls the row of a session, and the use of it that all its nodes know of
     * (0: none, it is this daemon's own).
     */
    "ALTER TABLE sessions ADD COLUMN entry TEXT;"
    "ALTER TABLE sessions ADD COLUMN told_ns INTEGER NOT NULL DEFAULT 0;"
    "UPDATE sessions SET entry = 'ses_' || lower(hex(randomblob(16)));"
    "CREATE UNIQUE INDEX sessions_entry ON sessions(entry);",

    /* One of another node may be heard of when it has ended. */
    "CREATE TRIGGER executions_stored AFTER INSERT ON executions"
    " WHEN NEW.result_bytes + NEW.artifact_bytes > 0 BEGIN"
    " UPDATE tenants SET stored_bytes = stored_bytes + NEW.result_bytes + NEW.artifact_bytes"
    " WHERE id = NEW.tenant_id; END;",

    /* However many versions a skill has, and whatever else a tenant ran. */
    "CREATE INDEX skills_by_place ON skills(tenant_id, name, place DESC, version DESC);"
    "CREATE INDEX executions_by_both"
    " ON executions(tenant_id, skill_name, status, accepted_ns, id);",

    /* A page far down a list passes over the rows before it by this index alone. */
    ("DROP INDEX files_newest;"
     "CREATE INDEX files_newest ON files(tenant_id, created_ns, id, expires_ns);"),

    /* One of many versions by its digest, also where many tenants have the same. */
    ("DROP INDEX skills_digest;"
     "CREATE INDEX skills_digest ON skills(digest, tenant_id, name, place, version);"),
};
