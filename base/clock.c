/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

#define TRIES_MAX    50u
#define TRY_PAUSE_NS 20000000

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts;

    /* Cannot fail for these clocks with a valid pointer. */
    (void)clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int clock_timeout_ms(uint64_t deadline_ns)
{
    uint64_t now = clock_monotonic_ns();
    uint64_t ms;

    if (deadline_ns <= now)
        return 0;
    ms = (deadline_ns - now + 999999u) / 1000000u;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

bool clock_try_again(unsigned *tries)
{
    const struct timespec pause = {.tv_nsec = TRY_PAUSE_NS};

    if (*tries == TRIES_MAX)
        return false;
    ++*tries;
    (void)nanosleep(&pause, NULL);
    return true;
}
