/* SPDX-License-Identifier: Apache-2.0 */
/* What could not be begun is tried again ever later, however much there is of it. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/pauses.h"
#include "base/clock.h"

#include <stdio.h>

#define ID_A  "exec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define START (1000 * NS_PER_SECOND)

static void each_pause_is_twice_as_long(void **state)
{
    static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 64, 64, 64};
    struct pauses pauses = {0};
    uint64_t now = START;

    (void)state;
    assert_false(pauses_hold(&pauses, ID_A, now));
    for (unsigned i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        assert_int_equal(pauses_note(&pauses, ID_A, true, now), i + 1);
        now += seconds[i] * NS_PER_SECOND;
        assert_true(pauses_hold(&pauses, ID_A, now - 1));
        assert_false(pauses_hold(&pauses, ID_A, now));
    }
    pauses_forget(&pauses, ID_A);
    assert_int_equal(pauses_note(&pauses, ID_A, true, now), 1);
    assert_false(pauses_hold(&pauses, ID_A, now + NS_PER_SECOND));
}

/* Where there is no room it waits as long, and has not failed. */
static void want_of_room_is_no_failure(void **state)
{
    struct pauses pauses = {0};

    (void)state;
    assert_int_equal(pauses_note(&pauses, ID_A, false, START), 0);
    assert_int_equal(pauses_note(&pauses, ID_A, false, START), 0);
    assert_true(pauses_hold(&pauses, ID_A, START + 2 * NS_PER_SECOND - 1));
    assert_int_equal(pauses_note(&pauses, ID_A, true, START), 1);
}

/* Those that were tried the most stay. */
static void of_too_many_the_first_is_forgotten(void **state)
{
    struct pauses pauses = {0};
    char id[RECORD_ID_SIZE];

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        (void)pauses_note(&pauses, ID_A, true, START);
    for (unsigned i = 0; i < 2 * PAUSES_MAX; i++) {
        snprintf(id, sizeof(id), "exec_%032x", i);
        assert_int_equal(pauses_note(&pauses, id, true, START + i), 1);
        assert_true(pauses_hold(&pauses, id, START + i + 1));
    }
    assert_false(pauses_hold(&pauses, "exec_00000000000000000000000000000000", START));
    assert_int_equal(pauses_note(&pauses, ID_A, true, START), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pause_is_twice_as_long),
        cmocka_unit_test(want_of_room_is_no_failure),
        cmocka_unit_test(of_too_many_the_first_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
