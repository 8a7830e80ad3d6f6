/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/clock: units, direction, and the rounding of timeouts.
 */
#include "base/clock.h"
#include "base/cond.h"

#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

static void test_monotonic_moves_forward(void **state)
{
    uint64_t before = clock_monotonic_ns();
    uint64_t after;

    (void)state;
    usleep(2000);
    after = clock_monotonic_ns();
    assert_true(after - before >= 2000000u);
    assert_true(after - before < 60000000000u);
}

static void test_realtime_is_the_date(void **state)
{
    uint64_t want = (uint64_t)time(NULL);
    uint64_t got = clock_realtime_ns() / 1000000000u;

    (void)state;
    assert_true(got + 1 >= want && got <= want + 60);
}

static void test_thread_cpu_counts_work_alone(void **state)
{
    uint64_t before = clock_thread_cpu_ns();

    (void)state;
    usleep(50000);
    assert_true(clock_thread_cpu_ns() - before < 50000000u);
    while (clock_thread_cpu_ns() - before < 50000000u)
        ;
}

/* Within a hundredth, whatever else runs: the emulated host's time goes by it. */
static void test_tsc_is_measured(void **state)
{
    const uint64_t once = clock_tsc_khz();

    (void)state;
    assert_true(once > 100000);
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(clock_tsc_khz(), once - once / 100, once + once / 100);
}

static void test_timeout(void **state)
{
    uint64_t now = clock_monotonic_ns();

    (void)state;
    assert_int_equal(clock_timeout_ms(0), 0);
    assert_int_equal(clock_timeout_ms(now), 0);
    assert_int_equal(clock_timeout_ms(UINT64_MAX), INT_MAX);
    /* Rounded up: a deadline still ahead never gives 0, which would make poll(2) spin. */
    assert_in_range(clock_timeout_ms(clock_monotonic_ns() + 600000000000u), 540000, 600000);
}

/* Nobody signals: a wait ends by its deadline, and one that is over does not wait at all. */
static void test_cond_waits_until(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t deadline_ns = clock_monotonic_ns() + 2000000u;
    pthread_cond_t cond;

    (void)state;
    cond_init(&cond);
    (void)pthread_mutex_lock(&mutex);
    while (cond_wait_until(&cond, &mutex, deadline_ns))
        ;
    assert_true(clock_monotonic_ns() >= deadline_ns);
    assert_false(cond_wait_until(&cond, &mutex, 0));
    (void)pthread_mutex_unlock(&mutex);
    (void)pthread_cond_destroy(&cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic_moves_forward),
        cmocka_unit_test(test_realtime_is_the_date),
        cmocka_unit_test(test_thread_cpu_counts_work_alone),
        cmocka_unit_test(test_tsc_is_measured),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_cond_waits_until),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
