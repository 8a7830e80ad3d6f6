/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/vm.h"

#include "api/daemon/machine/jail.h"
#include "api/daemon/machine/launch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUERY_TIMEOUT_S 10u

/* Of what a process says of itself. */
#define LOG_BYTES     4096
#define LOG_LINES_MAX 16

/* What the jail is asked for. */
struct order {
    struct jail_request request;
    size_t len;            /* of its text */
    int fds[JAIL_FDS_MAX]; /* borrowed: standard error, then what the machine is given */
    size_t n_fds;
};

struct vm vm_init(void)
{
    return (struct vm){
        .pid = -1, .control_fd = -1, .vsock_fd = -1, .weight_fd = -1, .log_fd = -1};
}

/* All of a machine fit: their number is known. */
static void add_argument(struct order *o, const char *text)
{
    size_t size = strlen(text) + 1;

    memcpy(o->request.text + o->len, text, size);
    o->len += size;
}

static void add_number(struct order *o, const char *option, uint32_t number)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%u", number);
    add_argument(o, option);
    add_argument(o, text);
}

static struct order order_init(const char *command)
{
    struct order o = {.n_fds = 1};

    add_argument(&o, "skillvm-vmm");
    add_argument(&o, command);
    add_number(&o, "--kvm-fd", JAIL_FD_KVM);
    add_number(&o, "--proc-fd", JAIL_FD_PROC);
    return o;
}

/* Passes a descriptor under the next number. -1 is left out. */
static void add_fd(struct order *o, const char *option, int fd)
{
    if (fd < 0)
        return;
    add_number(o, option, JAIL_FD_FIRST - 1 + (uint32_t)o->n_fds);
    o->fds[o->n_fds++] = fd;
}

/* What lies between the daemon and a machine: [0] is the daemon's end. */
struct channels {
    int control[2];
    int vsock[2];
    int said[2]; /* a pipe that holds LOG_BYTES, and takes no more */
};

static void channels_close(struct channels *c)
{
    for (int i = 0; i < 2; i++) {
        fd_close(&c->control[i]);
        fd_close(&c->vsock[i]);
        fd_close(&c->said[i]);
    }
}

/* No command waits for room: a process that reads none was taken over. */
static int channels_open(struct channels *c, struct err *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, c->control) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->vsock) < 0 ||
        fd_set_nonblock(c->control[0], true) < 0 || fd_set_nonblock(c->vsock[0], true) < 0)
        return err_set_errno(err, errno, "cannot create the sockets of a microVM");
    if (pipe2(c->said, O_CLOEXEC | O_NONBLOCK) < 0 ||
        fcntl(c->said[1], F_SETPIPE_SZ, LOG_BYTES) < 0)
        return err_set_errno(err, errno, "cannot create the log of a microVM");
    return 0;
}

/* Starts a machine with what was added so far, and with its sockets. */
static int start(struct order *o, struct jail *jail, struct vm *ret, struct err *err)
{
    __attribute__((cleanup(channels_close))) struct channels c = {{-1, -1}, {-1, -1}, {-1, -1}};
    struct jailed jailed;
    int r = channels_open(&c, err);

    if (r < 0)
        return r;
    o->fds[0] = c.said[1];
    add_fd(o, "--control-fd", c.control[1]);
    add_fd(o, "--vsock-fd", c.vsock[1]);
    r = jail_start(jail, &o->request, o->fds, o->n_fds, &jailed, err);
    if (r < 0)
        return r;
    *ret = (struct vm){.jail = jail,
                       .cell = jailed.cell,
                       .pid = jailed.pid,
                       .memory_max = o->request.memory_max,
                       .control_fd = fd_steal(&c.control[0]),
                       .vsock_fd = fd_steal(&c.vsock[0]),
                       .weight_fd = jailed.weight_fd,
                       .log_fd = fd_steal(&c.said[0])};
    return 0;
}

/*
 * What a machine may take of the host's memory: its guest's, with the tables for it, and what
 * its process needs. Pages of its files count for whoever touches them first, and are given up
 * when there are too many; where the files themselves are in memory they are not, and there may
 * be one for each page of the guest.
 */
