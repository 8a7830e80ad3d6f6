/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping a supervisor from the CLI, and its command line. It must never leave a
 * supervisor behind that it reported as failed.
 */
#include "api/host/host.h"

#include "api/host/files.h"
#include "api/host/supervisor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_PATIENCE_MS 200000u
#define STOP_PATIENCE_MS  60000u

bool host_counting_from_env(void)
{
    const char *value = getenv("SKILLVM_SOFT_COUNTING");

    return value && strcmp(value, "1") == 0;
}

static _Noreturn void start_child(const struct host_options *options, int ready_fd)
{
    char memory[16], ready[16], silence[16];
    /* An empty value is none. */
    const char *const argv[] = {"skillvm",
                                "host-soft",
                                "--data",
                                options->data_dir,
                                "--socket",
                                options->socket_path,
                                "--share",
                                options->share_dir,
                                "--images",
                                options->images_dir ? options->images_dir : "",
                                "--listen",
                                options->listen ? options->listen : "",
                                "--config",
                                options->config ? options->config : "",
                                "--memory-mib",
                                memory,
                                "--ready-fd",
                                ready,
                                "--silence-ms",
                                silence,
                                options->counting ? "--counting" : NULL,
                                NULL};
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(null_fd, 2) < 0 ||
        fcntl(ready_fd, F_SETFD, 0) < 0)
        _exit(127);
    snprintf(memory, sizeof(memory), "%u", options->memory_mib);
    snprintf(silence, sizeof(silence), "%u", options->silence_ms);
    snprintf(ready, sizeof(ready), "%d", ready_fd);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* One line from the supervisor. 1: ready, 0: go on, -errno: it failed (err set). */
static int start_line(char *line, const struct host_wait *wait, struct err *err)
{
    if (strcmp(line, "ready") == 0)
        return 1;
    if (strncmp(line, "error ", 6) == 0)
        return err_set(err, strstr(line, "already") ? EALREADY : EHOSTDOWN, "%s", line + 6);
    if (strncmp(line, "progress ", 9) == 0)
        wait->progress(wait->ctx, line + 9);
    return 0;
}

/* Reads the supervisor's lines until it is ready or has failed. 0 or -errno. */
static int start_wait(int fd, const struct host_wait *wait, struct err *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + START_PATIENCE_MS * NS_PER_MS;
    char text[2048], *end;
    size_t len = 0;
    int r = 0;

    while (r == 0) {
        struct pollfd pollfd = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (wait->should_stop(wait->ctx))
            return err_set(err, EINTR, "interrupted; the software host is stopped again");
        r = poll(&pollfd, 1, clock_timeout_ms(deadline_ns));
        if (r < 0 && errno == EINTR) {
            r = 0;
            continue;
        }
        if (r < 0)
            return err_set_errno(err, errno, "poll failed");
        if (r == 0)
            return err_set(err, ETIMEDOUT, "the software host did not come up in %u s",
                           START_PATIENCE_MS / 1000);
        r = 0;
        n = read(fd, text + len, sizeof(text) - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, EHOSTDOWN, "the software host's supervisor ended early");
        len += (size_t)n;
        text[len] = '\0';
        while (r == 0 && (end = memchr(text, '\n', len)) != NULL) {
            *end = '\0';
            r = start_line(text, wait, err);
            len -= (size_t)(end + 1 - text);
            memmove(text, end + 1, len + 1);
        }
    }
    return r > 0 ? 0 : r;
}

int host_start(const struct host_options *options, const struct host_wait *wait,
               struct err *err)
{
    _cleanup_fd_ int read_fd = -1;
    int fds[2], r;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set_errno(err, errno, "cannot make a pipe");
    read_fd = fds[0];
    pid = fork();
    if (pid == 0)
        start_child(options, fds[1]);
    close(fds[1]);
    if (pid < 0)
        return err_set_errno(err, errno, "cannot start the software host's supervisor");
    r = start_wait(read_fd, wait, err);
    if (r < 0) {
        /* QEMU dies with its supervisor. */
        kill(pid, SIGKILL);
        (void)process_reap(pid);
    }
    return r;
}

int host_stop(const char *data_dir, struct err *err)
{
    pid_t pid = files_lock_holder(data_dir);
    _cleanup_fd_ int pidfd = -1;
    struct pollfd pollfd;

    if (pid < 0)
        return err_set_errno(err, -pid, "cannot read the lock of the software host");
    if (pid == 0)
        return err_set(err, ESRCH, "no software host runs on %s", data_dir);
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    /* The pid may have been used anew between the two calls; the lock tells. */
    if (pidfd < 0 || files_lock_holder(data_dir) != pid)
        return err_set(err, ESRCH, "no software host runs on %s", data_dir);
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
        return err_set_errno(err, errno, "cannot stop the software host (pid %d)", (int)pid);
    pollfd = (struct pollfd){.fd = pidfd, .events = POLLIN};
    if (poll(&pollfd, 1, (int)STOP_PATIENCE_MS) == 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    /* A child of ours stays a zombie otherwise; anybody else's is not ours to wait for. */
    waitpid(pid, NULL, WNOHANG);
    return 0;
}

int host_run(const struct host_options *options, int ready_fd)
{
    struct err err = {0};
    int r = supervisor_run(options, ready_fd, &err);

    if (r < 0)
        log_error("host", "event=failed error=\"%s\"", err.message);
    return r < 0 ? 1 : 0;
}

int host_soft_main(int argc, char **argv)
{
    struct host_options host = {.counting = host_counting_from_env()};
    const char *memory = "0", *silence = "0", *ready = "-1", *listen = "", *config = "",
               *images = "";
    int c, at, ready_fd, counting = 0;
    const struct option options[] = {
        {"data", required_argument, NULL, 0},
        {"socket", required_argument, NULL, 0},
        {"share", required_argument, NULL, 0},
        {"memory-mib", required_argument, NULL, 0},
        {"silence-ms", required_argument, NULL, 0},
        {"ready-fd", required_argument, NULL, 0},
        {"listen", required_argument, NULL, 0},
        {"config", required_argument, NULL, 0},
        {"images", required_argument, NULL, 0},
        {"counting", no_argument, &counting, 1},
        {0},
    };
    const char **const values[] = {&host.data_dir, &host.socket_path, &host.share_dir,
                                   &memory,        &silence,          &ready,
                                   &listen,        &config,           &images};

    optind = 1;
    while ((c = getopt_long(argc, argv, "", options, &at)) == 0) {
        if (optarg)
            *values[at] = optarg;
    }
    if (c != -1)
        return 2;
    if (!host.data_dir || !host.socket_path || !host.share_dir) {
        fprintf(stderr, "usage: skillvm host-soft --data DIR --socket PATH --share DIR "
                        "[--images DIR] [--listen ADDRESS] [--config FILE] [--memory-mib N] "
                        "[--silence-ms N] [--counting]\n");
        return 2;
    }
    host.images_dir = *images ? images : NULL;
    host.listen = *listen ? listen : NULL;
    host.config = *config ? config : NULL;
    host.memory_mib = (uint32_t)strtoul(memory, NULL, 10);
    host.silence_ms = (uint32_t)strtoul(silence, NULL, 10);
    host.counting = host.counting || counting;
    ready_fd = (int)strtol(ready, NULL, 10);
    if (ready_fd >= 0)
        fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
    return host_run(&host, ready_fd);
}
