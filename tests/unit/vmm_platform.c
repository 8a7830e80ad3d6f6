/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a guest may not keep from the host, or have of it, as it is asked of a KVM that has it
 * and of one that does not: emulated hosts have neither processor nor kernel for it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)

#include <linux/kvm.h>

#include "vmm/arch/arch.h"

/* Descriptors that nobody has. */
#define DEV_FD  1000
#define VM_FD   1001
#define VCPU_FD 1002

/* AMD's four old counters and what each counts, and the first register behind them. */
#define COUNTER_FIRST 0xc0010000u
#define COUNTER_LAST  0xc0010007u
#define NO_COUNTER    0xc0010010u

/* KVM's clocks by their numbers of before: no reset takes back that a guest wrote the second.
 */
#define OLD_CLOCK_FIRST 0x11u
#define OLD_CLOCK_LAST  0x12u

/* The KVM of a test: what it says of each of the three, and what it was asked for. */
static struct {
    int bus_lock, notify, counters;
    bool refuses;
    uint64_t bus_lock_args, notify_args, counters_args;
    bool has_msr_filter;
    bool counter_is_writable, old_clock_is_writable, other_is_writable;
    int features; /* whether it can hold a guest to its CPUID */
    uint64_t features_args;
} fake;

static int enable(const struct kvm_enable_cap *cap)
{
    assert_int_equal(cap->flags, 0);
    if (fake.refuses) {
        errno = EINVAL;
        return -1;
    }
    if (cap->cap == KVM_CAP_X86_BUS_LOCK_EXIT)
        fake.bus_lock_args = cap->args[0];
    else if (cap->cap == KVM_CAP_X86_NOTIFY_VMEXIT)
        fake.notify_args = cap->args[0];
    else if (cap->cap == KVM_CAP_PMU_CAPABILITY)
        fake.counters_args = cap->args[0];
    else if (cap->cap == KVM_CAP_ENFORCE_PV_FEATURE_CPUID)
        fake.features_args = cap->args[0];
    else
        fail_msg("capability %u", cap->cap);
    return 0;
}

static void list_msrs(struct kvm_msr_list *list)
{
    list->nmsrs = 0;
    for (uint32_t i = COUNTER_FIRST; i <= COUNTER_LAST; i++)
        list->indices[list->nmsrs++] = i;
    for (uint32_t i = OLD_CLOCK_FIRST; i <= OLD_CLOCK_LAST; i++)
        list->indices[list->nmsrs++] = i;
    list->indices[list->nmsrs++] = NO_COUNTER;
}

static bool is_writable(const struct kvm_msr_filter *filter, uint32_t index)
{
    for (size_t i = 0; i < KVM_MSR_FILTER_MAX_RANGES; i++) {
        const struct kvm_msr_filter_range *range = &filter->ranges[i];
        uint32_t bit = index - range->base;

        if ((range->flags & KVM_MSR_FILTER_WRITE) && index >= range->base &&
            bit < range->nmsrs && (range->bitmap[bit / 8] & 1u << bit % 8))
            return true;
    }
    return false;
}

static void take_filter(const struct kvm_msr_filter *filter)
{
    fake.has_msr_filter = true;
    for (uint32_t i = COUNTER_FIRST; i <= COUNTER_LAST; i++)
        fake.counter_is_writable |= is_writable(filter, i);
    for (uint32_t i = OLD_CLOCK_FIRST; i <= OLD_CLOCK_LAST; i++)
        fake.old_clock_is_writable |= is_writable(filter, i);
    fake.other_is_writable = is_writable(filter, NO_COUNTER);
}

int __wrap_ioctl(int fd, unsigned long request, uintptr_t arg);
int __wrap_ioctl(int fd, unsigned long request, uintptr_t arg)
{
    assert_in_range(fd, DEV_FD, VCPU_FD);
    if (request == KVM_CHECK_EXTENSION)
        return arg == KVM_CAP_X86_BUS_LOCK_EXIT          ? fake.bus_lock
               : arg == KVM_CAP_X86_NOTIFY_VMEXIT        ? fake.notify
               : arg == KVM_CAP_PMU_CAPABILITY           ? fake.counters
               : arg == KVM_CAP_ENFORCE_PV_FEATURE_CPUID ? fake.features
                                                         : 0;
    /* The one is the vCPU's, the others the machine's. */
    if (request == KVM_ENABLE_CAP)
        assert_int_equal(fd, ((const struct kvm_enable_cap *)arg)->cap ==
                                     KVM_CAP_ENFORCE_PV_FEATURE_CPUID
                                 ? VCPU_FD
                                 : VM_FD);
    if (request == KVM_ENABLE_CAP)
        return enable((const struct kvm_enable_cap *)arg);
    if (request == KVM_GET_MSR_INDEX_LIST)
        list_msrs((struct kvm_msr_list *)arg);
    if (request == KVM_X86_SET_MSR_FILTER)
        take_filter((const struct kvm_msr_filter *)arg);
    return 0;
}

