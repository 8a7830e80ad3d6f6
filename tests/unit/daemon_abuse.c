/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers that do not play by HTTP's rules, against a real skillvmd on its unix socket and on
 * TCP: what they get, what it costs, and that others are served meanwhile.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/unit/daemon_harness.h"

#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CRLF "\r\n"
#define HOST "Host: x" CRLF
#define LAST HOST "Connection: close" CRLF

#define expect harness_expect

#define CROWD  1000u
#define PROBES 400u

/* What 1,000 idle connections may cost the daemon. */
#ifdef __SANITIZE_ADDRESS__
#define CROWD_KIB (128 * 1024)
#else
#define CROWD_KIB (32 * 1024)
#endif

static struct harness daemon_under_test;
static uint16_t tcp_port;

/* A port that is free now. */
static uint16_t find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int start(void **state)
{
    struct harness *h = &daemon_under_test;
    char address[32];
    const char *const extra[] = {"--listen", address, "--max-running", "8", NULL};

    (void)signal(SIGPIPE, SIG_IGN);
    *state = h;
    tcp_port = find_port();
    snprintf(address, sizeof(address), "127.0.0.1:%u", tcp_port);
    harness_init(h, "boot", "restore");
    harness_start(h, extra);
    harness_wait_ready(h);
    return harness_push(h, "demo", "1.0", "print(1)") == 201 ? 0 : -1;
}

static int finish(void **state)
{
    struct harness *h = *state;
    int status;

    harness_assert_clean(h);
    status = harness_stop(h, SIGTERM);
    harness_finish(h);
    return status;
}

static int connect_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(tcp_port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int connect_by(const struct harness *h, bool tcp)
{
    int fd = tcp ? connect_tcp() : harness_connect(h);

    assert_true(fd >= 0);
    return fd;
}

/* Sends bytes, and its end where half_closed, and reads all that comes. */
static struct answer exchange(const struct harness *h, bool tcp, const void *data, size_t len,
                              bool half_closed)
{
    int fd = connect_by(h, tcp);
    struct answer a;

    (void)fd_write_full(fd, data, len);
    if (half_closed)
        (void)shutdown(fd, SHUT_WR);
    a = harness_read_answer(fd);
    close(fd);
    return a;
}

static void expect_json_error(struct answer a, int status, const char *sent)
{
    if (a.status != status || !strstr(a.headers, "Content-Type: application/json") ||
        strncmp(a.body, "{\"error\":\"", 10) != 0)
        fail_msg("%.60s: %d %s", sent, a.status, a.body ? a.body : "");
    answer_finish(&a);
}

static void requests_that_are_none_get_json(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        int status;
    } cases[] = {
#define CASE(text, status) {text, sizeof(text) - 1, status}
        CASE("\x16\x03\x01\x02\x00\x01", 400),
        CASE("GET /health" CRLF CRLF, 400),
        CASE("GET /health HTTP/1.1" CRLF CRLF, 400),
        CASE("GET /health HTTP/1.1" CRLF HOST HOST CRLF, 400),
        CASE("GET /health\0 HTTP/1.1" CRLF LAST CRLF, 400),
        CASE("GET /health HTTP/1.1" CRLF "A: \0" CRLF LAST CRLF, 400),
        CASE("GET /health HTTP/1.1" CRLF "A: b" CRLF " c" CRLF LAST CRLF, 400),
        CASE("GET /health HTTP/1.1\nHost: x\n\n", 400),
        CASE("GET /\x01 HTTP/1.1" CRLF LAST CRLF, 400),
        CASE("GET / HTTP/3.0" CRLF LAST CRLF, 505),
        CASE("PRI * HTTP/2.0" CRLF CRLF "SM" CRLF CRLF, 505),
        CASE("BREW /health HTTP/1.1" CRLF LAST CRLF, 405),
        CASE("GET * HTTP/1.1" CRLF LAST CRLF, 404),
        CASE("CONNECT x:1 HTTP/1.1" CRLF LAST CRLF, 404),
#undef CASE
    };

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++)
        expect_json_error(exchange(*state, i % 2, cases[i / 2].text, cases[i / 2].len, false),
                          cases[i / 2].status, cases[i / 2].text);
}

