/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What could not be begun here, and when that may be tried again: after a second, and each time
 * after twice as long as before, up to about a minute. Values alone: no clock, and no lock.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_PAUSES_H
#define SKILLVM_API_DAEMON_ENGINE_PAUSES_H

#include "api/daemon/terms/record.h"

#include <stdbool.h>
#include <stdint.h>

#define PAUSES_MAX 64u

/* Zero-initialise. Of more than it has room for it forgets the one that may be tried first. */
struct pauses {
    struct pauses_entry {
        char id[RECORD_ID_SIZE]; /* "": none */
        unsigned tries;          /* up to the longest pause */
        unsigned failures;       /* those of them that failed */
        uint64_t until_ns;       /* monotonic */
    } list[PAUSES_MAX];
};

/* Whether it is not to be tried yet (now_ns: monotonic, as below). */
bool pauses_hold(const struct pauses *pauses, const char *id, uint64_t now_ns);
/* It was not begun; failed: not only for want of room. How often it failed. */
unsigned pauses_note(struct pauses *pauses, const char *id, bool failed, uint64_t now_ns);
/* It is not to be tried any more. */
void pauses_forget(struct pauses *pauses, const char *id);

#endif
