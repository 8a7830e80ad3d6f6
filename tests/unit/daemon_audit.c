/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of a node of a cluster: whose rows there are, in which order, and what is told. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/registry/registry_audit.h"
#include "api/daemon/registry/registry_places.h"
#include "api/daemon/terms/limits.h"
#include "tests/unit/registry_dir.h"

#include <errno.h>
#include <string.h>

#define ONE      "ten_00000000000000000000000000000001"
#define TWO      "ten_00000000000000000000000000000002"
#define ROWS_MAX 16u

static struct registry *open_shared(const char *dir, const char *node)
{
    struct registry *registry = open_registry(dir);

    assert_int_equal(registry_audit_share(registry, node, NULL), 0);
    return registry;
}

static void append(struct registry *registry, const char *tenant, uint64_t at_ns,
                   const char *target)
{
    const struct registry_audit row = {.at_ns = at_ns,
                                       .tenant = tenant,
                                       .actor = "uid:0",
                                       .action = "skill.push",
                                       .target = target,
                                       .detail = "x"};

    assert_int_equal(registry_audit_append(registry, &row, NULL), 0);
}

#define N 100u
/* N of them. */
static void append_many(struct registry *registry)
{
    struct registry_audit rows[N];

    for (unsigned i = 0; i < N; i++)
        rows[i] =
            (struct registry_audit){.at_ns = 2, .tenant = ONE, .action = "x", .target = "x"};
    assert_int_equal(registry_audit_append_all(registry, rows, N, LIMIT_AUDIT_ROWS, NULL), 0);
}

/* Rows of another node's, as they come. */
struct come {
    const char *tenant;
    uint64_t at_ns;
    unsigned number;
};

static int deed_at(const void *ctx, size_t at, struct deed *ret)
{
    const struct come *come = (const struct come *)ctx + at;

    *ret = (struct deed){.id = come->number, .at_ns = come->at_ns, .action = "skill.push"};
    (void)snprintf(ret->entry, sizeof(ret->entry), "b-1.%032u", come->number);
    (void)snprintf(ret->tenant, sizeof(ret->tenant), "%s", come->tenant);
    (void)snprintf(ret->target, sizeof(ret->target), "b%u", come->number);
    return come->number ? 0 : -EINVAL;
}

static void take(struct registry *registry, const struct come *come, size_t n, uint64_t keep,
                 uint64_t revision)
{
    const struct change_place place = {.bucket = "bucket", .revision = revision, .noted_ns = 5};

    assert_int_equal(registry_audit_take(registry, n, deed_at, come, keep, &place, NULL), 0);
}

/* The targets of all rows, in pages of so many, each with a space behind it. */
static const char *targets(struct registry *registry, const char *tenant, size_t page)
{
    static char out[512];
    struct registry_audit rows[ROWS_MAX];
    char entry[DEED_ENTRY_SIZE] = "";
    uint64_t place = 0;
    size_t n = page;

    out[0] = '\0';
    while (n == page) {
        assert_int_equal(
            registry_audit_list(registry, tenant, place, entry, page, rows, &n, NULL), 0);
        for (size_t i = 0; i < n; i++) {
            size_t len = strlen(out);

            snprintf(out + len, sizeof(out) - len, "%s ", rows[i].target);
            place = rows[i].place;
            snprintf(entry, sizeof(entry), "%s", rows[i].entry);
            registry_audit_finish(&rows[i]);
        }
    }
    return out;
}

static uint64_t count_untold(struct registry *registry)
{
    uint64_t n = 0;

    assert_int_equal(registry_audit_count_untold(registry, &n, NULL), 0);
    return n;
}

/* Also rows of one moment, and whatever the pages are. */
static void rows_of_all_nodes_are_in_the_order_of_their_times(void **state)
{
    static const struct come come[] = {{ONE, 20, 1}, {TWO, 20, 2}, {ONE, 20, 3}, {ONE, 5, 4}};
    struct registry *registry = open_shared(*state, "a");

    append(registry, ONE, 10, "a1");
    append(registry, ONE, 30, "a2");
    take(registry, come, 4, 100, 7);
    for (size_t page = 1; page < 8; page++) {
        assert_string_equal(targets(registry, NULL, page), "a2 b3 b2 b1 a1 b4 ");
        assert_string_equal(targets(registry, ONE, page), "a2 b3 b1 a1 b4 ");
        assert_string_equal(targets(registry, TWO, page), "b2 ");
    }
    registry_close(registry);
}

