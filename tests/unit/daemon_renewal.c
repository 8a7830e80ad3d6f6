/* SPDX-License-Identifier: Apache-2.0 */
/* When a snapshot is made anew, reckoned with made-up times. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/renewal.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define NOW    (5 * SECOND)

static void without_limits_never(void **state)
{
    struct renewal r = {0};

    (void)state;
    renewal_begin(&r, NOW, 0);
    r.uses = UINT64_MAX;
    assert_null(renewal_reason(&r, UINT64_MAX));
    assert_int_equal(renewal_next_ns(&r), RENEWAL_NEVER);
}

static void after_the_time(void **state)
{
    struct renewal r = {.limits = {.age_ms = 2000}};

    (void)state;
    renewal_begin(&r, NOW, 0);
    assert_null(renewal_reason(&r, NOW));
    assert_int_equal(renewal_next_ns(&r), NOW + 2 * SECOND);
    assert_null(renewal_reason(&r, NOW + 2 * SECOND - 1));
    assert_string_equal(renewal_reason(&r, NOW + 2 * SECOND), "age");
    /* A new one has its own time. */
    renewal_begin(&r, NOW + 3 * SECOND, 0);
    assert_null(renewal_reason(&r, NOW + 3 * SECOND));
    assert_int_equal(renewal_next_ns(&r), NOW + 5 * SECOND);
}

/* Even one that is older than the clock, which began with the host. */
static void the_time_before_counts(void **state)
{
    struct renewal r = {.limits = {.age_ms = 2000}};

    (void)state;
    renewal_begin(&r, NOW, 1500 * MS);
    assert_int_equal(renewal_age_ns(&r, NOW), 1500 * MS);
    assert_int_equal(renewal_next_ns(&r), NOW + 500 * MS);
    assert_null(renewal_reason(&r, NOW + 500 * MS - 1));
    assert_string_equal(renewal_reason(&r, NOW + 500 * MS), "age");
    renewal_begin(&r, NOW, 1000 * SECOND);
    assert_int_equal(renewal_age_ns(&r, NOW + SECOND), 1001 * SECOND);
    assert_string_equal(renewal_reason(&r, NOW), "age");
    assert_true(renewal_next_ns(&r) <= NOW);
}

static void after_so_many_uses(void **state)
{
    struct renewal r = {.limits = {.uses = 2}};

    (void)state;
    renewal_begin(&r, NOW, 0);
    r.uses = 1;
    assert_null(renewal_reason(&r, NOW));
    assert_int_equal(renewal_next_ns(&r), RENEWAL_NEVER);
    r.uses = 2;
    assert_string_equal(renewal_reason(&r, NOW), "uses");
    renewal_begin(&r, NOW, 0);
    assert_null(renewal_reason(&r, NOW));
    /* A limit that shrinks below what was used already. */
    r.uses = 2;
    r.limits.uses = 1;
    assert_string_equal(renewal_reason(&r, NOW), "uses");
}

/* Each try is later than the one before, up to an hour; who asks does not wait. */
static void failures_are_tried_again_later(void **state)
{
    struct renewal r = {.limits = {.uses = 1}};
    uint64_t wait_ms = 30000;

    (void)state;
    renewal_begin(&r, NOW, 0);
    r.uses = 1;
    for (int i = 0; i < 80; i++) {
        renewal_fail(&r, NOW, 30000);
        assert_int_equal(renewal_next_ns(&r), NOW + wait_ms * MS);
        assert_null(renewal_reason(&r, NOW + wait_ms * MS - 1));
        assert_string_equal(renewal_reason(&r, NOW + wait_ms * MS), "uses");
        wait_ms = wait_ms * 2 < RENEWAL_BACKOFF_MS ? wait_ms * 2 : RENEWAL_BACKOFF_MS;
    }
    r.is_wanted = true;
    r.after_ns = 0;
    assert_string_equal(renewal_reason(&r, NOW), "wanted");
    renewal_fail(&r, NOW, 30000);
    assert_null(renewal_reason(&r, NOW));
    assert_string_equal(renewal_reason(&r, NOW + RENEWAL_BACKOFF_MS * MS), "wanted");
    renewal_begin(&r, NOW, 0);
    assert_null(renewal_reason(&r, NOW + RENEWAL_BACKOFF_MS * MS));
    r.uses = 1;
    renewal_fail(&r, NOW, 30000);
    assert_int_equal(renewal_next_ns(&r), NOW + 30000 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_limits_never),           cmocka_unit_test(after_the_time),
        cmocka_unit_test(the_time_before_counts),         cmocka_unit_test(after_so_many_uses),
        cmocka_unit_test(failures_are_tried_again_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
