/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/room.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "vmm/harden.h"
#include "vmm/jail/users.h"

#define NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* Never 0: a program that root executes has all capabilities of its namespace. */
#define FIRST_INSIDE 1u

uint32_t room_user(uint32_t cell)
{
    return FIRST_INSIDE + cell;
}

static void miss(struct jail_hello *hello, enum jail_layer layer, const char *what, int error)
{
    (void)snprintf(hello->missing[layer], JAIL_WHY_MAX, "%s%s%s", what, error ? ": " : "",
                   error ? strerror(error) : "");
}

/* Whether a layer is there: failed is NULL, or what is missing, with errno. */
static void note(struct jail_hello *hello, enum jail_layer layer, const char *failed)
{
    if (failed) {
        miss(hello, layer, failed, errno);
        hello->layers &= ~(1u << layer);
    } else {
        hello->layers |= 1u << layer;
    }
}

/* Who maps users stays outside, and does it when told. */
struct mapper {
    pid_t pid; /* -1: there is none, with the reason */
    int go;
    const char *why;
    int error;
};

/* What becomes of a mapper: it ends with an errno. */
static _Noreturn void be_mapper(const struct users *users, pid_t process, int go)
{
    char byte;

    if (read(go, &byte, 1) != 1)
        _exit(EINTR);
    _exit(-users_map(users, process, FIRST_INSIDE));
}

static struct mapper start_mapper(bool wanted)
{
    struct mapper m = {.pid = -1, .go = -1, .why = "not wanted"};
    const pid_t self = getpid();
    struct users users;
    int go[2];

    if (!wanted)
        return m;
    m.why = users_find(&users);
    if (m.why)
        return m;
    m.why = users.helpers ? "newuidmap and newgidmap (package uidmap)"
                          : "mapping user ids of the host";
    if (pipe2(go, O_CLOEXEC) < 0) {
        m.error = errno;
        return m;
    }
    m.pid = fork();
    m.error = errno;
    if (m.pid == 0) {
        (void)close(go[1]);
        be_mapper(&users, self, go[0]);
    }
    (void)close(go[0]);
    m.go = go[1];
    return m;
}

/* Whether it did. */
static bool end_mapper(struct mapper *m)
{
    bool told = m->pid > 0 && write(m->go, "", 1) == 1;
    int status;

    fd_close(&m->go);
    if (m->pid <= 0)
        return false;
    status = process_reap(m->pid);
    m->error = WIFEXITED(status) ? WEXITSTATUS(status) : EPIPE;
    return told && m->error == 0;
}

/* A user namespace with users of its own, or with this process's only. */
static void map_users(struct jail_hello *hello, struct mapper *mapper, uint32_t user,
                      uint32_t group)
{
    if (end_mapper(mapper)) {
        if (setgroups(0, NULL) == 0) {
            hello->layers |= 1u << JAIL_USERS;
            return;
        }
        mapper->error = errno;
    }
    miss(hello, JAIL_USERS, mapper->why, mapper->error);
    (void)users_map_self(user, group, FIRST_INSIDE);
}

/* Of this process's namespaces. Where /proc cannot be written the filter of a machine is what
   forbids what is limited. */
static void limit_to(const char *path, const char *value)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, value, strlen(value)) < 0)
        return;
}

/* Nobody in the namespace makes another one, with all rights in it. */
static void allow_no_more(void)
{
    limit_to("/proc/sys/user/max_user_namespaces", "0");
}

