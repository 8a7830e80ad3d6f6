/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for a skill that goes on until it is told to end. */
#ifndef SKILLVM_TESTS_UNIT_FAKE_TICKS_H
#define SKILLVM_TESTS_UNIT_FAKE_TICKS_H

#include "tests/unit/fake_guest.h"

/*
 * A tick on stdout every 100 ms for an hour, or until CANCEL comes: "deaf" goes on after that.
 * "chatty" says much first, on both streams in turn, with characters that come in two parts.
 */
void fake_tick(const struct fake *f);
/* Says "waits", and ends well once its process has SIGUSR1. */
void fake_wait_told(const struct fake *f);
/*
 * "session-late" goes on for eight seconds, or for seven once it was cancelled, which it
 * ignores.
 */
void fake_be_late(const struct fake *f);

#endif
