/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

#define TRIES_MAX    50u
#define TRY_PAUSE_NS 20000000
#define TSC_READINGS 64u
#define TSC_PAUSE_NS 20000000

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

/* The counter and the time at one moment. */
struct tsc_reading {
    uint64_t ticks, ns;
};

/* Of many the one that nothing came between, or the least. */
static struct tsc_reading read_tsc(void)
{
    struct tsc_reading best = {0};
    uint64_t least_ns = UINT64_MAX;

    for (unsigned i = 0; i < TSC_READINGS; i++) {
        const uint64_t before_ns = clock_monotonic_ns();
        const uint64_t ticks = __builtin_ia32_rdtsc();
        const uint64_t took_ns = clock_monotonic_ns() - before_ns;

        if (took_ns < least_ns) {
            least_ns = took_ns;
            best = (struct tsc_reading){ticks, before_ns + took_ns / 2};
        }
    }
    return best;
}

uint32_t clock_tsc_khz(void)
{
    const struct timespec pause = {.tv_nsec = TSC_PAUSE_NS};
    const struct tsc_reading first = read_tsc();
    struct tsc_reading last;

    (void)nanosleep(&pause, NULL);
    last = read_tsc();
    if (last.ns <= first.ns)
        return 0;
    return (uint32_t)((last.ticks - first.ticks) * NS_PER_MS / (last.ns - first.ns));
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
