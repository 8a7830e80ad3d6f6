/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/execute.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "guest-init/net.h"
#include "guest-init/skill.h"

/* How long killed processes may take to be gone before the end is reported without them. */
#define REAP_TIMEOUT_MS 2000
#define PIPE_CHUNK      (16u * 1024u)
#define DRAIN_MIN_NS    (PROTO_NET_DRAIN_MIN_MS * NS_PER_MS)
#define DRAIN_MAX_NS    (PROTO_NET_DRAIN_MAX_MS * NS_PER_MS)

struct loop {
    struct execute *x;
    struct net *net;   /* NULL: the skill has none */
    bool net_has_more; /* to send */
    struct execute_result result;
    pid_t pid;
    int status;
    bool ended;
    bool kept;  /* ended, but not reaped: the machine's end is its end */
    bool alone; /* no other child is left */
    struct rusage usage;
    uint64_t start_ns;
    uint64_t deadline_ns;
    uint64_t logs_left;
};

void execute_encode(const struct execute_result *result, uint8_t out[PROTO_EXIT_SIZE])
{
    struct bytes_writer w = bytes_writer_init(out, PROTO_EXIT_SIZE);

    bytes_put_u32(&w, result->exit_code);
    bytes_put_u32(&w, result->signal);
    bytes_put_u32(&w, result->flags);
    bytes_put_u32(&w, result->not_started);
    bytes_put_u64(&w, result->user_us);
    bytes_put_u64(&w, result->system_us);
    bytes_put_u64(&w, result->peak_bytes);
    bytes_put_u64(&w, result->wall_us);
}

static int start_plain(struct execute *x, const struct run_strings *env, pid_t *ret_pid,
                       struct err *err)
{
    const char *program = skill_interpreter(x->sandbox, x->run);
    char cwd[SANDBOX_PATH_MAX];
    struct run_strings argv;
    int r;

    skill_cwd(x->sandbox, x->run, cwd);
    r = skill_arguments(x->sandbox, x->run, &argv);
    if (r < 0) {
        r = err_set_errno(err, -r, "cannot make the command line");
    } else {
        struct skill_command command = {
            .path = program, .argv = argv.items, .env = env->items, .cwd = cwd, .extra_fd = -1};

        r = skill_spawn(x->sandbox, &command, ret_pid, err);
    }
    run_strings_finish(&argv);
    return r;
}

static int start(struct execute *x, pid_t *ret_pid, struct err *err)
{
    struct run_strings env;
    int r = skill_environment(x->sandbox, x->run, x->input, &env);

    if (r < 0) {
        run_strings_finish(&env);
        return err_set_errno(err, -r, "cannot make the environment");
    }
    r = -ENOENT;
    if (zygote_fits(x->zygote, x->run))
        r = zygote_run(x->zygote, x->sandbox, x->run, &env, ret_pid, NULL);
    x->is_warm = r == 0;
    if (r < 0) {
        zygote_stop(x->zygote);
        r = start_plain(x, &env, ret_pid, err);
    }
    run_strings_finish(&env);
    sandbox_close_skill_ends(x->sandbox);
    return r;
}

/* Only a process that is gone has closed its connections. */
static bool has_connections(const struct loop *l)
{
    if (!l->net)
        return false;
    net_work(l->net);
    return net_is_used(l->net);
}

/*
 * The skill's process stopped. When that is its end and it is the last of the skill's, it stays
 * as it is, never to run again, and goes with the machine; else it goes on.
 */
static void take_stop(struct loop *l)
{
    uint8_t code;

    if (!zygote_is_over(l->x->zygote, &code))
        return;
    if (has_connections(l) || cgroup_freeze_last(&l->x->sandbox->cgroup) < 0) {
        (void)kill(l->pid, SIGCONT);
        return;
    }
    l->status = W_EXITCODE(code, 0);
    l->ended = true;
    l->kept = true;
}

/* Reaps every child that has ended; guest-init is everybody's last parent. */
static void reap(struct loop *l)
{
    for (;;) {
        struct rusage usage;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage);

        if (pid < 0 && errno == EINTR)
            continue;
        l->alone = pid < 0;
        if (pid <= 0)
            return;
        if (pid == l->pid && WIFSTOPPED(status)) {
            take_stop(l);
        } else if (pid == l->pid) {
            l->status = status;
            l->usage = usage;
            l->ended = true;
        }
    }
}

static void kill_all(struct loop *l)
{
    if (cgroup_kill(&l->x->sandbox->cgroup) == 0)
        return;
    /* Without a cgroup (tests) its process group has to do. */
    (void)kill(-l->pid, SIGKILL);
    (void)kill(l->pid, SIGKILL);
}

static void take_signals(struct loop *l)
{
    struct signalfd_siginfo info[8];

    while (read(l->x->signals, info, sizeof(info)) > 0)
        ;
    reap(l);
}

