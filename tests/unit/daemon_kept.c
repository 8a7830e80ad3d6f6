/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that hold packages, which callers choose: they go before others do, and cost no
 * boot once the packages are gone. And what is kept from before a start is looked at beside
 * everything else.
 */
#include "tests/unit/pool_fixture.h"

#include "api/skill/sha256.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file whose digest takes until somebody lets it go on. */
static struct {
    ino_t inode;
    bool is_held;  /* atomic */
    bool is_at_it; /* atomic */
} slow;

int __real_sha256_of_fd(int fd, char ret_hex[SHA256_HEX_SIZE]);
int __wrap_sha256_of_fd(int fd, char ret_hex[SHA256_HEX_SIZE]);

int __wrap_sha256_of_fd(int fd, char ret_hex[SHA256_HEX_SIZE])
{
    struct stat st;

    if (fstat(fd, &st) == 0 && st.st_ino == slow.inode) {
        __atomic_store_n(&slow.is_at_it, true, __ATOMIC_RELEASE);
        while (__atomic_load_n(&slow.is_held, __ATOMIC_ACQUIRE))
            usleep(1000);
    }
    return __real_sha256_of_fd(fd, ret_hex);
}

static struct snapshot_name profile(const char *profile)
{
    struct snapshot_name name = {0};

    snprintf(name.profile, sizeof(name.profile), "%s", profile);
    return name;
}

static struct snapshot_name packages(const char *digest)
{
    struct snapshot_name name = {0};

    snprintf(name.packages, sizeof(name.packages), "%s", digest);
    return name;
}

/* Whether it is there now; who asks counts. */
static bool is_there(const struct fixture *f, const struct snapshot_name *name)
{
    struct snapshot *got;
    bool is;

    assert_int_equal(snapshots_wait(f->snapshots, name, -1, &got, NULL), 0);
    is = strcmp(got->profile, name->profile) == 0 && strcmp(got->packages, name->packages) == 0;
    snapshot_unref(got);
    return is;
}

static void bring_about(const struct fixture *f, const struct snapshot_name *name)
{
    WAIT_FOR(is_there(f, name) || (snapshots_want(f->snapshots, name), false));
}

/* Two without packages that were asked for long ago, and two with, a moment ago. */
static void make_four(struct fixture *f)
{
    const struct snapshot_name names[] = {profile("csv"), profile("json"), packages("one"),
                                          packages("two")};

    write_packages(f, "one");
    write_packages(f, "two");
    for (size_t i = 0; i < 4; i++)
        bring_about(f, &names[i]);
    assert_int_equal(measure_snapshots(f).kept, 4);
}

static void expect_without_packages(struct fixture *f)
{
    const struct snapshot_name csv = profile("csv"), json = profile("json");

    WAIT_FOR(measure_snapshots(f).kept == 2);
    assert_true(is_there(f, &csv));
    assert_true(is_there(f, &json));
    assert_int_equal(measure_snapshots(f).dropped, 2);
}

static void those_with_packages_go_first(void **state)
{
    struct fixture *f = *state;
    const struct config_snapshots fewer = {.kept = 2, .kept_bytes = 1ull << 40};

    make_four(f);
    snapshots_set(f->snapshots, &fewer);
    expect_without_packages(f);
}

static void those_with_packages_make_room(void **state)
{
    struct fixture *f = *state;
    struct config_snapshots smaller = {.kept = 8};

    make_four(f);
    smaller.kept_bytes = measure_snapshots(f).kept_bytes / 2;
    snapshots_set(f->snapshots, &smaller);
    expect_without_packages(f);
}

/* With none left that has packages the oldest goes as ever. */
static void then_the_others_go(void **state)
{
    struct fixture *f = *state;
    const struct config_snapshots one = {.kept = 1, .kept_bytes = 1ull << 40};
    const struct snapshot_name csv = profile("csv"), json = profile("json");

    make_four(f);
    snapshots_set(f->snapshots, &one);
    WAIT_FOR(measure_snapshots(f).kept == 1);
    assert_false(is_there(f, &csv));
    assert_true(is_there(f, &json));
}

/* Were a guest booted, it would be waited for; and no place is kept for them. */
static void packages_that_are_gone_cost_no_boot(void **state)
{
    struct fixture *f = *state;
    const struct snapshot_name gone = packages("gone"), csv = profile("csv");

    write_file(f->kernel, "boot=wait");
    snapshots_want(f->snapshots, &gone);
    WAIT_FOR(measure_snapshots(f).failed == 2);
    WAIT_FOR(measure_snapshots(f).dropped == 1);
    write_file(f->kernel, "boot");
    bring_about(f, &csv);
    assert_int_equal(measure_snapshots(f).failed, 2);
    assert_false(is_there(f, &gone));
}

/* That may take a while, in which others ask. */
static void images_are_digested_beside_who_asks(void **state)
{
    struct fixture *f = *state;
    struct snapshot_name of_data = {.image = "data"};
    struct stat st;
    char path[128];

    assert_true(is_there(f, &of_data));
    pool_destroy(f->pool);
    snapshots_destroy(f->snapshots);
    snprintf(path, sizeof(path), "%s/data.erofs", f->dir);
    write_file(path, "restore, changed");
    assert_int_equal(stat(path, &st), 0);
    slow.inode = st.st_ino;
    slow.is_held = true;
    f->snapshots = create_snapshots(f, ROOMY);
    WAIT_FOR(__atomic_load_n(&slow.is_at_it, __ATOMIC_ACQUIRE));
    /* Who has to wait waits for ever, and the alarm ends the test. */
    (void)alarm(60);
    assert_int_equal(measure_snapshots(f).kept, 0);
    (void)alarm(0);
    __atomic_store_n(&slow.is_held, false, __ATOMIC_RELEASE);
    of_data.image[0] = '\0';
    assert_true(is_there(f, &of_data));
    /* It was of an image that is not what it was. */
    assert_int_equal(measure_snapshots(f).kept_bytes, 0);
    start_pool(f);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup_pool, teardown_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(those_with_packages_go_first),
        WITH(those_with_packages_make_room),
        WITH(then_the_others_go),
        WITH(packages_that_are_gone_cost_no_boot),
        WITH(images_are_digested_beside_who_asks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
