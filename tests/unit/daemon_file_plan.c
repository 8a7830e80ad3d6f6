/* SPDX-License-Identifier: Apache-2.0 */
/* Uploaded files as changes of a cluster, as a node makes what came. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry_file_plan.h"
#include "api/daemon/registry/registry_skill_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ONE      "file_00000000000000000000000000000001"
#define OTHER    "file_00000000000000000000000000000002"

static char digest_a[] = DIGEST_A, name[] = "x", type[] = "a/b";

static struct registry_file file(const char *id)
{
    struct registry_file f = {.name = name,
                              .content_type = type,
                              .digest = digest_a,
                              .bytes = 100,
                              .created_ns = 1,
                              .expires_ns = 9};

    (void)snprintf(f.id, sizeof(f.id), "%s", id);
    return f;
}

static int give(const void *ctx, size_t at, struct change *ret)
{
    ret[0] = ((const struct change *)ctx)[at];
    return 0;
}

/* *ret: how many contradict others. */
static unsigned make(struct registry *registry, const struct change *changes, size_t n)
{
    const struct change_place place = {.bucket = "b", .revision = 1, .noted_ns = 7};
    unsigned conflicts = 99;

    assert_int_equal(
        registry_changes_make(registry, n, give, changes, &place, &conflicts, NULL), 0);
    return conflicts;
}

static struct change plan(struct registry *registry, const char *id)
{
    const struct registry_file wanted = file(id);
    struct change change = {0};

    assert_int_equal(registry_file_plan(registry, TENANT_DEFAULT, &wanted, &change, NULL), 0);
    return change;
}

static int get(struct registry *registry, const char *id, uint64_t *ret_bytes)
{
    _cleanup_registry_file_ struct registry_file row = {0};
    int r = registry_file_get(registry, TENANT_DEFAULT, id, &row, NULL);

    *ret_bytes = row.bytes;
    return r;
}

static uint64_t stored(struct registry *registry)
{
    _cleanup_registry_tenant_ struct registry_tenant row = {0};

    assert_int_equal(registry_tenant_get(registry, TENANT_DEFAULT, &row, NULL), 0);
    return row.stored_bytes;
}

static void a_file_is_one_change(void **state)
{
    struct registry *registry = open_registry(*state);
    struct change one = plan(registry, ONE), there, gone = {0};
    uint64_t bytes = 0;

    assert_string_equal(one.id, "fil_00000000000000000000000000000000");
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(registry_change_of(registry, CHANGE_FILE, one.id, &there, NULL), 0);
    assert_memory_equal(&there.file, &one.file, sizeof(one.file));
    /* Once, however often it comes. */
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(stored(registry), 100);
    assert_int_equal(registry_file_plan_delete(registry, "ten_x", ONE, &gone, NULL), -ENOENT);
    assert_int_equal(registry_file_plan_delete(registry, TENANT_DEFAULT, ONE, &gone, NULL), 0);
    assert_int_equal(make(registry, &gone, 1), 0);
    assert_int_equal(get(registry, ONE, &bytes), -ENOENT);
    assert_int_equal(stored(registry), 0);
    /* Its place is the next one's. */
    assert_string_equal(plan(registry, OTHER).id, one.id);
    registry_close(registry);
}

/* Somebody may have written whatever he liked; what cannot be is left out. */
static void what_contradicts_is_left_out(void **state)
{
    struct registry *registry = open_registry(*state);
    struct change both[2] = {plan(registry, ONE)};
    uint64_t bytes = 0;

    assert_int_equal(make(registry, both, 1), 0);
    both[1] = plan(registry, ONE);
    assert_string_not_equal(both[1].id, both[0].id);
    both[1].file.bytes = 7;
    assert_int_equal(make(registry, &both[1], 1), 1);
    assert_int_equal(get(registry, ONE, &bytes), 0);
    assert_int_equal(bytes, 100);
    /* One whose tenant is not there is none. */
    both[1] = plan(registry, OTHER);
    (void)strcpy(both[1].file.tenant, "ten_0123456789abcdef0123456789abcdef");
    assert_int_equal(make(registry, &both[1], 1), 0);
    assert_int_equal(registry_change_of(registry, CHANGE_FILE, both[1].id, &both[0], NULL),
                     -ENOENT);
    /* Two that changed places are made together. */
    both[0] = plan(registry, OTHER);
    assert_int_equal(make(registry, &both[0], 1), 0);
    assert_int_equal(registry_change_after(registry, CHANGE_FILE, "", &both[0], NULL), 0);
    assert_int_equal(registry_change_after(registry, CHANGE_FILE, both[0].id, &both[1], NULL),
                     0);
    {
        struct change_file before = both[0].file;

        both[0].file = both[1].file;
        both[1].file = before;
    }
    assert_int_equal(make(registry, both, 2), 0);
    assert_int_equal(registry_change_of(registry, CHANGE_FILE, both[0].id, &both[1], NULL), 0);
    assert_string_equal(both[1].file.id, OTHER);
    assert_int_equal(stored(registry), 200);
    registry_close(registry);
}

/* What a file holds is at the servers as what a skill does is. */
static void its_object_is_the_clusters(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct change one = plan(registry, ONE);
    uint64_t bytes = 0, rows = 0;
    struct registry_naming naming = {0};

    assert_int_equal(registry_owned_rows_bytes(registry, TENANT_DEFAULT, &rows, NULL), 0);
    assert_int_equal(rows, 0);
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(registry_object_bytes(registry, DIGEST_A, &bytes, NULL), 0);
    assert_int_equal(bytes, 100);
    assert_int_equal(registry_object_naming(registry, DIGEST_A, &naming, NULL), 0);
    assert_true(naming.by_changes && !naming.by_executions);
    assert_int_equal(registry_object_naming(registry, DIGEST_B, &naming, NULL), 0);
    assert_false(naming.by_changes || naming.by_executions);
    assert_int_equal(registry_owned_rows_bytes(registry, TENANT_DEFAULT, &rows, NULL), 0);
    assert_true(rows > 400);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_file_is_one_change),
        IN_DIR(what_contradicts_is_left_out),
        IN_DIR(its_object_is_the_clusters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
