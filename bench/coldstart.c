/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures one whole execution after the other through the public API, in turn with peers in
 * the same run: from before the client connects to the last byte of the answer. It has no
 * start-up of its own in the figures and must never use anything but the daemon's socket.
 *
 *   coldstart --socket PATH --body JSON --runs N [--warmup N] [--peer NAME=COMMAND]…
 *
 * Prints one JSON object. Exit 0 when every execution succeeded.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX     100000
#define PEERS_MAX    8
#define WORDS_MAX    32
#define RESPONSE_MAX (16u << 20)

extern char **environ;

static const char *const phases[] = {"queue", "restore", "connect", "inject",
                                     "run",   "collect", "teardown"};
#define N_PHASES    (sizeof(phases) / sizeof(phases[0]))
#define PHASE_QUEUE 0u

struct series {
    double *ms;
    size_t n;
};

struct peer {
    const char *name;
    char *argv[WORDS_MAX + 1];
    struct series series;
};

static struct series series_new(size_t n)
{
    struct series s = {.ms = calloc(n, sizeof(double))};

    if (!s.ms) {
        fprintf(stderr, "coldstart: out of memory\n");
        exit(1);
    }
    return s;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(const struct series *s, double p)
{
    size_t rank = (size_t)(p / 100.0 * (double)s->n);

    return s->n == 0 ? 0 : s->ms[rank < s->n ? rank : s->n - 1];
}

static void series_print(struct series *s)
{
    double sum = 0;

    qsort(s->ms, s->n, sizeof(double), compare);
    for (size_t i = 0; i < s->n; i++)
        sum += s->ms[i];
    printf("{\"n\":%zu,\"min\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f,"
           "\"mean\":%.3f}",
           s->n, percentile(s, 0), percentile(s, 50), percentile(s, 90), percentile(s, 99),
           percentile(s, 100), s->n ? sum / (double)s->n : 0);
}

static int dial(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof(addr.sun_path))
        return -1;
    strcpy(addr.sun_path, path);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return -1;
    return fd_steal(&fd);
}

/* Sends the request and reads to the end of file. 0 or -errno; text is NUL-terminated. */
static int exchange(const char *socket_path, const struct buf *request, struct buf *response)
{
    _cleanup_fd_ int fd = dial(socket_path);
    int r;

    if (fd < 0)
        return -errno;
    r = fd_write_full(fd, request->data, request->len);
    while (r == 0) {
        ssize_t n;

        r = buf_reserve(response, 65536);
        if (r < 0)
            return r;
        n = read(fd, response->data + response->len, response->cap - response->len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0)
            response->len += (size_t)n;
    }
    return r == 0 && buf_cstr(response) ? 0 : -EIO;
}

static double number_after(const char *text, const char *key)
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    at = strstr(text, quoted);
    return at ? strtod(at + strlen(quoted), NULL) : -1;
}

/*
 * One execution: its whole cycle, its phases, and what is left of the cycle without those of
 * the machine, which is what the daemon adds to driving the machine.
 */
static void run_skill(const char *socket_path, const struct buf *request, bool keep,
                      struct series *cycle, struct series *phase, struct series *added,
                      unsigned *failed)
{
    struct buf response = buf_init(RESPONSE_MAX);
    uint64_t start_ns = clock_monotonic_ns(), end_ns;
    int r = exchange(socket_path, request, &response);
    const char *text = r == 0 ? buf_cstr(&response) : NULL, *at;

    end_ns = clock_monotonic_ns();
    if (!text || !strstr(text, "\"status\":\"success\"")) {
        fprintf(stderr, "coldstart: failed: %.600s\n", text ? text : strerror(-r));
        (*failed)++;
    } else if (keep) {
        double left = (double)(end_ns - start_ns) / 1e6;

        cycle->ms[cycle->n++] = left;
        at = strstr(text, "\"phases_ms\":");
        for (size_t i = 0; at && i < N_PHASES; i++) {
            double ms = number_after(at, phases[i]);

            phase[i].ms[phase[i].n++] = ms;
            if (i != PHASE_QUEUE)
                left -= ms;
        }
        if (at)
            added->ms[added->n++] = left;
    }
    buf_finish(&response);
}

