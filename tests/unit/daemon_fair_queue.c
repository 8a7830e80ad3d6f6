/* SPDX-License-Identifier: Apache-2.0 */
/* The fair queue against a made-up clock: who gets the slots, and that nobody is left out. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/engine/fair_queue.h"

#include <stdlib.h>
#include <string.h>

#define MS      1000000ull
#define S       (1000 * MS)
#define N_JOBS  4096
#define N_SLOTS 16

/* An execution of a test: which tenant's, and how long it runs. */
struct job {
    struct fair_entry entry;
    unsigned tenant;
    uint64_t cost_ns;
    uint64_t ends_ns;
};

/* Slots that run what the queue gives, in time that a test lets pass. */
struct world {
    struct fair_queue *q;
    struct job jobs[N_JOBS];
    size_t n_jobs;
    struct job *slots[N_SLOTS];
    unsigned n_slots;
    uint64_t now_ns;
    uint64_t had_ns[8]; /* of slots, by tenant */
    unsigned ended[8];
    unsigned peak[8];
};

static const char *const names[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static struct world *world_create(unsigned n_slots)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->q = fair_queue_create();
    assert_non_null(w->q);
    w->n_slots = n_slots;
    w->now_ns = 5 * S;
    return w;
}

static void submit(struct world *w, unsigned tenant, struct fair_limits limits,
                   uint64_t cost_ns, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct job *job = &w->jobs[w->n_jobs++];
        struct fair_tenant *place = fair_queue_reserve(w->q, names[tenant], &limits);

        assert_true(w->n_jobs <= N_JOBS);
        assert_non_null(place);
        job->tenant = tenant;
        job->cost_ns = cost_ns;
        fair_queue_push(w->q, place, &job->entry, w->now_ns);
    }
}

static struct job *job_of(struct fair_entry *entry)
{
    return (struct job *)((char *)entry - offsetof(struct job, entry));
}

static void fill_slots(struct world *w)
{
    for (unsigned i = 0; i < w->n_slots; i++) {
        struct fair_entry *entry = w->slots[i] ? NULL : fair_queue_take(w->q, w->now_ns);
        struct fair_count count;

        if (!entry)
            continue;
        w->slots[i] = job_of(entry);
        w->slots[i]->ends_ns = w->now_ns + w->slots[i]->cost_ns;
        count = fair_queue_count_of(w->q, names[w->slots[i]->tenant]);
        if (count.running > w->peak[w->slots[i]->tenant])
            w->peak[w->slots[i]->tenant] = count.running;
    }
}

/* Moves to the moment at which the next one ends, or to the end of the test. */
static bool step(struct world *w, uint64_t until_ns)
{
    uint64_t next = until_ns;

    fill_slots(w);
    for (unsigned i = 0; i < w->n_slots; i++) {
        if (w->slots[i] && w->slots[i]->ends_ns < next)
            next = w->slots[i]->ends_ns;
    }
    for (unsigned i = 0; i < w->n_slots; i++) {
        if (w->slots[i])
            w->had_ns[w->slots[i]->tenant] += next - w->now_ns;
    }
    w->now_ns = next;
    for (unsigned i = 0; i < w->n_slots; i++) {
        if (w->slots[i] && w->slots[i]->ends_ns <= next) {
            w->ended[w->slots[i]->tenant]++;
            fair_queue_done(w->q, &w->slots[i]->entry, next);
            w->slots[i] = NULL;
        }
    }
    return next < until_ns;
}

static void run_for(struct world *w, uint64_t ns)
{
    uint64_t until = w->now_ns + ns;

    while (step(w, until))
        ;
}

static void world_destroy(struct world *w)
{
    while (fair_queue_drain(w->q, NULL))
        ;
    for (unsigned i = 0; i < w->n_slots; i++) {
        if (w->slots[i])
            fair_queue_done(w->q, &w->slots[i]->entry, w->now_ns);
    }
    assert_int_equal(fair_queue_count(w->q).waiting, 0);
    assert_int_equal(fair_queue_count(w->q).running, 0);
    fair_queue_destroy(w->q);
    free(w);
}

/* Within per_cent of what is expected. */
static void assert_near(uint64_t value, uint64_t expected, unsigned per_cent)
{
    uint64_t by = expected * per_cent / 100;

    if (value + by < expected || value > expected + by)
        fail_msg("%llu is not near %llu", (unsigned long long)value,
                 (unsigned long long)expected);
}