/* Passes on what one pipe holds, one chunk at a time. False at its end. */
static bool take_pipe(struct loop *l, int fd, uint8_t type)
{
    uint8_t data[PIPE_CHUNK];
    size_t room = frame_writer_room(l->x->writer);
    ssize_t n = read(fd, data, room < sizeof(data) ? room : sizeof(data));
    size_t keep;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    keep = (uint64_t)n < l->logs_left ? (size_t)n : (size_t)l->logs_left;
    l->logs_left -= keep;
    if (keep < (size_t)n)
        l->result.flags |= PROTO_EXIT_LOGS_TRUNCATED;
    if (keep > 0)
        (void)frame_writer_add(l->x->writer, type, data, keep);
    return true;
}

static int take_frames(struct loop *l, struct err *err)
{
    struct frame frame;
    int r = frame_reader_fill(l->x->reader, l->x->conn, MSG_DONTWAIT);

    if (r == 0)
        return -ECONNRESET;
    if (r < 0)
        return r == -EAGAIN ? 0 : r;
    while ((r = frame_reader_next(l->x->reader, &frame)) > 0) {
        if (l->net && net_take(l->net, &frame) == 0)
            continue;
        if (frame.type != PROTO_CANCEL || frame.len != 0)
            return err_set(err, EPROTO, "frame 0x%02x while the skill runs", frame.type);
        if (!(l->result.flags & PROTO_EXIT_TIMED_OUT))
            l->result.flags |= PROTO_EXIT_CANCELLED;
        kill_all(l);
    }
    return r;
}

/* The skill's connections, behind its output. */
static void work_on_network(struct loop *l)
{
    if (!l->net)
        return;
    net_work(l->net);
    l->net_has_more = net_send(l->net, l->x->writer);
}

/* How long nothing may happen. */
static int timeout_ms(const struct loop *l)
{
    /* With frames of the network's still to be made, once what fills the writer has left. */
    if (l->net_has_more && !frame_writer_pending(l->x->writer))
        return 0;
    return l->result.flags & (PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED)
               ? -1
               : clock_timeout_ms(l->deadline_ns);
}

static int poll_once(struct loop *l, struct err *err)
{
    struct execute *x = l->x;
    bool stopped = l->result.flags & (PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED);
    bool pending = frame_writer_pending(x->writer);
    /* Output waits in its pipe, and the skill with it, while the host does not read. */
    bool full = frame_writer_room(x->writer) < PIPE_CHUNK;
    struct pollfd p[] = {
        {.fd = x->conn, .events = (short)(POLLIN | (pending ? POLLOUT : 0))},
        {.fd = x->signals, .events = POLLIN},
        {.fd = full ? -1 : x->sandbox->out_read, .events = POLLIN},
        {.fd = full ? -1 : x->sandbox->err_read, .events = POLLIN},
        {.fd = l->net ? net_fd(l->net) : -1, .events = POLLIN},
    };
    int r = poll(p, 5, timeout_ms(l));

    if (r < 0)
        return errno == EINTR ? 0 : err_set_errno(err, errno, "poll");
    if (p[2].revents && !take_pipe(l, x->sandbox->out_read, PROTO_STDOUT))
        fd_close(&x->sandbox->out_read);
    if (p[3].revents && frame_writer_room(x->writer) > 0 &&
        !take_pipe(l, x->sandbox->err_read, PROTO_STDERR))
        fd_close(&x->sandbox->err_read);
    if (p[1].revents)
        take_signals(l);
    if (!stopped && clock_monotonic_ns() >= l->deadline_ns && !l->ended) {
        l->result.flags |= PROTO_EXIT_TIMED_OUT;
        kill_all(l);
    }
    if (p[0].revents & ~POLLOUT) {
        r = take_frames(l, err);
        if (r < 0)
            return r;
    }
    work_on_network(l);
    /* The last output leaves together with EXIT. */
    r = l->ended ? 0 : frame_writer_push(x->writer);
    return r == -EAGAIN ? 0 : r;
}

/* Ends what the skill left running and waits until it is gone, within reason. */
static void end_children(struct loop *l)
{
    uint64_t deadline = clock_monotonic_ns() + REAP_TIMEOUT_MS * 1000000ull;
    struct pollfd p = {.fd = l->x->signals, .events = POLLIN};

    if (l->kept)
        return;
    reap(l);
    if (l->alone && l->ended)
        return;
    kill_all(l);
    while (!(l->alone && l->ended) && clock_monotonic_ns() < deadline) {
        (void)poll(&p, 1, clock_timeout_ms(deadline));
        take_signals(l);
    }
}

static int drain_pipe(struct loop *l, int *fd, uint8_t type)
{
    struct pollfd p = {.fd = *fd, .events = POLLIN};
    int r = 0;

    /* Every writer is gone, so the pipe ends; one that would not is left at its first pause. */
    while (*fd >= 0 && poll(&p, 1, 0) > 0) {
        if (frame_writer_room(l->x->writer) < PIPE_CHUNK)
            r = frame_writer_flush(l->x->writer);
        if (r < 0 || !take_pipe(l, *fd, type))
            break;
    }
    fd_close(fd);
    return r;
}

