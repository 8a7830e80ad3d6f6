/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int process_folder(char *ret, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", ret, size - 1);
    char *slash;

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    slash = strrchr(ret, '/');
    if (!slash)
        return -ENOENT;
    slash[slash == ret] = '\0';
    return 0;
}

int process_reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}
