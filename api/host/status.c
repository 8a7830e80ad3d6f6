/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what a supervisor wrote about itself.
 */
#include "api/host/host.h"

#include "api/host/files.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

const char *host_state_name(enum host_state state)
{
    static const char *const names[] = {
        [HOST_STOPPED] = "stopped",
        [HOST_BOOTING] = "booting",
        [HOST_READY] = "ready",
        [HOST_STOPPING] = "stopping",
    };

    return names[state];
}

static void status_take(struct host_status *status, const char *key, const char *value)
{
    unsigned long long number = strtoull(value, NULL, 10);

    if (strcmp(key, "state") == 0 && number >= HOST_BOOTING && number <= HOST_STOPPING)
        status->state = (enum host_state)number;
    else if (strcmp(key, "qemu_pid") == 0)
        status->qemu_pid = (pid_t)number;
    else if (strcmp(key, "restarts") == 0)
        status->restarts = (uint32_t)number;
    else if (strcmp(key, "boot_ms") == 0)
        status->boot_ms = number;
    else if (strcmp(key, "memory_mib") == 0)
        status->memory_mib = (uint32_t)number;
    else if (strcmp(key, "is_full") == 0)
        status->is_full = status->is_full || number != 0;
    else if (strcmp(key, "last_reason") == 0)
        strncpy(status->last_reason, value, sizeof(status->last_reason) - 1);
}

int host_status_read(const char *data_dir, struct host_status *ret_status, struct err *err)
{
    struct host_status status = {.state = HOST_STOPPED};
    char path[FILES_PATH_MAX], text[2048], *rest = text;
    _cleanup_fd_ int fd = -1;
    ssize_t n;
    pid_t holder = files_lock_holder(data_dir);
    int r = files_path(data_dir, "log", status.log_path, err);

    if (r < 0)
        return r;
    if (holder < 0)
        return err_set_errno(err, -holder, "cannot read the lock of the software host");
    if (holder > 0) {
        status.state = HOST_BOOTING;
        status.supervisor_pid = holder;
        /* Where nothing at all is left, that it stands still could not be written either. */
        status.is_full = files_is_full(data_dir);
        fd = files_open(data_dir, "status", O_RDONLY, path, NULL);
        n = fd < 0 ? fd : fd_read_full(fd, text, sizeof(text) - 1);
        if (n < 0 && n != -ENOENT)
            return err_set_errno(err, (int)-n, "cannot read %s", path);
        text[n > 0 ? n : 0] = '\0';
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
            char *equals = strchr(line, '=');

            if (!equals)
                continue;
            *equals = '\0';
            status_take(&status, line, equals + 1);
        }
    }
    *ret_status = status;
    return 0;
}
