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
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#define NOBODY 65534u
/* As of <linux/kvm.h>, which tests do without. */
#define REQUEST_RUN         0xae80ul
#define REQUEST_CREATE_VCPU 0xae41ul
#define REQUEST_SET_REGS    0x4090ae82ul
#define REQUEST_SET_MSRS    0x4008ae89ul

/* What harden.h has, as bits. */
enum layer {
    PRIVILEGES = 1,
    CAPABILITIES = 2,
    FILES = 4,
    LIMITS = 8,
    CALLS = 16,
    CONFINED = PRIVILEGES | CAPABILITIES | FILES,
    ALL = CONFINED | LIMITS | CALLS,
};

/* Of a machine, as far as it takes no KVM. */
static struct harden_plan plan;
static pid_t bystander; /* a process of the same user's, outside */
static int file_fd;     /* open to be written */
static int score_fd;    /* of this process, its oom_score_adj */

/* What is tried: 0 when it could be done, -errno. */
static int done(long r)
{
    return r < 0 ? -errno : 0;
}

/* For what the kernel refuses by itself: that it was asked is what counts. */
static int asked(long r)
{
    (void)r;
    return 0;
}

static int try_open(void)
{
    return done(open("/etc/passwd", O_RDONLY));
}

static int try_make(void)
{
    return done(open("/tmp", O_TMPFILE | O_RDWR, 0600));
}

static int try_execute(void)
{
    return done(execl("/bin/true", "true", NULL));
}

static int try_trace(void)
{
    return done(ptrace(PTRACE_ATTACH, bystander, NULL, NULL));
}

