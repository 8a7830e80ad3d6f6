/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool by itself, over the stand-in for the VMM: what no caller of the daemon can bring
 * about at will.
 */
#include "tests/unit/pool_fixture.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Has the snapshot made anew, by more uses than one may have. */
static void renew(const struct fixture *f)
{
    const struct config_snapshots limits = {.max_uses = 1000};
    struct snapshot *old = snapshots_current(f->snapshots, 0);

    snapshots_set(f->snapshots, &limits);
    for (int i = 0; i < 1000; i++)
        snapshots_count_use(f->snapshots, old);
    snapshot_unref(old);
}

static void a_renewed_snapshot_leaves_nothing_parked(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots, 0), *now;
    struct who before, after;

    WAIT_FOR(measure(f).parked_fresh == 1);
    (void)visit(f, "a", "FAKE=who", &before);
    WAIT_FOR(measure(f).parked_used == 1 && measure(f).parked_fresh == 1);
    renew(f);
    WAIT_FOR((now = snapshots_current(f->snapshots, 0), snapshot_unref(now), now != old));
    /* At once for who takes one, and within a second for the others. */
    assert_int_not_equal(visit(f, "a", "FAKE=who", &after), POOL_REUSED);
    assert_string_not_equal(before.text, after.text);
    WAIT_FOR(measure(f).ends[POOL_END_RENEWED] >= 2);
    WAIT_FOR(measure(f).parked_fresh >= 1 && measure(f).parked_used == 1);
    assert_int_equal(visit(f, "a", "FAKE=who", &before), POOL_REUSED);
    snapshot_unref(old);
}

/* One that began before the renewal is not parked after it. */
static void who_runs_meanwhile_keeps_its_snapshot(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots, 0), *now;
    struct machine_report report;
    struct machine *m = NULL;
    struct who who;

    m = take_machine(f, "a");
    renew(f);
    WAIT_FOR((now = snapshots_current(f->snapshots, 0), snapshot_unref(now), now != old));
    assert_int_equal(run_in(m, "FAKE=who", &who, &report), 0);
    assert_string_equal(report.snapshot, old->key);
    machine_release(m);
    WAIT_FOR(measure(f).ends[POOL_END_RENEWED] >= 1);
    assert_int_equal(measure(f).parked_used, 0);
    snapshot_unref(old);
}

static void so_many_executions_renew_it(void **state)
{
    const struct config_snapshots limits = {.max_uses = 3};
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots, 0);
    struct who who;

    snapshots_set(f->snapshots, &limits);
    (void)visit(f, "a", "FAKE=who", &who);
    assert_int_equal(visit(f, "a", "FAKE=who", &who), POOL_REUSED);
    assert_int_equal(measure_snapshots(f).uses, 2);
    assert_int_not_equal(faccessat(f->tmp_fd, "snapshot-in-the-making", F_OK, 0), 0);
    write_file(f->kernel, "boot=wait");
    (void)visit(f, "a", "FAKE=who", &who);
    WAIT_FOR(faccessat(f->tmp_fd, "snapshot-in-the-making", F_OK, 0) == 0);
    /* Until it is there, the old one serves. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(visit(f, "a", "FAKE=who", &who), POOL_REUSED);
    assert_true(is_current(f, old));
    assert_int_equal(measure_snapshots(f).uses, 6);
    write_file(f->kernel, "boot");
    WAIT_FOR(!is_current(f, old));
    assert_int_not_equal(visit(f, "a", "FAKE=who", &who), POOL_REUSED);
    assert_int_equal(measure_snapshots(f).uses, 1);
    assert_int_equal(measure_snapshots(f).made, 2);
    WAIT_FOR(measure(f).ends[POOL_END_RENEWED] >= 1);
    snapshot_unref(old);
}

/* Who still runs from the old one is no use of the new one. */
static void uses_are_of_one_snapshot(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots, 0);
    struct machine_report report;
    struct machine *m = NULL;
    struct who who;

    m = take_machine(f, "a");
    renew(f);
    WAIT_FOR(!is_current(f, old));
    assert_int_equal(run_in(m, "FAKE=who", &who, &report), 0);
    machine_release(m);
    assert_int_equal(measure_snapshots(f).uses, 0);
    snapshot_unref(old);
}

static void time_renews_it(void **state)
{
    const struct config_snapshots limits = {.renew_ms = 1};
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots, 0);

    assert_int_equal(measure_snapshots(f).made, 1);
    snapshots_set(f->snapshots, &limits);
    WAIT_FOR(!is_current(f, old));
    WAIT_FOR(measure_snapshots(f).made >= 3);
    snapshot_unref(old);
}

