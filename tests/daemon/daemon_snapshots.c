/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots on disk: used again, replaced, and made of nothing that was not built. */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/clock.h"
#include "tests/unit/fake_built.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define expect harness_expect

static void begin(struct harness *h)
{
    harness_init(h, "boot", "restore");
    harness_start(h, NULL);
    assert_int_equal(harness_push(h, "demo", "1", "print(1)"), 201);
}

static void end(struct harness *h)
{
    harness_assert_clean(h);
    assert_int_equal(harness_stop(h, SIGTERM), 0);
    harness_finish(h);
}

/* Flips a byte of a file of the one snapshot. */
static void damage(const struct harness *h, const char *name, off_t at)
{
    char command[512];

    snprintf(command, sizeof(command),
             "f=$(echo %s/snapshots/*/%s) && printf X | dd of=$f bs=1 seek=%ld conv=notrunc "
             "status=none",
             h->data, name, (long)at);
    assert_int_equal(system(command), 0);
}

static void snapshots_are_reused_and_replaced(void **state)
{
    struct harness h;

    (void)state;
    begin(&h);
    harness_wait_ready(&h);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    for (int i = 0; i < 4; i++) {
        static const struct {
            const char *name;
            off_t at;
        } files[] = {
            {"state", 2}, {"memory", 1 << 20}, {"manifest.json", 40}, {"working-set", 1}};

        damage(&h, files[i].name, files[i].at);
        harness_start(&h, NULL);
        harness_wait_ready(&h);
        expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
        assert_int_equal(harness_count_files(&h, "snapshots"), 1);
        assert_int_equal(harness_stop(&h, SIGTERM), 0);
    }
    /* Another image: another snapshot, and the old one goes. */
    fake_built(h.dir, "python.erofs", "restore of another");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    assert_int_equal(harness_count_files(&h, "snapshots"), 1);
    end(&h);
}

/* False where that took so long that the daemon may have looked at it before, for the last
   time: it does two seconds after it has it. */
static bool begin_damaged(struct harness *h)
{
    uint64_t without_ns = clock_monotonic_ns();
    int status = 0;

    begin(h);
    for (int i = 0; i < 4500 && status != 200; i++) {
        uint64_t now_ns = clock_monotonic_ns();
        struct answer a = harness_get(h, "/ready");

        status = a.status;
        answer_finish(&a);
        if (status != 200) {
            without_ns = now_ns;
            usleep(2000);
        }
    }
    assert_int_equal(status, 200);
    damage(h, "memory", 1 << 20);
    return clock_monotonic_ns() - without_ns < 1500000000u;
}

static void a_snapshot_damaged_at_once_is_replaced(void **state)
{
    struct harness h;

    (void)state;
    for (unsigned tries = 0; !begin_damaged(&h); tries++) {
        if (tries == 20)
            fail_msg("this machine is too slow to damage it at once");
        end(&h);
    }
    harness_wait_metrics(&h, "skillvm_snapshots_made_total{result=\"ok\"} 2\n", true);
    end(&h);
}

/* Starts, waits until what it reads was read, and expects it to say why it cannot be ready. */
static void expect_not_ready(struct harness *h, const char *why)
{
    struct answer a;

    harness_start(h, NULL);
    harness_wait_listening(h);
    a = harness_get(h, "/ready");
    for (int i = 0; i < 6000 && !strstr(a.body, why); i++) {
        answer_finish(&a);
        usleep(10000);
        a = harness_get(h, "/ready");
    }
    expect(a, 503, why);
    expect(harness_run(h, "{\"skill\":\"demo\"}"), 200, why);
    assert_int_equal(harness_count_children(h), 0);
    assert_int_equal(harness_stop(h, SIGTERM), 0);
}

/* A kernel or an image with a byte that was not built, a byte less, and another one's. */
static void what_was_not_built_starts_no_guest(void **state)
{
    struct harness h;

    (void)state;
    begin(&h);
    harness_wait_ready(&h);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_write(&h, "vmlinux", "bopt");
    expect_not_ready(&h, "the guest kernel");
    harness_write(&h, "vmlinux", "boot");
    harness_write(&h, "python.erofs", "restorf");
    expect_not_ready(&h, "is not what was built");
    harness_write(&h, "python.erofs", "restor");
    expect_not_ready(&h, "is not what was built");
    fake_built(h.dir, "data.erofs", "restore another");
    harness_write(&h, "python.erofs", "restore another");
    expect_not_ready(&h, "is not what was built");
    fake_built(h.dir, "python.erofs", "restore");
    harness_start(&h, NULL);
    harness_wait_ready(&h);
    expect(harness_run(&h, "{\"skill\":\"demo\"}"), 200, "\"status\":\"success\"");
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_are_reused_and_replaced),
        cmocka_unit_test(a_snapshot_damaged_at_once_is_replaced),
        cmocka_unit_test(what_was_not_built_starts_no_guest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