/* A front that reads one request and a back that reads two: nothing after the first counts. */
static void smuggled_requests_are_not_answered(void **state)
{
    static const char *const heads[] = {
        "Content-Length: 5" CRLF "Transfer-Encoding: chunked" CRLF,
        "Transfer-Encoding: chunked" CRLF "Content-Length: 5" CRLF,
        "Content-Length: 0" CRLF "Content-Length: 5" CRLF,
        "Content-Length: 5" CRLF "Content-Length: 5" CRLF,
        "Content-Length: 0, 5" CRLF,
        "Content-Length: +5" CRLF,
        "Content-Length: 0x5" CRLF,
        "Content-Length: -1" CRLF,
        "Content-Length:" CRLF,
        "Content-Length: 5 5" CRLF,
        "Content-Length : 5" CRLF,
        "Transfer-Encoding: identity" CRLF,
        "Transfer-Encoding: gzip, chunked" CRLF,
        "Transfer-Encoding: chunked" CRLF "Transfer-Encoding: chunked" CRLF,
        "Transfer-Encoding: chunked, chunked" CRLF,
        "Transfer-Encoding: xchunked" CRLF,
        "Transfer-Encoding:\x0b"
        "chunked" CRLF,
        "Transfer-Encoding : chunked" CRLF,
        "Content-Length: 99999999999999999999999999" CRLF,
    };
    char text[512];

    for (size_t i = 0; i < 2 * sizeof(heads) / sizeof(heads[0]); i++) {
        int n = snprintf(text, sizeof(text),
                         "POST /v1/executions HTTP/1.1" CRLF HOST "%s" CRLF "0" CRLF CRLF
                         "GET /health HTTP/1.1" CRLF LAST CRLF,
                         heads[i / 2]);
        struct answer a = exchange(*state, i % 2, text, (size_t)n, false);

        if ((a.status != 400 && a.status != 413) || strstr(a.body, "\nHTTP/1.1 ") ||
            strstr(a.body, "\"ok\""))
            fail_msg("%s: %d %s", heads[i / 2], a.status, a.body ? a.body : "");
        answer_finish(&a);
    }
}

static void chunks_that_lie_are_refused(void **state)
{
    static const char *const bodies[] = {
        "zz" CRLF "abc" CRLF "0" CRLF CRLF,
        "-5" CRLF "abc" CRLF "0" CRLF CRLF,
        "3" CRLF "abcdef" CRLF "0" CRLF CRLF,
        "ffffffffffffffffff" CRLF "abc" CRLF,
        CRLF CRLF,
    };
    char text[512];

    for (size_t i = 0; i < 2 * sizeof(bodies) / sizeof(bodies[0]); i++) {
        int n = snprintf(text, sizeof(text),
                         "POST /v1/executions HTTP/1.1" CRLF HOST
                         "Transfer-Encoding: chunked" CRLF CRLF "%s",
                         bodies[i / 2]);
        struct answer a = exchange(*state, false, text, (size_t)n, i % 2);

        if (a.status != 400 && a.status != 413)
            fail_msg("%s: %d", bodies[i / 2], a.status);
        expect_json_error(a, a.status, bodies[i / 2]);
    }
}

static void a_mebibyte_of_headers_is_431(void **state)
{
    static const char *const firsts[] = {"", "GET /health HTTP/1.1" CRLF HOST CRLF};
    const size_t size = 1u << 20;
    char *text = malloc(size + 256);
    struct answer a;

    assert_non_null(text);
    for (size_t i = 0; i < 4; i++) {
        size_t at =
            (size_t)sprintf(text, "%sGET /health HTTP/1.1" CRLF LAST "X: ", firsts[i / 2]);

        memset(text + at, 'a', size);
        memcpy(text + at + size, CRLF CRLF, 4);
        a = exchange(*state, i % 2, text, at + size + 4, false);
        if (i / 2 == 0)
            expect_json_error(a, 431, "headers");
        else if (a.status != 200 || !strstr(a.body, " 431 ") || !strstr(a.body, "headers_too"))
            fail_msg("%s", a.body);
        else
            answer_finish(&a);
    }
    free(text);
}

