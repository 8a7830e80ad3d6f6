/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that have ended, and whose rows do not say so, as on a full disk: they are in the
 * way of who removes their skill or their tenant until a row is written. Of more than it has
 * room for, the next start of the daemon ends the rest (recover.h). It has a lock of its own.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_UNSTORED_H
#define SKILLVM_API_DAEMON_ENGINE_UNSTORED_H

#include "api/daemon/registry/registry.h"

#include <pthread.h>
#include <sys/queue.h>

#define UNSTORED_MAX 1024u

struct unstored {
    pthread_mutex_t lock; /* for all below */
    STAILQ_HEAD(, unstored_entry) all;
    unsigned n;
};

void unstored_init(struct unstored *u);
void unstored_finish(struct unstored *u);

/* Notes one, with the reason why its result is not stored. */
void unstored_note(struct unstored *u, const char *tenant, const char *id, const char *why);
/*
 * Ends those that were noted as failed, with that reason, as far as rows can be written now.
 * is_shared: a cluster is to be told. By one thread. 0 or -errno.
 */
int unstored_end(struct unstored *u, struct registry *registry, bool is_shared,
                 struct err *err);

#endif
