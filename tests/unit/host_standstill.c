/* SPDX-License-Identifier: Apache-2.0 */
/* A machine that stands still, with a simulated clock. */
#include "api/host/standstill.h"

#include "base/clock.h"

#include <string.h>

#include "tests/unit/cmocka_all.h"

#define HOUR_MS  UINT64_C(3600000)
#define START_MS UINT64_C(5000)

static bool ask(struct standstill *s, uint64_t now_ms)
{
    if (!standstill_may_ask(s, now_ms * NS_PER_MS))
        return false;
    standstill_asked(s, now_ms * NS_PER_MS);
    return true;
}

static void test_it_is_told_at_once_and_spoken_of_twice(void **state)
{
    struct standstill s = {0};
    uint64_t at = START_MS * NS_PER_MS;

    (void)state;
    assert_false(standstill_may_ask(&s, at));
    assert_true(standstill_begin(&s, at));
    assert_false(standstill_begin(&s, at + 1)); /* by another write */
    assert_true(standstill_may_ask(&s, at + 1));
    standstill_asked(&s, at + 10);
    assert_int_equal(standstill_end(&s, at + 20), 20);
    assert_int_equal(standstill_end(&s, at + 30), 0);
    at += 30;
    assert_false(standstill_is_over(&s, at));
    at += STANDSTILL_CALM_MS * NS_PER_MS;
    assert_true(standstill_is_over(&s, at));
    assert_false(standstill_is_over(&s, at + 1));
    /* The next one is a new one. */
    assert_true(standstill_begin(&s, at + 2));
    assert_true(standstill_may_ask(&s, at + 2));
}

/* An hour, turn by turn, of one that stops as soon as it goes on; resumes_apart: it is heard.
 */
static void stop_again_and_again(bool resumes_apart)
{
    struct standstill s = {0};
    unsigned asked = 0, spoken_of = 0;
    uint64_t last_ms = 0;

    spoken_of += standstill_begin(&s, START_MS * NS_PER_MS);
    for (uint64_t ms = START_MS; ms < START_MS + HOUR_MS; ms += 5) {
        spoken_of += standstill_is_over(&s, ms * NS_PER_MS);
        if (!ask(&s, ms))
            continue;
        assert_true(asked == 0 || ms - last_ms >= 1000);
        last_ms = ms;
        asked++;
        if (resumes_apart)
            standstill_end(&s, (ms + 1) * NS_PER_MS);
        spoken_of += standstill_begin(&s, (ms + 2) * NS_PER_MS);
        assert_false(standstill_is_lost(&s, 60000, (ms + 3) * NS_PER_MS));
    }
    assert_int_equal(spoken_of, 1);
    assert_in_range(asked, HOUR_MS / STANDSTILL_PAUSE_MAX_MS,
                    HOUR_MS / STANDSTILL_PAUSE_MAX_MS + 6);
}

static void test_one_that_stops_again_is_told_seldom(void **state)
{
    (void)state;
    stop_again_and_again(true);
    stop_again_and_again(false);
}

static void test_one_that_does_not_go_on_is_lost(void **state)
{
    struct standstill s = {0};
    unsigned asked = 0;

    (void)state;
    standstill_begin(&s, START_MS * NS_PER_MS);
    /* Without room for an hour it is not told, and waits. */
    assert_false(standstill_is_lost(&s, 60000, (START_MS + HOUR_MS) * NS_PER_MS));
    for (uint64_t ms = START_MS; ms <= START_MS + 60000; ms++) {
        asked += ask(&s, ms);
        assert_false(standstill_is_lost(&s, 60000, ms * NS_PER_MS));
    }
    assert_int_equal(asked, 61);
    assert_true(standstill_is_lost(&s, 60000, (START_MS + 60001) * NS_PER_MS));
    /* But not for what nobody could have heard. */
    standstill_excuse(&s, 5000 * NS_PER_MS);
    assert_false(standstill_is_lost(&s, 60000, (START_MS + 65000) * NS_PER_MS));
    assert_int_equal(standstill_end(&s, (START_MS + 65000) * NS_PER_MS), 60000 * NS_PER_MS);
    assert_false(standstill_is_lost(&s, 60000, (START_MS + HOUR_MS) * NS_PER_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_told_at_once_and_spoken_of_twice),
        cmocka_unit_test(test_one_that_stops_again_is_told_seldom),
        cmocka_unit_test(test_one_that_does_not_go_on_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
