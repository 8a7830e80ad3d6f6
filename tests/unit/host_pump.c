/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api/host/pump: bytes and ends of file cross in both directions, whatever the order.
 */
#include "api/host/pump.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

struct ends {
    int a; /* the far ends of what the pump joins */
    int b;
    struct pump pump;
};

static void ends_open(struct ends *e)
{
    int left[2], right[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, left), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, right), 0);
    e->a = left[0];
    e->b = right[0];
    assert_int_equal(fd_set_nonblock(e->a, true), 0);
    assert_int_equal(fd_set_nonblock(e->b, true), 0);
    assert_int_equal(pump_init(&e->pump, left[1], right[1]), 0);
}

static void ends_close(struct ends *e)
{
    fd_close(&e->a);
    fd_close(&e->b);
    pump_finish(&e->pump);
}

static void expect_text(int fd, const char *text)
{
    char got[64];
    ssize_t n = recv(fd, got, sizeof(got), 0);

    assert_int_equal(n, strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

static void test_half_close_each_way(void **state)
{
    struct ends e;
    char byte;

    (void)state;
    ends_open(&e);
    assert_int_equal(send(e.a, "request", 7, 0), 7);
    shutdown(e.a, SHUT_WR);
    assert_true(pump_run(&e.pump));
    expect_text(e.b, "request");
    assert_int_equal(recv(e.b, &byte, 1, 0), 0);
    assert_int_equal(send(e.b, "answer", 6, 0), 6);
    assert_true(pump_run(&e.pump));
    expect_text(e.a, "answer");
    assert_int_equal(recv(e.a, &byte, 1, 0), -1);
    fd_close(&e.b);
    assert_false(pump_run(&e.pump));
    assert_int_equal(recv(e.a, &byte, 1, 0), 0);
    ends_close(&e);
}

static void test_preload_goes_first(void **state)
{
    struct ends e;

    (void)state;
    ends_open(&e);
    pump_preload(&e.pump, 1, "k", 1);
    assert_int_equal(send(e.b, "later", 5, 0), 5);
    assert_true(pump_run(&e.pump));
    expect_text(e.a, "klater");
    ends_close(&e);
}

static void test_a_dead_target_ends_it(void **state)
{
    struct ends e;

    (void)state;
    ends_open(&e);
    fd_close(&e.b);
    assert_int_equal(send(e.a, "lost", 4, 0), 4);
    assert_false(pump_run(&e.pump));
    ends_close(&e);
}

static void test_nothing_is_wanted_of_a_finished_end(void **state)
{
    struct pollfd fds[2];
    struct ends e;

    (void)state;
    ends_open(&e);
    shutdown(e.a, SHUT_WR);
    assert_true(pump_run(&e.pump));
    pump_poll(&e.pump, fds);
    assert_int_equal(fds[0].fd, -1);
    assert_int_equal(fds[1].events, POLLIN);
    ends_close(&e);
}

static void test_many_bytes_through_small_steps(void **state)
{
    const size_t total = 3u << 20;
    uint8_t chunk[7001], want = 0;
    size_t sent = 0, got = 0;
    struct ends e;

    (void)state;
    ends_open(&e);
    while (got < total) {
        size_t len = total - sent < sizeof(chunk) ? total - sent : sizeof(chunk);
        ssize_t n;

        for (size_t i = 0; i < len; i++)
            chunk[i] = (uint8_t)((sent + i) % 251);
        n = len ? send(e.a, chunk, len, 0) : 0;
        if (n > 0)
            sent += (size_t)n;
        assert_true(pump_run(&e.pump));
        n = recv(e.b, chunk, 5003, 0);
        for (ssize_t i = 0; i < n; i++) {
            assert_int_equal(chunk[i], want);
            want = (uint8_t)((want + 1) % 251);
        }
        if (n > 0)
            got += (size_t)n;
    }
    ends_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_close_each_way),
        cmocka_unit_test(test_preload_goes_first),
        cmocka_unit_test(test_a_dead_target_ends_it),
        cmocka_unit_test(test_nothing_is_wanted_of_a_finished_end),
        cmocka_unit_test(test_many_bytes_through_small_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
