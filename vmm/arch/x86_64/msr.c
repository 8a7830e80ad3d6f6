/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/arch/x86_64/msr.h"

#include <stddef.h>

/* Laid out as struct kvm_msrs with one entry. */
struct one_msr {
    uint32_t n;
    uint32_t padding;
    struct kvm_msr_entry entry;
};
_Static_assert(offsetof(struct one_msr, entry) == offsetof(struct kvm_msrs, entries),
               "struct one_msr must be laid out as struct kvm_msrs");

int x86_msr_list(const struct kvm *kvm, struct x86_msr_index *ret_index, struct err *err)
{
    int r;

    ret_index->n = X86_MSRS_MAX;
    r = kvm_ioctl(kvm->dev_fd, KVM_GET_MSR_INDEX_LIST, ret_index, "KVM_GET_MSR_INDEX_LIST",
                  err);
    return r < 0 ? r : 0;
}

int x86_msr_get(const struct kvm *kvm, uint32_t index, uint64_t *ret_value, struct err *err)
{
    struct one_msr msr = {.n = 1, .entry = {.index = index}};
    int r = kvm_ioctl(kvm->vcpu_fd, KVM_GET_MSRS, &msr, "KVM_GET_MSRS", err);

    *ret_value = msr.entry.data;
    return r;
}

int x86_msr_set(const struct kvm *kvm, uint32_t index, uint64_t value, struct err *err)
{
    struct one_msr msr = {.n = 1, .entry = {.index = index, .data = value}};

    return kvm_ioctl(kvm->vcpu_fd, KVM_SET_MSRS, &msr, "KVM_SET_MSRS", err);
}
