/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as changes of a cluster, as a node makes what came. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry_session_plan.h"
#include "api/daemon/registry/registry_skill_plan.h"
#include "api/daemon/registry/registry_tenants.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define FIRST    "ses_00000000000000000000000000000000"

static struct registry_session session(const char *id, char *digest, uint64_t at_ns)
{
    struct registry_session s = {.tenant = TENANT_DEFAULT,
                                 .digest = digest,
                                 .bytes = 100 * at_ns,
                                 .files = at_ns,
                                 .content_bytes = 10 * at_ns,
                                 .changed_ns = at_ns};

    (void)snprintf(s.id, sizeof(s.id), "%s", id);
    return s;
}

static int give(const void *ctx, size_t at, struct change *ret)
{
    ret[0] = ((const struct change *)ctx)[at];
    return 0;
}

static unsigned make(struct registry *registry, const struct change *changes, size_t n)
{
    const struct change_place place = {.bucket = "b", .revision = 1, .noted_ns = 7};
    unsigned conflicts = 99;

    assert_int_equal(
        registry_changes_make(registry, n, give, changes, &place, &conflicts, NULL), 0);
    return conflicts;
}

static struct change plan(struct registry *registry, const char *id, char *digest,
                          const char *before, uint64_t at_ns)
{
    const struct registry_session wanted = session(id, digest, at_ns);
    struct change change = {0};

    assert_int_equal(registry_session_plan(registry, &wanted, before, &change, NULL), 0);
    return change;
}

static struct registry_session get(struct registry *registry, const char *id)
{
    struct registry_session row = {0};

    assert_int_equal(registry_session_get(registry, TENANT_DEFAULT, id, &row, NULL), 0);
    return row;
}

static uint64_t stored(struct registry *registry)
{
    _cleanup_registry_tenant_ struct registry_tenant row = {0};

    assert_int_equal(registry_tenant_get(registry, TENANT_DEFAULT, &row, NULL), 0);
    return row.stored_bytes;
}

static char digest_a[] = DIGEST_A, digest_b[] = DIGEST_B;

static void a_session_is_one_change(void **state)
{
    struct registry *registry = open_registry(*state);
    struct change one = plan(registry, "s", digest_a, "", 2), there, gone = {0};
    struct registry_session row;

    assert_string_equal(one.id, FIRST);
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(registry_change_of(registry, CHANGE_SESSION, one.id, &there, NULL), 0);
    assert_memory_equal(&there.session, &one.session, sizeof(one.session));
    /* Once, however often it comes. */
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(stored(registry), 200);
    one = plan(registry, "s", digest_b, DIGEST_A, 3);
    assert_string_equal(one.id, FIRST);
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(stored(registry), 300);
    row = get(registry, "s");
    assert_string_equal(row.digest, DIGEST_B);
    assert_int_equal(row.files, 3);
    assert_int_equal(row.content_bytes, 30);
    assert_int_equal(row.created_ns, 2);
    assert_int_equal(row.changed_ns, 3);
    assert_int_equal(row.used_ns, 3);
    registry_session_finish(&row);
    assert_int_equal(
        registry_session_plan_delete(registry, "ten_x", "s", INT64_MAX, &gone, NULL), -ENOENT);
    /* Somebody used it since. */
    assert_int_equal(
        registry_session_plan_delete(registry, TENANT_DEFAULT, "s", 2, &gone, NULL), -ENOENT);
    assert_int_equal(
        registry_session_plan_delete(registry, TENANT_DEFAULT, "s", 3, &gone, NULL), 0);
    assert_int_equal(make(registry, &gone, 1), 0);
    assert_int_equal(stored(registry), 0);
    /* Its place is the next one's. */
    assert_string_equal(plan(registry, "t", digest_a, "", 1).id, FIRST);
    registry_close(registry);
}

static void who_did_not_see_the_last_one_changes_nothing(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct registry_session wanted = session("s", digest_b, 3);
    struct change one = {0};
    struct err err = {0};

    assert_int_equal(registry_session_plan(registry, &wanted, DIGEST_A, &one, &err),
                     -EADDRINUSE);
    one = plan(registry, "s", digest_a, "", 2);
    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(registry_session_plan(registry, &wanted, "", &one, &err), -EADDRINUSE);
    assert_int_equal(registry_session_plan(registry, &wanted, DIGEST_B, &one, &err),
                     -EADDRINUSE);
    assert_non_null(strstr(err.message, "session s was changed at the same time"));
    registry_close(registry);
}

