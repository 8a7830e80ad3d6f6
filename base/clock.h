/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks in nanoseconds.
 */
#ifndef SKILLVM_BASE_CLOCK_H
#define SKILLVM_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_MS     1000000ull
#define NS_PER_SECOND 1000000000ull

/* CLOCK_MONOTONIC: for durations and deadlines. */
uint64_t clock_monotonic_ns(void);
/* CLOCK_REALTIME since the epoch: for dates. */
uint64_t clock_realtime_ns(void);
/* CPU time that the calling thread has used. */
uint64_t clock_thread_cpu_ns(void);
/*
 * How many thousand times a second the processor's time stamp counter (RDTSC) counts: measured,
 * within 20 ms and to one part in some thousands on a busy machine, too. 0 where that failed.
 */
uint32_t clock_tsc_khz(void);
/* Milliseconds from now until deadline_ns (monotonic), rounded up, at least 0, for poll(2). */
int clock_timeout_ms(uint64_t deadline_ns);
/*
 * For what will be free or there in a moment (a lock or socket of a daemon that was killed
 * lives until its last child is past exec): waits 20 ms and counts in *tries, which begins at
 * 0. False at once when a second was waited.
 */
bool clock_try_again(unsigned *tries);

#endif