/* Known by its length: refused at once. Not known: read to a bound, and then no further. */
static void ten_gibibytes_are_refused(void **state)
{
    static const char known[] =
        "POST /v1/skills HTTP/1.1" CRLF HOST "Content-Type: application/zip" CRLF
        "Content-Length: 10737418240" CRLF;
    static const char unknown[] =
        "POST /v1/skills HTTP/1.1" CRLF HOST "Content-Type: application/zip" CRLF
        "Transfer-Encoding: chunked" CRLF CRLF;
    const uint64_t begin_ns = clock_monotonic_ns();
    char text[512], *block = calloc(1, 65536 + 16);
    uint64_t sent = 0;
    int fd;

    assert_non_null(block);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "%s%s" CRLF "PK", known,
                 i ? "Expect: 100-continue" CRLF : "");
        expect_json_error(exchange(*state, false, text, strlen(text), false), 413, text);
    }
    assert_true(clock_monotonic_ns() - begin_ns < 5000000000u);
    assert_int_equal(harness_count_files(*state, "tmp"), 0);
    fd = harness_connect(*state);
    assert_int_equal(fd_write_full(fd, unknown, sizeof(unknown) - 1), 0);
    memcpy(block, "10000" CRLF, 7);
    memcpy(block + 7 + 65536, CRLF, 2);
    while (sent < (1ull << 30) && fd_write_full(fd, block, 65536 + 9) == 0)
        sent += 65536;
    assert_in_range(sent, 100u << 20, 200u << 20);
    close(fd);
    free(block);
}

static void half_closed_clients_get_their_answer(void **state)
{
    static const char run[] = "{\"skill\":\"demo\",\"env\":{\"FAKE\":\"sleep\",\"FAKE_DATA\":"
                              "\"500\"}}";
    char text[512];

    snprintf(text, sizeof(text), "GET /health HTTP/1.1" CRLF HOST CRLF);
    expect(exchange(*state, false, text, strlen(text), true), 200, "ok");
    expect(exchange(*state, true, text, strlen(text), true), 200, "ok");
    snprintf(text, sizeof(text),
             "POST /v1/executions HTTP/1.1" CRLF HOST "Content-Length: %zu" CRLF CRLF "%s",
             strlen(run), run);
    expect(exchange(*state, false, text, strlen(text), true), 200, "\"status\":\"success\"");
    snprintf(text, sizeof(text),
             "POST /v1/executions HTTP/1.1" CRLF HOST "Accept: text/event-stream" CRLF
             "Content-Length: %zu" CRLF CRLF "%s",
             strlen(run), run);
    expect(exchange(*state, false, text, strlen(text), true), 200, "event: result");
    /* A request that never gets whole is answered too. */
    expect_json_error(exchange(*state, true, "GET /hea", 8, true), 400, "half");
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    static const char text[] =
        "GET /health HTTP/1.1" CRLF HOST CRLF "GET /v1/executions/x HTTP/1.1" CRLF HOST CRLF
        "POST /v1/executions HTTP/1.1" CRLF HOST "Content-Length: 18" CRLF CRLF
        "{\"skill\":\"nobody\"}"
        "HEAD /health HTTP/1.1" CRLF HOST CRLF "GET /ready HTTP/1.1" CRLF LAST CRLF;
    struct answer a = exchange(*state, false, text, sizeof(text) - 1, false);
    const char *at = a.body;

    assert_int_equal(a.status, 200);
    for (int i = 0; i < 4; i++) {
        static const char *const next[] = {"\"ok\"", "HTTP/1.1 404", "HTTP/1.1 404",
                                           "\"ready\""};

        at = strstr(at, next[i]);
        assert_non_null(at);
        at++;
    }
    answer_finish(&a);
}

