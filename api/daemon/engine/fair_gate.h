/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate that a few threads may be behind at once, for work that a request does on its own
 * thread. Tenants share it like slots (fair_queue.h): however many requests of one tenant wait,
 * another's is let in when it is that tenant's turn. One tenant never has the last place of
 * several.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_FAIR_GATE_H
#define SKILLVM_API_DAEMON_ENGINE_FAIR_GATE_H

#include "api/daemon/engine/fair_queue.h"
#include "base/err.h"

#include <pthread.h>
#include <stdint.h>

struct fair_gate;

/* One that waits or is behind it. The gate's. */
struct fair_gate_entry {
    struct fair_entry queued; /* the first member */
    pthread_cond_t let_in;    /* monotonic */
};

/* For so many at once. NULL without memory. */
struct fair_gate *fair_gate_create(unsigned places);
/* Nobody may be behind it or wait. NULL is fine. */
void fair_gate_destroy(struct fair_gate *gate);

/*
 * Waits until it is its turn, at most until deadline_ns (monotonic). *entry is the caller's and
 * stays where it is until fair_gate_leave. 0; -EBUSY when the time is up; -ENOMEM.
 */
int fair_gate_enter(struct fair_gate *gate, const char *tenant, struct fair_gate_entry *entry,
                    uint64_t deadline_ns, struct err *err);
void fair_gate_leave(struct fair_gate *gate, struct fair_gate_entry *entry);

#endif