static void a_renewal_that_fails_is_tried_again(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots, 0);
    struct who who;

    (void)visit(f, "a", "FAKE=who", &who);
    write_file(f->kernel, "boot=failed");
    renew(f);
    WAIT_FOR(measure_snapshots(f).failed >= 3);
    assert_true(is_current(f, old));
    assert_true(measure_snapshots(f).is_ready);
    assert_int_equal(visit(f, "a", "FAKE=who", &who), POOL_REUSED);
    write_file(f->kernel, "boot");
    WAIT_FOR(!is_current(f, old));
    assert_int_equal(measure_snapshots(f).made, 2);
    snapshot_unref(old);
}

/* Makes the one on disk a year older. */
static void age_manifest(const struct fixture *f, const char *key)
{
    char path[128], text[8192] = "", *year;
    int fd;

    snprintf(path, sizeof(path), "%s/manifest.json", key);
    fd = openat(f->snapshots_fd, path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fd_read_full(fd, text, sizeof(text) - 1) > 0);
    year = strstr(text, "\"made_at\": \"20");
    assert_non_null(year);
    year += strlen("\"made_at\": \"20");
    assert_int_equal(fd_pwrite_full(fd, "01", 2, (uint64_t)(year - text)), 0);
    close(fd);
}

static void its_time_on_disk_counts(void **state)
{
    const struct config_snapshots limits = {.renew_ms = 3600000};
    struct fixture *f = *state;
    struct snapshot *first = snapshots_current(f->snapshots, 0);

    pool_destroy(f->pool);
    f->pool = NULL;
    snapshots_destroy(f->snapshots);
    /* Young enough it is used as it is. */
    f->snapshots = start_snapshots(f, limits);
    assert_int_equal(measure_snapshots(f).made, 0);
    assert_true(measure_snapshots(f).age_ns < limits.renew_ms * 1000000u);
    snapshots_destroy(f->snapshots);
    age_manifest(f, first->key);
    f->snapshots = start_snapshots(f, limits);
    WAIT_FOR(measure_snapshots(f).made == 1);
    WAIT_FOR(measure_snapshots(f).age_ns < limits.renew_ms * 1000000u);
    snapshot_unref(first);
}

/* A taker that is cancelled while it waits for a reset leaves it to the next. */
static void cancelled_while_it_takes(void **state)
{
    struct fixture *f = *state;
    const struct machine_wish wish = wish_for("a", "");
    struct who first, second;
    struct machine *m = NULL;
    struct err err = {0};
    int cancel_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_int_equal(machine_take(f->pool, &wish, cancel_fd, &m, &err), -ECANCELED);
    close(cancel_fd);
    cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)visit(f, "a", "FAKE=reset-slow", &first);
    assert_int_equal(eventfd_write(cancel_fd, 1), 0);
    err = (struct err){0};
    assert_int_equal(machine_take(f->pool, &wish, cancel_fd, &m, &err), -ECANCELED);
    assert_null(m);
    close(cancel_fd);
    assert_int_equal(visit(f, "a", "FAKE=who", &second), POOL_REUSED);
    /* Its pid stands at the beginning. */
    assert_memory_equal(first.text, second.text, strcspn(first.text, ","));
}

struct later {
    int fd;
    pthread_t thread;
};

static void *cancel_later(void *arg)
{
    const struct later *later = arg;

    usleep(150000);
    (void)eventfd_write(later->fd, 1);
    return NULL;
}

static void cancelled_in_the_midst_of_waiting(void **state)
{
    struct fixture *f = *state;
    const struct machine_wish wish = wish_for("a", "");
    struct later later = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct machine *m = NULL;
    struct err err = {0};
    struct who who;
    uint64_t start_ns;

    (void)visit(f, "a", "FAKE=reset-hang", &who);
    assert_int_equal(pthread_create(&later.thread, NULL, cancel_later, &later), 0);
    start_ns = clock_monotonic_ns();
    assert_int_equal(machine_take(f->pool, &wish, later.fd, &m, &err), -ECANCELED);
    /* The reset has twenty seconds to fail. */
    assert_true(clock_monotonic_ns() - start_ns < 15000000000u);
    pthread_join(later.thread, NULL);
    close(later.fd);
}

