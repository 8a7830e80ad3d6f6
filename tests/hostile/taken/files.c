/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host: by name, and by the descriptors that the machine was given. */
#include "tests/hostile/taken/taken.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* As of <linux/kvm.h>, which tests do without. */
#define REQUEST_CREATE_VM   0xae01ul
#define REQUEST_CREATE_VCPU 0xae41ul

/* Calls of 32 bits. */
#define I386_READ 3
#define I386_OPEN 5

static int tell_file(int fd)
{
    char bytes[4096];
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    int r = taken_done(n);

    if (n > 0)
        taken_tell(bytes, (size_t)n);
    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int try_open(void)
{
    return tell_file(open(taken_given("secret"), O_RDONLY));
}

/* By the root folder of a process of the daemon's. */
static int try_proc_root(void)
{
    const long process = taken_number("process");
    char path[256];

    (void)snprintf(path, sizeof(path), "/proc/%ld/root%s", process, taken_given("secret"));
    return tell_file(open(path, O_RDONLY));
}

/* What it has open, and nobody has a name for. */
static int try_proc_file(void)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%ld/fd/0", taken_number("process"));
    return tell_file(open(path, O_RDONLY));
}

/* By the folders that it was given, and those above them. */
static int try_inherited(void)
{
    char above[256], environment[32];
    int r = -EBADF;

    (void)snprintf(above, sizeof(above), "..%s", taken_given("secret"));
    (void)snprintf(environment, sizeof(environment), "%ld/environ", taken_number("process"));
    for (int fd = 0; r < 0 && fd < TAKEN_FDS; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        r = tell_file(openat(fd, above, O_RDONLY));
        if (r < 0)
            r = tell_file(openat(fd, environment, O_RDONLY));
    }
    return r;
}

#if defined(__x86_64__)
static long call_32(long call, long a, long b, long c)
{
    long r = call;

    __asm__ volatile("int $0x80"
                     : "+a"(r)
                     : "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)r;
}

static int try_open_32(void)
{
    char *page = taken_low_page();
    long fd, n;

    (void)snprintf(page, 256, "%s", taken_given("secret"));
    fd = call_32(I386_OPEN, (long)page, O_RDONLY, 0);
    n = fd < 0 ? fd : call_32(I386_READ, fd, (long)page, 255);
    if (n > 0)
        taken_tell(page, (size_t)n);
    return n < 0 ? (int)n : 0;
}
#endif

static int try_make(void)
{
    int fd = open(taken_given("made"), O_CREAT | O_WRONLY, 0600);

    return taken_done(fd < 0 ? -1 : write(fd, "taken", 5));
}

/* Executed, it says so by the control socket. */
static int try_execute(void)
{
    char command[64];

    (void)snprintf(command, sizeof(command), "echo executed >&%d; exec sleep 1000",
                   taken_plan()->fds[HARDEN_FD_CONTROL]);
    return taken_done(execl("/bin/sh", "sh", "-c", command, (char *)NULL));
}

static int try_limits(void)
{
    int fd = open(taken_given("cgroup"), O_WRONLY);
    int r = taken_done(fd < 0 ? -1 : write(fd, "5000", 4));

    if (fd >= 0)
        (void)close(fd);
    return r;
}

/* The first descriptor of a file with which it can be done; not the log. */
static int with_each_file(int (*change)(int fd, const struct stat *st))
{
    struct stat st;
    int r = -EBADF;

    for (int fd = STDERR_FILENO + 1; r < 0 && fd < TAKEN_FDS; fd++)
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            r = change(fd, &st);
    return r;
}

static int write_to(int fd, const struct stat *st)
{
    int r = taken_done(pwrite(fd, "taken", 5, 0));

    return r < 0 ? taken_done(ftruncate(fd, st->st_size + 1)) : r;
}

static int try_write(void)
{
    return with_each_file(write_to);
}

/* At the end of each, by all that a file of the host's lets it. */
static int grow(int fd, const struct stat *st)
{
    static const char piece[4096];
    int r = 0;

    for (long n = 0; r == 0 && n < taken_number("take-disk"); n += (long)sizeof(piece))
        r = taken_done(pwrite(fd, piece, sizeof(piece), st->st_size + n));
    if (r == 0)
        return 0;
    return taken_done(ftruncate(fd, st->st_size + taken_number("take-disk")));
}

static int try_disk(void)
{
    return with_each_file(grow);
}

static int map_to(int fd, const struct stat *st)
{
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    (void)st;
    if (p == MAP_FAILED)
        return -errno;
    memcpy(p, "taken", 5);
    return 0;
}

static int try_map(void)
{
    return with_each_file(map_to);
}

/* A machine more, by a name and by what it has. */
static int try_device(void)
{
    int fd = open("/dev/kvm", O_RDWR);
    int r = taken_done(fd < 0 ? -1 : ioctl(fd, REQUEST_CREATE_VM, 0));

    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int try_machine(void)
{
    int r = -1;

    for (int fd = 0; r < 0 && fd < TAKEN_FDS; fd++)
        r = ioctl(fd, REQUEST_CREATE_VM, 0);
    return taken_done(r);
}

static int try_vcpu(void)
{
    return taken_done(ioctl(taken_plan()->fds[HARDEN_FD_VM], REQUEST_CREATE_VCPU, 1));
}

const struct attempt taken_files[] = {
    {"open", try_open},
    {"inherited", try_inherited},
#if defined(__x86_64__)
    {"open-32", try_open_32},
#endif
    {"make", try_make},
    {"execute", try_execute},
    {"limits", try_limits},
    {"write", try_write},
    {"map", try_map},
    {"disk", try_disk},
    {"proc-root", try_proc_root},
    {"proc-file", try_proc_file},
    {"device", try_device},
    {"machine", try_machine},
    {"vcpu", try_vcpu},
    {NULL, NULL},
};
