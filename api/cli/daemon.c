/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/daemon.h"

#include "api/cli/kvm_probe.h"
#include "api/cli/mark.h"
#include "api/cli/peer.h"
#include "api/cli/progress.h"
#include "api/cli/remote.h"
#include "api/cli/soft_skills.h"
#include "api/host/host.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_WAIT_NS  (600 * NS_PER_SECOND)
#define STOP_WAIT_MS   20000
#define KILL_WAIT_MS   10000
#define READY_EVERY_MS 100
#define LOG_TAIL_BYTES 2048
#define PID_FILE       "skillvmd.pid"
#define ONE_SHOT_FILE  "one-shot" /* names a daemon that ends with its last user */

int daemon_find(const struct cli *cli, struct daemon_state *ret_state, struct err *err)
{
    struct daemon_state state = {0};
    struct host_status host = {0};
    int result = peer_find(cli->socket_path, &state.pid);

    if (result == 0) {
        state.up = true;
        state.soft = host_status_read(cli->data_dir, &host, NULL) == 0 &&
                     host.state != HOST_STOPPED && host.supervisor_pid == state.pid;
    } else if (result != -ENOENT && result != -ECONNREFUSED) {
        return err_set_errno(err, -result, "cannot open the socket %s", cli->socket_path);
    }
    *ret_state = state;
    return 0;
}

int daemon_choose(const struct cli *cli, const char *host, bool *ret_soft, struct err *err)
{
    bool native = host && strcmp(host, "native") == 0;
    struct kvm_probe probe;

    if (host && strcmp(host, "soft") == 0) {
        cli_say("using the software host (--host soft)");
        *ret_soft = true;
        return 0;
    }
    int result = kvm_probe_run(cli, "skillvm-vmm", &probe, err);
    if (result < 0)
        return result;
    if (native && !probe.usable)
        result = err_set(err, ENODEV,
                         "KVM cannot be used here: %s; see `skillvm doctor`, or use "
                         "--host soft",
                         kvm_probe_reason(&probe));
    else if (native)
        cli_say("using KVM (--host native)");
    else if (probe.usable)
        cli_say("using KVM");
    else
        cli_say("using the software host, which is slow, because KVM cannot be used: %s",
                kvm_probe_reason(&probe));
    *ret_soft = !probe.usable;
    kvm_probe_finish(&probe);
    return result;
}

/* Shows where a start failed, which only the log knows. */
static void show_log_tail(const char *path)
{
    char line[LOG_TAIL_BYTES];
    FILE *log = fopen(path, "re");

    if (!log)
        return;
    /* What it begins with may be the end of a line. */
    const unsigned first = fseek(log, -LOG_TAIL_BYTES, SEEK_END) == 0;
    for (unsigned n = 0; fgets(line, sizeof(line), log); n++) {
        if (n == first)
            cli_say("the end of %s:", path);
        if (n >= first)
            fputs(line, stderr);
    }
    (void)fclose(log);
}

static void exec_daemon(const struct cli *cli, const struct daemon_settings *settings)
{
    const char *argv[12] = {"skillvmd",    "--socket", cli->socket_path, "--data",
                            cli->data_dir, "--share",  cli->share_dir};
    size_t n = 7;
    char path[PATH_MAX];

    if (settings->listen) {
        argv[n++] = "--listen";
        argv[n++] = settings->listen;
    }
    if (settings->config) {
        argv[n++] = "--config";
        argv[n] = settings->config;
    }
    execv(cli_sibling(cli, "skillvmd", path), (char *const *)(uintptr_t)argv);
    cli_say("cannot run %s: %s", path, strerror(errno));
    _exit(127);
}

static pid_t read_mark(const struct cli *cli, const char *name)
{
    char path[PATH_MAX];

    return mark_read(cli_join(cli->data_dir, name, path));
}

/* A mark that is missing costs a daemon that stays: no reason to end it. */
static void write_mark(const struct cli *cli, const char *name, pid_t pid)
{
    char path[PATH_MAX];
    int result = mark_write(cli_join(cli->data_dir, name, path), pid);

    /* It ended already, or another daemon has the directory: the start fails for itself. */
    if (result && result != -ESRCH && result != -EEXIST)
        cli_say("cannot write %s: %s", path, strerror(-result));
}

