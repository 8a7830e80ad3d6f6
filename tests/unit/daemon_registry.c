/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's lists, keys and deletions. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_records.h"
#include "api/daemon/store/store.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
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
    const struct registry_skill r = {
        .name = name, .version = version, .digest = digest, .description = "d", .bytes = 100};
    char *previous = NULL;

    return registry_skill_put(registry, TENANT_DEFAULT, &r, false, &previous, NULL);
}

static int delete_skill(struct registry *registry, const char *name, const char *version,
                        const char *digest)
{
    const struct registry_skill r = {.name = name, .version = version, .digest = digest};

    return registry_skill_delete(registry, TENANT_DEFAULT, &r, NULL);
}

static int accept(struct registry *registry, const char *id, const char *skill, uint64_t ns,
                  const char *key)
{
    const struct registry_execution a = {.id = id,
                                         .skill_name = skill,
                                         .skill_version = "1",
                                         .skill_digest = DIGEST_A,
                                         .accepted_ns = ns,
                                         .idempotency_key = key,
                                         .request_digest = DIGEST_B};

    return registry_execution_accept(registry, TENANT_DEFAULT, &a, NULL);
}

static int end(struct registry *registry, const char *id)
{
    const struct registry_ending ending = {
        .status = "failed", .result = "{}", .result_len = 2, .finished_ns = 9};

    return registry_execution_end(registry, id, &ending, NULL);
}

static int note_skill(void *ctx, const struct registry_skill *skill)
{
    char *seen = ctx;

    assert_true(skill->created_ns > 0);
    snprintf(seen + strlen(seen), 96, "%s@%s ", skill->name, skill->version);
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
    assert_int_equal(registry_skill_each(registry, TENANT_DEFAULT, note_skill, seen, NULL), 0);
    assert_string_equal(seen, "a@2 a@1 b@1 ");
    assert_int_equal(registry_skill_each(registry, TENANT_DEFAULT, stop_at_once, NULL, NULL),
                     -E2BIG);
    assert_int_equal(delete_skill(registry, "a", "1", DIGEST_A), 0);
    assert_int_equal(delete_skill(registry, "a", "1", DIGEST_A), -ENOENT);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, NULL), 0);
    assert_true(used);
    assert_int_equal(delete_skill(registry, "b", "1", DIGEST_A), 0);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, NULL), 0);
    assert_false(used);
    registry_close(registry);
}

/* Puts content of digest as x@1.0.0. What it took the place of, if anything, in previous. */
static int put_other(struct registry *registry, const char *digest, bool is_floating,
                     bool replace, char previous[65])
{
    const struct registry_skill r = {.name = "x",
                                     .version = "1.0.0",
                                     .digest = digest,
                                     .description = "d",
                                     .bytes = 100,
                                     .is_floating = is_floating};
    char *other = NULL;
    int result = registry_skill_put(registry, TENANT_DEFAULT, &r, replace, &other, NULL);

    snprintf(previous, 65, "%s", other ? other : "");
    free(other);
    return result;
}

static void expect_skills(struct registry *registry, const char *expected)
{
    char seen[1024] = "";

    assert_int_equal(registry_skill_each(registry, TENANT_DEFAULT, note_skill, seen, NULL), 0);
    assert_string_equal(seen, expected);
}

static void a_floating_version_moves_on(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_skill row;
    char previous[65];
    bool known;

    assert_int_equal(put_other(registry, DIGEST_A, true, false, previous), 0);
    assert_string_equal(previous, "");
    assert_int_equal(put_other(registry, DIGEST_B, true, false, previous), 0);
    assert_string_equal(previous, DIGEST_A);
    expect_skills(registry, "x@1.0.0 x@sha256:" DIGEST_A " ");
    assert_int_equal(registry_skill_get(registry, TENANT_DEFAULT, "x", "sha256:" DIGEST_A, &row,
                                        &known, NULL),
                     0);
    assert_string_equal(row.digest, DIGEST_A);
    registry_skill_finish(&row);
    /* What is current is found so too, and what is back is no earlier one any more. */
    assert_int_equal(registry_skill_get(registry, TENANT_DEFAULT, "x", "sha256:" DIGEST_B, &row,
                                        &known, NULL),
                     0);
    assert_string_equal(row.version, "1.0.0");
    registry_skill_finish(&row);
    assert_int_equal(put_other(registry, DIGEST_A, true, false, previous), 0);
    assert_string_equal(previous, DIGEST_B);
    expect_skills(registry, "x@1.0.0 x@sha256:" DIGEST_B " ");
    /* A version of its own takes the place of one that was only assumed, and then stays. */
    assert_int_equal(put_other(registry, DIGEST_B, false, false, previous), 0);
    assert_int_equal(put_other(registry, DIGEST_A, true, false, previous), -EEXIST);
    assert_string_equal(previous, "");
    registry_close(registry);
}

