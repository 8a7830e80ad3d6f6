/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "vmm/jail/room.h"

/* Above the numbers of a machine, at which this process has /dev/null: so a descriptor that
   comes is never where another one goes. */
#define OWN_FD_MIN (JAIL_FD_FIRST + (int)JAIL_FDS_MAX)

static int move(int fd, struct err *err)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);

    (void)close(fd);
    return copy < 0 ? err_set_errno(err, errno, "moving a descriptor") : copy;
}

static int open_own(const char *path, int flags, struct err *err)
{
    int fd = open(path, flags | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, errno, "%s", path) : move(fd, err);
}

/* A machine without /dev/kvm finds this in its place, and says so. */
static int fill(struct err *err)
{
    _cleanup_fd_ int fd = open_own("/dev/null", O_RDWR, err);

    for (int i = 0; fd >= 0 && i < OWN_FD_MIN; i++)
        if (i != STDERR_FILENO && dup3(fd, i, i <= JAIL_FD_KVM ? 0 : O_CLOEXEC) < 0)
            return err_set_errno(err, errno, "taking descriptor %d", i);
    return fd < 0 ? fd : 0;
}

int start_init(struct start *start, int program_fd, int socket_fd, int *ret_socket,
               struct err *err)
{
    const int last = program_fd > socket_fd ? program_fd : socket_fd;
    struct err no_kvm = {0};

    *start = (struct start){.kvm_fd = -1};
    /* Whatever else the daemon was started with is none of a machine's. */
    (void)close_range((unsigned)last + 1, ~0u, 0);
    *ret_socket = move(socket_fd, err);
    if (*ret_socket < 0)
        return *ret_socket;
    start->program_fd = move(program_fd, err);
    if (start->program_fd < 0)
        return start->program_fd;
    start->dev_fd = open_own("/dev", O_PATH | O_DIRECTORY, err);
    if (start->dev_fd < 0)
        return start->dev_fd;
    start->proc_fd = open_own("/proc", O_PATH | O_DIRECTORY, err);
    if (start->proc_fd < 0)
        return start->proc_fd;
    /* While this process has the group by which it may: in the namespace there is none. */
    start->kvm_fd = open_own("/dev/kvm", O_RDWR, &no_kvm);
    start->failure = mmap(NULL, sizeof(*start->failure), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (start->failure == MAP_FAILED)
        return err_set_errno(err, errno, "memory that is shared with children");
    return fill(err);
}

/* The descriptors of a machine, under the numbers that it expects. */
static bool pass_descriptors(const struct start *start, const int *fds, size_t n_fds)
{
    bool passed = dup2(fds[0], STDERR_FILENO) >= 0 && dup2(start->proc_fd, JAIL_FD_PROC) >= 0 &&
                  (start->kvm_fd < 0 || dup2(start->kvm_fd, JAIL_FD_KVM) >= 0);

    for (size_t i = 1; passed && i < n_fds; i++)
        passed = dup2(fds[i], JAIL_FD_FIRST + (int)i - 1) >= 0;
    return passed;
}

/*
 * What a former machine of this user has started is still there, if it could start anything,
 * and must not meet this one. As the effective user only: this process may end it, and not it
 * this one, which everybody waits for. Of the others in the PID namespace the first alone is
 * the jail's, and kill(2) spares that. Never in a namespace in which the parent is seen.
 */
static bool end_leftovers(uint32_t user)
{
    if (getppid() != 0 || syscall(SYS_setresuid, -1, user, -1) < 0)
        return false;
    (void)kill(-1, SIGKILL);
    return true;
}

/* Only of a user of its own can the kernel count the threads. */
static bool become_user(uint32_t user)
{
    const struct rlimit threads = {JAIL_THREADS, JAIL_THREADS};

    return end_leftovers(user) && syscall(SYS_setresgid, user, user, user) == 0 &&
           syscall(SYS_setresuid, user, user, user) == 0 &&
           setrlimit(RLIMIT_NPROC, &threads) == 0;
}

/* A machine to be. */
struct child {
    uint32_t cell;
    int join_fd; /* of the cgroup that it is not in yet, or -1 */
    char *argv[JAIL_ARGS_MAX + 1];
    const int *fds;
    size_t n_fds;
};

/* What the child is, a copy of this process until it executes the program. */
static _Noreturn void be_machine(const struct start *start, const struct child *child)
{
    char *const no_env[] = {NULL};

    (void)signal(SIGPIPE, SIG_DFL);
    /* A group of its own: a Ctrl-C at the daemon's terminal is the daemon's to handle. */
    if (setpgid(0, 0) == 0 && (child->join_fd < 0 || limits_join(child->join_fd) == 0) &&
        pass_descriptors(start, child->fds, child->n_fds) &&
        (!start->own_users || become_user(room_user(child->cell))))
        (void)syscall(SYS_execveat, start->program_fd, "", child->argv, no_env, AT_EMPTY_PATH);
    *start->failure = errno;
    _exit(127);
}

/* The texts of a request, one after the other. False where it is not well made. */
static bool split(struct jail_request *request, char *argv[JAIL_ARGS_MAX + 1])
{
    char *text = request->text, *end = text + sizeof(request->text);
    size_t n = 0;

    end[-1] = '\0';
    while (text < end && *text && n < JAIL_ARGS_MAX) {
        argv[n++] = text;
        text += strlen(text) + 1;
    }
    argv[n] = NULL;
    return n > 0 && (text == end || !*text);
}

/*
 * As the child of this process's parent, which waits for it and is told when it ends. The child
 * has a copy of this small process's memory, and this one goes on when it has executed.
 */
static pid_t fork_sibling(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | CLONE_VFORK, 0, 0, 0, 0);
}

