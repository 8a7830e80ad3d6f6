/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a cluster share. */
#ifndef SKILLVM_API_DAEMON_CLUSTER_CLUSTER_INTERNAL_H
#define SKILLVM_API_DAEMON_CLUSTER_CLUSTER_INTERNAL_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/cluster/nodes.h"

#include <pthread.h>

struct cluster {
    const struct cluster_driver *driver;
    struct cluster_access access; /* texts are owned, but name */
    char servers[FLEET_SERVERS_MAX][FLEET_SERVER_SIZE];
    size_t n_servers;
    unsigned replicas;
    struct node_entry self; /* its state is the thread's, the rest never changes */

    pthread_t thread;
    /* Of the thread alone. */
    struct cluster_link *link;
    uint64_t revision;   /* of our entry as it was written last; 0: none of ours is there */
    uint64_t asked_ns;   /* realtime before that was sent, */
    uint64_t written_ns; /* and when it was acknowledged */
    uint64_t renew_ns;   /* monotonic, when it is to be written again */
    bool was_joined;     /* ever */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool is_stopping;
    bool is_hurried; /* somebody changed something: try again at once */
    enum cluster_state state;
    enum cluster_fault fault; /* why it is cut off */
    char message[ERR_MESSAGE_MAX];
    uint64_t confirmed_ns; /* monotonic, when our entry was last seen to come back, or 0;
                            * the thread, which alone writes it, reads it without */
    uint64_t since_ns;     /* realtime of the last change of state or fault */
    char server[FLEET_SERVER_SIZE]; /* that there is a connection to, as it may be shown; or ""
                                     */
    struct nodes nodes;
};

/*
 * How the node is now. Under the lock. The thread may be waiting for a server while the lease
 * runs out: what was joined is cut off then.
 */
void cluster_state_now(const struct cluster *c, struct cluster_status *ret);

/* Whether our entry came back within the lease. */
bool cluster_is_confirmed(const struct cluster *c);

/* "no_quorum", and so on. */
extern const char *const cluster_fault_names[CLUSTER_FAULTS];
/* What a fault means to a person and what to do about it, with what is known of it. */
void cluster_explain(enum cluster_fault fault, const struct err *err,
                     char ret[ERR_MESSAGE_MAX]);

/* The thread: joins, stays and begins anew until it is stopped. */
void *cluster_run(void *cluster);

#endif