static void paths_cannot_be_bent(void **state)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        {"/v1/skills/demo/1.0", 200},
        {"/v1/skills/de%6Do/1%2e0", 200},
        {"http://anything/v1/skills/demo/1.0", 200},
        {"/v1/skills/demo%2f1.0", 404},
        {"/v1/skills/demo/1.0%00", 404},
        {"/v1/skills/demo/1.0%0a", 404},
        {"/v1/skills/../skills/demo/1.0", 404},
        {"/v1/skills/%2e%2e/1.0", 404},
        {"/v1/skills/demo/..", 404},
        {"/v1/skills//1.0", 404},
        {"//v1/skills/demo/1.0", 404},
        {"/v1/skills/demo/1.0/", 404},
        {"/v1/skills/demo/%", 404},
        {"/v1/skills/demo/%zz", 404},
        {"/v1/%73kills/demo/1.0", 404},
        {"/V1/skills/demo/1.0", 404},
        {"/v1/executions/exec_0123456789abcdef0123456789abcdef/files/..%2f..%2fskillvm.db",
         404},
        {"/v1/executions/exec_0123456789abcdef0123456789abcdef/files//etc/passwd", 404},
        {"/v1/executions?skill=%00", 400},
        {"/v1/executions?skill=%", 400},
        {"/v1/executions?other=%00", 200},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer a = harness_get(*state, cases[i].path);

        if (a.status != cases[i].status)
            fail_msg("%s: %d %s", cases[i].path, a.status, a.body);
        answer_finish(&a);
    }
}

static void head_and_options_are_answered(void **state)
{
    static const char head[] = "HEAD /v1/skills HTTP/1.1" CRLF LAST CRLF;
    struct answer a = exchange(*state, false, head, sizeof(head) - 1, false);

    assert_int_equal(a.status, 200);
    assert_int_equal(a.len, 0);
    assert_non_null(strstr(a.headers, "Content-Length: "));
    answer_finish(&a);
    a = harness_request(*state, "OPTIONS", "/v1/skills", "", NULL, 0);
    assert_int_equal(a.status, 204);
    assert_non_null(strstr(a.headers, "Allow: POST, GET, HEAD, OPTIONS"));
    answer_finish(&a);
    a = harness_request(*state, "OPTIONS", "/nothing", "", NULL, 0);
    assert_int_equal(a.status, 404);
    answer_finish(&a);
    a = harness_request(*state, "HEAD", "/v1/skills/validate", "", NULL, 0);
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(a.headers, "Allow: POST, OPTIONS"));
    answer_finish(&a);
}

static void tcp_needs_a_key(void **state)
{
    static const char *const requests[] = {"GET /v1/skills",     "POST /v1/skills",
                                           "GET /metrics",       "POST /v1/executions",
                                           "GET /v1/executions", "DELETE /v1/skills/demo/1.0"};
    char text[256];

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct answer a;

        snprintf(text, sizeof(text), "%s HTTP/1.1" CRLF LAST CRLF, requests[i]);
        a = exchange(*state, true, text, strlen(text), false);
        assert_int_equal(a.status, 401);
        assert_non_null(strstr(a.headers, "WWW-Authenticate: Bearer"));
        answer_finish(&a);
    }
    snprintf(text, sizeof(text), "GET /health HTTP/1.1" CRLF LAST CRLF);
    expect(exchange(*state, true, text, strlen(text), false), 200, "ok");
    snprintf(text, sizeof(text), "GET /ready HTTP/1.1" CRLF LAST CRLF);
    expect(exchange(*state, true, text, strlen(text), false), 200, "ready");
    expect(harness_get(*state, "/v1/skills/demo/1.0"), 200, "demo");
}

