/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which MSRs a guest may write: those that a snapshot holds, and no others, so that nothing a
 * guest can change is forgotten by a reset. KVM takes writes to more MSRs than it lists (memory
 * type ranges and machine check banks, even where CPUID has neither), and some that keep what
 * was written once. Reads are left to KVM, but for one. What is refused is a general protection
 * fault, as it is for an MSR that does not exist.
 *
 * KVM_X86_SET_MSR_FILTER, Documentation/virt/kvm/api.rst 4.97. The x2APIC's MSRs pass it: they
 * are the state of the local APIC.
 */
#include <asm/kvm_para.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/msr.h"

#define AREA_MSRS  0x2000u
#define AREA_BYTES (AREA_MSRS / 8)
#define KVM_MSRS   16u

/* The parts of the index space that hold MSRs a guest may write. */
static const uint32_t areas[] = {0, 0xc0000000u, 0xc0010000u};
#define N_AREAS (sizeof(areas) / sizeof(areas[0]))

/* Held by other sections of a snapshot, or with nothing to hold. */
static const uint32_t also_writable[] = {
    0x1b,       /* APIC base: the special registers */
    0x49,       /* PRED_CMD: a command */
    0x8b,       /* microcode revision: KVM ignores the guest's write, Linux makes one */
    0x10b,      /* FLUSH_CMD: a command */
    0xc0000080, /* EFER: the special registers */
    0xc0000100, /* FS base: the special registers */
    0xc0000101, /* GS base: the special registers */
};

/* Listed by KVM, but of features that the guest is not given or that cannot be put back. */
static const uint32_t not_writable[] = {
    0x10, /* TSC: what a guest adds to it stays in TSC_ADJUST, which a host cannot set
             while CPUID has none of it; no Linux writes it where there is one CPU */
    0x11, /* the wall clock and */
    0x12, /* the clock by the numbers before KVM's own: that a guest wrote the second makes
             its clock a slower one, and no reset takes it back; Linux writes neither
             where CPUID offers those of kvm_writable */
    0xc0010015, /* HWCR: its McStatusWrEn stays set in Linux 6.1 whatever the host writes */
    0xc0010114, /* VM_CR: its lock is for ever */
    0xc0010117, /* VM_HSAVE_PA: no SVM here */

    /* PERFEVTSEL0 to 3 and PERFCTR0 to 3: AMD's KVM has these counters for each guest whatever
       its CPUID says, where it cannot be told otherwise (platform.c). Linux finds that they do
       not count, and does without. */
    0xc0010000,
    0xc0010001,
    0xc0010002,
    0xc0010003,
    0xc0010004,
    0xc0010005,
    0xc0010006,
    0xc0010007,
};

/* Of KVM's own: the clock and the end of interrupts, which CPUID offers. */
static const uint32_t kvm_writable[] = {0x4b564d00, 0x4b564d01, 0x4b564d04};

/* All of KVM's but steal time, which CPUID does not offer and a reset leaves on: flush.c. */
static uint8_t kvm_readable[KVM_MSRS / 8] = {(uint8_t) ~(1u << (MSR_KVM_STEAL_TIME & 7)), 0xff};

static bool contains(const uint32_t *list, size_t n, uint32_t index)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == index)
            return true;
    }
    return false;
}

static void allow(uint8_t bitmaps[N_AREAS][AREA_BYTES], uint32_t index)
{
    for (size_t i = 0; i < N_AREAS; i++) {
        uint32_t bit = index - areas[i];

        if (index >= areas[i] && bit < AREA_MSRS)
            bitmaps[i][bit / 8] |= (uint8_t)(1u << bit % 8);
    }
}

static void add_range(struct kvm_msr_filter *filter, size_t *n, uint32_t flags, uint32_t base,
                      uint32_t n_msrs, uint8_t *bitmap)
{
    filter->ranges[(*n)++] = (struct kvm_msr_filter_range){
        .flags = flags, .nmsrs = n_msrs, .base = base, .bitmap = bitmap};
}

int x86_msr_filter(const struct kvm *kvm, struct err *err)
{
    static uint8_t writable[N_AREAS][AREA_BYTES], everything[AREA_BYTES];
    struct kvm_msr_filter filter = {.flags = KVM_MSR_FILTER_DEFAULT_DENY};
    uint8_t kvm_bitmap[KVM_MSRS / 8] = {0};
    struct x86_msr_index index;
    size_t n = 0;
    int r = x86_msr_list(kvm, &index, err);

    if (r < 0)
        return r;
    memset(everything, 0xff, sizeof(everything));
    memset(writable, 0, sizeof(writable));
    for (uint32_t i = 0; i < index.n; i++) {
        if (!contains(not_writable, sizeof(not_writable) / sizeof(not_writable[0]),
                      index.indices[i]))
            allow(writable, index.indices[i]);
    }
    for (size_t i = 0; i < sizeof(also_writable) / sizeof(also_writable[0]); i++)
        allow(writable, also_writable[i]);
    for (size_t i = 0; i < sizeof(kvm_writable) / sizeof(kvm_writable[0]); i++)
        kvm_bitmap[(kvm_writable[i] - MSR_KVM_FIRST) / 8] |=
            (uint8_t)(1u << (kvm_writable[i] - MSR_KVM_FIRST) % 8);

    for (size_t i = 0; i < N_AREAS; i++) {
        add_range(&filter, &n, KVM_MSR_FILTER_READ, areas[i], AREA_MSRS, everything);
        add_range(&filter, &n, KVM_MSR_FILTER_WRITE, areas[i], AREA_MSRS, writable[i]);
    }
    add_range(&filter, &n, KVM_MSR_FILTER_READ, MSR_KVM_FIRST, KVM_MSRS, kvm_readable);
    add_range(&filter, &n, KVM_MSR_FILTER_WRITE, MSR_KVM_FIRST, KVM_MSRS, kvm_bitmap);
    r = kvm_ioctl(kvm->vm_fd, KVM_X86_SET_MSR_FILTER, &filter, "KVM_X86_SET_MSR_FILTER", err);
    return r < 0 ? r : 0;
}
