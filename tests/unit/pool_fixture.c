/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/pool_fixture.h"

#include "api/daemon/machine/jail.h"
#include "base/fd.h"
#include "tests/unit/fake_built.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nothing here is waited for until its time is over. */
#define GRACE_MS 10000

static int make_folder(const struct fixture *f, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void write_file(const char *path, const char *text)
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

static void packages_path(const struct fixture *f, const char *digest, char out[192])
{
    snprintf(out, 192, "%s/%.64s.packages", f->dir, digest);
}

void write_packages(const struct fixture *f, const char *digest)
{
    char path[192];

    packages_path(f, digest, path);
    write_file(path, "a tar");
}

static int open_packages(void *ctx, const char *digest, struct err *err)
{
    char path[192];
    int fd;

    packages_path(ctx, digest, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_set_errno(err, errno, "there are no packages") : fd;
}

struct snapshots *create_snapshots(struct fixture *f, struct config_snapshots limits)
{
    const struct snapshots_config config = {.jail = f->jail,
                                            .vmm_program = FAKE_VMM,
                                            .kernel_path = f->kernel,
                                            .images = f->images,
                                            .snapshots_fd = f->snapshots_fd,
                                            .tmp_fd = f->tmp_fd,
                                            .memory_mib = 8,
                                            .boot_timeout_ms = 20000,
                                            .grace_ms = GRACE_MS,
                                            .retry_ms = 10,
                                            .limits = limits,
                                            .open_packages = open_packages,
                                            .ctx = f};
    struct snapshots *snapshots = NULL;

    assert_int_equal(snapshots_create(&config, &snapshots, NULL), 0);
    return snapshots;
}

struct snapshots *start_snapshots(struct fixture *f, struct config_snapshots limits)
{
    static const struct snapshot_name plain;
    struct snapshots *snapshots = create_snapshots(f, limits);
    struct snapshot *ready;

    assert_int_equal(snapshots_wait(snapshots, &plain, -1, &ready, NULL), 0);
    snapshot_unref(ready);
    return snapshots;
}

void start_pool(struct fixture *f)
{
    const struct pool_config pool = {
        .snapshots = f->snapshots,
        .jail = f->jail,
        .grace_ms = GRACE_MS,
        .limits = {.parked = 4, .memory_bytes = 1ull << 40, .idle_ms = 60000, .max_uses = 100},
        .is_short = is_short,
        .ctx = f};

    assert_int_equal(pool_create(&pool, &f->pool, NULL), 0);
}

int setup_pool(void **state)
{
    const struct jail_config jail = {.program = JAIL, .machine = FAKE_VMM, .layers = JAIL_ALL};
    struct fixture *f = calloc(1, sizeof(*f));

    /* The stand-in looks for descriptors that were not meant for it; these are the shell's. */
    (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/skillvm-unit.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->snapshots_fd = make_folder(f, "snapshots");
    f->tmp_fd = make_folder(f, "tmp");
    snprintf(f->kernel, sizeof(f->kernel), "%s/vmlinux", f->dir);
    fake_built(f->dir, "vmlinux", "boot");
    /* What its machines do is in it. */
    fake_built(f->dir, "python.erofs", "restore");
    fake_built(f->dir, "data.erofs", "restore");
    assert_int_equal(image_tables_create(f->dir, "/nonexistent", &f->images, NULL), 0);
    assert_int_equal(jail_open(&jail, &f->jail, NULL), 0);
    f->snapshots = start_snapshots(f, ROOMY);
    start_pool(f);
    *state = f;
    return 0;
}

int teardown_pool(void **state)
{
    struct fixture *f = *state;
    char command[128];

    pool_destroy(f->pool);
    snapshots_destroy(f->snapshots);
    jail_close(f->jail);
    image_tables_destroy(f->images);
    close(f->snapshots_fd);
    close(f->tmp_fd);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static int take_output(void *ctx, const uint8_t *data, size_t len, struct err *err)
{
    struct who *who = ctx;

    (void)err;
    assert_true(who->len + len < sizeof(who->text));
    memcpy(who->text + who->len, data, len);
    who->len += len;
    return 0;
}

int run_to(struct machine *m, const char *fake, const struct guest_sink *sink,
           struct machine_report *report)
{
    const char *env[1] = {fake};
    const struct job_orders orders = {
        .lang = "python", .mode = PROTO_MODE_ENTRY, .entry = "main.py", .env = env, .n_env = 1};
    struct job job = job_init();
    struct err err = {0};
    int r;

    job.timeout_ms = 1000;
    job.memory_bytes = 64u << 20;
    job.pids = 8;
    assert_int_equal(job_encode(&job, &orders), 0);
    r = machine_run(m, &job, sink, -1, report, &err);
    job_finish(&job);
    return r;
}

int run_in(struct machine *m, const char *fake, struct who *who, struct machine_report *report)
{
    const struct guest_sink sink = {.ctx = who, .output = take_output};

    *who = (struct who){0};
    return run_to(m, fake, &sink, report);
}

struct machine_wish wish_for(const char *owner, const char *profile)
{
    struct machine_wish wish = {0};

    snprintf(wish.owner, sizeof(wish.owner), "%s", owner);
    snprintf(wish.snapshot.profile, sizeof(wish.snapshot.profile), "%s", profile);
    return wish;
}

struct machine *take_machine(struct fixture *f, const char *owner)
{
    struct machine_wish wish = wish_for(owner, "");
    struct machine *m = NULL;

    assert_int_equal(machine_take(f->pool, &wish, -1, &m, NULL), 0);
    return m;
}

struct machine_report visit_as(struct fixture *f, const struct machine_wish *wish,
                               const char *fake, struct who *who)
{
    struct machine_report report;
    struct machine *m = NULL;

    assert_int_equal(machine_take(f->pool, wish, -1, &m, NULL), 0);
    assert_int_equal(run_in(m, fake, who, &report), 0);
    machine_release(m);
    return report;
}

enum pool_kind visit(struct fixture *f, const char *owner, const char *fake, struct who *who)
{
    struct machine_wish wish = wish_for(owner, "");

    return visit_as(f, &wish, fake, who).kind;
}

struct pool_measure measure(struct fixture *f)
{
    struct pool_measure now;

    pool_measure(f->pool, &now);
    return now;
}

struct snapshots_measure measure_snapshots(const struct fixture *f)
{
    struct snapshots_measure now;

    snapshots_measure(f->snapshots, &now);
    return now;
}

bool is_current(const struct fixture *f, const struct snapshot *snapshot)
{
    struct snapshot *now = snapshots_current(f->snapshots, 0);

    snapshot_unref(now);
    return now == snapshot;
}