static void run_peer(struct peer *peer, bool keep)
{
    uint64_t start_ns = clock_monotonic_ns();
    posix_spawn_file_actions_t actions;
    int status = 0, r;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    r = posix_spawnp(&pid, peer->argv[0], &actions, NULL, peer->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        waitpid(pid, &status, 0);
    if (r != 0 || status != 0)
        fprintf(stderr, "coldstart: peer %s failed\n", peer->name);
    else if (keep)
        peer->series.ms[peer->series.n++] = (double)(clock_monotonic_ns() - start_ns) / 1e6;
}

static bool peer_parse(struct peer *peer, char *text, size_t runs)
{
    char *equals = strchr(text, '='), *rest, *word;
    size_t n = 0;

    if (!equals)
        return false;
    *equals = '\0';
    rest = equals + 1;
    *peer = (struct peer){.name = text, .series = series_new(runs)};
    while ((word = strsep(&rest, " ")) != NULL) {
        if (*word && n < WORDS_MAX)
            peer->argv[n++] = word;
    }
    return n > 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: coldstart --socket PATH --body JSON --runs N [--warmup N] "
                    "[--peer NAME=COMMAND]...\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'}, {"body", required_argument, NULL, 'b'},
        {"runs", required_argument, NULL, 'n'},   {"warmup", required_argument, NULL, 'w'},
        {"peer", required_argument, NULL, 'p'},   {0}};
    const char *socket_path = NULL, *body = NULL;
    char *peer_text[PEERS_MAX];
    struct peer peers[PEERS_MAX];
    struct series cycle, added, phase[N_PHASES];
    struct buf request = buf_init(1u << 20);
    size_t runs = 0, warmup = 2, n_peers = 0;
    unsigned failed = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 's')
            socket_path = optarg;
        else if (c == 'b')
            body = optarg;
        else if (c == 'n')
            runs = strtoul(optarg, NULL, 10);
        else if (c == 'w')
            warmup = strtoul(optarg, NULL, 10);
        else if (c == 'p' && n_peers < PEERS_MAX)
            peer_text[n_peers++] = optarg;
        else
            return usage();
    }
    if (!socket_path || !body || runs == 0 || runs > RUNS_MAX)
        return usage();
    cycle = series_new(runs);
    added = series_new(runs);
    for (size_t i = 0; i < N_PHASES; i++)
        phase[i] = series_new(runs);
    for (size_t i = 0; i < n_peers; i++) {
        if (!peer_parse(&peers[i], peer_text[i], runs))
            return usage();
    }
    if (buf_printf(&request,
                   "POST /v1/executions HTTP/1.1\r\nHost: skillvm\r\nConnection: close\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(body), body) < 0)
        return 1;

    for (size_t i = 0; i < warmup + runs; i++) {
        run_skill(socket_path, &request, i >= warmup, &cycle, phase, &added, &failed);
        for (size_t p = 0; p < n_peers; p++)
            run_peer(&peers[p], i >= warmup);
    }

    printf("{\"failed\":%u,\"cycle_ms\":", failed);
    series_print(&cycle);
    printf(",\"phases_ms\":{");
    for (size_t i = 0; i < N_PHASES; i++) {
        printf("%s\"%s\":", i ? "," : "", phases[i]);
        series_print(&phase[i]);
    }
    printf("},\"daemon_ms\":");
    series_print(&added);
    printf(",\"peers_ms\":{");
    for (size_t i = 0; i < n_peers; i++) {
        printf("%s\"%s\":", i ? "," : "", peers[i].name);
        series_print(&peers[i].series);
    }
    printf("}}\n");
    return failed ? 1 : 0;
}
