/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interrupt chips, their devicetree nodes, and the exits that only x86 has. There is no
 * port I/O device: every port reads as all ones and swallows what is written.
 */
#include <errno.h>
#include <libfdt.h>
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

int arch_vm_setup(const struct kvm *kvm, struct err *err)
{
    int r;

    /* An argument by value: not for kvm_ioctl. */
    if (ioctl(kvm->vm_fd, KVM_SET_TSS_ADDR, TSS_GPA) < 0)
        return err_set_errno(err, errno, "KVM_SET_TSS_ADDR");
    r = kvm_ioctl(kvm->vm_fd, KVM_CREATE_IRQCHIP, NULL, "KVM_CREATE_IRQCHIP", err);
    return r < 0 ? r : x86_msr_filter(kvm, err);
}

int arch_devicetree_cpus(void *fdt)
{
    return fdt_begin_node(fdt, "cpus") ?: fdt_property_u32(fdt, "#address-cells", 1)
        ?: fdt_property_u32(fdt, "#size-cells", 0)
        ?: fdt_begin_node(fdt, "cpu@0")
        ?: fdt_property_string(fdt, "device_type", "cpu")
        ?: fdt_property_string(fdt, "compatible", "intel,x86")
        ?: fdt_property_u32(fdt, "reg", 0)
        ?: fdt_property_u32(fdt, "intel,apic", LAPIC_HANDLE)
        ?: fdt_end_node(fdt) ?: fdt_end_node(fdt);
}

static int put_chip(void *fdt, const char *name, const char *compatible, uint64_t base,
                    uint32_t handle)
{
    fdt64_t reg[2] = {cpu_to_fdt64(base), cpu_to_fdt64(CHIP_SIZE)};

    return fdt_begin_node(fdt, name) ?: fdt_property_string(fdt, "compatible", compatible)
        ?: fdt_property(fdt, "reg", reg, sizeof(reg))
        ?: fdt_property_u32(fdt, "phandle", handle);
}

int arch_devicetree_interrupt_controllers(void *fdt)
{
    return put_chip(fdt, "lapic@fee00000", "intel,ce4100-lapic", LAPIC_GPA, LAPIC_HANDLE)
        /* Without it Linux takes the chips for wired to a PIC that no device uses. */
        ?: fdt_property(fdt, "intel,virtual-wire-mode", NULL, 0)
        ?: fdt_end_node(fdt)
        ?: put_chip(fdt, "ioapic@fec00000", "intel,ce4100-ioapic", IOAPIC_GPA,
                    ARCH_DT_INTERRUPT_PARENT)
        ?: fdt_property(fdt, "interrupt-controller", NULL, 0)
        ?: fdt_property_u32(fdt, "#interrupt-cells", 2)
        ?: fdt_end_node(fdt);
}

enum arch_exit arch_handle_exit(struct kvm_run *run, size_t run_bytes)
{
    uint64_t bytes;

    if (run->exit_reason == KVM_EXIT_SHUTDOWN)
        return ARCH_EXIT_STOPPED;
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
    struct kvm kvm = kvm_init();
    struct x86_cpuid cpuid;
    int r = kvm_open(&kvm, err);

    if (r >= 0)
        r = x86_cpuid_host(kvm.dev_fd, &cpuid, err);
    if (r >= 0)
        r = x86_cpuid_describe(&cpuid, out, cap, err);
    kvm_finish(&kvm);
    return r;
}
