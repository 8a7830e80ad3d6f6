/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in guest gives back as its session. */
#ifndef SKILLVM_TESTS_UNIT_FAKE_SESSION_H
#define SKILLVM_TESTS_UNIT_FAKE_SESSION_H

#include "tests/unit/fake_guest.h"

/*
 * Sends SESSION as the behaviour says: "session" what it found and the file of FAKE_DATA
 * ("name=content"); "session-only" that file alone; "session-odd" with names that are refused
 * and an empty folder; "session-big" more than fits; "session-none" and "session-junk" what no
 * guest sends. Any other leaves the file "touched".
 */
void fake_session_send(const struct fake *f);

#endif
