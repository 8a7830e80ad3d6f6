/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: how they start and end, what they may set of themselves, and what bounds them.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than a skill may have, and few enough for any other machine. */
#define MANY            200
#define SCHED_ATTR_SIZE 48

static char *true_argv[] = {(char[]){"true"}, NULL};
static char *no_env[] = {NULL};

static int processes_fork(void)
{
    struct rusage usage;
    siginfo_t info = {0};
    int status;
    pid_t pid = fork();

    TRY(pid);
    if (pid == 0)
        _exit(7);
    TRY(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    CHECK(info.si_status == 7 && info.si_code == CLD_EXITED);
    TRY(wait4(pid, &status, 0, &usage));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(waitpid(-1, &status, 0) < 0 && errno == ECHILD);
    return 0;
}

static int processes_vfork(void)
{
    pid_t pid = vfork();

    TRY(pid);
    if (pid == 0) {
        (void)execve("/bin/true", true_argv, no_env);
        _exit(1);
    }
    return probe_child_wait(pid);
}

static int processes_spawn(void)
{
    pid_t pid;

    TRY_ERROR(posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, no_env));
    return probe_child_wait(pid);
}

static int processes_clone3(void)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (unsigned long)&pidfd};
    siginfo_t info = {0};
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    TRY(pid);
    if (pid == 0)
        _exit(3);
    TRY(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED));
    CHECK(info.si_status == 3 && info.si_pid == pid);
    return 0;
}

static int processes_pidfd(void)
{
    int status;
    int fd;
    pid_t pid = fork();

    TRY(pid);
    if (pid == 0)
        for (;;)
            (void)pause();
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    TRY(fd);
    TRY(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
    TRY(waitpid(pid, &status, 0));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    return 0;
}

static int processes_pidfd_getfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    TRY(fd);
    return syscall(SYS_pidfd_getfd, fd, fd, 0) < 0 ? -errno : 0;
}

static int processes_execveat(void)
{
    int fd = open("/bin/true", O_PATH | O_CLOEXEC);
    pid_t pid = fork();

    TRY(fd);
    TRY(pid);
    if (pid == 0)
        probe_child_end(syscall(SYS_execveat, fd, "", true_argv, no_env, AT_EMPTY_PATH) == 0);
    return probe_child_wait(pid);
}

static int run_file(const void *content, size_t size)
{
    int status;
    int fd = open("a", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    pid_t pid;

    TRY(fd);
    CHECK(write(fd, content, size) == (ssize_t)size);
    TRY(close(fd));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        (void)execve("./a", true_argv, no_env);
        _exit(errno);
    }
    TRY(waitpid(pid, &status, 0));
    return WIFEXITED(status) ? -WEXITSTATUS(status) : probe_says("signal %d", WTERMSIG(status));
}

static int processes_script(void)
{
    const char script[] = "#!/bin/sh\nexit 0\n";

    return run_file(script, strlen(script));
}

/* The header of a program for i386 that ends at once. */
static int processes_i386(void)
{
    static const unsigned char program[] =
        {
            0x7f, 'E',  'L',  'F',  1,    1,    1,    0, 0,    0,    0,    0,
            0,    0,    0,    0, /* ident */
            2,    0,    3,    0,    1,    0,    0,    0, 0x54, 0x80, 4,    8,
            0x34, 0,    0,    0, /* entry, headers */
            0,    0,    0,    0,    0,    0,    0,    0, 0x34, 0,    0x20, 0,
            1,    0,    0,    0,    0,    0,    0,    0, /* their number */
            1,    0,    0,    0,    0,    0,    0,    0, 0,    0x80, 4,    8,
            0,    0x80, 4,    8, /* one to load */
            0x60, 0,    0,    0,    0x60, 0,    0,    0, 5,    0,    0,    0,
            0,    0x10, 0,    0,                                              /* its size */
            0x31, 0xc0, 0x40, 0x31, 0xdb, 0xcd, 0x80, 0, 0,    0,    0,    0, /* exit(0) */
        };

    return run_file(program, sizeof(program));
}

static int processes_groups(void)
{
    pid_t pid = fork();

    TRY(pid);
    if (pid == 0)
        probe_child_end(setsid() == getpid() && getsid(0) == getpid() && getpgrp() == getpid());
    return probe_child_wait(pid);
}

