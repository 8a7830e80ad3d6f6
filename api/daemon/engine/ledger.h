/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executions of a cluster. What this daemon accepts and how it ends is told to the servers
 * before anybody is answered; what others tell becomes rows here, which every list, look-up and
 * limit reads as its own. What a process that is gone did not end is ended for it.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_LEDGER_H
#define SKILLVM_API_DAEMON_ENGINE_LEDGER_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/engine/objects.h"
#include "api/daemon/engine/waiting.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/store.h"

struct engine;
struct ledger;

/* Borrowed. */
struct ledger_env {
    struct registry *registry;
    struct store *store;
    struct objects *objects;
    struct cluster *cluster;
};

int ledger_create(const struct ledger_env *env, struct ledger **ret, struct err *err);
/* Follows what others tell, and stops executions of the engine that others want to end. */
int ledger_start(struct ledger *ledger, struct engine *engine, struct err *err);
/* Who runs what waits at other processes, from now on; NULL: nobody, once this returns. */
void ledger_resume_by(struct ledger *ledger, waiting_resume_fn *resume, void *ctx);
/* Once the cluster was stopped: nothing is told any more. NULL is fine. */
void ledger_stop(struct ledger *ledger);
/* After the cluster and the engine. NULL is fine. */
void ledger_destroy(struct ledger *ledger);

/*
 * What all nodes call something of a tenant's that it has a word for, of up to LIMIT_KEY_BYTES:
 * the prefix and ID_DIGITS digits. 0, or -errno.
 */
int ledger_name(const char *prefix, const char *tenant, const char *word, char *ret,
                size_t size);
/*
 * The id of what a tenant begins under a key: the same at all nodes, so that one key begins one
 * execution.
 */
int ledger_id_of_key(const char *tenant, const char *key, char ret[RECORD_ID_SIZE]);

/*
 * As registry_execution_accept, and the cluster has it too. Also -EAGAIN where that cannot be
 * now. -EEXIST: what another node began under its key is a row here on return. waits:
 * ledger_offer follows.
 */
int ledger_accept(struct ledger *ledger, const char *tenant,
                  const struct registry_execution *execution, bool waits, struct err *err);
/*
 * Whether there is a row of it here, for another node that finds none at the servers: this
 * process's own are told to them anew.
 */
bool ledger_knows(struct ledger *ledger, const char *tenant, const char *id);
/*
 * Others may run what was accepted so, until ledger_begin, also where this fails: what they
 * need is with its record. 0; -ENOENT: it is another's by now; -EAGAIN.
 */
int ledger_offer(struct ledger *ledger, const struct registry_execution *execution,
                 const struct waiting_request *request, struct err *err);
/* Its record is this process's already: makes a row of it. waits: others may run it, until
   ledger_begin. 0 or -errno. */
int ledger_take(struct ledger *ledger, const char *tenant,
                const struct registry_execution *execution, bool waits, struct err *err);
/*
 * One that was offered begins; again: where this process is lost another one may begin it. 0;
 * -EEXIST: it has ended, or another node has it, as its row says now; -EAGAIN.
 */
int ledger_begin(struct ledger *ledger, const char *id, bool again, struct err *err);
/* One that was offered is not begun here, or does not go on: others may begin it. 0 or -errno.
 */
int ledger_leave(struct ledger *ledger, const char *id, struct err *err);
/* Notes in the log what becomes of an execution at this node: "accepted", "begun". */
void ledger_note(const struct ledger *ledger, const char *id, const char *what);
/*
 * Tells the cluster how an execution ended, which its row says. Where that cannot be now it is
 * told later. 0; -EEXIST where the cluster has another end of it, which the row says now, with
 * its result (caller's); -ESTALE where it has not ended: another node runs it, as the row says
 * now.
 */
int ledger_tell(struct ledger *ledger, const char *id, struct buf *ret_result);
/* Until what another node accepted is a row here, for a few seconds. 0 or -EAGAIN. */
int ledger_await(struct ledger *ledger, const char *tenant, const char *id, struct err *err);
/* An execution of this node made room for another one. */
void ledger_note_room(struct ledger *ledger);
/* As waiting_take_over. */
int ledger_take_over(struct ledger *ledger, const char *id,
                     const struct registry_process *process, bool is_lost, struct err *err);
/* Wants an execution of another node to end. As cluster_record_cancel. */
int ledger_cancel(struct ledger *ledger, const char *id, struct err *err);

/*
 * The result of a row, in the registry or else an object, as an owned text in the row, which
 * stays without one where it has not ended or its result was lost. 0; -ENOENT where the row was
 * removed; -ENOMEM; what objects_get gives.
 */
int ledger_read_result(struct registry *registry, struct objects *objects,
                       struct registry_execution *row, struct err *err);
/*
 * Waits until an execution of another node has ended, for up to a moment (monotonic). 0 with
 * *ret_row (the caller's); -ENOENT; -ESHUTDOWN; -errno.
 */
int ledger_wait(struct ledger *ledger, const char *tenant, const char *id, uint64_t deadline_ns,
                struct registry_execution *ret_row, struct err *err);

#endif
