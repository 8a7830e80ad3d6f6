/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interrupt chips, their devicetree nodes, and the exits that only x86 has. There is no
 * port I/O device: every port reads as all ones and swallows what is written.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/cpuid.h"
#include "vmm/arch/x86_64/msr.h"

#define LAPIC_GPA    0xfee00000ull
#define IOAPIC_GPA   0xfec00000ull
#define CHIP_SIZE    0x1000u
#define LAPIC_HANDLE 2u

/* Three pages that KVM needs on Intel CPUs, below the chips and above the devices. */
#define TSS_GPA 0xfffbd000ul

/*
 * What a guest may not keep from the host: the memory bus, by operations that lock all of it,
 * and the processor, by instructions that no interrupt ends. Each is left by an exit, on the
 * processors and kernels that have it (documented in Documentation/virt/kvm/api.rst). And what
 * it has no use for: counters of events, of which AMD's KVM gives it four that CPUID cannot
 * hide. That is to be said before there is a vCPU.
 */
static int limit_guest(const struct kvm *kvm, struct err *err)
{
    static const struct {
        struct kvm_enable_cap cap;
        int needs; /* of what KVM_CHECK_EXTENSION says */
        const char *name;
    } limits[] = {
        {{.cap = KVM_CAP_X86_BUS_LOCK_EXIT, .args = {KVM_BUS_LOCK_DETECTION_EXIT}},
         KVM_BUS_LOCK_DETECTION_EXIT,
         "KVM_CAP_X86_BUS_LOCK_EXIT"},
        {{.cap = KVM_CAP_X86_NOTIFY_VMEXIT, .args = {KVM_X86_NOTIFY_VMEXIT_ENABLED}},
         1,
         "KVM_CAP_X86_NOTIFY_VMEXIT"},
        {{.cap = KVM_CAP_PMU_CAPABILITY, .args = {KVM_PMU_CAP_DISABLE}},
         KVM_PMU_CAP_DISABLE,
         "KVM_CAP_PMU_CAPABILITY"},
    };
    int r = 0;

    for (size_t i = 0; r >= 0 && i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct kvm_enable_cap cap = limits[i].cap;
        int has = ioctl(kvm->vm_fd, KVM_CHECK_EXTENSION, (unsigned long)cap.cap);

        if (has > 0 && (has & limits[i].needs))
            r = kvm_ioctl(kvm->vm_fd, KVM_ENABLE_CAP, &cap, limits[i].name, err);
    }
    return r < 0 ? r : 0;
}

int arch_vm_setup(const struct kvm *kvm, struct err *err)
{
    int r;

    /* An argument by value: not for kvm_ioctl. */
    if (ioctl(kvm->vm_fd, KVM_SET_TSS_ADDR, TSS_GPA) < 0)
        return err_set_errno(err, errno, "KVM_SET_TSS_ADDR");
    r = kvm_ioctl(kvm->vm_fd, KVM_CREATE_IRQCHIP, NULL, "KVM_CREATE_IRQCHIP", err);
    if (r < 0)
        return r;
    r = limit_guest(kvm, err);
    return r < 0 ? r : x86_msr_filter(kvm, err);
}

/*
 * KVM's own registers and calls for guests (its clock, steal time, page faults told) are there
 * for each guest, whether its CPUID has them or not, unless this is asked for: the rest of them
 * is code of the host's that a guest reaches. It holds for the VMM as well (guest_pv_has in
 * arch/x86/kvm/x86.c does not ask who writes), and so
 *
 * - not for a machine that is reset: flush.c has translations flushed by a register of steal
 *   time, which the guest must not be told of;
 * - not before a restore has set the registers of a snapshot, which has all that KVM lists; nor
 *   for one that is to be saved, which has to read them.
 */
int arch_vcpu_limit(const struct kvm *kvm, struct err *err)
{
    struct kvm_enable_cap cap = {.cap = KVM_CAP_ENFORCE_PV_FEATURE_CPUID, .args = {1}};
    int r;

    if (ioctl(kvm->vm_fd, KVM_CHECK_EXTENSION, (unsigned long)cap.cap) <= 0)
        return 0;
    r = kvm_ioctl(kvm->vcpu_fd, KVM_ENABLE_CAP, &cap, "KVM_CAP_ENFORCE_PV_FEATURE_CPUID", err);
    return r < 0 ? r : 0;
}

void arch_devicetree_cpus(struct devicetree *t)
{
    devicetree_begin(t, "cpus");
    devicetree_put_u32(t, "#address-cells", 1);
    devicetree_put_u32(t, "#size-cells", 0);
    devicetree_begin(t, "cpu@0");
    devicetree_put_string(t, "device_type", "cpu");
    devicetree_put_string(t, "compatible", "intel,x86");
    devicetree_put_u32(t, "reg", 0);
    devicetree_put_u32(t, "intel,apic", LAPIC_HANDLE);
    devicetree_end(t);
    devicetree_end(t);
}

static void begin_chip(struct devicetree *t, const char *name, const char *compatible,
                       uint64_t base, uint32_t handle)
{
    devicetree_begin(t, name);
    devicetree_put_string(t, "compatible", compatible);
    devicetree_put_reg(t, base, CHIP_SIZE);
    devicetree_put_u32(t, "phandle", handle);
}

void arch_devicetree_interrupt_controllers(struct devicetree *t)
{
    begin_chip(t, "lapic@fee00000", "intel,ce4100-lapic", LAPIC_GPA, LAPIC_HANDLE);
    /* Without it Linux takes the chips for wired to a PIC that no device uses. */
    devicetree_put(t, "intel,virtual-wire-mode", NULL, 0);
    devicetree_end(t);
    begin_chip(t, "ioapic@fec00000", "intel,ce4100-ioapic", IOAPIC_GPA,
               ARCH_DT_INTERRUPT_PARENT);
    devicetree_put(t, "interrupt-controller", NULL, 0);
    devicetree_put_u32(t, "#interrupt-cells", 2);
    devicetree_end(t);
}

enum arch_exit arch_handle_exit(struct kvm_run *run, size_t run_bytes)
{
    uint64_t bytes;

    if (run->exit_reason == KVM_EXIT_SHUTDOWN)
        return ARCH_EXIT_STOPPED;
    /* The exit itself slows down who locks the bus. */
    if (run->exit_reason == KVM_EXIT_X86_BUS_LOCK)
        return ARCH_EXIT_CONTINUE;
    if (run->exit_reason != KVM_EXIT_IO)
        return ARCH_EXIT_UNKNOWN;
    bytes = (uint64_t)run->io.size * run->io.count;
    if (run->io.data_offset > run_bytes || bytes > run_bytes - run->io.data_offset)
        return ARCH_EXIT_UNKNOWN;
    if (run->io.direction == KVM_EXIT_IO_IN)
        memset((uint8_t *)run + run->io.data_offset, 0xff, bytes);
    return ARCH_EXIT_CONTINUE;
}

int arch_fingerprint(char *out, size_t cap, struct err *err)
{
    _cleanup_kvm_ struct kvm kvm = kvm_init();
    struct x86_cpuid cpuid;
    int r = kvm_open(&kvm, -1, err);

    if (r < 0)
        return r;
    r = x86_cpuid_host(kvm.dev_fd, &cpuid, err);
    return r < 0 ? r : x86_cpuid_describe(&cpuid, out, cap, err);
}