static uint64_t memory_max(uint64_t guest_bytes, int file_fd)
{
    struct statfs fs;
    const bool in_memory = fstatfs(file_fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;

    return (in_memory ? 2 * guest_bytes : guest_bytes) + VM_OVERHEAD;
}

int vm_start_boot(const struct vm_boot *boot, struct vm *ret, struct err *err)
{
    struct order o = order_init("boot");

    add_fd(&o, "--kernel-fd", boot->kernel_fd);
    add_fd(&o, "--image-fd", boot->image_fd);
    add_fd(&o, "--console-fd", boot->console_fd);
    add_number(&o, "--memory-mib", boot->memory_mib);
    o.request.memory_max = memory_max((uint64_t)boot->memory_mib << 20, boot->console_fd);
    return start(&o, boot->jail, ret, err);
}

int vm_start_restore(const struct vm_restore *restore, struct vm *ret, struct err *err)
{
    struct order o = order_init("restore");
    struct stat memory;

    if (fstat(restore->files.fds[VM_MEMORY], &memory) < 0)
        return err_set_errno(err, errno, "cannot look at a snapshot's memory");
    add_fd(&o, "--image-fd", restore->image_fd);
    add_fd(&o, "--state-fd", restore->files.fds[VM_STATE]);
    add_fd(&o, "--memory-fd", restore->files.fds[VM_MEMORY]);
    add_fd(&o, "--working-set-fd", restore->files.fds[VM_WORKING_SET]);
    add_fd(&o, "--record-fd", restore->record_fd);
    if (restore->reusable)
        add_argument(&o, "--reusable");
    o.request.memory_max = memory_max((uint64_t)memory.st_size, restore->files.fds[VM_MEMORY]);
    return start(&o, restore->jail, ret, err);
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
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        vm->ended = true;
        return err_set(err, EPIPE, "the microVM's process ended");
    }
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
        if (r != 0 && r != -EAGAIN)
            return r;
        /* Events that nobody asked for take no time off it. */
        if (clock_monotonic_ns() >= deadline_ns)
            return err_set(err, ETIMEDOUT, "the microVM did not answer in time");
        if (r == 0)
            continue;
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

/* Until the process has ended; it may have given up its socket long before. 0 or -errno. */
static int await_end(const struct vm *vm, uint64_t deadline_ns, struct err *err)
{
    _cleanup_fd_ int fd = pidfd_open(vm->pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = -1;

    while (fd >= 0 && (n = poll(&p, 1, clock_timeout_ms(deadline_ns))) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return err_set_errno(err, errno, "cannot wait for the microVM");
    return n > 0 ? 0 : err_set(err, ETIMEDOUT, "the microVM did not end in time");
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
    r = await_end(vm, deadline_ns, err);
    if (r < 0)
        return r;
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
    if (!vm->killed && !vm->ended &&
        waitid(P_PID, (id_t)vm->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0)
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

/* Whether one more line of any process may be logged. */
static bool may_log(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct log_limit limit = {.per_second = 1, .burst = 64};
    bool may;

    (void)pthread_mutex_lock(&lock);
    may = log_limit_allow(&limit, clock_monotonic_ns(), NULL);
    (void)pthread_mutex_unlock(&lock);
    return may;
}

/* Behind the process may be a guest that took it over: what it says is only passed on. */
static void log_what_it_said(const struct vm *vm)
{
    char text[LOG_BYTES];
    ssize_t n = vm->log_fd >= 0 ? read(vm->log_fd, text, sizeof(text)) : 0;
    struct text_span rest = {text, n > 0 ? (size_t)n : 0}, line;

    for (ssize_t i = 0; i < n; i++)
        if ((text[i] < 0x20 && text[i] != '\n') || text[i] > 0x7e)
            text[i] = '?';
    for (int i = 0; i < LOG_LINES_MAX && text_take_line(&rest, &line) && may_log(); i++)
        log_warn("vmm", "process=%d said=\"%.*s\"", vm->pid, (int)line.len, line.text);
}

static bool is_killed_by_another(const struct vm *vm)
{
    return WIFSIGNALED(vm->status) && WTERMSIG(vm->status) == SIGKILL && !vm->killed;
}

void vm_finish(struct vm *vm)
{
    vm_kill(vm);
    if (vm->pid > 0) {
        vm->status = process_reap(vm->pid);
        if (is_killed_by_another(vm))
            vm->memory = jail_look(vm->jail, vm->cell);
        jail_release_cell(vm->jail, vm->cell);
    }
    log_what_it_said(vm);
    vm->pid = -1;
    fd_close(&vm->log_fd);
    fd_close(&vm->weight_fd);
    fd_close(&vm->control_fd);
    fd_close(&vm->vsock_fd);
}

enum vm_death vm_death(const struct vm *vm)
{
    /* In the order of the deaths from VM_DEATH_SIGABRT on. */
    static const int signals[] = {SIGABRT, SIGBUS, SIGILL, SIGKILL, SIGSEGV, SIGSYS};

    if (vm->memory != JAIL_MEMORY_ENOUGH)
        return vm->memory == JAIL_MEMORY_OVER ? VM_DEATH_MEMORY_OVER : VM_DEATH_MEMORY_SHORT;
    if (WIFEXITED(vm->status))
        return WEXITSTATUS(vm->status) == 0   ? VM_DEATH_EXIT_0
               : WEXITSTATUS(vm->status) == 1 ? VM_DEATH_EXIT_1
                                              : VM_DEATH_EXIT_OTHER;
    if (WTERMSIG(vm->status) == SIGKILL && !is_killed_by_another(vm))
        return VM_DEATH_KILLED;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (signals[i] == WTERMSIG(vm->status))
            return VM_DEATH_SIGABRT + (enum vm_death)i;
    }
    return VM_DEATH_SIGNAL_OTHER;
}

const char *const vm_death_names[VM_DEATHS] = {
    "killed",  "exit_0",  "exit_1", "exit_other",   "sigabrt",     "sigbus",       "sigill",
    "sigkill", "sigsegv", "sigsys", "signal_other", "memory_over", "memory_short",
};

void vm_describe_end(const struct vm *vm, char *text, size_t size)
{
    if (WIFSIGNALED(vm->status))
        (void)snprintf(text, size, "signal %d", WTERMSIG(vm->status));
    else
        (void)snprintf(text, size, "exit %d", WEXITSTATUS(vm->status));
}

void vm_explain_end(const struct vm *vm, struct err *err)
{
    if (vm->memory == JAIL_MEMORY_OVER)
        err_prefix(err,
                   "the machine took more of the host's memory than the %" PRIu64
                   " MiB that it may have",
                   vm->memory_max >> 20);
    else if (vm->memory == JAIL_MEMORY_SHORT)
        err_prefix(err, "the host was short of memory and ended the machine");
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
    r = launch_run(&l, pipes[1], &pid);
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
