/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program finds in the jail, with its layers and without some: each denies something
 * that is open without it. What the layer limits does is tests/hostile/cases_limits.py's. Where
 * this process may not make a layer, which is said, the tests that need it are skipped.
 */
#include "api/daemon/machine/jail.h"

#include "base/fd.h"
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/jail_world.h"

#define NAMESPACES (1u << JAIL_NAMESPACES)
#define ROOT       (1u << JAIL_ROOT)
#define USERS      (1u << JAIL_USERS)
#define LANDLOCK   (1u << JAIL_LANDLOCK)
/* Of what a jail says that does not start. */
#define SAID_MAX 512

/* How many of its namespaces are this process's. */
static int count_shared(const struct probe *probe)
{
    static const char *const names[] = {"ns/cgroup", "ns/ipc",  "ns/mnt", "ns/net",
                                        "ns/pid",    "ns/user", "ns/uts"};
    int n = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[32];
        struct stat st;

        (void)snprintf(path, sizeof(path), "/proc/self/%s", names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_true(found(probe, names[i]) > 0);
        n += found(probe, names[i]) == (long)st.st_ino;
    }
    return n;
}

static struct probe look(uint32_t layers)
{
    struct jail *jail = open_jail(layers);
    struct probe probe;
    struct err err = {0};

    for (uint32_t i = 0; i < JAIL_LAYERS; i++) {
        if (!(layers & 1u << i) || !jail_missing(jail, i))
            continue;
        print_message("not here: %s (%s)\n", jail_layer_names[i], jail_missing(jail, i));
        jail_close(jail);
        skip();
    }
    if (start_probe(jail, &probe, &err) < 0)
        fail_msg("%s", err.message);
    end_probe(jail, &probe);
    jail_close(jail);
    return probe;
}

/* Layer by layer, what is so in any case. */
static void check_always(const struct probe *probe)
{
    assert_int_equal(found(probe, "environment"), 0);
    /* A Ctrl-C for the daemon is none for it. */
    assert_int_equal(found(probe, "leader"), 1);
    assert_int_equal(found(probe, "personality"), PER_LINUX);
    /* The three of every program, KVM's, /proc, and the one that was given. */
    assert_int_equal(found(probe, "descriptors"), 6);
    if (!outside.key)
        return;
    assert_int_equal(found(probe, "key"), EACCES);
    assert_int_equal(found(probe, "keep"), EACCES);
}