static int processes_reaper(void)
{
    int status;
    pid_t pid;

    TRY(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    pid = fork();
    TRY(pid);
    if (pid == 0)
        _exit(fork() < 0 ? 1 : 0);
    TRY_PROBE(probe_child_wait(pid));
    TRY(waitpid(-1, &status, 0));
    return 0;
}

/* The parent of it ends once it has asked to follow. */
static void __attribute__((noreturn)) follow_parent(int ready)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || write(ready, "x", 1) != 1)
        probe_child_end(false);
    for (;;)
        (void)pause();
}

static int processes_death_signal(void)
{
    int ready[2];
    int alive[2];
    char text[1];
    pid_t pid;

    TRY(pipe2(ready, O_CLOEXEC));
    TRY(pipe2(alive, O_CLOEXEC));
    pid = fork();
    TRY(pid);
    if (pid == 0) {
        pid = fork();
        if (pid == 0)
            follow_parent(ready[1]);
        probe_child_end(pid > 0 && read(ready[0], text, 1) == 1);
    }
    /* This reads the end once nobody has the other side any more. */
    TRY(close(alive[1]));
    CHECK(read(alive[0], text, 1) == 0);
    return probe_child_wait(pid);
}

static int processes_name(void)
{
    char name[16];

    TRY(prctl(PR_SET_NAME, "renamed", 0, 0, 0));
    TRY(prctl(PR_GET_NAME, name, 0, 0, 0));
    CHECK(strcmp(name, "renamed") == 0);
    TRY(prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0));
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int processes_name_memory(void)
{
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, 4096, "name") < 0 ? -errno : 0;
}

static int processes_filter(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = rules};

    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    CHECK(syscall(SYS_getppid) < 0 && errno == ENOTTY);
    return 0;
}

static int processes_trace(void)
{
    int status;
    pid_t pid = fork();

    TRY(pid);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            probe_child_end(false);
        (void)raise(SIGSTOP);
        probe_child_end(true);
    }
    TRY(waitpid(pid, &status, 0));
    CHECK(WIFSTOPPED(status));
    TRY(ptrace(PTRACE_CONT, pid, NULL, NULL));
    return probe_child_wait(pid);
}

static int processes_core(void)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    int status;
    pid_t pid;

    (void)setrlimit(RLIMIT_CORE, &all);
    pid = fork();
    TRY(pid);
    if (pid == 0)
        abort();
    TRY(waitpid(pid, &status, 0));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return WCOREDUMP(status) ? 0 : probe_says("no core");
}

static int processes_personality(void)
{
    TRY(personality(ADDR_NO_RANDOMIZE));
    CHECK(personality(0xffffffff) & ADDR_NO_RANDOMIZE);
    return 0;
}

static int processes_identity(void)
{
    struct utsname name;
    struct sysinfo info;
    struct tms used;
    unsigned cpu;

    TRY(uname(&name));
    CHECK(strcmp(name.sysname, "Linux") == 0 && strcmp(name.machine, "x86_64") == 0);
    TRY(sysinfo(&info));
    CHECK(info.totalram > 0 && info.procs > 0);
    TRY(syscall(SYS_getcpu, &cpu, NULL, NULL));
    TRY(times(&used));
    CHECK(gettid() == getpid() && getppid() > 0);
    return 0;
}

static int schedule_affinity(void)
{
    cpu_set_t set;

    TRY(sched_getaffinity(0, sizeof(set), &set));
    CHECK(CPU_COUNT(&set) > 0);
    TRY(sched_setaffinity(0, sizeof(set), &set));
    return sched_yield() < 0 ? -errno : 0;
}

static int schedule_nicer(void)
{
    int before = getpriority(PRIO_PROCESS, 0);

    TRY(setpriority(PRIO_PROCESS, 0, before + 1));
    CHECK(getpriority(PRIO_PROCESS, 0) == before + 1);
    return 0;
}

static int schedule_less_nice(void)
{
    return setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1) < 0 ? -errno : 0;
}

static int schedule_as(int policy, int priority)
{
    const struct sched_param param = {.sched_priority = priority};

    TRY(sched_setscheduler(0, policy, &param));
    CHECK(sched_getscheduler(0) == policy);
    return 0;
}

static int schedule_batch(void)
{
    return schedule_as(SCHED_BATCH, 0);
}

static int schedule_idle(void)
{
    return schedule_as(SCHED_IDLE, 0);
}

