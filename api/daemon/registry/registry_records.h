/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rows of executions are to a cluster: which of them others made, and what of this
 * daemon's own is not told yet. An execution that no cluster knows of has nothing here.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_RECORDS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_RECORDS_H

#include "api/daemon/registry/registry.h"
#include "api/daemon/terms/change.h"
#include "api/daemon/terms/record.h"

/*
 * As registry_execution_accept, of one that the cluster knows of, also where another process
 * had it. waits: others may take it over until it begins, or where this process is lost.
 */
int registry_record_accept(struct registry *registry, const char *tenant,
                           const struct registry_execution *execution, bool waits,
                           struct err *err);
/* An own one that waited begins, and nobody else may begin it any more. 0 or -EIO. */
int registry_record_begun(struct registry *registry, const char *id, struct err *err);
/*
 * One that has not ended is the process's that its record names; also_ours: also where it was
 * this daemon's own. 0 or -EIO.
 */
int registry_record_pass(struct registry *registry, const struct record *record, bool also_ours,
                         struct err *err);

/*
 * The record of an own row, without who this node is; its result, which is the caller's to
 * free, is in ret->result too. 0, with no status where it has not ended; -ENOENT; -EIO;
 * -ENOMEM.
 */
int registry_record_get(struct registry *registry, const char *id, struct record *ret,
                        char **ret_result, struct err *err);
/* An own row after this id ("": the first) that is not told, or whose end is not. 0, -ENOENT or
 * -EIO. */
int registry_record_untold(struct registry *registry, const char *after,
                           char ret[RECORD_ID_SIZE], struct err *err);
/* How many there are. 0 or -EIO. */
int registry_records_untold(struct registry *registry, uint64_t *ret, struct err *err);
/* It is told, with the object that its result is there, or that it began. 0 or -EIO. */
int registry_record_told(struct registry *registry, const struct record *record,
                         struct err *err);
/* Own ends since a time (realtime), and what has not ended, are to be told as if they were not.
 * 0 or -EIO. */
int registry_records_untell(struct registry *registry, uint64_t since_ns, struct err *err);
/* The same of one alone, whenever it ended. */
int registry_record_untell(struct registry *registry, const char *id, struct err *err);
/* What others say of an own row and its end takes the place of what it says. 0 or -EIO. */
int registry_record_adopt(struct registry *registry, const struct record *record,
                          struct err *err);
/*
 * An own row that says this end was accepted at this moment (both realtime). 0, -ENOENT where
 * it says another end by now, or -EIO.
 */
int registry_record_redate(struct registry *registry, const char *id, uint64_t finished_ns,
                           uint64_t accepted_ns, struct err *err);
/*
 * An own row that says this end (realtime) has not ended: the process that its record names
 * runs it, from the beginning that it says. 0, also where it says another end by now; -EIO.
 */
int registry_record_reopen(struct registry *registry, const struct record *record,
                           uint64_t finished_ns, struct err *err);

/* A row says what others say of it, that has ended or not: as of one of these two. */
int registry_record_believe(struct registry *registry, const struct record *record,
                            struct err *err);

/* The record at a place. */
typedef void registry_record_at(const void *ctx, size_t at, struct record *ret);
/*
 * Makes rows of n records, in their order, and notes the place, or does nothing. What is there
 * and has ended, also this daemon's own, stays but for another end of it, which is the last.
 * *ret_conflicts: how many could not be made, as where there is no such tenant. 0 or -EIO.
 */
int registry_records_make(struct registry *registry, size_t n, registry_record_at *at,
                          const void *ctx, const struct change_place *place,
                          unsigned *ret_conflicts, struct err *err);

/* A process of another node. */
struct registry_process {
    char node[FLEET_NODE_SIZE];
    char instance[RECORD_INSTANCE_SIZE];
};
/* What others may begin, or one of these (id is not ""), is a process's from now on, which is
   this one as it ends. 0 or -EIO. */
int registry_records_leave(struct registry *registry, const struct registry_process *process,
                           const char *id, struct err *err);
/*
 * The process after this one that has executions which have not ended, and one of these after
 * an id, of those that wait for whoever runs them or of the others. Both: 0, -ENOENT or -EIO.
 */
int registry_record_process(struct registry *registry, const struct registry_process *after,
                            struct registry_process *ret, struct err *err);
int registry_record_unfinished(struct registry *registry,
                               const struct registry_process *process, bool waits,
                               const char *after, char ret[RECORD_ID_SIZE], struct err *err);

/* What a row was accepted with, and whose it is ("": ours). As above. */
int registry_record_other(struct registry *registry, const char *id, struct record *ret,
                          struct err *err);

#endif
