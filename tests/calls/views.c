/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views of the machine: /proc, /sys and /dev as files, and where things can be written.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int views_random(void)
{
    unsigned char first[32];
    unsigned char next[32];
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

    TRY(fd);
    CHECK(getrandom(first, sizeof(first), 0) == 32 && getrandom(next, sizeof(next), 2) == 32);
    CHECK(memcmp(first, next, sizeof(first)) != 0);
    CHECK(read(fd, next, sizeof(next)) == 32 && getentropy(first, sizeof(first)) == 0);
    return 0;
}

/* A line of a file below /proc that begins with a word. */
static int line_of(const char *path, const char *word)
{
    char line[512];
    FILE *file = fopen(path, "re");
    bool found = false;

    if (!file)
        return -errno;
    while (!found && fgets(line, sizeof(line), file))
        found = strncmp(line, word, strlen(word)) == 0;
    (void)fclose(file);
    return found ? 0 : probe_says("no line %s", word);
}

static int views_status(void)
{
    TRY_PROBE(line_of("/proc/self/status", "VmRSS:"));
    TRY_PROBE(line_of("/proc/self/status", "Threads:"));
    TRY_PROBE(line_of("/proc/self/limits", "Max open files"));
    TRY_PROBE(line_of("/proc/self/cgroup", "0::"));
    return line_of("/proc/self/smaps", "Pss:");
}

static int views_machine(void)
{
    TRY_PROBE(line_of("/proc/meminfo", "MemAvailable:"));
    TRY_PROBE(line_of("/proc/cpuinfo", "flags"));
    TRY_PROBE(line_of("/proc/stat", "cpu0 "));
    return line_of("/proc/filesystems", "nodev\ttmpfs");
}

static int views_links(void)
{
    char path[256];

    TRY(readlink("/proc/self/exe", path, sizeof(path)));
    TRY(readlink("/proc/self/cwd", path, sizeof(path)));
    TRY(readlink("/proc/self/root", path, sizeof(path)));
    TRY(readlink("/proc/self/ns/net", path, sizeof(path)));
    TRY(readlink("/proc/thread-self", path, sizeof(path)));
    return 0;
}

static int views_children(void)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    return access(path, R_OK) < 0 ? -errno : 0;
}

static int write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    TRY(fd);
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int views_oom_more(void)
{
    return write_to("/proc/self/oom_score_adj", "900");
}

static int views_oom_less(void)
{
    return write_to("/proc/self/oom_score_adj", "-900");
}

static int views_own_memory(void)
{
    static const char word[] = "ab";
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

    TRY(fd);
    return pwrite(fd, "x", 1, (off_t)(unsigned long)word) < 0 ? -errno : 0;
}

static int new_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    TRY(fd);
    return unlink(path) < 0 ? -errno : 0;
}

static int place_artifacts(void)
{
    return new_file("/sandbox/out/files/calls-probe");
}

static int place_input(void)
{
    return new_file("/sandbox/in/calls-probe");
}

static int place_tmp(void)
{
    return new_file("/tmp/calls-probe");
}

static int place_var_tmp(void)
{
    return new_file("/var/tmp/calls-probe");
}

static int place_shm(void)
{
    return new_file("/dev/shm/calls-probe");
}

static int place_skill(void)
{
    return new_file("/sandbox/skill/calls-probe");
}

static int place_image(void)
{
    return new_file("/usr/calls-probe");
}

static int place_run(void)
{
    return new_file("/run/calls-probe");
}

#define READ(file)                                                                             \
    {                                                                                          \
        .name = (file), .path = (file), .flags = O_RDONLY                                      \
    }
#define LIST(file)                                                                             \
    {                                                                                          \
        .name = (file), .path = (file), .flags = O_RDONLY | O_DIRECTORY                        \
    }
#define WRITE(title, file)                                                                     \
    {                                                                                          \
        .name = (title), .path = (file), .flags = O_WRONLY                                     \
    }

static const struct probe probes[] = {
    PROBE("getrandom /dev/urandom", views_random),
    PROBE("/proc/self: status limits cgroup smaps", views_status),
    PROBE("/proc/self: exe cwd root ns", views_links),
    PROBE("/proc/self/task/N/children", views_children),
    PROBE("/proc: meminfo cpuinfo stat filesystems", views_machine),
    PROBE("oom_score_adj up", views_oom_more),
    PROBE("oom_score_adj down", views_oom_less),
    PROBE("writing over code by /proc/self/mem", views_own_memory),
    READ("/proc/self/maps"),
    READ("/proc/self/pagemap"),
    READ("/proc/self/mountinfo"),
    READ("/proc/self/auxv"),
    READ("/proc/self/io"),
    READ("/proc/self/stack"),
    READ("/proc/self/schedstat"),
    READ("/proc/self/uid_map"),
    READ("/proc/uptime"),
    READ("/proc/loadavg"),
    READ("/proc/version"),
    READ("/proc/vmstat"),
    READ("/proc/diskstats"),
    READ("/proc/interrupts"),
    READ("/proc/net/dev"),
    READ("/proc/net/tcp6"),
    READ("/proc/net/unix"),
    READ("/proc/net/route"),
    READ("/proc/sys/kernel/pid_max"),
    READ("/proc/sys/kernel/random/uuid"),
    READ("/proc/sys/net/core/somaxconn"),
    READ("/proc/pressure/memory"),
    READ("/proc/kallsyms"),
    READ("/proc/kcore"),
    READ("/proc/config.gz"),
    READ("/proc/modules"),
    READ("/proc/swaps"),
    READ("/proc/keys"),
    READ("/proc/kmsg"),
    READ("/proc/sysvipc/shm"),
    LIST("/proc/1"),
    LIST("/proc/self/fd"),
    WRITE("/proc/sys, to write", "/proc/sys/kernel/hostname"),
    WRITE("/proc/sysrq-trigger", "/proc/sysrq-trigger"),
    READ("/sys/devices/system/cpu/online"),
    READ("/sys/devices/system/node/online"),
    READ("/sys/class/net/lo/mtu"),
    READ("/sys/kernel/mm/transparent_hugepage/enabled"),
    LIST("/sys/kernel/debug"),
    READ("/sys/fs/cgroup/skill/memory.max"),
    WRITE("/sys/fs/cgroup, to write", "/sys/fs/cgroup/skill/memory.max"),
    READ("/dev/null"),
    READ("/dev/zero"),
    READ("/dev/full"),
    READ("/dev/random"),
    LIST("/dev/fd"),
    LIST("/dev/shm"),
    LIST("/dev/mqueue"),
    READ("/dev/mem"),
    READ("/dev/kmsg"),
    READ("/dev/console"),
    READ("/dev/fuse"),
    READ("/dev/kvm"),
    READ("/dev/loop-control"),
    READ("/dev/net/tun"),
    READ("/dev/rtc"),
    READ("/dev/vsock"),
    WRITE("/dev/log", "/dev/log"),
    PROBE("a file in /sandbox/out/files", place_artifacts),
    PROBE("a file in /sandbox/in", place_input),
    PROBE("a file in /tmp", place_tmp),
    PROBE("a file in /var/tmp", place_var_tmp),
    PROBE("a file in /dev/shm", place_shm),
    PROBE("a file in /sandbox/skill", place_skill),
    PROBE("a file in /usr", place_image),
    PROBE("a file in /run", place_run),
};

const struct probe_list calls_views = PROBE_LIST(probes);