static int setup(struct err *err)
{
    struct kvm kvm = kvm_init();

    kvm.dev_fd = DEV_FD;
    kvm.vm_fd = VM_FD;
    return arch_vm_setup(&kvm, err);
}

static void a_guest_keeps_neither_bus_nor_processor(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    fake.bus_lock = KVM_BUS_LOCK_DETECTION_OFF | KVM_BUS_LOCK_DETECTION_EXIT;
    fake.notify = 1;
    assert_int_equal(setup(&err), 0);
    assert_int_equal(fake.bus_lock_args, KVM_BUS_LOCK_DETECTION_EXIT);
    /* No time of its own: KVM's. And no exit to the VMM, which would know nothing to do. */
    assert_int_equal(fake.notify_args, KVM_X86_NOTIFY_VMEXIT_ENABLED);
    assert_true(fake.has_msr_filter);
}

/* Which KVM has for each guest of AMD's, whatever its CPUID says. */
static void a_guest_has_no_counters(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    fake.counters = KVM_PMU_CAP_DISABLE;
    assert_int_equal(setup(&err), 0);
    assert_int_equal(fake.counters_args, KVM_PMU_CAP_DISABLE);
    /* Also where KVM cannot be told so. */
    assert_true(fake.has_msr_filter && fake.other_is_writable);
    assert_false(fake.counter_is_writable);
}

static void a_guest_writes_no_clock_that_no_reset_forgets(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    assert_int_equal(setup(&err), 0);
    assert_true(fake.has_msr_filter && fake.other_is_writable);
    assert_false(fake.old_clock_is_writable);
}

/* As AMD's: nothing is asked for that is not there. */
static void a_host_without_them_goes_on(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    fake.bus_lock = KVM_BUS_LOCK_DETECTION_OFF;
    fake.refuses = true;
    assert_int_equal(setup(&err), 0);
    assert_true(fake.has_msr_filter);
}

/* What is there and cannot be had is no reason to do without. */
static void what_is_refused_ends_the_machine(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    fake.notify = 1;
    fake.refuses = true;
    assert_int_equal(setup(&err), -EINVAL);
    assert_non_null(strstr(err.message, "KVM_CAP_X86_NOTIFY_VMEXIT"));
    assert_false(fake.has_msr_filter);
}

static int limit(struct err *err)
{
    struct kvm kvm = kvm_init();

    kvm.vm_fd = VM_FD;
    kvm.vcpu_fd = VCPU_FD;
    return arch_vcpu_limit(&kvm, err);
}

/* Of what KVM offers guests by itself it has what its CPUID says, where KVM can see to that. */
static void a_guest_has_the_features_that_it_is_told_of(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    assert_int_equal(limit(&err), 0);
    assert_int_equal(fake.features_args, 0);
    fake.features = 1;
    assert_int_equal(limit(&err), 0);
    assert_int_equal(fake.features_args, 1);
    fake.refuses = true;
    assert_int_equal(limit(&err), -EINVAL);
    assert_non_null(strstr(err.message, "KVM_CAP_ENFORCE_PV_FEATURE_CPUID"));
}

/* A reset has translations flushed by a feature that its guest is not told of. */
static void what_is_made_to_be_reset_has_more(void **unused)
{
    struct err err = {0};

    (void)unused;
    memset(&fake, 0, sizeof(fake));
    fake.features = 1;
    assert_int_equal(setup(&err), 0);
    assert_int_equal(fake.features_args, 0);
}

static void who_locks_the_bus_goes_on(void **unused)
{
    struct kvm_run run = {.exit_reason = KVM_EXIT_X86_BUS_LOCK};

    (void)unused;
    assert_int_equal(arch_handle_exit(&run, sizeof(run)), ARCH_EXIT_CONTINUE);
    run.exit_reason = KVM_EXIT_NOTIFY;
    assert_int_equal(arch_handle_exit(&run, sizeof(run)), ARCH_EXIT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guest_keeps_neither_bus_nor_processor),
        cmocka_unit_test(a_guest_has_no_counters),
        cmocka_unit_test(a_guest_writes_no_clock_that_no_reset_forgets),
        cmocka_unit_test(a_host_without_them_goes_on),
        cmocka_unit_test(what_is_refused_ends_the_machine),
        cmocka_unit_test(a_guest_has_the_features_that_it_is_told_of),
        cmocka_unit_test(what_is_made_to_be_reset_has_more),
        cmocka_unit_test(who_locks_the_bus_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
