/* SPDX-License-Identifier: Apache-2.0 */
/* What the KVM probe prints. */
#include "api/cli/kvm_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void usable(void **state)
{
    struct kvm_probe probe;
    (void)state;

    kvm_probe_parse(&probe, strdup("device=/dev/kvm\nopen=ok\nnonsense\ntest.ring0=ok\n"
                                   "cpu=A = B\nresult=usable\n"));
    assert_true(probe.usable);
    assert_string_equal(kvm_probe_get(&probe, "cpu"), "A = B");
    assert_string_equal(kvm_probe_reason(&probe), "");
    assert_null(kvm_probe_get(&probe, "gone"));
    kvm_probe_finish(&probe);
    kvm_probe_finish(&probe);
}

static void unusable(void **state)
{
    char text[200 * 5 + 1] = "";
    struct kvm_probe probe;
    (void)state;

    kvm_probe_parse(&probe, strdup("reason=SYSCALL fails\nresult=unusable"));
    assert_false(probe.usable);
    assert_string_equal(kvm_probe_reason(&probe), "SYSCALL fails");
    kvm_probe_finish(&probe);

    kvm_probe_parse(&probe, strdup(""));
    assert_false(probe.usable);
    assert_true(strlen(kvm_probe_reason(&probe)) > 0);
    kvm_probe_finish(&probe);

    for (unsigned i = 0; i < 200; i++)
        strcat(text, "a=bc\n");
    kvm_probe_parse(&probe, strdup(text));
    assert_int_equal(probe.n, KVM_PROBE_LINES_MAX);
    kvm_probe_finish(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usable),
        cmocka_unit_test(unusable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
