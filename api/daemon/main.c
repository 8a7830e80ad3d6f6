/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skillvmd: puts the daemon together, serves until a signal, takes it apart. Only this file
 * exits and only it reads the command line.
 */
#include "api/daemon/daemon.h"
#include "api/daemon/limits.h"
#include "api/daemon/store.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE      2
#define FILES_MAX       65536u
#define BOOT_TIMEOUT_MS 20000u /* times the grace over its default */

struct options {
    const char *socket_path;
    const char *data_path;
    const char *share_path; /* NULL: found next to the program */
    const char *vmm_path;   /* NULL: the program's sibling */
    unsigned long max_running;
    unsigned long max_queued;
    unsigned long grace_s;
    unsigned long stop_timeout_s;
    unsigned long socket_mode;
};

static const char usage_text[] =
    "Usage: skillvmd --socket PATH --data DIR [options]\n"
    "Runs skills in microVMs for clients of an HTTP API on a unix socket.\n"
    "\n"
    "  --socket PATH        the unix socket to listen on\n"
    "  --data DIR           skills, executions, artifacts and snapshots\n"
    "  --share DIR          guest kernel and images (default: $SKILLVM_SHARE, else\n"
    "                       ../share/skillvm beside this program)\n"
    "  --vmm PATH           the skillvm-vmm program (default: beside this program)\n"
    "  --max-running N      executions at the same time (default 2, at most 256)\n"
    "  --max-queued N       executions that wait; more get 429 (default 64)\n"
    "  --grace SECONDS      how long a guest may be late before it is killed (default 5)\n"
    "  --stop-timeout SECONDS  how long running executions may go on after SIGTERM\n"
    "                       (default 10); then they are cancelled\n"
    "  --socket-mode MODE   octal permissions of the socket (default 0660)\n"
    "  --help, --version\n";

static int parse_number(const char *text, int base, unsigned long min, unsigned long max,
                        unsigned long *ret)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, base);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < min || value > max)
        return -EINVAL;
    *ret = value;
    return 0;
}

