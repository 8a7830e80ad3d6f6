/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots beside the plain one: which are made, when, for whom, and which go again. */
#include "tests/unit/pool_fixture.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct machine_report visit_profile(struct fixture *f, const char *owner,
                                           const char *profile)
{
    struct machine_wish wish = wish_for(owner, profile);
    struct who who;

    return visit_as(f, &wish, "FAKE=who", &who);
}

/* Runs one, and waits until there are so many snapshots beside the plain one. */
static void bring_about(struct fixture *f, const char *profile, unsigned kept)
{
    (void)visit_profile(f, "", profile);
    WAIT_FOR(measure_snapshots(f).kept == kept);
}

static unsigned count_folders(const struct fixture *f)
{
    int fd = fcntl(f->snapshots_fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;
    unsigned n = 0;

    assert_non_null(dir);
    rewinddir(dir);
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void set_limits(struct fixture *f, unsigned kept, uint64_t bytes, uint64_t age_ms)
{
    const struct config_snapshots limits = {
        .renew_ms = age_ms, .kept = kept, .kept_bytes = bytes};

    snapshots_set(f->snapshots, &limits);
}

static void one_is_made_behind_the_first_run(void **state)
{
    struct fixture *f = *state;
    struct machine_report first = visit_profile(f, "a", "csv+json"), second;

    assert_string_equal(first.profile, "");
    WAIT_FOR(measure_snapshots(f).kept == 1);
    second = visit_profile(f, "a", "csv+json");
    assert_string_equal(second.profile, "csv+json");
    assert_string_not_equal(first.snapshot, second.snapshot);
    assert_int_not_equal(second.kind, POOL_REUSED);
    assert_int_equal(visit_profile(f, "a", "csv+json").kind, POOL_REUSED);
    /* The owner's other machine is as good as it was, for what began from the plain one. */
    second = visit_profile(f, "a", "");
    assert_int_equal(second.kind, POOL_REUSED);
    assert_string_equal(second.snapshot, first.snapshot);
    assert_int_equal(measure_snapshots(f).made, 2);
    assert_int_equal(count_folders(f), 2);
}

static void the_plain_one_serves_meanwhile(void **state)
{
    struct fixture *f = *state;

    write_file(f->kernel, "boot=wait");
    (void)visit_profile(f, "a", "csv");
    WAIT_FOR(faccessat(f->tmp_fd, "snapshot-in-the-making", F_OK, 0) == 0);
    for (int i = 0; i < 3; i++)
        assert_string_equal(visit_profile(f, "a", "csv").profile, "");
    assert_int_equal(measure_snapshots(f).kept, 0);
    write_file(f->kernel, "boot");
    WAIT_FOR(measure_snapshots(f).kept == 1);
    assert_string_equal(visit_profile(f, "a", "csv").profile, "csv");
}

static void one_that_cannot_be_made_harms_nobody(void **state)
{
    struct fixture *f = *state;

    (void)visit_profile(f, "a", "refused");
    /* A second time by itself. */
    WAIT_FOR(measure_snapshots(f).failed == 2);
    assert_string_equal(visit_profile(f, "a", "refused").profile, "");
    bring_about(f, "csv", 1);
    /* It was asked for again. */
    WAIT_FOR(measure_snapshots(f).failed >= 3);
    assert_true(measure_snapshots(f).is_ready);
    assert_int_equal(count_folders(f), 2);
}

static void the_one_not_asked_for_the_longest_goes(void **state)
{
    struct fixture *f = *state;

    bring_about(f, "a", 1);
    bring_about(f, "b", 2);
    bring_about(f, "c", 3);
    (void)visit_profile(f, "", "a");
    set_limits(f, 2, 1ull << 40, 0);
    WAIT_FOR(measure_snapshots(f).kept == 2);
    assert_string_equal(visit_profile(f, "", "b").profile, "");
    assert_string_equal(visit_profile(f, "", "a").profile, "a");
    assert_string_equal(visit_profile(f, "", "c").profile, "c");
    /* Both were asked for a moment ago: there is no place for the other. */
    WAIT_FOR(measure(f).behind == 0);
    assert_int_equal(measure_snapshots(f).kept, 2);
    assert_int_equal(measure_snapshots(f).dropped, 1);
    assert_int_equal(count_folders(f), 3);
}

static void their_bytes_are_bounded(void **state)
{
    struct fixture *f = *state;
    uint64_t one;

    bring_about(f, "a", 1);
    one = measure_snapshots(f).kept_bytes;
    assert_true(one > 0);
    bring_about(f, "b", 2);
    set_limits(f, 8, one, 0);
    WAIT_FOR(measure_snapshots(f).kept == 1);
    assert_string_equal(visit_profile(f, "", "b").profile, "b");
    set_limits(f, 8, one - 1, 0);
    WAIT_FOR(measure_snapshots(f).kept == 0);
    WAIT_FOR(count_folders(f) == 1);
    assert_true(measure_snapshots(f).is_ready);
}

static void what_waits_goes_with_its_snapshot(void **state)
{
    struct fixture *f = *state;

    bring_about(f, "csv", 1);
    (void)visit_profile(f, "a", "csv");
    WAIT_FOR(measure(f).parked_used >= 1);
    set_limits(f, 0, 0, 0);
    WAIT_FOR(measure(f).ends[POOL_END_RENEWED] >= 1);
    assert_int_not_equal(visit_profile(f, "a", "csv").kind, POOL_REUSED);
}

/* Of how many memories the digest is known to the next start. */
static unsigned count_known(const struct fixture *f)
{
    static const char sign[] = " sparse ";
    char text[8192] = "";
    unsigned n = 0;
    int fd = openat(f->snapshots_fd, ".digests", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    assert_true(fd_read_full(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    for (const char *at = text; (at = strstr(at, sign)); at += strlen(sign))
        n++;
    return n;
}

/* Files that were just written cannot be, and are read once more when they can. */
static void the_next_start_need_not_read_new_ones(void **state)
{
    struct fixture *f = *state;

    bring_about(f, "csv", 1);
    WAIT_FOR(count_known(f) == 2);
}

static void restart(struct fixture *f)
{
    pool_destroy(f->pool);
    snapshots_destroy(f->snapshots);
    f->snapshots = start_snapshots(f, ROOMY);
    start_pool(f);
}

static void they_are_found_again(void **state)
{
    struct fixture *f = *state;

    bring_about(f, "csv", 1);
    bring_about(f, "json", 2);
    restart(f);
    /* They take room, but nothing is read until somebody asks. */
    assert_int_equal(measure_snapshots(f).kept, 0);
    assert_true(measure_snapshots(f).kept_bytes > 0);
    assert_int_equal(count_folders(f), 3);
    bring_about(f, "csv", 1);
    assert_int_equal(measure_snapshots(f).made, 0);
    assert_string_equal(visit_profile(f, "", "csv").profile, "csv");
}

/* A folder with somebody else's manifest in it, and one that is damaged. */
static void what_is_not_what_it_says_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct snapshot *plain = snapshots_current(f->snapshots, 0);
    char command[512];

    bring_about(f, "csv", 1);
    snprintf(command, sizeof(command),
             "cd %s/snapshots && for d in *; do [ $d = %s ] || { sed -i s/csv/xml/ "
             "$d/manifest.json && cp -r $d $d.copy && rm -rf $d && mv $d.copy $d; }; done",
             f->dir, plain->key);
    snapshot_unref(plain);
    assert_int_equal(system(command), 0);
    restart(f);
    WAIT_FOR(count_folders(f) == 1);
    bring_about(f, "csv", 1);
    assert_int_equal(measure_snapshots(f).made, 1);
    snprintf(command, sizeof(command),
             "cd %s/snapshots && for d in *; do printf X | dd of=$d/memory bs=1 seek=1048576 "
             "conv=notrunc status=none; done",
             f->dir);
    assert_int_equal(system(command), 0);
    restart(f);
    bring_about(f, "csv", 1);
    assert_int_equal(measure_snapshots(f).made, 2);
}

static void one_that_is_due_is_made_anew_while_it_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old, *now = NULL;

    bring_about(f, "csv", 1);
    old = snapshots_current(f->snapshots, 1);
    assert_non_null(old);
    (void)visit_profile(f, "", "csv");
    set_limits(f, 8, 1ull << 40, 100);
    WAIT_FOR(!snapshot_is_current(old) || (visit_profile(f, "", "csv"), false));
    for (int i = 0; i < 6000 && !now; i++) {
        now = snapshots_current(f->snapshots, 1);
        (void)visit_profile(f, "", "csv");
        usleep(10000);
    }
    assert_true(now && now != old);
    snapshot_unref(now);
    /* When nobody does it goes. */
    WAIT_FOR(measure_snapshots(f).kept == 0);
    WAIT_FOR(count_folders(f) == 1);
    snapshot_unref(old);
}

static void fresh_ones_follow_the_demand(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;

    bring_about(f, "csv", 1);
    WAIT_FOR(measure(f).parked_fresh >= 1);
    report = visit_profile(f, "", "csv");
    assert_int_equal(report.kind, POOL_STARTED);
    WAIT_FOR(report.kind == POOL_FRESH ||
             (report = visit_profile(f, "", "csv"), report.kind == POOL_FRESH));
    assert_string_equal(report.profile, "csv");
}

static struct machine_wish wish_of(const char *scope, const char *profile)
{
    struct machine_wish wish = wish_for("", profile);

    snprintf(wish.snapshot.scope, sizeof(wish.snapshot.scope), "%s", scope);
    return wish;
}

static void a_scope_has_its_own(void **state)
{
    struct fixture *f = *state;
    struct machine_wish a = wish_of("a", ""), b = wish_of("b", "csv");
    struct machine_report common = visit_profile(f, "", ""), of_a, of_b;
    struct who who;

    of_a = visit_as(f, &a, "FAKE=who", &who);
    of_b = visit_as(f, &b, "FAKE=who", &who);
    assert_string_not_equal(of_a.snapshot, common.snapshot);
    assert_string_not_equal(of_b.snapshot, common.snapshot);
    assert_string_not_equal(of_b.snapshot, of_a.snapshot);
    assert_string_equal(of_b.profile, "");
    WAIT_FOR(measure_snapshots(f).kept == 3);
    assert_string_equal(visit_as(f, &b, "FAKE=who", &who).profile, "csv");
    assert_string_equal(visit_as(f, &a, "FAKE=who", &who).snapshot, of_a.snapshot);
}

/* Nothing of one image is in a machine of another. */
static void an_image_has_its_own(void **state)
{
    struct fixture *f = *state;
    struct machine_wish data = wish_for("a", ""), profile = wish_for("a", "pandas");
    struct machine_report usual = visit_profile(f, "a", ""), of_data;
    struct who who;

    snprintf(data.snapshot.image, sizeof(data.snapshot.image), "data");
    profile.snapshot = data.snapshot;
    snprintf(profile.snapshot.profile, sizeof(profile.snapshot.profile), "pandas");
    of_data = visit_as(f, &data, "FAKE=who", &who);
    assert_string_not_equal(of_data.snapshot, usual.snapshot);
    assert_int_not_equal(of_data.kind, POOL_REUSED);
    assert_int_equal(visit_as(f, &data, "FAKE=who", &who).kind, POOL_REUSED);
    assert_string_equal(visit_as(f, &profile, "FAKE=who", &who).profile, "");
    WAIT_FOR(measure_snapshots(f).kept == 2);
    assert_string_equal(visit_as(f, &profile, "FAKE=who", &who).profile, "pandas");
    assert_string_equal(visit_profile(f, "a", "").snapshot, usual.snapshot);
    restart(f);
    assert_string_equal(visit_as(f, &data, "FAKE=who", &who).snapshot, of_data.snapshot);
    assert_int_equal(measure_snapshots(f).made, 0);
}

/* Its making is no reason to rest: four times as long, which nobody waits here. */
static void behind_one_that_was_waited_for_the_next_is_made_at_once(void **state)
{
    struct fixture *f = *state;
    struct machine_wish wish = wish_for("a", "pandas");
    struct who who;

    snprintf(wish.snapshot.image, sizeof(wish.snapshot.image), "data");
    write_file(f->kernel, "boot=slower");
    assert_string_equal(visit_as(f, &wish, "FAKE=who", &who).profile, "");
    write_file(f->kernel, "boot");
    WAIT_FOR(measure_snapshots(f).kept == 2);
}

/* One whose file is gone, and was not the image before, is told, and the others go on. */
static void an_image_that_is_missing_is_told(void **state)
{
    struct fixture *f = *state;
    struct machine_wish data = wish_for("a", "");
    struct machine *m = NULL;
    struct err err = {0};
    char path[128];

    snprintf(data.snapshot.image, sizeof(data.snapshot.image), "data");
    snprintf(path, sizeof(path), "%s/data.erofs", f->dir);
    write_file(path, "restore, changed");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(machine_take(f->pool, &data, -1, &m, &err), -ENODEV);
    assert_non_null(strstr(err.message, "cannot open the guest image"));
    assert_non_null(strstr(err.message, "/data.erofs"));
    (void)visit_profile(f, "a", "");
}

static void a_scope_without_room_is_told(void **state)
{
    struct fixture *f = *state;
    struct machine_wish wish = wish_of("a", "");
    struct machine *m = NULL;
    struct err err = {0};

    set_limits(f, 0, 0, 0);
    assert_int_equal(machine_take(f->pool, &wish, -1, &m, &err), -EBUSY);
    assert_non_null(strstr(err.message, "snapshots.kept"));
    set_limits(f, 8, 1ull << 40, 0);
    write_file(f->kernel, "boot=failed");
    err = (struct err){0};
    assert_int_equal(machine_take(f->pool, &wish, -1, &m, &err), -ENODEV);
    assert_non_null(strstr(err.message, "no KVM today"));
    write_file(f->kernel, "boot");
    /* It is tried again, and until then who comes waits; a try that has begun may still fail.
     */
    for (int i = 0; i < 6000 && machine_take(f->pool, &wish, -1, &m, &err) < 0; i++)
        usleep(10000);
    assert_non_null(m);
    machine_release(m);
}

/* Whoever waits for it has it from the second try. */
static void a_guest_that_chance_stopped_is_begun_again(void **state)
{
    struct fixture *f = *state;
    struct machine_wish wish = wish_of("a", "");
    struct machine *m = NULL;

    set_limits(f, 8, 1ull << 40, 0);
    write_file(f->kernel, "boot=die-first");
    assert_int_equal(machine_take(f->pool, &wish, -1, &m, NULL), 0);
    assert_int_equal(measure_snapshots(f).failed, 0);
    machine_release(m);
}

/* By what the last try came to. */
static void who_comes_long_before_the_next_try_is_told(void **state)
{
    struct fixture *f = *state;
    struct machine_wish wish = wish_of("a", "");
    struct machine *m = NULL;
    struct err err = {0};
    uint64_t tries;
    unsigned n = 0;

    write_file(f->kernel, "boot=failed");
    do {
        tries = measure_snapshots(f).failed;
        err = (struct err){0};
        assert_int_equal(machine_take(f->pool, &wish, -1, &m, &err), -ENODEV);
        assert_non_null(strstr(err.message, "no KVM today"));
    } while (measure_snapshots(f).failed != tries && ++n < 12);
    assert_int_equal(measure_snapshots(f).failed, tries);
    assert_non_null(strstr(err.message, "the next try is in "));
}

static void who_waits_for_a_scope_can_be_cancelled(void **state)
{
    struct fixture *f = *state;
    struct machine_wish wish = wish_of("a", "");
    int cancel_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    struct machine *m = NULL;
    struct err err = {0};

    write_file(f->kernel, "boot=wait");
    assert_int_equal(machine_take(f->pool, &wish, cancel_fd, &m, &err), -ECANCELED);
    close(cancel_fd);
    write_file(f->kernel, "boot");
    assert_int_equal(machine_take(f->pool, &wish, -1, &m, &err), 0);
    machine_release(m);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup_pool, teardown_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(one_is_made_behind_the_first_run),
        WITH(the_plain_one_serves_meanwhile),
        WITH(one_that_cannot_be_made_harms_nobody),
        WITH(the_one_not_asked_for_the_longest_goes),
        WITH(their_bytes_are_bounded),
        WITH(what_waits_goes_with_its_snapshot),
        WITH(the_next_start_need_not_read_new_ones),
        WITH(they_are_found_again),
        WITH(what_is_not_what_it_says_is_not_used),
        WITH(one_that_is_due_is_made_anew_while_it_is_asked_for),
        WITH(fresh_ones_follow_the_demand),
        WITH(a_scope_has_its_own),
        WITH(an_image_has_its_own),
        WITH(behind_one_that_was_waited_for_the_next_is_made_at_once),
        WITH(an_image_that_is_missing_is_told),
        WITH(a_scope_without_room_is_told),
        WITH(who_comes_long_before_the_next_try_is_told),
        WITH(a_guest_that_chance_stopped_is_begun_again),
        WITH(who_waits_for_a_scope_can_be_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
