/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's one loop: poll, then clients, health probe, QEMU. It must never block on the
 * host inside, never hand a client's byte to anything but an authenticated relay, and never
 * leave a QEMU behind.
 */
#include "api/host/supervisor.h"

#include "api/host/clients.h"
#include "api/host/dial.h"
#include "api/host/files.h"
#include "api/host/qemu.h"
#include "api/host/standstill.h"
#include "api/host/watch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUPERVISOR_DISK_BYTES    (32ull << 30)
#define SUPERVISOR_LOG_MAX       (8ull << 20)
#define SUPERVISOR_TAIL_MAX      1024u
#define SUPERVISOR_BACKOFF_MS    1000u
#define SUPERVISOR_STOP_MS       30000u
#define SUPERVISOR_BOOT_TRIES    3u
#define SUPERVISOR_BOOT_LEAST_MS 1000u /* an end before that is a wrong command line */
#define SUPERVISOR_PORT_TRIES    5u
#define SUPERVISOR_LOOP_MS       1000

/* Entries of poll(2): these, then two for each client. */
enum {
    SLOT_SIGNAL,
    SLOT_LISTEN,
    SLOT_PIDFD,
    SLOT_OUTPUT,
    SLOT_MONITOR,
    SLOT_WATCH,
    SLOT_COMMAND,
    SLOT_CLIENTS
};

struct supervisor {
    const struct host_options *options;
    struct err *err;
    int lock_fd;
    int signal_fd;
    int listen_fd;
    int ready_fd;
    uint8_t token[WIRE_TOKEN_SIZE];
    struct qemu qemu;
    bool port_owned;         /* QEMU listens: it is safe to dial */
    uint64_t boot_ns;        /* when the running QEMU was started */
    uint64_t start_again_ns; /* when to start QEMU, while none runs */
    unsigned port_tries;
    uint32_t failures; /* since the last ready: doubles the pause before the next start */
    char tail[SUPERVISOR_TAIL_MAX + 1];
    size_t tail_len;
    struct watch watch;
    struct dial command; /* power off */
    uint64_t stop_deadline_ns;
    bool stop_told; /* the host has accepted to power off */
    struct standstill standstill;
    uint64_t loop_ns;
    uint64_t progress_s;
    struct host_status status;
    struct clients clients;
};

static void supervisor_tell(struct supervisor *s, const char *line)
{
    if (s->ready_fd < 0)
        return;
    /* Who started the supervisor may be gone; that is no reason to end. */
    fd_write_full(s->ready_fd, line, strlen(line));
}

static void supervisor_publish(struct supervisor *s)
{
    int r;

    s->status.qemu_pid = s->qemu.pid;
    r = files_write_status(s->options->data_dir, &s->status);
    if (r < 0)
        log_warn("host", "event=status error=%s", strerror(-r));
}

static int supervisor_open_log(struct supervisor *s)
{
    int fd = files_open_log(s->options->data_dir, SUPERVISOR_LOG_MAX);

    if (fd < 0)
        return fd;
    if (dup2(fd, STDERR_FILENO) < 0) {
        close(fd);
        return -errno;
    }
    close(fd);
    return 0;
}

/* Its own lines count as the machine's do. */
static bool supervisor_log_is_long(void)
{
    struct stat st;

    return fstat(STDERR_FILENO, &st) == 0 && (uint64_t)st.st_size > SUPERVISOR_LOG_MAX;
}

/* Console and QEMU's words go to the log as they are; their end is kept for error messages. */
static void supervisor_drain_output(struct supervisor *s)
{
    char chunk[4096];
    ssize_t n;

    while ((n = read(s->qemu.output_fd, chunk, sizeof(chunk))) > 0) {
        size_t len = (size_t)n, keep = len < SUPERVISOR_TAIL_MAX ? len : SUPERVISOR_TAIL_MAX;

        fd_write_full(STDERR_FILENO, chunk, len);
        if (s->tail_len + keep > SUPERVISOR_TAIL_MAX) {
            size_t drop = s->tail_len + keep - SUPERVISOR_TAIL_MAX;

            memmove(s->tail, s->tail + drop, s->tail_len - drop);
            s->tail_len -= drop;
        }
        memcpy(s->tail + s->tail_len, chunk + len - keep, keep);
        s->tail_len += keep;
        s->tail[s->tail_len] = '\0';
        if (supervisor_log_is_long())
            supervisor_open_log(s);
    }
    if (n == 0)
        fd_close(&s->qemu.output_fd);
}