static void a_row_that_comes_again_is_there_once(void **state)
{
    static const struct come come[] = {{ONE, 20, 1}, {ONE, 20, 0}, {ONE, 20, 1}, {ONE, 90, 1}};
    struct registry *registry = open_shared(*state, "a");
    struct change_place place;

    assert_int_equal(registry_place_get(registry, REGISTRY_PLACE_OF_AUDIT, &place, NULL), 0);
    assert_string_equal(place.bucket, "");
    take(registry, come, 3, 100, 7);
    take(registry, come + 3, 1, 100, 9);
    assert_string_equal(targets(registry, NULL, 4), "b1 ");
    assert_int_equal(registry_place_get(registry, REGISTRY_PLACE_OF_AUDIT, &place, NULL), 0);
    assert_string_equal(place.bucket, "bucket");
    assert_int_equal(place.revision, 9);
    /* It is another node's to tell. */
    assert_int_equal(count_untold(registry), 0);
    registry_close(registry);
}

static void who_wrote_one_and_its_number_there_are_known(void **state)
{
    static const struct come come[] = {{ONE, 20, 77}};
    struct registry *registry = open_shared(*state, "a");
    struct registry_audit rows[2];
    size_t n = 0;

    append(registry, ONE, 10, "a1");
    take(registry, come, 1, 100, 7);
    assert_int_equal(registry_audit_list(registry, NULL, 0, "", 2, rows, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].id, 77);
    assert_memory_equal(rows[0].entry, "b-1.", 4);
    assert_int_equal(rows[1].id, 1);
    assert_memory_equal(rows[1].entry, "a.", 2);
    assert_int_equal(strlen(rows[1].entry), 2 + ID_DIGITS);
    registry_audit_finish(&rows[0]);
    registry_audit_finish(&rows[1]);
    registry_close(registry);
}

/* By their times, whenever they came; a tenant's push out nobody else's. */
static void the_oldest_of_other_nodes_go(void **state)
{
    static const struct come come[] = {{ONE, 20, 1}, {TWO, 1, 2}, {ONE, 5, 3}, {ONE, 25, 4}};
    static const struct come again[] = {{ONE, 5, 3}, {ONE, 26, 5}};
    struct registry *registry = open_shared(*state, "a");

    append(registry, ONE, 30, "a1");
    take(registry, come, 4, 3, 7);
    assert_string_equal(targets(registry, NULL, 4), "a1 b4 b1 b2 ");
    /* Who tells anew what is too old here. */
    take(registry, again, 2, 3, 9);
    assert_string_equal(targets(registry, NULL, 4), "a1 b5 b4 b2 ");
    assert_int_equal(registry_audit_prune(registry, 3, NULL), 0);
    assert_string_equal(targets(registry, NULL, 4), "a1 b5 b4 ");
    registry_close(registry);
}

/* Whatever others write of times to come: nobody takes away what a node saw itself. */
static void others_push_out_nothing_that_was_written_here(void **state)
{
    static const struct come come[] = {{ONE, 91, 1}, {ONE, 92, 2}, {ONE, 93, 3}, {ONE, 94, 4}};
    struct registry *registry = open_shared(*state, "a");

    for (unsigned i = 1; i <= 3; i++)
        append(registry, ONE, i, "a");
    append(registry, TWO, 9, "of_two");
    take(registry, come, 4, 2, 7);
    assert_string_equal(targets(registry, NULL, 4), "b4 b3 of_two a a a ");
    assert_int_equal(registry_audit_prune(registry, 4, NULL), 0);
    assert_string_equal(targets(registry, NULL, 4), "b4 b3 of_two a a a ");
    /* Its own do, as where it is on its own. */
    append(registry, ONE, 4, "new");
    assert_int_equal(registry_audit_prune_tenant(registry, ONE, 2, NULL), 0);
    assert_string_equal(targets(registry, NULL, 4), "b4 b3 of_two new a ");
    assert_int_equal(registry_audit_prune(registry, 1, NULL), 0);
    assert_string_equal(targets(registry, NULL, 4), "b4 new ");
    registry_close(registry);
}