static void one_tenant_is_served_in_order(void **state)
{
    struct world *w = world_create(1);

    (void)state;
    assert_null(fair_queue_take(w->q, w->now_ns));
    submit(w, 0, (struct fair_limits){0}, S, 3);
    assert_int_equal(fair_queue_oldest_ns(w->q), w->now_ns);
    for (int i = 0; i < 3; i++) {
        fill_slots(w);
        assert_ptr_equal(w->slots[0], &w->jobs[i]);
        assert_int_equal(fair_queue_count(w->q).waiting, 2 - i);
        (void)step(w, UINT64_MAX);
    }
    assert_int_equal(fair_queue_oldest_ns(w->q), 0);
    assert_int_equal(fair_queue_mean_ns(w->q), S);
    world_destroy(w);
}

static void slots_are_shared_by_weight(void **state)
{
    for (unsigned n_slots = 1; n_slots <= 8; n_slots++) {
        struct world *w = world_create(n_slots);

        submit(w, 0, (struct fair_limits){.weight = 10}, S, 1000);
        submit(w, 1, (struct fair_limits){.weight = 30}, S, 1000);
        run_for(w, 100 * S);
        assert_near(w->ended[0], 25 * n_slots, 5);
        assert_near(w->ended[1], 75 * n_slots, 5);
        world_destroy(w);
    }
    (void)state;
}

/* Several slots that come free in the same moment are shared as well. */
static void a_burst_of_slots_is_shared(void **state)
{
    struct world *w = world_create(8);

    (void)state;
    submit(w, 0, (struct fair_limits){.weight = 1}, S, 20);
    submit(w, 1, (struct fair_limits){.weight = 3}, S, 20);
    fill_slots(w);
    assert_int_equal(fair_queue_count_of(w->q, "a").running, 2);
    assert_int_equal(fair_queue_count_of(w->q, "b").running, 6);
    world_destroy(w);
}

/* What counts is how long slots are held, not how many executions there were. */
static void long_executions_cost_more_than_short_ones(void **state)
{
    struct world *w = world_create(4);

    (void)state;
    submit(w, 0, (struct fair_limits){0}, 10 * S, 200);
    submit(w, 1, (struct fair_limits){0}, 500 * MS, 3000);
    run_for(w, 600 * S);
    assert_near(w->had_ns[0], 1200 * S, 5);
    assert_near(w->had_ns[1], 1200 * S, 5);
    world_destroy(w);
}

static void an_idle_tenant_gains_no_credit(void **state)
{
    struct world *w = world_create(2);

    (void)state;
    submit(w, 1, (struct fair_limits){0}, S, 1);
    submit(w, 0, (struct fair_limits){0}, S, 1000);
    run_for(w, 200 * S);
    assert_int_equal(w->ended[1], 1);
    memset(w->had_ns, 0, sizeof(w->had_ns));
    /* Away for 199 s, and now it floods: half of what there is, not all until it is even. */
    submit(w, 1, (struct fair_limits){0}, S, 1000);
    run_for(w, 20 * S);
    assert_near(w->had_ns[0], 20 * S, 10);
    assert_near(w->had_ns[1], 20 * S, 10);
    world_destroy(w);
}

static void capacity_nobody_wanted_is_no_debt(void **state)
{
    struct world *w = world_create(2);

    (void)state;
    /* Alone it holds both slots for ten minutes, with nothing waiting behind. */
    submit(w, 0, (struct fair_limits){0}, 600 * S, 2);
    run_for(w, 600 * S);
    submit(w, 1, (struct fair_limits){0}, S, 500);
    submit(w, 0, (struct fair_limits){0}, S, 500);
    memset(w->had_ns, 0, sizeof(w->had_ns));
    run_for(w, 20 * S);
    assert_near(w->had_ns[0], 20 * S, 10);
    assert_near(w->had_ns[1], 20 * S, 10);
    world_destroy(w);
}

/* A tenant does not lose its debt by leaving for a moment while others wait. */
static void a_debt_outlives_a_pause(void **state)
{
    struct world *w = world_create(1);

    (void)state;
    submit(w, 0, (struct fair_limits){0}, S, 100);
    submit(w, 1, (struct fair_limits){0}, 10 * S, 1);
    run_for(w, 11 * S);
    assert_int_equal(w->ended[0], 1);
    assert_int_equal(w->ended[1], 1);
    submit(w, 1, (struct fair_limits){0}, 10 * S, 1);
    run_for(w, 8 * S);
    assert_int_equal(w->ended[0], 9);
    assert_int_equal(w->ended[1], 1);
    world_destroy(w);
}

