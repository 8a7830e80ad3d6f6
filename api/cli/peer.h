/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens on a unix socket: the kernel knows the process. */
#ifndef SKILLVM_API_CLI_PEER_H
#define SKILLVM_API_CLI_PEER_H

#include <sys/types.h>

/*
 * Connects and asks the kernel who listens. 0 with the process id; -ENOENT no socket;
 * -ECONNREFUSED a stale one; -errno.
 */
int peer_find(const char *socket_path, pid_t *ret_pid);

#endif
