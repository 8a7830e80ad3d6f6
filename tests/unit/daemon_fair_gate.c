/* SPDX-License-Identifier: Apache-2.0 */
/* The gate with real threads: how many are behind it, whose turn it is, and who gives up. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/fair_gate.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define MS      1000000ull
#define SECOND  (1000 * MS)
#define CLIENTS 24

static atomic_uint behind, most, passed;

struct client {
    struct fair_gate *gate;
    const char *tenant;
    unsigned rounds;
    unsigned came;  /* how many had passed before it came */
    unsigned place; /* how many had passed before it had, all its rounds over */
    pthread_t thread;
};

static uint64_t in(uint64_t ns)
{
    return clock_monotonic_ns() + ns;
}

static void *go_through(void *arg)
{
    struct client *c = arg;

    c->came = atomic_load(&passed);
    for (unsigned i = 0; i < c->rounds; i++) {
        struct fair_gate_entry entry;
        unsigned now, seen;

        if (fair_gate_enter(c->gate, c->tenant, &entry, in(60 * SECOND), NULL) < 0)
            return arg;
        now = atomic_fetch_add(&behind, 1) + 1;
        seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
            ;
        usleep(2000);
        atomic_fetch_sub(&behind, 1);
        fair_gate_leave(c->gate, &entry);
        c->place = atomic_fetch_add(&passed, 1) + 1;
    }
    return NULL;
}

static void start(struct client *c, struct fair_gate *gate, const char *tenant, unsigned rounds)
{
    *c = (struct client){.gate = gate, .tenant = tenant, .rounds = rounds};
    assert_int_equal(pthread_create(&c->thread, NULL, go_through, c), 0);
}

static void join(struct client *c)
{
    void *failed = c;

    assert_int_equal(pthread_join(c->thread, &failed), 0);
    assert_null(failed);
}

static void no_more_are_behind_it_than_may(void **state)
{
    static const char *const tenants[] = {"a", "b", "c"};
    struct fair_gate *gate = fair_gate_create(3);
    struct client clients[CLIENTS];

    (void)state;
    atomic_store(&most, 0);
    atomic_store(&passed, 0);
    for (size_t i = 0; i < CLIENTS; i++)
        start(&clients[i], gate, tenants[i % 3], 10);
    for (size_t i = 0; i < CLIENTS; i++)
        join(&clients[i]);
    assert_int_equal(atomic_load(&most), 3);
    assert_int_equal(atomic_load(&passed), CLIENTS * 10);
    fair_gate_destroy(gate);
    fair_gate_destroy(NULL);
}

static void a_crowd_of_one_tenant_keeps_nobody_out(void **state)
{
    struct fair_gate *gate = fair_gate_create(1);
    struct client crowd[CLIENTS], other;

    (void)state;
    atomic_store(&passed, 0);
    for (size_t i = 0; i < CLIENTS; i++)
        start(&crowd[i], gate, "crowd", 10);
    while (atomic_load(&passed) == 0)
        usleep(1000);
    start(&other, gate, "other", 10);
    join(&other);
    /* About every second turn was its own, from when it came on. */
    assert_true(other.place - other.came < CLIENTS * 10 / 2);
    for (size_t i = 0; i < CLIENTS; i++)
        join(&crowd[i]);
    fair_gate_destroy(gate);
}

/* Who is behind the gate cannot be asked to leave. */
static void one_tenant_does_not_take_the_last_place(void **state)
{
    struct fair_gate *gate = fair_gate_create(3);
    struct fair_gate_entry entries[4];

    (void)state;
    assert_int_equal(fair_gate_enter(gate, "a", &entries[0], 0, NULL), 0);
    assert_int_equal(fair_gate_enter(gate, "a", &entries[1], 0, NULL), 0);
    assert_int_equal(fair_gate_enter(gate, "a", &entries[3], 0, NULL), -EBUSY);
    assert_int_equal(fair_gate_enter(gate, "b", &entries[2], 0, NULL), 0);
    for (size_t i = 0; i < 3; i++)
        fair_gate_leave(gate, &entries[i]);
    fair_gate_destroy(gate);
}

static void one_that_waits_too_long_gives_up(void **state)
{
    struct fair_gate *gate = fair_gate_create(1);
    struct fair_gate_entry first, second;
    struct err err = {0};
    uint64_t before;

    (void)state;
    assert_int_equal(fair_gate_enter(gate, "a", &first, 0, NULL), 0);
    before = clock_monotonic_ns();
    assert_int_equal(fair_gate_enter(gate, "a", &second, in(30 * MS), &err), -EBUSY);
    assert_true(clock_monotonic_ns() - before >= 30 * MS);
    assert_true(strlen(err.message) > 0);
    assert_int_equal(fair_gate_enter(gate, "b", &second, 0, &err), -EBUSY);
    fair_gate_leave(gate, &first);
    assert_int_equal(fair_gate_enter(gate, "b", &second, 0, NULL), 0);
    fair_gate_leave(gate, &second);
    fair_gate_destroy(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_are_behind_it_than_may),
        cmocka_unit_test(a_crowd_of_one_tenant_keeps_nobody_out),
        cmocka_unit_test(one_tenant_does_not_take_the_last_place),
        cmocka_unit_test(one_that_waits_too_long_gives_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
