/* SPDX-License-Identifier: Apache-2.0 */
/* What a node tells of its machine, as cheaply as it can be had. */
#ifndef SKILLVM_API_DAEMON_CLUSTER_HOST_FACTS_H
#define SKILLVM_API_DAEMON_CLUSTER_HOST_FACTS_H

#include "api/daemon/cluster/node_entry.h"

/* Fills in cpu ("" where it is not known), memory_bytes and kvm. */
void host_facts_read(struct node_entry *entry);

#endif
