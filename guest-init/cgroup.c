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
#include "base/text.h"

static const struct {
    const char *name;
    int flags;
} files[CGROUP_FILES] = {
    [CGROUP_PEAK] = {"memory.peak", O_RDWR},
    [CGROUP_CPU_STAT] = {"cpu.stat", O_RDONLY},
    [CGROUP_EVENTS] = {"memory.events", O_RDONLY},
    [CGROUP_MEMORY_MAX] = {"memory.max", O_WRONLY},
    [CGROUP_PIDS_MAX] = {"pids.max", O_WRONLY},
    [CGROUP_PIDS_EVENTS] = {"pids.events", O_RDONLY},
    [CGROUP_PROCS] = {"cgroup.procs", O_RDONLY},
    [CGROUP_FREEZE] = {"cgroup.freeze", O_WRONLY},
    [CGROUP_KILL] = {"cgroup.kill", O_WRONLY},
};

static int write_text(int dir, const char *file, const char *text)
{
    _cleanup_fd_ int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int put(const struct cgroup *cg, enum cgroup_file file, const char *text)
{
    return pwrite(cg->files[file], text, strlen(text), 0) < 0 ? -errno : 0;
}

static int put_number(const struct cgroup *cg, enum cgroup_file file, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return put(cg, file, text);
}

/* These files give all they have in one read. */
static int get(const struct cgroup *cg, enum cgroup_file file, char *text, size_t size)
{
    ssize_t n = pread(cg->files[file], text, size - 1, 0);

    if (n < 0)
        return -errno;
    text[n] = 0;
    return 0;
}

static int find_number(const char *text, const char *name, uint64_t *ret)
{
    return text_find_number(text, name, ret) ? 0 : -ENOENT;
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
    for (size_t i = 0; i < CGROUP_FILES; i++) {
        cg.files[i] = openat(cg.dir, files[i].name, files[i].flags | O_CLOEXEC);
        if (cg.files[i] < 0) {
            r = err_set_errno(err, errno, "cannot open %s of cgroup %s", files[i].name, name);
            cgroup_close(&cg);
            return r;
        }
    }
    *ret_cgroup = cg;
    return 0;
}

void cgroup_close(struct cgroup *cg)
{
    fd_close(&cg->dir);
    for (size_t i = 0; i < CGROUP_FILES; i++)
        fd_close(&cg->files[i]);
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
    r = put_number(cg, CGROUP_MEMORY_MAX, memory_bytes);
    if (r < 0)
        return err_set_errno(err, -r, "cannot set memory.max");
    r = put_number(cg, CGROUP_PIDS_MAX, pids_max);
    return r < 0 ? err_set_errno(err, -r, "cannot set pids.max") : 0;
}

static int read_cpu(const struct cgroup *cg, uint64_t *ret_user_us, uint64_t *ret_system_us)
{
    char text[1024];
    int r = get(cg, CGROUP_CPU_STAT, text, sizeof(text));

    if (r < 0)
        return r;
    r = find_number(text, "user_usec", ret_user_us);
    return r < 0 ? r : find_number(text, "system_usec", ret_system_us);
}

void cgroup_begin(struct cgroup *cg)
{
    if (cg->dir < 0)
        return;
    cg->user_us = 0;
    cg->system_us = 0;
    (void)read_cpu(cg, &cg->user_us, &cg->system_us);
    /* Since Linux 6.12 a write resets the mark for this descriptor; before, it just fails. */
    (void)put(cg, CGROUP_PEAK, "0");
}

int cgroup_read_usage(const struct cgroup *cg, struct cgroup_usage *ret_usage)
{
    struct cgroup_usage usage = {0};
    uint64_t kills = 0;
    char text[1024];
    int r;

    if (cg->dir < 0)
        return -ENOENT;
    r = read_cpu(cg, &usage.user_us, &usage.system_us);
    if (r < 0)
        return r;
    usage.user_us -= cg->user_us;
    usage.system_us -= cg->system_us;
    r = get(cg, CGROUP_PEAK, text, sizeof(text));
    if (r < 0)
        return r;
    usage.peak_bytes = strtoull(text, NULL, 10);
    r = get(cg, CGROUP_EVENTS, text, sizeof(text));
    if (r < 0)
        return r;
    r = find_number(text, "oom_kill", &kills);
    if (r < 0)
        return r;
    usage.out_of_memory = kills > 0;
    r = get(cg, CGROUP_PIDS_EVENTS, text, sizeof(text));
    if (r < 0)
        return r;
    r = find_number(text, "max", &usage.not_started);
    if (r < 0)
        return r;
    *ret_usage = usage;
    return 0;
}

int cgroup_read_again(const struct cgroup *cg, uint64_t *ret_bytes)
{
    _cleanup_fd_ int fd =
        cg->dir < 0 ? -1 : openat(cg->dir, "memory.stat", O_RDONLY | O_CLOEXEC);
    char text[8192];
    uint64_t pages;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (n < 0)
        return cg->dir < 0 ? -ENOENT : -errno;
    text[n] = 0;
    if (!text_find_number(text, "workingset_refault_file", &pages))
        return -ENOENT;
    *ret_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int freeze_last(const struct cgroup *cg)
{
    char text[24];
    const char *end;
    int r = put(cg, CGROUP_FREEZE, "1");

    if (r < 0)
        return r;
    /* A line each. */
    r = get(cg, CGROUP_PROCS, text, sizeof(text));
    if (r < 0)
        return r;
    end = strchr(text, '\n');
    return end && end[1] == '\0' ? 0 : -EBUSY;
}

int cgroup_freeze_last(const struct cgroup *cg)
{
    int r;

    if (cg->dir < 0)
        return -ENOENT;
    r = freeze_last(cg);
    if (r < 0)
        (void)put(cg, CGROUP_FREEZE, "0");
    return r;
}

int cgroup_kill(const struct cgroup *cg)
{
    return cg->dir < 0 ? -ENOENT : put(cg, CGROUP_KILL, "1");
}
