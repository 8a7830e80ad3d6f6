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

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct upstream {
    const struct cli *cli;
    const char *host;
    pthread_mutex_t lock; /* of all below; held while a daemon is being started */
    bool using;
    struct daemon_use use;
    unsigned uses; /* how many were begun: which daemon a request went to */
    struct err failure;
    uint64_t failed_ns;
};

/*
 * Nothing is started yet. Both are borrowed for its lifetime; where cli names no server, a
 * daemon may be started, on the host of this word.
 */
void upstream_init(struct upstream *upstream, const struct cli *cli, const char *host);
/* As skillvm_perform(), from any thread; it waits while a daemon is being started. */
int upstream_perform(struct upstream *upstream, const struct skillvm_request *request,
                     struct skillvm_error *error);
/* Stops a daemon that was started and that nobody else uses. */
void upstream_finish(struct upstream *upstream);

#endif