static int supervisor_boot(struct supervisor *s, uint64_t now_ns)
{
    int r = files_make_token(s->options->data_dir, s->token, s->err);

    if (r < 0)
        return r;
    r = qemu_start(&s->qemu, s->options, s->err);
    if (r < 0)
        return r;
    s->port_owned = false;
    s->standstill = (struct standstill){0};
    s->boot_ns = now_ns;
    s->tail_len = 0;
    s->tail[0] = '\0';
    s->status.state = HOST_BOOTING;
    watch_boot(&s->watch, s->options->silence_ms, now_ns);
    log_info("host", "event=boot qemu_pid=%d port=%u", (int)s->qemu.pid, s->qemu.port);
    supervisor_publish(s);
    return 0;
}

/* True when a host that did not come up is not worth another try. */
static bool supervisor_hopeless(struct supervisor *s, bool port_taken, uint64_t now_ns)
{
    if (s->ready_fd < 0)
        return false;
    if (port_taken)
        return ++s->port_tries >= SUPERVISOR_PORT_TRIES;
    return now_ns - s->boot_ns < SUPERVISOR_BOOT_LEAST_MS * NS_PER_MS ||
           s->failures + 1 >= SUPERVISOR_BOOT_TRIES;
}

/*
 * The host is gone or about to be killed. 0 when it shall be started again, -errno to give up.
 */
static int supervisor_lost(struct supervisor *s, const char *reason, uint64_t now_ns)
{
    bool port_taken;
    uint32_t pause_ms;

    if (s->qemu.output_fd >= 0)
        supervisor_drain_output(s);
    qemu_finish(&s->qemu);
    watch_finish(&s->watch);
    clients_drop_joined(&s->clients);
    s->standstill = (struct standstill){0};
    s->status.is_full = false;
    if (s->status.state == HOST_STOPPING)
        return 0;
    port_taken = strstr(s->tail, "Could not set up host forwarding rule") != NULL;
    if (supervisor_hopeless(s, port_taken, now_ns)) {
        size_t skip = s->tail_len > 300 ? s->tail_len - 300 : 0;

        return err_set(s->err, EHOSTDOWN, "the software host did not come up: %s; it said: %s",
                       reason, s->tail + skip);
    }
    pause_ms = SUPERVISOR_BACKOFF_MS << (s->failures < 5 ? s->failures : 5);
    if (!port_taken) {
        s->failures++;
        s->status.restarts++;
        snprintf(s->status.last_reason, sizeof(s->status.last_reason), "%s", reason);
        log_warn("host", "event=restart reason=\"%s\" restarts=%u pause_ms=%u", reason,
                 s->status.restarts, pause_ms);
    }
    s->status.state = HOST_BOOTING;
    s->start_again_ns = now_ns + pause_ms * NS_PER_MS;
    supervisor_publish(s);
    return 0;
}

/*
 * The daemon inside ended before it ever answered, and whoever waits for it can be told why: by
 * its last line on the console, before what /etc/softhost/daemon says of it. 0 or -errno.
 */
