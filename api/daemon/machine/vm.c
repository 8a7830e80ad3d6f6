/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/vm.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_FD        3 /* descriptors of the child are 3, 4, … */
#define FDS_MAX         8 /* so sources lie above every target and no dup2 hits a source */
#define SOURCE_FD_MIN   16
#define QUERY_TIMEOUT_S 10u

struct launch {
    const char *program;
    char *argv[24];
    size_t argc;
    int fds[FDS_MAX]; /* owned copies at SOURCE_FD_MIN and above; index + FIRST_FD is its number
                       */
    size_t n_fds;
    int error; /* -errno of the first descriptor that could not be passed, or 0 */
    char numbers[FDS_MAX][8];
};

struct vm vm_init(void)
{
    return (struct vm){.pid = -1, .control_fd = -1, .vsock_fd = -1};
}

static void add_argument(struct launch *l, const char *text)
{
    /* posix_spawn takes char *const[] and never writes through it. */
    l->argv[l->argc++] = (char *)(uintptr_t)text;
}

static struct launch launch_init(const char *program, const char *command)
{
    struct launch l = {.program = program};

    add_argument(&l, "skillvm-vmm");
    add_argument(&l, command);
    return l;
}

/* Passes a descriptor under the next number. -1 is left out. launch tells of a failure. */
static void add_fd(struct launch *l, const char *option, int fd)
{
    size_t i = l->n_fds;
    int copy;

    if (fd < 0 || l->error)
        return;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, SOURCE_FD_MIN);
    if (copy < 0) {
        l->error = -errno;
        return;
    }
    l->fds[i] = copy;
    l->n_fds++;
    (void)snprintf(l->numbers[i], sizeof(l->numbers[i]), "%zu", FIRST_FD + i);
    add_argument(l, option);
    add_argument(l, l->numbers[i]);
}

static void launch_finish(struct launch *l)
{
    for (size_t i = 0; i < l->n_fds; i++)
        fd_close(&l->fds[i]);
}

/* 0 or an errno, as posix_spawn. */
static int spawn(struct launch *l, int stdout_fd, posix_spawn_file_actions_t *actions,
                 posix_spawnattr_t *attr, pid_t *ret_pid)
{
    char *const no_env[] = {NULL};
    int r;

    r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r != 0)
        return r;
    r = stdout_fd < 0
            ? posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
            : posix_spawn_file_actions_adddup2(actions, stdout_fd, STDOUT_FILENO);
    for (size_t i = 0; r == 0 && i < l->n_fds; i++)
        r = posix_spawn_file_actions_adddup2(actions, l->fds[i], FIRST_FD + (int)i);
    if (r != 0)
        return r;
    l->argv[l->argc] = NULL;
    return posix_spawn(ret_pid, l->program, actions, attr, l->argv, no_env);
}

/* stdout_fd -1 is /dev/null. */
static int launch(struct launch *l, int stdout_fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int r;

    if (l->error)
        return l->error;
    r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attr);
    if (r != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    /* A group of its own: a Ctrl-C at the daemon's terminal is the daemon's to handle. Flags
       and masks that are right cannot fail. */
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    r = spawn(l, stdout_fd, &actions, &attr, ret_pid);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Starts a machine with what was added so far, and with its sockets. Finishes the launch. */
static int start(struct launch *l, struct vm *ret, struct err *err)
{
    struct vm vm = vm_init();
    int control[2] = {-1, -1};
    int vsock[2] = {-1, -1};
    int r = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, vsock) < 0) {
        r = err_set_errno(err, errno, "cannot create the sockets of a microVM");
        goto out;
    }
    add_fd(l, "--control-fd", control[1]);
    add_fd(l, "--vsock-fd", vsock[1]);
    if (!l->error)
        l->error = fd_set_nonblock(vsock[0], true);
    r = launch(l, -1, &vm.pid);
    if (r < 0) {
        r = err_set_errno(err, -r, "cannot start %s", l->program);
        goto out;
    }
    vm.control_fd = fd_steal(&control[0]);
    vm.vsock_fd = fd_steal(&vsock[0]);
    *ret = vm;
out:
    for (int i = 0; i < 2; i++) {
        fd_close(&control[i]);
        fd_close(&vsock[i]);
    }
    launch_finish(l);
    return r;
}

int vm_start_boot(const struct vm_boot *boot, struct vm *ret, struct err *err)
{
    struct launch l = launch_init(boot->program, "boot");
    char mib[16];

    (void)snprintf(mib, sizeof(mib), "%u", boot->memory_mib);
    add_fd(&l, "--kernel-fd", boot->kernel_fd);
    add_fd(&l, "--image-fd", boot->image_fd);
    add_fd(&l, "--console-fd", boot->console_fd);
    add_argument(&l, "--memory-mib");
    add_argument(&l, mib);
    return start(&l, ret, err);
}