/* All machines are in one IPC namespace, and what is made there outlives who made it. */
static void allow_nothing_kept(void)
{
    static const struct {
        const char *path, *value;
    } limits[] = {
        {"/proc/sys/kernel/shmmni", "0"},
        {"/proc/sys/kernel/msgmni", "0"},
        {"/proc/sys/kernel/sem", "0 0 0 0"},
        {"/proc/sys/fs/mqueue/queues_max", "0"},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        limit_to(limits[i].path, limits[i].value);
}

/* Where root may not have a user namespace it can do without. */
static int make_namespaces(struct jail_hello *hello, bool own_users)
{
    const uint32_t user = geteuid(), group = getegid();
    struct mapper mapper = start_mapper(own_users);
    int error;

    if (unshare(CLONE_NEWUSER | NAMESPACES) == 0) {
        map_users(hello, &mapper, user, group);
        allow_no_more();
        hello->layers |= 1u << JAIL_NAMESPACES;
        return 0;
    }
    error = errno;
    fd_close(&mapper.go);
    if (mapper.pid > 0)
        (void)process_reap(mapper.pid);
    miss(hello, JAIL_USERS, "a user namespace", error);
    miss(hello, JAIL_NAMESPACES, "a user namespace", error);
    return unshare(NAMESPACES) == 0 ? 0 : -error;
}

/*
 * The new root lies over /proc for the moment in which the old one is taken away. The new mount
 * API would need no folder to be there, but Linux 5.2.
 */
static const char *make_root(void)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return "making mounts private";
    if (mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "size=4k,nr_inodes=2,mode=555") < 0)
        return "mounting an empty folder";
    if (chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return "making that the root";
    if (umount2(".", MNT_DETACH) < 0)
        return "leaving the old root";
    if (mount(NULL, "/", NULL,
              MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return "making the root read-only";
    return chdir("/") < 0 ? "entering the root" : NULL;
}

/*
 * The first process of the PID namespace, whose end is the end of all in it. It has nothing but
 * one end of a pipe, and ends when nobody has the other.
 */
static _Noreturn void be_first(int pipe_fd)
{
    struct err ignored = {0};
    char byte;

    (void)prctl(PR_SET_DUMPABLE, 0);
    /* Who is left without a parent becomes its child. */
    (void)signal(SIGCHLD, SIG_IGN);
    if (dup2(pipe_fd, 0) < 0)
        _exit(1);
    (void)close_range(1, ~0u, 0);
    (void)harden_confine(&ignored);
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        continue;
    _exit(0);
}

/* Leaves the other end of the pipe open. Its id or -errno. */
static pid_t start_first(void)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        be_first(ends[0]);
    }
    (void)close(ends[0]);
    if (pid > 0)
        return pid;
    (void)close(ends[1]);
    return -errno;
}

bool room_is_over(pid_t first)
{
    return first > 0 && waitpid(first, NULL, WNOHANG) != 0;
}

/* Whether there are namespaces, and no first process in them yet. */
static bool make_inside(uint32_t wanted, struct jail_hello *hello)
{
    if (!(wanted & 1u << JAIL_NAMESPACES) ||
        make_namespaces(hello, wanted & 1u << JAIL_USERS) < 0)
        return false;
    allow_nothing_kept();
    if (wanted & 1u << JAIL_ROOT)
        note(hello, JAIL_ROOT, make_root());
    return true;
}

/* Whether machines will find a Landlock: in the kernel and under the filter that this process
 * has. NULL; or what is missing, with errno or with 0 in it. */
static const char *find_landlock(void)
{
    int version = harden_landlock_version(), error = version < 0 ? -version : errno;

    if (version > 0)
        return NULL;
    errno = error == EOPNOTSUPP || error == ENOSYS ? 0 : error;
    return error == EOPNOTSUPP
               ? "the kernel has it off: its command line's lsm= is without landlock"
           : error == ENOSYS
               ? "the kernel is built without it (5.13 has it first), or a filter forbids it"
               : "landlock_create_ruleset";
}

static struct jail_hello hello_init(uint32_t wanted)
{
    struct jail_hello hello = {.version = JAIL_VERSION};

    for (int i = 0; i < JAIL_LAYERS; i++)
        miss(&hello, i, wanted & 1u << i ? "there are no namespaces" : "not wanted", 0);
    return hello;
}

int room_make(uint32_t wanted, struct limits *limits, pid_t *ret_first, struct jail_hello *ret,
              struct err *err)
{
    bool is_inside;

    *ret = hello_init(wanted);
    *limits = (struct limits){.base_fd = -1, .machines_fd = -1};
    if (wanted & 1u << JAIL_LANDLOCK)
        note(ret, JAIL_LANDLOCK, find_landlock());
    if (wanted & 1u << JAIL_LIMITS) {
        const char *failed = limits_find(limits);

        note(ret, JAIL_LIMITS, failed ? failed : limits_enter(limits));
    }
    is_inside = make_inside(wanted, ret);
    if (ret->layers & 1u << JAIL_LIMITS)
        note(ret, JAIL_LIMITS, limits_begin(limits));
    *ret_first = is_inside ? start_first() : 0;
    return *ret_first < 0
               ? err_set_errno(err, -*ret_first, "the first process of a PID namespace")
               : 0;
}

void room_try(struct jail_hello *ret)
{
    struct limits limits;

    *ret = hello_init(JAIL_ALL);
    note(ret, JAIL_LANDLOCK, find_landlock());
    note(ret, JAIL_LIMITS, limits_find(&limits));
    fd_close(&limits.base_fd);
    (void)make_inside(JAIL_ALL, ret);
}