static void a_version_is_replaced_where_nothing_runs_it(void **state)
{
    struct registry *registry = open_registry(*state);
    char previous[65];

    assert_int_equal(put_other(registry, DIGEST_A, false, false, previous), 0);
    assert_int_equal(put_other(registry, DIGEST_B, false, false, previous), -EEXIST);
    assert_int_equal(accept(registry, ID_1, "x", 1, NULL), 0);
    assert_int_equal(put_other(registry, DIGEST_B, false, true, previous), -EEXIST);
    assert_string_equal(previous, "");
    expect_skills(registry, "x@1.0.0 ");
    assert_int_equal(end(registry, ID_1), 0);
    assert_int_equal(put_other(registry, DIGEST_B, false, true, previous), 0);
    assert_string_equal(previous, DIGEST_A);
    expect_skills(registry, "x@1.0.0 ");
    assert_int_equal(put_other(registry, DIGEST_B, false, true, previous), 0);
    assert_string_equal(previous, "");
    /* Nothing is held up by other content of that name, nor by another skill of that content.
     */
    assert_int_equal(accept(registry, ID_2, "x", 2, NULL), 0);
    assert_int_equal(put_other(registry, DIGEST_A, false, true, previous), 0);
    assert_string_equal(previous, DIGEST_B);
    assert_int_equal(end(registry, ID_2), 0);
    assert_int_equal(accept(registry, ID_4, "y", 3, NULL), 0);
    assert_int_equal(put_other(registry, DIGEST_B, false, true, previous), 0);
    assert_string_equal(previous, DIGEST_A);
    registry_close(registry);
}

struct walk {
    struct registry *registry;
    unsigned n;
    char last[16];
};

static int look_again(void *ctx, const struct registry_skill *skill)
{
    struct walk *w = ctx;
    struct registry_skill row;
    bool known;

    assert_int_equal(registry_skill_get(w->registry, TENANT_DEFAULT, skill->name,
                                        skill->version, &row, &known, NULL),
                     0);
    registry_skill_finish(&row);
    /* Newest first within a name. */
    assert_true(strcmp(skill->name, "m") != 0 || !w->last[0] ||
                atoi(skill->version) < atoi(w->last));
    snprintf(w->last, sizeof(w->last), "%s",
             strcmp(skill->name, "m") == 0 ? skill->version : "");
    w->n++;
    return 0;
}

/* A walk over many skills lets others use the registry, and misses none. */
static void a_long_walk_holds_nobody_up(void **state)
{
    struct registry *registry = open_registry(*state);
    struct walk w = {.registry = registry};
    char text[16];

    for (unsigned i = 0; i < 150; i++) {
        snprintf(text, sizeof(text), "%c%u", i % 2 ? 'a' : 'z', i);
        assert_int_equal(put_skill(registry, text, "1", DIGEST_A), 0);
        snprintf(text, sizeof(text), "%u", i);
        assert_int_equal(put_skill(registry, "m", text, DIGEST_A), 0);
    }
    assert_int_equal(registry_skill_each(registry, TENANT_DEFAULT, look_again, &w, NULL), 0);
    assert_int_equal(w.n, 300);
    registry_close(registry);
}

/* The last digits of the ids of a page, in its order. */
static void expect_page(struct registry *registry, const struct registry_page *page,
                        const char *ids)
{
    struct registry_execution rows[8];
    char seen[16] = "";
    size_t n = 0;

    assert_int_equal(registry_execution_list(registry, TENANT_DEFAULT, page, rows, &n, NULL),
                     0);
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
    assert_int_equal(end(registry, ID_1), 0);
    assert_int_equal(end(registry, ID_2), 0);
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

    assert_int_equal(
        registry_execution_by_key(registry, TENANT_DEFAULT, "k", &id, &digest, NULL), -ENOENT);
    assert_int_equal(accept(registry, ID_1, "x", 7, "k"), 0);
    assert_int_equal(accept(registry, ID_2, "x", 7, "k"), -EEXIST);
    assert_int_equal(accept(registry, ID_2, "x", 7, "l"), 0);
    assert_int_equal(
        registry_execution_by_key(registry, TENANT_DEFAULT, "k", &id, &digest, NULL), 0);
    assert_string_equal(id, ID_1);
    assert_string_equal(digest, DIGEST_B);
    free(id);
    free(digest);
    registry_close(registry);
}

static int is_named(void *ctx, const char *digest, bool *ret_named, struct err *err)
{
    return registry_digest_used(ctx, digest, ret_named, err);
}

