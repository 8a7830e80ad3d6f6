/* SPDX-License-Identifier: Apache-2.0 */
/* What a new database has, and database files that are refused and left as they are. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_schema.h"
#include "api/daemon/registry/registry_tenants.h"
#include "tests/unit/database.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

static const char *path_in(const char *dir)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/skillvm.db", dir);
    return path;
}

static void make_file(const char *dir, int application, int version)
{
    char sql[160];
    sqlite3 *db = NULL;

    snprintf(sql, sizeof(sql),
             "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "CREATE TABLE skills(name TEXT); INSERT INTO skills VALUES('x');",
             application, version);
    assert_int_equal(sqlite3_open(path_in(dir), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void expect_refusal(const char *dir, int application, int version, const char *advice)
{
    struct registry *registry = NULL;
    struct err err = {0};

    make_file(dir, application, version);
    assert_int_equal(registry_open(path_in(dir), &registry, &err), -EPROTO);
    assert_null(registry);
    assert_non_null(strstr(err.message, advice));
    assert_int_equal(database_number(dir, "PRAGMA user_version"), version);
    assert_int_equal(database_number(dir, "SELECT COUNT(*) FROM skills WHERE name = 'x'"), 1);
}

static void refuses_newer_versions(void **state)
{
    expect_refusal(*state, REGISTRY_APPLICATION_ID, REGISTRY_SCHEMA_VERSION + 1,
                   "install the newer skillvm");
}

/* Before the first release there were versions 1 to 4, and 1 was another one. */
static void refuses_the_first_of_before_a_release(void **state)
{
    expect_refusal(*state, 0, 1, "move the data folder away");
}

static void refuses_the_last_of_before_a_release(void **state)
{
    expect_refusal(*state, 0, 4, "move the data folder away");
}

static void expect_tenant(struct registry *registry)
{
    struct registry_tenant tenant;

    assert_int_equal(registry_tenant_get(registry, TENANT_DEFAULT, &tenant, NULL), 0);
    assert_string_equal(tenant.name, "default");
    assert_false(tenant.is_disabled);
    assert_true(tenant.created_ns > 1000000000000000000u);
    assert_int_equal(tenant.stored_bytes, 0);
    assert_int_equal(tenant.limits.weight, TENANT_WEIGHT_DEFAULT);
    assert_int_equal(tenant.limits.max_running, 0);
    assert_int_equal(tenant.limits.reuse, TENANT_REUSE_UNSET);
    assert_string_equal(tenant.limits.images, "");
    registry_tenant_finish(&tenant);
}

/* Made once: opened again it stays as it is. */
static void a_new_one_has_the_default_tenant(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct registry *registry = open_registry(*state);

        expect_tenant(registry);
        registry_close(registry);
        assert_int_equal(database_number(*state, "PRAGMA user_version"),
                         REGISTRY_SCHEMA_VERSION);
        assert_int_equal(database_number(*state, "PRAGMA application_id"),
                         REGISTRY_APPLICATION_ID);
    }
}

/* As version 1 was, with a skill. */
static void make_first(const char *dir)
{
    char *sql = NULL;
    sqlite3 *db = NULL;

    assert_true(asprintf(&sql,
                         "%s PRAGMA application_id = %d; PRAGMA user_version = 1;"
                         "INSERT INTO skills(tenant_id, name, version, digest, description,"
                         " created_ns, bytes) VALUES('default', 'x', '0.0.0', 'd', 'text', 7,"
                         " 100);"
                         "INSERT INTO files(id, tenant_id, name, digest, bytes, created_ns,"
                         " expires_ns) VALUES('file_a', 'default', 'x', 'd', 1, 7, 9),"
                         " ('file_b', 'default', 'y', 'd', 1, 7, 9);",
                         registry_schema_steps[0], REGISTRY_APPLICATION_ID) > 0);
    assert_int_equal(sqlite3_open(path_in(dir), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(sql);
}

/* 0.2.0 had version 1. What was pushed to it keeps its version. */
static void takes_the_first_release_over(void **state)
{
    struct registry *registry;
    struct registry_skill skill;
    struct registry_tenant tenant;
    bool known;

    make_first(*state);
    registry = open_registry(*state);
    assert_int_equal(
        registry_skill_get(registry, TENANT_DEFAULT, "x", NULL, &skill, &known, NULL), 0);
    assert_string_equal(skill.version, "0.0.0");
    assert_false(skill.is_floating);
    assert_int_equal(skill.bytes, 100);
    assert_null(skill.packages_digest);
    assert_null(skill.packages);
    registry_skill_finish(&skill);
    assert_int_equal(registry_tenant_get(registry, TENANT_DEFAULT, &tenant, NULL), 0);
    assert_string_equal(tenant.limits.images, "");
    registry_tenant_finish(&tenant);
    registry_close(registry);
    assert_int_equal(database_number(*state, "SELECT COUNT(*) FROM sessions"), 0);
    assert_int_equal(database_number(*state, "SELECT COUNT(*) FROM skills WHERE place = id"
                                             " AND entry GLOB 'skl_*' AND length(entry) = 36"),
                     1);
    assert_int_equal(database_number(*state,
                                     "SELECT COUNT(DISTINCT entry) FROM files"
                                     " WHERE entry GLOB 'fil_*' AND length(entry) = 36"),
                     2);
    assert_int_equal(database_number(*state, "PRAGMA user_version"), REGISTRY_SCHEMA_VERSION);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_new_one_has_the_default_tenant),
        IN_DIR(takes_the_first_release_over),
        IN_DIR(refuses_newer_versions),
        IN_DIR(refuses_the_first_of_before_a_release),
        IN_DIR(refuses_the_last_of_before_a_release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