static pid_t fork_daemon(const struct cli *cli, const struct daemon_settings *settings,
                         const char *log_path, struct err *err)
{
    _cleanup_fd_ int log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    _cleanup_fd_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (log_fd < 0 || null_fd < 0)
        return err_set_errno(err, errno, "cannot open the log %s", log_path);
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, errno, "cannot start a process");
    if (pid > 0)
        return pid;

    setsid();
    signal(SIGPIPE, SIG_DFL);
    if (chdir("/") < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
        dup2(log_fd, STDERR_FILENO) < 0)
        _exit(127);
    exec_daemon(cli, settings);
    _exit(127);
}

/*
 * Asks once, and waits a moment where that is worth while. 0; -EAGAIN, with what it waits for
 * in text (ERR_MESSAGE_MAX bytes) where that is known; or -errno with err.
 */
static int ask_ready(struct skillvm *client, int pidfd, char *text, struct err *err)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    struct skillvm_error why = {0};
    int result = skillvm_ready(client, &why);

    /* Without its cluster it goes on with what it has, for as long as that takes. */
    if (result == 0 || strcmp(why.name, "cut_off") == 0)
        return 0;
    if (result == -ENOTRECOVERABLE || (result == -EREMOTEIO && why.http_status != 503))
        return err_set(err, -result, "the daemon cannot get ready: %s", why.message);
    if (result == -EREMOTEIO)
        snprintf(text, ERR_MESSAGE_MAX, "getting ready: %.400s", why.message);
    if (poll(&ended, 1, READY_EVERY_MS) > 0)
        return err_set(err, ECHILD, "the daemon ended while it started");
    if (cli_interrupted())
        return err_set(err, EINTR, "interrupted; the daemon is stopped again");
    return -EAGAIN;
}

/* pidfd -1: somebody else's process, not watched. */
static int wait_ready(const struct cli *cli, int pidfd, struct err *err)
{
    uint64_t deadline = clock_monotonic_ns() + READY_WAIT_NS;
    char text[ERR_MESSAGE_MAX] = "starting the daemon";
    struct progress progress;
    struct skillvm *client;
    int result = remote_open(cli, &client, err);

    if (result < 0)
        return result;
    progress_begin(&progress);
    while ((result = ask_ready(client, pidfd, text, err)) == -EAGAIN) {
        progress_tick(&progress, text);
        if (clock_monotonic_ns() > deadline) {
            result = err_set(err, ETIMEDOUT, "the daemon did not get ready in 10 minutes");
            break;
        }
    }
    progress_end(&progress);
    skillvm_close(client);
    return result;
}

/* After a stop or a crash: the names that would mislead the next start. */
static void remove_leftovers(const struct cli *cli)
{
    char path[PATH_MAX];
    pid_t pid;

    if (peer_find(cli->socket_path, &pid) == -ECONNREFUSED)
        unlink(cli->socket_path);
    /* Another daemon may have the directory, on another socket. */
    mark_remove_stale(cli_join(cli->data_dir, PID_FILE, path));
    mark_remove_stale(cli_join(cli->data_dir, ONE_SHOT_FILE, path));
}

static int start_native(const struct cli *cli, const struct daemon_settings *settings,
                        bool one_shot, struct err *err)
{
    char log_path[PATH_MAX];
    pid_t pid =
        fork_daemon(cli, settings, cli_join(cli->data_dir, "skillvmd.log", log_path), err);

    if (pid < 0)
        return pid;
    _cleanup_fd_ int pidfd = pidfd_open(pid, 0);
    /* At once: what outlives a killed start is stopped by the next run's end. */
    if (one_shot)
        write_mark(cli, ONE_SHOT_FILE, pid);
    int result = wait_ready(cli, pidfd, err);
    if (!result) {
        /* Now: only the one daemon of this directory gets ready. */
        write_mark(cli, PID_FILE, pid);
    } else {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        if (result != -EINTR)
            show_log_tail(log_path);
        remove_leftovers(cli);
    }
    return result;
}

