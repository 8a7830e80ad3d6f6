/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probe says to a person, and that it comes back in time on any machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "vmm/probe.h"

static struct probe_report good_report(void)
{
    struct probe_report r = {
        .open = "ok",
        .vm = "ok",
        .n_tests = 2,
        .tests = {{.name = "ring0", .label = "ring 0 code", .status = PROBE_OK},
                  {.name = "syscall", .label = "SYSCALL", .status = PROBE_OK}},
        .instructions_per_second = 1000000000,
        .exits_per_second = 100000,
    };

    return r;
}

static void expect_reason(const struct probe_report *r, const char *says)
{
    char reason[256] = "";

    assert_false(probe_explain(r, reason, sizeof(reason)));
    assert_string_equal(reason, says);
}

static void explains(void **unused)
{
    struct probe_report r = good_report();
    char reason[256];

    (void)unused;
    assert_true(probe_explain(&r, reason, sizeof(reason)));

    r.tests[1].status = PROBE_FAILED;
    strcpy(r.tests[1].text, "faults (vector 6)");
    expect_reason(&r,
                  "the device opens but SYSCALL faults (vector 6) in the guest: an ordinary "
                  "kernel cannot run");
    r.tests[1].status = PROBE_RUNNING;
    expect_reason(&r, "the device opens but SYSCALL does not come to an end in the guest: an "
                      "ordinary kernel cannot run");

    r = good_report();
    r.instructions_per_second = 3000000;
    expect_reason(&r, "the device opens but runs only 3.0 million instructions per second: it "
                      "emulates them one by one");
    r.instructions_per_second = 0;
    expect_reason(&r, "the device opens but its guest does not start");

    strcpy(r.vm, "KVM_CREATE_VM: Device or resource busy");
    expect_reason(&r, "the device opens but creates no machine: KVM_CREATE_VM: Device or "
                      "resource busy");
    strcpy(r.open, "open /dev/kvm: No such file or directory");
    expect_reason(&r, "the device cannot be used: open /dev/kvm: No such file or directory");
}

static void comes_back_in_time(void **unused)
{
    uint64_t start = clock_monotonic_ns();
    struct probe_report r;
    struct err err = {0};
    char reason[256];

    (void)unused;
    assert_int_equal(probe_run(1500, &r, &err), 0);
    /* One that is not ended goes on for ever; a machine that stands still takes longer than it
     * says. */
    assert_true(clock_monotonic_ns() - start < 60000000000ull);
    /* Either answer is right: it depends on the machine. */
    if (!probe_explain(&r, reason, sizeof(reason)))
        assert_true(strlen(reason) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains),
        cmocka_unit_test(comes_back_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
