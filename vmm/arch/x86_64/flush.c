/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes KVM flush a vCPU's address translations. The paravirtual steal time page has a byte by
 * which a guest asks for exactly that: KVM_VCPU_FLUSH_TLB in `preempted`, looked at whenever
 * KVM updates the page, which writing the MSR makes it do at the next entry, before the guest
 * runs (record_steal_time in arch/x86/kvm/x86.c). It then calls kvm_vcpu_flush_tlb_guest: a new
 * ASID or a flush of the ASID on AMD, INVVPID of the vCPU's VPID on Intel, which both drop all
 * linear and combined mappings of the guest, global ones too, and count in `tlb_flush`.
 *
 * The guest is not told of the page: its CPUID has no steal time. The bytes lie in the page of
 * the generation ID, which no kernel uses as RAM, and KVM goes on writing there how long the
 * vCPU has waited for a processor, which its guest sees by any clock, until the next reset: to
 * switch it off takes a call that would let the vCPU's thread set every register. A guest that
 * writes there can only make KVM flush once more.
 */
#include <asm/kvm_para.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/fd.h"
#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/msr.h"
#include "vmm/layout.h"

#define STEAL_ALIGN 64u /* of struct kvm_steal_time, and its size */
_Static_assert(sizeof(struct kvm_steal_time) == STEAL_ALIGN, "struct kvm_steal_time");

/* KVM_GET_STATS_FD: more descriptors than any KVM has, and the size of their names. */
#define STATS_MAX      512u
#define STATS_NAME     "tlb_flush"
#define STATS_NAME_MAX 64u
#define NAME_AT        offsetof(struct kvm_stats_desc, name)

struct arch_flush arch_flush_init(void)
{
    return (struct arch_flush){.stats_fd = -1};
}

static int read_at(int fd, void *out, size_t len, uint64_t at, struct err *err)
{
    ssize_t n = fd_pread_full(fd, out, len, at);

    if (n != (ssize_t)len)
        return err_set_errno(err, n < 0 ? (int)-n : EIO, "KVM's statistics");
    return 0;
}

/* Looks the counter up by its name. */
static int find_counter(struct arch_flush *flush, struct err *err)
{
    struct kvm_stats_header header;
    int r = read_at(flush->stats_fd, &header, sizeof(header), 0, err);

    if (r < 0)
        return r;
    if (header.name_size > STATS_NAME_MAX || header.name_size <= strlen(STATS_NAME) ||
        header.num_desc > STATS_MAX)
        return err_set(err, ENOTSUP, "KVM's statistics have an unknown form");
    for (uint32_t i = 0; i < header.num_desc; i++) {
        uint8_t bytes[NAME_AT + STATS_NAME_MAX];
        struct kvm_stats_desc desc;
        size_t len = NAME_AT + header.name_size;

        r = read_at(flush->stats_fd, bytes, len, header.desc_offset + i * (uint64_t)len, err);
        if (r < 0)
            return r;
        if (memcmp(bytes + NAME_AT, STATS_NAME, sizeof(STATS_NAME)) != 0)
            continue;
        memcpy(&desc, bytes, NAME_AT);
        flush->offset = header.data_offset + (uint64_t)desc.offset;
        return 0;
    }
    return err_set(err, ENOTSUP, "KVM does not count flushes of the TLB");
}

int arch_flush_open(const struct kvm *kvm, struct arch_flush *flush, struct err *err)
{
    int fd = kvm_ioctl(kvm->vcpu_fd, KVM_GET_STATS_FD, NULL, "KVM_GET_STATS_FD", err);
    int r;

    if (fd < 0)
        return fd;
    flush->stats_fd = fd;
    r = find_counter(flush, err);
    if (r < 0)
        arch_flush_finish(flush);
    return r;
}

void arch_flush_finish(struct arch_flush *flush)
{
    fd_close(&flush->stats_fd);
}

static gpa_t steal_gpa(const struct memory *memory)
{
    return LAYOUT_VMGENID_GPA(memory->size) + STEAL_ALIGN;
}

static int set_steal_msr(const struct kvm *kvm, uint64_t value, struct err *err)
{
    int r = x86_msr_set(kvm, MSR_KVM_STEAL_TIME, value, err);

    if (r < 0)
        return r;
    return r == 1 ? 0 : err_set(err, ENOTSUP, "KVM refuses a steal time page");
}

int arch_flush_arm(const struct kvm *kvm, const struct memory *memory, struct arch_flush *flush,
                   struct err *err)
{
    struct kvm_steal_time page = {0};
    gpa_t gpa = steal_gpa(memory);
    int r =
        read_at(flush->stats_fd, &flush->flushes, sizeof(flush->flushes), flush->offset, err);

    if (r < 0)
        return r;
    /* Present before KVM writes to it: it does not wait for a page fault there. */
    if (memory_write(memory, gpa, &page, sizeof(page)) < 0)
        return err_set(err, EFAULT, "no room for a steal time page");
    r = set_steal_msr(kvm, gpa | KVM_MSR_ENABLED, err);
    if (r < 0)
        return r;
    /*
     * Only now. KVM marks a vCPU that it puts down with a byte of its own in the same place,
     * once until it has updated the page: it has done so in the call above, or will not.
     */
    page.preempted = KVM_VCPU_FLUSH_TLB;
    if (memory_write(memory, gpa, &page, sizeof(page)) < 0)
        return err_set(err, EFAULT, "no room for a steal time page");
    flush->due = true;
    return 0;
}

int arch_flush_disarm(const struct kvm *kvm, struct err *err)
{
    return set_steal_msr(kvm, 0, err);
}

int arch_flush_check(struct arch_flush *flush, struct err *err)
{
    uint64_t flushes = 0;
    int r = read_at(flush->stats_fd, &flushes, sizeof(flushes), flush->offset, err);

    flush->due = false;
    if (r < 0)
        return r;
    return flushes != flush->flushes
               ? 0
               : err_set(err, EIO,
                         "KVM did not flush the address translations of a reset machine");
}