/* The text ends with the seconds, which progress_tick() adds by itself. */
static void on_host_progress(void *arg, const char *text)
{
    char what[128];
    const char *comma = strrchr(text, ',');

    snprintf(what, sizeof(what), "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
    progress_tick(arg, what);
}

static bool on_host_signal(void *ctx)
{
    (void)ctx;
    return cli_interrupted() != 0;
}

static struct host_options host_options(const struct cli *cli,
                                        const struct daemon_settings *settings)
{
    return (struct host_options){
        .data_dir = cli->data_dir,
        .socket_path = cli->socket_path,
        .share_dir = cli->share_dir,
        .images_dir = cli->images_dir,
        .listen = settings->listen,
        .config = settings->config,
        .counting = host_counting_from_env(),
    };
}

static int start_soft(const struct cli *cli, const struct daemon_settings *settings,
                      bool one_shot, struct err *err)
{
    struct host_options options = host_options(cli, settings);
    struct host_status status = {0};
    struct progress progress;

    const struct host_wait wait = {on_host_progress, on_host_signal, &progress};

    progress_begin(&progress);
    int result = host_start(&options, &wait, err);
    progress_end(&progress);
    if (result < 0)
        return result;
    if (one_shot && host_status_read(cli->data_dir, &status, NULL) == 0 &&
        status.state != HOST_STOPPED)
        write_mark(cli, ONE_SHOT_FILE, status.supervisor_pid);
    result = wait_ready(cli, -1, err);
    if (result < 0) {
        if (result != -EINTR && host_status_read(cli->data_dir, &status, NULL) == 0 &&
            status.log_path[0])
            show_log_tail(status.log_path);
        host_stop(cli->data_dir, NULL);
        remove_leftovers(cli);
    }
    return result;
}

int daemon_start(const struct cli *cli, const struct daemon_settings *settings, bool soft,
                 bool one_shot, struct err *err)
{
    return soft ? start_soft(cli, settings, one_shot, err)
                : start_native(cli, settings, one_shot, err);
}

int daemon_run_foreground(const struct cli *cli, const struct daemon_settings *settings,
                          bool soft)
{
    if (!soft)
        exec_daemon(cli, settings);

    struct host_options options = host_options(cli, settings);
    return host_run(&options, -1);
}

/* True when the process is a daemon of ours and not a stranger that got the same number. */
static bool is_daemon(pid_t pid)
{
    char path[64], exe[PATH_MAX];

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, exe, sizeof(exe) - 1);
    if (n < 0)
        return false;
    exe[n] = '\0';
    const char *name = strrchr(exe, '/');
    return name && strncmp(name, "/skillvmd", 9) == 0;
}

