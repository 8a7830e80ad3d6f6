/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the first request to the last: waits for signals, reads the settings and looks for
 * images anew on SIGHUP, keeps the service manager informed, and stops gracefully. Runs in the
 * main thread.
 */
#ifndef SKILLVM_API_DAEMON_LIFECYCLE_H
#define SKILLVM_API_DAEMON_LIFECYCLE_H

#include "api/daemon/config/config.h"
#include "api/daemon/http/http.h"
#include "api/daemon/notify.h"
#include "api/daemon/routes/daemon.h"

#include <signal.h>

/* Borrowed for the call, all of it. */
struct lifecycle {
    struct daemon *daemon;
    struct http_server *http;
    const struct config_sources *sources;
    struct config *config; /* what is in force; a reload changes it */
    const struct notify *notify;
    const sigset_t *signals; /* SIGTERM, SIGINT, SIGHUP; blocked in every thread */
};

/* Puts what the settings are warned of into the log. */
void lifecycle_warn(void *ctx, const char *text);

/*
 * Returns after SIGTERM or SIGINT, when nothing new is accepted any more and every execution
 * has ended: what waits is ended at once with the reason, what runs has the stop timeout and is
 * then cancelled. A second signal cancels it sooner. http_stop and the rest are the caller's.
 */
void lifecycle_run(const struct lifecycle *lifecycle);

#endif
