/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/peer.h"

#include "base/fd.h"

#include <sys/socket.h>

int peer_find(const char *socket_path, pid_t *ret_pid)
{
    struct ucred peer = {0};
    _cleanup_fd_ int fd = fd_connect_unix(socket_path, 0);
    int result = fd < 0 ? fd : fd_peer(fd, &peer);

    if (result == 0)
        *ret_pid = peer.pid;
    return result;
}
