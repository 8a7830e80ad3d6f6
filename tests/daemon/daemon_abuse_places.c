/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that are too many, against the HTTP server in this process: who does nothing gives
 * way, who is at work stays, and neither TCP nor a tenant takes all places.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/abuse_world.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CROWD 20u

/* That many handlers of /block are at work. */
static void wait_blocked(struct http_fixture *f, unsigned n)
{
    for (int i = 0; i < 12000 && atomic_load(&f->blocked) != n; i++)
        usleep(5000);
    assert_int_equal(atomic_load(&f->blocked), n);
}

static const char block[] = "GET /block HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/*
 * A connection that is the n-th at work. It comes again where it is told that all are: the
 * server may not have seen yet that the others are idle.
 */
static int enter(struct http_fixture *f, bool tcp, unsigned n)
{
    for (int tries = 0; tries < 100; tries++) {
        struct pollfd pfd = {.fd = connect_and_say(f, tcp, block), .events = POLLIN};

        while (atomic_load(&f->blocked) != n && poll(&pfd, 1, 5) == 0)
            ;
        if (atomic_load(&f->blocked) == n)
            return pfd.fd;
        harness_expect(harness_read_answer(pfd.fd), 503, "overloaded");
        close(pfd.fd);
    }
    fail_msg("nobody gave way");
    return -1;
}

/*
 * All places are taken by those who do nothing: each newcomer is served and one of TCP goes for
 * it, no more.
 */
static void idle_connections_give_way(void **state)
{
    enum { ANSWERED = 2, READERS = 5, NEWCOMERS = 5 };
    /* The first two said no whole request; the next ones had an answer before. */
    static const char *const texts[] = {
        "",
        "GET /hel",
        "",
        "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{",
        "GET /public HTTP/1.1\r\nHost: x\r\n\r\n"};
    struct http_fixture f;
    int fds[CROWD], newcomers[NEWCOMERS];

    (void)state;
    for (size_t t = 0; t < 6; t++) {
        const bool kept = t >= ANSWERED && t < READERS;
        unsigned ended[2] = {0};

        http_fixture_start(&f, &patient, CROWD);
        for (size_t i = 0; i < CROWD; i++)
            fds[i] = connect_and_say(&f, i % 2, kept ? hello : texts[t]);
        /* Until its answer is out a connection is at work. */
        for (size_t i = 0; i < CROWD && t >= ANSWERED; i++)
            wait_answered(fds[i], 100000);
        for (size_t i = 0; i < CROWD && kept; i++)
            say(fds[i], texts[t]);
        for (unsigned i = 0; i < NEWCOMERS; i++)
            newcomers[i] = enter(&f, i % 2, i + 1);
        for (size_t i = 0; i < CROWD; i++)
            ended[i % 2] += has_ended(fds[i]);
        assert_int_equal(ended[0], 0);
        /* What readers do not read stands before the end that they could see. */
        if (t != READERS)
            assert_int_equal(ended[1], NEWCOMERS);
        /* They came in this order. */
        for (size_t i = 0; t == 0 && i < NEWCOMERS; i++)
            assert_true(has_ended(fds[2 * i + 1]));
        atomic_store(&f.released, true);
        for (size_t i = 0; i < NEWCOMERS; i++) {
            harness_expect(harness_read_answer(newcomers[i]), 200, "released");
            close(newcomers[i]);
        }
        for (size_t i = 0; i < CROWD; i++)
            close(fds[i]);
        http_fixture_stop(&f);
    }
}

struct talkers {
    int fds[CROWD - CROWD / 8];
    atomic_uint rounds; /* that gave everybody an answer */
    atomic_bool stop;
};

/* Each asks, reads and asks again. */
static void *talk(void *arg)
{
    struct talkers *t = arg;
    char text[4096];

    while (!atomic_load(&t->stop)) {
        unsigned answers = 0;

        for (size_t i = 0; i < CROWD - CROWD / 8; i++) {
            (void)!send(t->fds[i], hello, strlen(hello), MSG_NOSIGNAL | MSG_DONTWAIT);
            answers += recv(t->fds[i], text, sizeof(text), MSG_DONTWAIT) > 0;
        }
        atomic_fetch_add(&t->rounds, answers == CROWD - CROWD / 8);
        (void)usleep(20000);
    }
    return NULL;
}

