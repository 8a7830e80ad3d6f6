/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission and workers: executions are accepted within the limits of their tenants, wait in a
 * bounded queue that is fair between tenants, and a fixed number runs at once. What was
 * accepted is in the registry before it is in the queue.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_ENGINE_H
#define SKILLVM_API_DAEMON_ENGINE_ENGINE_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/execution_run.h"
#include "api/daemon/engine/quota.h"
#include "base/err.h"

#include <stdint.h>

struct cluster;
struct engine;

struct engine_config {
    struct execution_env env;
    unsigned max_running;
    unsigned max_queued;
    /* Whether a machine can start now, as far as is known. Called by any thread. */
    bool (*can_start)(void *ctx);
    void *ctx;
};

/* Starts the workers. 0 or -errno. */
int engine_create(const struct engine_config *config, struct engine **ret, struct err *err);

/*
 * Looks whether the tenant of a draft may begin an execution now, takes it off the tenant's
 * rate and notes the tenant's limits in the draft. To be called before anything costly is done
 * for a request; engine_submit and engine_refuse do it for a draft that was not admitted. 0;
 * -EBUSY with *ret_refusal; -EADDRINUSE: another execution, which has not ended, has its
 * session; -ENOENT: the tenant is gone; -ESHUTDOWN; -EIO; -ENOMEM.
 */
int engine_admit(struct engine *engine, struct execution *draft, struct refusal *ret_refusal,
                 struct err *err);

/*
 * Accepts an execution: durable in the registry when this returns 0, and from then on only to
 * be read through its functions. -EEXIST: its idempotency key is in use; else as engine_admit.
 */
int engine_submit(struct engine *engine, struct execution *draft, struct refusal *ret_refusal,
                  struct err *err);

/*
 * Accepts and ends an execution that cannot run (its skill has no such version): it gets a
 * failed result like any other. As engine_submit.
 */
int engine_refuse(struct engine *engine, struct execution *draft, const char *reason,
                  struct refusal *ret_refusal, struct err *err);

/* A new reference to a tenant's execution that waits or runs, or NULL. */
struct execution *engine_find(struct engine *engine, const char *tenant, const char *id);

/*
 * Ends a tenant's execution before its time. One that waits has ended with the status
 * "cancelled" on return (*ret_ended), one that runs will. 0; -ENOENT when it neither waits nor
 * runs; -EALREADY when its skill has ended.
 */
int engine_cancel(struct engine *engine, const char *tenant, const char *id, bool *ret_ended);

/*
 * Another node has begun again one that runs here and was accepted at that moment (realtime):
 * what its run gives counts for nothing, and it ends.
 */
void engine_give_up(struct engine *engine, const char *tenant, const char *id,
                    uint64_t accepted_ns);

/* True while an execution that waits or runs has a tenant's session. */
bool engine_has_session(struct engine *engine, const char *tenant, const char *session);

/* The limits of a tenant were changed: those for what waits hold from now on. */
void engine_limits_changed(struct engine *engine, const char *tenant);

/* Which snapshot an execution is to begin from. */
void engine_name_snapshot(const struct engine *engine, const struct execution *e,
                          struct snapshot_name *ret);

/* Whether one that is accepted now begins at once, as far as slots say. */
bool engine_has_slot(struct engine *engine);
/* The same, and that its machine can start: else what is others' is not taken. */
bool engine_has_room(struct engine *engine);
/*
 * The same for one that was admitted, and as far as its tenant's max_running says: nobody else
 * has its slot until engine_submit, or engine_leave_turn, which has to be called before the
 * draft ends.
 */
bool engine_take_turn(struct engine *engine, struct execution *draft);
/* Also where it has none, or is NULL. */
void engine_leave_turn(struct engine *engine, struct execution *draft);
/* How many wait and how many run now. */
void engine_count(struct engine *engine, unsigned *ret_queued, unsigned *ret_running);
/* All that is so now of the queue and the slots. Other gauges are left alone. */
void engine_measure(struct engine *engine, struct metrics_gauges *ret);

/*
 * While it is drained it has no room and takes nothing new: engine_submit gives -EHOSTDOWN.
 * What waits and runs goes on.
 */
void engine_set_draining(struct engine *engine, bool is_draining);
bool engine_is_draining(struct engine *engine);

/* How many may wait from now on. Those that wait already stay. */
void engine_set_max_queued(struct engine *engine, unsigned max_queued);

/*
 * From now on limits of tenants count what they have at other nodes too, and those hear what
 * they have here. The cluster is shared with until it ends, which is before the engine does. 0
 * or -errno.
 */
int engine_share(struct engine *engine, struct cluster *cluster, struct err *err);

/* Cancels what runs: an engine_stop under way need not wait for it. */
void engine_hurry(struct engine *engine);

/* Takes no more: who comes is told that the daemon stops. engine_stop is to follow. */
void engine_close(struct engine *engine);
/*
 * Takes no more, ends what waits, lets what runs go on for wait_ms, cancels the rest, and
 * returns when every worker has ended. Once.
 */
void engine_stop(struct engine *engine, uint64_t wait_ms);
/* After engine_stop. NULL is fine. */
void engine_destroy(struct engine *engine);

#endif
