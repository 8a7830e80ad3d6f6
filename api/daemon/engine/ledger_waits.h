/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for what others say of an execution. Each is woken for its own one alone: what is
 * said of thousands of others costs nobody a look into the database.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_LEDGER_WAITS_H
#define SKILLVM_API_DAEMON_ENGINE_LEDGER_WAITS_H

#include "api/daemon/cluster/record_entry.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ledger_waiter {
    char id[RECORD_ID_SIZE];
    bool is_told; /* something was said since it was last looked at */
    pthread_cond_t told;
    struct ledger_waiter *next;
};

struct ledger_waits {
    pthread_mutex_t lock;
    struct ledger_waiter *first; /* borrowed: each is its waiter's */
};

void ledger_waits_init(struct ledger_waits *waits);
/* Once nobody waits any more. */
void ledger_waits_finish(struct ledger_waits *waits);

/* From now on what is said of this id is noted for the waiter; look at the row after it. */
void ledger_waiter_begin(struct ledger_waits *waits, const char *id, struct ledger_waiter *ret);
void ledger_waiter_end(struct ledger_waits *waits, struct ledger_waiter *waiter);
/* Until something was said, which is forgotten then; false once a moment (monotonic) passed. */
bool ledger_waiter_wait(struct ledger_waits *waits, struct ledger_waiter *waiter,
                        uint64_t deadline_ns);
/* Something is said of an id, and its row says it. */
void ledger_waits_tell(struct ledger_waits *waits, const char *id);

#endif
