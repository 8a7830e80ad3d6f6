/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gives way where all connections are taken (http_conns.h): phases and ages are the test's,
 * so nothing here depends on how fast anything is.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/http/http_internal.h"

#include <sys/socket.h>
#include <unistd.h>

#define MS  1000000ull
#define NOW (100000000 * MS)

static const struct http_config patient = {0};

/* A table without a place: whoever comes needs room. */
static struct http_conns make(void)
{
    struct http_conns conns;

    http_conns_init(&conns, &patient);
    assert_true(conns.epoll_fd >= 0);
    conns.max = 0;
    return conns;
}

/* No threads are at work on those that say so. */
static void finish(struct http_conns *conns)
{
    for (struct http_conn *c = LIST_FIRST(&conns->all); c; c = LIST_NEXT(c, of_all))
        http_conn_enter(c, HTTP_PHASE_IDLE);
    http_conns_finish(conns, 0);
}

static unsigned count(const struct http_conns *conns, bool ended)
{
    unsigned n = 0;

    for (const struct http_conn *c = LIST_FIRST(&conns->all); c; c = LIST_NEXT(c, of_all))
        n += c->ended == ended;
    return n;
}

/* A connection that has been in its phase for so long; its peer's end. */
static int add(struct http_conns *conns, bool is_tcp, enum http_phase phase, uint64_t age_ms)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    http_conns_add(conns, ends[0], is_tcp);
    assert_int_equal(LIST_FIRST(&conns->all)->fd, ends[0]);
    http_conn_enter(LIST_FIRST(&conns->all), phase);
    LIST_FIRST(&conns->all)->since_ns = NOW - age_ms * MS;
    return ends[1];
}