static void test_all(void **state)
{
    struct probe probe = look(NAMESPACES | ROOT | USERS);

    (void)state;
    check_always(&probe);
    assert_int_equal(count_shared(&probe), 0);
    assert_int_equal(found(&probe, "user"), 1);
    assert_int_equal(found(&probe, "group"), 1);
    assert_int_equal(found(&probe, "groups"), 0);
    assert_int_equal(found(&probe, "capabilities"), 0);
    assert_int_equal(found(&probe, "processes"), JAIL_THREADS - 1);
    assert_int_equal(found(&probe, "namespace"), ENOSPC);
    assert_int_equal(found(&probe, "parent"), 0);
    assert_int_equal(found(&probe, "entries"), 0);
    assert_int_equal(found(&probe, "flags"), ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
    assert_int_equal(found(&probe, "open"), ENOENT);
    assert_true(found(&probe, "make") != 0);
    assert_int_equal(found(&probe, "mount"), EPERM);
    assert_int_equal(found(&probe, "hostname"), EPERM);
    assert_int_equal(found(&probe, "abstract"), ECONNREFUSED);
    assert_int_equal(found(&probe, "loopback"), ENETUNREACH);
    assert_int_equal(found(&probe, "shared-memory"), ENOENT);
    /* Whose limits root alone may set. */
    assert_true(found(&probe, "kept") == 0 || geteuid() != 0);
    assert_int_equal(found(&probe, "signal"), ESRCH);
    assert_int_equal(found(&probe, "trace"), ESRCH);
    assert_int_equal(found(&probe, "end"), EPERM);
}

/* Without its own users a machine is the daemon's, and yet sees nothing of it. */
static void test_without_users(void **state)
{
    struct probe probe = look(NAMESPACES | ROOT);

    (void)state;
    check_always(&probe);
    assert_int_equal(found(&probe, "capabilities"), 0);
    assert_int_equal(count_shared(&probe), 0);
    assert_int_equal(found(&probe, "entries"), 0);
    assert_int_equal(found(&probe, "mode"), EROFS);
    assert_int_equal(found(&probe, "mount"), EPERM);
    assert_int_equal(found(&probe, "signal"), ESRCH);
    assert_int_equal(found(&probe, "abstract"), ECONNREFUSED);
}

/* With the files of the host it is another user's. */
static void test_without_root(void **state)
{
    struct probe probe = look(NAMESPACES | USERS);

    (void)state;
    check_always(&probe);
    assert_true(found(&probe, "entries") > 0);
    assert_int_equal(found(&probe, "open"), 0);
    assert_int_equal(found(&probe, "make"), EACCES);
    assert_int_equal(found(&probe, "signal"), ESRCH);
}

/* What the layers are for: without them the probe reaches all of it. */
static void test_without_any(void **state)
{
    struct probe probe = look(0);

    (void)state;
    check_always(&probe);
    assert_int_equal(count_shared(&probe), 7);
    assert_int_equal(found(&probe, "user"), geteuid());
    assert_int_equal(found(&probe, "processes"), 40);
    assert_int_equal(found(&probe, "open"), 0);
    assert_int_equal(found(&probe, "abstract"), 0);
    assert_int_equal(found(&probe, "loopback"), 0);
    assert_int_equal(found(&probe, "shared-memory"), 0);
    assert_in_range(found(&probe, "kept"), 3, 4);
    assert_int_equal(found(&probe, "signal"), 0);
}

/* Two machines at once are two users, and a cell is had again. */
static void test_cells(void **state)
{
    struct jail *jail = open_jail(JAIL_ALL);
    bool own_users = !jail_missing(jail, JAIL_USERS);
    struct probe a, b, c;
    struct err err = {0};

    (void)state;
    assert_int_equal(start_probe(jail, &a, &err), 0);
    assert_int_equal(start_probe(jail, &b, &err), 0);
    assert_int_equal(a.jailed.cell, 0);
    assert_int_equal(b.jailed.cell, 1);
    end_probe(jail, &a);
    assert_int_equal(start_probe(jail, &c, &err), 0);
    assert_int_equal(c.jailed.cell, 0);
    end_probe(jail, &b);
    end_probe(jail, &c);
    jail_close(jail);
    if (!own_users)
        skip();
    assert_int_equal(found(&a, "user"), 1);
    assert_int_equal(found(&b, "user"), 2);
    assert_int_equal(found(&c, "user"), 1);
}

/* Whether one of its own user, without capabilities, may look into it. */
static bool is_open_to_its_user(pid_t pid)
{
    pid_t child = fork();

    if (child == 0) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
        char path[32], target[8];

        (void)snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
        if (syscall(SYS_capset, &header, none) < 0)
            _exit(2);
        _exit(readlink(path, target, sizeof(target)) >= 0);
    }
    return WEXITSTATUS(process_reap(child)) != 0;
}

static int count_open(pid_t pid)
{
    char path[32];
    DIR *dir;
    int n = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    dir = opendir(path);
    if (!dir)
        return -1;
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n - 2;
}

/* What starts machines may do no more than that, having made what they are in. */
static void test_itself(void **state)
{
    struct jail *jail = open_jail(JAIL_ALL);
    const pid_t pid = find_jail(getpid());

    (void)state;
    assert_int_equal(status_of(pid, "CapPrm:", 16) & ~(1ull << CAP_SETUID | 1ull << CAP_SETGID),
                     0);
    assert_int_equal(status_of(pid, "NoNewPrivs:", 10), 1);
    assert_false(is_open_to_its_user(pid));
    jail_close(jail);
}

