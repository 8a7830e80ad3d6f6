/* SPDX-License-Identifier: Apache-2.0 */
/* More rights than it was left with, and more of the kernel than a machine needs. */
#include "tests/hostile/taken/taken.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int try_user(void)
{
    return taken_done(syscall(SYS_setresuid, 77, 77, 77));
}

static int try_root(void)
{
    return taken_done(chroot(taken_given("folder")));
}

static int try_mount(void)
{
    return taken_done(mount("none", taken_given("folder"), "tmpfs", 0, NULL));
}

/* A child in it, which waits: a process with threads may not enter one itself. */
static int child_in(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        for (;;)
            (void)syscall(SYS_pause);
    return taken_done(pid);
}

static int try_user_namespace(void)
{
    return child_in(CLONE_NEWUSER);
}

static int try_namespace(void)
{
    return child_in(CLONE_NEWNET);
}

static int try_host_name(void)
{
    return taken_done(sethostname("taken", 5));
}

static int try_priority(void)
{
    return taken_done(setpriority(PRIO_PROCESS, 0, -10));
}

static int try_rlimits(void)
{
    struct rlimit limit = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_max++;
    return taken_done(setrlimit(RLIMIT_NOFILE, &limit));
}

static int try_code(void)
{
    void *page = (void *)((uintptr_t)taken_low_page() & ~(uintptr_t)4095);

    return taken_done(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
}

static int try_ring(void)
{
    char params[256] = {0};

    return taken_done(syscall(SYS_io_uring_setup, 1, params));
}

static int try_bpf(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

    return taken_done(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

/* Of the kernel's own code. */
static int try_perf(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK};

    return taken_done(syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0));
}

static int try_user_faults(void)
{
    return taken_done(syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY));
}

static int try_socket(void)
{
    return taken_done(socket(AF_NETLINK, SOCK_RAW, 0));
}

const struct attempt taken_rights[] = {
    {"user", try_user},
    {"root", try_root},
    {"mount", try_mount},
    {"user-namespace", try_user_namespace},
    {"namespace", try_namespace},
    {"host-name", try_host_name},
    {"priority", try_priority},
    {"rlimits", try_rlimits},
    {"code", try_code},
    {"ring", try_ring},
    {"bpf", try_bpf},
    {"perf", try_perf},
    {"user-faults", try_user_faults},
    {"socket", try_socket},
    {NULL, NULL},
};
