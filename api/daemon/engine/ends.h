/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions of this process that somebody at another node wants to end, or that another node
 * may have begun again. To end one that waits, and to ask the servers, takes longer than who
 * hears of it has, and one may be heard of before it is in the queue.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_ENDS_H
#define SKILLVM_API_DAEMON_ENGINE_ENDS_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/terms/record.h"
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define ENDS_MAX 512u

struct engine;
struct registry;

struct wanted_end {
    char tenant[TENANT_ID_SIZE];
    char id[RECORD_ID_SIZE];
    uint64_t until_ns; /* monotonic; what is not found by then is none of ours */
    uint64_t taken_ns; /* when it was accepted (realtime), as another node's; 0: it is to end */
};

struct ends {
    struct engine *engine;
    struct registry *registry;
    struct cluster *cluster;
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
/* All are borrowed until ends_stop. 0 or -errno. */
int ends_start(struct ends *ends, struct engine *engine, struct registry *registry,
               struct cluster *cluster, struct err *err);
/* Nothing is ended any more. */
void ends_stop(struct ends *ends);
/*
 * Does not wait. once: it is no matter where it is not found. What has ended here by then is
 * told again. False where there is no place for one more.
 */
bool ends_add(struct ends *ends, const char *tenant, const char *id, bool once);
/*
 * A record says that another node has what runs here: it is given up where the servers say so
 * too. What a server that lags tells may be older than what this process wrote itself. As
 * ends_add.
 */
bool ends_add_taken(struct ends *ends, const struct record *record);

#endif
