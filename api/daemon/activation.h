/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets that the service manager opened and handed over, by the protocol of
 * sd_listen_fds(3). Nothing else of the descriptors a daemon starts with is used.
 */
#ifndef SKILLVM_API_DAEMON_ACTIVATION_H
#define SKILLVM_API_DAEMON_ACTIVATION_H

#include "base/err.h"

struct activation {
    int unix_fd; /* owned; -1: none was handed over */
    int tcp_fd;
};

/* None. */
struct activation activation_init(void);
/*
 * Takes what $LISTEN_FDS says, close-on-exec and not blocking, clears the environment, and
 * closes every other descriptor above standard error. 0; -EINVAL with the reason when a
 * descriptor is no listening stream socket, or there are two of a kind.
 */
int activation_take(struct activation *ret, struct err *err);
/* Closes what is left. */
void activation_finish(struct activation *activation);

#endif
