/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that are slow, silent or deaf, against the HTTP server in this process with short
 * deadlines: their connections end, and others are served meanwhile.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/abuse_world.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
/* For a connection that ends within a second on an idle machine: less than the server's own
   deadlines, 20 s and more, which it would have had if it did not go by these. */
#define END_MS 15000

static const struct http_deadlines short_idle = {.idle_ms = 600};
static const struct http_deadlines short_deadlines = {
    .head_ms = 400, .body_ms = 500, .send_ms = 1000};

/*
 * Milliseconds from a moment until the server ends the connection, while bytes are sent to it:
 * the last one again and again, so that only the server can end it.
 */
static uint64_t ms_until_end(uint64_t begin_ns, int fd, const char *bytes, useconds_t every_us)
{
    struct pollfd pfd = {.fd = fd, .events = POLLRDHUP};

    for (;;) {
        if (bytes) {
            (void)!send(fd, bytes, 1, MSG_NOSIGNAL);
            bytes += bytes[1] != '\0';
        }
        if (poll(&pfd, 1, (int)(every_us / 1000)) > 0 &&
            (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR)))
            return (clock_monotonic_ns() - begin_ns) / NS_PER_MS;
        if (clock_monotonic_ns() - begin_ns > END_MS * NS_PER_MS)
            fail_msg("the connection does not end");
    }
}

static void read_one(int fd, char *text, size_t size)
{
    ssize_t n = recv(fd, text, size - 1, 0);

    assert_true(n > 0);
    text[n] = '\0';
}

/* One that was answered once, which the server ends first where the machine stands still. */
static int connect_and_greet(const struct http_fixture *f, bool tcp)
{
    char text[512];

    for (int i = 0; i < 100; i++) {
        int fd = connect_and_say(f, tcp, hello);

        if (recv(fd, text, sizeof(text), 0) > 12 && strncmp(text, "HTTP/1.1 200", 12) == 0)
            return fd;
        close(fd);
    }
    fail_msg("nobody is answered");
    return -1;
}

static void silent_connections_end(void **state)
{
    struct http_fixture f;

    (void)state;
    http_fixture_start(&f, &short_idle, 0);
    for (int i = 0; i < 4; i++) {
        const uint64_t begin_ns = clock_monotonic_ns();
        int fd = i < 2 ? http_fixture_connect(&f, i % 2) : connect_and_greet(&f, i % 2);

        assert_in_range(ms_until_end(begin_ns, fd, NULL, 10000), 500, END_MS);
        close(fd);
    }
    http_fixture_stop(&f);
}

static const char slow_head[] = "GET /hello HTTP/1.1\r\nHost: x\r\nX: a";

/* However often a byte comes, the headers as a whole have their time. */
static void slow_heads_end(void **state)
{
    struct http_fixture f;

    (void)state;
    http_fixture_start(&f, &short_deadlines, 0);
    for (int tcp = 0; tcp < 2; tcp++) {
        const uint64_t begin_ns = clock_monotonic_ns();
        int fd = http_fixture_connect(&f, tcp);

        assert_in_range(ms_until_end(begin_ns, fd, slow_head, 20000), 300, END_MS);
        harness_expect(harness_read_answer(fd), 408, "\"error\":\"timeout\"");
        close(fd);
    }
    http_fixture_stop(&f);
}

/* The same after a first request. */
static void slow_heads_on_kept_connections_end(void **state)
{
    struct http_fixture f;

    (void)state;
    http_fixture_start(&f, &short_deadlines, 0);
    for (int tcp = 0; tcp < 2; tcp++) {
        int fd = connect_and_greet(&f, tcp);
        const uint64_t begin_ns = clock_monotonic_ns();

        assert_in_range(ms_until_end(begin_ns, fd, slow_head, 20000), 300, END_MS);
        close(fd);
        expect_hello(&f, tcp);
    }
    http_fixture_stop(&f);
}

/* Slow is not too slow: a head in many pieces is put together. */
static void heads_in_pieces_are_read(void **state)
{
    struct http_fixture f;

    (void)state;
    http_fixture_start(&f, &patient, 0);
    for (int tcp = 0; tcp < 2; tcp++) {
        int fd = http_fixture_connect(&f, tcp);

        for (size_t i = 0; hello_once[i]; i++) {
            assert_int_equal(send(fd, hello_once + i, 1, MSG_NOSIGNAL), 1);
            usleep(500);
        }
        harness_expect(harness_read_answer(fd), 200, "hello");
        close(fd);
    }
    http_fixture_stop(&f);
}

static void slow_bodies_end(void **state)
{
    static const char *const heads[] = {
        "POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
        "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"};
    struct http_fixture f;

    (void)state;
    http_fixture_start(&f, &short_deadlines, 0);
    for (size_t i = 0; i < 6; i++) {
        const uint64_t begin_ns = clock_monotonic_ns();
        int fd = connect_and_say(&f, i % 2, heads[i / 2]);

        assert_in_range(ms_until_end(begin_ns, fd, " ", 30000), 400, END_MS);
        harness_expect(harness_read_answer(fd), 408, "\"error\":\"timeout\"");
        close(fd);
        expect_hello(&f, i % 2);
    }
    http_fixture_stop(&f);
}

