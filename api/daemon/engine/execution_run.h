/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution from its place in the queue to its stored result: take a machine, run the job
 * in it, judge what came back, write the result, release the machine. Whatever path it takes,
 * the execution has ended, and no process, file or descriptor of it is left.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_EXECUTION_RUN_H
#define SKILLVM_API_DAEMON_ENGINE_EXECUTION_RUN_H

#include "api/daemon/egress/egress.h"
#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/metrics.h"
#include "api/daemon/engine/retention.h"
#include "api/daemon/machine/pool.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/store.h"

/* Borrowed. */
struct execution_env {
    struct registry *registry;
    struct pool *pool;
    struct metrics *metrics;
    struct store *store;
    struct retention *retention;
    struct ledger *ledger;            /* NULL: it is on its own */
    struct shared_sessions *sessions; /* the same */
    struct egress_settings egress;
    enum tenant_reuse reuse; /* what a tenant without a narrower one may */
    bool scope_tenant;       /* no two tenants begin from one snapshot */
};

/* Which snapshot an execution is to begin from. */
void execution_name_snapshot(const struct execution_env *env, const struct execution *e,
                             struct snapshot_name *ret);

/* Runs it. The execution has ended on return; its job is spent. */
void execution_run(const struct execution_env *env, struct execution *e);

/* Ends an execution that will not run, with a status other than success and the reason. */
void execution_run_none(const struct execution_env *env, struct execution *e,
                        enum result_status status, const char *reason);

#endif