static void a_cap_holds_and_blocks_nobody_else(void **state)
{
    struct world *w = world_create(4);

    (void)state;
    submit(w, 0, (struct fair_limits){.weight = 100, .max_running = 1}, S, 200);
    submit(w, 1, (struct fair_limits){.weight = 1}, S, 400);
    run_for(w, 50 * S);
    assert_int_equal(w->peak[0], 1);
    assert_int_equal(w->peak[1], 3);
    assert_int_equal(w->ended[0], 50);
    assert_int_equal(w->ended[1], 150);
    /* Alone it is capped as well, and the other slots stay free. */
    while (fair_queue_count_of(w->q, "b").waiting > 0)
        (void)step(w, UINT64_MAX);
    fill_slots(w);
    assert_null(fair_queue_take(w->q, w->now_ns));
    assert_int_equal(fair_queue_count_of(w->q, "a").running, 1);
    world_destroy(w);
}

/* What a cap kept from a tenant is not owed to it once the cap is lifted. */
static void a_cap_that_is_lifted_leaves_no_credit(void **state)
{
    struct world *w = world_create(4);
    const struct fair_limits none = {0};

    (void)state;
    submit(w, 0, (struct fair_limits){.max_running = 1}, S, 500);
    submit(w, 1, (struct fair_limits){0}, S, 500);
    run_for(w, 100 * S);
    assert_int_equal(w->ended[0], 100);
    fair_queue_set_limits(w->q, "a", &none);
    fair_queue_set_limits(w->q, "nobody", &none);
    memset(w->had_ns, 0, sizeof(w->had_ns));
    run_for(w, 10 * S);
    assert_near(w->had_ns[0], 20 * S, 10);
    assert_near(w->had_ns[1], 20 * S, 10);
    world_destroy(w);
}

/* The lightest of eight, against seven that flood with a hundred times its weight. */
static void nobody_starves(void **state)
{
    struct world *w = world_create(2);

    (void)state;
    for (unsigned i = 1; i < 8; i++)
        submit(w, i, (struct fair_limits){.weight = 100}, 100 * MS, 580);
    submit(w, 0, (struct fair_limits){.weight = 1}, 100 * MS, 5);
    run_for(w, 200 * S);
    assert_true(w->ended[0] >= 2);
    world_destroy(w);
}

/* One that ends at once costs something all the same, or it would be chosen for ever. */
static void nothing_is_free(void **state)
{
    struct world *w = world_create(1);
    unsigned before = 0;

    (void)state;
    submit(w, 0, (struct fair_limits){0}, 0, 1000);
    submit(w, 1, (struct fair_limits){0}, 2 * MS, 10);
    while (w->ended[1] < 10) {
        (void)step(w, UINT64_MAX);
        before = w->ended[0];
    }
    assert_true(before >= 15 && before <= 25);
    world_destroy(w);
}

static void one_that_waits_can_be_taken_out(void **state)
{
    struct world *w = world_create(1);

    (void)state;
    submit(w, 0, (struct fair_limits){0}, S, 3);
    fair_queue_remove(w->q, &w->jobs[2].entry);
    assert_null(w->jobs[2].entry.tenant);
    submit(w, 0, (struct fair_limits){0}, S, 1);
    fair_queue_remove(w->q, &w->jobs[0].entry);
    fair_queue_remove(w->q, &w->jobs[1].entry);
    assert_int_equal(fair_queue_count(w->q).waiting, 1);
    fill_slots(w);
    assert_ptr_equal(w->slots[0], &w->jobs[3]);
    assert_true(w->jobs[3].entry.running);
    world_destroy(w);
}

static bool is_second_or_later(const struct fair_entry *entry)
{
    return entry->since_ns > 5 * S;
}

/* Of the tenant whose turn it is, where it could run; its place is kept until it is back. */
static void one_that_waits_can_be_lent(void **state)
{
    struct world *w = world_create(1);
    struct fair_tenant *place;
    struct fair_entry *entry;

    (void)state;
    submit(w, 0, (struct fair_limits){0}, S, 1);
    w->now_ns += S;
    submit(w, 0, (struct fair_limits){0}, S, 1);
    submit(w, 1, (struct fair_limits){.max_running = 1}, S, 2);
    assert_null(w->slots[0]);
    entry = fair_queue_lend(w->q, is_second_or_later, w->now_ns, &place);
    assert_true(entry == &w->jobs[1].entry || entry == &w->jobs[2].entry);
    assert_null(entry->tenant);
    assert_int_equal(fair_queue_count(w->q).waiting, 4);
    fair_queue_return(place, entry);
    assert_int_equal(fair_queue_count(w->q).waiting, 4);
    fair_queue_remove(w->q, &w->jobs[0].entry);
    fair_queue_remove(w->q, &w->jobs[1].entry);
    fill_slots(w);
    assert_ptr_equal(w->slots[0], &w->jobs[2]);
    /* Its tenant may run no more, here or elsewhere. */
    assert_null(fair_queue_lend(w->q, is_second_or_later, w->now_ns, &place));
    fair_queue_set_limits(w->q, "b", &(struct fair_limits){0});
    assert_ptr_equal(fair_queue_lend(w->q, is_second_or_later, w->now_ns, &place),
                     &w->jobs[3].entry);
    fair_queue_give_back(w->q, place);
    assert_int_equal(fair_queue_count(w->q).waiting, 0);
    run_for(w, 2 * S);
    world_destroy(w);
}