/* It died after it was taken: what its taker wanted to run has not begun, and may elsewhere. */
static void one_that_died_began_nothing(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;
    siginfo_t ended;
    struct machine *m;
    struct who who;
    int pid;

    (void)visit(f, "a", "FAKE=who", &who);
    assert_int_equal(sscanf(who.text, "{\"pid\":%d,", &pid), 1);
    m = take_machine(f, "a");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(run_in(m, "FAKE=who", &who, &report), -EPIPE);
    assert_int_equal(report.kind, POOL_REUSED);
    assert_int_equal(report.guest.times.started_ns, 0);
    machine_release(m);
    m = take_machine(f, "a");
    assert_int_equal(run_in(m, "FAKE=die", &who, &report), -EPIPE);
    assert_int_not_equal(report.guest.times.started_ns, 0);
    machine_release(m);
}

static void what_is_distrusted_is_not_given_again(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;
    struct machine *m = NULL;
    struct who who;

    m = take_machine(f, "a");
    assert_int_equal(run_in(m, "FAKE=who", &who, &report), 0);
    machine_distrust(m);
    machine_release(m);
    WAIT_FOR(measure(f).ends[POOL_END_UNCLEAN] == 1);
    assert_int_not_equal(visit(f, "a", "FAKE=who", &who), POOL_REUSED);
    machine_release(NULL);
}

/* Those that wait give way first when memory is short, and come back. */
static void short_of_memory_nothing_waits(void **state)
{
    struct fixture *f = *state;
    struct who who;

    WAIT_FOR(measure(f).parked_fresh == 1);
    (void)visit(f, "a", "FAKE=who", &who);
    WAIT_FOR(measure(f).parked_used == 1 && measure(f).parked_fresh == 1);
    __atomic_store_n(&f->is_short, true, __ATOMIC_RELAXED);
    WAIT_FOR(measure(f).machines == 0);
    assert_int_equal(measure(f).ends[POOL_END_ROOM], 2);
    assert_int_equal(visit(f, "a", "FAKE=who", &who), POOL_STARTED);
    WAIT_FOR(measure(f).machines == 0);
    __atomic_store_n(&f->is_short, false, __ATOMIC_RELAXED);
    WAIT_FOR(measure(f).parked_fresh == 1);
}

/* New limits hold for what waits already. */
static void limits_may_shrink(void **state)
{
    struct config_machines limits = {
        .parked = 1, .memory_bytes = 1ull << 40, .idle_ms = 60000, .max_uses = 100};
    struct fixture *f = *state;
    struct who who;

    WAIT_FOR(measure(f).parked_fresh == 1);
    (void)visit(f, "a", "FAKE=who", &who);
    (void)visit(f, "b", "FAKE=who", &who);
    WAIT_FOR(measure(f).parked_used == 2);
    pool_set(f->pool, &limits);
    assert_int_equal(measure(f).parked_used + measure(f).parked_fresh, 1);
    limits.parked = 0;
    pool_set(f->pool, &limits);
    WAIT_FOR(measure(f).machines == 0);
    assert_int_equal(visit(f, "a", "FAKE=who", &who), POOL_STARTED);
    WAIT_FOR(measure(f).machines == 0);
}

/* A machine that does not fit is no reason to make the next one at once. */
static void what_has_no_room_is_tried_less_and_less(void **state)
{
    struct config_machines limits = {
        .parked = 1, .memory_bytes = 1, .idle_ms = 60000, .max_uses = 100};
    struct fixture *f = *state;
    uint64_t begin_ns;

    WAIT_FOR(measure(f).parked_fresh == 1);
    begin_ns = clock_monotonic_ns();
    pool_set(f->pool, &limits);
    /* The one that waited, and three in its place: the second after a second, then after two.
     */
    WAIT_FOR(measure(f).ends[POOL_END_ROOM] >= 4);
    assert_true(clock_monotonic_ns() - begin_ns >= 3 * NS_PER_SECOND);
    assert_int_equal(measure(f).parked_fresh, 0);
    limits.memory_bytes = 1ull << 40;
    pool_set(f->pool, &limits);
    WAIT_FOR(measure(f).parked_fresh == 1);
}

/* More machines than may be behind are ended by who releases them; none is lost. */
static void many_at_once(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;
    struct machine *m[48];
    struct who who;

    for (size_t i = 0; i < 48; i++)
        m[i] = take_machine(f, "");
    for (size_t i = 0; i < 48; i++)
        assert_int_equal(run_in(m[i], "FAKE=who", &who, &report), 0);
    for (size_t i = 0; i < 48; i++) {
        machine_release(m[i]);
        assert_true(measure(f).behind <= 32);
    }
    WAIT_FOR(measure(f).behind == 0);
    assert_int_equal(measure(f).ends[POOL_END_UNWANTED] + measure(f).ends[POOL_END_ROOM], 48);
}

