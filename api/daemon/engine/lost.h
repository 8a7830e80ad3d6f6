/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions whose process is gone, this one's own before and those of others: each fails, but
 * for those that had not begun and others can run.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_LOST_H
#define SKILLVM_API_DAEMON_ENGINE_LOST_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/registry/registry_records.h"

#include <stdbool.h>

/* Ends an own row as failed. is_shared: the cluster is to be told. 0 or -errno. */
int lost_end(struct registry *registry, const struct registry_execution *row,
             const char *reason, bool is_shared, struct err *err);
/*
 * Tells the cluster that one failed, unless it has ended there. Where the servers do not know
 * it any more its row says so, with a registry. As cluster_record_lose.
 */
int lost_tell(struct registry *registry, struct cluster *cluster, const struct record *record,
              const char *reason, struct record_copy *ret_left, struct err *err);
/*
 * Who takes over what had not begun. take: 0; -ENOENT: it is that process's no more; -ENOTSUP:
 * it is another node's turn, or not to be tried yet, which costs none of those that one look
 * sees to; else -errno:
 * nothing more is taken over now.
 */
struct lost_taker {
    void *ctx;
    int (*take)(void *ctx, const char *id, const struct registry_process *process,
                struct err *err);
};
/*
 * Tells it so of up to n whose processes are gone, and has up to n others taken over: neither
 * keeps the other waiting.
 */
void lost_see_to(struct registry *registry, struct cluster *cluster,
                 const struct lost_taker *taker, unsigned n);

#endif
