/* SPDX-License-Identifier: Apache-2.0 */
#include "api/host/monitor.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Of one turn: the rest is there at the next, whatever QEMU sends. */
#define READS_MAX 16u

/* A few bytes, which there is always room for, or QEMU is gone. */
static void say(struct monitor *m, const char *command)
{
    (void)send(m->fd, command, strlen(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Each message is a line. */
static enum monitor_word heed(struct monitor *m, const char *line)
{
    if (strncmp(line, "{\"QMP\"", 6) == 0)
        say(m, "{\"execute\": \"qmp_capabilities\"}\n");
    if (strstr(line, "\"event\": \"BLOCK_IO_ERROR\"") && strstr(line, "\"nospace\": true") &&
        strstr(line, "\"action\": \"stop\""))
        return MONITOR_NO_ROOM;
    return strstr(line, "\"event\": \"RESUME\"") ? MONITOR_GOES_ON : MONITOR_NOTHING;
}

/* Takes the whole lines off what has come. */
static enum monitor_word take_lines(struct monitor *m, enum monitor_word word)
{
    char *end;

    m->line[m->len] = '\0';
    while ((end = memchr(m->line, '\n', m->len))) {
        enum monitor_word new;

        *end = '\0';
        new = heed(m, m->line);
        word = new == MONITOR_NOTHING ? word : new;
        m->len -= (size_t)(end + 1 - m->line);
        memmove(m->line, end + 1, m->len + 1);
    }
    return word;
}

enum monitor_word monitor_run(struct monitor *m)
{
    enum monitor_word word = MONITOR_NOTHING;

    for (unsigned i = 0; i < READS_MAX && m->fd >= 0; i++) {
        ssize_t n = recv(m->fd, m->line + m->len, sizeof(m->line) - 1 - m->len, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0) {
            fd_close(&m->fd);
            break;
        }
        m->len += (size_t)n;
        word = take_lines(m, word);
        if (m->len == sizeof(m->line) - 1)
            m->len = 0;
    }
    return word;
}

void monitor_continue(struct monitor *m)
{
    if (m->fd >= 0)
        say(m, "{\"execute\": \"cont\"}\n");
}

void monitor_finish(struct monitor *m)
{
    fd_close(&m->fd);
    *m = MONITOR_NONE;
}
