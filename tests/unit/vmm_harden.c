/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's process that a guest has taken over, in children of this one: each tries one
 * thing with everything given up, which must end it, and then with one layer after the other
 * left out, which shows what else is in its way.
 */
#include "vmm/harden.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/harden_attempts.h"

#define NOBODY 65534u

static int score_fd; /* of this process, its oom_score_adj */

/* As a user without rights who has all in a user namespace: so that each can be lost. */
static void become_user(void)
{
    char map[64];
    const uid_t uid = geteuid() == 0 ? NOBODY : geteuid();
    _cleanup_fd_ int fd = -1;

    score_fd = open("/proc/self/oom_score_adj", O_RDONLY);
    if (setresuid(uid, uid, uid) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
        unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS) < 0)
        _exit(200);
    (void)snprintf(map, sizeof(map), "0 %u 1", uid);
    fd = open("/proc/self/uid_map", O_WRONLY);
    if (fd < 0 || write(fd, map, strlen(map)) < 0)
        _exit(201);
    world.bystander = fork();
    while (world.bystander == 0)
        (void)pause();
}

static void open_descriptors(enum harden_scope scope)
{
    static const enum harden_fd others[] = {HARDEN_FD_KVM,     HARDEN_FD_VM,
                                            HARDEN_FD_VCPU,    HARDEN_FD_IMAGE,
                                            HARDEN_FD_PAGEMAP, HARDEN_FD_STATS};
    int ends[2];

    world.plan = (struct harden_plan){.scope = scope};
    world.plan.fds[HARDEN_FD_LOG] = STDERR_FILENO;
    world.plan.fds[HARDEN_FD_CONSOLE] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        _exit(202);
    world.plan.fds[HARDEN_FD_CONTROL] = ends[0];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        _exit(203);
    world.plan.fds[HARDEN_FD_STREAM] = ends[0];
    world.plan.fds[HARDEN_FD_WAKE] = eventfd(0, EFD_NONBLOCK);
    world.file_fd = memfd_create("file", 0);
    world.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(world.listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)) <
            0 ||
        listen(world.listener, 1) < 0)
        _exit(206);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        world.plan.fds[others[i]] = eventfd(0, EFD_NONBLOCK);
}

/* The thread of the vCPU, which tries what it is given. */
static struct {
    unsigned layers;
    int (*try)(void); /* NULL: the other thread tries it */
    sem_t go, end;
    int result;
} vcpu;

static void *vcpu_main(void *arg)
{
    struct err err = {0};

    (void)arg;
    (void)sem_wait(&vcpu.go);
    if ((vcpu.layers & CALLS) && harden_thread(&world.plan, HARDEN_VCPU, &err) < 0)
        vcpu.result = -EPROTO;
    else if (vcpu.try)
        vcpu.result = vcpu.try();
    (void)sem_post(&vcpu.end);
    /* It has no right to end. */
    (void)sem_wait(&vcpu.go);
    return NULL;
}

/* In the order of vmm/main.c. */
static int give_up(unsigned layers)
{
    struct err err = {0};
    pthread_t thread;
    int r = harden_process(open("/proc", O_PATH | O_CLOEXEC), world.plan.fds[HARDEN_FD_STATS],
                           &err);

    if (r == 0 && (layers & CONFINED) == CONFINED)
        r = harden_confine(&err);
    else if (r == 0 && (layers & PRIVILEGES))
        r = harden_privileges(&err);
    if (r == 0 && (layers & CONFINED) == CAPABILITIES)
        r = harden_capabilities(&err);
    if (r == 0 && (layers & CONFINED) == (FILES | PRIVILEGES))
        r = harden_landlock(&err);
    if (r == 0)
        r = -pthread_create(&thread, NULL, vcpu_main, NULL);
    if (r == 0 && (layers & LIMITS))
        r = harden_limits(&world.plan, &err);
    if (r == 0 && (layers & CALLS))
        r = harden_thread(&world.plan, HARDEN_MAIN, &err);
    return r;
}

/* How a child with these layers ends: 0, -errno of what it tried, or the signal. */
static int attempt_in(enum harden_scope scope, int (*what)(void), enum harden_thread thread,
                      unsigned layers)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        /* A thread that is ended alone is waited for. */
        (void)alarm(60);
        (void)setpgid(0, 0);
        become_user();
        open_descriptors(scope);
        if (harden_find_free(&world.plan, &(struct err){0}) < 0)
            _exit(205);
        vcpu.layers = layers;
        vcpu.try = thread == HARDEN_VCPU ? what : NULL;
        (void)sem_init(&vcpu.go, 0, 0);
        (void)sem_init(&vcpu.end, 0, 0);
        if (give_up(layers) < 0)
            _exit(204);
        (void)sem_post(&vcpu.go);
        (void)sem_wait(&vcpu.end);
        _exit(-(thread == HARDEN_VCPU ? vcpu.result : what()));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    /* Its bystander is this process's own now. */
    (void)kill(-pid, SIGKILL);
    while (waitpid(-pid, NULL, 0) > 0)
        ;
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    if (WEXITSTATUS(status) >= 200)
        fail_msg("the child could not be set up: %d", WEXITSTATUS(status));
    return -WEXITSTATUS(status);
}

static int attempt(int (*try)(void), enum harden_thread thread, unsigned layers)
{
    return attempt_in(HARDEN_ONCE, try, thread, layers);
}