static void what_comes_back_has_the_place_it_had(void **state)
{
    struct world *w = world_create(1);
    struct fair_tenant *place;

    (void)state;
    submit(w, 0, (struct fair_limits){0}, S, 1);
    w->now_ns += S;
    submit(w, 0, (struct fair_limits){0}, S, 2);
    (void)fair_queue_lend(w->q, is_second_or_later, w->now_ns, &place);
    fair_queue_return(place, &w->jobs[1].entry);
    assert_ptr_equal(fair_queue_drain(w->q, NULL), &w->jobs[0].entry);
    assert_null(fair_queue_drain(w->q, is_second_or_later));
    world_destroy(w);
}

static void a_kept_place_counts_and_can_be_given_back(void **state)
{
    struct fair_queue *q = fair_queue_create();
    const struct fair_limits none = {0};
    struct fair_tenant *place = fair_queue_reserve(q, "a", &none);

    (void)state;
    assert_int_equal(fair_queue_count(q).waiting, 1);
    assert_int_equal(fair_queue_count_of(q, "a").waiting, 1);
    /* Others come meanwhile: it stays. */
    fair_queue_give_back(q, fair_queue_reserve(q, "b", &none));
    fair_queue_give_back(q, fair_queue_reserve(q, "c", &none));
    assert_int_equal(fair_queue_count_of(q, "a").waiting, 1);
    assert_null(fair_queue_take(q, S));
    fair_queue_give_back(q, place);
    assert_int_equal(fair_queue_count(q).waiting, 0);
    fair_queue_destroy(q);
    fair_queue_destroy(NULL);
}

static void count_tenants(void *ctx, const char *tenant, struct fair_count count)
{
    unsigned *n = ctx;

    (void)tenant;
    assert_true(count.waiting + count.running <= 1);
    (*n)++;
}

/* Tenants that come and go leave nothing behind. */
static void those_that_left_are_forgotten(void **state)
{
    struct fair_queue *q = fair_queue_create();
    const struct fair_limits none = {0};
    uint64_t now = S;
    unsigned n = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct fair_entry entry = {0};
        char name[16];

        snprintf(name, sizeof(name), "t%d", i);
        fair_queue_push(q, fair_queue_reserve(q, name, &none), &entry, now);
        assert_ptr_equal(fair_queue_take(q, now), &entry);
        now += 10 * MS;
        fair_queue_done(q, &entry, now);
    }
    fair_queue_each(q, count_tenants, &n);
    assert_true(n <= 2);
    fair_queue_destroy(q);
}

/*
 * Anything at random: what is put in comes out once, caps hold always, the counts are right,
 * and a free slot stays free only when nobody may run.
 */
static void invariants_hold_at_random(void **state)
{
    unsigned seed = 20261122;

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct world *w = world_create(1 + (unsigned)round % N_SLOTS);
        struct fair_limits limits[8];
        unsigned put = 0, out = 0, removed = 0;

        for (int i = 0; i < 8; i++)
            limits[i] = (struct fair_limits){.weight = (unsigned)rand_r(&seed) % 101,
                                             .max_running = (unsigned)rand_r(&seed) % 4};
        while (put < 2000) {
            unsigned t = (unsigned)rand_r(&seed) % 8, n = (unsigned)rand_r(&seed) % 5;

            submit(w, t, limits[t], (uint64_t)(rand_r(&seed) % 50) * MS, n);
            put += n;
            if (rand_r(&seed) % 16 == 0 && fair_queue_drain(w->q, NULL))
                removed++;
            run_for(w, (uint64_t)(rand_r(&seed) % 30) * MS);
            fill_slots(w);
            assert_null(fair_queue_count(w->q).running < w->n_slots
                            ? fair_queue_take(w->q, w->now_ns)
                            : NULL);
            for (int i = 0; i < 8; i++)
                assert_true(limits[i].max_running == 0 || w->peak[i] <= limits[i].max_running);
        }
        while (fair_queue_count(w->q).waiting + fair_queue_count(w->q).running > 0)
            (void)step(w, UINT64_MAX);
        for (int i = 0; i < 8; i++)
            out += w->ended[i];
        assert_int_equal(put, out + removed);
        world_destroy(w);
    }
}