static void unnamed_objects_are_swept(void **state)
{
    struct registry *registry = open_registry(*state);
    struct data_folder folder;
    struct store *store;
    unsigned removed;
    struct err err = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/store", (char *)*state);
    assert_int_equal(data_folder_open(path, &folder, &err), 0);
    assert_int_equal(put_skill(registry, "x", "1", DIGEST_A), 0);
    close(openat(folder.objects_fd, DIGEST_A, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(openat(folder.objects_fd, DIGEST_B, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(openat(folder.objects_fd, "other", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(store_create(&folder, is_named, registry, &store, &err), 0);
    assert_int_equal(store_sweep(store, &removed, &err), 0);
    assert_int_equal(removed, 1);
    store_destroy(store);
    assert_int_equal(faccessat(folder.objects_fd, DIGEST_A, F_OK, 0), 0);
    assert_int_equal(faccessat(folder.objects_fd, "other", F_OK, 0), 0);
    assert_int_equal(faccessat(folder.objects_fd, DIGEST_B, F_OK, 0), -1);
    data_folder_close(&folder);
    registry_close(registry);
}

/* Bytes that this process has read from files so far. */
static long bytes_read(void)
{
    FILE *f = fopen("/proc/self/io", "re");
    long n = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "rchar: %ld", &n), 1);
    fclose(f);
    return n;
}

/* One tenant's large results are not read where another row is looked for. */
static void large_results_cost_others_nothing(void **state)
{
    struct registry *registry = open_registry(*state);
    const size_t size = 1u << 20;
    struct registry_ending ending = {.status = "success", .finished_ns = 9};
    struct registry_execution rows[30], row;
    const struct registry_page page = {.max = 30};
    char id[sizeof(ID_1)], *large = malloc(size);
    size_t n = 0;
    long before;

    assert_non_null(large);
    memset(large, 'x', size);
    ending.result = large;
    ending.result_len = size;
    for (unsigned i = 0; i < 30; i++) {
        snprintf(id, sizeof(id), "exec_%032x", i);
        assert_int_equal(accept(registry, id, "s", i + 1, NULL), 0);
        if (i % 3 > 0)
            assert_int_equal(registry_execution_end(registry, id, &ending, NULL), 0);
    }
    before = bytes_read();
    for (unsigned i = 0; i < 30; i += 3) {
        snprintf(id, sizeof(id), "exec_%032x", i);
        assert_int_equal(registry_execution_get(registry, TENANT_DEFAULT, id, &row, NULL), 0);
        registry_execution_finish(&row);
    }
    assert_int_equal(registry_execution_list(registry, TENANT_DEFAULT, &page, rows, &n, NULL),
                     0);
    assert_int_equal(n, 30);
    assert_true(bytes_read() - before < (long)size);
    for (size_t i = 0; i < n; i++)
        registry_execution_finish(&rows[i]);
    free(large);
    registry_close(registry);
}

static void give(const void *ctx, size_t at, struct record *ret)
{
    (void)at;
    *ret = *(const struct record *)ctx;
}

/* A list says whose an execution is: nobody has to ask for each again. */
static void a_list_tells_the_node(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct record theirs = {.id = ID_2,
                                  .tenant = TENANT_DEFAULT,
                                  .node = "n",
                                  .instance = "0123456789abcdef0123456789abcdef",
                                  .skill_name = "s",
                                  .accepted_ns = 2};
    const struct change_place place = {.bucket = "b"};
    const struct registry_page page = {.max = 2};
    struct registry_execution rows[2];
    unsigned conflicts;
    size_t n = 0;

    assert_int_equal(accept(registry, ID_1, "s", 1, NULL), 0);
    assert_int_equal(
        registry_records_make(registry, 1, give, &theirs, &place, &conflicts, NULL), 0);
    assert_int_equal(registry_execution_list(registry, TENANT_DEFAULT, &page, rows, &n, NULL),
                     0);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].node, "n");
    assert_string_equal(rows[1].node, "");
    for (size_t i = 0; i < n; i++) {
        assert_null(rows[i].result);
        registry_execution_finish(&rows[i]);
    }
    registry_close(registry);
}

/* Each is prepared when it is used first; without memory then, it fails and holds no lock. */
static void what_cannot_be_prepared_fails_and_works_later(void **state)
{
    struct registry *registry = open_registry(*state);
    struct err err = {0};
    bool used = true;

    (void)sqlite3_hard_heap_limit64(1);
    assert_int_equal(put_skill(registry, "one", "1", DIGEST_A), -EIO);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, &err), -EIO);
    assert_non_null(strstr(err.message, "out of memory"));
    (void)sqlite3_hard_heap_limit64(0);
    assert_int_equal(put_skill(registry, "one", "1", DIGEST_A), 0);
    assert_int_equal(registry_digest_used(registry, DIGEST_A, &used, &err), 0);
    assert_true(used);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(skills_are_listed_and_deleted),
        IN_DIR(executions_are_listed),
        IN_DIR(a_list_tells_the_node),
        IN_DIR(large_results_cost_others_nothing),
        IN_DIR(keys_are_unique),
        IN_DIR(unnamed_objects_are_swept),
        IN_DIR(a_long_walk_holds_nobody_up),
        IN_DIR(a_floating_version_moves_on),
        IN_DIR(a_version_is_replaced_where_nothing_runs_it),
        IN_DIR(what_cannot_be_prepared_fails_and_works_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
