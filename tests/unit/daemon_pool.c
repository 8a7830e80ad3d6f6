/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool by itself, over the stand-in for the VMM: what no caller of the daemon can bring
 * about at will.
 */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/pool.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char kernel[128];
    char image[128];
    int snapshots_fd;
    int tmp_fd;
    struct snapshots *snapshots;
    struct pool *pool;
    bool is_short; /* atomic */
};

static int make_folder(const struct fixture *f, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    close(fd);
}

static bool is_short(void *ctx)
{
    struct fixture *f = ctx;

    return __atomic_load_n(&f->is_short, __ATOMIC_RELAXED);
}

static struct snapshots *start_snapshots(struct fixture *f, struct renewal_limits renewal)
{
    const struct snapshots_config config = {.vmm_program = FAKE_VMM,
                                            .kernel_path = f->kernel,
                                            .image_path = f->image,
                                            .snapshots_fd = f->snapshots_fd,
                                            .tmp_fd = f->tmp_fd,
                                            .memory_mib = 8,
                                            .boot_timeout_ms = 20000,
                                            .grace_ms = 1000,
                                            .retry_ms = 10,
                                            .renewal = renewal};
    struct snapshots *snapshots = NULL;
    struct snapshot *ready;

    assert_int_equal(snapshots_create(&config, &snapshots, NULL), 0);
    assert_int_equal(snapshots_wait(snapshots, -1, &ready, NULL), 0);
    snapshot_unref(ready);
    return snapshots;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct pool_config pool = {
        .vmm_program = FAKE_VMM,
        .grace_ms = 1000,
        .limits = {.parked = 4, .memory_bytes = 1ull << 40, .idle_ms = 60000, .max_uses = 100},
        .is_short = is_short,
        .ctx = f};

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->snapshots_fd = make_folder(f, "snapshots");
    f->tmp_fd = make_folder(f, "tmp");
    snprintf(f->kernel, sizeof(f->kernel), "%s/vmlinux", f->dir);
    snprintf(f->image, sizeof(f->image), "%s/image", f->dir);
    write_file(f->kernel, "boot");
    write_file(f->image, "restore");
    f->snapshots = start_snapshots(f, (struct renewal_limits){0});
    pool.snapshots = f->snapshots;
    assert_int_equal(pool_create(&pool, &f->pool, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    pool_destroy(f->pool);
    snapshots_destroy(f->snapshots);
    close(f->snapshots_fd);
    close(f->tmp_fd);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

/* Which of its runs a machine is at, and its process. */
struct who {
    char text[128];
    size_t len;
};

static int take_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct who *who = ctx;

    (void)err;
    assert_true(who->len + len < sizeof(who->text));
    memcpy(who->text + who->len, data, len);
    who->len += len;
    return 0;
}

static int run(struct machine *m, const char *fake, struct who *who,
               struct machine_report *report)
{
    const struct guest_sink sink = {.ctx = who, .output = take_output};
    const char *env[1] = {fake};
    const struct job_orders orders = {.lang = "python",
                                      .mode = PROTO_MODE_ENTRY,
                                      .entry = "main.py",
                                      .env = env,
                                      .n_env = 1,
                                      .pids = 8};
    struct job job = job_init();
    struct err err = {0};
    int r;

    *who = (struct who){0};
    job.timeout_ms = 1000;
    job.memory_bytes = 64u << 20;
    assert_int_equal(job_encode(&job, &orders), 0);
    r = machine_run(m, &job, &sink, -1, report, &err);
    job_finish(&job);
    return r;
}

/* Takes one, says who it is, and gives it back. */
static enum pool_kind visit(struct fixture *f, const char *owner, const char *fake,
                            struct who *who)
{
    struct machine_report report;
    struct machine *m = NULL;

    assert_int_equal(machine_take(f->pool, owner, -1, &m, NULL), 0);
    assert_int_equal(run(m, fake, who, &report), 0);
    machine_release(m);
    return report.kind;
}

static struct pool_measure measure(struct fixture *f)
{
    struct pool_measure now;

    pool_measure(f->pool, &now);
    return now;
}

#define WAIT_FOR(condition)                                                                    \
    do {                                                                                       \
        for (int wait_i = 0; wait_i < 1000 && !(condition); wait_i++)                          \
            usleep(10000);                                                                     \
        assert_true(condition);                                                                \
    } while (0)

static void a_renewed_snapshot_leaves_nothing_parked(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots), *now;
    struct who before, after;

    WAIT_FOR(measure(f).parked_fresh == 1);
    (void)visit(f, "a", "FAKE=who", &before);
    WAIT_FOR(measure(f).parked_used == 1);
    snapshots_renew(f->snapshots);
    WAIT_FOR((now = snapshots_current(f->snapshots), snapshot_unref(now), now != old));
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
    struct snapshot *old = snapshots_current(f->snapshots), *now;
    struct machine_report report;
    struct machine *m = NULL;
    struct who who;

    assert_int_equal(machine_take(f->pool, "a", -1, &m, NULL), 0);
    snapshots_renew(f->snapshots);
    WAIT_FOR((now = snapshots_current(f->snapshots), snapshot_unref(now), now != old));
    assert_int_equal(run(m, "FAKE=who", &who, &report), 0);
    assert_string_equal(report.snapshot, old->key);
    machine_release(m);
    WAIT_FOR(measure(f).ends[POOL_END_RENEWED] >= 1);
    assert_int_equal(measure(f).parked_used, 0);
    snapshot_unref(old);
}

static struct snapshots_measure measure_snapshots(const struct fixture *f)
{
    struct snapshots_measure now;