/* With a PID namespace, where this host allows one; else the test is skipped. */
static struct jail *open_jail_with_namespaces(void)
{
    struct jail *jail = open_jail(JAIL_ALL);

    if (jail_missing(jail, JAIL_NAMESPACES)) {
        jail_close(jail);
        skip();
    }
    return jail;
}

/* The first process of the PID namespace, which machines are beside, may do nothing. */
static void test_first(void **state)
{
    struct jail *jail = open_jail_with_namespaces();
    pid_t pid;

    (void)state;
    pid = find_jail(find_jail(getpid()));
    /* It closes its descriptors first, and gives up the rest in this order. */
    while (status_of(pid, "NoNewPrivs:", 10) != 1 || status_of(pid, "CapPrm:", 16) != 0)
        (void)sched_yield();
    assert_int_equal(count_open(pid), 1);
    assert_false(is_open_to_its_user(pid));
    jail_close(jail);
}

/* What a machine leaves behind neither meets the next one of its cell nor keeps it out. */
static void test_leftovers(void **state)
{
    struct jail *jail = open_jail(JAIL_ALL);
    bool are_known = !jail_missing(jail, JAIL_USERS) || !jail_missing(jail, JAIL_LIMITS);
    struct pollfd said = {.events = POLLIN};
    struct probe a, b;
    struct err err = {0};

    (void)state;
    assert_int_equal(start_piped(jail, "fork", &a, &said.fd, &err), 0);
    end_probe(jail, &a);
    assert_int_equal(poll(&said, 1, 0), 0);
    assert_int_equal(start_probe(jail, &b, &err), 0);
    assert_int_equal(b.jailed.cell, a.jailed.cell);
    if (are_known)
        assert_int_equal(poll(&said, 1, -1), 1);
    close(said.fd);
    end_probe(jail, &b);
    jail_close(jail);
    if (!are_known)
        skip();
}

/* The process that starts machines is stopped: it is ended all the same, and so are its
 * machines. */
static void test_stopped(void **state)
{
    struct jail *jail = open_jail(JAIL_ALL);
    char stop[64];

    (void)state;
    snprintf(stop, sizeof(stop), "pkill -STOP -P %d -x skillvm-jail", getpid());
    assert_int_equal(system(stop), 0);
    jail_close(jail);
}

/* The process that starts machines is killed: its machines end, and the next start has another
   one. */
static void test_restart(void **state)
{
    struct jail *jail = open_jail(JAIL_ALL);
    bool namespaces = !jail_missing(jail, JAIL_NAMESPACES);
    struct probe a, b;
    struct err err = {0};
    char parent[64];

    (void)state;
    assert_int_equal(start_probe(jail, &a, &err), 0);
    snprintf(parent, sizeof(parent), "pkill -KILL -P %d -x skillvm-jail", getpid());
    assert_int_equal(system(parent), 0);
    if (!namespaces)
        assert_int_equal(kill(a.jailed.pid, SIGKILL), 0);
    assert_int_equal(WTERMSIG(process_reap(a.jailed.pid)), SIGKILL);
    fd_close(&a.jailed.weight_fd);
    jail_release_cell(jail, a.jailed.cell);
    assert_int_equal(start_probe(jail, &b, &err), 0);
    end_probe(jail, &b);
    jail_close(jail);
}

/* Where there is neither layer by which they would end with it, they are the daemon's, and go
 * on. */
static void test_restart_without_layers(void **state)
{
    struct jail *jail = open_jail(0);
    struct probe a, b;
    struct err err = {0};
    char parent[64];

    (void)state;
    assert_int_equal(start_probe(jail, &a, &err), 0);
    snprintf(parent, sizeof(parent), "pkill -KILL -P %d -x skillvm-jail", getpid());
    assert_int_equal(system(parent), 0);
    assert_int_equal(start_probe(jail, &b, &err), 0);
    assert_int_equal(waitpid(a.jailed.pid, NULL, WNOHANG), 0);
    end_probe(jail, &a);
    end_probe(jail, &b);
    jail_close(jail);
}

