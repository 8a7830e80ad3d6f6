/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/peer.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int peer_find(const char *socket_path, pid_t *ret_pid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (strlen(socket_path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, socket_path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    *ret_pid = peer.pid;
    return 0;
}
