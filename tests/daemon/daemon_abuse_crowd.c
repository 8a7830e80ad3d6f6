/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many callers at once, against a real skillvmd on its unix socket and on TCP: idle, slow, gone
 * again, or with executions of their own. Others are served at once, and memory stays.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CRLF "\r\n"
#define HOST "Host: x" CRLF

#define expect harness_expect

#define CROWD  1000u
#define PROBES 400u

/* What 1,000 idle connections may cost the daemon. */
#ifdef __SANITIZE_ADDRESS__
#define CROWD_KIB (128 * 1024)
#else
#define CROWD_KIB (32 * 1024)
#endif

static long memory_kib(const struct harness *h)
{
    return harness_status(h, "VmRSS:");
}

/* Idle connections have no threads, as soon as those that answered them have ended. */
static void expect_threads(const struct harness *h, long n)
{
    harness_until(harness_status(h, "Threads:") <= n);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Answers that nothing had to be done for: what this machine takes for any. Never returns. */
static void answer_barely(int listener)
{
    static const char answer[] = "HTTP/1.1 200 OK" CRLF "Content-Length: 2" CRLF CRLF "ok";
    char request[512];

    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (recv(fd, request, sizeof(request), 0) > 0)
            (void)!send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(fd);
    }
}

/* A process that answers beside the daemon. It ends with this one. */
static pid_t start_bare(struct harness *bare)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;

    strcat(bare->socket, ".bare");
    memcpy(address.sun_path, bare->socket, strlen(bare->socket) + 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 10), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        answer_barely(fd);
    }
    close(fd);
    return pid;
}

static void stop_bare(const struct harness *bare, pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(unlink(bare->socket), 0);
}

static uint64_t probe_us(const struct harness *h)
{
    const uint64_t begin_ns = clock_monotonic_ns();

    expect(harness_get(h, "/health"), 200, "ok");
    return (clock_monotonic_ns() - begin_ns) / 1000;
}

/*
 * GET /health again and again, connecting each time, and a bare answer each time; prints what
 * they took. Whether those of the daemon took hardly longer.
 */
static bool probe_once(const struct harness *h, const char *while_what)
{
    struct harness bare = *h;
    const pid_t pid = start_bare(&bare);
    uint64_t took_us[PROBES], bare_us[PROBES];
    const size_t p99 = PROBES * 99 / 100;

    for (size_t i = 0; i < PROBES; i++) {
        bare_us[i] = probe_us(&bare);
        took_us[i] = probe_us(h);
    }
    stop_bare(&bare, pid);
    qsort(took_us, PROBES, sizeof(took_us[0]), compare);
    qsort(bare_us, PROBES, sizeof(bare_us[0]), compare);
    print_message("health while %s: p50 %.2f ms, p99 %.2f ms, max %.2f ms; bare p99 %.2f ms\n",
                  while_what, (double)took_us[PROBES / 2] / 1000, (double)took_us[p99] / 1000,
                  (double)took_us[PROBES - 1] / 1000, (double)bare_us[p99] / 1000);
    return took_us[p99] < bare_us[p99] + 50000;
}

/* What somebody holds up he holds up each time; what else this machine does may come between.
 */
static void probe_health(const struct harness *h, const char *while_what)
{
    unsigned tries = 5;

    while (!probe_once(h, while_what))
        assert_int_not_equal(--tries, 0);
}

static void allow_files(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < CROWD + 100)
        skip();
}

