/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the ledger share. */
#ifndef SKILLVM_API_DAEMON_ENGINE_LEDGER_INTERNAL_H
#define SKILLVM_API_DAEMON_ENGINE_LEDGER_INTERNAL_H

#include "api/daemon/engine/ends.h"
#include "api/daemon/engine/ledger.h"
#include "api/daemon/engine/ledger_waits.h"
#include "api/daemon/registry/registry_records.h"

#include <pthread.h>

struct ledger {
    struct ledger_env env;
    struct engine *engine;      /* from ledger_start on */
    struct waiting_env waiting; /* under the lock of what is taken over */
    struct ledger_waits waits;
    struct ends ends;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t taking; /* held while one is taken over */
    pthread_mutex_t lock;   /* of the two that follow */
    pthread_cond_t due;
    bool is_due, is_stopping;
    /* The thread's: up to which it looked at what others have. */
    struct registry_process checked_process;
    bool checks_waiting;
    char checked[RECORD_ID_SIZE];
    char told[RECORD_ID_SIZE]; /* the thread's: up to which it told again */
};

/* Whether it waits or runs here, or a worker is about to tell how it ended itself. */
bool ledger_is_at_work(struct ledger *ledger, const struct record *record);
/* It is this process's by what the servers say, if at all, and by nothing else: that is looked
 * at, and ended. Waits for what is being taken over. */
void ledger_doubt(struct ledger *ledger, const char *id);
/* As ledger_tell, of a row as it is; what it left waits so long for its turn. 0 or -errno. */
int ledger_tell_record(struct ledger *ledger, struct record *record, uint64_t wait_ns,
                       struct buf *ret_result, struct err *err);

#endif
