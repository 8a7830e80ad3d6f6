/* SPDX-License-Identifier: Apache-2.0 */
/* How long the end of a connection is waited for, with stand-ins for libnats and the clock. */
#include "tests/unit/cmocka_all.h"

#include <nats/nats.h>

#include "api/daemon/nats/nats_link.h"

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static struct nats_ending *ending;
static unsigned waits;     /* how often it was waited for */
static unsigned over_from; /* the wait in which it ends; 0: never */
static uint64_t waited_ns; /* in all, where nothing stands still */

void natsConnection_Close(natsConnection *connection)
{
    (void)connection;
}

/* The time is over at once, as where the process stood still meanwhile. */
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until);
int __wrap_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
    struct timespec now;

    waits++;
    assert_int_equal(clock, CLOCK_MONOTONIC);
    (void)clock_gettime(clock, &now);
    waited_ns +=
        (uint64_t)((until->tv_sec - now.tv_sec) * 1000000000L + until->tv_nsec - now.tv_nsec);
    if (waits == over_from) {
        nats_note_end(NULL, ending);
        return sem_trywait(sem);
    }
    errno = waits == 1 ? EINTR : ETIMEDOUT;
    return -1;
}

static bool end(unsigned from)
{
    struct cluster_link link = {.connection = (natsConnection *)&waits,
                                .ending = nats_ending_create()};
    bool is_over;

    assert_non_null(link.ending);
    ending = link.ending;
    waits = 0;
    waited_ns = 0;
    over_from = from;
    is_over = nats_end_connection(&link);
    if (!is_over)
        free(link.ending);
    return is_over;
}

static void who_stood_still_goes_on_waiting(void **state)
{
    (void)state;
    assert_true(end(1));
    assert_true(end(2));
    assert_true(end(3));
    assert_true(end(9));
}

static void what_never_ends_is_left(void **state)
{
    (void)state;
    assert_false(end(0));
    assert_in_range(waited_ns, 9000000000u, 11000000000u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_stood_still_goes_on_waiting),
        cmocka_unit_test(what_never_ends_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
