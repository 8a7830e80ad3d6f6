/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions of a cluster that have not begun, or may be begun again. What others need to run
 * one lies with its record: where its process ends, is lost, or gives it away, another one
 * takes it over, and runs it as if it had been asked itself. Whoever changes the record first
 * has it.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_WAITING_H
#define SKILLVM_API_DAEMON_ENGINE_WAITING_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/engine/objects.h"
#include "api/daemon/engine/pauses.h"
#include "api/daemon/registry/registry_records.h"
#include "api/daemon/store/store.h"

/* What others need: as of struct record. Zeroed: nothing. */
struct waiting_request {
    struct buf text;                 /* a JSON string; empty where it is an object */
    char object[RECORD_DIGEST_SIZE]; /* "": none */
    char image[RECORD_IMAGE_SIZE];
    unsigned retries; /* how often others may begin it again */
};
/* Where a long one is kept, and for whom. Borrowed. */
struct waiting_place {
    struct store *store;
    struct objects *objects;
    const char *tenant;
};
/*
 * Keeps the JSON of a request for others that have its image. 0; -ENOMEM; -errno; what
 * objects_send gives.
 */
int waiting_keep(const struct waiting_place *place, const char *image, const char *text,
                 size_t len, struct waiting_request *ret, struct err *err);
/* Puts it into a record, which borrows it. */
void waiting_add(const struct waiting_request *request, struct record *record);

/*
 * Runs one that another process had, by its record, as it was there, and the JSON of its
 * request; is_lost: that process is, else it gave it. Its row and its end are the callee's
 * where it returns 0. Else -errno with why not: -EBUSY where there is no room for it now,
 * -EAGAIN where what it needs cannot be read now, and any other where nobody can run it.
 */
typedef int waiting_resume_fn(void *ctx, const struct record *record, bool is_lost,
                              const char *request, size_t len, struct err *err);

#define WAITING_DOUBTS 64u
/* One that is lost fails where what it needs could not be read so often, which takes 11
 * minutes.
 */
#define WAITING_FAILURES 16u

/* Pointers are borrowed. */
struct waiting_env {
    struct registry *registry;
    struct store *store;
    struct cluster *cluster;
    waiting_resume_fn *resume;
    void *resume_ctx;
    /* Those that may be this process's, for an answer of the servers' was lost. */
    char doubts[WAITING_DOUBTS][RECORD_ID_SIZE];
    size_t n_doubts;
    struct pauses pauses; /* of those that could not be begun here */
};
/*
 * Takes one over that waits at a process, or that one which is lost began and others may begin
 * again, and runs it, or ends it as failed where that is lost and nobody can. 0:
 * it is seen to, or is here already; -ENOENT: it is that process's no more, as its row says
 * now; -EBUSY: it waits there as before; -ENOTSUP: the same, for others have its image, or it
 * could not be begun here a moment ago; -EAGAIN: the cluster cannot be asked.
 */
int waiting_take_over(struct waiting_env *env, const char *id,
                      const struct registry_process *process, bool is_lost, struct err *err);
/*
 * Looks at what the servers have of one that a process has, as its row says: where that has
 * ended, or another one has it, the row says so too. 0; -ENOENT where they have nothing of it;
 * -EOWNERDEAD: it is this process's, which has no row of it; -EAGAIN.
 */
int waiting_check(const struct waiting_env *env, const char *id,
                  const struct registry_process *process, struct err *err);
/* One may be this process's. */
void waiting_doubt(struct waiting_env *env, const char *id);
/* Leaves those that are this process's and that it does not have to all nodes, or ends them
 * where they do not wait. */
void waiting_settle(struct waiting_env *env);

#endif
