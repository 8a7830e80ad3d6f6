/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's lists, keys and deletions, and files of older schemas. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry.h"
#include "api/daemon/store.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_1     "exec_00000000000000000000000000000001"
#define ID_2     "exec_00000000000000000000000000000002"
#define ID_4     "exec_00000000000000000000000000000004"

static int put_skill(struct registry *registry, const char *name, const char *version,
                     const char *digest)
{
    char *existing = NULL;

    return registry_skill_put(registry, name, version, digest, "d", &existing, NULL);
}

static int accept(struct registry *registry, const char *id, const char *skill, uint64_t ns,
                  const char *key)
{
    const struct registry_acceptance a = {id, skill, "1", DIGEST_A, ns, key, DIGEST_B};

    return registry_execution_accept(registry, &a, NULL);
}

static int note_skill(void *ctx, const struct registry_skill *skill)
{
    char *seen = ctx;

    assert_true(skill->created_ns > 0);
    snprintf(seen + strlen(seen), 64, "%s@%s ", skill->name, skill->version);
    return 0;
}

static int stop_at_once(void *ctx, const struct registry_skill *skill)
{
    (void)ctx;
    (void)skill;
    return -E2BIG;
}

static void skills_are_listed_and_deleted(void **state)
{
    struct registry *registry = open_registry(*state);
    char seen[256] = "";
    bool used = false;

    assert_int_equal(put_skill(registry, "b", "1", DIGEST_A), 0);
    assert_int_equal(put_skill(registry, "a", "1", DIGEST_A), 0);
    assert_int_equal(put_skill(registry, "a", "2", DIGEST_B), 0);
    assert_int_equal(registry_skill_each(registry, note_skill, seen, NULL), 0);
    assert_string_equal(seen, "a@2 a@1 b@1 ");
    assert_int_equal(registry_skill_each(registry, stop_at_once, NULL, NULL), -E2BIG);
    assert_int_equal(registry_skill_delete(registry, "a", "1", NULL), 0);
    assert_int_equal(registry_skill_delete(registry, "a", "1", NULL), -ENOENT);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, NULL), 0);
    assert_true(used);
    assert_int_equal(registry_skill_delete(registry, "b", "1", NULL), 0);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, NULL), 0);
    assert_false(used);
    registry_close(registry);
}

/* The last digits of the ids of a page, in its order. */
static void expect_page(struct registry *registry, const struct registry_page *page,
                        const char *ids)
{
    struct registry_execution rows[8];
    char seen[16] = "";
    size_t n = 0;

    assert_int_equal(registry_execution_list(registry, page, rows, &n, NULL), 0);
    assert_true(n <= 8);
    for (size_t i = 0; i < n; i++) {
        seen[i] = rows[i].id[strlen(rows[i].id) - 1];
        registry_execution_finish(&rows[i]);
    }
    assert_string_equal(seen, ids);
}

static void executions_are_listed(void **state)
{
    struct registry *registry = open_registry(*state);

    for (int i = 1; i <= 5; i++) {
        char id[40];

        snprintf(id, sizeof(id), "exec_%032d", i);
        /* The third and the fourth at the same moment. */
        assert_int_equal(
            accept(registry, id, i % 2 ? "odd" : "even", (uint64_t)(i == 4 ? 3 : i), NULL), 0);
    }
    assert_int_equal(registry_execution_end(registry, ID_1, "failed", "{}", 2, 9, NULL), 0);
    assert_int_equal(registry_execution_end(registry, ID_2, "failed", "{}", 2, 9, NULL), 0);
    expect_page(registry, &(struct registry_page){.max = 8}, "54321");
    expect_page(registry, &(struct registry_page){.max = 2}, "54");
    expect_page(registry, &(struct registry_page){.max = 2, .after_ns = 3, .after_id = ID_4},
                "32");
    expect_page(registry, &(struct registry_page){.max = 8, .skill = "odd"}, "531");
    expect_page(registry, &(struct registry_page){.max = 8, .status = "failed"}, "21");
    expect_page(registry,
                &(struct registry_page){.max = 8, .skill = "even", .status = "failed"}, "2");
    registry_close(registry);
}

