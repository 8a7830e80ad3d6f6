/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a snapshot is made anew: clones of one share its addresses and its hash seed, so neither
 * the time nor the executions that do are without bound. Only reckons; times are of the
 * monotonic clock. Only snapshots.c calls this, under its lock.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_RENEWAL_H
#define SKILLVM_API_DAEMON_MACHINE_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

#define RENEWAL_NEVER      UINT64_MAX
#define RENEWAL_BACKOFF_MS 3600000u /* the longest wait between two tries */

/* What may change while the daemon runs. */
struct renewal_limits {
    uint64_t age_ms; /* of a snapshot; 0: no limit */
    uint64_t uses;   /* executions that begin from one; 0: no limit */
};

/* A zeroed one is of a snapshot that is never due. */
struct renewal {
    struct renewal_limits limits;
    uint64_t begin_ns; /* when the snapshot came into use */
    uint64_t age_ns;   /* which it had then */
    uint64_t uses;     /* executions that began from it */
    bool is_wanted;    /* somebody asked for another */
    unsigned failures; /* tries in a row that made none */
    uint64_t after_ns; /* no try before */
};

/* A snapshot came into use, this old already. */
void renewal_begin(struct renewal *r, uint64_t now_ns, uint64_t age_ns);
/* Another could not be made: first_ms until the next try, twice that after the next failure. */
void renewal_fail(struct renewal *r, uint64_t now_ns, uint64_t first_ms);
uint64_t renewal_age_ns(const struct renewal *r, uint64_t now_ns);
/* Why another is to be made now, in a word; NULL: it is not. */
const char *renewal_reason(const struct renewal *r, uint64_t now_ns);
/* When time alone may next make it due; RENEWAL_NEVER. */
uint64_t renewal_next_ns(const struct renewal *r);

#endif
