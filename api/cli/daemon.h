/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting, finding and stopping the daemon, natively or in the software host. Never a second
 * one for the same data directory: starting and stopping happen under a lock.
 */
#ifndef SKILLVM_API_CLI_DAEMON_H
#define SKILLVM_API_CLI_DAEMON_H

#include "api/cli/cli.h"
#include "base/err.h"
#include "base/nearest.h"

#include <stdbool.h>
#include <sys/types.h>

struct daemon_state {
    bool up;   /* somebody listens on the socket */
    bool soft; /* it is a software host's supervisor */
    pid_t pid; /* of who listens; 0 when not up */
};

/* How a daemon is started, besides its places. Borrowed; NULL where nothing was said. */
struct daemon_settings {
    const char *listen; /* a TCP address */
    const char *config; /* the absolute path of its file of settings */
};

/* Looks who is there. 0, or -errno with err (a socket that may not be opened). */
int daemon_find(const struct cli *cli, struct daemon_state *ret_state, struct err *err);

/*
 * Takes the host of this word, "native" or "soft"; with "auto" or NULL the KVM probe decides.
 * Says in one line on standard error which one it is and why. 0, or -errno with err where a
 * forced one cannot work.
 */
int daemon_choose(const struct cli *cli, const char *host, bool *ret_soft, struct err *err);

/*
 * Starts it in the background and waits until it is ready, with progress on standard error.
 * one_shot: the last `skillvm run` that uses it stops it.
 * 0; -errno with err (the log's last lines go to standard error). Nothing is left on failure.
 */
int daemon_start(const struct cli *cli, const struct daemon_settings *settings, bool soft,
                 bool one_shot, struct err *err);

/* Runs it in the foreground. Returns only on failure or at its end, with an exit status. */
int daemon_run_foreground(const struct cli *cli, const struct daemon_settings *settings,
                          bool soft);

/*
 * Stops it: asks, waits, kills. Removes a stale socket. 0; -ESRCH when nothing was up; -errno
 * with err.
 */
int daemon_stop(const struct cli *cli, struct err *err);

/*
 * Whether the caller is known to have no registered skill of this name, without starting a
 * daemon: none runs on the data directory, and none ever stored anything in it, or the software
 * host that did said so when it was stopped. hint is then the end of a message, on what is
 * near.
 */
bool daemon_lacks_skill(const struct cli *cli, const char *name, char hint[NEAREST_HINT_SIZE]);

/*
 * Waits for the lock of starting and stopping, alone or with other users of a daemon. A
 * descriptor that holds it until it is closed, or -errno with err.
 */
int daemon_lock(const struct cli *cli, bool alone, struct err *err);

/*
 * A use of the daemon by one `skillvm run`, which starts one when there is none. The last user
 * of a daemon that was started this way stops it.
 */
struct daemon_use {
    int lock_fd;
    bool started;
};

int daemon_use_begin(const struct cli *cli, const char *host, struct daemon_use *ret_use,
                     struct err *err);
void daemon_use_end(const struct cli *cli, struct daemon_use *use);
/* The daemon stays after its users are gone. */
void daemon_keep(const struct cli *cli);

#endif
