/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions of this process that somebody at another node wants to end. To end one that waits
 * takes longer than who hears of it has, and one may be heard of before it is in the queue.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_ENDS_H
#define SKILLVM_API_DAEMON_ENGINE_ENDS_H

#include "api/daemon/terms/record.h"
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define ENDS_MAX 512u

struct engine;

struct wanted_end {
    char tenant[TENANT_ID_SIZE];
    char id[RECORD_ID_SIZE];
    uint64_t until_ns; /* monotonic; what is not found by then is none of ours */
};

struct ends {
    struct engine *engine;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct wanted_end list[ENDS_MAX];
    size_t n;
    bool is_stopping;
};

/* Before anything else, and after all. */
void ends_init(struct ends *ends);
void ends_finish(struct ends *ends);
/* 0 or -errno. */
int ends_start(struct ends *ends, struct engine *engine, struct err *err);
/* Nothing is ended any more. */
void ends_stop(struct ends *ends);
/*
 * Does not wait. once: it is no matter where it is not found. False where there is no place for
 * one more.
 */
bool ends_add(struct ends *ends, const char *tenant, const char *id, bool once);

#endif
