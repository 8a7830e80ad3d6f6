/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution from its place in the queue to its stored result: restore a microVM, run the
 * session, check what came back, kill the machine, write the result. Whatever path it takes, no
 * process, file or descriptor of it is left, and the execution has ended.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_RUN_H
#define SKILLVM_API_DAEMON_ENGINE_RUN_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/snapshots.h"
#include "api/daemon/engine/starts.h"
#include "api/daemon/metrics.h"
#include "api/daemon/registry/registry.h"

#include <pthread.h>
#include <stdint.h>

/* Borrowed. */
struct run_env {
    struct registry *registry;
    struct snapshots *snapshots;
    struct metrics *metrics;
    struct starts *starts;
    const char *vmm_program;
    int tmp_fd;                  /* directory */
    int objects_fd;              /* directory */
    pthread_mutex_t *store_lock; /* held while an object and its row come */
    uint64_t grace_ms;
};

/* Runs it. The execution has ended on return; its plan is spent. */
void run_execution(const struct run_env *env, struct execution *e);

/* Ends an execution that waited, as cancelled. */
void run_cancel(const struct run_env *env, struct execution *e);
/* Ends an execution that will not run, as failed with this reason. */
void run_refuse(const struct run_env *env, struct execution *e, const char *reason);

#endif
