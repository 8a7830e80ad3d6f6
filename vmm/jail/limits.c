/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define ROOT     "/sys/fs/cgroup"
#define DAEMON   "skillvm-daemon"
#define MACHINES "skillvm-machines"
#define JAIL     "jail"
/* How long a killed machine may take to go. */
#define LEFTOVERS_MS 5000
#define CELL_MS      500 /* every other start waits for it */
#define EVENTS_SIZE  512

static const char *const controllers[] = {"cpu", "memory", "pids"};
#define CONTROLLERS    "+cpu +memory +pids"
#define NO_CONTROLLERS "-cpu -memory -pids"

#define TEXT(x)       #x
#define TEXT_OF(name) TEXT(name)

/* Of a machine, whatever its size. Both its threads are busy at once only while data flows. */
static const struct {
    const char *name, *value;
} fixed[] = {
    {"pids.max", TEXT_OF(JAIL_THREADS)},
    {"cpu.max", "150000 100000"},
    {"cpu.weight", TEXT_OF(JAIL_WEIGHT)},
    {"memory.oom.group", "1"},
};

static int write_file(int dir_fd, const char *name, const char *text)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : -1;
}

/* -1 with errno, also where the file does not fit. */
static int read_file(int dir_fd, const char *name, char *ret, size_t size)
{
    _cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size);

    if (n == (ssize_t)size)
        errno = EFBIG;
    if (n < 0 || n == (ssize_t)size)
        return -1;
    ret[n] = '\0';
    return 0;
}

static int open_folder(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int make_folder(int dir_fd, const char *name)
{
    int fd = open_folder(dir_fd, name);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    return mkdirat(dir_fd, name, 0755) < 0 ? -1 : open_folder(dir_fd, name);
}

/* The path of the cgroup v2 that the daemon is in, without what it was moved to. */
static bool find_base(char *ret, size_t size)
{
    char path[32], line[4096];
    bool found = false;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", getppid());
    file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::/", 4) == 0;
    }
    if (file)
        (void)fclose(file);
    if (!found)
        return false;
    if (text_ends_with(line, "/" DAEMON))
        line[strlen(line) - strlen("/" DAEMON)] = '\0';
    return snprintf(ret, size, ROOT "%s", line + 3) < (int)size;
}

static bool is_daemon_or_self(pid_t pid)
{
    return pid == getppid() || pid == getpid();
}

/* The parent of a process. 0 where that is not to be seen; -1 where the process has gone. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[1024];
    const char *name_end = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (read_file(AT_FDCWD, path, text, sizeof(text)) == 0)
        name_end = strrchr(text, ')');
    if (name_end && strlen(name_end) > strlen(") S "))
        return (pid_t)strtol(name_end + strlen(") S "), NULL, 10);
    return kill(pid, 0) < 0 && errno == ESRCH ? -1 : 0;
}

/* Whether it is the daemon, or came from it. Who has gone is nobody else's. */
static bool is_of_daemon(pid_t pid)
{
    while (pid > 0 && pid != getppid())
        pid = parent_of(pid);
    return pid != 0;
}

/* Whether all that are in a cgroup may be there. Others' namespaces show as 0. */
static bool has_only(int dir_fd, bool (*may_be)(pid_t pid))
{
    char pids[4096], *rest = pids, *line;

    if (read_file(dir_fd, "cgroup.procs", pids, sizeof(pids)) < 0)
        return false;
    while ((line = strsep(&rest, "\n")))
        if (*line && !may_be((pid_t)strtol(line, NULL, 10)))
            return false;
    return true;
}

/* Whether another daemon has moved here, whose machines would end below. */
static bool is_taken(int base_fd)
{
    _cleanup_fd_ int daemon_fd = open_folder(base_fd, DAEMON);

    return daemon_fd >= 0 && !has_only(daemon_fd, is_of_daemon);
}

static bool has_controllers(int base_fd)
{
    char all[256];

    if (read_file(base_fd, "cgroup.controllers", all, sizeof(all)) < 0)
        return false;
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        if (!text_has_word(all, " \n", controllers[i]))
            return false;
    return true;
}

