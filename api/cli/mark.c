/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/mark.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_STATE      3 /* fields as proc(5) counts them */
#define STAT_START_TIME 22

unsigned long long mark_start_time(pid_t pid)
{
    char path[64], text[1024];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fd_read_text(path, text, sizeof(text)) <= 0)
        return 0;
    /* The name before it may hold anything. */
    const char *at = strrchr(text, ')');
    for (int field = STAT_STATE - 1; at && field < STAT_START_TIME; field++) {
        at = strchr(at, ' ');
        if (at && ++at && field + 1 == STAT_STATE && strchr("ZX", *at))
            return 0;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

pid_t mark_read(const char *path)
{
    char text[64], *end;

    if (fd_read_text(path, text, sizeof(text)) <= 0)
        return 0;
    long pid = strtol(text, &end, 10);
    if (pid <= 1 || pid > INT_MAX || *end != ' ')
        return 0;
    unsigned long long started = strtoull(end, &end, 10);
    return *end == '\n' && started && started == mark_start_time((pid_t)pid) ? (pid_t)pid : 0;
}

int mark_write(const char *path, pid_t pid)
{
    char text[64];
    unsigned long long started = mark_start_time(pid);
    pid_t other = mark_read(path);

    if (!started)
        return -ESRCH;
    if (other && other != pid)
        return -EEXIST;
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int n = snprintf(text, sizeof(text), "%d %llu\n", (int)pid, started);
    return fd_write_full(fd, text, (size_t)n);
}

void mark_remove_stale(const char *path)
{
    if (!mark_read(path))
        unlink(path);
}