static int schedule_realtime(void)
{
    return schedule_as(SCHED_FIFO, 1);
}

static int schedule_attributes(void)
{
    /* struct sched_attr, whose header and the C library's exclude each other. */
    unsigned attributes[SCHED_ATTR_SIZE / sizeof(unsigned)] = {0};

    TRY(syscall(SYS_sched_getattr, 0, attributes, sizeof(attributes), 0));
    return syscall(SYS_sched_setattr, 0, attributes, 0) < 0 ? -errno : 0;
}

static int schedule_disk(void)
{
    return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
                   IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7)) < 0
               ? -errno
               : 0;
}

static int limits_set(void)
{
    struct rlimit limit;

    TRY(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 64;
    TRY(prlimit(0, RLIMIT_NOFILE, &limit, NULL));
    CHECK(dup2(0, 64) < 0 && errno == EBADF);
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int limits_raise(void)
{
    struct rlimit limit;

    TRY(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_max++;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* Limits that a process gives itself are kept by the kernel. */
static int limits_kept(void)
{
    const struct rlimit space = {256u << 20, 256u << 20};
    const struct rlimit file = {4096, 4096};
    const struct rlimit stack = {RLIM_INFINITY, RLIM_INFINITY};
    int fd = open("a", O_CREAT | O_RDWR, 0644);

    TRY(fd);
    TRY(setrlimit(RLIMIT_AS, &space));
    CHECK(mmap(NULL, 512u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
          errno == ENOMEM);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    TRY(setrlimit(RLIMIT_FSIZE, &file));
    CHECK(pwrite(fd, "x", 1, 4096) < 0 && errno == EFBIG);
    return setrlimit(RLIMIT_STACK, &stack) < 0 ? -errno : 0;
}

static int limits_processes(void)
{
    int gate[2];

    TRY(pipe2(gate, O_CLOEXEC));
    for (int i = 0; i < MANY; i++) {
        pid_t pid = fork();

        TRY(pid);
        if (pid == 0) {
            char end;

            (void)close(gate[1]);
            (void)!read(gate[0], &end, 1);
            _exit(0);
        }
    }
    return 0;
}

static const struct probe probes[] = {
    PROBE("fork wait4 waitid", processes_fork),
    PROBE("vfork execve", processes_vfork),
    PROBE("posix_spawn", processes_spawn),
    PROBE("clone3 with a pidfd", processes_clone3),
    PROBE("pidfd_open pidfd_send_signal", processes_pidfd),
    PROBE("pidfd_getfd", processes_pidfd_getfd),
    PROBE("execveat", processes_execveat),
    PROBE("execve of a script", processes_script),
    PROBE("execve of an i386 program", processes_i386),
    PROBE("setsid getsid getpgrp", processes_groups),
    PROBE("prctl PR_SET_CHILD_SUBREAPER", processes_reaper),
    PROBE("prctl PR_SET_PDEATHSIG", processes_death_signal),
    PROBE("prctl PR_SET_NAME PR_SET_TIMERSLACK PR_SET_DUMPABLE", processes_name),
    PROBE("prctl PR_SET_VMA_ANON_NAME", processes_name_memory),
    PROBE("seccomp filters", processes_filter),
    PROBE("ptrace of a child", processes_trace),
    PROBE("core files", processes_core),
    PROBE("personality", processes_personality),
    PROBE("uname sysinfo getcpu times", processes_identity),
    PROBE("sched_getaffinity sched_setaffinity", schedule_affinity),
    PROBE("setpriority to yield more", schedule_nicer),
    PROBE("setpriority to yield less", schedule_less_nice),
    PROBE("sched_setscheduler SCHED_BATCH", schedule_batch),
    PROBE("sched_setscheduler SCHED_IDLE", schedule_idle),
    PROBE("sched_setscheduler SCHED_FIFO", schedule_realtime),
    PROBE("sched_getattr sched_setattr", schedule_attributes),
    PROBE("ioprio_set", schedule_disk),
    PROBE("getrlimit setrlimit prlimit", limits_set),
    PROBE("setrlimit past the hard limit", limits_raise),
    PROBE("RLIMIT_AS RLIMIT_FSIZE RLIMIT_STACK", limits_kept),
    PROBE("200 processes at once", limits_processes),
};

const struct probe_list calls_processes = PROBE_LIST(probes);
