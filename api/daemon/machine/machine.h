/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One machine: its process, the connection to its guest, and what was done with it. Restored,
 * warmed, reset and ended here, each with a deadline; who may use it is the pool's to know
 * (pool.h), whose lock nothing in here is called under unless it says so.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_MACHINE_H
#define SKILLVM_API_DAEMON_MACHINE_MACHINE_H

#include "api/daemon/machine/guest.h"
#include "api/daemon/machine/pool.h"
#include "api/daemon/machine/shares.h"
#include "api/daemon/machine/snapshots.h"
#include "api/daemon/machine/vm.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct machine_claim;

struct machine {
    struct pool *pool;
    struct vm vm;
    struct guest *guest;         /* of the next job, or the one that ran */
    struct snapshot *snapshot;   /* a reference */
    bool reusable;               /* it was started so that it can be reset */
    bool clean;                  /* its last job left nothing that speaks against another one */
    unsigned uses;               /* jobs of others than us */
    char owner[POOL_OWNER_SIZE]; /* whose jobs it runs; "": nobody's, or nobody's again */
    struct share share;          /* of the processors; the pool's shares */
    struct snapshot_name wish;   /* what its last taker wished to begin from */
    uint64_t cpu_us;             /* of its process, when its job began or it was parked */

    /* The pool's, under its lock. */
    enum pool_kind kind; /* of the take that it is out for */
    uint64_t parked_ns;
    uint64_t stock_cpu_us;       /* of its process, just before it was parked */
    uint64_t private_bytes;      /* when it was parked */
    struct machine_claim *claim; /* who waits for its reset */
    uint64_t due_ns;             /* when its reset or end begins where nobody waits for it */
    bool is_in_hand;             /* of a keeper */
    TAILQ_ENTRY(machine) link;   /* parked, or in a queue */
    LIST_ENTRY(machine) of_all;
};

/*
 * Starts a machine from a snapshot, whose reference it takes over in any case. Its guest is not
 * ready yet. NULL with the reason.
 */
struct machine *machine_start(struct pool *pool, struct jail *jail, struct snapshot *snapshot,
                              uint64_t grace_ms, bool reusable, struct err *err);
/* Waits for the guest of one that was started. 0 or as guest_run. */
int machine_wait_ready(struct machine *m, uint64_t grace_ms, struct err *err);
/*
 * Puts it back to its snapshot and waits until the new guest is ready. 0, or -errno with the
 * reason: then it must end.
 */
int machine_reset(struct machine *m, uint64_t grace_ms, struct err *err);
/* True when nothing has come from its process since its guest was ready; may be under a lock.
 */
bool machine_is_quiet(const struct machine *m);
/* Reaps its process and closes everything but m itself. */
void machine_end(struct machine *m);

#endif
