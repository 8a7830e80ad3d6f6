/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes, what waits for descriptors, and terminals.
 */
#include "tests/calls/calls.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int filled_pipe(int *ends)
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    return write(ends[1], "abc", 3) == 3 ? 0 : -1;
}

static int streams_pipe(void)
{
    char text[8];
    int waiting = 0;
    int ends[2];

    TRY(filled_pipe(ends));
    TRY(ioctl(ends[0], FIONREAD, &waiting));
    CHECK(waiting == 3 && read(ends[0], text, sizeof(text)) == 3);
    CHECK(read(ends[0], text, 1) < 0 && errno == EAGAIN);
    TRY(close(ends[1]));
    CHECK(read(ends[0], text, 1) == 0);
    return 0;
}

static int streams_pipe_packets(void)
{
    char text[8];
    int ends[2];

    TRY(pipe2(ends, O_DIRECT));
    CHECK(write(ends[1], "ab", 2) == 2 && write(ends[1], "c", 1) == 1);
    CHECK(read(ends[0], text, sizeof(text)) == 2);
    return 0;
}

static int streams_pipe_size(void)
{
    int ends[2];

    TRY(pipe2(ends, O_CLOEXEC));
    TRY(fcntl(ends[0], F_SETPIPE_SZ, 1 << 20));
    CHECK(fcntl(ends[1], F_GETPIPE_SZ) == 1 << 20);
    return 0;
}

static int streams_splice(void)
{
    char page[] = "xyz";
    struct iovec part = {page, 3};
    char text[8] = "";
    int from[2];
    int to[2];

    TRY(filled_pipe(from));
    TRY(pipe2(to, O_CLOEXEC | O_NONBLOCK));
    CHECK(tee(from[0], to[1], 3, 0) == 3);
    CHECK(splice(from[0], NULL, to[1], NULL, 3, 0) == 3);
    CHECK(vmsplice(to[1], &part, 1, 0) == 3);
    /* A read takes what is there, but of one page's buffer at a time it may. */
    CHECK(read(to[0], text, 6) == 6 && memcmp(text, "abcabc", 6) == 0);
    return 0;
}

static int streams_sendfile(void)
{
    int fd = open("a", O_CREAT | O_RDWR, 0644);
    off_t at = 0;
    int ends[2];

    TRY(fd);
    CHECK(write(fd, "abc", 3) == 3);
    TRY(pipe2(ends, O_CLOEXEC));
    CHECK(sendfile(ends[1], fd, &at, 3) == 3);
    return 0;
}

static int streams_owner(void)
{
    sigset_t set;
    siginfo_t info;
    const struct timespec limit = {.tv_sec = 10};
    int ends[2];

    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    TRY(sigprocmask(SIG_BLOCK, &set, NULL));
    TRY(pipe2(ends, O_CLOEXEC));
    TRY(fcntl(ends[0], F_SETOWN, getpid()));
    TRY(fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK));
    CHECK(write(ends[1], "x", 1) == 1);
    TRY(sigtimedwait(&set, &info, &limit));
    return 0;
}

static int streams_eventfd(void)
{
    eventfd_t value = 0;
    int fd = eventfd(2, EFD_CLOEXEC | EFD_SEMAPHORE);

    TRY(fd);
    TRY(eventfd_write(fd, 1));
    TRY(eventfd_read(fd, &value));
    CHECK(value == 1);
    return 0;
}

static int streams_signalfd(void)
{
    struct signalfd_siginfo info;
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    TRY(sigprocmask(SIG_BLOCK, &set, NULL));
    fd = signalfd(-1, &set, SFD_CLOEXEC);
    TRY(fd);
    TRY(raise(SIGUSR1));
    CHECK(read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info));
    CHECK(info.ssi_signo == SIGUSR1 && info.ssi_pid == (unsigned)getpid());
    return 0;
}

static int streams_epoll(void)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET | EPOLLONESHOT};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int ends[2];

    TRY(epoll);
    TRY(filled_pipe(ends));
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    CHECK(epoll_wait(epoll, &event, 1, 1000) == 1 && event.events == EPOLLIN);
    CHECK(epoll_pwait(epoll, &event, 1, 0, NULL) == 0);
    return 0;
}

static int streams_epoll_pwait2(void)
{
    const struct timespec limit = {.tv_nsec = 1000};
    struct epoll_event event;
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    TRY(epoll);
    return syscall(SYS_epoll_pwait2, epoll, &event, 1, &limit, NULL, 0) < 0 ? -errno : 0;
}

static int streams_poll(void)
{
    const struct timespec limit = {.tv_sec = 1};
    struct pollfd waiting;
    int ends[2];

    TRY(filled_pipe(ends));
    waiting = (struct pollfd){.fd = ends[0], .events = POLLIN};
    CHECK(poll(&waiting, 1, 1000) == 1 && waiting.revents == POLLIN);
    TRY(close(ends[1]));
    CHECK(ppoll(&waiting, 1, &limit, NULL) == 1 && waiting.revents & POLLHUP);
    return 0;
}