/* Asks, waits, kills. The pidfd makes sure that it is always the same process. */
static int stop_process(pid_t pid, struct err *err)
{
    _cleanup_fd_ int pidfd = pidfd_open(pid, 0);

    if (pidfd < 0)
        return errno == ESRCH ? 0
                              : err_set_errno(err, errno, "cannot open process %d", (int)pid);
    if (!is_daemon(pid))
        return err_set(err, EPERM, "process %d listens on the socket but is no skillvmd",
                       (int)pid);
    if (pidfd_send_signal(pidfd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
        return err_set_errno(err, errno, "cannot stop process %d", (int)pid);

    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    struct progress progress;
    progress_begin(&progress);
    int result = 0;
    for (int waited = 0; waited < STOP_WAIT_MS + KILL_WAIT_MS; waited += READY_EVERY_MS) {
        if (poll(&ended, 1, READY_EVERY_MS) > 0)
            goto out;
        if (waited == STOP_WAIT_MS) {
            cli_say("the daemon does not stop by itself; killing it");
            pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        }
        progress_tick(&progress, "stopping the daemon");
    }
    result = err_set(err, ETIMEDOUT, "process %d does not end", (int)pid);
out:
    progress_end(&progress);
    return result;
}

static int stop_soft(const struct cli *cli, struct err *err)
{
    _cleanup_buf_ struct buf skills = buf_init(SOFT_SKILLS_MAX);
    int result;

    if (soft_skills_ask(cli, &skills) < 0)
        buf_clear(&skills);
    result = host_stop(cli->data_dir, err);
    if (result < 0)
        return result == -ESRCH ? 0 : result;
    soft_skills_keep(cli, &skills);
    return 0;
}

int daemon_stop(const struct cli *cli, struct err *err)
{
    struct host_status host = {0};
    struct daemon_state state;
    pid_t pid = read_mark(cli, PID_FILE);
    int result = daemon_find(cli, &state, err);

    if (result < 0)
        return result;
    if (host_status_read(cli->data_dir, &host, NULL) == 0 && host.state != HOST_STOPPED) {
        result = stop_soft(cli, err);
    } else if (state.up) {
        result = stop_process(state.pid, err);
    } else if (pid > 0 && is_daemon(pid)) {
        result = stop_process(pid, err);
    } else {
        result = -ESRCH;
    }
    if (result == 0 || result == -ESRCH)
        remove_leftovers(cli);
    return result;
}

bool daemon_lacks_skill(const struct cli *cli, const char *name, char hint[NEAREST_HINT_SIZE])
{
    struct daemon_state state = {0};
    char path[PATH_MAX];

    if (daemon_find(cli, &state, NULL) < 0 || state.up ||
        access(cli_join(cli->data_dir, "skillvm.db", path), F_OK) == 0 || errno != ENOENT)
        return false;
    if (access(cli_join(cli->data_dir, "softhost/disk.img", path), F_OK) == 0)
        return soft_skills_lack(cli, name, hint);
    if (errno != ENOENT)
        return false;
    (void)snprintf(hint, NEAREST_HINT_SIZE, "%s", REMOTE_NO_SKILLS);
    return true;
}

int daemon_lock(const struct cli *cli, bool alone, struct err *err)
{
    char path[PATH_MAX];
    int fd =
        open(cli_join(cli->data_dir, "cli.lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open %s", path);
    while (flock(fd, alone ? LOCK_EX : LOCK_SH) < 0) {
        if (errno != EINTR) {
            int code = errno;
            fd_close(&fd);
            return err_set_errno(err, code, "cannot lock %s", path);
        }
    }
    return fd;
}

void daemon_keep(const struct cli *cli)
{
    char path[PATH_MAX];

    unlink(cli_join(cli->data_dir, ONE_SHOT_FILE, path));
}

static int start_unless_up(const struct cli *cli, const char *host, bool *ret_started,
                           struct err *err)
{
    static const struct daemon_settings none;
    struct daemon_state state;
    bool soft;
    int result = daemon_find(cli, &state, err);

    if (result < 0 || state.up)
        return result;
    result = daemon_choose(cli, host, &soft, err);
    if (result < 0)
        return result;
    result = daemon_start(cli, &none, soft, true, err);
    *ret_started = result == 0;
    return result;
}

int daemon_use_begin(const struct cli *cli, const char *host, struct daemon_use *ret_use,
                     struct err *err)
{
    struct daemon_use use = {.lock_fd = daemon_lock(cli, false, err)};
    struct daemon_state state;

    if (use.lock_fd < 0)
        return use.lock_fd;
    int result = daemon_find(cli, &state, err);
    if (!result && !state.up) {
        /* Alone from here on: of two runs that start together one starts the daemon. */
        flock(use.lock_fd, LOCK_EX);
        result = start_unless_up(cli, host, &use.started, err);
        flock(use.lock_fd, LOCK_SH);
    }
    if (result < 0) {
        fd_close(&use.lock_fd);
        return result;
    }
    *ret_use = use;
    return 0;
}

/* Whether the daemon on the socket is the one that was started for runs only. */
static bool is_one_shot(const struct cli *cli)
{
    pid_t marked = read_mark(cli, ONE_SHOT_FILE);
    struct daemon_state state;

    return marked && daemon_find(cli, &state, NULL) == 0 && state.up && state.pid == marked;
}

void daemon_use_end(const struct cli *cli, struct daemon_use *use)
{
    struct err err = {0};

    /* Only the last user gets it alone. */
    if (flock(use->lock_fd, LOCK_EX | LOCK_NB) == 0 && is_one_shot(cli)) {
        int result = daemon_stop(cli, &err);
        if (result && result != -ESRCH)
            cli_say("%s", err.message);
        else if (use->started)
            cli_say(
                "the daemon was started for this run only and is stopped again; keep one with "
                "`skillvm up`");
    }
    fd_close(&use->lock_fd);
}