/* Whether this host's kernel has them at all: without, whoever tries is ended in any case. */
static bool has_i386(void)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        _exit(try_i386());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status);
}

/* The layers that are in the way of an attempt on this host. */
static unsigned layers_by(size_t i)
{
    const int version = harden_landlock_version();
    unsigned by = attempts[i].by & ALL;

    if (((attempts[i].by & FILES_4) && version >= 4) ||
        ((attempts[i].by & FILES_6) && version >= 6))
        by |= FILES;
    return by;
}

static bool can_be_tried(size_t i)
{
    if (attempts[i].try != try_i386 || has_i386())
        return true;
    print_message("not here: %s\n", attempts[i].name);
    return false;
}

static void check_calls(enum harden_scope scope)
{
    for (size_t i = 0; i < n_attempts; i++) {
        if (!can_be_tried(i))
            continue;
        for (enum harden_thread t = HARDEN_MAIN; t < HARDEN_THREADS; t++) {
            bool may = (int)t == attempts[i].allowed &&
                       (scope == HARDEN_REUSABLE || !attempts[i].to_reset);
            int r = attempt_in(scope, attempts[i].try, t, ALL);

            if (r != (may ? 0 : SIGSYS))
                fail_msg("scope %d, thread %d that %s: %d", scope, t, attempts[i].name, r);
        }
    }
}

static void test_calls(void **state)
{
    (void)state;
    check_calls(HARDEN_ONCE);
    check_calls(HARDEN_REUSABLE);
}

static void test_each_layer_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_attempts; i++) {
        int r;

        if (!can_be_tried(i))
            continue;
        r = attempt(attempts[i].try, HARDEN_VCPU, ALL & ~CALLS);
        if ((r < 0) != (layers_by(i) != 0))
            fail_msg("without a filter one that %s: %d", attempts[i].name, r);
        r = attempt(attempts[i].try, HARDEN_VCPU, 0);
        if (r != 0)
            fail_msg("nobody is in the way of one that %s: %d", attempts[i].name, r);
        for (unsigned layer = PRIVILEGES; layer < CALLS; layer *= 2) {
            /* Landlock wants one of two others. */
            r = attempt(attempts[i].try, HARDEN_VCPU,
                        layer == FILES ? FILES | PRIVILEGES : layer);
            if ((r < 0) != ((layers_by(i) & layer) != 0))
                fail_msg("layer %u and one that %s: %d", layer, attempts[i].name, r);
        }
    }
}

/* What a machine does all the time, after all was given up. */
static int work(void)
{
    uint64_t count = 1;
    char byte;

    if (write(world.plan.fds[HARDEN_FD_WAKE], &count, sizeof(count)) < 0 ||
        read(world.plan.fds[HARDEN_FD_WAKE], &count, sizeof(count)) < 0 ||
        send(world.plan.fds[HARDEN_FD_CONTROL], "", 1, 0) < 0)
        return -errno;
    if (recvmsg(world.plan.fds[HARDEN_FD_STREAM],
                &(struct msghdr){.msg_iov = &(struct iovec){&byte, 1}, .msg_iovlen = 1},
                MSG_DONTWAIT) >= 0 ||
        errno != EAGAIN)
        return -errno;
    return shutdown(world.plan.fds[HARDEN_FD_STREAM], SHUT_WR) < 0 ? -errno : 0;
}

/* What both threads do for the guest: there is nothing to be read here, and nobody is ended. */
static int read_disks(void)
{
    static const enum harden_fd disks[] = {HARDEN_FD_IMAGE, HARDEN_FD_SENT_1, HARDEN_FD_SENT_2};
    char byte;

    for (size_t i = 0; i < sizeof(disks) / sizeof(disks[0]); i++)
        if (preadv(world.plan.fds[disks[i]], &(struct iovec){&byte, 1}, 1, 0) >= 0)
            return -EPROTO;
    return 0;
}

static void test_work(void **state)
{
    (void)state;
    assert_int_equal(attempt(work, HARDEN_MAIN, ALL), 0);
    assert_int_equal(attempt(read_disks, HARDEN_MAIN, ALL), 0);
    assert_int_equal(attempt(read_disks, HARDEN_VCPU, ALL), 0);
    assert_int_equal(attempt_in(HARDEN_REUSABLE, read_disks, HARDEN_VCPU, ALL), 0);
}

/* A descriptor that nobody told of. */
static int forgotten = -1;

/* What can be seen from inside: how many of these are not as they should be. */
static int look(void)
{
    struct rlimit core;
    char score[8];
    int signal = 0, wrong = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;

    wrong += prctl(PR_GET_DUMPABLE) != 0;
    wrong += prctl(PR_GET_PDEATHSIG, &signal) < 0 || signal != SIGKILL;
    wrong += getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max != 0;
    wrong += fcntl(forgotten, F_GETFD) >= 0;
    wrong += lseek(score_fd, 0, SEEK_SET) < 0 || read(score_fd, score, sizeof(score)) != 5 ||
             memcmp(score, "1000\n", 5) != 0;
    return -wrong;
}

static void test_looks(void **state)
{
    (void)state;
    forgotten = fcntl(STDERR_FILENO, F_DUPFD, 900);
    assert_true(forgotten >= 900);
    assert_int_equal(attempt(look, HARDEN_MAIN, PRIVILEGES), 0);
    assert_int_equal(attempt(look, HARDEN_MAIN, 0), -1);
    close(forgotten);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_each_layer_alone),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_looks),
    };

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