/* The folder BASE, which the daemon may write to. As limits_find. */
static const char *open_base(int *ret)
{
    char path[4096];
    struct statfs fs;

    errno = 0;
    if (statfs(ROOT, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
        return ROOT " is not of cgroup v2";
    if (!find_base(path, sizeof(path)))
        return "the daemon has no cgroup";
    *ret = open_folder(AT_FDCWD, path);
    if (*ret < 0 || faccessat(*ret, "cgroup.procs", W_OK, AT_EACCESS) < 0)
        return "the cgroup of the daemon";
    errno = 0;
    return NULL;
}

const char *limits_find(struct limits *limits)
{
    const char *failed;

    *limits = (struct limits){.base_fd = -1, .machines_fd = -1};
    failed = open_base(&limits->base_fd);
    if (failed)
        return failed;
    if (!has_controllers(limits->base_fd))
        return "the cgroup of the daemon has not cpu, memory and pids";
    if (!has_only(limits->base_fd, is_daemon_or_self))
        return "the daemon is not alone in its cgroup";
    return is_taken(limits->base_fd) ? "the cgroup of the daemon is another daemon's" : NULL;
}

static const char *enter(struct limits *limits, int daemon_fd)
{
    char parent[16];

    (void)snprintf(parent, sizeof(parent), "%d", getppid());
    if (daemon_fd < 0 || write_file(daemon_fd, "cgroup.procs", parent) < 0 ||
        write_file(daemon_fd, "cgroup.procs", "0") < 0)
        return "moving the daemon into a cgroup";
    /* Both begin with a cpu.weight of 100, and keep it: a daemon with more would give its
       callers' requests the processors that machines need, one with less could not end
       machines. */
    if (write_file(limits->base_fd, "cgroup.subtree_control", CONTROLLERS) < 0)
        return "having cpu, memory and pids in cgroups";
    return NULL;
}

static bool is_empty(int cgroup_fd)
{
    char events[256];

    return read_file(cgroup_fd, "cgroup.events", events, sizeof(events)) == 0 &&
           strstr(events, "populated 0");
}

/*
 * Whom nobody has any more: machines that an earlier process has left, as it can where it had
 * no PID namespace, and would lose their limits below; and what a machine has left in its cell.
 * False with EBUSY.
 */
static bool end_leftovers(int cgroup_fd, int wait_ms)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    /* Linux 5.14; where that is not, nothing was left or the wait is in vain. */
    (void)write_file(cgroup_fd, "cgroup.kill", "1");
    for (int ms = 0; ms < wait_ms; ms++) {
        if (is_empty(cgroup_fd))
            return true;
        (void)nanosleep(&pause, NULL);
    }
    errno = EBUSY;
    return false;
}

/* The next folder in it, or NULL. */
static const char *next_folder(DIR *dir)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            return entry->d_name;
    return NULL;
}

/* Removes the folders in one of cgroups, in which nobody is. 0; -1 with errno. */
static int remove_folders(int dir_fd)
{
    DIR *dir = fd_opendir(dir_fd);
    const char *name;
    int r = dir ? 0 : -1;

    while (r == 0 && (name = next_folder(dir)))
        r = unlinkat(dir_fd, name, AT_REMOVEDIR);
    if (dir)
        (void)closedir(dir);
    return r;
}

const char *limits_enter(struct limits *limits)
{
    _cleanup_fd_ int daemon_fd = make_folder(limits->base_fd, DAEMON);
    const char *failed = enter(limits, daemon_fd);

    if (failed)
        return failed;
    limits->machines_fd = make_folder(limits->base_fd, MACHINES);
    /* That is the root of a cgroup namespace that is made now, for which it must be empty of
       controllers: those of an earlier process are taken back, with the cells that they were
       for. */
    if (limits->machines_fd >= 0 && end_leftovers(limits->machines_fd, LEFTOVERS_MS) &&
        remove_folders(limits->machines_fd) == 0 &&
        write_file(limits->machines_fd, "cgroup.subtree_control", NO_CONTROLLERS) == 0 &&
        write_file(limits->machines_fd, "cgroup.procs", "0") == 0)
        return NULL;
    fd_close(&limits->machines_fd);
    return "entering the cgroup of machines";
}

const char *limits_begin(struct limits *limits)
{
    _cleanup_fd_ int jail_fd = make_folder(limits->machines_fd, JAIL);

    /* Who starts machines comes before those that are there. */
    if (jail_fd >= 0 && write_file(jail_fd, "cgroup.procs", "0") == 0 &&
        write_file(limits->machines_fd, "cgroup.subtree_control", CONTROLLERS) == 0 &&
        write_file(jail_fd, "cpu.weight", "10000") == 0)
        return NULL;
    fd_close(&limits->machines_fd);
    return "a cgroup for each machine";
}

/* The number behind a name in lines of the kernel's; 0 without one. */
static uint64_t number_of(const char *text, const char *name)
{
    uint64_t number;

    return text_find_number(text, name, &number) ? number : 0;
}

/* Whether the kernel ended somebody in a cgroup for memory; ret_events is what it counts there.
 */
static bool was_short(int cell_fd, char *ret_events, size_t size)
{
    return read_file(cell_fd, "memory.events", ret_events, size) == 0 &&
           number_of(ret_events, "oom_kill") > 0;
}

/* What a machine leaves in its cgroup: pages of files that others use, too; and that memory
   ended it, which nobody asked about where the daemon did so at the same time. */
