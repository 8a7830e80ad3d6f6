/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm cluster drain`. */
#ifndef SKILLVM_API_CLI_CLUSTER_DRAIN_H
#define SKILLVM_API_CLI_CLUSTER_DRAIN_H

#include "api/cli/verbs.h"

/* Drains a node and waits until nothing runs there, or takes that back. The exit status. */
int cluster_drain(const struct cli *cli, const struct options *options);

#endif
