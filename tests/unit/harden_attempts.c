/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harden_attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* As of <linux/kvm.h>, which tests do without. */
#define REQUEST_RUN         0xae80ul
#define REQUEST_CREATE_VCPU 0xae41ul
#define REQUEST_SET_REGS    0x4090ae82ul
#define REQUEST_SET_MSRS    0x4008ae89ul

struct attempts_world world;

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
    return done(ptrace(PTRACE_ATTACH, world.bystander, NULL, NULL));
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
        r = dup(world.plan.fds[HARDEN_FD_WAKE]);
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
    return done(mlock(&world.plan, sizeof(world.plan)));
}

static int try_file(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    return done(write(world.file_fd, "", 1));
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
    return done(kill(world.bystander, 0));
}

static int try_socket(void)
{
    return done(socket(AF_INET, SOCK_STREAM, 0));
}

static int try_bind(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET,
                                    .sin_addr = {htonl(INADDR_LOOPBACK)}};

    return done(
        bind(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&any, sizeof(any)));
}

/* Nobody need be there. */
static int try_connect(void)
{
    const struct sockaddr_in port = {
        .sin_family = AF_INET, .sin_port = htons(1), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int r = done(
        connect(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&port, sizeof(port)));

    return r == -ECONNREFUSED ? 0 : r;
}

static int try_abstract(void)
{
    struct sockaddr_un name;
    socklen_t len = sizeof(name);

    if (getsockname(world.listener, (struct sockaddr *)&name, &len) < 0)
        return -errno;
    return done(connect(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&name, len));
}

static int try_code(void)
{
    void *page = (void *)((uintptr_t)&world.plan & ~(uintptr_t)4095);

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
int try_i386(void)
{
    long r = 20;

#if defined(__x86_64__)
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
#endif
    return asked(r);
}

static int try_other_write(void)
{
    return asked(write(world.plan.fds[HARDEN_FD_CONTROL], "", 1));
}

static int try_other_receive(void)
{
    char byte;

    return asked(recv(world.plan.fds[HARDEN_FD_WAKE], &byte, 1, MSG_DONTWAIT));
}

static int try_other_device(void)
{
    return asked(ioctl(world.plan.fds[HARDEN_FD_STREAM], REQUEST_RUN, NULL));
}

static int try_other_request(void)
{
    return asked(ioctl(world.plan.fds[HARDEN_FD_VM], REQUEST_CREATE_VCPU, 0));
}

/* What only the other thread does. */
static int try_send(void)
{
    return asked(send(world.plan.fds[HARDEN_FD_CONTROL], "", 1, MSG_DONTWAIT));
}

static int try_run(void)
{
    return asked(ioctl(world.plan.fds[HARDEN_FD_VCPU], REQUEST_RUN, NULL));
}

static int try_other_number(void)
{
    return asked(dup2(world.plan.fds[HARDEN_FD_WAKE], world.plan.fds[HARDEN_FD_CONTROL]));
}

/* As if it were its own thread. */
static int try_other_signal(void)
{
    return asked(syscall(SYS_tgkill, world.bystander, world.bystander, SIGUSR1));
}

/* Merged with others' pages, say. */
static int try_advice(void)
{
    void *page = (void *)((uintptr_t)&world.plan & ~(uintptr_t)4095);

    return asked(madvise(page, 4096, MADV_MERGEABLE));
}

/* What is its own is nobody's to close, either. */
static int try_close(void)
{
    return asked(close(world.plan.fds[HARDEN_FD_WAKE]));
}

/* Of a disk that has come. */
static int try_close_sent(void)
{
    return asked(close(world.plan.fds[HARDEN_FD_SENT_2]));
}

/* The third is of a reset. */
static int try_close_third(void)
{
    return asked(close(world.plan.fds[HARDEN_FD_SENT_2] + 1));
}

#if defined(SYS_poll)
static int try_other_wait(void)
{
    return asked(syscall(SYS_ppoll, NULL, 0, &(struct timespec){0}, NULL, 0));
}
#endif

static int try_renew(void)
{
    return asked(dup2(world.plan.fds[HARDEN_FD_WAKE], world.plan.fds[HARDEN_FD_STREAM]));
}

static int try_set(void)
{
    return asked(ioctl(world.plan.fds[HARDEN_FD_VCPU], REQUEST_SET_REGS, NULL));
}

static int try_other_read(void)
{
    char byte;

    return asked(pread(world.plan.fds[HARDEN_FD_WAKE], &byte, 1, 0));
}

/* As a disk is read. */
static int try_other_disk(void)
{
    char byte;

    return asked(preadv(world.file_fd, &(struct iovec){&byte, 1}, 1, 0));
}

/* What comes for a reset is none. */
static int try_third_disk(void)
{
    char byte;

    return asked(preadv(world.plan.fds[HARDEN_FD_SENT_2] + 1, &(struct iovec){&byte, 1}, 1, 0));
}

/* Past the list of those that its guest may set. */
static int try_set_msrs(void)
{
    return asked(ioctl(world.plan.fds[HARDEN_FD_VCPU], REQUEST_SET_MSRS, NULL));
}

const struct attempt attempts[] = {
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
    {"signals a process", try_signal, FILES_6, NOBODY_MAY, false},
    {"makes a socket", try_socket, 0, NOBODY_MAY, false},
    {"listens at a port", try_bind, FILES_4, NOBODY_MAY, false},
    {"connects to a port", try_connect, FILES_4, NOBODY_MAY, false},
    {"connects to an abstract socket", try_abstract, FILES_6, NOBODY_MAY, false},
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
    {"reads what is no disk", try_other_disk, 0, NOBODY_MAY, false},
    {"reads what came for a reset", try_third_disk, 0, NOBODY_MAY, false},
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
const size_t n_attempts = sizeof(attempts) / sizeof(attempts[0]);
