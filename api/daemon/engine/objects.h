/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of skills, uploaded files and executions, of which a node of a cluster has those
 * that it needed: what its rows name and its store does not have is read from the servers. On
 * its own a daemon has them all.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_OBJECTS_H
#define SKILLVM_API_DAEMON_ENGINE_OBJECTS_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/machine/job.h"
#include "api/daemon/registry/registry.h"
#include "api/daemon/store/store.h"
#include "api/daemon/store/watermarks.h"
#include "base/clock.h"

struct objects;

/* Borrowed. */
struct objects_env {
    struct registry *registry;
    struct store *store;
    struct watermarks *watermarks;
    uint64_t bytes_max;   /* of one whose size no row says */
    uint64_t cache_bytes; /* that a cluster's skills and files may take; 0: no limit */
};

int objects_create(const struct objects_env *env, struct objects **ret, struct err *err);
/*
 * From now on what is missing is read from the servers of a cluster; with NULL not any more,
 * and nobody reads from those that were on return, once the cluster was stopped.
 */
void objects_join(struct objects *objects, struct cluster *cluster);
/* After everybody who asks. NULL is fine. */
void objects_destroy(struct objects *objects);

/*
 * Opens an object, without the lock of the store. The descriptor (caller's);
 * -ENOENT where no row names it any more; of a cluster -EAGAIN where the servers cannot be
 * asked, -EREMOTEIO where they do not have it, -ENOBUFS where there is no room for it here;
 * -errno.
 */
int objects_get(struct objects *objects, const char *digest, struct err *err);
/* The same, with its size and digest, in place of what *ret has open; on success it is its. */
int objects_open(struct objects *objects, const char *digest, struct job_bytes *ret,
                 struct err *err);
/* The same for one that is here: no server is asked. */
int objects_get_here(struct objects *objects, const char *digest, struct err *err);
/* In a cluster: keeps here what a file holds, where a row names it. 0 or -errno. */
int objects_keep(struct objects *objects, const char *digest, int fd, struct err *err);
/* How long what somebody pushes or uploads waits for its turn, and what keeps a slot. */
#define OBJECTS_WAIT_NS (60 * NS_PER_SECOND)
#define OBJECTS_SOON_NS (5 * NS_PER_SECOND)

/* What a file holds, for the servers. Borrowed. */
struct objects_put {
    const char *tenant; /* whose it is */
    enum cluster_kept kept;
    uint64_t wait_ns; /* for its turn; 0: it is now or not at all */
    const char *digest;
    int fd;
};
/*
 * Gives it to them, as of cluster_object_put; on its own it does nothing. Few are sent at once,
 * and tenants take turns: -EAGAIN also where a tenant's did not come in time.
 */
int objects_send(struct objects *objects, const struct objects_put *put, struct err *err);

/* A row names now what was sent, which is sent again where it went; as above. */
int objects_confirm(struct objects *objects, const struct objects_put *put, struct err *err);
/* Makes the row that names one. 0 or -errno. */
typedef int objects_change_fn(void *ctx, struct err *err);
/*
 * Gives the servers what a file holds, makes the row that names it, and looks whether it is
 * there still: somebody may have removed it for want of the row. Without a row it goes again;
 * *ret_sent: and could not. 0; of objects_send; what change gives.
 */
int objects_share(struct objects *objects, const struct objects_put *put,
                  objects_change_fn *change, void *ctx, bool *ret_sent, struct err *err);
/* Removes one of changes from the servers, as of cluster_object_remove; the same. */
int objects_drop(struct objects *objects, const char *digest, struct err *err);

/*
 * Removes from the servers what no skill or file has named for an hour, and as of
 * cluster_rows_sweep; nothing while the node is not joined. 0 or -EAGAIN.
 */
int objects_sweep(struct objects *objects, struct err *err);

#endif
