/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures one lane, runs of one kind, in turn or from several clients at once, and nothing but
 * what a caller sees: executions through the daemon's socket, or runs of a command.
 *
 *   lane --socket PATH --body JSON [--clients N] [--fetch NAME] [--settled METRICS]… --runs N
 *   lane --runs N -- COMMAND…
 *
 * An execution is timed from before its client connects to the last byte of the answer, with
 * --fetch to the last byte of that artifact. Then it waits until, for each METRICS, names of
 * /metrics with blanks between them, the first is the sum of the others, or at least a number
 * among them: what goes on behind the answers is over. Prints one JSON object; statistics are
 * for others. Times are milliseconds, "at" since the first run's start. Exit 0 when every run
 * succeeded.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX     100000
#define CLIENTS_MAX  64
#define SETTLED_MAX  8
#define RESPONSE_MAX (16u << 20)
#define SETTLE_NS    (120 * 1000000000ull)
#define EXTRA_MAX    512

extern char **environ;

struct sample {
    uint64_t start_ns, end_ns;
    char extra[EXTRA_MAX]; /* more members of the printed object */
};

struct lane {
    const char *socket_path;
    struct buf request;
    const char *fetch;
    const char *settled[SETTLED_MAX];
    size_t n_settled;
    char **command;
    size_t runs, clients;
    struct sample *samples;
    atomic_size_t next;
    atomic_uint failed;
};

static int dial(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    strcpy(addr.sun_path, path);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return -errno;
    return fd_steal(&fd);
}

/* Sends the request and reads to the end of file. 0 or -errno; text is NUL-terminated. */
static int exchange(const char *socket_path, const struct buf *request, struct buf *response)
{
    _cleanup_fd_ int fd = dial(socket_path);
    ssize_t n = 1;
    int r;

    if (fd < 0)
        return fd;
    r = fd_write_full(fd, request->data, request->len);
    if (r < 0)
        return r;
    while (n != 0) {
        r = buf_reserve(response, 65536);
        if (r < 0)
            return r;
        n = read(fd, response->data + response->len, response->cap - response->len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            response->len += (size_t)n;
    }
    return buf_cstr(response) ? 0 : -ENOMEM;
}

static int get(const char *socket_path, const char *path, struct buf *response)
{
    struct buf request = buf_init(4096);
    int r = buf_printf(&request,
                       "GET %s HTTP/1.1\r\nHost: skillvm\r\nConnection: close\r\n\r\n", path);

    if (r == 0)
        r = exchange(socket_path, &request, response);
    buf_finish(&request);
    return r;
}

/* The text after `key`, to `last` and with it; "" where there is none. */
static const char *member(const char *text, const char *key, char last, int *ret_len)
{
    const char *at = strstr(text, key), *end = NULL;

    *ret_len = 0;
    if (at) {
        at += strlen(key);
        end = strchr(at, last);
    }
    if (!end)
        return "";
    *ret_len = (int)(end + 1 - at);
    return at;
}

static int fetch(const struct lane *lane, const char *answer, struct buf *response)
{
    char path[256];
    int len;
    const char *id = member(answer, "\"execution_id\":\"", '"', &len);

    (void)snprintf(path, sizeof(path), "/v1/executions/%.*s/files/%s", len - 1, id,
                   lane->fetch);
    return get(lane->socket_path, path, response);
}

static bool run_skill(const struct lane *lane, struct sample *sample)
{
    struct buf response = buf_init(RESPONSE_MAX), file = buf_init(RESPONSE_MAX);
    const char *text, *machine, *phases;
    int machine_len, phases_len, r;
    bool good;

    sample->start_ns = clock_monotonic_ns();
    r = exchange(lane->socket_path, &lane->request, &response);
    text = r == 0 ? buf_cstr(&response) : strerror(-r);
    good = r == 0 && strstr(text, "\"status\":\"success\"") != NULL;
    if (good && lane->fetch)
        good =
            fetch(lane, text, &file) == 0 && strncmp(buf_cstr(&file), "HTTP/1.1 200", 12) == 0;
    sample->end_ns = clock_monotonic_ns();
    if (!good)
        (void)fprintf(stderr, "lane: failed: %.600s\n", text);
    machine = member(text, "\"machine\":\"", '"', &machine_len);
    phases = member(text, "\"phases_ms\":{", '}', &phases_len);
    if (good && phases_len > 0)
        (void)snprintf(
            sample->extra, EXTRA_MAX, ",\"machine\":\"%.*s\",\"bytes\":%zu,\"phases_ms\":{%.*s",
            machine_len > 0 ? machine_len - 1 : 0, machine, file.len, phases_len, phases);
    buf_finish(&response);
    buf_finish(&file);
    return good;
}

static bool run_command(const struct lane *lane, struct sample *sample)
{
    posix_spawn_file_actions_t actions;
    int status = 0, r;
    pid_t pid;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    sample->start_ns = clock_monotonic_ns();
    r = posix_spawnp(&pid, lane->command[0], &actions, NULL, lane->command, environ);
    if (r == 0)
        (void)waitpid(pid, &status, 0);
    sample->end_ns = clock_monotonic_ns();
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0 || status != 0)
        (void)fprintf(stderr, "lane: %s: %s, wait status %d\n", lane->command[0], strerror(r),
                      status);
    return r == 0 && status == 0;
}

static void *client(void *arg)
{
    struct lane *lane = arg;
    size_t i;

    while ((i = atomic_fetch_add(&lane->next, 1)) < lane->runs) {
        struct sample *sample = &lane->samples[i];

        if (!(lane->command ? run_command(lane, sample) : run_skill(lane, sample)))
            atomic_fetch_add(&lane->failed, 1);
    }
    return NULL;
}