/* The same into a cgroup, which costs next to nothing; to move there later takes milliseconds.
 */
static pid_t fork_into(int cgroup_fd)
{
    const struct clone_args args = {.flags = CLONE_PARENT | CLONE_VFORK | CLONE_INTO_CGROUP,
                                    .cgroup = (uint64_t)cgroup_fd};

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static struct jail_reply fork_machine(const struct start *start, struct child *child,
                                      int cgroup_fd)
{
    pid_t pid = cgroup_fd < 0 ? -1 : fork_into(cgroup_fd);

    /* A filter that forbids namespaces cannot see the flags of clone3, and forbids all of it.
     */
    if (cgroup_fd < 0 || (pid < 0 && errno == ENOSYS)) {
        child->join_fd = cgroup_fd;
        pid = fork_sibling();
    }
    if (pid == 0)
        be_machine(start, child);
    return pid < 0 ? (struct jail_reply){.error = errno}
                   : (struct jail_reply){.pid = pid, .error = *start->failure};
}

/* The cgroup of a machine, *ret -1 for this process's. 0 or -errno. */
static int open_cgroup(struct start *start, const struct jail_request *request, int *ret)
{
    *ret = -1;
    return start->limits.machines_fd < 0
               ? 0
               : limits_open_cell(&start->limits, request->cell, request->memory_max, ret);
}

struct jail_reply start_machine(struct start *start, struct jail_request *request,
                                const int *fds, size_t n_fds, int *ret_weight)
{
    struct child child = {.cell = request->cell, .join_fd = -1, .fds = fds, .n_fds = n_fds};
    _cleanup_fd_ int cgroup_fd = -1;
    int r;

    if (n_fds == 0 || request->cell >= JAIL_CELLS || !split(request, child.argv))
        return (struct jail_reply){.error = EPROTO};
    if (start->kvm_fd < 0)
        start->kvm_fd = openat(start->dev_fd, "kvm", O_RDWR | O_CLOEXEC);
    r = open_cgroup(start, request, &cgroup_fd);
    if (r == 0 && cgroup_fd >= 0)
        r = *ret_weight = limits_open_weight(cgroup_fd);
    if (r < 0)
        return (struct jail_reply){.error = -r};
    *start->failure = 0;
    return fork_machine(start, &child, cgroup_fd);
}