static int try_mount(void)
{
    return done(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int try_root(void)
{
    return done(chroot("/"));
}

static int try_host_name(void)
{
    return done(sethostname("taken", 5));
}

static int try_namespace(void)
{
    return done(unshare(CLONE_NEWNET));
}

static int try_descriptors(void)
{
    int r = 0;

    for (int i = 0; r >= 0 && i < 4; i++)
        r = dup(plan.fds[HARDEN_FD_WAKE]);
    return done(r);
}

static int try_memory(void)
{
    const void *p =
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? -errno : 0;
}

static int try_lock(void)
{
    return done(mlock(&plan, sizeof(plan)));
}

static int try_file(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    return done(write(file_fd, "", 1));
}

static int try_process(void)
{
    long r = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    if (r == 0)
        syscall(SYS_exit_group, 0);
    return done(r);
}

static int try_signal(void)
{
    return done(kill(bystander, 0));
}

static int try_socket(void)
{
    return done(socket(AF_INET, SOCK_STREAM, 0));
}

static int try_code(void)
{
    void *page = (void *)((uintptr_t)&plan & ~(uintptr_t)4095);

    return done(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
}

static int try_ring(void)
{
    return asked(syscall(SYS_io_uring_setup, 1, NULL));
}

static int try_x32(void)
{
    return asked(syscall(0x40000000 | SYS_getpid));
}

/* getpid, as a 32-bit program calls it. */
static int try_i386(void)
{
    long r = 20;

#if defined(__x86_64__)
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
#endif
    return asked(r);
}

static int try_other_write(void)
{
    return asked(write(plan.fds[HARDEN_FD_CONTROL], "", 1));
}

static int try_other_receive(void)
{
    char byte;

    return asked(recv(plan.fds[HARDEN_FD_WAKE], &byte, 1, MSG_DONTWAIT));
}

static int try_other_device(void)
{
    return asked(ioctl(plan.fds[HARDEN_FD_STREAM], REQUEST_RUN, NULL));
}

static int try_other_request(void)
{
    return asked(ioctl(plan.fds[HARDEN_FD_VM], REQUEST_CREATE_VCPU, 0));
}

/* What only the other thread does. */
static int try_send(void)
{
    return asked(send(plan.fds[HARDEN_FD_CONTROL], "", 1, MSG_DONTWAIT));
}

static int try_run(void)
{
    return asked(ioctl(plan.fds[HARDEN_FD_VCPU], REQUEST_RUN, NULL));
}

static int try_other_number(void)
{
    return asked(dup2(plan.fds[HARDEN_FD_WAKE], plan.fds[HARDEN_FD_CONTROL]));
}

/* As if it were its own thread. */
static int try_other_signal(void)
{
    return asked(syscall(SYS_tgkill, bystander, bystander, SIGUSR1));
}

/* Merged with others' pages, say. */
static int try_advice(void)
{
    void *page = (void *)((uintptr_t)&plan & ~(uintptr_t)4095);

    return asked(madvise(page, 4096, MADV_MERGEABLE));
}

/* What is its own is nobody's to close, either. */
static int try_close(void)
{
    return asked(close(plan.fds[HARDEN_FD_WAKE]));
}

/* Of a disk that has come. */
static int try_close_sent(void)
{
    return asked(close(plan.fds[HARDEN_FD_SENT_2]));
}

/* The third is of a reset. */
static int try_close_third(void)
{
    return asked(close(plan.fds[HARDEN_FD_SENT_2] + 1));
}

#if defined(SYS_poll)
static int try_other_wait(void)
{
    return asked(syscall(SYS_ppoll, NULL, 0, &(struct timespec){0}, NULL, 0));
}
#endif

static int try_renew(void)
{
    return asked(dup2(plan.fds[HARDEN_FD_WAKE], plan.fds[HARDEN_FD_STREAM]));
}

static int try_set(void)
{
    return asked(ioctl(plan.fds[HARDEN_FD_VCPU], REQUEST_SET_REGS, NULL));
}

static int try_other_read(void)
{
    char byte;

    return asked(pread(plan.fds[HARDEN_FD_WAKE], &byte, 1, 0));
}

/* Past the list of those that its guest may set. */
static int try_set_msrs(void)
{
    return asked(ioctl(plan.fds[HARDEN_FD_VCPU], REQUEST_SET_MSRS, NULL));
}

#define NOBODY_MAY (-1)
/* Of both threads, but for what one of them has to do. */
static const struct {
    const char *name;
    int (*try)(void);
    unsigned by;   /* layers beside CALLS that are in its way, each of them alone */
    int allowed;   /* to this thread */
    bool to_reset; /* and only for a reset */
} attempts[] = {
    {"opens a file", try_open, FILES, NOBODY_MAY, false},
    {"makes a file", try_make, FILES, NOBODY_MAY, false},
    {"executes a program", try_execute, FILES, NOBODY_MAY, false},
    {"traces a process", try_trace, CAPABILITIES | FILES, NOBODY_MAY, false},
    {"mounts", try_mount, CAPABILITIES | FILES, NOBODY_MAY, false},
    {"changes its root", try_root, CAPABILITIES, NOBODY_MAY, false},
    {"renames the host", try_host_name, CAPABILITIES, NOBODY_MAY, false},
    {"makes a namespace", try_namespace, CAPABILITIES, NOBODY_MAY, false},
    {"has more descriptors", try_descriptors, LIMITS, NOBODY_MAY, false},
    {"has more memory", try_memory, LIMITS, NOBODY_MAY, false},
    {"locks memory", try_lock, LIMITS, NOBODY_MAY, false},
    {"makes a process", try_process, 0, NOBODY_MAY, false},
    {"makes a file larger", try_file, LIMITS, NOBODY_MAY, false},
    {"signals a process", try_signal, 0, NOBODY_MAY, false},
    {"makes a socket", try_socket, 0, NOBODY_MAY, false},
    {"makes data code", try_code, 0, NOBODY_MAY, false},
    {"makes a ring", try_ring, 0, NOBODY_MAY, false},
    {"calls as x32", try_x32, 0, NOBODY_MAY, false},
    {"calls as i386", try_i386, 0, NOBODY_MAY, false},
    {"writes elsewhere", try_other_write, 0, NOBODY_MAY, false},
    {"receives elsewhere", try_other_receive, 0, NOBODY_MAY, false},
    {"runs what is no vCPU", try_other_device, 0, NOBODY_MAY, false},
    {"asks KVM for more", try_other_request, 0, NOBODY_MAY, false},
    {"gives a number to something else", try_other_number, 0, NOBODY_MAY, false},
    {"reads elsewhere", try_other_read, 0, NOBODY_MAY, false},
    {"signals another's thread", try_other_signal, 0, NOBODY_MAY, false},
    {"advises on memory", try_advice, 0, NOBODY_MAY, false},
#if defined(SYS_poll)
    {"waits by another call", try_other_wait, 0, NOBODY_MAY, false},
#endif
    {"closes what is its own", try_close, 0, NOBODY_MAY, false},
    {"closes what it was sent", try_close_sent, 0, HARDEN_MAIN, false},
    {"closes what came for a reset", try_close_third, 0, HARDEN_MAIN, true},
    {"sends an event", try_send, 0, HARDEN_MAIN, false},
    {"runs the vCPU", try_run, 0, HARDEN_VCPU, false},
    {"gives the stream another end", try_renew, 0, HARDEN_MAIN, true},
    {"sets the vCPU's registers", try_set, 0, HARDEN_MAIN, true},
    {"sets other registers of it", try_set_msrs, 0, HARDEN_MAIN, true},
};

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
    bystander = fork();
    while (bystander == 0)
        (void)pause();
}

static void open_descriptors(enum harden_scope scope)
{
    static const enum harden_fd others[] = {HARDEN_FD_KVM, HARDEN_FD_VM, HARDEN_FD_VCPU,
                                            HARDEN_FD_PAGEMAP, HARDEN_FD_STATS};
    int ends[2];

    plan = (struct harden_plan){.scope = scope};
    plan.fds[HARDEN_FD_LOG] = STDERR_FILENO;
    plan.fds[HARDEN_FD_CONSOLE] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        _exit(202);
    plan.fds[HARDEN_FD_CONTROL] = ends[0];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        _exit(203);
    plan.fds[HARDEN_FD_STREAM] = ends[0];
    plan.fds[HARDEN_FD_WAKE] = eventfd(0, EFD_NONBLOCK);
    file_fd = memfd_create("file", 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        plan.fds[others[i]] = eventfd(0, EFD_NONBLOCK);
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
    if ((vcpu.layers & CALLS) && harden_thread(&plan, HARDEN_VCPU, &err) < 0)
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
    int r = harden_process(open("/proc", O_PATH | O_CLOEXEC), plan.fds[HARDEN_FD_STATS], &err);

    if (r == 0 && (layers & CONFINED) == CONFINED)
        r = harden_confine(&err);
    else if (r == 0 && (layers & PRIVILEGES))
        r = harden_privileges(&err);
    if (r == 0 && (layers & CONFINED) == CAPABILITIES)
        r = harden_capabilities(&err);
    if (r == 0 && (layers & CONFINED) == (FILES | PRIVILEGES))
        r = harden_files(&err);
    if (r == 0)
        r = -pthread_create(&thread, NULL, vcpu_main, NULL);
    if (r == 0 && (layers & LIMITS))
        r = harden_limits(&plan, &err);
    if (r == 0 && (layers & CALLS))
        r = harden_thread(&plan, HARDEN_MAIN, &err);
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
        if (harden_find_free(&plan, &(struct err){0}) < 0)
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

static bool can_be_tried(size_t i)
{
    if (attempts[i].try != try_i386 || has_i386())
        return true;
    print_message("not here: %s\n", attempts[i].name);
    return false;
}

static void check_calls(enum harden_scope scope)
{
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
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
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        int r;

        if (!can_be_tried(i))
            continue;
        r = attempt(attempts[i].try, HARDEN_VCPU, ALL & ~CALLS);
        if ((r < 0) != (attempts[i].by != 0))
            fail_msg("without a filter one that %s: %d", attempts[i].name, r);
        r = attempt(attempts[i].try, HARDEN_VCPU, 0);
        if (r != 0)
            fail_msg("nobody is in the way of one that %s: %d", attempts[i].name, r);
        for (unsigned layer = PRIVILEGES; layer < CALLS; layer *= 2) {
            /* Landlock wants one of two others. */
            r = attempt(attempts[i].try, HARDEN_VCPU,
                        layer == FILES ? FILES | PRIVILEGES : layer);
            if ((r < 0) != ((attempts[i].by & layer) != 0))
                fail_msg("layer %u and one that %s: %d", layer, attempts[i].name, r);
        }
    }
}

/* What a machine does all the time, after all was given up. */
static int work(void)
{
    uint64_t count = 1;
    char byte;

    if (write(plan.fds[HARDEN_FD_WAKE], &count, sizeof(count)) < 0 ||
        read(plan.fds[HARDEN_FD_WAKE], &count, sizeof(count)) < 0 ||
        send(plan.fds[HARDEN_FD_CONTROL], "", 1, 0) < 0)
        return -errno;
    if (recvmsg(plan.fds[HARDEN_FD_STREAM],
                &(struct msghdr){.msg_iov = &(struct iovec){&byte, 1}, .msg_iovlen = 1},
                MSG_DONTWAIT) >= 0 ||
        errno != EAGAIN)
        return -errno;
    return shutdown(plan.fds[HARDEN_FD_STREAM], SHUT_WR) < 0 ? -errno : 0;
}

static void test_work(void **state)
{
    (void)state;
    assert_int_equal(attempt(work, HARDEN_MAIN, ALL), 0);
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