/* Silent ones, halves of heads, and kept ones that had an answer. */
static void a_thousand_idle_connections_harm_nobody(void **state)
{
    static const char whole[] = "GET /health HTTP/1.1" CRLF HOST CRLF;
    struct harness *h = *state;
    int fds[CROWD];
    long before_kib, threads;
    char text[512];

    allow_files();
    probe_health(h, "alone");
    threads = harness_status(h, "Threads:");
    before_kib = memory_kib(h);
    for (size_t i = 0; i < CROWD; i++) {
        const size_t len = i % 4 == 0 ? sizeof(whole) - 1 : i % 4 == 1 ? sizeof(whole) / 2 : 0;

        fds[i] = harness_connect_by(h, i % 2);
        assert_int_equal(fd_write_full(fds[i], whole, len), 0);
        if (i % 4 == 0)
            assert_true(recv(fds[i], text, sizeof(text), 0) > 0);
    }
    print_message("memory: %ld KiB, %ld KiB with %u idle connections\n", before_kib,
                  memory_kib(h), CROWD);
    assert_true(memory_kib(h) - before_kib < CROWD_KIB);
    expect_threads(h, threads);
    probe_health(h, "1,000 connections are idle");
    expect(harness_run(h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    for (size_t i = 0; i < CROWD; i++)
        close(fds[i]);
    probe_health(h, "1,000 connections end");
}

struct trickle {
    int fds[CROWD];
    atomic_bool stop;
};

/* A byte of a header to each, over and over. */
static void *send_bytes(void *arg)
{
    struct trickle *t = arg;

    while (!atomic_load(&t->stop)) {
        for (size_t i = 0; i < CROWD; i++)
            (void)!send(t->fds[i], "a", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)usleep(50000);
    }
    return NULL;
}

static void a_thousand_slow_connections_harm_nobody(void **state)
{
    static const char head[] = "GET /health HTTP/1.1" CRLF HOST "X: ";
    struct harness *h = *state;
    struct trickle t = {.stop = false};
    pthread_t thread;

    allow_files();
    for (size_t i = 0; i < CROWD; i++) {
        t.fds[i] = harness_connect_by(h, i % 2);
        assert_int_equal(fd_write_full(t.fds[i], head, sizeof(head) - 1), 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, send_bytes, &t), 0);
    (void)usleep(500000);
    probe_health(h, "1,000 connections send by the byte");
    atomic_store(&t.stop, true);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < CROWD; i++)
        close(t.fds[i]);
}

struct mischief {
    const struct harness *h;
    atomic_bool stop;
};

/* Until told to stop: requests, halves of them and what is none, cut off at once. */
static void *misbehave(void *arg)
{
    static const char *const texts[] = {
        "GET /health HTTP/1.1" CRLF HOST CRLF, "\x16\x03\x01\x02", "GET /hea",
        "POST /v1/executions HTTP/1.1" CRLF HOST "Content-Length: 16" CRLF CRLF
        "{\"skill\":\"demo\"}",
        "POST /v1/executions HTTP/1.1" CRLF HOST "Accept: text/event-stream" CRLF
        "Content-Length: 16" CRLF CRLF "{\"skill\":\"demo\"}"};
    struct mischief *m = arg;

    for (unsigned i = 0; !atomic_load(&m->stop); i++) {
        const char *text = texts[i % 5];
        int fd = harness_connect_by(m->h, i % 2);

        (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
        if (i % 3 == 0)
            (void)usleep(1000);
        close(fd);
    }
    return NULL;
}

/* Connections end while machines start, and the other way round. */
static void callers_that_leave_at_once_harm_nobody(void **state)
{
    struct harness *h = *state;
    const unsigned fds = harness_count_fds(h);
    struct mischief m = {.h = h};
    pthread_t threads[6];

    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, misbehave, &m), 0);
    for (int i = 0; i < 50; i++) {
        struct answer a = harness_run(h, "{\"skill\":\"demo\"}");

        assert_true(a.status == 200 || a.status == 429);
        answer_finish(&a);
        expect(harness_get(h, "/health"), 200, "ok");
    }
    atomic_store(&m.stop, true);
    for (size_t i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    harness_assert_clean(h);
    harness_until(harness_count_fds(h) <= fds + 1);
}

static void executions_do_not_slow_health(void **state)
{
    static const char endless[] = "{\"skill\":\"demo\",\"async\":true,\"timeout\":600,"
                                  "\"env\":{\"FAKE\":\"ticks\"}}";
    char paths[8][64];

    for (size_t i = 0; i < 8; i++) {
        struct answer a = harness_run(*state, endless);

        assert_int_equal(a.status, 202);
        answer_execution_path(&a, paths[i], sizeof(paths[i]));
        answer_finish(&a);
    }
    harness_wait_executions(*state, "running", 8);
    probe_health(*state, "8 executions run");
    for (size_t i = 0; i < 8; i++)
        expect(harness_request(*state, "DELETE", paths[i], "", NULL, 0), 202, "cancelling");
    harness_wait_executions(*state, "running", 0);
}

static unsigned count_unread(const struct harness *h)
{
    struct answer a = harness_get(h, "/v1/executions?skill=unread&status=success&limit=200");
    unsigned n = answer_count(&a, "execution_id");

    answer_finish(&a);
    return n;
}

/* Events that nobody takes keep what they still have to say, and no more of the result. */
static void unread_results_cost_no_memory(void **state)
{
    static const char body[] = "{\"skill\":\"unread\",\"env\":{\"FAKE\":\"flood\"}}";
    struct harness *h = *state;
    char request[512];
    long before;
    int fds[40];

    snprintf(request, sizeof(request),
             "POST /v1/executions HTTP/1.1" CRLF HOST "Accept: text/event-stream" CRLF
             "Content-Type: application/json" CRLF "Content-Length: %zu" CRLF CRLF "%s",
             sizeof(body) - 1, body);
    assert_int_equal(harness_push(h, "unread", "1", "print(1)"), 201);
    expect(harness_run(h, body), 200, "\"status\":\"success\"");
    before = memory_kib(h);
    for (size_t i = 0; i < 40; i++) {
        fds[i] = harness_connect_by(h, false);
        assert_int_equal(fd_write_full(fds[i], request, strlen(request)), 0);
    }
    harness_until(count_unread(h) == 41);
    print_message("memory: %ld KiB, %ld KiB with 40 results of 2 MiB unread\n", before,
                  memory_kib(h));
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
    /* The logs, of one MiB each, are in memory. */
    assert_true(memory_kib(h) - before < 40 * 2560);
#endif
    for (size_t i = 0; i < 40; i++)
        close(fds[i]);
}

/* This and the daemon, before all else that the machine does: where that is permitted. */
static void go_first(void)
{
    const struct sched_param lowest = {.sched_priority = 1};

    if (sched_setscheduler(0, SCHED_RR, &lowest) < 0)
        print_message("not before other work: %s\n", strerror(errno));
}

int main(void)
{
    const struct CMUnitTest untimed[] = {
        cmocka_unit_test(callers_that_leave_at_once_harm_nobody),
        cmocka_unit_test(unread_results_cost_no_memory),
    };
    const struct CMUnitTest timed[] = {
        cmocka_unit_test(a_thousand_idle_connections_harm_nobody),
        cmocka_unit_test(a_thousand_slow_connections_harm_nobody),
        cmocka_unit_test(executions_do_not_slow_health),
    };
    int failed = cmocka_run_group_tests(untimed, harness_setup_tcp, harness_teardown);

    /* Not before: it would leave other tests no processor. */
    go_first();
    return failed + cmocka_run_group_tests(timed, harness_setup_tcp, harness_teardown);
}
