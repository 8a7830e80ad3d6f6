/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets against a made-up clock. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/rate.h"

#define S      1000000000ull
#define MINUTE (60 * S)

static struct rate *create(void)
{
    struct rate *rate = rate_create();

    assert_non_null(rate);
    return rate;
}

static void a_minute_may_be_spent_at_once(void **state)
{
    struct rate *rate = create();
    uint64_t now = 7 * S;

    (void)state;
    for (int i = 0; i < 30; i++)
        assert_int_equal(rate_take(rate, "a", 30, now), 0);
    /* Two seconds for each, to the nanosecond. */
    assert_int_equal(rate_take(rate, "a", 30, now), 2 * S);
    assert_int_equal(rate_take(rate, "a", 30, now + S), S);
    assert_int_equal(rate_take(rate, "a", 30, now + 2 * S - 1), 1);
    assert_int_equal(rate_take(rate, "a", 30, now + 2 * S), 0);
    assert_int_equal(rate_take(rate, "a", 30, now + 2 * S), 2 * S);
    rate_destroy(rate);
}

static void waiting_as_told_is_enough(void **state)
{
    static const unsigned rates[] = {1, 7, 59, 61, 1000, 999983, RATE_MAX_PER_MINUTE};

    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct rate *rate = create();
        uint64_t now = 1;
        int64_t wait = 0;

        for (unsigned n = 0; wait == 0; n++) {
            assert_true(n <= rates[i]);
            wait = rate_take(rate, "a", rates[i], now);
        }
        for (int n = 0; n < 100; n++) {
            assert_true(wait > 0);
            now += (uint64_t)wait;
            assert_int_equal(rate_take(rate, "a", rates[i], now), 0);
            wait = rate_take(rate, "a", rates[i], now);
        }
        rate_destroy(rate);
    }
}

static void the_rate_is_kept_over_time(void **state)
{
    struct rate *rate = create();
    unsigned n = 0;

    (void)state;
    for (uint64_t now = 0; now < 10 * MINUTE; now += S / 10)
        n += rate_take(rate, "a", 60, now) == 0;
    assert_true(n >= 10 * 60 && n <= 11 * 60);
    rate_destroy(rate);
}

static void tenants_have_buckets_of_their_own(void **state)
{
    struct rate *rate = create();

    (void)state;
    assert_int_equal(rate_take(rate, "a", 1, 0), 0);
    assert_int_equal(rate_take(rate, "a", 1, 0), MINUTE);
    assert_int_equal(rate_take(rate, "b", 1, 0), 0);
    assert_int_equal(rate_take(rate, "c", 0, 0), 0);
    assert_int_equal(rate_take(rate, "c", 0, 0), 0);
    rate_destroy(rate);
    rate_destroy(NULL);
}

static void a_rate_may_change(void **state)
{
    struct rate *rate = create();

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(rate_take(rate, "a", 100, 0), 0);
    /* 90 are left, of which a lower rate leaves 2. */
    assert_int_equal(rate_take(rate, "a", 2, 0), 0);
    assert_int_equal(rate_take(rate, "a", 2, 0), 0);
    assert_int_equal(rate_take(rate, "a", 2, 0), 30 * S);
    /* A higher one fills faster, and gives nothing at once. */
    assert_int_equal(rate_take(rate, "a", 60, 0), S);
    assert_int_equal(rate_take(rate, "a", 0, 0), 0);
    rate_destroy(rate);
}

static void a_clock_that_stands_still_or_steps_back_gives_nothing(void **state)
{
    struct rate *rate = create();

    (void)state;
    assert_int_equal(rate_take(rate, "a", 1, MINUTE), 0);
    assert_int_equal(rate_take(rate, "a", 1, 0), MINUTE);
    assert_int_equal(rate_take(rate, "a", 1, MINUTE), MINUTE);
    assert_int_equal(rate_take(rate, "a", 1, UINT64_MAX), 0);
    rate_destroy(rate);
}

/* Buckets that are full again go, and those that are not keep what they know. */
static void many_tenants_are_forgotten_in_time(void **state)
{
    struct rate *rate = create();

    (void)state;
    assert_int_equal(rate_take(rate, "kept", 1, 0), 0);
    for (unsigned i = 0; i < 20000; i++) {
        char name[16];

        snprintf(name, sizeof(name), "t%u", i);
        assert_int_equal(rate_take(rate, name, 60000, i * (MINUTE / 40000)), 0);
    }
    assert_int_equal(rate_take(rate, "kept", 1, MINUTE / 2), MINUTE / 2);
    rate_destroy(rate);
}

/* What others took is gone here, and comes back as what was taken here does. */
static void what_others_took_counts(void **state)
{
    struct rate *rate = create();
    uint64_t now = 7 * S;

    (void)state;
    rate_charge(rate, "a", 30, 29, now);
    assert_int_equal(rate_take(rate, "a", 30, now), 0);
    assert_int_equal(rate_take(rate, "a", 30, now), 2 * S);
    /* More than there are leaves none, and no debt. */
    rate_charge(rate, "a", 30, UINT64_MAX, now + S);
    assert_int_equal(rate_take(rate, "a", 30, now + S), 2 * S);
    assert_int_equal(rate_take(rate, "a", 30, now + 3 * S), 0);
    /* Nobody's limit is nothing to charge. */
    rate_charge(rate, "b", 0, 5, now);
    assert_int_equal(rate_take(rate, "b", 1, now), 0);
    rate_destroy(rate);
}

struct seen {
    unsigned n;
    uint64_t taken;
};

static void see(void *ctx, const char *tenant, uint64_t taken)
{
    struct seen *seen = ctx;

    assert_string_equal(tenant, "a");
    seen->n++;
    seen->taken = taken;
}

/* Others are told what was taken here alone, until all of it has come back. */
static void what_was_taken_is_told(void **state)
{
    struct rate *rate = create();
    struct seen seen = {0};
    uint64_t now = 7 * S;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(rate_take(rate, "a", 60, now), 0);
    rate_charge(rate, "a", 60, 10, now);
    rate_charge(rate, "b", 60, 10, now);
    rate_each(rate, now, see, &seen);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.taken, 3);
    rate_each(rate, now + 12 * S, see, &seen);
    assert_int_equal(seen.n, 2);
    rate_each(rate, now + 13 * S, see, &seen);
    assert_int_equal(seen.n, 2);
    assert_int_equal(rate_take(rate, "a", 60, now + 13 * S), 0);
    rate_each(rate, now + 13 * S, see, &seen);
    assert_int_equal(seen.n, 3);
    assert_int_equal(seen.taken, 1);
    rate_destroy(rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_may_be_spent_at_once),
        cmocka_unit_test(waiting_as_told_is_enough),
        cmocka_unit_test(the_rate_is_kept_over_time),
        cmocka_unit_test(tenants_have_buckets_of_their_own),
        cmocka_unit_test(a_rate_may_change),
        cmocka_unit_test(a_clock_that_stands_still_or_steps_back_gives_nothing),
        cmocka_unit_test(many_tenants_are_forgotten_in_time),
        cmocka_unit_test(what_others_took_counts),
        cmocka_unit_test(what_was_taken_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
