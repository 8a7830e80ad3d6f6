/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants take of a cluster's servers beside their rows, with made-up clocks. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/skill_room.h"
#include "api/daemon/registry/registry_skill_plan.h"
#include "tests/unit/registry_dir.h"
#include "tests/unit/registry_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE "ten_00000000000000000000000000000001"
#define TWO "ten_00000000000000000000000000000002"
#define A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct fixture {
    void *dir;
    struct registry *registry;
    struct skill_room *room;
};

static int begin(void **state)
{
    struct tenant_limits limits = tenant_limits_default();
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    assert_int_equal(make_dir(&f->dir), 0);
    f->registry = open_registry(f->dir);
    limits.storage_bytes = 1000;
    assert_int_equal(put_tenant(f->registry, ONE, "one", 1, false, &limits), 0);
    assert_int_equal(put_tenant(f->registry, TWO, "two", 2, false, &limits), 0);
    /* No skill of these has packages, of which alone it asks the store. */
    f->room = skill_room_create(f->registry, NULL);
    assert_non_null(f->room);
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    int r;

    skill_room_destroy(f->room);
    registry_close(f->registry);
    r = remove_dir(&f->dir);
    free(f);
    return r;
}

static struct skill_room_row row(const char *tenant, const char *digest, uint64_t bytes)
{
    return (struct skill_room_row){
        .tenant = tenant, .digest = digest, .packages_digest = "", .bytes = bytes};
}

static int take(struct fixture *f, const char *tenant, const char *digest, uint64_t bytes,
                uint64_t now_ns)
{
    const struct skill_room_row wanted = row(tenant, digest, bytes);
    struct err err = {0};
    int r = skill_room_take(f->room, &wanted, bytes, now_ns, &err);

    if (r < 0)
        assert_true(strstr(err.message, "storage_bytes") != NULL);
    return r;
}

static void leave(struct fixture *f, const char *tenant, const char *digest, uint64_t bytes,
                  uint64_t now_ns)
{
    const struct skill_room_row gone = row(tenant, digest, bytes);

    skill_room_left(f->room, &gone, now_ns);
}

/* Two that are pushed at once may not have more than one after the other. */
static void pushes_at_once_share_what_is_left(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(take(f, ONE, A, 600, 1), 0);
    assert_int_equal(take(f, ONE, B, 600, 1), -EDQUOT);
    assert_int_equal(take(f, ONE, B, 400, 1), 0);
    assert_int_equal(take(f, TWO, B, 1000, 1), 0);
    skill_room_give(f->room, ONE, 600);
    assert_int_equal(take(f, ONE, A, 601, 1), -EDQUOT);
    assert_int_equal(take(f, ONE, A, 600, 1), 0);
}

static void what_left_counts_while_it_is_there(void **state)
{
    struct fixture *f = *state;

    leave(f, ONE, A, 700, 10);
    assert_int_equal(take(f, ONE, B, 400, 11), -EDQUOT);
    assert_int_equal(take(f, TWO, B, 400, 11), 0);
    assert_int_equal(take(f, ONE, B, 400, 10 + SKILL_ROOM_GONE_NS - 1), -EDQUOT);
    assert_int_equal(take(f, ONE, B, 400, 10 + SKILL_ROOM_GONE_NS), 0);
}

/* Twice the same is there once, and counts by its row where there is one again. */
static void the_same_counts_once(void **state)
{
    struct fixture *f = *state;
    const struct registry_skill skill = {
        .name = "x", .version = "1", .digest = A, .description = "d", .bytes = 300};
    char *previous = NULL;

    leave(f, ONE, A, 700, 10);
    leave(f, ONE, A, 700, 11);
    assert_int_equal(take(f, ONE, B, 301, 12), -EDQUOT);
    assert_int_equal(take(f, ONE, B, 300, 12), 0);
    skill_room_give(f->room, ONE, 300);
    assert_int_equal(take(f, ONE, A, 1000, 13), 0);
    skill_room_give(f->room, ONE, 1000);
    assert_int_equal(take(f, ONE, B, 1000, 13), 0);
    skill_room_give(f->room, ONE, 1000);
    leave(f, ONE, A, 700, 14);
    assert_int_equal(registry_skill_put(f->registry, ONE, &skill, false, &previous, NULL), 0);
    assert_int_equal(take(f, ONE, B, 700, 15), 0);
    skill_room_give(f->room, ONE, 700);
    /* What a row names did not leave. */
    leave(f, ONE, A, 700, 16);
    assert_int_equal(take(f, ONE, B, 700, 17), 0);
}

/* Of more than are remembered one by one nothing is forgotten. */
static void of_many_all_count(void **state)
{
    struct fixture *f = *state;
    char digest[65];

    for (unsigned i = 0; i < 1100; i++) {
        snprintf(digest, sizeof(digest), "%064x", i);
        leave(f, ONE, digest, i < 1050 ? 0 : 10, 10);
    }
    assert_int_equal(take(f, ONE, digest, 501, 11), -EDQUOT);
    assert_int_equal(take(f, ONE, digest, 500, 11), 0);
    assert_int_equal(take(f, ONE, A, 500, 10 + SKILL_ROOM_GONE_NS), 0);
}

#define IN_ROOM(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOM(pushes_at_once_share_what_is_left),
        IN_ROOM(what_left_counts_while_it_is_there),
        IN_ROOM(the_same_counts_once),
        IN_ROOM(of_many_all_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
