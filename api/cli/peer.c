/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/peer.h"

#include "base/fd.h"

#include <errno.h>
#include <sys/socket.h>

int peer_find(const char *socket_path, pid_t *ret_pid)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    _cleanup_fd_ int fd = fd_connect_unix(socket_path, 0);

    if (fd < 0)
        return fd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    *ret_pid = peer.pid;
    return 0;
}
