/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every probe and prints one JSON object: its name, and "works", the name of an errno, or
 * what else became of it. It keeps nothing: the folders of the probes go with it.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 30
#define NOBODY      65534u

/* Shared with the process of the probe. */
static struct report {
    int result;
    bool done;
    char words[200];
} * report;

static const struct probe_list *const lists[] = {
    &calls_files,   &calls_memory,  &calls_streams,    &calls_processes, &calls_signals,
    &calls_threads, &calls_sockets, &calls_privileged, &calls_views,
};

int probe_says(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(report->words, sizeof(report->words), format, args);
    va_end(args);
    return -EPROTO;
}

void probe_child_end(bool good)
{
    _exit(good ? 0 : 1);
}

int probe_child_wait(int pid)
{
    int status;

    TRY(waitpid(pid, &status, 0));
    if (WIFSIGNALED(status))
        return probe_says("signal %d in a child", WTERMSIG(status));
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status) == 0 ? 0
                                    : probe_says("status %d of a child", WEXITSTATUS(status));
}

static int run_path(const struct probe *probe)
{
    char text[4096];
    int fd = open(probe->path, probe->flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return -errno;
    if (probe->flags & (O_WRONLY | O_DIRECTORY))
        return 0;
    return read(fd, text, sizeof(text)) < 0 ? -errno : 0;
}

static int run_probe(const struct probe *probe)
{
    if (probe->run)
        return probe->run();
    if (probe->path)
        return run_path(probe);
    return syscall(probe->number, probe->args[0], probe->args[1], probe->args[2],
                   probe->args[3], probe->args[4], probe->args[5]) < 0
               ? -errno
               : 0;
}

static void __attribute__((noreturn)) child(const struct probe *probe, const char *folder)
{
    (void)setpgid(0, 0);
    /* Of a probe's other descriptors none is this program's. */
    (void)close_range(3, ~0u, 0);
    if (mkdir(folder, 0700) < 0 || chdir(folder) < 0)
        report->result = probe_says("no folder: %s", strerror(errno));
    else
        report->result = run_probe(probe);
    report->done = true;
    _exit(0);
}

/* The probe's process, with all that it started, is gone when this returns. */
static int await(pid_t pid)
{
    const struct timespec limit = {.tv_sec = SECONDS_MAX};
    siginfo_t info = {0};
    sigset_t ended;
    int status;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0)
        if (sigtimedwait(&ended, NULL, &limit) < 0 && errno == EAGAIN)
            break;
    if (info.si_pid == 0)
        (void)probe_says("not over after %d s", SECONDS_MAX);
    (void)kill(-pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0)
        return probe_says("no status: %s", strerror(errno));
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    if (WIFSIGNALED(status) && info.si_pid != 0)
        return probe_says("signal %d", WTERMSIG(status));
    return report->done ? report->result : -EPROTO;
}

static int try(const struct probe *probe, const char *folder)
{
    sigset_t none;
    pid_t pid;

    *report = (struct report){0};
    pid = fork();
    if (pid < 0)
        return probe_says("no process: %s", strerror(errno));
    if (pid > 0)
        return await(pid);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    child(probe, folder);
}

static void print_result(const struct probe *probe, int result, bool first)
{
    const char *name = strerrorname_np(-result);

    printf("%s\"%s\": \"", first ? "{" : ",\n ", probe->name);
    if (result == 0)
        printf("works\"");
    else if (report->words[0])
        printf("%s\"", report->words);
    else
        printf("%s\"", name ? name : "unknown");
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Much of what is tried harms a machine whose root tries it: this program never is root. */
static int be_nobody(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capget, &head, sets) < 0)
        return -1;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        if (sets[i].effective || sets[i].permitted) {
            errno = EPERM;
            return -1;
        }
    return getuid() == 0 || geteuid() == 0 ? -1 : 0;
}

static void run_all(const char *base)
{
    char folder[64];
    bool first = true;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (size_t k = 0; k < lists[i]->len; k++, first = false) {
            (void)snprintf(folder, sizeof(folder), "%s/%zu.%zu", base, i, k);
            print_result(&lists[i]->items[k], try(&lists[i]->items[k], folder), first);
        }
    puts("}");
}

int main(void)
{
    char base[] = "/tmp/calls-XXXXXX";
    sigset_t ended;

    if (be_nobody() < 0) {
        perror("guest-calls: it must not have privileges, and cannot give them up");
        return 1;
    }
    report =
        mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED || !mkdtemp(base)) {
        perror("guest-calls");
        return 1;
    }
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &ended, NULL);
    /* What a probe leaves behind is this process's to reap. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    run_all(base);
    (void)nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
