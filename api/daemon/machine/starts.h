/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether machines start. One that does not is that execution's failure; several in a row are
 * the host's, and another host may do better: then this one is not ready for a while.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_STARTS_H
#define SKILLVM_API_DAEMON_MACHINE_STARTS_H

#include "base/err.h"

#include <pthread.h>
#include <stdint.h>

#define STARTS_IN_A_ROW 3u
#define STARTS_WHILE_NS 30000000000u /* without a new failure it is forgotten */

struct starts {
    pthread_mutex_t lock; /* for all below */
    unsigned failed;      /* in a row */
    uint64_t last_ns;     /* when the last one failed; monotonic */
    struct err why;
};

#define STARTS_INIT ((struct starts){.lock = PTHREAD_MUTEX_INITIALIZER})

/* Notes one whose guest answered (why is NULL), or one that did not, with the reason. */
void starts_note(struct starts *starts, uint64_t now_ns, const struct err *why);
/* 0, or -EIO with a sentence while too many of them fail. */
int starts_check(struct starts *starts, uint64_t now_ns, struct err *err);

#endif
