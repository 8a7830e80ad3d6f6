/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of a cluster: what other nodes tell of theirs becomes rows, and ours is told. */
#ifndef SKILLVM_API_DAEMON_ENGINE_AUDIT_SHARE_H
#define SKILLVM_API_DAEMON_ENGINE_AUDIT_SHARE_H

#include "api/daemon/cluster/cluster.h"
#include "api/daemon/registry/registry.h"

/*
 * From now on the audit of the cluster is followed and told, of a registry whose audit is
 * shared (registry_audit_share), which stays until cluster_destroy. 0 or -errno.
 */
int audit_share_start(struct registry *registry, struct cluster *cluster, struct err *err);

#endif