static int supervisor_heed_refusal(struct supervisor *s)
{
    static const char ended[] = "softhost: skillvmd ended", own[] = "error skillvmd ";
    const char *end = s->ready_fd >= 0 ? strstr(s->tail, ended) : NULL, *line;

    if (!end)
        return 0;
    while (end > s->tail && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    for (line = end; line > s->tail && line[-1] != '\n';)
        line--;
    if (strncmp(line, own, strlen(own)) == 0)
        line += strlen(own);
    return err_set(s->err, EHOSTDOWN, "the daemon in the software host does not start: %.*s",
                   (int)(end - line), line);
}

static void supervisor_ready(struct supervisor *s, uint64_t now_ns)
{
    s->status.state = HOST_READY;
    s->status.boot_ms = (now_ns - s->boot_ns) / NS_PER_MS;
    s->failures = 0;
    log_info("host", "event=ready boot_ms=%llu restarts=%u",
             (unsigned long long)s->status.boot_ms, s->status.restarts);
    supervisor_publish(s);
    supervisor_tell(s, "ready\n");
    fd_close(&s->ready_fd);
}

static bool supervisor_stands_still(const struct supervisor *s)
{
    return s->standstill.since_ns != 0;
}

static void supervisor_continue(struct supervisor *s, uint64_t now_ns)
{
    monitor_continue(&s->qemu.monitor);
    standstill_asked(&s->standstill, now_ns);
}

static void supervisor_stop(struct supervisor *s, uint64_t now_ns)
{
    const bool goes_on = !supervisor_stands_still(s) || files_has_room(s->options->data_dir);

    if (s->status.state == HOST_STOPPING) {
        log_warn("host", "event=stop note=\"asked twice, not waiting any longer\"");
        s->stop_deadline_ns = now_ns;
        return;
    }
    log_info("host", "event=stop");
    s->status.state = HOST_STOPPING;
    /* One that stands still, and cannot go on, does not power off by itself. */
    s->stop_deadline_ns = now_ns + (goes_on ? SUPERVISOR_STOP_MS * NS_PER_MS : 0);
    if (goes_on && supervisor_stands_still(s))
        supervisor_continue(s, now_ns);
    watch_finish(&s->watch);
    fd_close(&s->listen_fd);
    unlink(s->options->socket_path);
    supervisor_publish(s);
}

/*
 * A machine that stands still for want of room on this machine's disk is not hung: it is told,
 * and goes on when there is room. 0, or -ENOSPC where its start waits for that.
 */
static int supervisor_heed_monitor(struct supervisor *s, uint64_t now_ns)
{
    const char *data_dir = s->options->data_dir;
    enum monitor_word word = monitor_run(&s->qemu.monitor);

    if (word == MONITOR_NO_ROOM && standstill_begin(&s->standstill, now_ns))
        log_error("host", "event=stopped reason=\"the disk of %s is full\"", data_dir);
    if (word == MONITOR_GOES_ON)
        watch_excuse(&s->watch, standstill_end(&s->standstill, now_ns));
    if (standstill_is_over(&s->standstill, now_ns))
        log_info("host", "event=goes_on");
    if (s->status.is_full != supervisor_stands_still(s)) {
        s->status.is_full = supervisor_stands_still(s);
        supervisor_publish(s);
    }
    if (!supervisor_stands_still(s))
        return 0;
    if (s->ready_fd >= 0)
        return err_set(s->err, ENOSPC,
                       "the disk of %s became full as the software host started: make room, or "
                       "name another data directory by --data",
                       data_dir);
    clients_refuse(&s->clients, HOST_FULL_TEXT);
    if (standstill_may_ask(&s->standstill, now_ns) && files_has_room(data_dir))
        supervisor_continue(s, now_ns);
    return 0;
}

/* True when one that stands still will not go on: the watchdog does not see that. */
static bool supervisor_stuck(const struct supervisor *s, uint64_t now_ns)
{
    return supervisor_stands_still(s) &&
           (s->qemu.monitor.fd < 0 ||
            standstill_is_lost(&s->standstill, watch_patience_ms(&s->watch), now_ns));
}

static void supervisor_read_signal(struct supervisor *s, uint64_t now_ns)
{
    struct signalfd_siginfo info;

    if (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        supervisor_stop(s, now_ns);
}

/* True when the host, being stopped, is gone. */
static bool supervisor_stopped(struct supervisor *s, bool reachable, uint64_t now_ns)
{
    int fd = -1;

    if (s->qemu.pid == 0)
        return true;
    if (reachable && !s->stop_told) {
        if (s->command.fd < 0)
            dial_start(&s->command, s->qemu.port, WIRE_OP_POWEROFF, 0, s->token,
                       SUPERVISOR_STOP_MS);
        else if (dial_run(&s->command, now_ns, &fd) == 0)
            s->stop_told = true;
        fd_close(&fd);
    }
    if (now_ns < s->stop_deadline_ns)
        return false;
    log_warn("host", "event=stop note=\"the host did not power off, killing it\"");
    qemu_finish(&s->qemu);
    return true;
}

static void supervisor_progress(struct supervisor *s, uint64_t now_ns)
{
    uint64_t seconds = (now_ns - s->boot_ns) / NS_PER_SECOND;
    char line[64];

    if (s->ready_fd < 0 || s->qemu.pid == 0 || seconds == s->progress_s)
        return;
    s->progress_s = seconds;
    snprintf(line, sizeof(line), "progress software host: booting, %llu s\n",
             (unsigned long long)seconds);
    supervisor_tell(s, line);
}

/* What follows from the time and from QEMU's state. 0, or -errno to give up. */
static int supervisor_advance(struct supervisor *s, bool ended, bool reachable, uint64_t now_ns)
{
    char reason[HOST_REASON_MAX];

    if (ended && s->qemu.pid > 0)
        return supervisor_lost(
            s, s->status.state == HOST_STOPPING ? "stopped" : "QEMU ended by itself", now_ns);
    if (s->status.state == HOST_STOPPING)
        return 0;
    if (s->qemu.pid == 0)
        return now_ns >= s->start_again_ns ? supervisor_boot(s, now_ns) : 0;
    if (supervisor_heed_refusal(s) < 0)
        return -EHOSTDOWN;
    if (supervisor_stuck(s, now_ns))
        return supervisor_lost(s, "it stood still, and did not go on when there was room",
                               now_ns);
    if (!reachable || supervisor_stands_still(s))
        return 0;
    switch (watch_run(&s->watch, s->qemu.port, s->token, now_ns)) {
    case WATCH_ANSWERED:
        if (s->status.state != HOST_READY)
            supervisor_ready(s, now_ns);
        break;
    case WATCH_EXPIRED:
        snprintf(reason, sizeof(reason), "no answer to GET /health for %u s",
                 watch_patience_ms(&s->watch) / 1000);
        return supervisor_lost(s, reason, now_ns);
    case WATCH_WAITING:
        break;
    }
    supervisor_progress(s, now_ns);
    return 0;
}

/*
 * True when whatever is or was dialled on the port is QEMU: it listens there, and it lives, so
 * it did when the connections made so far were made.
 */
static bool supervisor_reachable(struct supervisor *s)
{
    if (!s->port_owned)
        s->port_owned = qemu_owns_port(&s->qemu);
    return s->port_owned && qemu_alive(&s->qemu);
}

static int supervisor_loop(struct supervisor *s)
{
    struct pollfd fds[SLOT_CLIENTS + 2 * CLIENTS_MAX];

    for (;;) {
        bool stopping = s->status.state == HOST_STOPPING, reachable;
        uint64_t now_ns;
        nfds_t n;
        int r, timeout_ms = 200;

        if (s->status.state == HOST_READY && !clients_waiting(&s->clients) &&
            !supervisor_stands_still(s))
            timeout_ms = watch_timeout_ms(&s->watch);
        if (timeout_ms > SUPERVISOR_LOOP_MS)
            timeout_ms = SUPERVISOR_LOOP_MS;
        fds[SLOT_SIGNAL] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
        fds[SLOT_LISTEN] = (struct pollfd){.fd = clients_full(&s->clients) ? -1 : s->listen_fd,
                                           .events = POLLIN};
        fds[SLOT_PIDFD] = (struct pollfd){.fd = s->qemu.pidfd, .events = POLLIN};
        fds[SLOT_OUTPUT] = (struct pollfd){.fd = s->qemu.output_fd, .events = POLLIN};
        fds[SLOT_MONITOR] = (struct pollfd){.fd = s->qemu.monitor.fd, .events = POLLIN};
        /* Of one that stands still nothing is asked, and what is left of a question is not
         * read. */
        fds[SLOT_WATCH] =
            supervisor_stands_still(s) ? (struct pollfd){.fd = -1} : watch_poll(&s->watch);
        fds[SLOT_COMMAND] = dial_poll(&s->command);
        n = SLOT_CLIENTS + clients_poll(&s->clients, &fds[SLOT_CLIENTS]);
        if (poll(fds, n, timeout_ms) < 0 && errno != EINTR)
            return err_set_errno(s->err, errno, "poll failed");

        now_ns = clock_monotonic_ns();
        /* A machine that stood still for a while says nothing about the host inside. */
        if (now_ns - s->loop_ns > 5 * NS_PER_SECOND) {
            watch_excuse(&s->watch, now_ns - s->loop_ns);
            standstill_excuse(&s->standstill, now_ns - s->loop_ns);
        }
        s->loop_ns = now_ns;
        if (fds[SLOT_SIGNAL].revents)
            supervisor_read_signal(s, now_ns);
        if (fds[SLOT_OUTPUT].revents)
            supervisor_drain_output(s);
        if (fds[SLOT_LISTEN].revents)
            clients_accept(&s->clients, s->listen_fd, now_ns);
        r = supervisor_heed_monitor(s, now_ns);
        if (r < 0)
            return r;
        reachable = supervisor_reachable(s);
        clients_run(&s->clients, reachable && !supervisor_stands_still(s) ? s->qemu.port : 0,
                    s->token, now_ns);
        r = supervisor_advance(s, fds[SLOT_PIDFD].revents != 0, reachable, now_ns);
        if (r < 0)
            return r;
        if (stopping && supervisor_stopped(s, reachable, now_ns))
            return 0;
    }
}

static int supervisor_listen(const char *path, struct err *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = -1;

    if (strlen(path) >= sizeof(addr.sun_path))
        return err_set(err, ENAMETOOLONG, "the socket path %s is longer than %zu bytes", path,
                       sizeof(addr.sun_path) - 1);
    strcpy(addr.sun_path, path);
    fd = fd_connect_unix(path, SOCK_NONBLOCK);
    /* EAGAIN: somebody is there and too busy to accept. */
    if (fd >= 0 || fd == -EAGAIN)
        return err_set(err, EALREADY, "somebody already listens on %s", path);
    if (fd != -ECONNREFUSED && fd != -ENOENT)
        return err_set_errno(err, -fd, "cannot tell whether somebody listens on %s", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set_errno(err, errno, "cannot replace %s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        chmod(path, 0660) < 0 || listen(fd, 64) < 0)
        return err_set_errno(err, errno, "cannot listen on %s", path);
    return fd_steal(&fd);
}

static int supervisor_signals(struct err *err)
{
    sigset_t set;
    int fd;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_set_errno(err, errno, "signalfd failed") : fd;
}

static int supervisor_work(struct supervisor *s)
{
    const struct host_options *options = s->options;
    mode_t mask;
    int r = qemu_check(options, s->err);

    if (r < 0)
        return r;
    r = files_make_dir(options->data_dir, s->err);
    if (r < 0)
        return r;
    r = files_lock(options->data_dir, &s->lock_fd, s->err);
    if (r < 0)
        return r;
    r = files_make_disk(options->data_dir, SUPERVISOR_DISK_BYTES, s->err);
    if (r < 0)
        return r;
    r = s->signal_fd = supervisor_signals(s->err);
    if (r < 0)
        return r;
    mask = umask(0117);
    r = s->listen_fd = supervisor_listen(options->socket_path, s->err);
    umask(mask);
    if (r < 0)
        return r;
    r = supervisor_open_log(s);
    if (r < 0)
        return err_set_errno(s->err, -r, "cannot open the log");
    log_info("host",
             "event=start note=\"a software host: the same programs, emulated; only "
             "speed differs\" memory_mib=%u counting=%d",
             s->status.memory_mib, options->counting);
    s->loop_ns = clock_monotonic_ns();
    r = supervisor_boot(s, s->loop_ns);
    return r < 0 ? r : supervisor_loop(s);
}

int supervisor_run(const struct host_options *options, int ready_fd, struct err *err)
{
    static struct supervisor s;
    struct err local = {0};
    char line[ERR_MESSAGE_MAX + 16];
    int r;

    s = (struct supervisor){
        .options = options,
        .err = &local,
        .lock_fd = -1,
        .signal_fd = -1,
        .listen_fd = -1,
        .ready_fd = ready_fd,
        .qemu = QEMU_NONE,
        .watch = WATCH_NONE,
        .command = DIAL_IDLE,
        .status = {.state = HOST_BOOTING,
                   .memory_mib =
                       options->memory_mib ? options->memory_mib : qemu_default_memory_mib()},
    };
    r = supervisor_work(&s);
    if (r < 0) {
        for (char *c = local.message; *c; c++) {
            if (*c == '\n' || *c == '\r')
                *c = ' ';
        }
        snprintf(line, sizeof(line), "error %s\n", local.message);
        supervisor_tell(&s, line);
        err_set(err, -r, "%s", local.message);
    }
    qemu_finish(&s.qemu);
    watch_finish(&s.watch);
    dial_finish(&s.command);
    clients_finish(&s.clients);
    if (s.listen_fd >= 0)
        unlink(options->socket_path);
    fd_close(&s.listen_fd);
    fd_close(&s.signal_fd);
    fd_close(&s.ready_fd);
    fd_close(&s.lock_fd);
    return r;
}