/*
 * Are the metrics there, and is the first the sum of the others? With a number among them it
 * may be more.
 */
static bool is_sum(const char *text, const char *metrics)
{
    bool first = true, exact = true;
    double left = 0;

    while (*metrics) {
        size_t len = strcspn(metrics, " ");
        const char *value = metrics, *at;
        char line[256];

        if (isdigit((unsigned char)*metrics)) {
            exact = false;
        } else {
            (void)snprintf(line, sizeof(line), "\n%.*s ", (int)len, metrics);
            at = strstr(text, line);
            if (!at)
                return false;
            value = at + strlen(line);
        }
        left += (first ? 1 : -1) * strtod(value, NULL);
        first = false;
        metrics += len + (metrics[len] == ' ');
    }
    return exact ? left == 0 : left >= 0;
}

/* One look at /metrics. */
static bool settled_now(const struct lane *lane, struct buf *text)
{
    buf_clear(text);
    if (get(lane->socket_path, "/metrics", text) < 0)
        return false;
    for (size_t i = 0; i < lane->n_settled; i++) {
        if (!is_sum(buf_cstr(text), lane->settled[i]))
            return false;
    }
    return true;
}

/* Waits for what goes on behind the answers. False when it does not end. */
static bool settle(const struct lane *lane)
{
    uint64_t deadline_ns = clock_monotonic_ns() + SETTLE_NS;
    struct buf text = buf_init(RESPONSE_MAX);
    bool settled = lane->n_settled == 0;

    while (!settled && clock_monotonic_ns() < deadline_ns) {
        settled = settled_now(lane, &text);
        if (!settled)
            (void)usleep(1000);
    }
    if (!settled)
        (void)fprintf(stderr, "lane: not settled: %.3000s\n", text.data ? buf_cstr(&text) : "");
    buf_finish(&text);
    return settled;
}

static void print(const struct lane *lane, uint64_t settled_ns)
{
    uint64_t first_ns = UINT64_MAX;

    for (size_t i = 0; i < lane->runs; i++) {
        if (lane->samples[i].start_ns < first_ns)
            first_ns = lane->samples[i].start_ns;
    }
    (void)printf("{\"failed\":%u,\"settled_at\":%.6f,\"samples\":[", atomic_load(&lane->failed),
                 (double)(settled_ns - first_ns) / 1e6);
    for (size_t i = 0; i < lane->runs; i++) {
        const struct sample *s = &lane->samples[i];

        (void)printf("%s\n{\"at\":%.6f,\"ms\":%.6f%s}", i ? "," : "",
                     (double)(s->start_ns - first_ns) / 1e6,
                     (double)(s->end_ns - s->start_ns) / 1e6, s->extra);
    }
    (void)printf("]}\n");
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: lane --socket PATH --body JSON [--clients N] [--fetch NAME] "
                          "[--settled METRICS]... --runs N\n"
                          "       lane --runs N -- COMMAND...\n");
    return 2;
}

static bool parse(struct lane *lane, int argc, char **argv, const char **ret_body)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"body", required_argument, NULL, 'b'},
                                            {"clients", required_argument, NULL, 'c'},
                                            {"fetch", required_argument, NULL, 'f'},
                                            {"settled", required_argument, NULL, 'm'},
                                            {"runs", required_argument, NULL, 'n'},
                                            {0}};
    int c;

    while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (c == 's')
            lane->socket_path = optarg;
        else if (c == 'b')
            *ret_body = optarg;
        else if (c == 'c')
            lane->clients = strtoul(optarg, NULL, 10);
        else if (c == 'f')
            lane->fetch = optarg;
        else if (c == 'm' && lane->n_settled < SETTLED_MAX)
            lane->settled[lane->n_settled++] = optarg;
        else if (c == 'n')
            lane->runs = strtoul(optarg, NULL, 10);
        else
            return false;
    }
    if (optind < argc)
        lane->command = argv + optind;
    return lane->runs > 0 && lane->runs <= RUNS_MAX && lane->clients > 0 &&
           lane->clients <= CLIENTS_MAX && (lane->socket_path && *ret_body) != !!lane->command;
}

int main(int argc, char **argv)
{
    struct lane lane = {.clients = 1, .request = buf_init(1u << 20)};
    pthread_t threads[CLIENTS_MAX] = {0};
    const char *body = NULL;
    uint64_t settled_ns;
    bool settled;

    if (!parse(&lane, argc, argv, &body))
        return usage();
    lane.samples = calloc(lane.runs, sizeof(*lane.samples));
    if (!lane.samples)
        return 1;
    if (body && buf_printf(&lane.request,
                           "POST /v1/executions HTTP/1.1\r\nHost: skillvm\r\n"
                           "Connection: close\r\nContent-Type: application/json\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           strlen(body), body) < 0)
        return 1;
    for (size_t i = 1; i < lane.clients; i++) {
        if (pthread_create(&threads[i], NULL, client, &lane) != 0)
            return 1;
    }
    (void)client(&lane);
    for (size_t i = 1; i < lane.clients; i++)
        (void)pthread_join(threads[i], NULL);
    settled = settle(&lane);
    settled_ns = clock_monotonic_ns();
    print(&lane, settled_ns);
    free(lane.samples);
    buf_finish(&lane.request);
    return settled && atomic_load(&lane.failed) == 0 ? 0 : 1;
}