    snapshots_measure(f->snapshots, &now);
    return now;
}

static bool is_current(const struct fixture *f, const struct snapshot *snapshot)
{
    struct snapshot *now = snapshots_current(f->snapshots);

    snapshot_unref(now);
    return now == snapshot;
}

static void so_many_executions_renew_it(void **state)
{
    const struct renewal_limits limits = {.uses = 3};
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots);
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
    struct snapshot *old = snapshots_current(f->snapshots);
    struct machine_report report;
    struct machine *m = NULL;
    struct who who;

    assert_int_equal(machine_take(f->pool, "a", -1, &m, NULL), 0);
    snapshots_renew(f->snapshots);
    WAIT_FOR(!is_current(f, old));
    assert_int_equal(run(m, "FAKE=who", &who, &report), 0);
    machine_release(m);
    assert_int_equal(measure_snapshots(f).uses, 0);
    snapshot_unref(old);
}

static void time_renews_it(void **state)
{
    const struct renewal_limits limits = {.age_ms = 1};
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots);

    assert_int_equal(measure_snapshots(f).made, 1);
    snapshots_set(f->snapshots, &limits);
    WAIT_FOR(!is_current(f, old));
    WAIT_FOR(measure_snapshots(f).made >= 3);
    snapshot_unref(old);
}

static void a_renewal_that_fails_is_tried_again(void **state)
{
    struct fixture *f = *state;
    struct snapshot *old = snapshots_current(f->snapshots);
    struct who who;

    (void)visit(f, "a", "FAKE=who", &who);
    write_file(f->kernel, "boot=failed");
    snapshots_renew(f->snapshots);
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
    const struct renewal_limits limits = {.age_ms = 3600000};
    struct fixture *f = *state;
    struct snapshot *first = snapshots_current(f->snapshots);

    pool_destroy(f->pool);
    f->pool = NULL;
    snapshots_destroy(f->snapshots);
    /* Young enough it is used as it is. */
    f->snapshots = start_snapshots(f, limits);
    assert_int_equal(measure_snapshots(f).made, 0);
    assert_true(measure_snapshots(f).age_ns < limits.age_ms * 1000000u);
    snapshots_destroy(f->snapshots);
    age_manifest(f, first->key);
    f->snapshots = start_snapshots(f, limits);
    WAIT_FOR(measure_snapshots(f).made == 1);
    WAIT_FOR(measure_snapshots(f).age_ns < limits.age_ms * 1000000u);
    snapshot_unref(first);
}

/* A taker that is cancelled while it waits for a reset leaves it to the next. */
static void cancelled_while_it_takes(void **state)
{
    struct fixture *f = *state;
    struct who first, second;
    struct machine *m = NULL;
    struct err err = {0};
    int cancel_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_int_equal(machine_take(f->pool, "a", cancel_fd, &m, &err), -ECANCELED);
    close(cancel_fd);
    cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)visit(f, "a", "FAKE=reset-slow", &first);
    assert_int_equal(eventfd_write(cancel_fd, 1), 0);
    err = (struct err){0};
    assert_int_equal(machine_take(f->pool, "a", cancel_fd, &m, &err), -ECANCELED);
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
    struct later later = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct machine *m = NULL;
    struct err err = {0};
    struct who who;
    uint64_t start_ns;

    (void)visit(f, "a", "FAKE=reset-hang", &who);
    assert_int_equal(pthread_create(&later.thread, NULL, cancel_later, &later), 0);
    start_ns = clock_monotonic_ns();
    assert_int_equal(machine_take(f->pool, "a", later.fd, &m, &err), -ECANCELED);
    /* The reset has two seconds to fail. */
    assert_true(clock_monotonic_ns() - start_ns < 1500000000u);
    pthread_join(later.thread, NULL);
    close(later.fd);
    WAIT_FOR(measure(f).resets_failed == 1);
    WAIT_FOR(measure(f).behind == 0);
}

static void what_is_distrusted_is_not_given_again(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;
    struct machine *m = NULL;
    struct who who;

    assert_int_equal(machine_take(f->pool, "a", -1, &m, NULL), 0);
    assert_int_equal(run(m, "FAKE=who", &who, &report), 0);
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
    WAIT_FOR(measure(f).parked_used == 1);
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
    struct pool_limits limits = {
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

/* More machines than may be behind are ended by who releases them; none is lost. */
static void many_at_once(void **state)
{
    struct fixture *f = *state;
    struct machine_report report;
    struct machine *m[48];
    struct who who;

    for (size_t i = 0; i < 48; i++)
        assert_int_equal(machine_take(f->pool, "", -1, &m[i], NULL), 0);
    for (size_t i = 0; i < 48; i++)
        assert_int_equal(run(m[i], "FAKE=who", &who, &report), 0);
    for (size_t i = 0; i < 48; i++) {
        machine_release(m[i]);
        assert_true(measure(f).behind <= 32);
    }
    WAIT_FOR(measure(f).behind == 0);
    assert_int_equal(measure(f).ends[POOL_END_UNWANTED] + measure(f).ends[POOL_END_ROOM], 48);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

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
        WITH(what_is_distrusted_is_not_given_again),
        WITH(short_of_memory_nothing_waits),
        WITH(limits_may_shrink),
        WITH(many_at_once),
    };

    /* The stand-in looks for descriptors that were not meant for it; these are the shell's. */
    (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
