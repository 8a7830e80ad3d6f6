/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_stats.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct process_memory process_memory(pid_t pid)
{
    _cleanup_fd_ int fd = -1;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct process_memory m = {0};
    uint64_t shared;
    char path[32] = "/proc/self/statm";
    char text[128];
    char *at = text;
    ssize_t n;

    if (pid > 0)
        (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return m;
    text[n] = '\0';
    m.virtual_bytes = strtoull(at, &at, 10) * page;
    m.resident_bytes = strtoull(at, &at, 10) * page;
    shared = strtoull(at, &at, 10) * page;
    m.private_bytes = m.resident_bytes > shared ? m.resident_bytes - shared : 0;
    return m;
}

uint64_t process_cpu_us(void)
{
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) < 0)
        return 0;
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

uint64_t process_open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    uint64_t n = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    /* Without the one that was open to count. */
    return n > 0 ? n - 1 : 0;
}

uint64_t process_max_fds(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
}