/* What a tenant has elsewhere, by its name. */
static void set_elsewhere(struct world *w, unsigned tenant, unsigned running, uint64_t since_ns)
{
    const struct fair_limits limits = {.max_running = 2};
    const struct fair_elsewhere e = {.running = running, .since_ns = since_ns};
    struct fair_tenant *t = fair_queue_reserve(w->q, names[tenant], &limits);

    fair_queue_set_elsewhere(t, &e, w->now_ns);
    fair_queue_give_back(w->q, t);
}

static void what_runs_elsewhere_counts_to_the_cap(void **state)
{
    const struct fair_limits two = {.max_running = 2};
    struct world *w = world_create(4);

    (void)state;
    set_elsewhere(w, 0, 1, 0);
    submit(w, 0, two, S, 5);
    run_for(w, S);
    assert_int_equal(w->peak[0], 1);
    set_elsewhere(w, 0, 7, 0);
    run_for(w, S);
    assert_int_equal(w->ended[0], 1);
    set_elsewhere(w, 0, 0, 0);
    run_for(w, S);
    assert_int_equal(w->ended[0], 3);
    world_destroy(w);
}

/* Of two equal tenants one has a slot elsewhere all the time: the one here is the other's. */
static void what_runs_elsewhere_counts_to_the_share(void **state)
{
    struct world *w = world_create(1);

    (void)state;
    submit(w, 0, (struct fair_limits){0}, S / 10, 1000);
    set_elsewhere(w, 0, 1, 0);
    submit(w, 1, (struct fair_limits){0}, S / 10, 1000);
    run_for(w, 60 * S);
    assert_true(w->had_ns[1] > 45 * S);
    /* Yet it does not starve here: those that wait for long have their turns. */
    assert_true(w->ended[0] >= 2);
    /* And what it owes has a bound, once it has nothing elsewhere. */
    set_elsewhere(w, 0, 0, 0);
    w->had_ns[0] = 0;
    w->had_ns[1] = 0;
    run_for(w, 30 * S);
    assert_true(w->had_ns[0] > 9 * S);
    world_destroy(w);
}

/* The last place of a cap goes to one that waits longer elsewhere, if that takes it. */
static void the_last_place_is_left_to_who_waits_longer(void **state)
{
    const struct fair_limits two = {.max_running = 2};
    struct world *w = world_create(2);

    (void)state;
    submit(w, 0, two, S, 3);
    w->now_ns += S;
    set_elsewhere(w, 0, 1, w->now_ns - 3 * S);
    assert_null(fair_queue_take(w->q, w->now_ns));
    assert_null(fair_queue_take(w->q, w->now_ns + FAIR_YIELD_NS - 1));
    fill_slots(w);
    assert_null(w->slots[0]);
    w->now_ns += FAIR_YIELD_NS;
    fill_slots(w);
    assert_non_null(w->slots[0]);
    assert_null(w->slots[1]);
    /* Not the one before the last, nor to one that has waited for less. */
    set_elsewhere(w, 0, 0, w->now_ns);
    fill_slots(w);
    assert_non_null(w->slots[1]);
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tenant_is_served_in_order),
        cmocka_unit_test(slots_are_shared_by_weight),
        cmocka_unit_test(a_burst_of_slots_is_shared),
        cmocka_unit_test(long_executions_cost_more_than_short_ones),
        cmocka_unit_test(an_idle_tenant_gains_no_credit),
        cmocka_unit_test(capacity_nobody_wanted_is_no_debt),
        cmocka_unit_test(a_debt_outlives_a_pause),
        cmocka_unit_test(a_cap_holds_and_blocks_nobody_else),
        cmocka_unit_test(a_cap_that_is_lifted_leaves_no_credit),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(nothing_is_free),
        cmocka_unit_test(one_that_waits_can_be_taken_out),
        cmocka_unit_test(one_that_waits_can_be_lent),
        cmocka_unit_test(what_comes_back_has_the_place_it_had),
        cmocka_unit_test(a_kept_place_counts_and_can_be_given_back),
        cmocka_unit_test(those_that_left_are_forgotten),
        cmocka_unit_test(invariants_hold_at_random),
        cmocka_unit_test(what_runs_elsewhere_counts_to_the_cap),
        cmocka_unit_test(what_runs_elsewhere_counts_to_the_share),
        cmocka_unit_test(the_last_place_is_left_to_who_waits_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
