/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the machine runs short, and peers go at any moment, against the HTTP server in this
 * process: no threads, no descriptors, a socket that somebody else has too. Nobody spins,
 * nothing stays, and others are served again.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/abuse_world.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The linker puts this in the place of the library's. */
typedef void *body_fn(void *);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, body_fn *body,
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, body_fn *body,
                          void *arg);
static atomic_bool threads_ran_out;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, body_fn *body,
                          void *arg)
{
    return atomic_load(&threads_ran_out) ? EAGAIN
                                         : __real_pthread_create(thread, attr, body, arg);
}

/* Whether this process is busy while nothing is asked of it. */
static void expect_rest(void)
{
    const struct timespec moment = {.tv_nsec = 400000000};
    struct timespec begin, end;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    (void)nanosleep(&moment, NULL);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_true((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec <
                100000000);
}

static unsigned count_fds(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void requests_without_a_thread_are_refused(void **state)
{
    struct http_fixture f;

    (void)state;
    http_fixture_start(&f, &patient, 0);
    atomic_store(&threads_ran_out, true);
    for (int tcp = 0; tcp < 2; tcp++) {
        int fd = connect_and_say(&f, tcp, hello);
        struct answer a = harness_read_answer(fd);

        assert_non_null(strstr(a.headers, "Retry-After: 1\r\n"));
        harness_expect(a, 503, "\"error\":\"overloaded\"");
        close(fd);
    }
    atomic_store(&threads_ran_out, false);
    expect_hello(&f, true);
    http_fixture_stop(&f);
}

struct hoard {
    int fds[1024];
    unsigned n;
};

static void take_all(struct hoard *h)
{
    for (h->n = 0; (h->fds[h->n] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0; h->n++)
        assert_true(h->n + 1 < sizeof(h->fds) / sizeof(h->fds[0]));
    assert_int_equal(errno, EMFILE);
}

static void give(struct hoard *h, unsigned n)
{
    for (; n > 0 && h->n > 0; n--)
        close(h->fds[--h->n]);
}

/* Who comes waits without anybody spinning; who is idle gives way. */
static void newcomers_without_a_descriptor_wait(void **state)
{
    struct rlimit before, few;
    struct http_fixture f;
    struct hoard hoard;
    char text[512], byte;
    int first, second;

    (void)state;
    http_fixture_start(&f, &patient, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = 256, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    take_all(&hoard);
    give(&hoard, 1);
    first = connect_and_say(&f, true, hello);
    expect_rest();
    give(&hoard, UINT_MAX);
    assert_true(recv(first, text, sizeof(text), 0) > 0);

    take_all(&hoard);
    give(&hoard, 1);
    second = connect_and_say(&f, false, hello_once);
    harness_expect(harness_read_answer(second), 200, "hello");
    while (recv(first, &byte, 1, 0) > 0)
        ;
    close(first);
    close(second);
    give(&hoard, UINT_MAX);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    http_fixture_stop(&f);
}

/* As with a socket of systemd's, which goes on to listen when this daemon has stopped to. */
static void a_listener_that_others_have_is_left_alone(void **state)
{
    struct http_fixture f;
    int fd;

    (void)state;
    http_fixture_start(&f, &patient, 0);
    http_quiesce(f.server);
    fd = connect_and_say(&f, true, hello);
    expect_rest();
    close(fd);
    http_fixture_stop(&f);
}

/* Resets, where the connection has them, or ends with what came unread. */
static void leave(int fd)
{
    const struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

static int say_some(const struct http_fixture *f, bool tcp, const char *text, size_t n)
{
    int fd = connect_and_say(f, tcp, "");

    assert_int_equal(fd_write_full(fd, text, n), 0);
    return fd;
}

static void peers_leave_at_any_byte(void **state)
{
    static const char *const texts[] = {
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /large HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /file HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n",
        "POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nab\r\n--b--"};
    struct http_fixture f;
    bool all_left = false;
    unsigned before;

    (void)state;
    http_fixture_start(&f, &patient, 0);
    expect_hello(&f, true);
    before = count_fds();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t n = 1; n <= strlen(texts[i]); n++)
            leave(say_some(&f, n % 2, texts[i], n));
    }
    /* Who comes last to a listener is accepted last. */
    expect_hello(&f, true);
    expect_hello(&f, false);
    for (int i = 0; i < 6000 && !all_left; i++) {
        all_left = count_fds() <= before && atomic_load(&f.streams) == 0;
        (void)usleep(10000);
    }
    assert_true(all_left);
    http_fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_without_a_thread_are_refused),
        cmocka_unit_test(newcomers_without_a_descriptor_wait),
        cmocka_unit_test(a_listener_that_others_have_is_left_alone),
        cmocka_unit_test(peers_leave_at_any_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