/* The first process of the PID namespace is killed, and with it the namespace is over: the next
   start has another one. */
static void test_first_ends(void **state)
{
    struct jail *jail = open_jail_with_namespaces();
    struct pollfd first = {.events = POLLIN};
    struct probe probe;
    struct err err = {0};

    (void)state;
    first.fd = (int)syscall(SYS_pidfd_open, find_jail(find_jail(getpid())), 0);
    assert_true(first.fd >= 0);
    assert_int_equal(syscall(SYS_pidfd_send_signal, first.fd, SIGKILL, NULL, 0), 0);
    /* Its namespace takes nobody from then on. */
    assert_int_equal(poll(&first, 1, 60000), 1);
    close(first.fd);
    if (start_probe(jail, &probe, &err) < 0)
        fail_msg("%s", err.message);
    end_probe(jail, &probe);
    jail_close(jail);
}

static bool loses_descriptors;

ssize_t __real_fd_receive(int sock, void *data, size_t len, int *ret_fds, size_t max_fds,
                          size_t *ret_n_fds);
ssize_t __wrap_fd_receive(int sock, void *data, size_t len, int *ret_fds, size_t max_fds,
                          size_t *ret_n_fds);
ssize_t __wrap_fd_receive(int sock, void *data, size_t len, int *ret_fds, size_t max_fds,
                          size_t *ret_n_fds)
{
    ssize_t n = __real_fd_receive(sock, data, len, ret_fds, max_fds, ret_n_fds);

    if (!loses_descriptors || max_fds == 0)
        return n;
    fd_close(ret_fds);
    return -EMSGSIZE;
}

/* Where the daemon may open no more it has its machines all the same. */
static void test_lost_descriptor(void **state)
{
    struct jail *jail = open_jail(JAIL_ALL);
    pid_t pid = find_jail(getpid());
    struct probe a, b;
    struct err err = {0};

    (void)state;
    assert_int_equal(start_probe(jail, &a, &err), 0);
    loses_descriptors = true;
    assert_int_equal(start_probe(jail, &b, &err), 0);
    loses_descriptors = false;
    assert_int_equal(b.jailed.weight_fd, -1);
    assert_int_equal(find_jail(getpid()), pid);
    end_probe(jail, &b);
    end_probe(jail, &a);
    jail_close(jail);
}

/* Looking what there is leaves nothing behind, either. */
static void test_probe(void **state)
{
    (void)state;
    assert_int_equal(system(JAIL
                            " probe | grep -cE '^(namespaces|root|users|limits|landlock)=' | "
                            "grep -qx 5"),
                     0);
}

/* A program that cannot be executed is named, and leaves nothing to be reaped. */
static void test_no_program(void **state)
{
    const struct jail_config config = {.program = JAIL, .machine = "/", .layers = JAIL_ALL};
    struct jail *jail = NULL;
    struct probe probe;
    struct err err = {0};
    int status;

    (void)state;
    assert_int_equal(jail_open(&config, &jail, &err), 0);
    assert_int_equal(start_probe(jail, &probe, &err), -EACCES);
    assert_string_equal(err.message, "cannot start a machine: Permission denied");
    jail_close(jail);
    while (waitpid(-1, &status, WNOHANG) > 0)
        assert_int_not_equal(WEXITSTATUS(status), 127);
}

static void test_strict(void **state)
{
    struct jail_config config = {
        .program = JAIL, .machine = PROBE, .layers = JAIL_ALL, .strict = true};
    struct jail *jail = open_jail(JAIL_ALL);
    struct err err = {0};
    bool whole = true;
    int r;

    (void)state;
    for (uint32_t i = 0; i < JAIL_LAYERS; i++)
        whole &= !jail_missing(jail, i);
    jail_close(jail);
    jail = NULL;
    r = jail_open(&config, &jail, &err);
    assert_int_equal(r, whole ? 0 : -EPERM);
    assert_true(whole || strstr(err.message, "isolation is strict, and its layer '"));
    jail_close(jail);
}