int vm_start_restore(const struct vm_restore *restore, struct vm *ret, struct err *err)
{
    struct launch l = launch_init(restore->program, "restore");

    add_fd(&l, "--image-fd", restore->image_fd);
    add_fd(&l, "--state-fd", restore->files.fds[VM_STATE]);
    add_fd(&l, "--memory-fd", restore->files.fds[VM_MEMORY]);
    add_fd(&l, "--working-set-fd", restore->files.fds[VM_WORKING_SET]);
    add_fd(&l, "--record-fd", restore->record_fd);
    if (restore->reusable)
        add_argument(&l, "--reusable");
    return start(&l, ret, err);
}

int vm_next_event(struct vm *vm, struct vmm_event *ret, struct err *err)
{
    struct vmm_event event;
    ssize_t n;

    do
        n = recv(vm->control_fd, &event, sizeof(event), MSG_DONTWAIT | MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return -EAGAIN;
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return err_set(err, EPIPE, "the microVM's process ended");
    if (n < 0)
        return err_set_errno(err, errno, "cannot read the microVM's control socket");
    if ((size_t)n != sizeof(event) || event.version != VMM_CONTROL_VERSION ||
        event.type < VMM_EVENT_RESUMED || event.type > VMM_EVENT_DISK)
        return err_set(err, EPROTO, "the microVM's process sent a message nobody knows");
    event.message[sizeof(event.message) - 1] = '\0';
    for (char *p = event.message; *p; p++) {
        if (*p < 0x20 || *p > 0x7e || *p == '"')
            *p = '?';
    }
    *ret = event;
    return 0;
}

int vm_wait_event(struct vm *vm, enum vmm_event_type type, uint64_t deadline_ns,
                  struct vmm_event *ret, struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = vm->control_fd, .events = POLLIN};
        struct vmm_event event;
        int r = vm_next_event(vm, &event, err);

        if (r == 0 && event.type == type) {
            *ret = event;
            return 0;
        }
        if (r == 0 && event.type == VMM_EVENT_FAILED)
            return err_set(err, EREMOTEIO, "%s", event.message);
        if (r == 0 && event.type == VMM_EVENT_EXITED)
            return err_set(err, EREMOTEIO, "the guest stopped by itself");
        if (r == 0)
            continue;
        if (r != -EAGAIN)
            return r;
        if (clock_monotonic_ns() >= deadline_ns)
            return err_set(err, ETIMEDOUT, "the microVM did not answer in time");
        if (poll(&p, 1, clock_timeout_ms(deadline_ns)) < 0 && errno != EINTR)
            return err_set_errno(err, errno, "cannot wait for the microVM");
    }
}

int vm_send_snapshot(struct vm *vm, const struct vm_files *files, struct err *err)
{
    const struct vmm_command command = {VMM_CONTROL_VERSION, VMM_COMMAND_SNAPSHOT, {0}};
    int r = fd_send(vm->control_fd, &command, sizeof(command), &files->fds[VM_STATE], 2);

    return r < 0 ? err_set_errno(err, -r, "cannot ask the microVM for a snapshot") : 0;
}

int vm_send_disk(struct vm *vm, const int fds[2], const uint64_t bytes[2], struct err *err)
{
    const struct vmm_command command = {
        VMM_CONTROL_VERSION, VMM_COMMAND_DISK, {bytes[0], bytes[1]}};
    int r = fd_send(vm->control_fd, &command, sizeof(command), fds, 2);

    return r < 0 ? err_set_errno(err, -r, "cannot give the microVM the disk of a skill") : 0;
}

static int send_reset(const struct vm *vm, int ours, int theirs)
{
    const struct vmm_command command = {VMM_CONTROL_VERSION, VMM_COMMAND_RESET, {0}};
    int r = fd_set_nonblock(ours, true);

    return r < 0 ? r : fd_send(vm->control_fd, &command, sizeof(command), &theirs, 1);
}

int vm_reset(struct vm *vm, uint64_t deadline_ns, struct err *err)
{
    _cleanup_fd_ int ours = -1, theirs = -1;
    struct vmm_event event;
    int ends[2];
    int old, r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, errno, "cannot create the socket of a microVM");
    ours = ends[0];
    theirs = ends[1];
    r = send_reset(vm, ours, theirs);
    if (r < 0)
        return err_set_errno(err, -r, "cannot ask the microVM to be reset");
    /* From here on nothing the old run left is read. Its stream stays open until the machine
       has given it up: a guest whose connection ends stops its machine. */
    old = fd_steal(&vm->vsock_fd);
    vm->vsock_fd = fd_steal(&ours);
    fd_close(&theirs);
    r = vm_wait_event(vm, VMM_EVENT_RESET, deadline_ns, &event, err);
    fd_close(&old);
    return r;
}

