/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gives way where all connections are taken (http_conns.h): phases and ages are the test's,
 * so nothing here depends on how fast anything is.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/http/http_conns.h"
#include "base/clock.h"

#define MS  1000000ull
#define NOW (100000000 * MS)

static const struct http_deadlines patient = {0};

/* A connection that has been in its phase for so long. */
static struct http_conn *add(struct http_conns *conns, bool is_tcp, enum http_phase phase,
                             uint64_t age_ms)
{
    struct http_conn *c = http_conns_add(conns, -1, is_tcp, (uid_t)-1);

    assert_non_null(c);
    c->phase = phase;
    c->since_ns = NOW - age_ms * MS;
    return c;
}

/* Expects this one, whoever it belongs to, to give way. */
static void expect_gone(struct http_conns *conns, bool is_tcp, uint64_t waited_ms,
                        struct http_conn *expected)
{
    struct http_conn *own = NULL;

    assert_int_equal(http_conns_evict(conns, is_tcp, waited_ms * MS, NOW, &own),
                     HTTP_ROOM_MADE);
    if (own) {
        assert_ptr_equal(own, expected);
        http_conns_remove(conns, own);
    } else {
        assert_true(expected->ended);
    }
}

/* Expects that nobody gives way. */
static void expect_none(struct http_conns *conns, bool is_tcp, uint64_t waited_ms,
                        enum http_room why)
{
    struct http_conn *own = NULL;
    unsigned before, after;

    (void)http_conns_count(conns, &before);
    assert_int_equal(http_conns_evict(conns, is_tcp, waited_ms * MS, NOW, &own), why);
    assert_null(own);
    (void)http_conns_count(conns, &after);
    assert_int_equal(after, before);
}

static void the_idlest_goes_first(void **state)
{
    struct http_conn *third, *first, *second, *last;
    struct http_conns conns;

    (void)state;
    http_conns_init(&conns, 8, &patient);
    third = add(&conns, true, HTTP_PHASE_HEAD, 1000);
    first = add(&conns, true, HTTP_PHASE_LINGERING, 300);
    second = add(&conns, true, HTTP_PHASE_IDLE, 2000);
    last = add(&conns, true, HTTP_PHASE_PUBLIC, 9000);
    expect_gone(&conns, true, 0, first);
    expect_gone(&conns, false, 0, second);
    expect_gone(&conns, true, 0, third);
    expect_gone(&conns, false, 0, last);
    expect_none(&conns, false, 0, HTTP_ROOM_NONE);
    http_conns_finish(&conns);
}

static void who_is_at_work_stays(void **state)
{
    struct http_conns conns;

    (void)state;
    http_conns_init(&conns, 8, &patient);
    for (int tcp = 0; tcp < 2; tcp++) {
        (void)add(&conns, tcp, HTTP_PHASE_PASSED, 9000);
        (void)add(&conns, tcp, HTTP_PHASE_BODY, 9000);
        (void)add(&conns, tcp, HTTP_PHASE_ANSWER, 9000);
    }
    for (int tcp = 0; tcp < 2; tcp++) {
        expect_none(&conns, tcp, 0, HTTP_ROOM_NONE);
        expect_none(&conns, tcp, 1000, HTTP_ROOM_NONE);
    }
    http_conns_finish(&conns);
}

/* However old its connections are, and however young TCP's. */
static void the_operator_goes_last(void **state)
{
    static const enum http_phase phases[] = {HTTP_PHASE_WAITING, HTTP_PHASE_IDLE,
                                             HTTP_PHASE_HEAD, HTTP_PHASE_UNWANTED,
                                             HTTP_PHASE_PUBLIC};

    (void)state;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        struct http_conn *older, *tcp;
        struct http_conns conns;

        http_conns_init(&conns, 8, &patient);
        older = add(&conns, false, phases[i], 3600000);
        expect_none(&conns, true, 1000, HTTP_ROOM_NONE);
        tcp = add(&conns, true, phases[i], 249);
        expect_none(&conns, false, 0, HTTP_ROOM_SOON);
        tcp->since_ns = NOW - 250 * MS;
        expect_gone(&conns, false, 0, tcp);
        expect_gone(&conns, false, 0, older);
        http_conns_finish(&conns);
    }
}

/* Who is never idle for long keeps nobody waiting for longer than that. */
static void nobody_waits_for_the_young_for_long(void **state)
{
    struct http_conn *tcp, *older;
    struct http_conns conns;

    (void)state;
    http_conns_init(&conns, 8, &patient);
    tcp = add(&conns, true, HTTP_PHASE_IDLE, 1);
    older = add(&conns, true, HTTP_PHASE_IDLE, 20);
    (void)add(&conns, false, HTTP_PHASE_IDLE, 3600000);
    for (int by_tcp = 0; by_tcp < 2; by_tcp++)
        expect_none(&conns, by_tcp, 249, HTTP_ROOM_SOON);
    expect_gone(&conns, false, 250, older);
    expect_gone(&conns, true, 250, tcp);
    http_conns_finish(&conns);
}

/* What a body brought at once buys no time for the rest of it. */
static void bodies_keep_up(void **state)
{
    struct http_conn *fast, *slow;
    struct http_conns conns;

    (void)state;
    http_conns_init(&conns, 8, &patient);
    fast = add(&conns, true, HTTP_PHASE_BODY, 0);
    slow = add(&conns, true, HTTP_PHASE_BODY, 0);
    http_conns_progress(&conns, slow, 99u << 20);
    slow->since_ns = fast->since_ns = clock_monotonic_ns() - 29000 * MS;
    http_conns_progress(&conns, slow, 100u << 10);
    http_conns_progress(&conns, fast, 300u << 10);
    assert_null(http_conns_expire(&conns, clock_monotonic_ns()));
    assert_false(slow->ended);
    assert_null(http_conns_expire(&conns, clock_monotonic_ns() + 2000 * MS));
    assert_true(slow->ended);
    assert_false(fast->ended);
    http_conns_finish(&conns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_idlest_goes_first),
        cmocka_unit_test(who_is_at_work_stays),
        cmocka_unit_test(the_operator_goes_last),
        cmocka_unit_test(nobody_waits_for_the_young_for_long),
        cmocka_unit_test(bodies_keep_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