static bool has_ended(int peer)
{
    char byte;

    return recv(peer, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Expects this one to give way, whoever has it. */
static void expect_gone(struct http_conns *conns, bool is_tcp, uint64_t waited_ms, int peer)
{
    assert_false(has_ended(peer));
    assert_int_equal(http_conns_make_room(conns, is_tcp, waited_ms * MS, NOW), HTTP_ROOM_MADE);
    assert_true(has_ended(peer));
    close(peer);
}

/* Expects that nobody gives way. */
static void expect_none(struct http_conns *conns, bool is_tcp, uint64_t waited_ms,
                        enum http_room why)
{
    const unsigned n = count(conns, false), n_ended = count(conns, true);

    assert_int_equal(http_conns_make_room(conns, is_tcp, waited_ms * MS, NOW), why);
    assert_true(count(conns, false) == n && count(conns, true) == n_ended);
}

static void stay(int peer)
{
    assert_false(has_ended(peer));
    close(peer);
}

static void the_idlest_goes_first(void **state)
{
    struct http_conns conns = make();
    int third, first, second, last;

    (void)state;
    third = add(&conns, true, HTTP_PHASE_HEAD, 1000);
    first = add(&conns, true, HTTP_PHASE_LINGERING, 300);
    second = add(&conns, true, HTTP_PHASE_IDLE, 2000);
    last = add(&conns, true, HTTP_PHASE_PUBLIC, 9000);
    expect_gone(&conns, true, 0, first);
    expect_gone(&conns, false, 0, second);
    expect_gone(&conns, true, 0, third);
    expect_gone(&conns, false, 0, last);
    expect_none(&conns, false, 0, HTTP_ROOM_NONE);
    finish(&conns);
}

static void who_is_at_work_stays(void **state)
{
    struct http_conns conns = make();
    int peers[2];

    (void)state;
    for (int tcp = 0; tcp < 2; tcp++)
        peers[tcp] = add(&conns, tcp, HTTP_PHASE_WORK, 9000);
    for (int tcp = 0; tcp < 2; tcp++) {
        expect_none(&conns, tcp, 0, HTTP_ROOM_NONE);
        expect_none(&conns, tcp, 1000, HTTP_ROOM_NONE);
    }
    for (int tcp = 0; tcp < 2; tcp++)
        stay(peers[tcp]);
    finish(&conns);
}

/* Most requests are answered at once: who finds all at work waits a little for that. */
static void who_has_just_begun_to_work_is_waited_for(void **state)
{
    struct http_conns conns = make();
    const int old = add(&conns, true, HTTP_PHASE_WORK, 9000);
    const int young = add(&conns, true, HTTP_PHASE_WORK, 249);

    (void)state;
    for (int tcp = 0; tcp < 2; tcp++) {
        expect_none(&conns, tcp, 0, HTTP_ROOM_SOON);
        expect_none(&conns, tcp, 999, HTTP_ROOM_SOON);
        expect_none(&conns, tcp, 1000, HTTP_ROOM_NONE);
    }
    stay(old);
    stay(young);
    finish(&conns);
}

/* However old its connections are, and however young TCP's. */
static void the_operator_goes_last(void **state)
{
    static const enum http_phase phases[] = {HTTP_PHASE_IDLE, HTTP_PHASE_HEAD,
                                             HTTP_PHASE_UNWANTED, HTTP_PHASE_PUBLIC};

    (void)state;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        struct http_conns conns = make();
        int older, tcp;

        older = add(&conns, false, phases[i], 3600000);
        expect_none(&conns, true, 1000, HTTP_ROOM_NONE);
        tcp = add(&conns, true, phases[i], 249);
        expect_none(&conns, false, 0, HTTP_ROOM_SOON);
        LIST_FIRST(&conns.all)->since_ns = NOW - 250 * MS;
        expect_gone(&conns, false, 0, tcp);
        expect_gone(&conns, false, 0, older);
        finish(&conns);
    }
}

/* Who is never idle for long keeps nobody waiting for longer than that. */
static void nobody_waits_for_the_young_for_long(void **state)
{
    struct http_conns conns = make();
    int tcp, older, operators;

    (void)state;
    tcp = add(&conns, true, HTTP_PHASE_IDLE, 1);
    older = add(&conns, true, HTTP_PHASE_IDLE, 20);
    operators = add(&conns, false, HTTP_PHASE_IDLE, 3600000);
    for (int by_tcp = 0; by_tcp < 2; by_tcp++)
        expect_none(&conns, by_tcp, 249, HTTP_ROOM_SOON);
    expect_gone(&conns, false, 250, older);
    expect_gone(&conns, true, 250, tcp);
    stay(operators);
    finish(&conns);
}

/* Who has the connection ends it: until then its place is not free. */
static void deadlines_are_the_loops(void **state)
{
    struct http_conns conns = make();
    const int idle = add(&conns, true, HTTP_PHASE_IDLE, 59999);
    const int head = add(&conns, true, HTTP_PHASE_HEAD, 19999);
    const int work = add(&conns, true, HTTP_PHASE_WORK, 3600000);

    (void)state;
    assert_null(http_conns_expired(&conns, NOW));
    assert_int_equal(http_conns_expired(&conns, NOW + MS)->phase, HTTP_PHASE_HEAD);
    http_conn_close(http_conns_expired(&conns, NOW + MS));
    assert_true(has_ended(head));
    http_conn_close(http_conns_expired(&conns, NOW + MS));
    assert_true(has_ended(idle));
    assert_null(http_conns_expired(&conns, NOW + MS));
    close(idle);
    close(head);
    stay(work);
    finish(&conns);
}

/* What a body brought at once buys no time for the rest of it. */
static void bodies_keep_up(void **state)
{
    struct http_pace pace = {.since_ns = 0};

    (void)state;
    http_pace_add(&pace, 30000, 99u << 20, 1 * MS);
    assert_int_equal(pace.since_ns, 1 * MS);
    http_pace_add(&pace, 30000, 100u << 10, 29000 * MS);
    assert_int_equal(pace.since_ns, 1 * MS);
    http_pace_add(&pace, 30000, 140u << 10, 29500 * MS);
    assert_int_equal(pace.since_ns, 29500 * MS);
    assert_int_equal(pace.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_idlest_goes_first),
        cmocka_unit_test(who_is_at_work_stays),
        cmocka_unit_test(who_has_just_begun_to_work_is_waited_for),
        cmocka_unit_test(the_operator_goes_last),
        cmocka_unit_test(nobody_waits_for_the_young_for_long),
        cmocka_unit_test(deadlines_are_the_loops),
        cmocka_unit_test(bodies_keep_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