static bool is_worn(int cell_fd, uint64_t memory_max)
{
    char text[32], events[EVENTS_SIZE];

    return was_short(cell_fd, events, sizeof(events)) ||
           (read_file(cell_fd, "memory.current", text, sizeof(text)) == 0 &&
            strtoull(text, NULL, 10) > memory_max / 16);
}

static int limit(int cell_fd, uint64_t memory_max)
{
    char text[32];

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (write_file(cell_fd, fixed[i].name, fixed[i].value) < 0)
            return -1;
    (void)snprintf(text, sizeof(text), "%" PRIu64, memory_max);
    /* A host without swap may not know that it could be limited. */
    if (write_file(cell_fd, "memory.swap.max", "0") < 0 && errno != ENOENT)
        return -1;
    return write_file(cell_fd, "memory.max", text);
}

int limits_open_cell(struct limits *limits, uint32_t cell, uint64_t memory_max, int *ret)
{
    _cleanup_fd_ int fd = -1;
    char name[16];

    (void)snprintf(name, sizeof(name), "%u", cell);
    fd = make_folder(limits->machines_fd, name);
    /* Who fills it lets nobody in, not even who would end them as their user, which is all
       that there is before Linux 5.14. */
    if (fd >= 0 && !is_empty(fd) && faccessat(fd, "cgroup.kill", F_OK, 0) == 0 &&
        !end_leftovers(fd, CELL_MS))
        return -errno;
    if (fd >= 0 && is_worn(fd, memory_max) &&
        unlinkat(limits->machines_fd, name, AT_REMOVEDIR) == 0) {
        fd_close(&fd);
        fd = make_folder(limits->machines_fd, name);
        limits->memory[cell] = 0;
    }
    if (fd < 0)
        return -errno;
    if (limits->memory[cell] != memory_max && limit(fd, memory_max) < 0)
        return -errno;
    limits->memory[cell] = memory_max;
    *ret = fd_steal(&fd);
    return 0;
}

enum jail_memory limits_look(struct limits *limits, uint32_t cell)
{
    _cleanup_fd_ int fd = -1;
    char name[16], events[EVENTS_SIZE];

    (void)snprintf(name, sizeof(name), "%u", cell);
    fd = open_folder(limits->machines_fd, name);
    if (fd < 0 || !was_short(fd, events, sizeof(events)))
        return JAIL_MEMORY_ENOUGH;
    if (unlinkat(limits->machines_fd, name, AT_REMOVEDIR) == 0)
        limits->memory[cell] = 0;
    /* The kernel counts in "oom" what went over this one's memory.max, and in "oom_kill" whom
       it ended, for whatever reason. */
    return number_of(events, "oom") > 0 ? JAIL_MEMORY_OVER : JAIL_MEMORY_SHORT;
}

int limits_open_weight(int cell_fd)
{
    int fd = openat(cell_fd, "cpu.weight", O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int limits_join(int cell_fd)
{
    return write_file(cell_fd, "cgroup.procs", "0");
}

/* Whether there is a cgroup beside the daemon's. */
static bool has_others(int base_fd)
{
    DIR *dir = fd_opendir(base_fd);
    const char *name = NULL;

    if (!dir)
        return true;
    do
        name = next_folder(dir);
    while (name && strcmp(name, DAEMON) == 0);
    (void)closedir(dir);
    return name;
}

static const char *remove_machines(int base_fd)
{
    _cleanup_fd_ int machines_fd = open_folder(base_fd, MACHINES);

    if (machines_fd < 0 && errno == ENOENT)
        return NULL;
    return machines_fd >= 0 && end_leftovers(machines_fd, LEFTOVERS_MS) &&
                   remove_folders(machines_fd) == 0 &&
                   unlinkat(base_fd, MACHINES, AT_REMOVEDIR) == 0
               ? NULL
               : "removing the cgroups of machines";
}

const char *limits_leave(void)
{
    _cleanup_fd_ int base_fd = -1;
    const char *failed = open_base(&base_fd);
    char parent[16];

    if (failed)
        return failed;
    if (is_taken(base_fd))
        return "the cgroup of the daemon is another daemon's";
    failed = remove_machines(base_fd);
    if (failed)
        return failed;
    if (has_others(base_fd))
        return NULL;
    (void)snprintf(parent, sizeof(parent), "%d", getppid());
    return write_file(base_fd, "cgroup.subtree_control", NO_CONTROLLERS) == 0 &&
                   write_file(base_fd, "cgroup.procs", parent) == 0 &&
                   write_file(base_fd, "cgroup.procs", "0") == 0 &&
                   unlinkat(base_fd, DAEMON, AT_REMOVEDIR) == 0
               ? NULL
               : "removing the cgroup of the daemon";
}
