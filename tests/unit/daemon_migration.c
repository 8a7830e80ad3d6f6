/* SPDX-License-Identifier: Apache-2.0 */
/* Database files as every older schema made them: all of it is there, for the default tenant.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_schema.h"
#include "api/daemon/registry/registry_tenants.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_1     "exec_00000000000000000000000000000001"
#define ID_2     "exec_00000000000000000000000000000002"
#define ID_3     "exec_00000000000000000000000000000003"
#define OTHER    "ten_00000000000000000000000000000001"

static const char version_1[] =
    "CREATE TABLE skills(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,"
    " version TEXT NOT NULL, digest TEXT NOT NULL, description TEXT NOT NULL,"
    " created_ns INTEGER NOT NULL, UNIQUE(name, version));"
    "CREATE TABLE executions(id TEXT PRIMARY KEY, status TEXT NOT NULL,"
    " skill_name TEXT NOT NULL, skill_version TEXT NOT NULL, skill_digest TEXT NOT NULL,"
    " accepted_ns INTEGER NOT NULL, finished_ns INTEGER, result TEXT) WITHOUT ROWID;"
    "CREATE INDEX executions_unfinished ON executions(id) WHERE finished_ns IS NULL;"
    "INSERT INTO skills VALUES(1, 'x', '2', '" DIGEST_B "', 'd', 4);"
    "INSERT INTO skills VALUES(2, 'x', '1', '" DIGEST_A "', 'd', 5);"
    "INSERT INTO executions VALUES('" ID_1 "', 'success', 'x', '1', '" DIGEST_A
    "', 6, 7, '{\"a\":\"\xc3\xa9\"}');"
    "INSERT INTO executions VALUES('" ID_2 "', 'accepted', 'x', '1', '" DIGEST_A
    "', 8, NULL, NULL);"
    "PRAGMA user_version = 1;";

static const char version_2[] =
    "CREATE INDEX skills_digest ON skills(digest);"
    "ALTER TABLE executions ADD COLUMN idempotency_key TEXT;"
    "ALTER TABLE executions ADD COLUMN request_digest TEXT;"
    "CREATE UNIQUE INDEX executions_key ON executions(idempotency_key)"
    " WHERE idempotency_key IS NOT NULL;"
    "CREATE INDEX executions_newest ON executions(accepted_ns, id);"
    "CREATE INDEX executions_by_skill ON executions(skill_name, accepted_ns, id);"
    "CREATE INDEX executions_by_status ON executions(status, accepted_ns, id);"
    "UPDATE executions SET idempotency_key = 'k', request_digest = '" DIGEST_B
    "' WHERE id = '" ID_1 "';"
    "PRAGMA user_version = 2;";

static void make_file(const char *dir, const char *const *steps)
{
    char path[128];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/skillvm.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (; *steps; steps++)
        assert_int_equal(sqlite3_exec(db, *steps, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void expect_skill(struct registry *registry)
{
    const struct registry_registration again = {"x", "1", DIGEST_A, "d", 10};
    struct registry_skill skill;
    char *existing = NULL;
    bool known;

    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", NULL, &skill, &known, NULL), 0);
    assert_string_equal(skill.version, "1");
    assert_int_equal(skill.created_ns, 5);
    assert_int_equal(skill.bytes, 0);
    registry_skill_finish(&skill);
    assert_int_equal(registry_skill_put(registry, TENANT_DEFAULT, &again, &existing, NULL), 0);
    assert_int_equal(registry_skill_get(registry, OTHER, "x", NULL, &skill, &known, NULL),
                     -ENOENT);
    assert_false(known);
}

static void expect_executions(struct registry *registry)
{
    struct registry_execution row;

    assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, ID_1, &row, NULL), 0);
    assert_string_equal(row.result, "{\"a\":\"\xc3\xa9\"}");
    assert_string_equal(row.tenant, TENANT_DEFAULT);
    assert_null(row.artifact_digest);
    assert_int_equal(row.finished_ns, 7);
    registry_execution_finish(&row);
    assert_int_equal(registry_execution_get(registry, OTHER, ID_1, &row, NULL), -ENOENT);
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), 0);
    assert_string_equal(row.id, ID_2);
    assert_int_equal(row.finished_ns, 0);
    registry_execution_finish(&row);
}

static void expect_tenant(struct registry *registry)
{
    struct registry_tenant tenant;

    assert_int_equal(registry_tenant_get(registry, TENANT_DEFAULT, &tenant, NULL), 0);
    assert_string_equal(tenant.name, "default");
    assert_false(tenant.is_disabled);
    assert_true(tenant.created_ns > 1000000000000000000u);
    assert_int_equal(tenant.stored_bytes, strlen("{\"a\":\"\xc3\xa9\"}"));
    assert_int_equal(tenant.limits.weight, TENANT_WEIGHT_DEFAULT);
    assert_int_equal(tenant.limits.max_running, 0);
    assert_int_equal(tenant.limits.reuse, TENANT_REUSE_UNSET);
    registry_tenant_finish(&tenant);
}

/* New rows fit the schema that came out of it. */
static void expect_room(struct registry *registry)
{
    const struct registry_acceptance a = {ID_3, "x", "1", DIGEST_A, 9, "l", DIGEST_B};
    struct registry_execution rows[4];
    const struct registry_page page = {.max = 4};
    size_t n = 0;

    assert_int_equal(registry_execution_accept(registry, TENANT_DEFAULT, &a, NULL), 0);
    assert_int_equal(registry_execution_list(registry, TENANT_DEFAULT, &page, rows, &n, NULL),
                     0);
    assert_int_equal(n, 3);
    assert_string_equal(rows[0].id, ID_3);
    for (size_t i = 0; i < n; i++)
        registry_execution_finish(&rows[i]);
}

static void migrate(const char *dir, const char *const *steps)
{
    struct registry *registry;

    make_file(dir, steps);
    registry = open_registry(dir);
    expect_skill(registry);
    expect_executions(registry);
    expect_tenant(registry);
    registry_close(registry);
    /* And it stays as it is. */
    registry = open_registry(dir);
    expect_skill(registry);
    expect_executions(registry);
    expect_room(registry);
    registry_close(registry);
}

static void migrates_version_1(void **state)
{
    migrate(*state, (const char *const[]){version_1, NULL});
}

static void migrates_version_2(void **state)
{
    struct registry *registry;
    char *id = NULL, *digest = NULL;

    migrate(*state, (const char *const[]){version_1, version_2, NULL});
    registry = open_registry(*state);
    assert_int_equal(
        registry_execution_by_key(registry, TENANT_DEFAULT, "k", &id, &digest, NULL), 0);
    assert_string_equal(id, ID_1);
    free(id);
    free(digest);
    assert_int_equal(registry_execution_by_key(registry, OTHER, "k", &id, &digest, NULL),
                     -ENOENT);
    registry_close(registry);
}

/* A file of a newer skillvm is left alone. */
static void refuses_newer_versions(void **state)
{
    struct registry *registry = NULL;
    struct err err = {0};
    char path[128], pragma[64];

    snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d;", REGISTRY_SCHEMA_VERSION + 1);
    make_file(*state, (const char *const[]){pragma, NULL});
    snprintf(path, sizeof(path), "%s/skillvm.db", (char *)*state);
    assert_int_equal(registry_open(path, &registry, &err), -EPROTO);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(migrates_version_1),
        IN_DIR(migrates_version_2),
        IN_DIR(refuses_newer_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
