/* SPDX-License-Identifier: Apache-2.0 */
/* More of what the host has than its share. What was taken is held. */
#include "tests/hostile/taken/taken.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIECE (1u << 20)

/* So many bytes as the driver says, of a mapping of a file or of none. */
static int take(int flags, int fd)
{
    size_t bytes = (size_t)taken_number("take-bytes");
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (p == MAP_FAILED)
        return -errno;
    for (size_t i = 0; i < bytes; i += 4096)
        p[i] = 1;
    return 0;
}

static int try_memory(void)
{
    return take(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static int try_shared(void)
{
    return take(MAP_SHARED | MAP_ANONYMOUS, -1);
}

/* In the kernel's memory, as a file without a name. */
static int try_memory_file(void)
{
    static const char piece[PIECE];
    int fd = memfd_create("taken", 0);
    int r = taken_done(fd);

    for (long n = 0; r == 0 && n < taken_number("take-bytes"); n += PIECE)
        r = taken_done(write(fd, piece, PIECE));
    if (r < 0 && fd >= 0)
        (void)close(fd);
    return r;
}

/* One that has no byte written, and is made larger and mapped. */
static int try_large_file(void)
{
    int fd = memfd_create("taken", 0);
    int r = taken_done(fd < 0 ? -1 : ftruncate(fd, taken_number("take-bytes")));

    if (r == 0)
        r = take(MAP_SHARED, fd);
    if (r < 0 && fd >= 0)
        (void)close(fd);
    return r;
}

/* Whoever was kept from one has still those before it. */
static int try_processes(void)
{
    long pid = 0;

    for (long n = 0; pid >= 0 && n < taken_number("take-processes"); n++) {
        pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
            for (;;)
                (void)syscall(SYS_pause);
    }
    return taken_done(pid);
}

static int try_descriptors(void)
{
    int fd = 0;

    for (long n = 0; fd >= 0 && n < taken_number("take-descriptors"); n++)
        fd = dup(taken_plan()->fds[HARDEN_FD_LOG]);
    return taken_done(fd);
}

static int try_log(void)
{
    static const char line[] = "a line of somebody's who has much to say\n";
    ssize_t n = 0;

    for (size_t i = 0; n >= 0 && i < taken_number("take-log") / sizeof(line); i++)
        n = write(taken_plan()->fds[HARDEN_FD_LOG], line, sizeof(line) - 1);
    return taken_done(n);
}

const struct attempt taken_resources[] = {
    {"memory", try_memory},
    {"shared", try_shared},
    {"memory-file", try_memory_file},
    {"large-file", try_large_file},
    {"processes", try_processes},
    {"descriptors", try_descriptors},
    {"log", try_log},
    {NULL, NULL},
};