/* Of this process and all that it starts, for good. */
static void answer_with(int call, uint32_t error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* What a jail says that is to have a Landlock, where the kernel answers so. In a process of its
 * own; the reason comes by memory that is shared. */
static void say_without_landlock(uint32_t error, bool strict, char ret[SAID_MAX])
{
    char *said =
        mmap(NULL, SAID_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;

    assert_true(said != MAP_FAILED);
    child = fork();
    if (child == 0) {
        const struct jail_config config = {
            .program = JAIL, .machine = PROBE, .layers = LANDLOCK, .strict = strict};
        struct jail *jail = NULL;
        struct err err = {0};

        answer_with(SYS_landlock_create_ruleset, error);
        if (jail_open(&config, &jail, &err) < 0)
            snprintf(said, SAID_MAX, "%s", err.message);
        else if (jail_missing(jail, JAIL_LANDLOCK))
            snprintf(said, SAID_MAX, "%s", jail_missing(jail, JAIL_LANDLOCK));
        jail_close(jail);
        _exit(0);
    }
    assert_int_equal(process_reap(child), 0);
    memcpy(ret, said, SAID_MAX);
    assert_int_equal(munmap(said, SAID_MAX), 0);
}

/* A kernel without a Landlock is not passed over. */
static void test_without_landlock(void **state)
{
    static const char off[] =
        "the kernel has it off: its command line's lsm= is without landlock";
    char said[SAID_MAX];

    (void)state;
    say_without_landlock(EOPNOTSUPP, false, said);
    assert_string_equal(said, off);
    say_without_landlock(EPERM, false, said);
    assert_string_equal(said, "landlock_create_ruleset: Operation not permitted");
    say_without_landlock(ENOSYS, true, said);
    assert_string_equal(said, "isolation is strict, and its layer 'landlock' is missing: the "
                              "kernel is built without it (5.13 has it first), or a filter "
                              "forbids it. Allow it, or set isolation: best-effort");
}

/* Where the kernel has it, it is no layer that is missing. */
static void test_landlock(void **state)
{
    struct jail *jail = open_jail(LANDLOCK);
    const char *why = jail_missing(jail, JAIL_LANDLOCK);
    const bool has = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;

    (void)state;
    assert_int_equal(why == NULL, has);
    jail_close(jail);
}

/* As a service that systemd forbids namespaces, and most containers: without layers, and yet.
   The last test: this cannot be undone. */
static void test_forbidden(void **state)
{
    const struct jail_config strict = {
        .program = JAIL, .machine = PROBE, .layers = JAIL_ALL, .strict = true};
    struct jail *jail;
    struct probe probe;
    struct err err = {0};

    (void)state;
    answer_with(SYS_clone3, ENOSYS);
    answer_with(SYS_unshare, EPERM);
    jail = open_jail(JAIL_ALL);
    assert_string_equal(jail_missing(jail, JAIL_NAMESPACES),
                        "a user namespace: Operation not permitted");
    if (start_probe(jail, &probe, &err) < 0)
        fail_msg("%s", err.message);
    check_always(&probe);
    end_probe(jail, &probe);
    jail_close(jail);
    jail = NULL;
    assert_int_equal(jail_open(&strict, &jail, &err), -EPERM);
    assert_string_equal(err.message, "isolation is strict, and its layer 'namespaces' is "
                                     "missing: a user namespace: Operation not permitted. "
                                     "Allow it, or set isolation: best-effort");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_without_users),
        cmocka_unit_test(test_without_root),
        cmocka_unit_test(test_without_any),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_restart_without_layers),
        cmocka_unit_test(test_first_ends),
        cmocka_unit_test(test_lost_descriptor),
        cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_itself),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_landlock),
        cmocka_unit_test(test_without_landlock),
        cmocka_unit_test(test_forbidden),
    };

    return cmocka_run_group_tests(tests, jail_world_begin, jail_world_end);
}
