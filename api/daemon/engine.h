/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission and workers: a bounded queue of accepted executions, a fixed number that run at
 * once. What was accepted is in the registry before it is in the queue.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_H
#define SKILLVM_API_DAEMON_ENGINE_H

#include "api/daemon/execution.h"
#include "api/daemon/run.h"
#include "base/err.h"

#include <stdint.h>

struct engine;

struct engine_config {
    struct run_env env;
    unsigned max_running;
    unsigned max_queued;
};

/* Starts the workers. 0 or -errno. */
int engine_create(const struct engine_config *config, struct engine **ret, struct err *err);

/*
 * Accepts an execution: durable in the registry when this returns 0, and *ret is the caller's
 * reference. The plan is taken over on success only. -EBUSY: the queue is full; -ESHUTDOWN;
 * -EEXIST: its idempotency key is in use; -ENOENT: its tenant is gone; -EIO.
 */
int engine_submit(struct engine *engine, struct run_plan *plan, struct execution **ret,
                  struct err *err);

/*
 * Accepts and ends an execution that cannot run (its skill has no such version): it gets an id
 * and a failed result like any other. 0, -EEXIST, -ENOENT, -EIO or -ENOMEM.
 */
int engine_refuse(struct engine *engine, struct run_plan *plan, const char *reason,
                  struct execution **ret, struct err *err);

/* A new reference to a tenant's execution that is queued or running, or NULL. */
struct execution *engine_find(struct engine *engine, const char *tenant, const char *id);

/* How many wait and how many run now. */
void engine_count(struct engine *engine, unsigned *ret_queued, unsigned *ret_running);

/* How many may wait from now on. Those that wait already stay. */
void engine_set_max_queued(struct engine *engine, unsigned max_queued);

/* Cancels what runs: an engine_stop under way need not wait for it. */
void engine_hurry(struct engine *engine);

/*
 * Takes no more, ends what is queued, lets what runs go on for wait_ms, cancels the rest, and
 * returns when every worker has ended. Once.
 */
void engine_stop(struct engine *engine, uint64_t wait_ms);
/* After engine_stop. NULL is fine. */
void engine_destroy(struct engine *engine);

#endif
