/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static int write_text(int dir, const char *file, const char *text)
{
    _cleanup_fd_ int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_number(int dir, const char *file, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return write_text(dir, file, text);
}

static int read_fd_text(int fd, char *text, size_t size)
{
    ssize_t n = fd_pread_full(fd, text, size - 1, 0);

    if (n < 0)
        return (int)n;
    text[n] = 0;
    return 0;
}

static int read_text(int dir, const char *file, char *text, size_t size)
{
    _cleanup_fd_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);

    text[0] = 0;
    return fd < 0 ? -errno : read_fd_text(fd, text, size);
}

/* The number after "key " at the start of a line. */
static int find_number(const char *text, const char *key, uint64_t *ret_value)
{
    size_t len = strlen(key);

    while (text && *text) {
        if (strncmp(text, key, len) == 0 && text[len] == ' ') {
            *ret_value = strtoull(text + len + 1, NULL, 10);
            return 0;
        }
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return -ENOENT;
}

int cgroup_open(const char *mount, const char *name, struct cgroup *ret_cgroup, struct err *err)
{
    _cleanup_fd_ int root = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cgroup cg = CGROUP_NONE;
    int r;

    if (root < 0)
        return err_set_errno(err, errno, "cannot open %s", mount);
    r = write_text(root, "cgroup.subtree_control", "+memory +pids");
    if (r < 0)
        return err_set_errno(err, -r, "cannot enable cgroup controllers");
    if (mkdirat(root, name, 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, errno, "cannot make cgroup %s", name);
    cg.dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cg.dir < 0)
        return err_set_errno(err, errno, "cannot open cgroup %s", name);
    cg.peak = openat(cg.dir, "memory.peak", O_RDWR | O_CLOEXEC);
    *ret_cgroup = cg;
    return 0;
}

void cgroup_close(struct cgroup *cg)
{
    fd_close(&cg->dir);
    fd_close(&cg->peak);
}

int cgroup_join(const struct cgroup *cg)
{
    return cg->dir < 0 ? 0 : write_text(cg->dir, "cgroup.procs", "0");
}

int cgroup_limit(const struct cgroup *cg, uint64_t memory_bytes, uint32_t pids_max,
                 struct err *err)
{
    int r;

    if (cg->dir < 0)
        return 0;
    r = write_number(cg->dir, "memory.max", memory_bytes);
    if (r < 0)
        return err_set_errno(err, -r, "cannot set memory.max");
    r = write_number(cg->dir, "pids.max", pids_max);
    return r < 0 ? err_set_errno(err, -r, "cannot set pids.max") : 0;
}

static int read_cpu(const struct cgroup *cg, uint64_t *ret_user_us, uint64_t *ret_system_us)
{
    char text[1024];
    int r = read_text(cg->dir, "cpu.stat", text, sizeof(text));

    if (r == 0)
        r = find_number(text, "user_usec", ret_user_us);
    return r == 0 ? find_number(text, "system_usec", ret_system_us) : r;
}

void cgroup_begin(struct cgroup *cg)
{
    if (cg->dir < 0)
        return;
    cg->user_us = 0;
    cg->system_us = 0;
    (void)read_cpu(cg, &cg->user_us, &cg->system_us);
    /* Since Linux 6.12 a write resets the mark for this descriptor; before, it just fails. */
    if (cg->peak >= 0)
        (void)!write(cg->peak, "0", 1);
}

int cgroup_read_usage(const struct cgroup *cg, struct cgroup_usage *ret_usage)
{
    struct cgroup_usage usage = {0};
    uint64_t kills = 0;
    char text[1024];
    int r;

    if (cg->dir < 0 || cg->peak < 0)
        return -ENOENT;
    r = read_cpu(cg, &usage.user_us, &usage.system_us);
    if (r < 0)
        return r;
    usage.user_us -= cg->user_us;
    usage.system_us -= cg->system_us;
    r = read_fd_text(cg->peak, text, sizeof(text));
    if (r < 0)
        return r;
    usage.peak_bytes = strtoull(text, NULL, 10);
    r = read_text(cg->dir, "memory.events", text, sizeof(text));
    if (r == 0)
        r = find_number(text, "oom_kill", &kills);
    if (r < 0)
        return r;
    usage.out_of_memory = kills > 0;
    *ret_usage = usage;
    return 0;
}

int cgroup_kill(const struct cgroup *cg)
{
    return cg->dir < 0 ? -ENOENT : write_text(cg->dir, "cgroup.kill", "1");
}