static void keys_are_unique(void **state)
{
    struct registry *registry = open_registry(*state);
    char *id = NULL, *digest = NULL;

    assert_int_equal(registry_execution_by_key(registry, "k", &id, &digest, NULL), -ENOENT);
    assert_int_equal(accept(registry, ID_1, "x", 7, "k"), 0);
    assert_int_equal(accept(registry, ID_2, "x", 7, "k"), -EEXIST);
    assert_int_equal(accept(registry, ID_2, "x", 7, "l"), 0);
    assert_int_equal(registry_execution_by_key(registry, "k", &id, &digest, NULL), 0);
    assert_string_equal(id, ID_1);
    assert_string_equal(digest, DIGEST_B);
    free(id);
    free(digest);
    registry_close(registry);
}

static const char version_1[] =
    "CREATE TABLE skills(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,"
    " version TEXT NOT NULL, digest TEXT NOT NULL, description TEXT NOT NULL,"
    " created_ns INTEGER NOT NULL, UNIQUE(name, version));"
    "CREATE TABLE executions(id TEXT PRIMARY KEY, status TEXT NOT NULL,"
    " skill_name TEXT NOT NULL, skill_version TEXT NOT NULL, skill_digest TEXT NOT NULL,"
    " accepted_ns INTEGER NOT NULL, finished_ns INTEGER, result TEXT) WITHOUT ROWID;"
    "CREATE INDEX executions_unfinished ON executions(id) WHERE finished_ns IS NULL;"
    "INSERT INTO skills VALUES(1, 'x', '1', '" DIGEST_A "', 'd', 5);"
    "INSERT INTO executions VALUES('" ID_1 "', 'success', 'x', '1', '" DIGEST_A
    "', 6, 7, '{}');"
    "INSERT INTO executions VALUES('" ID_2 "', 'accepted', 'x', '1', '" DIGEST_A
    "', 8, NULL, NULL);"
    "PRAGMA user_version = 1;";

/* A file as the first released schema made it. */
static void migrates_version_1(void **state)
{
    struct registry *registry;
    struct registry_execution row;
    struct registry_skill skill;
    char path[128];
    sqlite3 *db = NULL;
    bool known;

    snprintf(path, sizeof(path), "%s/skillvm.db", (char *)*state);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, version_1, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    registry = open_registry(*state);
    assert_int_equal(registry_skill_get(registry, "x", NULL, &skill, &known, NULL), 0);
    assert_int_equal(skill.created_ns, 5);
    registry_skill_finish(&skill);
    assert_int_equal(registry_execution_get(registry, ID_1, &row, NULL), 0);
    assert_string_equal(row.result, "{}");
    assert_int_equal(row.finished_ns, 7);
    registry_execution_finish(&row);
    assert_int_equal(registry_execution_unfinished(registry, &row, NULL), 0);
    assert_string_equal(row.id, ID_2);
    assert_int_equal(row.finished_ns, 0);
    registry_execution_finish(&row);
    expect_page(registry, &(struct registry_page){.max = 8, .skill = "x"}, "21");
    assert_int_equal(accept(registry, ID_4, "x", 9, "k"), 0);
    registry_close(registry);
    /* And it stays as it is. */
    registry = open_registry(*state);
    expect_page(registry, &(struct registry_page){.max = 8}, "421");
    registry_close(registry);
}

static void unnamed_objects_are_swept(void **state)
{
    struct registry *registry = open_registry(*state);
    struct store store;
    struct err err = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/store", (char *)*state);
    assert_int_equal(store_open(path, &store, &err), 0);
    assert_int_equal(put_skill(registry, "x", "1", DIGEST_A), 0);
    close(openat(store.objects_fd, DIGEST_A, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(openat(store.objects_fd, DIGEST_B, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(openat(store.objects_fd, "other", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(store_sweep(&store, registry, &err), 0);
    assert_int_equal(faccessat(store.objects_fd, DIGEST_A, F_OK, 0), 0);
    assert_int_equal(faccessat(store.objects_fd, "other", F_OK, 0), 0);
    assert_int_equal(faccessat(store.objects_fd, DIGEST_B, F_OK, 0), -1);
    store_close(&store);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(skills_are_listed_and_deleted),
        IN_DIR(executions_are_listed),
        IN_DIR(keys_are_unique),
        IN_DIR(migrates_version_1),
        IN_DIR(unnamed_objects_are_swept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
