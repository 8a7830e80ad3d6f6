/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the daemon: put together from its settings, from top to bottom, served until a
 * signal ends it, taken apart. main.c has prepared the process.
 */
#ifndef SKILLVM_API_DAEMON_SERVE_H
#define SKILLVM_API_DAEMON_SERVE_H

#include "api/daemon/activation.h"
#include "api/daemon/config/config.h"
#include "api/daemon/notify.h"
#include "base/err.h"

#include <signal.h>

/* Borrowed for the call. */
struct serve {
    const struct config_sources *sources; /* read anew on SIGHUP */
    struct config *config;                /* what they say now; a reload changes it */
    struct activation *sockets;           /* handed over; taken from here */
    const struct notify *notify;
    const sigset_t *signals; /* it waits for these; every thread has them blocked */
};

/* Serves until SIGTERM or SIGINT. 0 after a clean end, or -errno with the reason. */
int serve_run(const struct serve *serve, struct err *err);

#endif