/* What is around a body's bytes does not count as any of them. */
static void bodies_of_framing_alone_end(void **state)
{
    static const char *const heads[] = {
        "POST /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"};
    struct pollfd pfd = {.events = POLLRDHUP};
    struct http_fixture f;
    char chunk[512] = "1;";

    (void)state;
    memset(chunk + 2, 'a', sizeof(chunk) - 2);
    memcpy(chunk + sizeof(chunk) - 5, "\r\n \r\n", 5);
    http_fixture_start(&f, &short_deadlines, 0);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t begin_ns = clock_monotonic_ns();

        pfd.fd = connect_and_say(&f, i % 2, heads[i]);
        while (poll(&pfd, 1, 10) == 0) {
            (void)!send(pfd.fd, chunk, sizeof(chunk), MSG_NOSIGNAL);
            assert_true(clock_monotonic_ns() - begin_ns < END_MS * NS_PER_MS);
        }
        harness_expect(harness_read_answer(pfd.fd), 408, "\"error\":\"timeout\"");
        close(pfd.fd);
    }
    http_fixture_stop(&f);
}

/*
 * A body that takes longer than the grace, with more than a KiB a second. The grace is long
 * enough for a machine that stands still for a while.
 */
static void steady_bodies_are_taken(void **state)
{
    static const struct http_deadlines grace = {.body_ms = 4000};
    const uint64_t begin_ns = clock_monotonic_ns();
    struct http_fixture f;
    char piece[4096];
    int fd;

    (void)state;
    memset(piece, ' ', sizeof(piece));
    http_fixture_start(&f, &grace, 0);
    fd = connect_and_say(&f, true,
                         "POST /json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                         "Content-Length: 409600\r\n\r\n");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(fd_write_full(fd, piece, sizeof(piece)), 0);
        usleep(50000);
    }
    assert_true(clock_monotonic_ns() - begin_ns > grace.body_ms * NS_PER_MS);
    harness_expect(harness_read_answer(fd), 200, "\"a\":\"409600\"");
    close(fd);
    http_fixture_stop(&f);
}

static void readers_that_never_read_end(void **state)
{
    struct http_fixture f;
    int fds[10];

    (void)state;
    http_fixture_start(&f, &short_deadlines, 0);
    for (size_t i = 0; i < 10; i++)
        fds[i] = connect_and_say(&f, i % 2, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 5000 && atomic_load(&f.streams) < 10; i++)
        usleep(2000);
    expect_hello(&f, false);
    for (int i = 0; i < 6000 && atomic_load(&f.streams) > 0; i++)
        usleep(10000);
    assert_int_equal(atomic_load(&f.streams), 0);
    /* What the sockets hold and no more. */
    assert_true(atomic_load(&f.given) < (64u << 20));
    for (size_t i = 0; i < 10; i++)
        close(fds[i]);
    http_fixture_stop(&f);
}

static void readers_that_leave_end_their_stream(void **state)
{
    struct http_fixture f;
    char text[4096];

    (void)state;
    http_fixture_start(&f, &patient, 0);
    for (int tcp = 0; tcp < 2; tcp++) {
        int fd = connect_and_say(&f, tcp, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");

        read_one(fd, text, sizeof(text));
        assert_int_equal(atomic_load(&f.streams), 1);
        close(fd);
        for (int i = 0; i < 6000 && atomic_load(&f.streams) > 0; i++)
            usleep(10000);
        assert_int_equal(atomic_load(&f.streams), 0);
    }
    http_fixture_stop(&f);
}

static long memory_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long size, resident, shared;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld %ld", &size, &resident, &shared), 3);
    fclose(f);
    return (resident - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Large answers wait for their readers on disk. */
static void large_answers_cost_no_memory(void **state)
{
    struct http_fixture f;
    struct answer a;
    int fds[40], last;
    long before_kib;

    (void)state;
    /* As in the daemon: what is freed goes back to the system. */
    (void)mallopt(M_MMAP_THRESHOLD, 512 * 1024);
    http_fixture_start(&f, &patient, 0);
    before_kib = memory_kib();
    for (size_t i = 0; i < 40; i++)
        fds[i] = connect_and_say(&f, i % 2,
                                 "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (size_t i = 0; i < 40; i++)
        wait_answered(fds[i], 100000);
    print_message("memory: %ld KiB more with 40 answers of 8 MiB unread\n",
                  memory_kib() - before_kib);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
    assert_true(memory_kib() - before_kib < 100 * 1024);
#endif
    last = fds[39];
    a = harness_read_answer(last);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.len, HTTP_FIXTURE_LARGE);
    answer_finish(&a);
    for (size_t i = 0; i < 40; i++)
        close(fds[i]);
    http_fixture_stop(&f);
}

/* Stopping waits for answers on their way, and not for those who do not read or write. */
static void stopping_waits_for_nobody_idle(void **state)
{
    struct http_fixture f;
    uint64_t begin_ns;
    int fds[4];

    (void)state;
    http_fixture_start(&f, &patient, 0);
    fds[0] = connect_and_say(&f, true, "");
    fds[1] = connect_and_say(&f, false, "GET /hel");
    fds[2] = connect_and_say(&f, true, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    fds[3] = connect_and_say(&f, false,
                             "POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    wait_answered(fds[2], 100000);
    begin_ns = clock_monotonic_ns();
    http_fixture_stop(&f);
    assert_true(clock_monotonic_ns() - begin_ns < END_MS * NS_PER_MS);
    for (size_t i = 0; i < 4; i++) {
        assert_true(has_ended(fds[i]));
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_connections_end),
        cmocka_unit_test(slow_heads_end),
        cmocka_unit_test(slow_heads_on_kept_connections_end),
        cmocka_unit_test(heads_in_pieces_are_read),
        cmocka_unit_test(slow_bodies_end),
        cmocka_unit_test(bodies_of_framing_alone_end),
        cmocka_unit_test(steady_bodies_are_taken),
        cmocka_unit_test(readers_that_never_read_end),
        cmocka_unit_test(readers_that_leave_end_their_stream),
        cmocka_unit_test(large_answers_cost_no_memory),
        cmocka_unit_test(stopping_waits_for_nobody_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