/* Who is never idle for long keeps the operator out no more than who is. */
static void talkers_give_way(void **state)
{
    struct talkers t = {.stop = false};
    struct http_fixture f;
    int fds[CROWD / 8], fd;
    pthread_t thread;

    (void)state;
    http_fixture_start(&f, &patient, CROWD);
    for (size_t i = 0; i < CROWD / 8; i++)
        fds[i] = connect_and_say(&f, false, block);
    wait_blocked(&f, CROWD / 8);
    for (size_t i = 0; i < CROWD - CROWD / 8; i++)
        t.fds[i] = http_fixture_connect(&f, true);
    assert_int_equal(pthread_create(&thread, NULL, talk, &t), 0);
    for (int i = 0; i < 12000 && atomic_load(&t.rounds) == 0; i++)
        usleep(5000);
    assert_true(atomic_load(&t.rounds) > 0);
    fd = connect_and_say(&f, false, hello_once);
    wait_answered(fd, 100000);
    atomic_store(&t.stop, true);
    pthread_join(thread, NULL);
    harness_expect(harness_read_answer(fd), 200, "hello");
    close(fd);
    for (size_t i = 0; i < CROWD - CROWD / 8; i++)
        close(t.fds[i]);
    for (size_t i = 0; i < CROWD / 8; i++)
        close(fds[i]);
    http_fixture_stop(&f);
}

/* All are at work: nobody is thrown out, and the newcomer is told to come again. */
static void busy_connections_stay(void **state)
{
    struct http_fixture f;
    struct answer a;
    int fds[CROWD], fd;

    (void)state;
    http_fixture_start(&f, &patient, CROWD);
    for (size_t i = 0; i < CROWD; i++)
        fds[i] = connect_and_say(&f, i % 2, block);
    wait_blocked(&f, CROWD);
    for (int tcp = 0; tcp < 2; tcp++) {
        fd = http_fixture_connect(&f, tcp);
        a = harness_read_answer(fd);
        assert_int_equal(a.status, 503);
        assert_non_null(strstr(a.headers, "Retry-After: 1"));
        assert_true(answer_has(&a, "\"error\":\"overloaded\""));
        answer_finish(&a);
        close(fd);
    }
    atomic_store(&f.released, true);
    for (size_t i = 0; i < CROWD; i++) {
        harness_expect(harness_read_answer(fds[i]), 200, "released");
        close(fds[i]);
    }
    expect_hello(&f, true);
    http_fixture_stop(&f);
}

/* Tenants at work on TCP never take the last places from the unix socket. */
static void tcp_leaves_room_for_the_operator(void **state)
{
    static const char *const of[] = {"GET /block HTTP/1.1\r\nHost: x\r\nConnection: "
                                     "close\r\nAuthorization: Bearer a\r\n\r\n",
                                     "GET /block HTTP/1.1\r\nHost: x\r\nConnection: "
                                     "close\r\nAuthorization: Bearer b\r\n\r\n"};
    struct http_fixture f;
    int fds[CROWD - CROWD / 8], fd;

    (void)state;
    http_fixture_start(&f, &patient, CROWD);
    for (size_t i = 0; i < CROWD - CROWD / 8; i++)
        fds[i] = connect_and_say(&f, true, of[i % 2]);
    wait_blocked(&f, CROWD - CROWD / 8);
    fd = http_fixture_connect(&f, true);
    harness_expect(harness_read_answer(fd), 503, "\"error\":\"overloaded\"");
    close(fd);
    expect_hello(&f, false);
    atomic_store(&f.released, true);
    for (size_t i = 0; i < CROWD - CROWD / 8; i++) {
        harness_expect(harness_read_answer(fds[i]), 200, "released");
        close(fds[i]);
    }
    http_fixture_stop(&f);
}

/* One tenant's requests take half of the places at most. */
static void a_tenant_leaves_room_for_others(void **state)
{
    static const char of_a[] = "GET /block HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                               "Authorization: Bearer a\r\n\r\n";
    static const char of_b[] = "GET /files/1/2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                               "Authorization: Bearer b\r\n\r\n";
    struct http_fixture f;
    int fds[CROWD / 2], fd;

    (void)state;
    http_fixture_start(&f, &patient, CROWD);
    for (size_t i = 0; i < CROWD / 2; i++)
        fds[i] = connect_and_say(&f, true, of_a);
    wait_blocked(&f, CROWD / 2);
    fd = connect_and_say(&f, true, of_a);
    harness_expect(harness_read_answer(fd), 429, "\"error\":\"overloaded\"");
    close(fd);
    fd = connect_and_say(&f, true, of_b);
    harness_expect(harness_read_answer(fd), 200, "\"a\":\"1\",\"b\":\"2\"");
    close(fd);
    atomic_store(&f.released, true);
    for (size_t i = 0; i < CROWD / 2; i++) {
        harness_expect(harness_read_answer(fds[i]), 200, "released");
        close(fds[i]);
    }
    http_fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_connections_give_way),
        cmocka_unit_test(talkers_give_way),
        cmocka_unit_test(busy_connections_stay),
        cmocka_unit_test(tcp_leaves_room_for_the_operator),
        cmocka_unit_test(a_tenant_leaves_room_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