int vm_quit(struct vm *vm, uint64_t deadline_ns, struct err *err)
{
    const struct vmm_command command = {VMM_CONTROL_VERSION, VMM_COMMAND_QUIT, {0}};
    struct vmm_event event;
    struct err ended = {0};
    siginfo_t how = {0};
    int r = fd_send(vm->control_fd, &command, sizeof(command), NULL, 0);

    if (r < 0)
        return err_set_errno(err, -r, "cannot ask the microVM to end");
    /* No machine says RESUMED twice: this waits for the end of the socket. */
    r = vm_wait_event(vm, VMM_EVENT_RESUMED, deadline_ns, &event, &ended);
    if (r != -EPIPE)
        return err_set(err, r == -ETIMEDOUT ? ETIMEDOUT : EREMOTEIO, "%s",
                       r < 0 ? ended.message : "the microVM did not end");
    /* Left to be reaped by vm_finish: until then its number is nobody else's. */
    while (waitid(P_PID, (id_t)vm->pid, &how, WEXITED | WNOWAIT) < 0) {
        if (errno != EINTR)
            return err_set_errno(err, errno, "cannot wait for the microVM");
    }
    if (how.si_code != CLD_EXITED || how.si_status != 0)
        return err_set(err, EREMOTEIO, "the microVM's process failed");
    return 0;
}

void vm_kill(struct vm *vm)
{
    siginfo_t ended = {0};

    if (vm->pid <= 0)
        return;
    /* Not reaped yet, so the number is still this process's. */
    if (!vm->killed && waitid(P_PID, (id_t)vm->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0)
        vm->killed = ended.si_pid == 0;
    (void)kill(vm->pid, SIGKILL);
}

uint64_t vm_cpu_us(const struct vm *vm)
{
    struct timespec used;
    clockid_t clock;

    if (vm->pid <= 0 || clock_getcpuclockid(vm->pid, &clock) != 0 ||
        clock_gettime(clock, &used) < 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000;
}

void vm_finish(struct vm *vm)
{
    vm_kill(vm);
    if (vm->pid > 0)
        vm->status = process_reap(vm->pid);
    vm->pid = -1;
    fd_close(&vm->control_fd);
    fd_close(&vm->vsock_fd);
}

enum vm_death vm_death(const struct vm *vm)
{
    /* In the order of the deaths from VM_DEATH_SIGABRT on. */
    static const int signals[] = {SIGABRT, SIGBUS, SIGILL, SIGKILL, SIGSEGV, SIGSYS};

    if (WIFEXITED(vm->status))
        return WEXITSTATUS(vm->status) == 0   ? VM_DEATH_EXIT_0
               : WEXITSTATUS(vm->status) == 1 ? VM_DEATH_EXIT_1
                                              : VM_DEATH_EXIT_OTHER;
    if (WTERMSIG(vm->status) == SIGKILL && vm->killed)
        return VM_DEATH_KILLED;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (signals[i] == WTERMSIG(vm->status))
            return VM_DEATH_SIGABRT + (enum vm_death)i;
    }
    return VM_DEATH_SIGNAL_OTHER;
}

const char *const vm_death_names[VM_DEATHS] = {
    "killed", "exit_0",  "exit_1",  "exit_other", "sigabrt",      "sigbus",
    "sigill", "sigkill", "sigsegv", "sigsys",     "signal_other",
};

void vm_describe_end(const struct vm *vm, char *text, size_t size)
{
    if (WIFSIGNALED(vm->status))
        (void)snprintf(text, size, "signal %d", WTERMSIG(vm->status));
    else
        (void)snprintf(text, size, "exit %d", WEXITSTATUS(vm->status));
}

int vm_query(const char *program, const char *arg, char *ret_line, size_t size, struct err *err)
{
    struct launch l = launch_init(program, arg);
    uint64_t deadline_ns = clock_monotonic_ns() + QUERY_TIMEOUT_S * NS_PER_SECOND;
    int pipes[2];
    size_t len = 0;
    pid_t pid = -1;
    int r;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "cannot create a pipe");
    r = launch(&l, pipes[1], &pid);
    fd_close(&pipes[1]);
    if (r < 0) {
        fd_close(&pipes[0]);
        return err_set_errno(err, -r, "cannot start %s", program);
    }
    while (len + 1 < size) {
        struct pollfd p = {.fd = pipes[0], .events = POLLIN};
        ssize_t n;

        if (poll(&p, 1, clock_timeout_ms(deadline_ns)) <= 0)
            break;
        n = read(pipes[0], ret_line + len, size - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    ret_line[len] = '\0';
    ret_line[strcspn(ret_line, "\n")] = '\0';
    (void)kill(pid, SIGKILL);
    (void)process_reap(pid);
    fd_close(&pipes[0]);
    if (ret_line[0] == '\0')
        return err_set(err, EREMOTEIO, "%s %s printed nothing", program, arg);
    return 0;
}
