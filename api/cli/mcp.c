/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm mcp`: the Model Context Protocol on standard input and output. */
#include "api/cli/cli.h"
#include "api/cli/upstream.h"
#include "api/cli/verbs.h"
#include "api/mcp/lines.h"
#include "api/mcp/output.h"
#include "api/mcp/server.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define READ_MAX      65536u
#define WATCH_MS      3000u
#define PROGRESS_MS   100u
#define CANCEL_END_MS 8000u

struct mcp_process {
    struct mcp_server *server;
    struct upstream upstream;
    struct output output;
    int signal_fd;
};

static int perform(void *ctx, const struct skillvm_request *request,
                   struct skillvm_error *error)
{
    struct mcp_process *s = ctx;

    return upstream_perform(&s->upstream, request, error);
}

static void send_line(void *ctx, const char *line, size_t len)
{
    struct mcp_process *s = ctx;

    output_write(&s->output, line, len);
}

static void take_line(void *ctx, const char *line, size_t len)
{
    struct mcp_process *s = ctx;

    mcp_server_take(s->server, line, len);
}

/*
 * Standard output carries the protocol and nothing else: whatever else this program or a child
 * of it prints there goes to standard error.
 */
static int take_output(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        fd_close(&fd);
    return fd;
}

/* The signals that end it, as a descriptor that the writer can wait for too. */
static int open_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, ret_set, NULL))
        return -1;
    return signalfd(-1, ret_set, SFD_CLOEXEC);
}

/* Until the client ends its output, stops reading ours, or a signal comes. 0 or -errno. */
static int serve(struct mcp_process *s)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->output.fd, .events = 0}};
    char *data = malloc(READ_MAX);
    struct lines lines;
    int r = data ? 0 : -ENOMEM;

    lines_init(&lines, MCP_LINE_MAX, take_line, s);
    while (r == 0 && !s->output.broken) {
        if (poll(fds, 3, -1) < 0) {
            r = errno == EINTR ? 0 : -errno;
            continue;
        }
        if (fds[1].revents || fds[2].revents)
            break;
        ssize_t n = read(STDIN_FILENO, data, READ_MAX);
        if (n == 0)
            break;
        if (n < 0)
            r = errno == EINTR || errno == EAGAIN ? 0 : -errno;
        else
            r = lines_push(&lines, data, (size_t)n);
    }
    lines_finish(&lines);
    free(data);
    return r;
}

/*
 * A daemon that is just being started is not waited for: cli_interrupted() says so from here
 * on. One signal, and no second one, which would end the process before it has tidied up.
 */
static void interrupt_start(const sigset_t *set)
{
    _cleanup_fd_ int pending = signalfd(-1, set, SFD_CLOEXEC);

    if (!fd_is_readable(pending))
        (void)raise(SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
    pthread_sigmask(SIG_BLOCK, set, NULL);
}

int cmd_mcp(const struct cli *cli, const struct options *options)
{
    struct mcp_process s = {.output = {.fd = -1}};
    const struct mcp_config config = {.perform = perform,
                                      .send = send_line,
                                      .ctx = &s,
                                      .no_network = options->no_network,
                                      .watch_ms = WATCH_MS,
                                      .progress_ms = PROGRESS_MS,
                                      .cancel_end_ms = CANCEL_END_MS};
    sigset_t set;
    int r;

    cli_catch_interrupts();
    s.signal_fd = s.output.stop_fd = open_signals(&set);
    s.output.fd = take_output();
    if (s.signal_fd < 0 || s.output.fd < 0) {
        cli_say("cannot prepare standard output: %s", strerror(errno));
        return CLI_FAILED;
    }
    upstream_init(&s.upstream, cli, options->host);
    if (mcp_server_create(&config, &s.server) < 0)
        return verbs_no_memory();
    r = serve(&s);
    if (r < 0)
        cli_say("reading standard input failed: %s", strerror(-r));
    interrupt_start(&set);
    if (!mcp_server_stop(s.server)) {
        /* Its threads still use all of this: the end of the process ends them. */
        cli_say("a request did not end in time and is left behind");
        _exit(CLI_FAILED);
    }
    mcp_server_free(s.server);
    upstream_finish(&s.upstream);
    fd_close(&s.output.fd);
    fd_close(&s.signal_fd);
    return r < 0 ? CLI_FAILED : CLI_OK;
}