/* What a node had of a session under another entry is not what it has any more. */
static void one_of_before_gives_way(void **state)
{
    struct registry *registry = open_registry(*state);
    struct change own = plan(registry, "s", digest_a, "", 2), theirs = own;
    struct registry_session row;

    memcpy(own.id, "ses_f0000000000000000000000000000000", sizeof(own.id));
    assert_int_equal(make(registry, &own, 1), 0);
    memcpy(theirs.session.digest, DIGEST_B, sizeof(theirs.session.digest));
    theirs.session.bytes = 7;
    assert_int_equal(make(registry, &theirs, 1), 0);
    row = get(registry, "s");
    assert_string_equal(row.digest, DIGEST_B);
    registry_session_finish(&row);
    assert_int_equal(stored(registry), 7);
    assert_int_equal(registry_change_of(registry, CHANGE_SESSION, own.id, &own, NULL), -ENOENT);
    registry_close(registry);
}

static void a_use_is_told_once(void **state)
{
    struct registry *registry = open_registry(*state);
    struct change one = plan(registry, "s", digest_a, "", 2), use = {0};
    struct registry_session row;

    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(registry_session_plan_use(registry, "", &use, NULL), -ENOENT);
    assert_int_equal(registry_session_use(registry, TENANT_DEFAULT, "s", 9, NULL), 0);
    assert_int_equal(registry_session_plan_use(registry, "", &use, NULL), 0);
    assert_int_equal(use.session.used_ns, 9);
    assert_int_equal(use.session.changed_ns, 2);
    assert_int_equal(registry_session_plan_use(registry, use.id, &use, NULL), -ENOENT);
    /* What comes of others meanwhile, and has nothing new, leaves it. */
    assert_int_equal(make(registry, &one, 1), 0);
    row = get(registry, "s");
    assert_int_equal(row.used_ns, 9);
    registry_session_finish(&row);
    assert_int_equal(registry_session_plan_use(registry, "", &use, NULL), 0);
    assert_int_equal(make(registry, &use, 1), 0);
    assert_int_equal(registry_session_plan_use(registry, "", &use, NULL), -ENOENT);
    registry_close(registry);
}

/* What a daemon has on its own, whose object no server has, is told by who commits it. */
static void what_is_not_the_clusters_is_not_told(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_session own = session("own", digest_a, 2);
    const struct registry_execution acceptance = {.id = "exec_1",
                                                  .skill_name = "x",
                                                  .skill_version = "1",
                                                  .skill_digest = "d",
                                                  .accepted_ns = 1};
    const struct registry_ending ending = {
        .status = "success", .result = "", .finished_ns = 2, .session = &own};
    struct change use = {0};

    assert_int_equal(registry_execution_accept(registry, TENANT_DEFAULT, &acceptance, NULL), 0);
    assert_int_equal(registry_execution_end(registry, "exec_1", &ending, NULL), 0);
    assert_int_equal(registry_session_use(registry, TENANT_DEFAULT, "own", 9, NULL), 0);
    assert_int_equal(registry_session_plan_use(registry, "", &use, NULL), -ENOENT);
    use = plan(registry, "own", digest_b, DIGEST_A, 10);
    assert_int_equal(make(registry, &use, 1), 0);
    assert_int_equal(registry_session_use(registry, TENANT_DEFAULT, "own", 11, NULL), 0);
    assert_int_equal(registry_session_plan_use(registry, "", &use, NULL), 0);
    registry_close(registry);
}

/* What a session holds is at the servers as what a skill does is. */
static void its_object_is_the_clusters(void **state)
{
    struct registry *registry = open_registry(*state);
    const struct change one = plan(registry, "s", digest_a, "", 2);
    uint64_t bytes = 0, rows = 0;
    struct registry_naming naming = {0};

    assert_int_equal(make(registry, &one, 1), 0);
    assert_int_equal(registry_object_bytes(registry, DIGEST_A, &bytes, NULL), 0);
    assert_int_equal(bytes, 200);
    assert_int_equal(registry_object_naming(registry, DIGEST_A, &naming, NULL), 0);
    assert_true(naming.by_changes && !naming.by_executions);
    assert_int_equal(registry_owned_rows_bytes(registry, TENANT_DEFAULT, &rows, NULL), 0);
    assert_true(rows > 400);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_session_is_one_change),
        IN_DIR(who_did_not_see_the_last_one_changes_nothing),
        IN_DIR(one_of_before_gives_way),
        IN_DIR(a_use_is_told_once),
        IN_DIR(what_is_not_the_clusters_is_not_told),
        IN_DIR(its_object_is_the_clusters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
