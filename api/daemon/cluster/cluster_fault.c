/* SPDX-License-Identifier: Apache-2.0 */
/* The words for what can be wrong: docs/fleet.md has them in its table. */
#include "api/daemon/cluster/cluster_internal.h"

#include <stdio.h>

const char *const cluster_fault_names[CLUSTER_FAULTS] = {
    [CLUSTER_OK] = "ok",
    [CLUSTER_UNREACHABLE] = "unreachable",
    [CLUSTER_CREDENTIALS] = "credentials",
    [CLUSTER_DENIED] = "denied",
    [CLUSTER_TLS] = "tls",
    [CLUSTER_OLD_SERVER] = "old_server",
    [CLUSTER_NO_JETSTREAM] = "no_jetstream",
    [CLUSTER_NO_QUORUM] = "no_quorum",
    [CLUSTER_NO_ROOM] = "no_room",
    [CLUSTER_NO_BUCKET] = "not_initialised",
    [CLUSTER_NO_ENTRY] = "no_entry",
    [CLUSTER_CONFLICT] = "conflict",
    [CLUSTER_OTHER] = "other",
    [CLUSTER_BUCKET_GONE] = "bucket_gone",
    [CLUSTER_NAME_TAKEN] = "name_taken",
    [CLUSTER_CLOCK] = "clock",
    [CLUSTER_NEWER] = "newer_version",
    [CLUSTER_OWN_ROWS] = "own_rows",
    [CLUSTER_NO_OBJECTS] = "no_objects",
};

static const char *const meanings[CLUSTER_FAULTS] = {
    [CLUSTER_UNREACHABLE] = "no server can be reached",
    [CLUSTER_CREDENTIALS] = "the servers do not take the credentials (cluster.credentials)",
    [CLUSTER_DENIED] = "the credentials do not permit what a node does (docs/fleet.md)",
    [CLUSTER_TLS] = "no encrypted connection comes about (cluster.tls_ca)",
    [CLUSTER_OLD_SERVER] = "the server is too old",
    [CLUSTER_NO_JETSTREAM] = "the server has no JetStream for this account",
    [CLUSTER_NO_QUORUM] = "no majority of the servers answers",
    [CLUSTER_NO_ROOM] = "the servers have no room",
    [CLUSTER_NO_BUCKET] = "the cluster was not initialised: run `skillvm cluster init`, once",
    [CLUSTER_BUCKET_GONE] =
        "a bucket of the cluster was deleted: make it anew with `skillvm cluster init`, at the "
        "node whose changes are the newest",
    [CLUSTER_NEWER] = "a newer skillvm wrote what this one cannot read: install that here",
    [CLUSTER_OWN_ROWS] = "this node has a tenant, a key or a skill that the cluster does not: "
                         "take cluster: out of its "
                         "settings and remove it, or begin with an empty data folder",
    [CLUSTER_NO_OBJECTS] = "a bucket of objects (of skills, or of what executions leave) is "
                           "not there: make it with "
                           "`skillvm cluster init`, at a node that has them",
};

void cluster_explain(enum cluster_fault fault, const struct err *err, char ret[ERR_MESSAGE_MAX])
{
    const char *meaning = meanings[fault];

    if (!meaning)
        (void)snprintf(ret, ERR_MESSAGE_MAX, "%s", err->message);
    else if (fault == CLUSTER_NO_BUCKET || fault == CLUSTER_BUCKET_GONE ||
             fault == CLUSTER_NO_OBJECTS)
        (void)snprintf(ret, ERR_MESSAGE_MAX, "%s", meaning);
    else
        (void)snprintf(ret, ERR_MESSAGE_MAX, "%s: %.380s", meaning, err->message);
}
