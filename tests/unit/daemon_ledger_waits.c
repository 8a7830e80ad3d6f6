/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for an execution of another node is woken for that one alone. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/ledger_waits.h"
#include "base/clock.h"

#include <pthread.h>

#define ID_A "exec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "exec_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void each_hears_of_its_own_once(void **state)
{
    struct ledger_waiter one, same, other;
    struct ledger_waits waits;

    (void)state;
    ledger_waits_init(&waits);
    ledger_waits_tell(&waits, ID_A);
    ledger_waiter_begin(&waits, ID_A, &one);
    ledger_waiter_begin(&waits, ID_A, &same);
    ledger_waiter_begin(&waits, ID_B, &other);
    assert_false(ledger_waiter_wait(&waits, &one, 0));
    /* Also what is said while nobody looks. */
    ledger_waits_tell(&waits, ID_A);
    assert_true(ledger_waiter_wait(&waits, &one, 0));
    assert_false(ledger_waiter_wait(&waits, &one, 0));
    assert_true(ledger_waiter_wait(&waits, &same, 0));
    assert_false(ledger_waiter_wait(&waits, &other, 0));
    ledger_waiter_end(&waits, &same);
    ledger_waits_tell(&waits, ID_A);
    ledger_waits_tell(&waits, ID_B);
    assert_true(ledger_waiter_wait(&waits, &one, 0));
    assert_true(ledger_waiter_wait(&waits, &other, 0));
    ledger_waiter_end(&waits, &other);
    ledger_waiter_end(&waits, &one);
    assert_null(waits.first);
    ledger_waits_finish(&waits);
}

static void *tell(void *waits)
{
    ledger_waits_tell(waits, ID_A);
    return NULL;
}

static void who_waits_is_woken(void **state)
{
    struct ledger_waits waits;
    struct ledger_waiter waiter;
    pthread_t thread;

    (void)state;
    ledger_waits_init(&waits);
    ledger_waiter_begin(&waits, ID_A, &waiter);
    assert_int_equal(pthread_create(&thread, NULL, tell, &waits), 0);
    assert_true(
        ledger_waiter_wait(&waits, &waiter, clock_monotonic_ns() + 600 * NS_PER_SECOND));
    assert_int_equal(pthread_join(thread, NULL), 0);
    ledger_waiter_end(&waits, &waiter);
    ledger_waits_finish(&waits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hears_of_its_own_once),
        cmocka_unit_test(who_waits_is_woken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
