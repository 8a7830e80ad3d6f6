/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that QEMU stopped as this machine's disk has no room: when it is told to go on, and
 * what is said of it. One that stops again and again, whatever room the disk seems to have, is
 * told ever more seldom, and spoken of once. It only keeps count; the clock is the caller's.
 */
#ifndef SKILLVM_API_HOST_STANDSTILL_H
#define SKILLVM_API_HOST_STANDSTILL_H

#include <stdbool.h>
#include <stdint.h>

/* Between two times that it is told to go on: doubles while it stops again within CALM. */
#define STANDSTILL_PAUSE_MS     1000u
#define STANDSTILL_PAUSE_MAX_MS 32000u
#define STANDSTILL_CALM_MS      10000u

/* Zero it for a machine that starts. Times are CLOCK_MONOTONIC's. */
struct standstill {
    uint64_t since_ns;   /* it stands still; 0: it runs */
    uint64_t asked_ns;   /* first told to go on since it stopped; 0: not yet */
    uint64_t next_ns;    /* when it may be told next */
    uint64_t resumed_ns; /* when it went on last */
    uint32_t pause_ms;
    bool spoken_of; /* and not yet that it runs again */
};

/* It stopped. True where that is to be said. */
bool standstill_begin(struct standstill *s, uint64_t now_ns);
/* It went on. For how long it stood still, in nanoseconds; 0: it did not. */
uint64_t standstill_end(struct standstill *s, uint64_t now_ns);
/* True once when it has gone on, and has not stopped again soon: that is to be said. */
bool standstill_is_over(struct standstill *s, uint64_t now_ns);

/* Whether it may be told to go on now, if there is room; and that it was. */
bool standstill_may_ask(const struct standstill *s, uint64_t now_ns);
void standstill_asked(struct standstill *s, uint64_t now_ns);
/* Whether it was told to, and has not gone on for longer than patience_ms. */
bool standstill_is_lost(const struct standstill *s, uint32_t patience_ms, uint64_t now_ns);
/* Nothing ran for gap_ns, QEMU as little as the caller. */
void standstill_excuse(struct standstill *s, uint64_t gap_ns);

#endif
