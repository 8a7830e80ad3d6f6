/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvmd: prepares the process, reads the settings, serves. Only this file exits.
 */
#include "api/daemon/options.h"
#include "api/daemon/serve.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define FILES_MAX  65536u
#define PRINT_MAX  65536u

extern char **environ;

/* The three standard descriptors are open and no other is, whoever started the program. */
static void tidy_fds(void)
{
    int fd;

    (void)close_range(STDERR_FILENO + 1, UINT_MAX, 0);
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

static void block_signals(sigset_t *ret_stop)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(ret_stop);
    (void)sigaddset(ret_stop, SIGTERM);
    (void)sigaddset(ret_stop, SIGINT);
    /* Every thread inherits this: the main one takes them with sigwait. */
    (void)pthread_sigmask(SIG_BLOCK, ret_stop, NULL);
}

static void warn(void *ctx, const char *text)
{
    (void)ctx;
    log_warn("config", "%s", text);
}

/* What no single value can be wrong about. */
static int check_whole(const struct config *config, struct err *err)
{
    if (!*config->data_path)
        return err_set(err, EINVAL, "no data folder: set data or give --data DIR");
    if (!*config->socket_path)
        return err_set(err, EINVAL, "nowhere to listen: set socket.path or give --socket PATH");
    return 0;
}

static int print(const struct config *config, struct err *err)
{
    struct buf text = buf_init(PRINT_MAX);
    int r = config_write(config, &text);

    if (r == 0)
        r = fd_write_full(STDOUT_FILENO, text.data, text.len);
    buf_finish(&text);
    return r < 0 ? err_set_errno(err, -r, "cannot write the settings") : 0;
}

static int act(const struct options *options, const struct config *config, const sigset_t *stop,
               struct err *err)
{
    switch (options->action) {
    case OPTIONS_CHECK:
        (void)puts("the settings are good");
        return 0;
    case OPTIONS_PRINT:
        return print(config, err);
    default:
        return serve_run(config, stop, err);
    }
}

int main(int argc, char **argv)
{
    struct config_sources sources = {.environment = (const char *const *)environ};
    struct options options;
    struct config config = {0};
    struct err err = {0};
    sigset_t stop;
    int r;

    tidy_fds();
    (void)umask(077);
    if (options_parse(argc, argv, &options) < 0)
        return EXIT_USAGE;
    if (options.action == OPTIONS_DONE)
        return 0;
    sources.file = options.config_file;
    sources.overrides = options.overrides;
    sources.n_overrides = options.n_overrides;
    r = config_read(&sources, warn, NULL, &config, &err);
    if (r == 0 && options.action != OPTIONS_PRINT)
        r = check_whole(&config, &err);
    if (r < 0) {
        (void)fprintf(stderr, "skillvmd: %s\n", err.message);
        config_finish(&config);
        return EXIT_USAGE;
    }
    log_set_level((enum log_level)config.log_level);
    raise_file_limit();
    bound_heap();
    block_signals(&stop);
    r = act(&options, &config, &stop, &err);
    config_finish(&config);
    if (r < 0) {
        log_error("skillvmd", "reason=\"%s\"", err.message);
        return 1;
    }
    return 0;
}