static int streams_select(void)
{
    struct timeval limit = {.tv_sec = 1};
    const struct timespec exact = {.tv_sec = 1};
    fd_set set;
    int ends[2];

    TRY(filled_pipe(ends));
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    CHECK(select(ends[0] + 1, &set, NULL, NULL, &limit) == 1);
    CHECK(pselect(ends[0] + 1, &set, NULL, NULL, &exact, NULL) == 1);
    return 0;
}

static int streams_inotify(void)
{
    union {
        struct inotify_event event;
        char room[512];
    } buffer;
    int fd = inotify_init1(IN_CLOEXEC);

    TRY(fd);
    TRY(inotify_add_watch(fd, ".", IN_CREATE));
    TRY(open("new", O_CREAT | O_RDWR, 0644));
    CHECK(read(fd, &buffer, sizeof(buffer)) > 0);
    CHECK(buffer.event.mask == IN_CREATE && strcmp(buffer.event.name, "new") == 0);
    return 0;
}

static int streams_pty(void)
{
    struct winsize size = {.ws_row = 40, .ws_col = 132};
    struct termios settings;
    char name[64];
    char text[8] = "";
    int main_fd;
    int fd;

    TRY(openpty(&main_fd, &fd, name, NULL, NULL));
    TRY(ioctl(main_fd, TIOCSWINSZ, &size));
    size.ws_row = 0;
    TRY(ioctl(fd, TIOCGWINSZ, &size));
    CHECK(size.ws_row == 40 && isatty(fd) && strcmp(name, ttyname(fd)) == 0);
    TRY(tcgetattr(fd, &settings));
    cfmakeraw(&settings);
    TRY(tcsetattr(fd, TCSANOW, &settings));
    CHECK(write(main_fd, "\x03", 1) == 1 && read(fd, text, sizeof(text)) == 1);
    return 0;
}

/* The interrupt character reaches the foreground of a session that has the terminal. */
static int streams_controlling(void)
{
    char text[8];
    sigset_t set;
    int main_fd;
    int got;
    pid_t pid;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    TRY(sigprocmask(SIG_BLOCK, &set, NULL));
    pid = forkpty(&main_fd, NULL, NULL, NULL);
    TRY(pid);
    if (pid == 0) {
        if (open("/dev/tty", O_RDWR) < 0 || tcgetpgrp(0) != getpgrp() || write(1, "r", 1) != 1)
            probe_child_end(false);
        probe_child_end(sigwait(&set, &got) == 0 && got == SIGINT);
    }
    CHECK(read(main_fd, text, 1) == 1 && text[0] == 'r');
    CHECK(write(main_fd, "\x03", 1) == 1);
    return probe_child_wait(pid);
}

static int streams_push_input(void)
{
    int main_fd;
    pid_t pid = forkpty(&main_fd, NULL, NULL, NULL);

    TRY(pid);
    if (pid == 0)
        _exit(ioctl(0, TIOCSTI, "x") < 0 ? errno : 0);
    TRY(waitpid(pid, &main_fd, 0));
    return -WEXITSTATUS(main_fd);
}

static int streams_no_terminal(void)
{
    int status;
    pid_t pid = fork();

    TRY(pid);
    if (pid == 0)
        _exit(setsid() < 0 || open("/dev/tty", O_RDWR) < 0 ? errno : 0);
    TRY(waitpid(pid, &status, 0));
    return -WEXITSTATUS(status);
}

static struct io_uring_params ring;
static aio_context_t aio;

static const struct probe probes[] = {
    PROBE("pipe2 FIONREAD", streams_pipe),
    PROBE("pipe2 O_DIRECT", streams_pipe_packets),
    PROBE("fcntl F_SETPIPE_SZ", streams_pipe_size),
    PROBE("splice tee vmsplice", streams_splice),
    PROBE("sendfile", streams_sendfile),
    PROBE("fcntl F_SETOWN O_ASYNC", streams_owner),
    PROBE("eventfd", streams_eventfd),
    PROBE("signalfd", streams_signalfd),
    PROBE("epoll", streams_epoll),
    PROBE("epoll_pwait2", streams_epoll_pwait2),
    PROBE("poll ppoll", streams_poll),
    PROBE("select pselect", streams_select),
    PROBE("inotify", streams_inotify),
    PROBE("pseudo terminals", streams_pty),
    PROBE("a controlling terminal, job control", streams_controlling),
    PROBE("ioctl TIOCSTI", streams_push_input),
    PROBE("/dev/tty of a session without one", streams_no_terminal),
    {.name = "fanotify_init", .number = SYS_fanotify_init},
    {.name = "io_uring_setup", .number = SYS_io_uring_setup, .args = {4, (long)&ring}},
    {.name = "io_setup", .number = SYS_io_setup, .args = {4, (long)&aio}},
};

const struct probe_list calls_streams = PROBE_LIST(probes);
