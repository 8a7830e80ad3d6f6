/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the daemon: put together from its settings, from top to bottom, served until a
 * signal ends it, taken apart. main.c has prepared the process.
 */
#ifndef SKILLVM_API_DAEMON_SERVE_H
#define SKILLVM_API_DAEMON_SERVE_H

#include "api/daemon/config.h"
#include "base/err.h"

#include <signal.h>

/*
 * Serves until SIGTERM or SIGINT. stop is the set of signals it waits for, which every thread
 * has blocked. 0 after a clean end, or -errno with the reason.
 */
int serve_run(const struct config *config, const sigset_t *stop, struct err *err);

#endif