static void what_is_not_told_is_known_in_turn(void **state)
{
    struct registry *registry = open_shared(*state, "a");
    struct deed deed;

    append(registry, ONE, 10, "a1");
    append(registry, NULL, 9, "a2");
    assert_int_equal(count_untold(registry), 2);
    assert_int_equal(registry_audit_untold(registry, 0, &deed, NULL), 0);
    assert_string_equal(deed.target, "a1");
    assert_string_equal(deed.tenant, ONE);
    assert_int_equal(registry_audit_untold(registry, deed.id, &deed, NULL), 0);
    assert_string_equal(deed.target, "a2");
    assert_string_equal(deed.tenant, "");
    assert_int_equal(deed.at_ns, 9);
    assert_int_equal(registry_audit_untold(registry, deed.id, &deed, NULL), -ENOENT);
    assert_int_equal(registry_audit_told(registry, 1, 1000, NULL), 0);
    assert_int_equal(count_untold(registry), 1);
    assert_int_equal(registry_audit_told(registry, 2, 2000, NULL), 0);
    assert_int_equal(count_untold(registry), 0);
    /* What was told before that servers have. */
    assert_int_equal(registry_audit_untell(registry, 2000, NULL), 0);
    assert_int_equal(registry_audit_untold(registry, 0, &deed, NULL), 0);
    assert_string_equal(deed.target, "a2");
    assert_int_equal(count_untold(registry), 1);
    assert_int_equal(registry_audit_untell(registry, 0, NULL), 0);
    assert_int_equal(count_untold(registry), 2);
    registry_close(registry);
}

/* Of what a daemon wrote on its own the newest are told, and all are shown. */
static void who_joins_brings_its_audit_along(void **state)
{
    struct registry *registry = open_registry(*state);
    struct registry_audit row;
    struct deed deed;
    size_t n = 0;

    append(registry, ONE, 1, "oldest");
    for (unsigned i = 0; i < LIMIT_AUDIT_TOLD; i += N)
        append_many(registry);
    assert_int_equal(count_untold(registry), 0);
    assert_int_equal(registry_audit_list(registry, NULL, 2, "", 1, &row, &n, NULL), 0);
    assert_string_equal(row.entry, "");
    registry_audit_finish(&row);
    registry_close(registry);

    registry = open_shared(*state, "a");
    assert_int_equal(count_untold(registry), LIMIT_AUDIT_TOLD);
    assert_int_equal(registry_audit_untold(registry, 0, &deed, NULL), 0);
    assert_int_equal(deed.id, 2);
    assert_memory_equal(deed.entry, "a.", 2);
    assert_int_equal(registry_audit_list(registry, NULL, 2, "", 1, &row, &n, NULL), 0);
    assert_string_equal(row.target, "oldest");
    registry_audit_finish(&row);
    assert_int_equal(registry_audit_told(registry, INT64_MAX, 5, NULL), 0);
    registry_close(registry);

    /* Written on its own again, and then under another name. */
    registry = open_registry(*state);
    append(registry, ONE, 3, "alone");
    assert_int_equal(count_untold(registry), 0);
    registry_close(registry);
    registry = open_shared(*state, "a");
    assert_int_equal(count_untold(registry), 1);
    registry_close(registry);
    registry = open_shared(*state, "a_2");
    assert_int_equal(count_untold(registry), 1);
    assert_int_equal(registry_audit_untold(registry, 0, &deed, NULL), 0);
    assert_string_equal(deed.target, "alone");
    assert_memory_equal(deed.entry, "a_2.", 4);
    assert_int_equal(strlen(deed.entry), 4 + ID_DIGITS);
    /* What was told under the first name nobody else may tell. */
    assert_int_equal(registry_audit_untell(registry, 0, NULL), 0);
    assert_int_equal(count_untold(registry), 1);
    registry_close(registry);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(rows_of_all_nodes_are_in_the_order_of_their_times),
        IN_DIR(a_row_that_comes_again_is_there_once),
        IN_DIR(who_wrote_one_and_its_number_there_are_known),
        IN_DIR(the_oldest_of_other_nodes_go),
        IN_DIR(others_push_out_nothing_that_was_written_here),
        IN_DIR(what_is_not_told_is_known_in_turn),
        IN_DIR(who_joins_brings_its_audit_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
