/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon that `skillvm mcp` speaks with. One on this machine is started when it is needed
 * and not there, as `skillvm run` does.
 */
#ifndef SKILLVM_API_CLI_UPSTREAM_H
#define SKILLVM_API_CLI_UPSTREAM_H

#include "api/cli/cli.h"
#include "api/cli/daemon.h"
#include "api/client/skillvm.h"

struct upstream;

/*
 * Nothing is started yet. cli is borrowed for its lifetime; where it names no server, a daemon
 * may be started, on this host. 0 or -errno with err.
 */
int upstream_open(const struct cli *cli, enum daemon_host host, struct upstream **ret_upstream,
                  struct err *err);
/* As skillvm_perform(), from any thread; it waits while a daemon is being started. */
int upstream_perform(struct upstream *upstream, const struct skillvm_request *request,
                     struct skillvm_error *error);
/* Stops a daemon that was started and that nobody else uses. NULL is fine. */
void upstream_close(struct upstream *upstream);

#endif