/* A figure of /proc/PID/status in KiB. */
static long memory_kib(const struct harness *h)
{
    char path[64], line[256];
    long kib = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", h->pid);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    }
    fclose(f);
    return kib;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* GET /health again and again, connecting each time; prints and checks what it took. */
static void probe_health(const struct harness *h, const char *while_what)
{
    uint64_t took_us[PROBES];

    for (size_t i = 0; i < PROBES; i++) {
        const uint64_t begin_ns = clock_monotonic_ns();

        expect(harness_get(h, "/health"), 200, "ok");
        took_us[i] = (clock_monotonic_ns() - begin_ns) / 1000;
    }
    qsort(took_us, PROBES, sizeof(took_us[0]), compare);
    print_message("health while %s: p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", while_what,
                  (double)took_us[PROBES / 2] / 1000, (double)took_us[PROBES * 99 / 100] / 1000,
                  (double)took_us[PROBES - 1] / 1000);
    assert_true(took_us[PROBES * 99 / 100] < 50000);
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
    long before_kib;
    char text[512];

    allow_files();
    probe_health(h, "alone");
    before_kib = memory_kib(h);
    for (size_t i = 0; i < CROWD; i++) {
        const size_t len = i % 4 == 0 ? sizeof(whole) - 1 : i % 4 == 1 ? sizeof(whole) / 2 : 0;

        fds[i] = connect_by(h, i % 2);
        assert_int_equal(fd_write_full(fds[i], whole, len), 0);
        if (i % 4 == 0)
            assert_true(recv(fds[i], text, sizeof(text), 0) > 0);
    }
    print_message("memory: %ld KiB, %ld KiB with %u idle connections\n", before_kib,
                  memory_kib(h), CROWD);
    assert_true(memory_kib(h) - before_kib < CROWD_KIB);
    probe_health(h, "1,000 connections are idle");
    expect(harness_run(h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    for (size_t i = 0; i < CROWD; i++)
        close(fds[i]);
    probe_health(h, "1,000 connections end");
}

/* Until told to stop: requests, halves of them and what is none, cut off at once. */
static void *misbehave(void *arg)
{
    static const char *const texts[] = {
        "GET /health HTTP/1.1" CRLF HOST CRLF, "\x16\x03\x01\x02", "GET /hea",
        "POST /v1/executions HTTP/1.1" CRLF HOST "Content-Length: 16" CRLF CRLF
        "{\"skill\":\"demo\"}",
        "POST /v1/executions HTTP/1.1" CRLF HOST "Accept: text/event-stream" CRLF
        "Content-Length: 16" CRLF CRLF "{\"skill\":\"demo\"}"};
    const struct harness *h = &daemon_under_test;
    atomic_bool *stop = arg;

    for (unsigned i = 0; !atomic_load(stop); i++) {
        const char *text = texts[i % 5];
        int fd = connect_by(h, i % 2);

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
    pthread_t threads[6];
    atomic_bool stop = false;

    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, misbehave, &stop), 0);
    for (int i = 0; i < 50; i++) {
        struct answer a = harness_run(h, "{\"skill\":\"demo\"}");

        assert_true(a.status == 200 || a.status == 429);
        answer_finish(&a);
        expect(harness_get(h, "/health"), 200, "ok");
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    harness_assert_clean(h);
    for (int i = 0; i < 300 && harness_count_fds(h) > fds + 1; i++)
        usleep(20000);
    assert_true(harness_count_fds(h) <= fds + 1);
}

static void *run_one(void *arg)
{
    struct answer a =
        harness_run(arg, "{\"skill\":\"demo\",\"timeout\":3,\"env\":{\"FAKE\":\"ticks\"}}");

    answer_finish(&a);
    return NULL;
}

static void executions_do_not_slow_health(void **state)
{
    pthread_t threads[8];

    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_one, *state), 0);
    for (int i = 0; i < 500 && harness_count_children(*state) < 8; i++)
        usleep(5000);
    probe_health(*state, "8 executions run");
    for (size_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_are_none_get_json),
        cmocka_unit_test(smuggled_requests_are_not_answered),
        cmocka_unit_test(chunks_that_lie_are_refused),
        cmocka_unit_test(a_mebibyte_of_headers_is_431),
        cmocka_unit_test(ten_gibibytes_are_refused),
        cmocka_unit_test(half_closed_clients_get_their_answer),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(paths_cannot_be_bent),
        cmocka_unit_test(head_and_options_are_answered),
        cmocka_unit_test(tcp_needs_a_key),
        cmocka_unit_test(callers_that_leave_at_once_harm_nobody),
        cmocka_unit_test(a_thousand_idle_connections_harm_nobody),
        cmocka_unit_test(executions_do_not_slow_health),
    };

    return cmocka_run_group_tests(tests, start, finish);
}