static bool is_pausing(int pid)
{
    char path[32], name[32];

    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    (void)fd_read_text(path, name, sizeof(name));
    return strcmp(name, "pausing\n") == 0;
}

/*
 * Has a machine of each of n owners of a party hang in its reset, as far as keepers take them
 * in hand.
 */
static void hang(struct fixture *f, const char *party, unsigned n)
{
    struct who who;

    for (unsigned i = 0; i < n; i++) {
        struct machine_wish wish = wish_for("", "");
        int pid;

        snprintf(wish.owner, sizeof(wish.owner), "%s/%u", party, i);
        snprintf(wish.party, sizeof(wish.party), "%s", party);
        (void)visit_as(f, &wish, "FAKE=reset-hang", &who);
        assert_int_equal(sscanf(who.text, "{\"pid\":%d,", &pid), 1);
        WAIT_FOR(i >= 4 || is_pausing(pid));
    }
}

/* What a party's machines keep from being reset is its own, and not for long. */
static void resets_that_hang_hold_up_no_other_party(void **state)
{
    struct machine_wish wish = wish_for("b/skill", "");
    struct fixture *f = *state;
    struct who who;

    snprintf(wish.party, sizeof(wish.party), "b");
    hang(f, "a", 6);
    (void)visit_as(f, &wish, "FAKE=who", &who);
    WAIT_FOR(measure(f).parked_used == 1);
    assert_int_equal(visit_as(f, &wish, "FAKE=who", &who).kind, POOL_REUSED);
    /* Four are in the hands of keepers, which wait for twenty seconds; the others go. */
    WAIT_FOR(measure(f).behind == 4);
    assert_int_equal(measure(f).resets_failed, 0);
}

/* Where no keeper is left for it, its owner takes another one. */
static void who_waits_for_no_keeper_takes_another(void **state)
{
    struct machine_wish wish = wish_for("c/skill", "");
    struct fixture *f = *state;
    struct who who;

    snprintf(wish.party, sizeof(wish.party), "c");
    hang(f, "a", 4);
    hang(f, "b", 1);
    (void)visit_as(f, &wish, "FAKE=who", &who);
    assert_int_not_equal(visit_as(f, &wish, "FAKE=who", &who).kind, POOL_REUSED);
    assert_int_equal(measure(f).resets_failed, 0);
}

/* A guest that goes on when it said that it is done. */
static void cpu_time_after_the_end_counts(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;
    struct machine *m = take_machine(f, "");
    uint64_t us = 0;
    struct who who;

    assert_int_equal(run_in(m, "FAKE=who-burns", &who, &report), 0);
    WAIT_FOR((us += machine_took_us(m)) >= 200000);
    machine_release(m);
}

static int read_slowly(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    const uint64_t end_ns = clock_thread_cpu_ns() + 300000000;

    (void)ctx;
    (void)data;
    (void)len;
    (void)err;
    while (clock_thread_cpu_ns() < end_ns)
        ;
    return 0;
}

/* Whoever makes work for the reader of what it says pays for that too. */
static void cpu_time_of_the_reader_counts(void **state)
{
    const struct guest_sink sink = {.output = read_slowly};
    struct fixture *f = *state;
    struct machine_report report;
    struct machine *m = take_machine(f, "");

    assert_int_equal(run_to(m, "FAKE=who", &sink, &report), 0);
    assert_in_range(report.cpu_us, 300000, 10000000);
    machine_release(m);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup_pool, teardown_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_renewed_snapshot_leaves_nothing_parked),
        WITH(who_runs_meanwhile_keeps_its_snapshot),
        WITH(so_many_executions_renew_it),
        WITH(uses_are_of_one_snapshot),
        WITH(time_renews_it),
        WITH(a_renewal_that_fails_is_tried_again),
        WITH(its_time_on_disk_counts),
        WITH(cancelled_while_it_takes),
        WITH(cancelled_in_the_midst_of_waiting),
        WITH(one_that_died_began_nothing),
        WITH(what_is_distrusted_is_not_given_again),
        WITH(short_of_memory_nothing_waits),
        WITH(limits_may_shrink),
        WITH(what_has_no_room_is_tried_less_and_less),
        WITH(many_at_once),
        WITH(cpu_time_of_the_reader_counts),
        WITH(cpu_time_after_the_end_counts),
        WITH(resets_that_hang_hold_up_no_other_party),
        WITH(who_waits_for_no_keeper_takes_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