/* 0 to go on; 1 when the program is done; -EINVAL with the reason on standard error. */
static int parse_options(int argc, char **argv, struct options *o)
{
    enum { SOCKET = 1, DATA, SHARE, VMM, RUNNING, QUEUED, GRACE, STOP, MODE, HELP, VERSION };
    static const struct option known[] = {
        {"socket", required_argument, NULL, SOCKET},
        {"data", required_argument, NULL, DATA},
        {"share", required_argument, NULL, SHARE},
        {"vmm", required_argument, NULL, VMM},
        {"max-running", required_argument, NULL, RUNNING},
        {"max-queued", required_argument, NULL, QUEUED},
        {"grace", required_argument, NULL, GRACE},
        {"stop-timeout", required_argument, NULL, STOP},
        {"socket-mode", required_argument, NULL, MODE},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    int option, index = 0, r = 0;

    while (r == 0 && (option = getopt_long(argc, argv, "", known, &index)) != -1) {
        switch (option) {
        case SOCKET:
            o->socket_path = optarg;
            break;
        case DATA:
            o->data_path = optarg;
            break;
        case SHARE:
            o->share_path = optarg;
            break;
        case VMM:
            o->vmm_path = optarg;
            break;
        case RUNNING:
            r = parse_number(optarg, 10, 1, 256, &o->max_running);
            break;
        case QUEUED:
            r = parse_number(optarg, 10, 1, 100000, &o->max_queued);
            break;
        case GRACE:
            r = parse_number(optarg, 10, 1, 600, &o->grace_s);
            break;
        case STOP:
            r = parse_number(optarg, 10, 0, 3600, &o->stop_timeout_s);
            break;
        case MODE:
            r = parse_number(optarg, 8, 0, 0777, &o->socket_mode);
            break;
        case HELP:
            (void)fputs(usage_text, stdout);
            return 1;
        case VERSION:
            (void)puts("skillvmd " SKILLVM_VERSION);
            return 1;
        default:
            (void)fputs("skillvmd --help says what there is\n", stderr);
            return -EINVAL;
        }
    }
    if (r < 0) {
        (void)fprintf(stderr, "skillvmd: --%s does not take %s\n", known[index].name, optarg);
        return r;
    }
    if (optind < argc || !o->socket_path || !o->data_path) {
        (void)fprintf(stderr, "skillvmd: %s\n%s",
                      optind < argc ? "unexpected argument" : "--socket and --data are needed",
                      usage_text);
        return -EINVAL;
    }
    return 0;
}

/* Paths of what belongs to this installation. */
struct places {
    char vmm[PATH_MAX];
    char kernel[PATH_MAX];
    char image[PATH_MAX];
};

static int find_places(const struct options *o, struct places *ret, struct err *err)
{
    const char *env = getenv("SKILLVM_SHARE");
    char program[PATH_MAX];
    char share[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    const char *folder;
    int len;

    if (n < 0)
        return err_set_errno(err, errno, "cannot find this program");
    program[n] = '\0';
    folder = dirname(program);
    if (o->share_path || (env && *env))
        len = snprintf(share, sizeof(share), "%s", o->share_path ? o->share_path : env);
    else
        len = snprintf(share, sizeof(share), "%s/../share/skillvm", folder);
    if (len < 0 || (size_t)len >= sizeof(share) - 32)
        return err_set(err, ENAMETOOLONG, "the path of the share folder is too long");
    if (o->vmm_path)
        len = snprintf(ret->vmm, sizeof(ret->vmm), "%s", o->vmm_path);
    else
        len = snprintf(ret->vmm, sizeof(ret->vmm), "%s/skillvm-vmm", folder);
    if (len < 0 || (size_t)len >= sizeof(ret->vmm))
        return err_set(err, ENAMETOOLONG, "the path of skillvm-vmm is too long");
    (void)snprintf(ret->kernel, sizeof(ret->kernel), "%.4000s/vmlinux", share);
    (void)snprintf(ret->image, sizeof(ret->image), "%.4000s/python.erofs", share);
    if (access(ret->vmm, X_OK) < 0)
        return err_set_errno(err, errno, "cannot run %s", ret->vmm);
    return 0;
}

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

static int start_engine(struct daemon *d, const struct options *o, const struct places *places,
                        struct err *err)
{
    const struct engine_config config = {
        .env = {.registry = d->registry,
                .snapshots = d->snapshots,
                .metrics = d->metrics,
                .vmm_program = places->vmm,
                .tmp_fd = d->tmp_fd,
                .artifacts_fd = d->artifacts_fd,
                .grace_ms = o->grace_s * 1000},
        .max_running = (unsigned)o->max_running,
        .max_queued = (unsigned)o->max_queued,
    };

    return engine_create(&config, &d->engine, err);
}

static int start_http(struct daemon *d, const struct options *o, struct http_server **ret,
                      struct err *err)
{
    const struct http_config config = {.socket_path = o->socket_path,
                                       .socket_mode = (mode_t)o->socket_mode,
                                       .tmp_fd = d->tmp_fd,
                                       .routes = daemon_routes,
                                       .ctx = d};

    return http_start(&config, ret, err);
}

static int serve(struct daemon *d, const struct options *o, const sigset_t *stop,
                 struct err *err)
{
    struct http_server *http;
    int signal_number = 0;
    int r = start_http(d, o, &http, err);

    if (r < 0)
        return r;
    log_info("skillvmd", "listening socket=\"%s\" version=" SKILLVM_VERSION, o->socket_path);
    while (sigwait(stop, &signal_number) != 0)
        ;
    log_info("skillvmd", "stopping signal=%d", signal_number);
    http_quiesce(http);
    engine_stop(d->engine, o->stop_timeout_s * 1000);
    http_stop(http);
    log_info("skillvmd", "stopped");
    return 0;
}

static int run(const struct options *o, const sigset_t *stop, struct err *err)
{
    struct daemon d = {.tmp_fd = -1,
                       .objects_fd = -1,
                       .artifacts_fd = -1,
                       .store_lock = PTHREAD_MUTEX_INITIALIZER};
    struct snapshots_config snapshots = {.memory_mib = GUEST_MEMORY_MIB,
                                         .boot_timeout_ms = BOOT_TIMEOUT_MS * o->grace_s,
                                         .grace_ms = o->grace_s * 1000};
    struct places places;
    struct store store;
    char db_path[PATH_MAX];
    int r = find_places(o, &places, err);

    if (r < 0)
        return r;
    r = store_open(o->data_path, &store, err);
    if (r < 0)
        return r;
    d.tmp_fd = store.tmp_fd;
    d.objects_fd = store.objects_fd;
    d.artifacts_fd = store.artifacts_fd;
    (void)sem_init(&d.ingest_gate, 0, DAEMON_INGESTS);
    (void)snprintf(db_path, sizeof(db_path), "%.4000s/skillvm.db", o->data_path);
    r = registry_open(db_path, &d.registry, err);
    if (r == 0)
        r = store_recover(&store, d.registry, err);
    if (r == 0)
        r = store_sweep(&store, d.registry, err);
    snapshots.vmm_program = places.vmm;
    snapshots.kernel_path = places.kernel;
    snapshots.image_path = places.image;
    snapshots.snapshots_fd = store.snapshots_fd;
    snapshots.tmp_fd = store.tmp_fd;
    if (r == 0 && !(d.metrics = metrics_create()))
        r = err_set(err, ENOMEM, "out of memory");
    if (r == 0)
        r = snapshots_create(&snapshots, &d.snapshots, err);
    if (r == 0)
        r = start_engine(&d, o, &places, err);
    if (r == 0) {
        r = serve(&d, o, stop, err);
        /* Where serving never began the workers still wait. */
        if (r < 0)
            engine_stop(d.engine, 0);
    }
    engine_destroy(d.engine);
    metrics_destroy(d.metrics);
    snapshots_destroy(d.snapshots);
    registry_close(d.registry);
    store_close(&store);
    return r;
}

int main(int argc, char **argv)
{
    struct options options = {
        .max_running = 2,
        .max_queued = 64,
        .grace_s = 5,
        .stop_timeout_s = 10,
        .socket_mode = 0660,
    };
    struct err err = {0};
    sigset_t stop;
    int r;

    tidy_fds();
    (void)umask(077);
    r = parse_options(argc, argv, &options);
    if (r != 0)
        return r < 0 ? EXIT_USAGE : 0;
    raise_file_limit();
    bound_heap();
    block_signals(&stop);
    if (run(&options, &stop, &err) < 0) {
        log_error("skillvmd", "reason=\"%s\"", err.message);
        return 1;
    }
    return 0;
}
