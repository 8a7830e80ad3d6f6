/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvmd: prepares the process, reads the settings, serves. Only this file exits.
 */
#include "api/daemon/activation.h"
#include "api/daemon/config/config_options.h"
#include "api/daemon/lifecycle.h"
#include "api/daemon/notify.h"
#include "api/daemon/serve.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define FILES_MAX  65536u
#define PRINT_MAX  65536u

extern char **environ;

/* The three standard descriptors are open, whoever started the program. */
static void open_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    fd_close(&fd);
}

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * Memory that comes and goes with executions goes back to the system: few arenas, and large
 * blocks mapped on their own for good (the library would raise that bound by itself).
 */
static void bound_heap(void)
{
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, 512 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
}

static void block_signals(sigset_t *ret)
{
    (void)signal(SIGPIPE, SIG_IGN);
    /* Where whoever started it ignored this, none of its machines could be waited for. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGTERM);
    (void)sigaddset(ret, SIGINT);
    (void)sigaddset(ret, SIGHUP);
    /* Every thread inherits this: the main one waits for them. */
    (void)pthread_sigmask(SIG_BLOCK, ret, NULL);
}

/* What no single value can be wrong about. */
static int check_whole(const struct config *config, const struct activation *sockets,
                       struct err *err)
{
    if (!*config->data_path)
        return err_set(err, EINVAL, "no data folder: set data or give --data DIR");
    if (!*config->socket_path && !*config->listen_address && sockets->unix_fd < 0 &&
        sockets->tcp_fd < 0)
        return err_set(err, EINVAL, "nowhere to listen: set socket.path or give --socket PATH");
    return 0;
}

static int print(const struct config *config, struct err *err)
{
    _cleanup_buf_ struct buf text = buf_init(PRINT_MAX);
    int r = config_write(config, &text) < 0 ? text.error
                                            : fd_write_full(STDOUT_FILENO, text.data, text.len);

    return r < 0 ? err_set_errno(err, -r, "cannot write the settings") : 0;
}

static int run(const struct config_options *options, const struct config_sources *sources,
               struct config *config, struct activation *sockets, struct err *err)
{
    struct notify notify;
    sigset_t signals;
    int r;
    const struct serve serve = {.sources = sources,
                                .config = config,
                                .sockets = sockets,
                                .notify = &notify,
                                .signals = &signals};

    if (options->action == OPTIONS_CHECK) {
        (void)puts("the settings are good");
        return 0;
    }
    if (options->action == OPTIONS_PRINT)
        return print(config, err);
    log_set_level((enum log_level)config->log_level);
    raise_file_limit();
    bound_heap();
    block_signals(&signals);
    notify = notify_open();
    r = serve_run(&serve, err);
    if (r < 0)
        notify_send(&notify, "STATUS=%s\nERRNO=%d", err->message, -r);
    notify_close(&notify);
    return r;
}

/* The settings, and whether they are good together. */
static int read_settings(const struct config_options *options,
                         const struct config_sources *sources, const struct activation *sockets,
                         struct config *ret, struct err *err)
{
    int r = config_read(sources, lifecycle_warn, NULL, ret, err);

    return r < 0 || options->action != OPTIONS_SERVE ? r : check_whole(ret, sockets, err);
}

static int refuse(struct config *config, const struct err *err)
{
    log_error("skillvmd", "%s", err->message);
    config_finish(config);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct config_sources sources = {.environment = (const char *const *)environ};
    struct activation sockets = activation_init();
    struct config_options options = {.action = OPTIONS_SERVE};
    struct config config = {0};
    struct err err = {0};
    int r = activation_take(&sockets, &err);

    open_standard_fds();
    (void)log_detect_journal();
    (void)umask(077);
    if (r < 0)
        return refuse(&config, &err);
    if (config_options_parse(argc, argv, &options) < 0)
        return EXIT_USAGE;
    if (options.action == OPTIONS_DONE)
        return 0;
    sources.file = options.config_file;
    sources.overrides = options.overrides;
    sources.n_overrides = options.n_overrides;
    r = read_settings(&options, &sources, &sockets, &config, &err);
    if (r < 0)
        return refuse(&config, &err);
    r = run(&options, &sources, &config, &sockets, &err);
    config_finish(&config);
    activation_finish(&sockets);
    if (r < 0) {
        log_error("skillvmd", "reason=\"%s\"", err.message);
        return 1;
    }
    return 0;
}
