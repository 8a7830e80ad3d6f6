/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution and its connections: begun where its job may have any, and told of afterwards to
 * its caller and in the audit. What passes through them is egress.h's.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_NETWORK_H
#define SKILLVM_API_DAEMON_ENGINE_NETWORK_H

#include "api/daemon/egress/egress.h"
#include "api/daemon/engine/execution.h"
#include "api/daemon/registry/registry.h"

/* *ret is the caller's, NULL for a job without a network. 0 or -errno. */
int network_open(const struct egress_settings *settings, const struct job_network *network,
                 struct egress **ret, struct err *err);

/*
 * Adds to the execution's warnings what would have to be changed for hosts that it may not
 * reach, and writes all that it reached and did not to the audit.
 */
void network_tell(struct registry *registry, struct execution *e,
                  const struct egress_records *log);

/*
 * For one without a network that failed: says it where its log has a name that could not be
 * looked up, unless the warnings speak of the network already.
 */
void network_explain(struct execution *e);

#endif