static uint64_t timeval_us(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_usec;
}

/*
 * Nobody is ended for memory while files can give way, among them those of what runs: who is
 * nearly over the limit does little else than to read them again. All of its memory so often is
 * no chance.
 */
static bool memory_was_full(const struct loop *l)
{
    uint64_t bytes;

    return cgroup_read_again(&l->x->sandbox->cgroup, &bytes) == 0 &&
           bytes >= l->x->run->memory_bytes;
}

static void fill_result(struct loop *l)
{
    struct execute_result *result = &l->result;
    struct cgroup_usage usage;

    if (l->x->is_warm)
        result->flags |= PROTO_EXIT_WARM;
    if ((result->flags & PROTO_EXIT_TIMED_OUT) && memory_was_full(l))
        result->flags |= PROTO_EXIT_MEMORY_FULL;
    result->wall_us = (clock_monotonic_ns() - l->start_ns) / 1000u;
    if (WIFSIGNALED(l->status))
        result->signal = (uint32_t)WTERMSIG(l->status);
    else
        result->exit_code = (uint32_t)WEXITSTATUS(l->status);
    if (cgroup_read_usage(&l->x->sandbox->cgroup, &usage) == 0) {
        result->user_us = usage.user_us;
        result->system_us = usage.system_us;
        result->peak_bytes = usage.peak_bytes;
        result->not_started =
            usage.not_started < UINT32_MAX ? (uint32_t)usage.not_started : UINT32_MAX;
        if (usage.out_of_memory)
            result->flags |= PROTO_EXIT_OUT_OF_MEMORY;
    } else {
        result->user_us = timeval_us(l->usage.ru_utime);
        result->system_us = timeval_us(l->usage.ru_stime);
        result->peak_bytes = (uint64_t)l->usage.ru_maxrss * 1024u;
    }
}

/* From the start to an end that nothing of the skill's outlives. 0 or -errno. */
static int run_to_end(struct loop *l, struct err *err)
{
    int r;

    l->start_ns = clock_monotonic_ns();
    l->deadline_ns = l->start_ns + l->x->run->timeout_ms * 1000000u;
    r = start(l->x, &l->pid, err);
    if (r < 0)
        return r;
    while (r == 0 && !l->ended)
        r = poll_once(l, err);
    fill_result(l);
    end_children(l);
    return r;
}

static int drain_net(struct loop *l)
{
    uint64_t now = clock_monotonic_ns(), deadline_ns = l->deadline_ns;
    int r;

    if (!l->net || (l->result.flags & (PROTO_EXIT_TIMED_OUT | PROTO_EXIT_CANCELLED)))
        return 0;
    if (deadline_ns < now + DRAIN_MIN_NS)
        deadline_ns = now + DRAIN_MIN_NS;
    if (deadline_ns > now + DRAIN_MAX_NS)
        deadline_ns = now + DRAIN_MAX_NS;
    r = net_drain(l->net, l->x->reader, l->x->writer, deadline_ns);
    if (r != -ECANCELED)
        return r;
    l->result.flags |= PROTO_EXIT_CANCELLED;
    return 0;
}

/* What the skill said last: its output, and to others where nobody ended it. */
static int drain(struct loop *l)
{
    struct execute *x = l->x;
    int r = drain_net(l);

    if (r < 0)
        return r;
    r = drain_pipe(l, &x->sandbox->out_read, PROTO_STDOUT);
    return r < 0 ? r : drain_pipe(l, &x->sandbox->err_read, PROTO_STDERR);
}

static int run_once(struct loop *l, struct err *err)
{
    struct execute *x = l->x;
    int r;

    cgroup_begin(&x->sandbox->cgroup);
    /* Before the start: on one processor the skill may run to its end before this returns. */
    r = frame_writer_send(x->writer, PROTO_STARTED, NULL, 0);
    if (r < 0)
        return r;
    r = frame_writer_flush(x->writer);
    if (r < 0)
        return r;
    r = run_to_end(l, err);
    return r < 0 ? r : drain(l);
}

int execute_run(struct execute *x, struct execute_result *ret_result, struct err *err)
{
    struct loop l = {.x = x, .logs_left = x->run->log_bytes};
    int r;

    if (!skill_interpreter(x->sandbox, x->run))
        return err_set(err, ENOENT, "this image has no interpreter for the skill's language");
    if (x->run->has_network) {
        l.net = net_open(x->sandbox->config->dns_port, err);
        if (!l.net)
            return -EIO;
    }
    r = run_once(&l, err);
    net_close(l.net);
    if (r < 0)
        return r;
    *ret_result = l.result;
    return 0;
}
