/* SPDX-License-Identifier: Apache-2.0 */
/* Others of the host: servers, processes, and the machine of somebody else. */
#include "tests/hostile/taken/taken.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define SECRET_BYTES 128

/* Lets go of a socket with which it could not be done. */
static int end_socket(int fd, long r)
{
    int error = taken_done(r);

    if (fd >= 0 && error < 0)
        (void)close(fd);
    return error;
}

static int connect_unix(const char *name, int skip)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    size_t len = strlen(name);

    if (len + 1 > sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path + skip, name, len);
    len += offsetof(struct sockaddr_un, sun_path) + (size_t)skip;
    return end_socket(fd,
                      fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, (socklen_t)len));
}

static int try_abstract(void)
{
    return connect_unix(taken_given("abstract"), 1);
}

static int try_socket_file(void)
{
    return connect_unix(taken_given("socket"), 0);
}

static struct sockaddr_in loopback(const char *key)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)taken_number(key)),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int try_connect(void)
{
    const struct sockaddr_in address = loopback("port");
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    return end_socket(
        fd, fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&address, sizeof(address)));
}

static int try_send(void)
{
    const struct sockaddr_in address = loopback("udp");
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    return end_socket(fd, fd < 0 ? -1
                                 : sendto(fd, "taken", 5, 0, (const struct sockaddr *)&address,
                                          sizeof(address)));
}

/* As root could it would be reached from outside, too. */
static int try_listen(void)
{
    const struct sockaddr_in address = loopback("free-port");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int r = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof(address));

    return end_socket(fd, r < 0 ? r : listen(fd, 8));
}

static int try_end(void)
{
    return taken_done(kill((pid_t)taken_number("process"), SIGKILL));
}

static int try_end_machine(void)
{
    return taken_done(kill((pid_t)taken_number("machine"), SIGKILL));
}

static int try_trace(void)
{
    return taken_done(ptrace(PTRACE_SEIZE, (pid_t)taken_number("process"), NULL, NULL));
}

static int tell_memory(const char *process, const char *address)
{
    char bytes[SECRET_BYTES];
    struct iovec here = {bytes, sizeof(bytes)};
    struct iovec there = {(void *)taken_number(address), sizeof(bytes)};
    ssize_t n = process_vm_readv((pid_t)taken_number(process), &here, 1, &there, 1, 0);
    int r = taken_done(n);

    if (n > 0)
        taken_tell(bytes, (size_t)n);
    return r;
}

static int try_read(void)
{
    return tell_memory("process", "process-address");
}

/* The same as a file. */
static int try_proc_memory(void)
{
    char path[32], bytes[SECRET_BYTES];
    ssize_t n;
    int fd, r;

    (void)snprintf(path, sizeof(path), "/proc/%ld/mem", taken_number("process"));
    fd = open(path, O_RDONLY);
    n = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), taken_number("process-address"));
    r = taken_done(n);
    if (n > 0)
        taken_tell(bytes, (size_t)n);
    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int try_read_machine(void)
{
    return tell_memory("machine", "machine-address");
}

/* What its owner's daemon sends the other machine. */
static int try_stream(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)taken_number("machine"), 0);
    int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, taken_number("stream"), 0);
    char bytes[SECRET_BYTES];
    ssize_t n = fd < 0 ? -1 : recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    int r = taken_done(n);

    if (n > 0)
        taken_tell(bytes, (size_t)n);
    if (fd >= 0)
        (void)close(fd);
    if (pidfd >= 0)
        (void)close(pidfd);
    return r;
}

static int try_shared_memory(void)
{
    int id = shmget((key_t)taken_number("shared-memory"), 1, 0);
    const char *p = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);

    if (p == (void *)-1)
        return -errno;
    taken_tell(p, strlen(p));
    return 0;
}

static int try_key(void)
{
    char bytes[SECRET_BYTES];
    long n = syscall(SYS_keyctl, KEYCTL_READ, taken_number("key"), bytes, sizeof(bytes), 0);
    int r = taken_done(n);

    if (n > 0)
        taken_tell(bytes, (size_t)n);
    return r;
}

const struct attempt taken_others[] = {
    {"abstract", try_abstract},
    {"socket-file", try_socket_file},
    {"connect", try_connect},
    {"send", try_send},
    {"listen", try_listen},
    {"end", try_end},
    {"end-machine", try_end_machine},
    {"trace", try_trace},
    {"read", try_read},
    {"proc-memory", try_proc_memory},
    {"read-machine", try_read_machine},
    {"stream", try_stream},
    {"shared-memory", try_shared_memory},
    {"key", try_key},
    {NULL, NULL},
};
