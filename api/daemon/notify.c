/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/notify.h"

#include "base/fd.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 1024u

uint64_t notify_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long value;

    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' ? value : 0;
}

struct notify notify_open(void)
{
    struct notify n = {.fd = -1, .address = {.sun_family = AF_UNIX}};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    uint64_t pid = notify_number("WATCHDOG_PID");

    /* A path, or a name that begins with '@' for a NUL. */
    if (len > 1 && len < sizeof(n.address.sun_path) && (*path == '/' || *path == '@')) {
        memcpy(n.address.sun_path, path, len);
        if (*path == '@')
            n.address.sun_path[0] = '\0';
        n.address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        n.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    if (n.fd >= 0 && (pid == 0 || pid == (uint64_t)getpid()))
        n.watchdog_ms = notify_number("WATCHDOG_USEC") / 1000;
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return n;
}

void notify_send(const struct notify *n, const char *format, ...)
{
    char text[MESSAGE_MAX];
    va_list args;
    int len;

    if (n->fd < 0)
        return;
    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len <= 0)
        return;
    if ((size_t)len >= sizeof(text))
        len = (int)sizeof(text) - 1;
    /* A manager that does not read must not hold up the daemon. */
    (void)sendto(n->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&n->address, n->address_len);
}

void notify_close(struct notify *n)
{
    fd_close(&n->fd);
}
