/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers that do not play by HTTP's rules, against a real skillvmd on its unix socket and on
 * TCP: what they get, what it costs, and that others are served meanwhile.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CRLF "\r\n"
#define HOST "Host: x" CRLF
#define LAST HOST "Connection: close" CRLF

#define expect harness_expect

/* Sends bytes, and its end where half_closed, and reads all that comes. */
static struct answer exchange(const struct harness *h, bool tcp, const void *data, size_t len,
                              bool half_closed)
{
    int fd = harness_connect_by(h, tcp);
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

#define POST    "POST /v1/executions HTTP/1.1" CRLF HOST
#define LENGTH  "Content-Length: 18" CRLF
#define CHUNKED "Transfer-Encoding: chunked" CRLF
#define BODY    "{\"skill\":\"nobody\"}"
#define CHUNK   "12" CRLF BODY CRLF

/* Requests that two readers could take for different ones; none may be answered as one. */
static const struct {
    const char *text;
    size_t len;
} framings[] = {
#define CASE(text)                                                                             \
    {                                                                                          \
        text, sizeof(text) - 1                                                                 \
    }
    CASE("POST /v1/executions HTTP/1.1\nHost: x\nContent-Length: 18\n\n" BODY),
    CASE("POST /v1/executions HTTP/1.1\n" HOST LENGTH CRLF BODY),
    CASE(POST "A: b\n" LENGTH CRLF BODY),
    CASE(POST LENGTH "\n" BODY),
    CASE(POST LENGTH "\rX" BODY),
    CASE(POST "A: b" CRLF " c" CRLF LENGTH CRLF BODY),
    CASE(POST "A: b" CRLF "\tc" CRLF LENGTH CRLF BODY),
    CASE(POST " A: b" CRLF LENGTH CRLF BODY),
    CASE(POST "A: \0" CRLF LENGTH CRLF BODY),
    CASE(POST "A: \x01" CRLF LENGTH CRLF BODY),
    CASE(POST "A: b\rc" CRLF LENGTH CRLF BODY),
    CASE(POST "A\0: b" CRLF LENGTH CRLF BODY),
    CASE(POST "A : b" CRLF LENGTH CRLF BODY),
    CASE("POST /v1/executions\x01 HTTP/1.1" CRLF HOST LENGTH CRLF BODY),
    CASE("POST  /v1/executions HTTP/1.1" CRLF HOST LENGTH CRLF BODY),
    CASE("POST /v1/executions  HTTP/1.1" CRLF HOST LENGTH CRLF BODY),
    CASE("POST /v1/executions HTTP/1.1" CRLF LENGTH CRLF BODY),
    CASE(POST HOST LENGTH CRLF BODY),
    CASE(POST LENGTH LENGTH CRLF BODY),
    CASE(POST LENGTH CHUNKED CRLF CHUNK "0" CRLF CRLF),
    CASE(POST CHUNKED LENGTH CRLF CHUNK "0" CRLF CRLF),
    CASE(POST CHUNKED CHUNKED CRLF CHUNK "0" CRLF CRLF),
    CASE(POST "X: y\nTransfer-Encoding: chunked" CRLF CRLF CHUNK "0" CRLF CRLF),
    CASE(POST "Transfer-Encoding: gzip, chunked" CRLF CRLF CHUNK "0" CRLF CRLF),
    CASE(POST CHUNKED CRLF "12\n" BODY CRLF "0" CRLF CRLF),
    CASE(POST CHUNKED CRLF "12" CRLF BODY "\n0" CRLF CRLF),
    CASE(POST CHUNKED CRLF CHUNK "0\n" CRLF),
    CASE(POST CHUNKED CRLF CHUNK "0" CRLF "\n"),
    CASE(POST CHUNKED CRLF CHUNK "0" CRLF "A: b\n" CRLF),
    CASE(POST CHUNKED CRLF "12;a\nb" CRLF BODY CRLF "0" CRLF CRLF),
    CASE(POST CHUNKED CRLF "0x12" CRLF BODY CRLF "0" CRLF CRLF),
    CASE(POST CHUNKED CRLF " 12" CRLF BODY CRLF "0" CRLF CRLF),
#undef CASE
};

static const char health[] = "GET /health HTTP/1.1" CRLF HOST CRLF;

/* Reads one answer to /health. */
static void expect_healthy(int fd)
{
    char text[1024];
    size_t n = 0;

    do {
        ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, 0);

        assert_true(got > 0);
        n += (size_t)got;
        text[n] = '\0';
    } while (!strstr(text, "\"ok\""));
    assert_non_null(strstr(text, " 200 "));
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The same for the first request of a connection, the second, and one that came with others. */
static void framing_is_strict_for_every_request(void **state)
{
    enum { FIRST, SECOND, PIPELINED, PLACES };

    for (size_t i = 0; i < PLACES * sizeof(framings) / sizeof(framings[0]); i++) {
        const int place = (int)(i % PLACES);
        const char *bad = framings[i / PLACES].text;
        struct buf sent = buf_init(4096), got = buf_init(65536);
        int fd = harness_connect_by(*state, i % 2);
        char block[4096];
        ssize_t n;

        if (place == SECOND) {
            assert_int_equal(fd_write_full(fd, health, sizeof(health) - 1), 0);
            expect_healthy(fd);
        }
        if (place == PIPELINED)
            assert_int_equal(buf_append(&sent, health, sizeof(health) - 1), 0);
        assert_int_equal(buf_append(&sent, bad, framings[i / PLACES].len), 0);
        assert_int_equal(buf_append(&sent, health, sizeof(health) - 1), 0);
        (void)fd_write_full(fd, sent.data, sent.len);
        (void)shutdown(fd, SHUT_WR);
        while ((n = recv(fd, block, sizeof(block), 0)) > 0)
            assert_int_equal(buf_append(&got, block, (size_t)n), 0);
        close(fd);
        if (!buf_cstr(&got) || count(buf_cstr(&got), "HTTP/1.1 400 ") != 1 ||
            count(buf_cstr(&got), "{\"error\":\"bad_request\"") != 1 ||
            count(buf_cstr(&got), "X-Content-Type-Options: ") != 1 + (place == PIPELINED))
            fail_msg("place %d: %s: %s", place, bad, buf_cstr(&got));
        buf_finish(&sent);
        buf_finish(&got);
    }
}

/* A hundred headers are the limit of every request as well. */
static void headers_are_counted_in_every_request(void **state)
{
    struct buf text = buf_init(65536);
    int fd = harness_connect_by(*state, true);
    struct answer a;

    assert_int_equal(fd_write_full(fd, health, sizeof(health) - 1), 0);
    expect_healthy(fd);
    assert_int_equal(buf_printf(&text, "GET /health HTTP/1.1" CRLF HOST), 0);
    for (unsigned i = 0; i < 150; i++)
        assert_int_equal(buf_printf(&text, "A%u: b" CRLF, i), 0);
    assert_int_equal(buf_append(&text, CRLF, 2), 0);
    assert_int_equal(fd_write_full(fd, text.data, text.len), 0);
    a = harness_read_answer(fd);
    expect_json_error(a, 431, "150 headers");
    buf_finish(&text);
    close(fd);
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
    struct pollfd pfd = {.events = POLLIN};
    uint64_t sent = 0;
    int fd;

    assert_non_null(block);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "%s%s" CRLF "PK", known,
                 i ? "Expect: 100-continue" CRLF : "");
        expect_json_error(exchange(*state, false, text, strlen(text), false), 413, text);
    }
    /* Who waits for the body gives it 30 s. */
    assert_true(clock_monotonic_ns() - begin_ns < 25000000000u);
    assert_int_equal(harness_count_files(*state, "tmp"), 0);
    fd = harness_connect(*state);
    pfd.fd = fd;
    assert_int_equal(fd_write_full(fd, unknown, sizeof(unknown) - 1), 0);
    memcpy(block, "10000" CRLF, 7);
    memcpy(block + 7 + 65536, CRLF, 2);
    /* Whoever goes on sending until there is an answer reads it. */
    while (sent < (1ull << 30) && poll(&pfd, 1, 0) == 0 &&
           fd_write_full(fd, block, 65536 + 9) == 0)
        sent += 65536;
    assert_in_range(sent, 576u << 20, 900u << 20);
    expect_json_error(harness_read_answer(fd), 413, "chunks");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_are_none_get_json),
        cmocka_unit_test(smuggled_requests_are_not_answered),
        cmocka_unit_test(framing_is_strict_for_every_request),
        cmocka_unit_test(headers_are_counted_in_every_request),
        cmocka_unit_test(chunks_that_lie_are_refused),
        cmocka_unit_test(a_mebibyte_of_headers_is_431),
        cmocka_unit_test(ten_gibibytes_are_refused),
        cmocka_unit_test(half_closed_clients_get_their_answer),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(paths_cannot_be_bent),
        cmocka_unit_test(head_and_options_are_answered),
        cmocka_unit_test(tcp_needs_a_key),
    };

    return cmocka_run_group_tests(tests, harness_setup_tcp, harness_teardown);
}
